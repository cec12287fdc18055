//! Reference runtime and worker of the Agentix RPC protocol.
//!
//! # Should I use this crate?
//!
//! - To run functions in a sandbox: run `agentix-runtime serve`, which starts a Python worker, or
//!   any other worker with `--worker`.
//! - To run Rust functions in a sandbox: declare them with
//!   [`remote!`](agentix_protocol::remote!), put them into a [`Registry`] and give that to
//!   [`serve_stdio`]; the program is then a worker for `--worker`.
//! - To run a runtime inside of your own process: [`Runtime`].
//!
//! All rules of the protocol are in `agentix-protocol`; this crate moves bytes.

mod backlog;
mod body;
mod cli;
mod command;
mod driver;
mod http;
mod inbox;
mod json;
mod log;
mod names;
mod outbox;
mod polling;
mod proc_stat;
mod process;
mod random;
mod server;
mod session;
mod stop;
mod websocket;
mod worker;

pub use cli::runtime_main;
pub use command::{InvalidCommand, PYTHON_WORKER, WorkerCommand};
pub use server::{Config, KillHandle, Runtime, ServeError};
pub use worker::{RegisterError, Registry, conformance_registry, serve_stdio, worker_main};
