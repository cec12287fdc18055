//! The rules of `spec/prose` about calls, the pipe and versions, one test each, named after its
//! requirement, on the machines alone: no process, no socket, and time is virtual.
#![allow(clippy::unwrap_used)]

mod coverage;
mod host;
mod host_http;
mod messages;
mod pipe;
mod pipe_events;
mod pipe_life;
mod runtime_cancel;
mod runtime_holding;
mod runtime_http;
mod runtime_ids;
mod runtime_owners;
mod table;
mod versions;
mod worker;
mod worker_ends;
