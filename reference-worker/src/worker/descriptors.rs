//! Private descriptors for frames (AGX-WRK-001).

use std::fs::File;
use std::io;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// Descriptors 0 to 2 stay what every program takes them for.
const FIRST_PRIVATE: i32 = 3;

/// The worker's end of the pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) input: File,
    pub(super) output: File,
}

impl Pipe {
    /// Takes standard input and output for frames alone. In their place functions and child
    /// processes find the null device and standard error, so that nothing they print or read
    /// touches a frame.
    pub(super) fn take() -> io::Result<Self> {
        let input = fcntl_dupfd_cloexec(stdin(), FIRST_PRIVATE)?;
        let output = fcntl_dupfd_cloexec(stdout(), FIRST_PRIVATE)?;
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(stderr())?;
        Ok(Self {
            input: input.into(),
            output: output.into(),
        })
    }
}
