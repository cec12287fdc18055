//! The decoder of pickles against CPython: random pickles, verdict and value compared.
//!
//! Where the two may differ is told in `differential/known.rs`, and nowhere else. CPython is
//! `.venv/bin/python` if that is there, else `python3`, and decodes under the same policy, which
//! `differential/cpython.py` spells out. To run other pickles, or more of them:
//!
//!     DIFFERENTIAL_SEED=7 DIFFERENTIAL_COUNT=2000000 PYTHON=python3.13 \
//!         cargo test -p agentix-conformance --test differential -- --nocapture
//!
//! `DIFFERENTIAL_SEED=fresh` takes the seed from the clock. A fault names its seed and number;
//! `DIFFERENTIAL_ONLY=NUMBER` runs that pickle alone.

#![allow(clippy::unwrap_used)]

#[path = "differential/known.rs"]
mod known;
#[path = "differential/oracle.rs"]
mod oracle;
#[path = "differential/random.rs"]
mod random;
#[path = "differential/tally.rs"]
mod tally;

#[path = "../src/decoder/generator.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the fuzz target takes it in as well, and uses other parts"
)]
mod generator;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use agentix_conformance::decoder;
use agentix_protocol::safepickle::{DecodeError, Decoder, Document, Event, Opcode, Policy};
use serde_json::Value as Json;

use generator::{Scope, Way, op};
use known::{ALIASES, Case, KNOWN};
use oracle::{About, Answer, Oracle, Question, Said};
use random::Random;
use tally::{Occurred, Tally};

const TEST: &str = "differential";
/// The seed of the run in CI, so that the same commit gives the same result.
const SEED: u64 = 0x5eed_2026;
const COUNT: u64 = 200_000;
const BATCH: u64 = 200;

/// In how many pickles at least each opcode and each admitted name has to occur.
const LEAST: u64 = 20;

/// Opcodes that are always refused.
const REFUSED: &[&str] = &["EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "NEXT_BUFFER"];

/// Values that have no name of their own, as [`kinds`] has them. A `str` is one with surrogates.
const KINDS: &[&str] = &[
    "None",
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "deque",
    "dict",
    "float",
    "frozenset",
    "function",
    "int",
    "list",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "type",
];

#[test]
fn agrees_with_cpython() {
    let Some(python) = python() else {
        return not_run(TEST, "python3 not found");
    };
    let about = Oracle::start(&python).unwrap().about;
    let run = Run {
        seed: seed(),
        python,
        scope: Scope {
            globals: true,
            numpy: about.numpy.is_some(),
        },
        corpus: corpus(),
        about,
    };
    println!(
        "CPython {}, numpy {}, seed {:#x}",
        run.about.python,
        run.about.numpy.as_deref().unwrap_or("none"),
        run.seed,
    );
    if !run.scope.numpy {
        not_run("differential of numpy's types", "numpy not found");
    }
    for name in &run.about.missing {
        not_run(
            &format!("differential of {name}"),
            &format!("CPython {} has none", run.about.python),
        );
    }
    let tally = match variable("DIFFERENTIAL_ONLY") {
        Some(number) => return run.only(number),
        None => run.all(variable("DIFFERENTIAL_COUNT").unwrap_or(COUNT)),
    };
    println!("{}", tally.report());
    for known in KNOWN {
        let count = tally.outcomes.get(known.id).copied().unwrap_or_default();
        println!(
            "known difference {} ({count} times)\n  {}",
            known.id, known.why
        );
    }
    assert!(
        tally.faults.is_empty(),
        "seed {:#x}\n{}",
        run.seed,
        tally.faults()
    );
    run.everything_occurred(&tally);
}

/// Says that a test did not run, past the harness's capture.
fn not_run(test: &str, why: &str) {
    let line = format!("NOT RUN {test}: {why}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

/// The interpreter to compare with: it has to start.
fn python() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python");
    let python = match std::env::var_os("PYTHON") {
        Some(python) => PathBuf::from(python),
        None if venv.exists() => venv,
        None => PathBuf::from("python3"),
    };
    let starts = std::process::Command::new(&python)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    starts.then_some(python)
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

fn seed() -> u64 {
    match std::env::var("DIFFERENTIAL_SEED") {
        Ok(text) if text == "fresh" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos()) << 32 | now.as_secs() & 0xffff_ffff
        }
        Ok(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        }
        .unwrap_or_else(|_| panic!("DIFFERENTIAL_SEED: {text}")),
        Err(_) => SEED,
    }
}

/// Pickles to damage: those of the vectors, but for the hostile ones that may end CPython.
fn corpus() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors/pickle/public.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap())
        .filter(|vector| {
            let group = vector["group"].as_str().unwrap();
            let hex = vector["hex"].as_str().unwrap();
            // "numpy" in hex: numpy does not check what it is told.
            !group.starts_with("hostile") && hex.len() < 2000 && !hex.contains("6e756d7079")
        })
        .map(|vector| {
            let hex = vector["hex"].as_str().unwrap().as_bytes();
            data_encoding::HEXLOWER.decode(hex).unwrap()
        })
        .collect()
}

