//! Pickle without execution: a decoder for bytes that an attacker may have written, and an encoder.
//!
//! A pickle is a program for a small stack machine, and Python's own readers let it call anything.
//! This decoder carries out the part that builds values and refuses, by name, whatever would
//! import or call something. What it returns is inert: a [`Document`] of plain values, or one of your
//! own types through serde.
//!
//! - [`from_slice`] decodes into a type; [`decode`] into a [`Document`]; [`from_value`] goes from the
//!   second to the first. [`Decoder`] does the same under a [`Policy`] and [`Limits`] of your own.
//! - [`to_vec`] encodes a type, [`encode`] a document or a part of one; [`to_value`] goes from a type
//!   to a document, and [`Builder`] makes one object by object.
//! - [`FromRecord`] is for classes of yours: what Python pickles of them becomes a type of yours.
//!
//! ```
//! use agentix_protocol::safepickle::{self, Protocol};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Score { name: String, points: Vec<u32> }
//!
//! let score = Score { name: "a".into(), points: vec![1, 2] };
//! let bytes = safepickle::to_vec(&score, Protocol::DEFAULT)?;
//! // In Python: pickle.loads(bytes) == {"name": "a", "points": [1, 2]}
//! assert_eq!(safepickle::from_slice::<Score>(&bytes)?, score);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! - Nothing is imported, called or looked up; there is no state outside of the call.
//! - No panic, whatever the input. Time and memory are at most a constant times the input, by the
//!   budgets of [`Limits`]; a declared size or memo index allocates nothing.
//! - Depth never reaches the machine stack: not on decode, drop, clone, compare, print or encode.
//!   Deserializing into a type follows that type, and ends with an error at
//!   [`MAX_TYPE_DEPTH`] levels.
//! - Frames are enforced: an opcode and its argument lie in one frame, so that there is one way to
//!   read a stream.

mod arena;
mod builder;
mod compare;
mod construct;
mod copy;
mod de;
mod de_access;
mod de_error;
mod de_kinds;
mod de_literal;
mod depth;
mod encode;
mod error;
mod forms;
mod from_record;
mod keys;
mod kind;
mod known;
mod leaf;
mod limits;
mod machine;
mod make;
mod memo;
mod names;
mod numeric;
mod object;
mod opcode;
mod policy;
mod print;
mod reader;
mod ser;
mod text;
mod types;
mod value;
mod view;
mod writer;

use serde::de::DeserializeOwned;

pub use arena::NodeId;
pub use builder::{BuildError, Builder};
pub use de::{MAX_TYPE_DEPTH, from_value, from_value_seed};
pub use de_error::{DeserializeError, DeserializeErrorKind, PathSegment};
pub use encode::encode;
pub use error::{DecodeError, DecodeErrorKind, Error, Malformed, TextRule, Unsupported};
pub use from_record::FromRecord;
pub use limits::{LimitKind, Limits};
pub use machine::Event;
pub use opcode::Opcode;
pub use policy::Policy;
pub use ser::{to_value, to_vec};
pub use types::decimal::{Decimal, DecimalForm};
pub use types::exception::{Exception, ExceptionClass};
pub use types::number::{Complex, Fraction};
pub use types::numpy;
pub use types::path::{Path, PathClass};
pub use types::record::{
    BashResult, ClaudeCodeResult, Framework, Origin, PrepareEnvResult, QwenCodeResult, Record,
    TunnelHandle, UploadResult,
};
pub use types::time::{Date, Datetime, Time, Timedelta, Timezone};
pub use types::uuid::{Uuid, UuidSafety};
pub use value::{Deque, Document, Entries, Global, Items, Kind, Range, Text, Value};
pub use writer::{EncodeError, Protocol};

