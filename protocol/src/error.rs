//! Errors that travel: what `call:error`, the pipe's `error` and HTTP's `ok: false` carry.

use std::fmt;

use crate::names::error_type;

/// The class name of a remote error; open, so that a peer's unknown name survives a round trip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorType {
    /// A message that breaks the rules of its kind.
    BadRequest,
    /// The call was cancelled.
    Cancelled,
    /// The outcome is no longer (or never was) held.
    ResultUnavailable,
    /// The worker ended while the call ran.
    WorkerDied,
    /// The worker could not be started.
    WorkerUnavailable,
    /// The arguments do not unpickle into `(tuple, dict)`.
    ArgumentsDecodeError,
    /// The result cannot be pickled.
    ResultEncodeError,
    /// The result is above the size limit.
    FrameTooLarge,
    /// The request is above the size limit.
    PayloadTooLarge,
    /// Any other name: the class of the exception that the function raised, without its module.
    Other(Box<str>),
}

impl ErrorType {
    /// Every name that the protocol itself makes.
    pub const KNOWN: [Self; 9] = [
        Self::BadRequest,
        Self::Cancelled,
        Self::ResultUnavailable,
        Self::WorkerDied,
        Self::WorkerUnavailable,
        Self::ArgumentsDecodeError,
        Self::ResultEncodeError,
        Self::FrameTooLarge,
        Self::PayloadTooLarge,
    ];

    /// The name as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::BadRequest => error_type::BAD_REQUEST,
            Self::Cancelled => error_type::CANCELLED,
            Self::ResultUnavailable => error_type::RESULT_UNAVAILABLE,
            Self::WorkerDied => error_type::WORKER_DIED,
            Self::WorkerUnavailable => error_type::WORKER_UNAVAILABLE,
            Self::ArgumentsDecodeError => error_type::ARGUMENTS_DECODE,
            Self::ResultEncodeError => error_type::RESULT_ENCODE,
            Self::FrameTooLarge => error_type::FRAME_TOO_LARGE,
            Self::PayloadTooLarge => error_type::PAYLOAD_TOO_LARGE,
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for ErrorType {
    fn from(name: &str) -> Self {
        Self::KNOWN
            .into_iter()
            .find(|known| known.as_str() == name)
            .unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as the protocol carries it. All five keys are always written; readers accept their
/// absence (AGX-RPC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteError {
    /// Class name of the exception, or one of the protocol's own names.
    pub error_type: ErrorType,
    /// Text of the exception.
    pub message: String,
    /// Traceback text, when a function raised.
    pub traceback: Option<String>,
    /// True only when somebody cancelled the call.
    pub cancelled: bool,
    /// With `WorkerDied`: the exit code of the worker, or minus the signal that killed it.
    pub returncode: Option<i64>,
}

impl RemoteError {
    /// An error without traceback.
    #[must_use]
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self {
            error_type,
            message: message.into(),
            traceback: None,
            cancelled: false,
            returncode: None,
        }
    }

    /// The terminal error of a cancelled call.
    #[must_use]
    pub fn cancelled() -> Self {
        Self {
            cancelled: true,
            ..Self::new(ErrorType::Cancelled, "remote call cancelled")
        }
    }

    /// The terminal error of a call whose outcome is not held.
    #[must_use]
    pub fn result_unavailable() -> Self {
        Self::new(
            ErrorType::ResultUnavailable,
            "the runtime does not hold this outcome (evicted, acked, or the id is unknown); retry as a new call",
        )
    }

    /// A message that breaks the rules of its kind.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorType::BadRequest, message)
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", self.error_type)
        } else {
            write!(f, "{}: {}", self.error_type, self.message)
        }
    }
}

impl std::error::Error for RemoteError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for known in ErrorType::KNOWN {
            assert_eq!(ErrorType::from(known.as_str()), known);
        }
        let other = ErrorType::from("ZeroDivisionError");
        assert_eq!(other, ErrorType::Other("ZeroDivisionError".into()));
        assert_eq!(other.as_str(), "ZeroDivisionError");
    }
}
