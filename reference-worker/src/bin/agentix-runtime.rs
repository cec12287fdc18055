//! See `agentix-runtime --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentix_reference_worker::runtime_main(std::env::args_os())
}
