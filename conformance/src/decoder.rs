//! The decoder of pickles against vectors.
//!
//! What is right comes from the file of vectors alone, whose format is told in `spec/vectors/pickle/README.md`.

mod arrays;
mod child;
mod classes;
mod compare;
mod difference;
mod dtype;
mod exchange;
mod fields;
mod found;
mod judge;
mod report;
mod run;
mod shape;
mod supervise;
mod table;
mod vectors;

use std::num::NonZeroUsize;

use crate::builtin;
use crate::clock::Clock;

pub(crate) use child::main as child_main;
pub use compare::compare;
pub use difference::{Difference, Reason};
pub use fields::{FieldError, FieldProblem};
pub(crate) use report::Report;
pub use table::Table;
pub use vectors::{Expect, Vector, VectorError, VectorProblem, read as read_vectors};

/// Address space of a process that decodes: 256 MiB, a quarter of what the reference was given. What the suite itself
/// needs for a vector is about ten times its line.
const MEMORY_BYTES: u64 = 256 * 1024 * 1024;

/// Runs vectors against the built-in decoder, and gives the exit status.
///
/// # Errors
///
/// When this program cannot be found, to be started again.
pub(crate) async fn run_builtin(
    vectors: &[Vector],
    clock: Clock,
    jobs: NonZeroUsize,
    report: &mut Report,
) -> Result<u8, String> {
    let bounds = supervise::Bounds {
        processor: clock.decoding(),
        clock: clock.vector(),
        memory_bytes: MEMORY_BYTES,
        start: clock.start(),
    };
    // The system counts whole seconds; what a process tells is held against the exact bound.
    let seconds = bounds.processor.as_secs() + 1;
    let plan = run::Plan {
        vectors,
        program: builtin::decoder(MEMORY_BYTES, seconds)?,
        bounds,
        jobs: jobs.get(),
    };
    Ok(run::run(&plan, report).await.exit_status())
}
