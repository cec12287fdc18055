//! What is tested, and how it is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::case::{Kind, Role};
use crate::clock::Clock;
use crate::peer::Endpoint;
use crate::process::{Process, Program};

/// An implementation in one role.
#[derive(Clone, Debug)]
pub(crate) struct Testee {
    /// How reports call it.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) how: How,
    /// Which kinds of cases are meant for it; the built-in runtime is three testees.
    pub(crate) kinds: Vec<Kind>,
    /// What to put after `run` to test it alone.
    pub(crate) repeat: String,
}

/// How a testee is reached.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// It runs already.
    Url(Endpoint),
    /// It is started by this command, with `{port}` and `{worker}` still in it.
    Command(Command),
    /// It cannot be tested here.
    Absent(String),
}

/// A command with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(String, OsString)>,
    /// What `{worker}` stands for in cases that bring no worker of their own: a shell-quoted command.
    pub(crate) worker: Option<String>,
}

/// A testee that could not be started.
#[derive(Clone, Debug)]
pub(crate) struct StartError(pub(crate) String);

impl Command {
    /// Does the command say where its worker goes?
    pub(crate) fn takes_worker(&self) -> bool {
        self.argv
            .iter()
            .any(|arg| arg.to_string_lossy().contains("{worker}"))
    }

    /// Does the command say where its port goes?
    pub(crate) fn takes_port(&self) -> bool {
        self.argv
            .iter()
            .any(|arg| arg.to_string_lossy().contains("{port}"))
    }

    /// The program, with the placeholders filled in.
    pub(crate) fn program(&self, port: Option<u16>, worker: Option<&str>) -> Program {
        let fill = |arg: &OsString| -> OsString {
            let Some(text) = arg.to_str() else {
                return arg.clone(); // no placeholder is in what is not text
            };
            let mut text = text.to_owned();
            if let Some(port) = port {
                text = text.replace("{port}", &port.to_string());
            }
            if let Some(worker) = worker {
                text = text.replace("{worker}", worker);
            }
            text.into()
        };
        Program {
            argv: self.argv.iter().map(fill).collect(),
            env: self.env.clone(),
        }
    }

    /// Starts a runtime on a free port and waits until it answers `/health`.
    pub(crate) async fn start_runtime(
        &self,
        worker: Option<&str>,
        clock: Clock,
    ) -> Result<(Process, Endpoint), StartError> {
        // Between choosing a port and listening on it somebody else may take it.
        let mut last = StartError("no attempt was made".to_owned());
        for _ in 0..3 {
            let port = free_port().map_err(|error| StartError(error.to_string()))?;
            let program = self.program(Some(port), worker.or(self.worker.as_deref()));
            let mut process = program.start().map_err(|error| {
                StartError(format!("{:?} cannot be run: {error}", program.argv))
            })?;
            match answers(&mut process, port, clock).await {
                Ok(()) => return Ok((process, Endpoint::local(port))),
                Err(Waiting::Ended(error)) => last = error,
                Err(Waiting::Silent(error)) => {
                    process.stop(clock.scaled(Duration::from_secs(1))).await;
                    return Err(error);
                }
            }
        }
        Err(last)
    }
}

fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

enum Waiting {
    Ended(StartError),
    Silent(StartError),
}

async fn answers(process: &mut Process, port: u16, clock: Clock) -> Result<(), Waiting> {
    let until = Instant::now() + clock.start();
    while Instant::now() < until {
        if let Some(status) = process.ended() {
            let said = process.stderr_tail();
            return Err(Waiting::Ended(StartError(format!(
                "the process ended before it listened: {status}\n{said}"
            ))));
        }
        if health_answers(&Endpoint::local(port), clock.scaled(Duration::from_secs(5))).await {
            return Ok(());
        }
        // Not synchronisation: the interval of a poll that is bounded above.
        sleep(Duration::from_millis(10)).await;
    }
    Err(Waiting::Silent(StartError(format!(
        "nothing answered GET /health on port {port} within {:.1} s\n{}",
        clock.start().as_secs_f64(),
        process.stderr_tail()
    ))))
}

/// Does anything come back for `GET /health`? What it is, the cases judge.
pub(crate) async fn health_answers(endpoint: &Endpoint, wait: Duration) -> bool {
    let request = format!("GET /health HTTP/1.1\r\nhost: {endpoint}\r\nconnection: close\r\n\r\n");
    let ask = async {
        let host = endpoint.host.trim_matches(['[', ']']);
        let mut stream = TcpStream::connect((host, endpoint.port)).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        stream.read_u8().await.ok()
    };
    matches!(timeout(wait, ask).await, Ok(Some(_)))
}

/// A folder with the functions module, for testees that import it. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Functions {
    folder: tempfile::TempDir,
}

/// The functions that a Python testee offers (spec/prose/functions.md).
const FUNCTIONS: &str = include_str!("../../reference-worker/python/conformance.py");
/// A module that raises while it is imported.
const RAISES: &str = "raise LookupError('raised while it was imported')\n";
/// The Python worker of the reference implementation.
const PYTHON_WORKER: &str = include_str!("../../reference-worker/python/agentix_worker.py");

impl Functions {
    pub(crate) fn write() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("agentix-conformance-")
            .tempdir()?;
        std::fs::create_dir(folder.path().join("functions"))?;
        std::fs::write(folder.path().join("functions/conformance.py"), FUNCTIONS)?;
        std::fs::write(
            folder.path().join("functions/conformance_raises.py"),
            RAISES,
        )?;
        std::fs::write(folder.path().join("agentix_worker.py"), PYTHON_WORKER)?;
        Ok(Self { folder })
    }

    /// Where `conformance.py` is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("functions")
    }

    /// The worker script.
    pub(crate) fn python_worker(&self) -> PathBuf {
        self.folder.path().join("agentix_worker.py")
    }
}
