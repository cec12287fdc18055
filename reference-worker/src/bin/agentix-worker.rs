//! A worker with the conformance functions: frames on standard input and output.

use std::process::ExitCode;

use clap::Parser;

/// A worker with the conformance functions, started by a runtime: frames on standard input and
/// output
///
/// Environment: AGENTIX_WORKER_THREADS says how many synchronous functions run at a time, 32 by
/// default. Exit status: 0 after an orderly end, 1 when the pipe is lost, 2 for a wrong command
/// line.
#[derive(Parser)]
#[command(name = "agentix-worker", version)]
struct Cli {}

fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    agentix_reference_worker::worker_main()
}
