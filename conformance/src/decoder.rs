//! The decoder of pickles against vectors.
//!
//! What is right comes from the file of vectors alone, whose format is told in `spec/vectors/pickle/README.md`.

mod classes;
mod compare;
mod difference;
mod found;
mod shape;
mod table;

pub use compare::compare;
pub use difference::{Difference, Reason};
pub use table::{Table, TableError, TableProblem};
