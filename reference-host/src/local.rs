//! A runtime in a process of its own.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Name of the runtime's program.
const PROGRAM: &str = "agentix-runtime";
/// Environment variable that names the program, ahead of where it would be found.
const PROGRAM_VARIABLE: &str = "AGENTIX_RUNTIME";
/// What the runtime writes on stdout, ahead of its URL, once it is ready.
const READY: &str = "listening on ";
/// Longest line that is looked at for it, in bytes.
const MAX_LINE: u64 = 4096;
/// Time for an orderly end after stdin is closed: a runtime gives its worker up to nine seconds.
const ORDERLY: Duration = Duration::from_secs(12);
/// Time to end after SIGTERM.
const TERMINATED: Duration = Duration::from_secs(3);
/// Time to end when the owner goes away without [`LocalRuntime::stop`].
const DROPPED: Duration = Duration::from_secs(2);

/// How to start a runtime.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The program; `None` takes what `AGENTIX_RUNTIME` names if it is set, and otherwise looks for
    /// `agentix-runtime` beside the program that runs, then in `PATH`. Default `None`.
    pub program: Option<PathBuf>,
    /// Where the Python worker imports from, ahead of the interpreter's own path. Default: empty.
    pub paths: Vec<PathBuf>,
    /// Time for the runtime to say that it listens. Default 30 s.
    pub start_timeout: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            program: None,
            paths: Vec::new(),
            start_timeout: Duration::from_secs(30),
        }
    }
}

/// Why there is no local runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The program is nowhere.
    #[error(
        "{PROGRAM} is neither beside this program nor in PATH; build it (cargo build -p agentix-reference-worker) or set {PROGRAM_VARIABLE} to its path"
    )]
    NotFound,
    /// A folder to import from is not there.
    #[error("{path} is no folder to import from")]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The program could not be started.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The program ended before it was ready; what it wrote on stderr says why.
    #[error("{program} ended before it was ready ({status})")]
    Exited {
        /// The program.
        program: PathBuf,
        /// How.
        status: ExitStatus,
    },
    /// The program does something else than a runtime.
    #[error("{program} wrote {line:?} instead of '{READY}http://HOST:PORT'")]
    Output {
        /// The program.
        program: PathBuf,
        /// The beginning of what it wrote.
        line: String,
    },
    /// The program did not become ready in time, and was stopped.
    #[error("{program} did not become ready within {after:?}")]
    Timeout {
        /// The program.
        program: PathBuf,
        /// The limit.
        after: Duration,
    },
    /// The operating system reports an error about the process.
    #[error("cannot watch {program}: {source}")]
    Io {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A runtime that this process started on a free port of the loopback interface.
///
/// It lives as long as its owner: its stdin is a pipe from here, and a runtime ends when that is
/// closed, also when this process is killed. What it writes on stderr, captured output of functions
/// included, goes to stderr here.
///
/// [`LocalRuntime::stop`] ends it in order. Dropping it ends it too, and blocks for up to two
/// seconds until it has ended.
///
/// # Example
///
/// ```no_run
/// use agentix_reference_host::{ClientConfig, LocalOptions, LocalRuntime, RuntimeClient};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = LocalOptions { paths: vec!["my-functions".into()], ..LocalOptions::default() };
/// let runtime = LocalRuntime::start(options).await?;
/// let client = RuntimeClient::connect(runtime.url(), ClientConfig::default()).await?;
/// // … calls …
/// client.close().await;
/// runtime.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LocalRuntime {
    url: String,
    process: Process,
}

impl LocalRuntime {
    /// Starts a runtime and waits until it listens.
    ///
    /// # Errors
    ///
    /// [`LocalError`] says which program, and what it did instead. No process is left behind.
    pub async fn start(options: LocalOptions) -> Result<Self, LocalError> {
        if let Some(path) = options.paths.iter().find(|path| !path.is_dir()) {
            return Err(LocalError::NoFolder { path: path.clone() });
        }
        let program = match options.program {
            Some(program) => program,
            None => find_program().ok_or(LocalError::NotFound)?,
        };
        let mut command = Command::new(&program);
        command.args(["serve", "--host", "127.0.0.1", "--port", "0"]);
        for path in &options.paths {
            command.arg("--path").arg(path);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        // Ctrl-C in a terminal goes to this process alone, which then cancels its calls and stops
        // the runtime in order.
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| LocalError::Spawn {
            program: program.clone(),
            source,
        })?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let mut process = Process {
            child,
            stdin,
            drain: None,
        };
        let io = |source| LocalError::Io {
            program: program.clone(),
            source,
        };
        let Some(stdout) = stdout else {
            return Err(io(io::ErrorKind::BrokenPipe.into()));
        };
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        let mut bounded = (&mut stdout).take(MAX_LINE);
        let read = bounded.read_until(b'\n', &mut line);
        let Ok(read) = timeout(options.start_timeout, read).await else {
            process.stop().await.map_err(io)?;
            return Err(LocalError::Timeout {
                program,
                after: options.start_timeout,
            });
        };
        read.map_err(io)?;
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let Some(url) = line.strip_prefix(READY) else {
            let status = process.stop().await.map_err(io)?;
            return Err(if line.is_empty() {
                LocalError::Exited { program, status }
            } else {
                LocalError::Output { program, line }
            });
        };
        let url = url.to_owned();
        process.drain = Some(tokio::spawn(pass_on(stdout)));
        Ok(Self { url, process })
    }

    /// Where it listens, for [`RuntimeClient::connect`](crate::RuntimeClient::connect).
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id; `None` once it has ended.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.child.id()
    }

    /// Ends it: closes its stdin, and where that is not enough sends SIGTERM after 12 s and SIGKILL
    /// after 3 s more. Returns how it ended.
    ///
    /// # Errors
    ///
    /// What the operating system reports about the process.
    pub async fn stop(mut self) -> io::Result<ExitStatus> {
        self.process.stop().await
    }
}

/// Whatever else the runtime writes on stdout goes where its stderr goes, so that the pipe never
/// fills and stdout here stays what its user expects.
async fn pass_on(mut stdout: BufReader<ChildStdout>) {
    while let Ok(bytes) = stdout.fill_buf().await
        && !bytes.is_empty()
    {
        let read = bytes.len();
        let _ = io::stderr().write_all(bytes);
        stdout.consume(read);
    }
}

/// A process that does not outlive this value.
#[derive(Debug)]
struct Process {
    child: Child,
    /// Open as long as the runtime shall run.
    stdin: Option<ChildStdin>,
    drain: Option<JoinHandle<()>>,
}

impl Process {
    async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        if let Ok(status) = timeout(ORDERLY, self.child.wait()).await {
            return status;
        }
        self.terminate();
        if let Ok(status) = timeout(TERMINATED, self.child.wait()).await {
            return status;
        }
        self.child.start_kill()?;
        self.child.wait().await
    }

    fn terminate(&self) {
        // The id is there only as long as the process has not been waited for, so no other process
        // can have it.
        if let Some(pid) = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw)
            && let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        {
            tracing::debug!(%error, "cannot signal the runtime");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(drain) = self.drain.take() {
            drain.abort();
        }
        self.stdin = None;
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.terminate();
        let deadline = std::time::Instant::now() + DROPPED;
        while std::time::Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // `kill_on_drop` does the rest.
        tracing::warn!("the runtime does not end in time and is killed");
    }
}

/// Looks for the runtime's program.
fn find_program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE).filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_path_buf));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let name: OsString = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX).into();
    folders
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
}
