//! When a runtime is to end: told by a signal, by the end of its standard input, or because its
//! parent is gone.
//!
//! - SIGTERM and SIGINT; SIGHUP too unless it was ignored at the start, as under `nohup`. A
//!   second one of them ends the process at once.
//! - Standard input, if it is a pipe or a socket that was open at the start: when it ends. What
//!   comes on it is thrown away. A terminal, a file, `/dev/null` and an input that had ended
//!   already mean nothing.
//! - The parent, polled every second: when it is another one than at the start. Not watched when
//!   the runtime was started to stand alone: as leader of a session, with SIGHUP ignored, or with
//!   the init process (or one outside of the container) as its parent.

use std::fmt;
use std::io::Read as _;
use std::time::Duration;

use crate::proc_stat::ProcStat;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, getpid, getppid};
use rustix::time::Timespec;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How often the parent is looked at.
const PARENT_POLL: Duration = Duration::from_secs(1);

/// Why the runtime ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Signal(&'static str),
    StdinEnded,
    ParentGone,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(name) => f.write_str(name),
            Self::StdinEnded => f.write_str("standard input ended"),
            Self::ParentGone => f.write_str("the parent process is gone"),
        }
    }
}

/// Everything that ends the runtime.
#[derive(Debug)]
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
    stdin: Option<oneshot::Receiver<()>>,
    parent: Option<Pid>,
}

impl Stop {
    /// Looks at how the process was started, and begins to watch.
    ///
    /// # Errors
    ///
    /// When signals or standard input cannot be watched.
    pub(crate) fn watch() -> std::io::Result<Self> {
        let ignores_hang_up = ignores_hang_up();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: match ignores_hang_up {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
            stdin: match stdin_is_watched() {
                true => Some(watch_stdin()?),
                false => None,
            },
            parent: watched_parent(ignores_hang_up),
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn signal(&mut self) -> Reason {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => Reason::Signal("SIGTERM"),
            _ = self.interrupt.recv() => Reason::Signal("SIGINT"),
            _ = hang_up => Reason::Signal("SIGHUP"),
        }
    }

    /// Waits for the first of all reasons.
    pub(crate) async fn any(&mut self) -> Reason {
        let stdin = self.stdin.take();
        let parent = self.parent;
        let stdin = async {
            match stdin {
                // An error means that the watching thread is gone, and cannot happen before the
                // end of its input.
                Some(ended) => drop(ended.await),
                None => std::future::pending().await,
            }
        };
        let orphaned = async {
            match parent {
                Some(parent) => {
                    while getppid() == Some(parent) {
                        tokio::time::sleep(PARENT_POLL).await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reason = self.signal() => reason,
            () = stdin => Reason::StdinEnded,
            () = orphaned => Reason::ParentGone,
        }
    }
}

/// Is standard input a pipe or a socket that is open?
fn stdin_is_watched() -> bool {
    let stdin = rustix::stdio::stdin();
    let watched = fstat(stdin).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket
        )
    });
    if !watched {
        return false;
    }
    let mut polled = [PollFd::from_borrowed_fd(stdin, PollFlags::IN)];
    let now = Timespec::default();
    if poll(&mut polled, Some(&now)).is_err() {
        return false;
    }
    // The other end was closed before the start.
    !polled[0]
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Reads standard input in a thread until it ends; the process does not wait for the thread.
fn watch_stdin() -> std::io::Result<oneshot::Receiver<()>> {
    let (ended, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut buffer = [0; 1024];
            loop {
                match input.read(&mut buffer) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
            // Nobody listens any more when the runtime ends for another reason.
            let _ = ended.send(());
        })?;
    Ok(receiver)
}

fn watched_parent(ignores_hang_up: bool) -> Option<Pid> {
    let own = getpid();
    let leads_session = ProcStat::own().is_some_and(|stat| stat.session == Some(own));
    // `None` stands for a parent outside of the container's process namespace.
    getppid().filter(|parent| !ignores_hang_up && !leads_session && *parent != Pid::INIT)
}

/// Was SIGHUP ignored when the process was started? Known on Linux alone.
fn ignores_hang_up() -> bool {
    const HANG_UP: u32 = 1;
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .is_some_and(|mask| mask & 1 << (HANG_UP - 1) != 0)
}
