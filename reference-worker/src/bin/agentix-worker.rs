//! A worker with the conformance functions: frames on standard input and output.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentix_reference_worker::worker_main()
}
