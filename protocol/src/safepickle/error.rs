//! Why a stream was not decoded.

use std::fmt;

use thiserror::Error;

use super::de_error::DeserializeError;
use super::limits::LimitKind;
use super::opcode::Opcode;
use super::types::numpy::NumpyRule;
use super::value::Kind;

/// A stream that was not decoded: what was wrong, at which opcode, at which offset.
///
/// ```
/// use agentix_protocol::safepickle::{self, DecodeErrorKind, Opcode};
/// let error = safepickle::decode(b"cos\nsystem\n.").unwrap_err();
/// assert_eq!(error.offset(), 0);
/// assert_eq!(error.opcode(), Some(Opcode::GLOBAL));
/// assert!(matches!(error.kind(), DecodeErrorKind::RefusedGlobal { module, qualname }
///     if module == "os" && qualname == "system"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} (offset {offset}{})", OpcodeSuffix(*.opcode))]
pub struct DecodeError {
    kind: DecodeErrorKind,
    offset: u64,
    opcode: Option<Opcode>,
}

impl DecodeError {
    pub(super) fn new(kind: DecodeErrorKind, offset: usize, opcode: Option<Opcode>) -> Self {
        Self {
            kind,
            offset: offset as u64,
            opcode,
        }
    }

    /// What was wrong.
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.kind
    }

    /// Where the opcode starts that could not be carried out, in bytes from the start of the input.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// That opcode; `None` if the stream ended where one was due, or was refused before the first.
    pub fn opcode(&self) -> Option<Opcode> {
        self.opcode
    }
}

struct OpcodeSuffix(Option<Opcode>);

impl fmt::Display for OpcodeSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(opcode) => write!(f, ", opcode {opcode}"),
            None => Ok(()),
        }
    }
}

/// Characters of a name that a message shows.
const MAX_SHOWN: usize = 200;

/// Text of a stranger's, safe to print and to log: what is not printable ASCII is escaped, and what is
/// long is cut.
struct Shown<'t>(&'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for char in chars.by_ref().take(MAX_SHOWN) {
            if char.is_ascii_graphic() || char == ' ' {
                write!(f, "{char}")?;
            } else {
                write!(f, "{}", char.escape_default())?;
            }
        }
        match chars.count() {
            0 => Ok(()),
            left => write!(f, "… ({left} more characters)"),
        }
    }
}

/// What was wrong with a stream.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The stream names a class or function that the policy does not admit. Names are in full and
    /// as they stand in the stream, lone surrogates written like `\ud800` and bytes that are no UTF-8
    /// like `\xff`.
    /// The message escapes what is not printable ASCII and cuts long names; the fields do not.
    #[error(
        "refused global {}.{}: the policy does not admit it; have the sender pass plain values instead, \
         or admit it by its exact name (`Policy::allow`), which calls nothing",
        Shown(.module), Shown(.qualname)
    )]
    RefusedGlobal {
        /// The module.
        module: String,
        /// The name inside the module, dots included.
        qualname: String,
    },
    /// The stream names a global by a number of CPython's extension registry, which is process-wide
    /// state of the sender that a receiver does not have.
    #[error(
        "refused extension code {code}: extension codes name globals, and none can be admitted"
    )]
    RefusedExtension {
        /// The code.
        code: i64,
    },
    /// The stream refers to an object outside of itself.
    #[error("refused persistent id {}: there is no store of objects to take it from", Shown(.id))]
    RefusedPersistentId {
        /// The id as text in the stream, or the kind of the value that stood for it.
        id: String,
    },
    /// The bytes are not a pickle that can be carried out.
    #[error("malformed pickle: {0}")]
    Malformed(Malformed),
    /// A budget of [`Limits`](super::Limits) was exceeded.
    #[error(
        "limit {limit} exceeded: {allowed} allowed, {value} or more needed (`Limits::{limit}`)"
    )]
    Limit {
        /// Which one.
        limit: LimitKind,
        /// What was allowed.
        allowed: u64,
        /// What the stream needed, at least.
        value: u64,
    },
    /// The opcode is known and its operands are valid, but this decoder does not carry it out.
    #[error("unsupported: {0}")]
    Unsupported(Unsupported),
}