/// A decoder: a [`Policy`] and [`Limits`], for any number of streams.
///
/// ```
/// use agentix_protocol::safepickle::{Decoder, Limits, Policy};
/// let decoder = Decoder::new(Policy::agentix(), Limits::default().input_bytes(1024));
/// let document = decoder.decode(b"\x80\x04\x8c\x02hi.")?;
/// assert_eq!(document.root().as_str(), Some("hi"));
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    policy: Policy,
    limits: Limits,
}

impl Decoder {
    /// A decoder with this policy and these limits.
    pub fn new(policy: Policy, limits: Limits) -> Self {
        Self { policy, limits }
    }

    /// Decodes the first pickle in `input`; bytes after its STOP are ignored, as in Python.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the stream is malformed, names a global that is not admitted, exceeds a
    /// limit or needs what is not supported. There is no partial value then.
    pub fn decode<'a>(&self, input: &'a [u8]) -> Result<Document<'a>, DecodeError> {
        machine::run(&self.policy, &self.limits, input)
    }

    /// [`Decoder::decode`] for bytes that the document is to own. They are not copied.
    ///
    /// # Errors
    ///
    /// As for [`Decoder::decode`].
    pub fn decode_owned(&self, input: Vec<u8>) -> Result<Document<'static>, DecodeError> {
        let without = self.decode(&input)?.with_input(Vec::new());
        Ok(without.with_input(input))
    }

    /// Decodes a pickle into a type of yours: [`Decoder::decode`], then [`from_value`], which tells how
    /// Python's types meet Rust's.
    ///
    /// ```
    /// use agentix_protocol::safepickle::{Decoder, Limits, Policy};
    /// #[derive(serde::Deserialize)]
    /// struct Point { x: i32 }
    ///
    /// // An object of the class `app.Point`, and its attribute.
    /// let stream = b"\x80\x04\x8c\x03app\x8c\x05Point\x93)\x81}\x8c\x01xK\x01sb.";
    /// let decoder = Decoder::new(Policy::agentix().allow("app", "Point"), Limits::default());
    /// assert_eq!(decoder.from_slice::<Point>(stream)?.x, 1);
    /// # Ok::<(), agentix_protocol::safepickle::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`from_slice`].
    pub fn from_slice<T: DeserializeOwned>(&self, input: &[u8]) -> Result<T, Error> {
        let document = self.decode(input)?;
        Ok(from_value(document.root())?)
    }

    /// [`Decoder::decode`], and tells `observe` of each instruction that is carried out and of each
    /// global and persistent id that the stream refers to, refused ones included.
    ///
    /// ```
    /// use agentix_protocol::safepickle::{Decoder, Event, Opcode};
    /// let mut opcodes = Vec::new();
    /// Decoder::default().decode_observed(b"K\x01.", |event| {
    ///     if let Event::Instruction { opcode, .. } = event {
    ///         opcodes.push(opcode);
    ///     }
    /// })?;
    /// assert_eq!(opcodes, [Opcode::BININT1, Opcode::STOP]);
    /// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Decoder::decode`].
    pub fn decode_observed<'a>(
        &self,
        input: &'a [u8],
        mut observe: impl FnMut(Event<'_>),
    ) -> Result<Document<'a>, DecodeError> {
        machine::run_observed(&self.policy, &self.limits, input, &mut observe)
    }
}

/// Decodes a pickle under [`Policy::agentix`] and the default [`Limits`].
///
/// # Errors
///
/// As for [`Decoder::decode`].
pub fn decode(input: &[u8]) -> Result<Document<'_>, DecodeError> {
    Decoder::default().decode(input)
}

/// Decodes a pickle under [`Policy::agentix`] and the default [`Limits`], into a type of yours.
///
/// How Python's types meet Rust's is told at [`from_value`].
///
/// # Errors
///
/// [`Error::Decode`] as for [`Decoder::decode`]; [`Error::Deserialize`] if the value is not of this type.
pub fn from_slice<T: DeserializeOwned>(input: &[u8]) -> Result<T, Error> {
    Decoder::default().from_slice(input)
}