struct Run {
    seed: u64,
    python: PathBuf,
    about: About,
    scope: Scope,
    corpus: Vec<Vec<u8>>,
}

/// A pickle and what this decoder made of it.
struct Pickle {
    number: u64,
    way: Way,
    stream: Vec<u8>,
    opcodes: BTreeSet<&'static str>,
    names: BTreeSet<String>,
}

impl Run {
    fn pickle(&self, number: u64) -> Pickle {
        let mut random = Random::new(self.seed, number);
        let (way, stream) = generator::pickle(&mut random, self.scope, &self.corpus);
        Pickle {
            number,
            way,
            stream,
            opcodes: BTreeSet::new(),
            names: BTreeSet::new(),
        }
    }

    /// Runs `count` pickles, on as many threads as there are processors and one more, since each
    /// waits for an interpreter of its own half of the time.
    fn all(&self, count: u64) -> Tally {
        let next = AtomicU64::new(0);
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get() + 1);
        let mut sum = Tally::default();
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| self.some(&next, count)))
                .collect();
            for thread in running {
                sum.add(thread.join().unwrap());
            }
        });
        sum
    }

    /// Takes batches until all have been taken.
    fn some(&self, next: &AtomicU64, count: u64) -> Tally {
        let mut oracle = Oracle::start(&self.python).unwrap();
        let mut tally = Tally::default();
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= count {
                return tally;
            }
            let mut pickles: Vec<Pickle> = (from..count.min(from + BATCH))
                .map(|number| self.pickle(number))
                .collect();
            self.batch(&mut oracle, &mut pickles, &mut tally);
        }
    }

    /// One pickle, with all that is known of it.
    fn only(&self, number: u64) {
        let mut oracle = Oracle::start(&self.python).unwrap();
        let mut pickle = self.pickle(number);
        println!("{:?} {}", pickle.way, hex(&pickle.stream));
        let ours = decode(&mut pickle);
        println!("this decoder: {ours:?}");
        let error = ours.err();
        let question = Question {
            explain: true,
            ..question(&pickle, error.as_ref())
        };
        println!("CPython: {:?}", oracle.ask(&[question])[0]);
        let mut tally = Tally::default();
        self.batch(&mut oracle, &mut [self.pickle(number)], &mut tally);
        println!("{:?}", tally.outcomes);
        assert!(tally.faults.is_empty(), "{}", tally.faults());
    }

    fn batch(&self, oracle: &mut Oracle, pickles: &mut [Pickle], tally: &mut Tally) {
        let errors: Vec<Option<DecodeError>> = pickles
            .iter_mut()
            .map(|pickle| decode(pickle).err())
            .collect();
        let questions: Vec<Question<'_>> = pickles
            .iter()
            .zip(&errors)
            .map(|(pickle, error)| question(pickle, error.as_ref()))
            .collect();
        let answers = oracle.ask(&questions);
        for ((pickle, error), answer) in pickles.iter().zip(&errors).zip(answers) {
            let judged = match answer {
                Answer::Said(said) => self.judge(oracle, pickle, error.as_ref(), &said),
                Answer::Ended => {
                    let case = Case {
                        ours: error.as_ref(),
                        theirs: None,
                        aliases: false,
                    };
                    match known::find(&case) {
                        Some(known) => Ok(Agreed::Known(known.id)),
                        None => Err(Fault {
                            sort: "CPython ended".to_owned(),
                            what: format!("{error:?}"),
                        }),
                    }
                }
            };
            tally.count(pickle, judged);
        }
    }

    /// Compares the verdicts, and the values if both accept.
    fn judge(
        &self,
        oracle: &mut Oracle,
        pickle: &Pickle,
        error: Option<&DecodeError>,
        said: &Said,
    ) -> Result<Agreed, Fault> {
        let known = |said: &Said, differ: bool, fault: Fault| {
            let case = Case {
                ours: error,
                theirs: Some(said),
                aliases: differ && equal_by_aliases(pickle, said),
            };
            match known::find(&case) {
                Some(known) => Ok(Agreed::Known(known.id)),
                None => Err(fault),
            }
        };
        match (error, said.accepted()) {
            (Some(_), false) => Ok(Agreed::Rejected),
            (None, _) if !said.changed.is_empty() => Err(Fault {
                sort: "accepted here, changed classes there".to_owned(),
                what: format!("{:?}", said.changed),
            }),
            (Some(error), true) => {
                let label = said.label_at(error.offset());
                let fault = Fault {
                    sort: format!(
                        "refused here alone: {:?} at {:?}, {}",
                        error.kind(),
                        error.opcode(),
                        label.unwrap_or("which picklers write")
                    ),
                    what: format!("{error}; {:?}", said.labels),
                };
                known(said, false, fault)
            }
            (None, false) => {
                let error = said.error.as_deref().unwrap_or_default();
                let stopped = said.stopped.as_ref().map_or("", |(_, label, _)| label);
                let fault = Fault {
                    sort: format!("accepted here alone: {error} there at {stopped}"),
                    what: format!("{:?}; {:?}", said.stopped, said.labels),
                };
                known(said, false, fault)
            }
            (None, true) => {
                let document = Decoder::default().decode(&pickle.stream).unwrap();
                let difference = match said.table() {
                    Some(table) => match decoder::compare(&table, document.root()) {
                        Ok(()) => return Ok(Agreed::Equal(kinds(&table))),
                        Err(difference) => Some(difference),
                    },
                    None => None,
                };
                // Once more, for what no pickler writes.
                let question = Question {
                    explain: true,
                    ..question(pickle, None)
                };
                let Some(Answer::Said(said)) = oracle.ask(&[question]).pop() else {
                    return Err(Fault {
                        sort: "CPython ended the second time".to_owned(),
                        what: String::new(),
                    });
                };
                let (sort, at) = match &difference {
                    Some(difference) => (
                        format!("other values: {:?}", difference.reason()),
                        difference.path().to_owned(),
                    ),
                    None => (format!("no table there: {:?}", said.opaque), String::new()),
                };
                let fault = Fault {
                    sort,
                    what: format!("{at}; {:?}", said.labels),
                };
                known(&said, difference.is_some(), fault)
            }
        }
    }

    /// The kinds of values that have to occur, as [`kinds`] has them.
    fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = KINDS.iter().map(|kind| (*kind).to_owned()).collect();
        if self.scope.numpy {
            kinds.extend(["dtype", "ndarray"].map(str::to_owned));
        }
        for (module, name) in &self.about.admitted {
            let kind = match (module.as_str(), name.as_str()) {
                // The same class as OSError.
                (_, "IOError" | "EnvironmentError") => continue,
                ("builtins", name) if name.starts_with(char::is_uppercase) => "exception",
                ("datetime" | "decimal" | "fractions" | "uuid", _) => "object",
                ("pathlib", "PurePosixPath" | "PosixPath" | "PureWindowsPath") => "object",
                ("collections", name) if name != "deque" => "map",
                (module, _) if module.starts_with("agentix.") => "record",
                _ => continue,
            };
            kinds.push(format!("{kind} {module}.{name}"));
        }
        kinds
    }

    /// Makes sure that the run was worth something.
    fn everything_occurred(&self, tally: &Tally) {
        let mut missing = Vec::new();
        for (_, name, _) in op::ALL {
            let occurred = tally.opcodes.get(name).copied().unwrap_or_default();
            let enough = if REFUSED.contains(name) {
                occurred.all
            } else {
                occurred.equal
            };
            if enough < LEAST {
                missing.push(format!("opcode {name}: {enough}"));
            }
        }
        for (module, name) in &self.about.admitted {
            if name_of_numpy(module) && !self.scope.numpy {
                continue;
            }
            assert!(
                Policy::agentix().admits(module, name),
                "{module}.{name} is admitted there alone"
            );
            let name = format!("{module}.{name}");
            let equal = tally.names.get(&name).map_or(0, |occurred| occurred.equal);
            if equal < LEAST {
                missing.push(format!("name {name}: {equal}"));
            }
        }
        for kind in self.kinds() {
            let equal = tally.kinds.get(&kind).copied().unwrap_or_default();
            if equal < LEAST {
                missing.push(format!("value {kind}: {equal}"));
            }
        }
        for known in KNOWN {
            if (self.scope.numpy || !known.numpy) && !tally.outcomes.contains_key(known.id) {
                missing.push(format!("known difference {}", known.id));
            }
        }
        assert!(missing.is_empty(), "too seldom: {missing:#?}");
    }
}

