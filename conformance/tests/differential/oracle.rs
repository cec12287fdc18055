//! CPython, in a process of its own that may hang or die: then it is started again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

/// How long an answer may take. A pickle takes about 50 µs; the script ends over one that takes a
/// second of the processor.
const PATIENCE: Duration = Duration::from_secs(120);

/// One pickle, and what the other decoder made of it.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) stream: &'a [u8],
    /// Where the other decoder stopped; `None` if it accepted.
    pub(crate) stopped: Option<u64>,
    /// Whether BUILD occurs, so that classes may have been changed.
    pub(crate) builds: bool,
    /// Whether to explain what no pickler writes, though the verdicts agree.
    pub(crate) explain: bool,
}

/// What CPython made of a pickle.
#[derive(Debug)]
pub(crate) enum Answer {
    Said(Box<Said>),
    /// The process ended over it, or had to be ended.
    Ended,
}

/// What the script answers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// The value's root, if the pickle was accepted and its value has a table.
    #[serde(default, deserialize_with = "present")]
    pub(crate) root: Option<Json>,
    pub(crate) nodes: Option<Json>,
    /// Why the value, though accepted, has no table.
    pub(crate) opaque: Option<String>,
    /// The class of the exception, if it was not accepted.
    pub(crate) error: Option<String>,
    /// What no pickler writes, by offset.
    #[serde(default)]
    pub(crate) labels: Vec<(u64, String)>,
    /// Where the unpickler in Python stopped, with a label and the class of the exception.
    pub(crate) stopped: Option<(u64, String, String)>,
    /// Classes and functions that were changed.
    #[serde(default)]
    pub(crate) changed: Vec<String>,
}

/// A root that is there may be `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl Said {
    /// The table, if there is one.
    pub(crate) fn table(&self) -> Option<Json> {
        let (root, nodes) = (self.root.as_ref()?, self.nodes.as_ref()?);
        Some(serde_json::json!({ "root": root, "nodes": nodes }))
    }

    pub(crate) fn accepted(&self) -> bool {
        self.error.is_none()
    }

    /// What no pickler writes at this offset. The unpickler in Python may have stopped there, where the
    /// one in C did not.
    pub(crate) fn label_at(&self, offset: u64) -> Option<&str> {
        let stopped = self.stopped.as_ref().map(|(at, label, _)| (at, label));
        let labels = self.labels.iter().map(|(at, label)| (at, label));
        let found = labels.chain(stopped).find(|(at, _)| **at == offset);
        found.map(|(_, label)| label.as_str())
    }
}

/// What the interpreter says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct About {
    pub(crate) python: String,
    pub(crate) numpy: Option<String>,
    /// Modules and names of the policy.
    pub(crate) admitted: Vec<(String, String)>,
    /// Admitted names that this version does not have.
    pub(crate) missing: Vec<String>,
}

pub(crate) struct Oracle {
    python: PathBuf,
    process: Process,
    pub(crate) about: About,
}

/// The process no longer answers.
struct Stopped;

struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Vec<u8>>,
}

impl Process {
    fn start(python: &Path) -> std::io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/cpython.py");
        let mut child = Command::new(python)
            // No site packages but those of a virtual environment, no bytecode next to the script.
            .args(["-B", "-W", "ignore"])
            .arg(script)
            .env("OPENBLAS_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // CPython complains there of what some pickles do to it.
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // Ends with the process's output.
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(1..) if line.ends_with(b"\n") && sender.send(line).is_ok() => {}
                    _ => break,
                }
            }
        });
        Ok(Self {
            child,
            stdin,
            lines,
        })
    }

    fn line(&self) -> Result<Vec<u8>, RecvTimeoutError> {
        self.lines.recv_timeout(PATIENCE)
    }

    /// The answers to a batch.
    fn ask(&mut self, batch: &[Question<'_>]) -> Result<Vec<Said>, Stopped> {
        let mut request = (batch.len() as u32).to_le_bytes().to_vec();
        for question in batch {
            request.push(u8::from(question.explain) | u8::from(question.builds) << 1);
            let stopped = question.stopped.map_or(-1, |offset| offset as i64);
            request.extend(stopped.to_le_bytes());
            request.extend((question.stream.len() as u32).to_le_bytes());
            request.extend(question.stream);
        }
        let mut answers = Vec::with_capacity(batch.len());
        // The script reads each pickle before it writes what came of it, and writes are small: a
        // request fits, or it is read while answers wait in the channel.
        if self.stdin.write_all(&request).is_err() || self.stdin.flush().is_err() {
            return Err(Stopped);
        }
        for _ in batch {
            match self.line() {
                Ok(line) => answers.push(serde_json::from_slice(&line).unwrap()),
                Err(_) => return Err(Stopped),
            }
        }
        Ok(answers)
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Oracle {
    pub(crate) fn start(python: &Path) -> std::io::Result<Self> {
        let process = Process::start(python)?;
        let line = process
            .line()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        Ok(Self {
            python: python.to_owned(),
            process,
            about: serde_json::from_slice(&line).unwrap(),
        })
    }

    fn restart(&mut self) {
        self.process = Process::start(&self.python).unwrap();
        self.process.line().unwrap();
    }

    /// What CPython makes of each of these.
    pub(crate) fn ask(&mut self, batch: &[Question<'_>]) -> Vec<Answer> {
        if let Ok(answers) = self.process.ask(batch) {
            return answers
                .into_iter()
                .map(|said| Answer::Said(Box::new(said)))
                .collect();
        }
        // One of them is to blame: each alone, in order, to see which.
        self.restart();
        batch
            .iter()
            .map(|question| match self.process.ask(&[*question]) {
                Ok(mut answers) => Answer::Said(Box::new(answers.remove(0))),
                Err(Stopped) => {
                    self.restart();
                    Answer::Ended
                }
            })
            .collect()
    }
}
