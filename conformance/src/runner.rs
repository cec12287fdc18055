//! Runs the selected cases against each testee.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::timeout;

use crate::case::{Body, Case, Kind};
use crate::clock::Clock;
use crate::context::{RuntimeCase, ScriptedCase, WorkerCase};
use crate::peer::tunnel::Switchboard;
use crate::peer::{Endpoint, Wire};
use crate::process::Process;
use crate::report::Report;
use crate::testee::{How, StartError, Testee, health_answers};
use crate::transcript::Transcript;
use crate::verdict::{Failure, Stop, Verdict};

/// What came of one case against one testee.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) testee: String,
    pub(crate) case: &'static Case,
    pub(crate) status: Status,
    pub(crate) elapsed: Duration,
    pub(crate) transcript: Option<Transcript>,
    /// The command that repeats it.
    pub(crate) repeat: String,
}

/// The ways in which a case can come out.
#[derive(Debug)]
pub(crate) enum Status {
    Passed,
    Failed {
        requirement: &'static str,
        expected: String,
        observed: String,
    },
    NotRun {
        reason: String,
        /// Does its absence leave the question of conformance open?
        required: bool,
    },
    /// A recommendation (SHOULD) was not followed, which is no reason not to conform.
    Advised {
        requirement: &'static str,
        expected: String,
        observed: String,
    },
    /// The suite is at fault.
    Fault(String),
}

/// A whole run.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) records: Vec<Record>,
    /// Testees that could not be started, with the reason.
    pub(crate) unstartable: Vec<(String, String)>,
}

/// Exit statuses of the suite.
pub(crate) mod exit {
    pub(crate) const CONFORMS: u8 = 0;
    pub(crate) const FAILURE: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const INCONCLUSIVE: u8 = 4;
    pub(crate) const NOT_STARTED: u8 = 5;
    pub(crate) const FAULT: u8 = 70;
    pub(crate) const INTERRUPTED: u8 = 130;
}

impl Run {
    /// What the run says about the testees, as an exit status.
    pub(crate) fn exit_status(&self) -> u8 {
        let any = |is: fn(&Status) -> bool| self.records.iter().any(|record| is(&record.status));
        if any(|status| matches!(status, Status::Fault(_))) {
            exit::FAULT
        } else if any(|status| matches!(status, Status::Failed { .. })) {
            exit::FAILURE
        } else if !self.unstartable.is_empty() {
            exit::NOT_STARTED
        } else if !any(|status| matches!(status, Status::Passed | Status::Advised { .. }))
            || any(|status| matches!(status, Status::NotRun { required: true, .. }))
        {
            exit::INCONCLUSIVE
        } else {
            exit::CONFORMS
        }
    }
}