fn name_of_numpy(module: &str) -> bool {
    module.starts_with("numpy")
}

/// How two decoders must not differ.
struct Fault {
    /// What it has in common with others.
    sort: String,
    what: String,
}

/// How two decoders can agree.
enum Agreed {
    Rejected,
    /// With what the value is made of.
    Equal(BTreeSet<String>),
    /// They differ in a known way.
    Known(&'static str),
}

fn decode(pickle: &mut Pickle) -> Result<Document<'_>, DecodeError> {
    let Pickle {
        stream,
        opcodes,
        names,
        ..
    } = pickle;
    let decoded = Decoder::default().decode_observed(stream, |event| match event {
        Event::Instruction { opcode, .. } => {
            opcodes.extend(opcode.name());
        }
        Event::Global {
            module,
            qualname,
            admitted: true,
            ..
        } => {
            names.insert(format!("{module}.{qualname}"));
        }
        _ => {}
    });
    // The one that was not carried out occurred nonetheless.
    if let Err(error) = &decoded {
        opcodes.extend(error.opcode().and_then(Opcode::name));
    }
    decoded
}

fn question<'a>(pickle: &'a Pickle, error: Option<&DecodeError>) -> Question<'a> {
    let instructions = op::instructions(&pickle.stream);
    let builds = |at: &std::ops::Range<usize>| pickle.stream[at.start] == op::BUILD;
    Question {
        stream: &pickle.stream,
        stopped: error.map(DecodeError::offset),
        builds: instructions.iter().any(builds),
        explain: false,
    }
}

