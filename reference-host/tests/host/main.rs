//! The client and the program against scripted runtimes on loopback sockets.

#![allow(clippy::unwrap_used, reason = "a step that fails fails its test")]

mod calls;
mod connecting;
mod hostile;
mod http_path;
mod inspect;
mod inspect_hostile;
mod local;
mod program;
mod reconnecting;
mod scripted;
mod vectors;
