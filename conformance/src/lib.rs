//! The conformance suite of the Agentix RPC protocol.
//!
//! The suite plays the other side of a testee, byte by byte, and judges only what came over the wire. What is right comes
//! from the specification and from recorded messages, never from the reference implementations: those are testees like
//! any other, started as separate processes.
//!
//! | module | holds |
//! | --- | --- |
//! | `registry` | the requirements of the specification, embedded |
//! | `case`, `cases` | what is tested, by role |
//! | `context` | what a case has at hand |
//! | `peer` | raw clients: WebSocket, polling, HTTP, the pipe |
//! | `testee`, `process` | how an implementation is started and ended |
//! | `decoder` | the decoder of pickles against vectors |
//! | `runner`, `report` | running the selection, and saying what came of it |

mod builtin;
mod case;
mod cases;
mod cli;
mod clock;
mod context;
pub mod decoder;
mod messages;
mod msgpack;
mod outcome;
mod peer;
mod pickle;
mod process;
mod registry;
mod report;
mod runner;
mod testee;
mod transcript;
mod verdict;

pub use cli::main;
