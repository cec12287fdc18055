//! What a comparison found to be different.

use std::fmt;

use super::fields::FieldError;

/// How often another pairing of equal set elements is tried.
pub(super) const TRIES: usize = 1000;

/// Where a decoded value is not what was asked for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    path: String,
    reason: Reason,
}

/// How a decoded value is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Another kind, class or content.
    Content {
        /// What the vector has.
        expected: String,
        /// What was decoded.
        found: String,
    },
    /// Another number of parts, or parts of other names.
    Parts {
        /// The parts that the vector has and the value lacks, or their number.
        expected: String,
        /// The parts that the value has.
        found: String,
    },
    /// One object where the vector has two, or two where it has one.
    Sharing {
        /// Does the vector have one object, shared with a place seen before?
        expected_shared: bool,
    },
    /// A set lacks an element, and has one that the vector lacks.
    Elements {
        /// An element that the vector has.
        expected: String,
        /// An element that was decoded.
        found: String,
    },
    /// Sets hold too many elements that are told apart only by what else refers to them: given up.
    Undecided,
    /// The vector holds something that its format does not describe to the end.
    Incomparable {
        /// `opaque` or `npscalar`.
        what: String,
    },
    /// The decoded value has a kind that the format of the vectors does not have.
    Foreign {
        /// The name of the kind.
        kind: String,
    },
    /// The vector's table itself is not of the format.
    Table(FieldError),
}

impl Difference {
    pub(super) fn new(path: String, reason: Reason) -> Self {
        Self { path, reason }
    }

    /// The place, from the root, such as `$.values[2][0]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is different there.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for Difference {}

impl Reason {
    /// What was expected, and what was found.
    pub(super) fn sides(&self) -> (String, String) {
        let sides = |expected: &str, found: &str| (expected.to_owned(), found.to_owned());
        match self {
            Self::Content { expected, found }
            | Self::Parts { expected, found }
            | Self::Elements { expected, found } => sides(expected, found),
            Self::Sharing {
                expected_shared: true,
            } => sides("an object that another place holds too", "another one"),
            Self::Sharing {
                expected_shared: false,
            } => sides("an object of its own", "one that another place holds too"),
            Self::Undecided => (
                "a way to pair equal elements of sets".to_owned(),
                format!("none after {TRIES} others were tried: undecided"),
            ),
            Self::Incomparable { what } => (
                format!("{what}, which cannot be compared"),
                "a value".to_owned(),
            ),
            Self::Foreign { kind } => (
                "a kind that the format of vectors has".to_owned(),
                kind.clone(),
            ),
            Self::Table(error) => (
                format!("a table that is not of the format: {error}"),
                "a value".to_owned(),
            ),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = self.sides();
        write!(f, "expected {expected}, found {found}")
    }
}
