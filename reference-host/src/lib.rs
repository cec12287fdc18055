//! The host side of the Agentix RPC protocol: calls real functions inside a sandbox.
//!
//! # Should I use this crate?
//!
//! - To call functions in a sandbox from Rust: yes; begin with [`RuntimeClient`].
//! - To do it from a shell: use the program `agentix-host` of this package.
//! - To write a host of your own: use `agentix-protocol`, which has the messages and the rules
//!   about calls; this crate adds the sockets.
//!
//! # What is in it
//!
//! - [`RuntimeClient`]: connect, call, close; [`ClientConfig`] says how it behaves.
//! - [`LocalRuntime`]: a runtime in a process of its own, for tests and for trying out.
//! - [`transport`]: Socket.IO as this protocol profiles it, for those who need namespaces of their
//!   own.
//! - [`json`]: results of unknown type as JSON.
//! - [`mod@inspect`]: what a pickle holds, without carrying any of it out.
//! - [`terminal`]: text from strangers, for a terminal.

mod client;
mod config;
mod driver;
mod error;
mod http;
pub mod inspect;
pub mod json;
mod local;
pub mod terminal;
pub mod transport;
mod url;

pub use client::{RuntimeClient, health};
pub use config::{ClientConfig, Reconnect};
pub use error::{CallError, ConnectError, LinkError, Stranger};
pub use local::{LocalError, LocalOptions, LocalRuntime};
pub use url::RuntimeUrl;
