//! What one decode may cost.

use std::fmt;

/// The budgets of one decode.
///
/// Every budget has a default that fits this protocol; change one with the method of its name.
/// Exceeding one is [`DecodeErrorKind::Limit`](super::DecodeErrorKind::Limit) with the budget, what
/// was allowed, what was asked for, and the offset.
///
/// Depth never reaches the machine stack of this module, so by default a value may be as deep as the
/// input is long; set [`Limits::depth`] if your own code recurses into what it is given. Keys have
/// a budget of their own, since CPython cannot hash deep ones either.
///
/// Whatever the input, a decode takes at its peak at most 64 bytes of memory for each byte of it, and
/// 4096 beside: 192 for each under [`Policy::inspect`](super::Policy::inspect), which makes a record of
/// every instruction that others refuse. It comes near only where each byte makes an object of its own.
/// To this add 8 bytes for each [step of work](Limits::work_steps) where a stream asks for one thing
/// again and again, such as sets of one list: by default, 256 for each byte and 512 KiB beside.
///
/// ```
/// use agentix_protocol::safepickle::{Decoder, Limits, Policy};
/// let small = Limits::default().nodes(3);
/// let stream = b"(K\x01K\x02K\x03t."; // (1, 2, 3): four objects
/// assert!(Decoder::new(Policy::agentix(), small).decode(stream).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub(super) input_bytes: u64,
    pub(super) nodes: u64,
    pub(super) owned_bytes: u64,
    pub(super) memo_entries: u64,
    pub(super) integer_digits: u64,
    pub(super) depth: u64,
    pub(super) key_depth: u64,
    pub(super) work_base: u64,
    pub(super) work_per_byte: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 268_435_456,
            nodes: 16_777_216,
            owned_bytes: 268_435_456,
            memo_entries: 16_777_216,
            integer_digits: 4300,
            depth: u64::MAX,
            key_depth: 500,
            work_base: 65_536,
            work_per_byte: 32,
        }
    }
}

/// Offsets, counts and node numbers are 32 bits wide inside.
const WIDEST: u64 = u32::MAX as u64 - 1;

impl Limits {
    /// Bytes of input. Default 268,435,456 (256 MiB), the largest message of the protocol; no value
    /// lifts it above 4,294,967,294.
    #[must_use]
    pub fn input_bytes(mut self, bytes: u64) -> Self {
        self.input_bytes = bytes.min(WIDEST);
        self
    }

    /// Objects made. Default 16,777,216, the same as for msgpack messages; each costs 16 bytes, so
    /// this is 256 MiB at most. No value lifts it above 4,294,967,294.
    #[must_use]
    pub fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = nodes.min(WIDEST);
        self
    }

    /// Bytes that the decoder has to own since the input does not hold them in their final form:
    /// text with escapes, and big integers. Default 268,435,456. Plain `str` and `bytes` borrow.
    #[must_use]
    pub fn owned_bytes(mut self, bytes: u64) -> Self {
        self.owned_bytes = bytes.min(WIDEST);
        self
    }

    /// Memo entries held at once. Default 16,777,216; an index is never an allocation size.
    #[must_use]
    pub fn memo_entries(mut self, entries: u64) -> Self {
        self.memo_entries = entries.min(WIDEST);
        self
    }

    /// Decimal digits of one integer written as text. Default 4300, as in CPython: reading text is
    /// quadratic in its length. Binary integers are not affected.
    #[must_use]
    pub fn integer_digits(mut self, digits: u64) -> Self {
        self.integer_digits = digits;
        self
    }

    /// Nesting of the value: objects that hold objects, one inside the other. A cycle is without end,
    /// hence deeper than any budget. Default `u64::MAX`, which stands for none, and cycles are
    /// admitted.
    #[must_use]
    pub fn depth(mut self, depth: u64) -> Self {
        self.depth = depth;
        self
    }

    /// Nesting of tuples and frozensets inside one dict key or set element. Default 500.
    #[must_use]
    pub fn key_depth(mut self, depth: u64) -> Self {
        self.key_depth = depth;
        self
    }

    /// Steps of work beyond reading: one for each object or 32 bytes looked at while hashing and
    /// comparing keys, each time they are looked at; and what is copied, indexed or converted takes some
    /// each time that a stream asks for it. Allowed are `base + per_byte × input bytes`.
    /// Default 65,536 and 32.
    #[must_use]
    pub fn work_steps(mut self, base: u64, per_byte: u64) -> Self {
        self.work_base = base;
        self.work_per_byte = per_byte;
        self
    }

    pub(super) fn work_allowed(&self, input: usize) -> u64 {
        self.work_base
            .saturating_add(self.work_per_byte.saturating_mul(input as u64))
    }
}

/// Which budget of [`Limits`] was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limits::input_bytes`].
    InputBytes,
    /// [`Limits::nodes`].
    Nodes,
    /// [`Limits::owned_bytes`].
    OwnedBytes,
    /// [`Limits::memo_entries`].
    MemoEntries,
    /// [`Limits::integer_digits`].
    IntegerDigits,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::key_depth`].
    KeyDepth,
    /// [`Limits::work_steps`].
    WorkSteps,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InputBytes => "input_bytes",
            Self::Nodes => "nodes",
            Self::OwnedBytes => "owned_bytes",
            Self::MemoEntries => "memo_entries",
            Self::IntegerDigits => "integer_digits",
            Self::Depth => "depth",
            Self::KeyDepth => "key_depth",
            Self::WorkSteps => "work_steps",
        })
    }
}
