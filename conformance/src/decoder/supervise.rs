//! Decoding in processes that may be lost: what came of a vector is told of exactly that vector.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::exchange::{Answer, DecodedValue, Refusal, Request};
use super::vectors::Vector;
use crate::process::{Process, Program};

/// Longest answer of a process, in bytes; its texts are shortened.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

/// How long a process that has closed its output may take to end.
const END: Duration = Duration::from_secs(5);

/// What one vector may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Processor time for decoding.
    pub(super) processor: Duration,
    /// Time on the clock for decoding, comparing and dropping.
    pub(super) clock: Duration,
    /// Address space of the process.
    pub(super) memory_bytes: u64,
    /// Time on the clock for a process to start.
    pub(super) start: Duration,
}

/// Which bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    ProcessorTime,
    Clock,
    Memory,
}

impl Bound {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ProcessorTime => "processor time",
            Self::Clock => "time on the clock",
            Self::Memory => "memory",
        }
    }
}

/// What a process was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Decoding,
    /// Comparing, printing and dropping the value.
    Using,
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Decoding => "while decoding",
            Self::Using => "while comparing, printing or dropping the value",
        }
    }
}

/// How a vector ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Refused(Refusal),
    Value(DecodedValue),
    Over { bound: Bound, phase: Phase },
    Crashed { phase: Phase, how: String },
}

/// What came of a vector.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) ending: Ending,
    /// Processor time of decoding, where the process lived to tell.
    pub(super) processor: Option<Duration>,
    pub(super) elapsed: Duration,
}

/// A process could not be started, or was not ready in time: the reason.
#[derive(Clone, Debug)]
pub(super) struct StartError(pub(super) String);

/// One process at a time, and another when it is lost.
pub(super) struct Supervisor<'a> {
    program: &'a Program,
    bounds: Bounds,
    child: Option<Child>,
}

struct Child {
    process: Process,
    from: BufReader<ChildStdout>,
    to: ChildStdin,
}

/// A process stopped answering: it closed its output, or what it said was no answer that was due.
struct Broken(Option<String>);

impl<'a> Supervisor<'a> {
    pub(super) fn new(program: &'a Program, bounds: Bounds) -> Self {
        Self {
            program,
            bounds,
            child: None,
        }
    }

    /// Has one vector decoded.
    ///
    /// # Errors
    ///
    /// When there is no process and none can be started. The vector is not to blame.
    pub(super) async fn observe(&mut self, vector: &Vector) -> Result<Observation, StartError> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.start().await?,
        };
        let request = Request {
            hex: HEXLOWER.encode(&vector.stream),
            value: vector.value.clone(),
        };
        let started = Instant::now();
        let mut said = Said {
            phase: Phase::Decoding,
            processor: None,
        };
        let exchange = timeout(self.bounds.clock, child.exchange(&request, &mut said)).await;
        let elapsed = started.elapsed();
        let Said { phase, processor } = said;
        let ending = match exchange {
            Ok(Ok(ending)) => {
                self.child = Some(child);
                match processor {
                    Some(spent) if spent > self.bounds.processor => Ending::Over {
                        bound: Bound::ProcessorTime,
                        phase: Phase::Decoding,
                    },
                    _ => ending,
                }
            }
            Ok(Err(Broken(Some(how)))) => Ending::Crashed { phase, how },
            Ok(Err(Broken(None))) => child.post_mortem(phase).await,
            // Dropping the process kills it.
            Err(_) => Ending::Over {
                bound: Bound::Clock,
                phase,
            },
        };
        Ok(Observation {
            ending,
            processor,
            elapsed,
        })
    }

    async fn start(&self) -> Result<Child, StartError> {
        let started = self.program.start_piped();
        let (process, from, to) = started.map_err(|error| StartError(error.to_string()))?;
        let mut child = Child {
            process,
            from: BufReader::new(from),
            to,
        };
        match timeout(self.bounds.start, child.answer()).await {
            Ok(Ok(Answer::Ready)) => Ok(child),
            Ok(Ok(_) | Err(Broken(Some(_)))) => Err(StartError("it was not ready first".into())),
            Ok(Err(Broken(None))) => {
                let status = child.process.exited(END).await;
                child.process.read_to_end(END).await;
                let said = child.process.stderr_tail();
                Err(StartError(match status {
                    Some(status) => format!("it ended: {status}\n{said}"),
                    None => format!("it closed its output\n{said}"),
                }))
            }
            Err(_) => Err(StartError(format!(
                "it was not ready within {:?}",
                self.bounds.start
            ))),
        }
    }
}

/// What a process has said of a vector so far.
struct Said {
    phase: Phase,
    processor: Option<Duration>,
}

impl Child {
    async fn exchange(&mut self, request: &Request, said: &mut Said) -> Result<Ending, Broken> {
        let mut line =
            serde_json::to_vec(request).map_err(|error| Broken(Some(error.to_string())))?;
        line.push(b'\n');
        // A process that is gone breaks the pipe; how it ended is asked later.
        self.to.write_all(&line).await.map_err(|_| Broken(None))?;
        self.to.flush().await.map_err(|_| Broken(None))?;
        let Answer::Decoded {
            refused,
            processor_us,
        } = self.answer().await?
        else {
            return Err(out_of_turn());
        };
        said.phase = Phase::Using;
        said.processor = Some(Duration::from_micros(processor_us));
        match (self.answer().await?, refused) {
            (Answer::Done { value: None }, Some(refusal)) => Ok(Ending::Refused(refusal)),
            (Answer::Done { value: Some(value) }, None) => Ok(Ending::Value(value)),
            _ => Err(out_of_turn()),
        }
    }

    async fn answer(&mut self) -> Result<Answer, Broken> {
        let mut line = String::new();
        let read = (&mut self.from)
            .take(MAX_ANSWER_BYTES)
            .read_line(&mut line)
            .await;
        match read {
            Ok(1..) if line.ends_with('\n') => serde_json::from_str(&line)
                .map_err(|error| Broken(Some(format!("it answered {line:?}: {error}")))),
            _ => Err(Broken(None)),
        }
    }

    /// How it ended.
    async fn post_mortem(mut self, phase: Phase) -> Ending {
        let status = self.process.exited(END).await;
        self.process.read_to_end(END).await;
        let said = self.process.stderr_tail();
        let Some(status) = status else {
            return Ending::Crashed {
                phase,
                how: "it closed its output and stayed".to_owned(),
            };
        };
        match over(status, &said) {
            Some(bound) => Ending::Over { bound, phase },
            None => Ending::Crashed {
                phase,
                how: format!("{status}\n{}", said.trim_end())
                    .trim_end()
                    .to_owned(),
            },
        }
    }
}

fn out_of_turn() -> Broken {
    Broken(Some("it answered out of turn".to_owned()))
}

/// Which bound ended a process, if one did.
fn over(status: ExitStatus, said: &str) -> Option<Bound> {
    let by = |signal: Signal| status.signal() == Some(signal.as_raw());
    if by(Signal::XCPU) {
        return Some(Bound::ProcessorTime);
    }
    // What Rust's runtime says before it aborts when the system gives no memory.
    let denied = said
        .lines()
        .any(|line| line.starts_with("memory allocation of ") && line.ends_with(" failed"));
    (by(Signal::ABORT) && denied).then_some(Bound::Memory)
}
