//! The Python process that makes the payloads and times CPython on them.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;

/// A failure of a benchmark, for a person to read.
pub(crate) type Failure = Box<dyn Error>;

const SCRIPT: &str = include_str!("peer.py");

/// What the peer says once it has made the payloads.
#[derive(Debug, Deserialize)]
pub(crate) struct Hello {
    /// Python's version, and numpy's.
    pub(crate) version: String,
    /// The payloads' names, which are also their file names.
    pub(crate) payloads: Vec<String>,
    /// Those of them that this Python cannot load.
    #[allow(dead_code, reason = "the memory benchmark times nothing")]
    pub(crate) untimed: Vec<String>,
}

/// The peer. It ends with its standard input.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the Python that the variable `PYTHON` names, or `python3`, and has it write the
    /// payloads into `folder`.
    pub(crate) fn start(folder: &Path) -> Result<(Self, Hello), Failure> {
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let mut child = Command::new(&python)
            .args(["-c", SCRIPT])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the peer has no output")?;
        let mut peer = Self {
            child,
            input,
            output: BufReader::new(output),
        };
        let hello = serde_json::from_str(&peer.line()?)?;
        Ok((peer, hello))
    }

    /// The nanoseconds that `count` calls of `loader` take on a payload.
    #[allow(dead_code, reason = "the memory benchmark times nothing")]
    pub(crate) fn time(&mut self, payload: &str, loader: &str, count: u32) -> Result<u64, Failure> {
        let input = self.input.as_mut().ok_or("the peer has no input")?;
        writeln!(input, "{payload} {loader} {count}")?;
        Ok(self.line()?.trim_end().parse()?)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the Python peer ended early".into());
        }
        Ok(line)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Closing its input ends it.
        self.input = None;
        let _ = self.child.wait();
    }
}
