//! Calls functions inside a sandbox, from a shell.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agentix_protocol::safepickle::Document;
use agentix_protocol::target::CallTarget;
use agentix_reference_host::json::{self, JsonError};
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

/// Call functions inside a sandbox.
#[derive(Parser)]
#[command(
    name = "agentix-host",
    version,
    after_help = "Exit status: 0 done; 1 the call failed; 2 wrong usage; 3 no runtime, or the \
                  connection to it is lost; 130 or 143 when interrupted or terminated."
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
        after_help = "What JSON lacks is printed as an object: {\"$bytes\": \"<base64>\"}, \
                      {\"$bytearray\": \"<base64>\"}, {\"$set\": [...]}, {\"$frozenset\": [...]}, \
                      {\"$float\": \"nan\"}, {\"$dict\": [[key, value], ...]} for keys that are \
                      not str. Tuples are printed as arrays."
    )]
    Call(Call),
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
    Signals(std::io::Error),
    #[error("cannot write to stdout: {0}")]
    Output(std::io::Error),
    #[error("stopped by {by}")]
    Stopped { by: &'static str, status: u8 },
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Call(CallError::Disconnected { .. } | CallError::Closed)
            | Self::Connect(_)
            | Self::Local(_) => 3,
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
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    let cli = Cli::parse();
    match run(cli.command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("agentix-host: {}", visible(&failure.to_string(), false));
            if let Some(traceback) = failure.traceback() {
                eprintln!("{}", visible(traceback.trim_end(), true));
            }
            ExitCode::from(failure.status())
        }
    }
}

/// Text from the sandbox for a terminal: control characters, and those that reorder text, are
/// written as escapes, so that nothing but words comes through.
fn visible(text: &str, keep_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (keep_lines && matches!(c, '\n' | '\t')) || !(c.is_control() || reorders) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

async fn run(command: Command) -> Result<(), Failure> {
    let mut signals = Signals::watch().map_err(Failure::Signals)?;
    let line = match command {
        Command::Health { url } => {
            let health = signals.or(health(&url, HEALTH_LIMIT)).await??;
            json::to_line(&health).map_err(|error| Failure::Output(error.into()))?
        }
        Command::Call(call) => {
            let document = make_call(call, &mut signals).await?;
            json::to_string(document.root())?
        }
    };
    writeln!(std::io::stdout(), "{line}").map_err(Failure::Output)
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
    fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
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

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_but_words_reaches_the_terminal() {
        let hostile = "\u{1b}[31mred\u{1b}]0;title\u{7}\r\nagentix-host: all good\u{202e}";
        let shown = visible(hostile, false);
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'));
        assert!(shown.contains("red") && shown.contains("all good"));
        assert_eq!(visible("a\n\tb é", true), "a\n\tb é");
        assert_eq!(visible("a\nb", false), "a\\nb");
    }
}
