//! msgpack values and extension types, with limits.
//!
//! Reading is strict (AGX-COD): no trailing bytes, no truncation, UTF-8 strings, map keys that
//! are `str` or `bin`, at most 1,024 nested containers, and a bound on the number of values.
//! [`scan`] checks bytes without building anything; [`Value::decode`] builds a tree;
//! [`Fields`] reads just the named fields of a message and skips the rest.

mod encode;
mod fields;
mod ndarray;
mod scan;
mod value;

pub use encode::{EncodeError, Writer};
pub use fields::{FieldError, FieldErrorKind, Fields};
pub use ndarray::{Dtype, DtypeKind, InvalidNdArray, NdArray};
pub use scan::{Keys, Limits, scan};
pub use value::{Key, Timestamp, Value};

/// Extension code of an ndarray.
pub const EXT_NDARRAY: i8 = 1;
/// Extension code of a dumped model.
pub const EXT_MODEL: i8 = 2;
/// Extension code of a timestamp.
pub const EXT_TIMESTAMP: i8 = -1;

/// Why bytes are not an acceptable msgpack message, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct DecodeError {
    /// Which rule they break.
    pub kind: DecodeErrorKind,
    /// Where, in bytes from the start of the message.
    pub offset: usize,
}

/// Which rule a msgpack message breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The message ends inside a value.
    #[error("the message ends inside a value")]
    Truncated,
    /// Bytes follow the value.
    #[error("{extra} bytes follow the value")]
    Trailing {
        /// How many.
        extra: usize,
    },
    /// The reserved type byte 0xc1.
    #[error("the reserved type byte 0xc1")]
    Reserved,
    /// A `str` that is not UTF-8.
    #[error("a str that is not UTF-8")]
    InvalidUtf8,
    /// A map key that is neither `str` nor `bin`.
    #[error("a map key that is neither str nor bin")]
    KeyType,
    /// An extension code that is neither 0 to 127 nor -1.
    #[error("extension code {code}, which is not allowed")]
    ExtCode {
        /// The code.
        code: i8,
    },
    /// A timestamp of a wrong length or with 10^9 nanoseconds or more.
    #[error("a malformed timestamp")]
    Timestamp,
    /// A malformed ndarray.
    #[error("a malformed ndarray: {0}")]
    NdArray(InvalidNdArray),
    /// More nested containers than the limit.
    #[error("more than {limit} nested containers")]
    Depth {
        /// The limit.
        limit: usize,
    },
    /// More nested models (extension 2) than the limit.
    #[error("more than {limit} nested models")]
    ModelDepth {
        /// The limit.
        limit: usize,
    },
    /// More values than the limit.
    #[error("more than {limit} values")]
    Values {
        /// The limit.
        limit: usize,
    },
    /// More bytes than the limit.
    #[error("{len} bytes, more than the limit of {limit}")]
    Bytes {
        /// Length of the message.
        len: usize,
        /// The limit.
        limit: usize,
    },
}