/// Which rule of the format a stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The input ends inside an opcode's argument.
    #[error("the input ends inside an argument: {needed} bytes needed, {available} left")]
    Truncated {
        /// Bytes the argument takes.
        needed: u64,
        /// Bytes left.
        available: u64,
    },
    /// A line of text is not closed by a newline.
    #[error("a line of text has no newline at its end")]
    NoNewline,
    /// The input ends without STOP.
    #[error("the input ends without STOP")]
    NoStop,
    /// A frame is longer than the input.
    #[error("a frame of {size} bytes is longer than the {available} bytes left")]
    FrameTooLong {
        /// What FRAME states.
        size: u64,
        /// Bytes left.
        available: u64,
    },
    /// An opcode's argument crosses the end of its frame.
    #[error("an argument crosses the end of its frame")]
    FrameCrossed,
    /// A frame opens before the previous one has ended.
    #[error("a frame opens inside another frame")]
    FrameInFrame,
    /// No protocol has this opcode.
    #[error("there is no such opcode")]
    UnknownOpcode,
    /// PROTO states a protocol above 5.
    #[error("protocol {0} does not exist")]
    Protocol(u8),
    /// An operand is missing from the stack, or lies below an open mark.
    #[error("an operand is missing from the stack")]
    StackUnderflow,
    /// An opcode that takes operands down to a mark finds none.
    #[error("there is no open mark")]
    NoMark,
    /// A memo entry is read that was never stored.
    #[error("nothing was stored in the memo under {0}")]
    MemoMissing(u64),
    /// A size is negative.
    #[error("a size is negative")]
    NegativeSize,
    /// A line of text is not what the opcode wants.
    #[error("the text is not {0}")]
    Text(TextRule),
    /// A `str` is not UTF-8, surrogates admitted.
    #[error("a str is not UTF-8")]
    Utf8,
    /// A byte string of Python 2, or a global's name, holds a byte above 0x7f.
    #[error("text that must be ASCII is not")]
    NotAscii,
    /// A dict key or set element cannot be hashed.
    #[error("a {0} cannot be a key")]
    Unhashable(Kind),
    /// A dict is given a key without a value.
    #[error("a dict is given an odd number of operands")]
    OddOperands,
    /// A class or function is called with arguments that no pickler writes for it.
    #[error("the arguments are none that a pickler writes for this class")]
    Arguments,
    /// An object is given a state that it cannot have.
    #[error("a {0} cannot take this state")]
    NoState(Kind),
    /// The stream ends before an object was given the state without which it is none.
    #[error("the stream ends before an object was given its state")]
    Unbuilt,
    /// A numpy object is none.
    #[error("{0}")]
    Numpy(NumpyRule),
    /// An operand is of the wrong kind.
    #[error("expected {expected}, found {found}")]
    Operand {
        /// What the opcode wants.
        expected: &'static str,
        /// What lies on the stack.
        found: Kind,
    },
}

/// What a line of text should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextRule {
    /// A decimal integer without leading zeros.
    #[error("a decimal integer")]
    Integer,
    /// A finite decimal float, `inf` or `nan`.
    #[error("a float")]
    Float,
    /// An index: decimal digits.
    #[error("a memo index")]
    MemoIndex,
    /// A string between two equal quotes.
    #[error("between quotes")]
    Quoted,
    /// Valid escapes.
    #[error("free of broken escapes")]
    Escape,
}

/// What this decoder knows but does not carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A buffer that travels beside the stream; a message of this protocol has none.
    #[error("out-of-band buffers")]
    OutOfBandBuffer,
    /// A read-only view of a bytearray.
    #[error("a read-only view of a bytearray")]
    ReadOnlyBytearray,
}

/// Why [`from_slice`](super::from_slice) gave no value: the stream, or the type that was asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream was not decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The decoded value is not of the type that was asked for.
    #[error(transparent)]
    Deserialize(#[from] DeserializeError),
}