/// Whether the values are equal once classes go by the names that the stream has for them. If it has two
/// names for one class, either will do.
fn equal_by_aliases(pickle: &Pickle, said: &Said) -> bool {
    let Some(table) = said.table() else {
        return false;
    };
    let document = Decoder::default().decode(&pickle.stream).unwrap();
    let mut tables = vec![table.to_string()];
    for (alias, name) in ALIASES {
        if pickle.names.contains(*alias) {
            let spelt = |name: &str| {
                let (module, name) = name.rsplit_once('.').unwrap();
                [
                    format!("{{\"type\":[\"{module}\",\"{name}\"]}}"),
                    format!("{{\"function\":[\"{module}\",\"{name}\"]}}"),
                ]
            };
            let (from, to) = (spelt(name), spelt(alias));
            let other = |table: &String| table.replace(&from[0], &to[0]).replace(&from[1], &to[1]);
            let others: Vec<String> = tables.iter().map(other).collect();
            tables.extend(others);
        }
    }
    tables.iter().any(|table| {
        let table = serde_json::from_str(table).unwrap();
        decoder::compare(&table, document.root()).is_ok()
    })
}

/// What kinds of values a table holds, with their classes.
fn kinds(table: &Json) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    // Nothing nests deep: nodes refer to each other by number.
    let mut pending = vec![&table["root"], &table["nodes"]];
    while let Some(part) = pending.pop() {
        match part {
            Json::Null => {
                kinds.insert("None".to_owned());
            }
            Json::Bool(_) => {
                kinds.insert("bool".to_owned());
            }
            Json::Array(items) => pending.extend(items),
            Json::Object(fields) => {
                match fields.get("t").and_then(Json::as_str) {
                    Some(kind) => kinds.insert(match fields.get("class") {
                        Some(class) => format!("{kind} {}", dotted(class)),
                        None => kind.to_owned(),
                    }),
                    // A value of one of the forms that need no node.
                    // The other field of a float is `bits`.
                    None if fields.contains_key("float") => kinds.insert("float".to_owned()),
                    None => kinds.insert(fields.keys().next().unwrap().clone()),
                };
                pending.extend(fields.values());
            }
            Json::Number(_) | Json::String(_) => {}
        }
    }
    kinds
}

