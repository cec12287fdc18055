//! Workers in Rust: a registry of functions, and the process that serves them.

mod caught;
mod descriptors;
mod functions;
mod group;
mod registry;
mod serve;

pub use functions::conformance_registry;
pub use registry::{RegisterError, Registry};
pub use serve::serve_stdio;

use std::process::ExitCode;

/// Runs `agentix-worker`: a worker with the conformance functions, frames on standard input and
/// output.
///
/// Returns 0 after an orderly end and 1 when the pipe cannot be followed or used.
pub fn worker_main() -> ExitCode {
    match conformance_registry() {
        Ok(registry) => serve_stdio(registry),
        Err(error) => {
            crate::log::worker(error);
            ExitCode::FAILURE
        }
    }
}
