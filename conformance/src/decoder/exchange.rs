//! What the suite and a process that decodes for it say to each other: one JSON object a line.
//!
//! The process says that it is ready. Then, for each request: what came of decoding as soon as it is known, and when the
//! value has been compared and dropped, what it was. So the suite knows what a process did that ends in between.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// One vector.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) hex: String,
    /// The table to compare a value with.
    pub(super) value: Option<Json>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// Once, when the bounds are in force.
    Ready,
    Decoded {
        refused: Option<Refusal>,
        /// Processor time that decoding took, in microseconds.
        processor_us: u64,
    },
    Done {
        /// Absent if the stream was refused.
        value: Option<DecodedValue>,
    },
}

/// Why a stream was not decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// Which sort of error.
    pub(super) kind: String,
    /// The error in words, with its offset.
    pub(super) text: String,
}

/// What was decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DecodedValue {
    /// The beginning of the value, in the manner of Python's `repr`.
    pub(super) shown: String,
    pub(super) likeness: Likeness,
}

/// How a decoded value relates to the file's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Likeness {
    Equal,
    Different {
        at: String,
        expected: String,
        found: String,
    },
    /// The file has none.
    Unknown,
}