fn dotted(class: &Json) -> String {
    let [module, name] = [0, 1].map(|at| class[at].as_str().unwrap());
    format!("{module}.{name}")
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

impl Tally {
    fn count(&mut self, pickle: &Pickle, judged: Result<Agreed, Fault>) {
        self.pickles += 1;
        // The same value, if under another name.
        let equal = matches!(judged, Ok(Agreed::Equal(_) | Agreed::Known(known::ALIAS)));
        let occur = |occurred: &mut Occurred| {
            occurred.all += 1;
            occurred.equal += u64::from(equal);
        };
        occur(self.ways.entry(format!("{:?}", pickle.way)).or_default());
        for opcode in &pickle.opcodes {
            occur(self.opcodes.entry(opcode).or_default());
        }
        for name in &pickle.names {
            occur(self.names.entry(name.clone()).or_default());
        }
        let outcome = match judged {
            Ok(Agreed::Rejected) => "both rejected".to_owned(),
            Ok(Agreed::Equal(kinds)) => {
                for kind in kinds {
                    *self.kinds.entry(kind).or_default() += 1;
                }
                "both accepted, equal".to_owned()
            }
            Ok(Agreed::Known(id)) => id.to_owned(),
            Err(Fault { sort, what }) => {
                let hex = hex(&pickle.stream);
                let what = format!("number {} ({:?}): {hex}: {what}", pickle.number, pickle.way);
                self.faults.entry(sort).or_default().push(what);
                "fault".to_owned()
            }
        };
        *self.outcomes.entry(outcome).or_default() += 1;
    }
}

#[test]
fn an_interpreter_that_ends_takes_one_pickle_with_it() {
    let Some(python) = python() else {
        return not_run("differential watchdog", "python3 not found");
    };
    let mut oracle = Oracle::start(&python).unwrap();
    // deque(range(10**18), 0): a loop in C that does not end.
    let endless = b"ccollections\ndeque\n(cbuiltins\nrange\n(L0L\nL1000000000000000000L\ntRI0\ntR.";
    let question = |stream| Question {
        stream,
        stopped: None,
        builds: false,
        explain: false,
    };
    let answers = oracle.ask(&[question(b"N."), question(endless), question(b"N.")]);
    assert!(matches!(
        &answers[..],
        [Answer::Said(first), Answer::Ended, Answer::Said(last)] if first.accepted() && last.accepted()
    ));
}