/// Runs `cases` against `testees`: one case at a time for each, up to `jobs` testees at a time.
pub(crate) async fn run(
    testees: &[Testee],
    cases: &[&'static Case],
    clock: Clock,
    jobs: usize,
    report: &mut Report,
) -> Run {
    report.start(testees, cases);
    let shared = RefCell::new(report);
    let lanes = testees
        .iter()
        .enumerate()
        .map(async |(number, testee)| (number, run_lane(testee, cases, clock, &shared).await));
    let mut lanes: Vec<_> = stream::iter(lanes).buffer_unordered(jobs).collect().await;
    lanes.sort_by_key(|(number, _)| *number);
    let mut run = Run::default();
    for (_, lane) in lanes {
        run.records.extend(lane.records);
        run.unstartable.extend(lane.unstartable);
    }
    shared.into_inner().finish(&run);
    run
}

async fn run_lane(
    testee: &Testee,
    cases: &[&'static Case],
    clock: Clock,
    report: &RefCell<&mut Report>,
) -> Run {
    let mut run = Run::default();
    let mut lane = Lane {
        testee,
        clock,
        shared: None,
        broken: None,
    };
    for case in cases.iter().copied().filter(|case| testee.takes(case)) {
        report.borrow().begin(testee, case);
        let started = Instant::now();
        let (status, transcript) = lane.run(case, report).await;
        let record = Record {
            testee: testee.name.clone(),
            case,
            status,
            elapsed: started.elapsed(),
            transcript,
            repeat: testee.repeat.replace("{case}", case.id),
        };
        report.borrow_mut().record(&record);
        run.records.push(record);
    }
    if let Some(StartError(reason)) = &lane.broken {
        run.unstartable.push((testee.name.clone(), reason.clone()));
    }
    if let Some(shared) = lane.shared.take() {
        shared.stop(clock).await;
    }
    run
}

impl Testee {
    /// Is the case meant for this testee?
    pub(crate) fn takes(&self, case: &Case) -> bool {
        self.role == case.role() && self.kinds.contains(&case.kind())
    }
}

/// A runtime that serves several cases.
struct Shared {
    process: Option<Process>,
    endpoint: Endpoint,
}

impl Shared {
    async fn stop(self, clock: Clock) {
        if let Some(process) = self.process {
            process.stop(clock.stop()).await;
        }
    }
}

/// One testee, from its first case to its last.
struct Lane<'a> {
    testee: &'a Testee,
    clock: Clock,
    shared: Option<Shared>,
    /// Why no further case can run.
    broken: Option<StartError>,
}

impl Lane<'_> {
    async fn run(
        &mut self,
        case: &'static Case,
        report: &RefCell<&mut Report>,
    ) -> (Status, Option<Transcript>) {
        let not_run = |reason: &str, required| {
            let reason = reason.to_owned();
            (Status::NotRun { reason, required }, None)
        };
        match (&self.testee.how, case.kind()) {
            (How::Absent(reason), _) => return not_run(reason, false),
            (How::Url(_), Kind::Scripted) => {
                return not_run("a runtime given by --url has a worker already", true);
            }
            (How::Command(command), Kind::Scripted) if !command.takes_worker() => {
                return not_run("the command has no {worker}", true);
            }
            _ => {}
        }
        if self.broken.is_some() {
            return not_run("the testee could not be started", true);
        }
        let wire = Wire {
            clock: self.clock,
            transcript: Transcript::new(),
        };
        let transcript = wire.transcript.clone();
        match self.attempt(case, wire).await {
            Ok(verdict) => (status(case, verdict, &report.borrow()), Some(transcript)),
            Err(error) => {
                self.broken = Some(error);
                not_run("the testee could not be started", true)
            }
        }
    }

    async fn attempt(&mut self, case: &'static Case, wire: Wire) -> Result<Verdict, StartError> {
        let limit = self.clock.case();
        match (case.body, &self.testee.how) {
            (Body::Runtime(run), how) | (Body::Isolated(run), how @ How::Url(_)) => {
                let endpoint = match &self.shared {
                    Some(shared) => shared.endpoint.clone(),
                    None => self.start_shared(how).await?,
                };
                let verdict = bounded(run(RuntimeCase::new(endpoint, wire)), limit).await;
                Ok(self.aftermath(verdict).await)
            }
            (Body::Isolated(run), How::Command(command)) => {
                let (process, endpoint) = command.start_runtime(None, self.clock).await?;
                let own = Shared {
                    process: Some(process),
                    endpoint,
                };
                let case = RuntimeCase::new(own.endpoint.clone(), wire);
                let before = self.shared.replace(own);
                let verdict = bounded(run(case), limit).await;
                let verdict = self.aftermath(verdict).await;
                let own = std::mem::replace(&mut self.shared, before);
                if let Some(own) = own {
                    own.stop(self.clock).await;
                }
                Ok(verdict)
            }
            (Body::Scripted(run), How::Command(command)) => {
                let board = Switchboard::open().await;
                let board = board.map_err(|error| StartError(error.to_string()))?;
                let tunnel = tunnel_command(&board)?;
                let (process, endpoint) = command.start_runtime(Some(&tunnel), self.clock).await?;
                let runtime = RuntimeCase::new(endpoint, wire);
                Ok(bounded(
                    run(ScriptedCase {
                        runtime,
                        process,
                        board,
                        command: command.clone(),
                    }),
                    limit,
                )
                .await)
            }
            (Body::Worker(run), How::Command(command)) => {
                let program = command.program(None, None);
                if let Err(error) = which(Path::new(&program.argv[0])) {
                    return Err(StartError(error));
                }
                Ok(bounded(run(WorkerCase { program, wire }), limit).await)
            }
            (_, How::Url(_) | How::Absent(_)) => Ok(Err(Stop::Harness(
                "a case that its testee cannot take".to_owned(),
            ))),
        }
    }

    async fn start_shared(&mut self, how: &How) -> Result<Endpoint, StartError> {
        let shared = match how {
            How::Command(command) => {
                let (process, endpoint) = command.start_runtime(None, self.clock).await?;
                Shared {
                    process: Some(process),
                    endpoint,
                }
            }
            How::Url(endpoint) => {
                if !health_answers(endpoint, self.clock.start()).await {
                    let reason = format!("nothing answers GET /health at http://{endpoint}");
                    return Err(StartError(reason));
                }
                Shared {
                    process: None,
                    endpoint: endpoint.clone(),
                }
            }
            How::Absent(reason) => return Err(StartError(reason.clone())),
        };
        let endpoint = shared.endpoint.clone();
        self.shared = Some(shared);
        Ok(endpoint)
    }

    /// A crash is a verdict of its own, and a failed case leaves nothing behind for the next one.
    async fn aftermath(&mut self, verdict: Verdict) -> Verdict {
        let Some(shared) = &mut self.shared else {
            return verdict;
        };
        let ended = shared.process.as_mut().and_then(|process| {
            let status = process.ended()?;
            Some(format!("it ended: {status}\n{}", process.stderr_tail()))
        });
        let unharmed = matches!(verdict, Ok(()) | Err(Stop::NotApplicable(_)));
        if unharmed && ended.is_none() {
            return verdict;
        }
        if let Some(shared) = self.shared.take_if(|shared| shared.process.is_some()) {
            shared.stop(self.clock).await;
        }
        match (verdict, ended) {
            (Ok(()), Some(observed)) => Err(Stop::Failure(Failure {
                requirement: None,
                expected: "a runtime that lives on".to_owned(),
                observed,
            })),
            (Err(Stop::Failure(failure)), Some(ended)) => Err(Stop::Failure(Failure {
                observed: format!("{}\nand the runtime is gone: {ended}", failure.observed),
                ..failure
            })),
            (verdict, _) => verdict,
        }
    }
}

