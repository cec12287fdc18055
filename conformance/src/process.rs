//! A testee's process: started in a group of its own, and ended with everything in that group.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much of a testee's standard error is kept, in bytes: its end is what explains a failure.
const TAIL_BYTES: usize = 16 * 1024;

/// A running testee. Dropping it kills its process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    tail: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) argv: Vec<OsString>,
    /// Environment beside that of the suite.
    pub(crate) env: Vec<(String, OsString)>,
}

impl Program {
    /// Starts a runtime: its standard output is read and thrown away, its standard input stays open until the suite ends.
    ///
    /// # Errors
    ///
    /// When the program cannot be run.
    pub(crate) fn start(&self) -> std::io::Result<Process> {
        let mut process = self.spawn()?;
        if let Some(stdout) = process.child.stdout.take() {
            process.readers.push(tokio::spawn(drain(stdout)));
        }
        Ok(process)
    }

    /// Starts a worker, and gives the two ends of its pipe.
    ///
    /// # Errors
    ///
    /// When the program cannot be run.
    pub(crate) fn start_piped(&self) -> std::io::Result<(Process, ChildStdout, ChildStdin)> {
        let mut process = self.spawn()?;
        match (process.child.stdout.take(), process.child.stdin.take()) {
            (Some(stdout), Some(stdin)) => Ok((process, stdout, stdin)),
            _ => Err(std::io::Error::other("no pipes to the process")),
        }
    }

    fn spawn(&self) -> std::io::Result<Process> {
        let Some((program, args)) = self.argv.split_first() else {
            return Err(std::io::Error::other("an empty command"));
        };
        let mut child = Command::new(program)
            .args(args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let tail = Arc::default();
        let readers = match child.stderr.take() {
            Some(stderr) => vec![tokio::spawn(keep_tail(stderr, Arc::clone(&tail)))],
            None => Vec::new(),
        };
        Ok(Process {
            child,
            group,
            tail,
            readers,
            status: None,
        })
    }
}

async fn drain(mut from: impl AsyncRead + Unpin) {
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
}

async fn keep_tail(mut from: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&buffer[..len]);
        let extra = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..extra);
    }
}

impl Process {
    /// The end of what it wrote to standard error.
    pub(crate) fn stderr_tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }

    /// Reads what is left of its standard error; for a process that has ended. Waits at most `wait` for whoever holds the
    /// other end.
    pub(crate) async fn read_to_end(&mut self, wait: Duration) {
        let _ = timeout(wait, futures_util::future::join_all(&mut self.readers)).await;
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits for the exit; `None` if it did not come within `wait`.
    pub(crate) async fn exited(&mut self, wait: Duration) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = timeout(wait, self.child.wait())
                .await
                .ok()
                .and_then(Result::ok);
        }
        self.status
    }

    /// Sends a signal to the process alone.
    pub(crate) fn signal(&mut self, signal: Signal) {
        // Only while it is known not to be reaped does the id still name it.
        if self.ended().is_none()
            && let Some(pid) = self.group
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it: SIGTERM, and SIGKILL to the group after `grace`.
    pub(crate) async fn stop(mut self, grace: Duration) {
        self.signal(Signal::TERM);
        self.exited(grace).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Whatever the testee left behind in its group; the number cannot name another group while members live.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.readers.iter().for_each(JoinHandle::abort);
    }
}
