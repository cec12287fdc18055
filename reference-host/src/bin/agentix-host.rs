//! Calls functions inside a sandbox, from a shell, and shows what pickles hold.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use agentix_protocol::safepickle::{Document, Limits, Policy};
use agentix_protocol::target::CallTarget;
use agentix_reference_host::inspect::{self, Bounds, Format, Options};
use agentix_reference_host::json::{self, JsonError};
use agentix_reference_host::terminal::visible;
use agentix_reference_host::{
    CallError, ClientConfig, ConnectError, LocalError, LocalOptions, LocalRuntime, Reconnect,
    RuntimeClient, health,
};
use clap::{Args, Parser, Subcommand};
use serde_json::{Map, Value};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Time for `health`.
const HEALTH_LIMIT: Duration = Duration::from_secs(10);

/// Call functions inside a sandbox; show what a pickle holds.
#[derive(Parser)]
#[command(
    name = "agentix-host",
    version,
    after_help = "Exit status: 0 done; 1 the call failed, or the inspected file is not clean; 2 wrong \
                  usage; 3 no runtime, or the connection to it is lost, or the file could not be read to \
                  its end; 130 or 143 when interrupted or terminated."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the health of a runtime, as JSON
    Health {
        /// Where the runtime listens, such as http://127.0.0.1:8000
        url: String,
    },
    /// Call a function and print its result, as JSON
    #[command(
        after_help = "What JSON lacks is printed as an object with one key that begins with $, such as \
                      {\"$bytes\": \"<base64>\"}, {\"$set\": [...]}, {\"$float\": \"nan\"}, \
                      {\"$exception\": {\"class\": ..., \"args\": [...]}}, {\"$record\": {...}}, and \
                      {\"$dict\": [[key, value], ...]} for keys that are not str. Tuples and deques are \
                      printed as arrays; dates, times, Decimal, Fraction, UUID and paths as strings. The \
                      documentation of agentix_reference_host::json has the whole table."
    )]
    Call(Call),
    /// Show what a pickle holds, without carrying any of it out
    #[command(
        after_help = "Exit status: 0 clean: every byte was read, and a decoder with this policy accepts \
                      every stream; 1 read to the end, but the policy does not admit all of it, or bytes \
                      follow the last stream; 2 wrong usage; 3 a stream breaks or exceeds a limit, or \
                      the file could not be read. A file is never called clean unless the status is 0."
    )]
    Inspect(Inspect),
}

#[derive(Args)]
struct Inspect {
    /// The file; - is stdin
    file: PathBuf,
    /// Print one JSON document instead of text for people
    #[arg(long)]
    json: bool,
    /// List the opcodes, too
    #[arg(long)]
    opcodes: bool,
    /// Show at most this many lines of each part, a tenth of that but at least 10 of one container
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_lines: usize,
    /// Show everything, long texts in full
    #[arg(long, conflicts_with = "max_lines")]
    all: bool,
    /// Admit this class or function, too; may be given more than once
    #[arg(long, value_name = "MODULE:QUALNAME", value_parser = parse_global)]
    allow: Vec<Global>,
    /// Admit what numpy needs beyond the policy of the protocol
    #[arg(long)]
    numpy: bool,
    /// Read at most this many bytes
    #[arg(long, value_name = "N", default_value_t = 268_435_456,
          value_parser = clap::value_parser!(u64).range(..=4_294_967_294))]
    max_bytes: u64,
    /// Make at most this many objects of each stream; each takes 16 bytes of memory
    #[arg(long, value_name = "N", default_value_t = 16_777_216,
          value_parser = clap::value_parser!(u64).range(..=4_294_967_294))]
    max_objects: u64,
}

/// A module and a name in it.
#[derive(Clone)]
struct Global {
    module: String,
    qualname: String,
}

fn parse_global(text: &str) -> Result<Global, String> {
    match text.split_once(':') {
        Some((module, qualname))
            if !module.is_empty() && !qualname.is_empty() && !qualname.starts_with(':') =>
        {
            Ok(Global {
                module: module.to_owned(),
                qualname: qualname.to_owned(),
            })
        }
        _ => Err("write MODULE:QUALNAME, such as collections:ChainMap".to_owned()),
    }
}

#[derive(Args)]
struct Call {
    #[command(flatten)]
    place: Place,
    /// With --local: where to import from; may be given more than once
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    path: Vec<PathBuf>,
    /// A positional argument, in JSON; may be given more than once
    #[arg(long = "arg", value_name = "JSON", allow_hyphen_values = true, value_parser = json::parse)]
    args: Vec<Value>,
    /// The keyword arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_object)]
    kwargs: Map<String, Value>,
    /// Cancel the call when it takes longer than this many seconds
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Send the call over Socket.IO alone, without the short path over HTTP
    #[arg(long)]
    no_http: bool,
    /// The function, written module::qualname, such as app::run
    #[arg(value_parser = CallTarget::validate)]
    target: CallTarget,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// Where the runtime listens, such as http://127.0.0.1:8000
    #[arg(long)]
    url: Option<String>,
    /// Start a runtime for this one call
    #[arg(long)]
    local: bool,
}

fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    match json::parse(text).map_err(|error| error.to_string())? {
        Value::Object(object) => Ok(object),
        _ => Err("not a JSON object; write {\"name\": value}".to_owned()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Why the program does not end with 0.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error("the result cannot be written as JSON: {0}")]
    Json(#[from] JsonError),
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write to stdout: {0}")]
    Output(io::Error),
    #[error("cannot read {}: {error}", .file.display())]
    Input { file: PathBuf, error: io::Error },
    #[error("{} has more than {most} bytes; --max-bytes N reads more", .file.display())]
    TooLarge { file: PathBuf, most: u64 },
    #[error("stopped by {by}")]
    Stopped { by: &'static str, status: u8 },
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Call(CallError::Disconnected { .. } | CallError::Closed)
            | Self::Connect(_)
            | Self::Local(_)
            | Self::Input { .. }
            | Self::TooLarge { .. } => 3,
            Self::Call(_) | Self::Json(_) | Self::Signals(_) | Self::Output(_) => 1,
            Self::Stopped { status, .. } => *status,
        }
    }

    fn traceback(&self) -> Option<&str> {
        match self {
            Self::Call(CallError::Remote(error)) => error.traceback.as_deref(),
            _ => None,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    // What a person should know while a call waits, such as a lost connection; RUST_LOG tells more.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    let cli = Cli::parse();
    match run(cli.command).await {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("agentix-host: {}", visible(&failure.to_string(), false));
            if let Some(traceback) = failure.traceback() {
                eprintln!("{}", visible(traceback.trim_end(), true));
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Does what is asked for; gives the exit status.
async fn run(command: Command) -> Result<u8, Failure> {
    let line = match command {
        // Signals are not watched here, so that one ends the process at once.
        Command::Inspect(inspect) => return show_pickle(inspect),
        Command::Health { url } => {
            let mut signals = Signals::watch()?;
            let health = signals.or(health(&url, HEALTH_LIMIT)).await??;
            json::to_line(&health).map_err(|error| Failure::Output(error.into()))?
        }
        Command::Call(call) => {
            let document = make_call(call, &mut Signals::watch()?).await?;
            json::to_string(document.root())?
        }
    };
    writeln!(io::stdout(), "{line}").map_err(Failure::Output)?;
    Ok(0)
}

fn show_pickle(inspect: Inspect) -> Result<u8, Failure> {
    let input = read_file(&inspect.file, inspect.max_bytes)?;
    let mut policy = Policy::agentix();
    for Global { module, qualname } in &inspect.allow {
        policy = policy.allow(module, qualname);
    }
    if inspect.numpy {
        policy = policy.with_numpy();
    }
    let options = Options {
        policy,
        limits: Limits::default()
            .input_bytes(inspect.max_bytes)
            .owned_bytes(inspect.max_bytes)
            .nodes(inspect.max_objects)
            .memo_entries(inspect.max_objects),
        bounds: match inspect.all {
            true => Bounds::NONE,
            false => Bounds::lines(inspect.max_lines),
        },
        opcodes: inspect.opcodes,
        format: match inspect.json {
            true => Format::Json,
            false => Format::Text,
        },
    };
    let mut out = BufWriter::new(UntilClosed(io::stdout()));
    let verdict = inspect::inspect(&input, &options, &mut out).map_err(Failure::Output)?;
    out.flush().map_err(Failure::Output)?;
    Ok(verdict.status())
}

fn read_file(file: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    let read = match file.to_str() {
        Some("-") => io::stdin().take(most + 1).read_to_end(&mut input),
        _ => File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut input)),
    };
    let file = file.to_owned();
    match read {
        Ok(read) if read as u64 > most => Err(Failure::TooLarge { file, most }),
        Ok(_) => Ok(input),
        Err(error) => Err(Failure::Input { file, error }),
    }
}

/// A stream that takes everything once its reader is gone, such as `head`: the verdict is on all of the
/// file, however much of it is looked at.
struct UntilClosed<W>(W);

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

async fn make_call(call: Call, signals: &mut Signals) -> Result<Document<'static>, Failure> {
    let mut config = ClientConfig {
        call_deadline: call.timeout,
        ..ClientConfig::default()
    };
    if call.no_http {
        config.http_wait = None;
    }
    let Some(url) = call.place.url else {
        // A runtime of our own that is gone does not come back.
        config.reconnect = Reconnect::off();
        let options = LocalOptions {
            paths: call.path,
            ..LocalOptions::default()
        };
        let runtime = signals.or(LocalRuntime::start(options)).await??;
        let url = runtime.url().to_owned();
        let made = call_at(&url, config, &call.target, call.args, call.kwargs, signals).await;
        // A second signal does not wait: dropping the runtime ends it faster.
        if let Err(error) = signals.or(runtime.stop()).await? {
            tracing::warn!(%error, "the local runtime did not end in order");
        }
        return made;
    };
    call_at(&url, config, &call.target, call.args, call.kwargs, signals).await
}

async fn call_at(
    url: &str,
    config: ClientConfig,
    target: &CallTarget,
    args: Vec<Value>,
    kwargs: Map<String, Value>,
    signals: &mut Signals,
) -> Result<Document<'static>, Failure> {
    let client = signals.or(RuntimeClient::connect(url, config)).await??;
    // A signal drops the call, which cancels it; closing sends the cancel.
    let made = signals.or(client.call_value(target, args, kwargs)).await;
    client.close().await;
    Ok(made??)
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(Failure::Signals)?,
            terminate: signal(SignalKind::terminate()).map_err(Failure::Signals)?,
        })
    }

    /// What the future gives, unless a signal comes first; then the future is dropped.
    async fn or<F: Future>(&mut self, future: F) -> Result<F::Output, Failure> {
        tokio::select! {
            output = future => Ok(output),
            _ = self.interrupt.recv() => Err(Failure::Stopped { by: "SIGINT", status: 130 }),
            _ = self.terminate.recv() => Err(Failure::Stopped { by: "SIGTERM", status: 143 }),
        }
    }
}
