//! `agentix-conformance`: tests an implementation of the Agentix RPC protocol.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentix_conformance::main(std::env::args_os())
}
