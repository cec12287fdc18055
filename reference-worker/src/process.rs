//! Worker processes: started in a process group of their own, fed, read, signalled and reaped.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentix_protocol::framing::{self, FrameDecoder};
use agentix_protocol::link::{Exit, Generation};
use bytes::Bytes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::backlog::{Backlog, Charge};
use crate::inbox::{Inbox, Input};
use crate::log;
use crate::outbox::Pressure;

/// Bytes that a read from a worker asks for.
const READ_BYTES: usize = 64 * 1024;

/// The process groups of all workers that have not ended; none of them outlives this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Arc<Mutex<HashMap<Generation, Pid>>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, HashMap<Generation, Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends SIGTERM to a worker.
    pub(crate) fn terminate(&self, generation: Generation) {
        if let Some(pid) = self.lock().get(&generation) {
            // An error means that it has just ended.
            let _ = rustix::process::kill_process(*pid, Signal::TERM);
        }
    }

    /// Sends SIGKILL to a worker and everything in its group.
    pub(crate) fn kill(&self, generation: Generation) {
        if let Some(pid) = self.lock().get(&generation) {
            let _ = rustix::process::kill_process_group(*pid, Signal::KILL);
        }
    }

    /// Sends SIGKILL to all workers and everything in their groups.
    pub(crate) fn kill_all(&self) {
        for pid in self.lock().values() {
            let _ = rustix::process::kill_process_group(*pid, Signal::KILL);
        }
    }

    /// Waits for a worker to end, kills what it left in its group, and reaps it.
    fn reap(&self, generation: Generation, pid: Pid, mut child: Child) -> Exit {
        // Not reaped here, so that the number of the group still means this group below.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options)
        {
        }
        let mut groups = self.lock();
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        groups.remove(&generation);
        match child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => Exit::Code(status.into_raw()),
            },
            // Somebody else reaped it, as a parent that ignores SIGCHLD does.
            Err(_) => Exit::Code(0),
        }
    }
}

/// A worker process.
#[derive(Debug)]
pub(crate) struct Worker {
    generation: Generation,
    groups: Groups,
    input: Option<mpsc::UnboundedSender<(Bytes, Charge)>>,
    backlog: Backlog,
}

impl Worker {
    /// Starts a process and the tasks that serve its pipes.
    ///
    /// # Errors
    ///
    /// When the program cannot be run.
    pub(crate) fn spawn(
        generation: Generation,
        command: &[OsString],
        environment: (&str, String),
        groups: &Groups,
        inbox: &Inbox,
        pressure: &Pressure,
        tasks: &mut JoinSet<()>,
    ) -> std::io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, "the command is empty")
        })?;
        let mut child = Command::new(program)
            .args(arguments)
            .env(environment.0, environment.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        // Registered first: from here on no way out leaves the process behind.
        let pid = Pid::from_child(&child);
        groups.lock().insert(generation, pid);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        {
            let (reaped, inbox) = (groups.clone(), inbox.clone());
            let reaper = std::thread::Builder::new().name(format!("reap {}", generation.0));
            let reaping = reaper.spawn(move || {
                let exit = reaped.reap(generation, pid, child);
                inbox.control(Input::Exited(generation, exit));
            });
            if let Err(error) = reaping {
                // Without a thread the child was dropped: nobody can reap it any more.
                groups.kill(generation);
                groups.lock().remove(&generation);
                return Err(error);
            }
        }
        let pipes = (
            stdin.map(ChildStdin::from_std).transpose(),
            stdout.map(ChildStdout::from_std).transpose(),
        );
        let (Ok(Some(stdin)), Ok(Some(stdout))) = pipes else {
            groups.kill(generation);
            return Err(std::io::Error::other("its pipes cannot be used"));
        };
        let (input, frames) = mpsc::unbounded_channel();
        tasks.spawn(write(stdin, frames));
        tasks.spawn(read(stdout, generation, inbox.clone(), pressure.clone()));
        Ok(Self {
            generation,
            groups: groups.clone(),
            input: Some(input),
            backlog: inbox.backlog.clone(),
        })
    }

    /// Queues a frame.
    pub(crate) fn write(&self, body: Bytes) {
        if let Some(input) = &self.input {
            // A worker that reads no more has ended, or will be: the link sees to its calls.
            let charge = self.backlog.charge(body.len());
            let _ = input.send((body, charge));
        }
    }

    /// Closes its standard input once all frames are written.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.groups.kill(self.generation);
    }
}

/// Longest body that is copied behind its header; with it, what a pipe takes in one piece.
const WHOLE_BYTES: usize = 4096 - framing::HEADER_BYTES;

async fn write(mut stdin: ChildStdin, mut frames: mpsc::UnboundedReceiver<(Bytes, Charge)>) {
    while let Some((body, _charge)) = frames.recv().await {
        let header = match framing::header(body.len()) {
            Ok(header) => header,
            // A host's event that fits its attachment alone; the link answers such a call itself.
            Err(error) => {
                log::runtime(format_args!("dropped an event for the worker: {error}"));
                continue;
            }
        };
        let written = async {
            if body.len() <= WHOLE_BYTES {
                // In one piece: a worker that ends in between never sees half a frame.
                return stdin.write_all(&[&header[..], &body].concat()).await;
            }
            stdin.write_all(&header).await?;
            stdin.write_all(&body).await
        };
        if written.await.is_err() {
            return;
        }
    }
}

async fn read(mut stdout: ChildStdout, generation: Generation, inbox: Inbox, pressure: Pressure) {
    let mut decoder = FrameDecoder::default();
    loop {
        loop {
            match decoder.next_frame() {
                Ok(Some(body)) => inbox.data(Input::Frame(generation, body)).await,
                Ok(None) => break,
                Err(error) => {
                    inbox.control(Input::PipeLost(generation, error));
                    return;
                }
            }
        }
        pressure.clear().await;
        let buffer = decoder.buffer_mut();
        buffer.reserve(READ_BYTES);
        match stdout.read_buf(buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => {
                inbox.control(Input::EndOfStream(generation));
                return;
            }
        }
    }
}
