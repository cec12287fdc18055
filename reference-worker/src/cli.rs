//! The command line of `agentix-runtime`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::command::WorkerCommand;
use crate::log;
use crate::names::{BIND_HOST, BIND_PORT};
use crate::server::{Config, Runtime};
use crate::stop::{Reason, Stop};

/// Exit status of a usage error.
const USAGE: u8 = 2;
/// Exit status of a runtime that cannot start, or ended by a fault.
const FAILED: u8 = 1;
/// Exit status after a second signal.
const FORCED: i32 = 130;

#[derive(Debug, Parser)]
#[command(
    name = "agentix-runtime",
    version,
    about = "Runs functions in a sandbox for hosts outside of it"
)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve hosts until SIGTERM, SIGINT, the end of standard input or of the parent process
    ///
    /// Prints `listening on http://HOST:PORT` on standard output when it is ready. Standard input
    /// counts if it is a pipe or a socket that is open at the start. The parent counts unless the
    /// runtime leads a session, ignores SIGHUP (nohup) or is a child of the init process.
    Serve(Serve),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// Name or address to listen on
    #[arg(long, env = BIND_HOST, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, env = BIND_PORT, default_value_t = 0)]
    port: u16,
    /// Command that runs the worker; by default the Python worker of this program
    #[arg(long, value_name = "CMD", conflicts_with_all = ["python", "path"])]
    worker: Option<String>,
    /// Interpreter of the Python worker
    #[arg(long, default_value = "python3")]
    python: OsString,
    /// Folder from which the Python worker imports first; repeatable, also AGENTIX_PATH
    #[arg(long, value_name = "DIR")]
    path: Vec<PathBuf>,
}

/// Runs `agentix-runtime` with these arguments, the program's name first.
///
/// Returns 0 after an orderly end, 1 when the runtime cannot start or ended by a fault, and 2
/// after a usage error; each failure is one line on standard error.
pub fn runtime_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let CliCommand::Serve(arguments) = cli.command;
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::runtime(error);
            ExitCode::from(FAILED)
        }
    }
}

/// Prints help or version where they were asked for, else what is wrong in one line.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    // The first paragraph says what is wrong; those after it are hints.
    let paragraph: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a subcommand is missing".to_owned(),
        _ => paragraph.join(" "),
    };
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    log::runtime(format_args!("{what}; see agentix-runtime serve --help"));
    ExitCode::from(USAGE)
}

fn serve(arguments: Serve) -> Result<(), Box<dyn std::error::Error>> {
    let worker = match &arguments.worker {
        Some(line) => WorkerCommand::parse(line)?,
        None => WorkerCommand::python(arguments.python, arguments.path)?,
    };
    worker.check()?;
    let result = run(arguments.host, arguments.port, &worker);
    worker.remove_script();
    result
}

fn run(host: String, port: u16, worker: &WorkerCommand) -> Result<(), Box<dyn std::error::Error>> {
    let config = Config {
        host,
        port,
        ..Config::new(worker.clone())
    };
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = tokio.block_on(async {
        let mut stop = Stop::watch()?;
        let runtime = Runtime::bind(config).await?;
        let kill = runtime.kill_handle();
        let line = format!("listening on http://{}\n", runtime.local_addr());
        let mut stdout = std::io::stdout();
        // Whoever closed standard output does not want to know.
        let _ = stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush());
        let (told, shutdown) = tokio::sync::oneshot::channel::<()>();
        let serving = runtime.serve(async { drop(shutdown.await) });
        let stopping = async {
            let reason = stop.any().await;
            // Whoever closed standard input wanted this: no line about it.
            if !matches!(reason, Reason::StdinEnded) {
                log::runtime(format_args!("stopping: {reason}"));
            }
            drop(told);
            let reason = stop.signal().await;
            log::runtime(format_args!("ending at once: {reason} again"));
            kill.kill();
            worker.remove_script();
            std::process::exit(FORCED)
        };
        tokio::select! {
            result = serving => result.map_err(Box::<dyn std::error::Error>::from),
            () = stopping => Ok(()),
        }
    });
    // Connections that did not end in time are not waited for.
    tokio.shutdown_background();
    result
}
