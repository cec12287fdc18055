//! The Agentix RPC protocol: how a host calls a real function inside a sandbox.
//!
//! Bytes in, typed values out. No I/O, no clock, no randomness, no async, no `unsafe`.
//!
//! # Should I use this crate?
//!
//! - To write a host, a runtime or a worker: use the messages, the codec and the state machines,
//!   and run the conformance suite against what you built.
//! - To decode pickles that you do not trust: turn the default features off and use
//!   [`safepickle`] alone.
//! - To call functions in a sandbox from Rust: use `agentix-reference-host` instead.
//!
//! # Features
//!
//! - `rpc` (default): everything but [`safepickle`].

#[cfg(feature = "rpc")]
mod closed;
#[cfg(feature = "rpc")]
pub mod codec;
#[cfg(feature = "rpc")]
pub mod error;
#[cfg(feature = "rpc")]
pub mod event;
#[cfg(feature = "rpc")]
pub mod frame;
#[cfg(feature = "rpc")]
pub mod framing;
#[cfg(feature = "rpc")]
pub mod host;
#[cfg(feature = "rpc")]
pub mod http;
#[cfg(feature = "rpc")]
pub mod ident;
#[cfg(feature = "rpc")]
pub mod limits;
#[cfg(feature = "rpc")]
pub mod link;
#[cfg(feature = "rpc")]
pub mod message;
#[cfg(feature = "rpc")]
pub mod names;
#[cfg(feature = "rpc")]
pub mod packet;
#[cfg(feature = "rpc")]
pub mod remote;
#[cfg(feature = "rpc")]
pub mod runtime;
pub mod safepickle;
#[cfg(feature = "rpc")]
pub mod stream;
#[cfg(feature = "rpc")]
pub mod target;
#[cfg(feature = "rpc")]
pub mod worker;

/// What [`remote!`] expands to; not for use by hand.
#[cfg(feature = "rpc")]
#[doc(hidden)]
pub mod __private {
    pub use serde;
}
