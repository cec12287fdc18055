//! What comes of a case.

use std::fmt::{Debug, Display};

/// How a case ends: it holds, or it stops.
pub(crate) type Verdict<T = ()> = Result<T, Stop>;

/// Why a case stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The testee broke a requirement.
    Failure(Failure),
    /// The testee does not have what the case is about, and need not: the reason.
    NotApplicable(String),
    /// The suite itself could not go on; says nothing about the testee.
    Harness(String),
}

/// A broken requirement: what was due, and what came instead.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The requirement; the first of the case where the place that noticed knows none.
    pub(crate) requirement: Option<&'static str>,
    /// What had to come over the wire.
    pub(crate) expected: String,
    /// What came.
    pub(crate) observed: String,
}

/// Ends a case: `requirement` is broken.
pub(crate) fn fail<T>(
    requirement: &'static str,
    expected: impl Display,
    observed: impl Display,
) -> Verdict<T> {
    Err(Stop::Failure(Failure {
        requirement: Some(requirement),
        expected: expected.to_string(),
        observed: observed.to_string(),
    }))
}

/// Ends a case unless `holds`.
pub(crate) fn check(
    holds: bool,
    requirement: &'static str,
    expected: impl Display,
    observed: impl Display,
) -> Verdict {
    if holds {
        Ok(())
    } else {
        fail(requirement, expected, observed)
    }
}

/// Ends a case unless what was observed is what was due.
pub(crate) fn equal<T: PartialEq + Debug>(
    requirement: &'static str,
    what: &str,
    expected: &T,
    observed: &T,
) -> Verdict {
    check(
        expected == observed,
        requirement,
        format_args!("{what}: {expected:?}"),
        format_args!("{observed:?}"),
    )
}

/// Ends a case unless the bytes are those due.
pub(crate) fn equal_bytes(
    requirement: &'static str,
    what: &str,
    expected: &[u8],
    observed: &[u8],
) -> Verdict {
    check(
        expected == observed,
        requirement,
        format_args!("{what}: {}", shorten(expected)),
        shorten(observed),
    )
}

/// Bytes as hex; long ones by their beginning and length.
pub(crate) fn shorten(bytes: &[u8]) -> String {
    const SHOWN: usize = 512;
    let hex = data_encoding::HEXLOWER.encode(&bytes[..bytes.len().min(SHOWN)]);
    if bytes.len() > SHOWN {
        format!("{hex}... ({} bytes)", bytes.len())
    } else {
        hex
    }
}

impl Stop {
    /// The same, as a breach of `requirement` where no other is named: for waits whose end only that requirement asks for.
    pub(crate) fn breaks(self, requirement: &'static str) -> Self {
        match self {
            Self::Failure(failure) => Self::Failure(Failure {
                requirement: failure.requirement.or(Some(requirement)),
                ..failure
            }),
            other => other,
        }
    }

    /// The same, with the input that led to it: for cases that go through a list.
    pub(crate) fn in_case_of(self, input: &str) -> Self {
        match self {
            Self::Failure(failure) => Self::Failure(Failure {
                expected: format!("{}, after {input}", failure.expected),
                ..failure
            }),
            other => other,
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Harness(error.to_string())
    }
}
