//! Socket.IO over one WebSocket, as this protocol profiles it: several namespaces on one
//! connection, each event with one binary attachment, keepalive counted in bytes.
//!
//! [`Connection`] moves packets and keeps no calls: the rules about those are in
//! [`agentix_protocol::host`]. It has no task of its own; [`Connection::next`] reads and writes for
//! as long as it is awaited.

pub(crate) mod connection;
mod meter;

pub use connection::{Connection, EmitError, Incoming};
pub use meter::Metered;

#[cfg(test)]
mod tests;