async fn bounded(run: crate::case::Run, limit: Duration) -> Verdict {
    match timeout(limit, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(panic)) => Err(Stop::Harness(format!(
            "the case panicked: {}",
            words(&*panic)
        ))),
        Err(_) => Err(Stop::Failure(Failure {
            requirement: None,
            expected: format!("an end of the case within {:.1} s", limit.as_secs_f64()),
            observed: "none".to_owned(),
        })),
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn status(case: &'static Case, verdict: Verdict, report: &Report) -> Status {
    let failure = match verdict {
        Ok(()) => return Status::Passed,
        Err(Stop::Harness(reason)) => return Status::Fault(reason),
        Err(Stop::NotApplicable(reason)) => {
            return Status::NotRun {
                reason,
                required: false,
            };
        }
        Err(Stop::Failure(failure)) => failure,
    };
    // A wait that ended for want of anything at all is a failure, also where the case is about a recommendation.
    let advised = failure.requirement.is_some_and(|id| report.recommends(id));
    let requirement = failure.requirement.unwrap_or(case.requirements[0]);
    let (expected, observed) = (failure.expected, failure.observed);
    if advised {
        Status::Advised {
            requirement,
            expected,
            observed,
        }
    } else {
        Status::Failed {
            requirement,
            expected,
            observed,
        }
    }
}

fn tunnel_command(board: &Switchboard) -> Result<String, StartError> {
    let address = board
        .address()
        .map_err(|error| StartError(error.to_string()))?;
    self_command(&["tunnel", &address]).map_err(StartError)
}

/// A shell-quoted command that runs this binary with these arguments.
pub(crate) fn self_command(args: &[&str]) -> Result<String, String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let exe = exe.to_str().ok_or_else(|| format!("{exe:?} is not text"))?;
    let words = std::iter::once(exe).chain(args.iter().copied());
    shlex::try_join(words).map_err(|error| error.to_string())
}

/// Can this program be run at all?
fn which(program: &Path) -> Result<(), String> {
    let found = if program.components().count() > 1 {
        program.is_file()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    if found {
        Ok(())
    } else {
        Err(format!("{program:?} cannot be run: no such program"))
    }
}

/// Numbers of one testee.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) advised: usize,
    pub(crate) not_run: usize,
    pub(crate) elapsed: Duration,
}

impl Run {
    /// The numbers by testee, in the order of the run.
    pub(crate) fn tallies(&self) -> Vec<(&str, Tally)> {
        let mut order = Vec::new();
        let mut tallies: HashMap<&str, Tally> = HashMap::new();
        for record in &self.records {
            let name = record.testee.as_str();
            let tally = tallies.entry(name).or_insert_with(|| {
                order.push(name);
                Tally::default()
            });
            tally.elapsed += record.elapsed;
            match record.status {
                Status::Passed => tally.passed += 1,
                Status::Failed { .. } | Status::Fault(_) => tally.failed += 1,
                Status::Advised { .. } => tally.advised += 1,
                Status::NotRun { .. } => tally.not_run += 1,
            }
        }
        order
            .into_iter()
            .map(|name| (name, tallies[name]))
            .collect()
    }
}
