//! The scripted worker: a process that a runtime starts as its worker, and that does nothing but carry bytes between its
//! standard streams and the suite, so that the suite plays the worker itself.
//!
//! The process makes two connections to the suite. The first message of each is one letter and the process id in decimal,
//! ended by a line feed: `D` for the connection that carries the bytes of the pipe, `C` for the one that carries orders,
//! one byte each. It ends when the suite hangs up.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream as BlockingStream};
use std::process::ExitCode;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::pipe::Pipe;
use super::{Wire, missed, silence};
use crate::transcript::Direction;
use crate::verdict::{Stop, Verdict};

/// Order: close standard output and stay.
const CLOSE_OUTPUT: u8 = 0xff;

/// Runs in the process that a runtime started: `tunnel ADDRESS`.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    let Some(address) = args.first().and_then(|arg| arg.to_str()) else {
        eprintln!("agentix-conformance tunnel: the address of the suite is missing");
        return ExitCode::from(2);
    };
    match carry(address) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("agentix-conformance tunnel: {address}: {error}");
            ExitCode::from(70)
        }
    }
}

fn carry(address: &str) -> io::Result<u8> {
    let pid = std::process::id();
    let mut data = BlockingStream::connect(address)?;
    data.set_nodelay(true)?;
    data.write_all(format!("D{pid}\n").as_bytes())?;
    let mut orders = BlockingStream::connect(address)?;
    orders.write_all(format!("C{pid}\n").as_bytes())?;

    let mut upwards = data.try_clone()?;
    std::thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut upwards);
        let _ = upwards.shutdown(Shutdown::Write);
    });
    let downwards = std::thread::spawn(move || {
        let _ = copy(&mut data, &mut io::stdout().lock());
    });
    let mut order = [0];
    if orders.read(&mut order)? == 0 {
        return Ok(0);
    }
    // The suite has closed its direction before it gives an order: what it sent goes out first.
    let _ = downwards.join();
    if order[0] != CLOSE_OUTPUT {
        return Ok(order[0]);
    }
    rustix::stdio::dup2_stdout(std::fs::File::open("/dev/null")?)?;
    orders.read_exact(&mut order).map(|()| order[0]).or(Ok(0))
}

/// Copies piece by piece, each one flushed.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..len])?;
        to.flush()?;
    }
}

/// Where the processes of [`main`] report to.
#[derive(Debug)]
pub(crate) struct Switchboard {
    listener: TcpListener,
    /// Connections whose partner has not come yet.
    single: Vec<(Link, TcpStream)>,
    /// How many workers have reported so far.
    pub(crate) workers: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Link {
    letter: char,
    pid: u32,
}

/// The suite's end of one scripted worker.
pub(crate) struct ScriptedWorker {
    pub(crate) pipe: Pipe,
    orders: TcpStream,
    pid: u32,
    wire: Wire,
}

impl Switchboard {
    pub(crate) async fn open() -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind("127.0.0.1:0").await?,
            single: Vec::new(),
            workers: 0,
        })
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> io::Result<String> {
        Ok(self.listener.local_addr()?.to_string())
    }

    /// Waits for the runtime to start a worker.
    pub(crate) async fn worker(&mut self, wire: &Wire) -> Verdict<ScriptedWorker> {
        match self.worker_within(wire.clock.answer(), wire).await? {
            Some(worker) => Ok(worker),
            None => Err(silence(
                "a worker started by the runtime",
                wire.clock.answer(),
            )),
        }
    }

    /// Waits at most `wait` for the runtime to start a worker.
    pub(crate) async fn worker_within(
        &mut self,
        wait: std::time::Duration,
        wire: &Wire,
    ) -> Verdict<Option<ScriptedWorker>> {
        match timeout(wait, self.pair()).await {
            Err(_) => Ok(None),
            Ok(Err(error)) => Err(Stop::Harness(format!("a scripted worker: {error}"))),
            Ok(Ok((data, orders, pid))) => {
                self.workers += 1;
                wire.transcript.text(
                    "pipe",
                    Direction::Received,
                    "worker started",
                    &pid.to_string(),
                );
                let (reader, writer) = data.into_split();
                Ok(Some(ScriptedWorker {
                    pipe: Pipe::new(reader, writer, "pipe", wire),
                    orders,
                    pid,
                    wire: wire.clone(),
                }))
            }
        }
    }

    async fn pair(&mut self) -> io::Result<(TcpStream, TcpStream, u32)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            stream.set_nodelay(true)?;
            let (link, stream) = greet(stream).await?;
            let partner = self
                .single
                .iter()
                .position(|(other, _)| other.pid == link.pid);
            let Some(at) = partner else {
                self.single.push((link, stream));
                continue;
            };
            let (_, other) = self.single.swap_remove(at);
            return Ok(if link.letter == 'D' {
                (stream, other, link.pid)
            } else {
                (other, stream, link.pid)
            });
        }
    }
}

/// Reads the first line, byte by byte: what follows belongs to the pipe.
async fn greet(stream: TcpStream) -> io::Result<(Link, TcpStream)> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let mut chars = line.trim_end().chars();
    let letter = chars.next();
    match (letter, chars.as_str().parse()) {
        (Some(letter @ ('C' | 'D')), Ok(pid)) => Ok((Link { letter, pid }, reader.into_inner())),
        _ => Err(io::Error::other(format!("no scripted worker: {line:?}"))),
    }
}

impl ScriptedWorker {
    /// Ends the process with an exit status from 0 to 254, after everything sent so far.
    pub(crate) async fn exit(&mut self, status: u8) -> Verdict {
        self.wire
            .transcript
            .text("pipe", Direction::Sent, "worker exits", &status.to_string());
        self.order(status).await
    }

    /// Closes the worker's standard output after everything sent so far; the process stays.
    pub(crate) async fn close_output(&mut self) -> Verdict {
        self.wire
            .transcript
            .text("pipe", Direction::Sent, "worker closes its output", "");
        self.order(CLOSE_OUTPUT).await
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&self) -> Verdict {
        self.wire
            .transcript
            .text("pipe", Direction::Sent, "worker is killed", "9");
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| Stop::Harness("a worker without a process id".to_owned()))?;
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).map_err(|error| {
            Stop::Harness(format!("a scripted worker could not be killed: {error}"))
        })
    }

    async fn order(&mut self, order: u8) -> Verdict {
        self.pipe.close().await;
        let sent = self.orders.write_all(&[order]).await;
        sent.map_err(|error| missed("a worker that is left running", error))
    }
}
