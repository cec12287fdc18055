//! Identifiers, checked on construction.

use std::borrow::Borrow;
use std::fmt;

use crate::limits::MAX_CALL_ID_BYTES;
use crate::names;

/// Id of one call: 1 to 128 bytes of UTF-8, chosen by the host.
///
/// A host uses at least 122 random bits, because knowing an id is what entitles a connection to
/// cancel, ack or resume the call (AGX-CALL).
///
/// # Example
///
/// ```
/// use agentix_protocol::ident::CallId;
///
/// let id = CallId::from_random(7);
/// assert_eq!(id.as_str(), "00000000000000000000000000000007");
/// assert!(CallId::new("").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(Box<str>);

/// Why a string is not a [`CallId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCallId {
    /// The string is empty.
    #[error("a call id must not be empty")]
    Empty,
    /// The string is longer than 128 bytes.
    #[error("a call id has at most {MAX_CALL_ID_BYTES} bytes, this one has {len}")]
    TooLong {
        /// Length in bytes.
        len: usize,
    },
}

impl CallId {
    /// Checks a string.
    ///
    /// # Errors
    ///
    /// [`InvalidCallId`] when it is empty or longer than 128 bytes.
    pub fn new(id: impl Into<Box<str>>) -> Result<Self, InvalidCallId> {
        let id = id.into();
        match id.len() {
            0 => Err(InvalidCallId::Empty),
            len if len > MAX_CALL_ID_BYTES => Err(InvalidCallId::TooLong { len }),
            _ => Ok(Self(id)),
        }
    }

    /// Formats 128 random bits as 32 lowercase hex digits.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into())
    }

    /// The id as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for CallId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Id of one reliable stream (`_sid`): 1 to 64 bytes; worker processes use 8 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(Box<str>);

/// A string that is not a [`StreamId`]: empty, or longer than 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream id has 1 to 64 bytes, this one has {len}")]
pub struct InvalidStreamId {
    /// Length in bytes.
    pub len: usize,
}

impl StreamId {
    /// Checks a string.
    ///
    /// # Errors
    ///
    /// [`InvalidStreamId`] when it is empty or longer than 64 bytes.
    pub fn new(id: impl Into<Box<str>>) -> Result<Self, InvalidStreamId> {
        let id = id.into();
        match id.len() {
            1..=64 => Ok(Self(id)),
            len => Err(InvalidStreamId { len }),
        }
    }

    /// Formats 32 random bits as 8 lowercase hex digits.
    #[must_use]
    pub fn from_random(bits: u32) -> Self {
        Self(format!("{bits:08x}").into())
    }

    /// The id as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Position in a reliable stream; the first record has 1, so 0 means "nothing yet".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first record.
    pub const ZERO: Self = Self(0);

    /// The position after this one; the last position stays.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A Socket.IO namespace: `/`, or `/` and a name without comma, question mark, control
/// characters or white space, at most 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Box<str>);

/// Why a string is not a [`Namespace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNamespace {
    /// It does not begin with `/`.
    #[error("a namespace begins with '/'")]
    NoSlash,
    /// It is longer than 256 bytes.
    #[error("a namespace has at most 256 bytes, this one has {len}")]
    TooLong {
        /// Length in bytes.
        len: usize,
    },
    /// It holds a character that Socket.IO cannot carry there.
    #[error("a namespace cannot hold {found:?} (at byte {offset})")]
    Character {
        /// The character.
        found: char,
        /// Where, in bytes.
        offset: usize,
    },
}

impl Namespace {
    /// Checks a string.
    ///
    /// # Errors
    ///
    /// [`InvalidNamespace`] says which rule it breaks.
    pub fn new(name: impl Into<Box<str>>) -> Result<Self, InvalidNamespace> {
        let name = name.into();
        if !name.starts_with('/') {
            return Err(InvalidNamespace::NoSlash);
        }
        if name.len() > 256 {
            return Err(InvalidNamespace::TooLong { len: name.len() });
        }
        let bad =
            |c: char| matches!(c, ',' | '?' | '[' | '{') || c.is_control() || c.is_whitespace();
        match name.char_indices().find(|&(_, c)| bad(c)) {
            Some((offset, found)) => Err(InvalidNamespace::Character { found, offset }),
            None => Ok(Self(name)),
        }
    }

    /// `/rpc`.
    #[must_use]
    pub fn rpc() -> Self {
        Self(names::RPC.into())
    }

    /// `/log`.
    #[must_use]
    pub fn log() -> Self {
        Self(names::LOG.into())
    }

    /// `/trace`.
    #[must_use]
    pub fn trace() -> Self {
        Self(names::TRACE.into())
    }

    /// The name as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `/` and `/rpc`: a worker may not emit there (AGX-SIDE).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(&*self.0, "/" | names::RPC)
    }

    /// `/log` and `/trace`: reliable streams.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        matches!(&*self.0, names::LOG | names::TRACE)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_id_bounds() {
        assert_eq!(CallId::new(""), Err(InvalidCallId::Empty));
        assert!(CallId::new("x".repeat(128)).is_ok());
        assert_eq!(
            CallId::new("x".repeat(129)),
            Err(InvalidCallId::TooLong { len: 129 })
        );
        assert_eq!(CallId::from_random(u128::MAX).as_str().len(), 32);
    }

    #[test]
    fn namespaces() {
        assert!(Namespace::new("/").is_ok_and(|n| n.is_reserved()));
        assert!(Namespace::new("/app").is_ok_and(|n| !n.is_reserved() && !n.is_stream()));
        assert_eq!(Namespace::new("app"), Err(InvalidNamespace::NoSlash));
        assert_eq!(
            Namespace::new("/a,b"),
            Err(InvalidNamespace::Character {
                found: ',',
                offset: 2
            })
        );
        assert!(Namespace::log().is_stream() && Namespace::trace().is_stream());
    }

    #[test]
    fn stream_ids_and_positions() {
        assert_eq!(StreamId::from_random(0xab).as_str(), "000000ab");
        assert_eq!(StreamId::new(""), Err(InvalidStreamId { len: 0 }));
        assert_eq!(Seq::ZERO.next(), Seq(1));
        assert_eq!(Seq(u64::MAX).next(), Seq(u64::MAX));
    }
}
