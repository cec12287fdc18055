//! Lines on standard error.

use std::fmt;
use std::io::Write as _;

/// Writes one line with the program's name in front; a closed standard error is no reason to
/// fail, and text from a peer cannot add lines or control characters.
pub(crate) fn line(program: &str, message: impl fmt::Display) {
    let mut text: String = format!("{program}: {message}")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.push('\n');
    // In one write, so that lines of several processes do not mix.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One line of the runtime.
pub(crate) fn runtime(message: impl fmt::Display) {
    line("agentix-runtime", message);
}

/// One line of the worker.
pub(crate) fn worker(message: impl fmt::Display) {
    line("agentix-worker", message);
}
