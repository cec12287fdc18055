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
#[allow(dead_code, reason = "the fuzz target uses other parts")]
mod generator;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentix_conformance::decoder;
use agentix_protocol::safepickle::{DecodeError, Decoder, Document, Event, Opcode};
use serde_json::Value as Json;

use generator::{Scope, Way, op};
use known::{Case, KNOWN, Needs};
use oracle::{About, Answer, Oracle, Question, Said};
use random::Random;
use tally::{Occurred, Tally};

const TEST: &str = "differential";
/// The seed of the run in CI, so that the same commit gives the same result.
const SEED: u64 = 0x5eed_2026;
const COUNT: u64 = 200_000;
const BATCH: u64 = 200;
/// The switch: whether the decoder admits names yet.
const GLOBALS: bool = false;

/// In how many pickles at least each opcode and each admitted name has to occur.
const LEAST: u64 = 20;

/// Opcodes that are always refused.
const REFUSED: &[&str] = &["EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "NEXT_BUFFER"];

/// Opcodes that are about names of classes.
const NAMING: &[&str] = &[
    "BUILD",
    "GLOBAL",
    "INST",
    "NEWOBJ",
    "NEWOBJ_EX",
    "OBJ",
    "REDUCE",
    "STACK_GLOBAL",
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
            globals: GLOBALS,
            numpy: GLOBALS && about.numpy.is_some(),
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
    if GLOBALS && !run.scope.numpy {
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
    let shown = tally.faults.len().min(20);
    assert!(
        tally.faults.is_empty(),
        "{} of {} pickles (seed {:#x}), such as\n{}",
        tally.faults.len(),
        tally.pickles,
        run.seed,
        tally.faults[..shown].join("\n")
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
        .filter(|stream| GLOBALS || !names_anything(stream))
        .collect()
}

/// Whether an instruction of a stream names a class or function.
fn names_anything(stream: &[u8]) -> bool {
    let names = [op::GLOBAL, op::STACK_GLOBAL, op::INST];
    let mut instructions = op::instructions(stream).into_iter();
    instructions.any(|at| names.contains(&stream[at.start]))
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
        assert!(tally.faults.is_empty(), "{}", tally.faults.join("\n"));
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
                Answer::Said(said) => self.judge(oracle, pickle, error.as_ref(), said),
                // What ends CPython has to be refused here, or is a plain value after all.
                Answer::Hung => Err("CPython did not end".to_owned()),
                Answer::Died => Err("CPython died".to_owned()),
            };
            tally.count(pickle, judged, self.seed);
        }
    }

    /// Compares the verdicts, and the values if both accept.
    fn judge(
        &self,
        oracle: &mut Oracle,
        pickle: &Pickle,
        error: Option<&DecodeError>,
        said: Said,
    ) -> Result<Agreed, String> {
        let known = |said: &Said, what: String| {
            let case = Case {
                ours: error,
                theirs: said,
            };
            match known::find(&case) {
                Some(known) => Ok(Agreed::Known(known.id)),
                None => Err(what),
            }
        };
        match (error, said.accepted()) {
            (Some(_), false) => Ok(Agreed::Rejected),
            (Some(error), true) => {
                let label = said.label_at(error.offset());
                let what = format!(
                    "refused here ({error}: {:?}), accepted there; {label:?} of {:?}",
                    error.kind(),
                    said.labels
                );
                known(&said, what)
            }
            (None, false) => {
                let what = format!(
                    "accepted here, refused there with {:?}; {:?}; {:?}",
                    said.error, said.stopped, said.labels
                );
                known(&said, what)
            }
            (None, true) => {
                let document = Decoder::default().decode(&pickle.stream).unwrap();
                let difference = match said.table() {
                    Some(table) => match decoder::compare(&table, document.root()) {
                        Ok(()) => return Ok(Agreed::Equal(kinds(&table))),
                        Err(difference) => difference.to_string(),
                    },
                    None => format!("there it is {:?}", said.opaque),
                };
                // Once more, for what no pickler writes.
                let question = Question {
                    explain: true,
                    ..question(pickle, None)
                };
                let Some(Answer::Said(said)) = oracle.ask(&[question]).pop() else {
                    return Err(format!("{difference}; then CPython ended"));
                };
                let what = format!("other values: {difference}; {:?}", said.labels);
                known(&said, what)
            }
        }
    }

    /// Makes sure that the run was worth something.
    fn everything_occurred(&self, tally: &Tally) {
        let mut missing = Vec::new();
        for (_, name, _) in op::ALL {
            if NAMING.contains(name) && !self.scope.globals {
                continue;
            }
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
        for known in KNOWN {
            let can = match known.needs {
                Needs::Nothing => true,
                Needs::Globals => self.scope.globals,
                Needs::Numpy => self.scope.numpy,
            };
            if can && !tally.outcomes.contains_key(known.id) {
                missing.push(format!("known difference {}", known.id));
            }
        }
        assert!(missing.is_empty(), "too seldom: {missing:#?}");
    }
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

/// What kinds of values a table holds, with their classes.
fn kinds(table: &Json) -> BTreeSet<String> {
    let nodes = table["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| {
            let kind = node["t"].as_str().unwrap();
            match node["class"].as_array() {
                Some(class) => {
                    let [module, name] = [0, 1].map(|at| class[at].as_str().unwrap());
                    format!("{kind} {module}.{name}")
                }
                None => kind.to_owned(),
            }
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

impl Tally {
    fn count(&mut self, pickle: &Pickle, judged: Result<Agreed, String>, seed: u64) {
        self.pickles += 1;
        let equal = matches!(judged, Ok(Agreed::Equal(_)));
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
            Err(what) => {
                self.faults.push(format!(
                    "seed {seed:#x} number {} ({:?}): {}: {what}",
                    pickle.number,
                    pickle.way,
                    hex(&pickle.stream)
                ));
                "fault".to_owned()
            }
        };
        *self.outcomes.entry(outcome).or_default() += 1;
    }
}

/// The watchdog is only as good as its clock: a batch takes far less.
#[test]
fn a_hung_interpreter_is_noticed() {
    let Some(python) = python() else {
        return not_run("differential watchdog", "python3 not found");
    };
    let mut oracle = Oracle::start(&python).unwrap();
    oracle.patience = [Duration::from_millis(200); 2];
    // deque(range(10**18), 0): nothing that ends.
    let endless = b"ccollections\ndeque\n(cbuiltins\nrange\n(L1000000000000000000L\ntRI0\ntR.";
    let question = |stream| Question {
        stream,
        stopped: None,
        builds: false,
        explain: false,
    };
    let answers = oracle.ask(&[question(b"N."), question(endless), question(b"N.")]);
    assert!(matches!(
        &answers[..],
        [Answer::Said(first), Answer::Hung, Answer::Said(last)] if first.accepted() && last.accepted()
    ));
}
