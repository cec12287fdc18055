//! The runtime as a process of its own, with workers as processes of theirs.

#![allow(clippy::unwrap_used)]

mod calls;
mod commands;
mod connections;
mod ending;
mod in_process;
mod load;
mod support;
mod workers;
