//! One pass over msgpack bytes that checks every rule and builds nothing.

use rmp::Marker;

use super::{DecodeError, DecodeErrorKind, EXT_MODEL, EXT_TIMESTAMP};
use crate::limits;

/// Bounds on one message; all apply before anything is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Most bytes: 256 MiB by default, the limit of every edge.
    pub bytes: usize,
    /// Most values, containers and map keys included: 2^24 by default, at most 64 bytes of
    /// memory each when a tree is built.
    pub values: usize,
    /// Most nested containers: 1,024 by default, what CPython's msgpack takes.
    pub depth: usize,
    /// Most nested models (extension 2): 16 by default.
    pub model_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: limits::MAX_MESSAGE_BYTES,
            values: limits::MAX_VALUES,
            depth: limits::MAX_DEPTH,
            model_depth: limits::MAX_MODEL_DEPTH,
        }
    }
}

/// Which map keys are acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// `str` and `bin` only: what a message of the protocol itself holds.
    StrOrBin,
    /// Any value: plugin data that is relayed and not read (AGX-SIDE).
    Any,
}

/// Checks one whole message: every rule of the codec, without building a tree.
///
/// # Errors
///
/// [`DecodeError`] names the rule and the offset.
///
/// # Example
///
/// ```
/// use agentix_protocol::codec::{DecodeErrorKind, Keys, Limits, scan};
///
/// assert!(scan(&[0x81, 0xa1, b'a', 0x01], Keys::StrOrBin, &Limits::default()).is_ok());
/// let error = scan(&[0x81, 0x01, 0x01], Keys::StrOrBin, &Limits::default()).unwrap_err();
/// assert_eq!((error.kind, error.offset), (DecodeErrorKind::KeyType, 1));
/// ```
pub fn scan(bytes: &[u8], keys: Keys, limits: &Limits) -> Result<(), DecodeError> {
    let mut scanner = Scanner::new(bytes, keys, limits)?;
    scanner.skip()?;
    scanner.finish()
}

/// What stands at one position: a value's head, decoded.
pub(super) enum Head<'a> {
    Nil,
    Bool(bool),
    Uint(u64),
    Int(i64),
    F32(f32),
    F64(f64),
    Str(&'a str),
    Bin(&'a [u8]),
    Array(u32),
    Map(u32),
    Ext(i8, &'a [u8]),
}

/// A cursor over one message that counts values against the limits.
pub(super) struct Scanner<'a, 'l> {
    bytes: &'a [u8],
    pos: usize,
    values: usize,
    keys: Keys,
    limits: &'l Limits,
    /// Offset of `bytes` in the whole message, for nested extension payloads.
    base: usize,
}

impl<'a, 'l> Scanner<'a, 'l> {
    pub(super) fn new(
        bytes: &'a [u8],
        keys: Keys,
        limits: &'l Limits,
    ) -> Result<Self, DecodeError> {
        if bytes.len() > limits.bytes {
            let kind = DecodeErrorKind::Bytes {
                len: bytes.len(),
                limit: limits.bytes,
            };
            return Err(DecodeError {
                kind,
                offset: limits.bytes,
            });
        }
        Ok(Self {
            bytes,
            pos: 0,
            values: 0,
            keys,
            limits,
            base: 0,
        })
    }

    /// A cursor over an extension's payload that goes on with this one's count.
    pub(super) fn nested(&self, payload: &'a [u8], offset: usize) -> Self {
        Self {
            bytes: payload,
            pos: 0,
            values: self.values,
            keys: self.keys,
            limits: self.limits,
            base: offset,
        }
    }

    pub(super) fn limits(&self) -> &'l Limits {
        self.limits
    }

    /// Position in `bytes`.
    pub(super) fn position(&self) -> usize {
        self.pos
    }

    /// Position in the whole message.
    pub(super) fn offset(&self) -> usize {
        self.base + self.pos
    }

    pub(super) fn values(&self) -> usize {
        self.values
    }

    pub(super) fn set_values(&mut self, values: usize) {
        self.values = values;
    }

    pub(super) fn error(&self, kind: DecodeErrorKind, pos: usize) -> DecodeError {
        DecodeError {
            kind,
            offset: self.base + pos,
        }
    }

    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        match self.bytes.len() - self.pos {
            0 => Ok(()),
            extra => Err(self.error(DecodeErrorKind::Trailing { extra }, self.pos)),
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.pos..];
        let Some(taken) = rest.get(..len) else {
            return Err(self.error(DecodeErrorKind::Truncated, self.bytes.len()));
        };
        self.pos += len;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn len8(&mut self) -> Result<usize, DecodeError> {
        Ok(usize::from(u8::from_be_bytes(self.number()?)))
    }

    fn len16(&mut self) -> Result<usize, DecodeError> {
        Ok(usize::from(u16::from_be_bytes(self.number()?)))
    }

    fn len32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.number()?))
    }

    fn str(&mut self, len: usize) -> Result<Head<'a>, DecodeError> {
        let start = self.pos;
        let raw = self.take(len)?;
        match std::str::from_utf8(raw) {
            Ok(text) => Ok(Head::Str(text)),
            Err(e) => Err(self.error(DecodeErrorKind::InvalidUtf8, start + e.valid_up_to())),
        }
    }

    fn ext(&mut self, len: usize) -> Result<Head<'a>, DecodeError> {
        let start = self.pos;
        let code = i8::from_be_bytes(self.number()?);
        let payload = self.take(len)?;
        if code < 0 && code != EXT_TIMESTAMP && self.keys == Keys::StrOrBin {
            return Err(self.error(DecodeErrorKind::ExtCode { code }, start));
        }
        Ok(Head::Ext(code, payload))
    }

    /// Reads one head; a container's elements follow.
    pub(super) fn head(&mut self) -> Result<Head<'a>, DecodeError> {
        let start = self.pos;
        if self.values >= self.limits.values {
            return Err(self.error(
                DecodeErrorKind::Values {
                    limit: self.limits.values,
                },
                start,
            ));
        }
        self.values += 1;
        let [byte] = self.number()?;
        // u32 lengths fit usize on every platform that Rust's std supports here (>= 32 bits).
        Ok(match Marker::from_u8(byte) {
            Marker::Null => Head::Nil,
            Marker::True => Head::Bool(true),
            Marker::False => Head::Bool(false),
            Marker::FixPos(n) => Head::Uint(n.into()),
            Marker::FixNeg(n) => Head::Int(n.into()),
            Marker::U8 => Head::Uint(u8::from_be_bytes(self.number()?).into()),
            Marker::U16 => Head::Uint(u16::from_be_bytes(self.number()?).into()),
            Marker::U32 => Head::Uint(u32::from_be_bytes(self.number()?).into()),
            Marker::U64 => Head::Uint(u64::from_be_bytes(self.number()?)),
            Marker::I8 => Head::Int(i8::from_be_bytes(self.number()?).into()),
            Marker::I16 => Head::Int(i16::from_be_bytes(self.number()?).into()),
            Marker::I32 => Head::Int(i32::from_be_bytes(self.number()?).into()),
            Marker::I64 => Head::Int(i64::from_be_bytes(self.number()?)),
            Marker::F32 => Head::F32(f32::from_be_bytes(self.number()?)),
            Marker::F64 => Head::F64(f64::from_be_bytes(self.number()?)),
            Marker::FixStr(len) => self.str(len.into())?,
            Marker::Str8 => {
                let len = self.len8()?;
                self.str(len)?
            }
            Marker::Str16 => {
                let len = self.len16()?;
                self.str(len)?
            }
            Marker::Str32 => {
                let len = self.len32()? as usize;
                self.str(len)?
            }
            Marker::Bin8 => {
                let len = self.len8()?;
                Head::Bin(self.take(len)?)
            }
            Marker::Bin16 => {
                let len = self.len16()?;
                Head::Bin(self.take(len)?)
            }
            Marker::Bin32 => {
                let len = self.len32()? as usize;
                Head::Bin(self.take(len)?)
            }
            Marker::FixArray(len) => Head::Array(len.into()),
            Marker::Array16 => Head::Array(self.len16()? as u32),
            Marker::Array32 => Head::Array(self.len32()?),
            Marker::FixMap(len) => Head::Map(len.into()),
            Marker::Map16 => Head::Map(self.len16()? as u32),
            Marker::Map32 => Head::Map(self.len32()?),
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => {
                let len = self.len8()?;
                self.ext(len)?
            }
            Marker::Ext16 => {
                let len = self.len16()?;
                self.ext(len)?
            }
            Marker::Ext32 => {
                let len = self.len32()? as usize;
                self.ext(len)?
            }
            Marker::Reserved => return Err(self.error(DecodeErrorKind::Reserved, start)),
        })
    }

    /// Reads a head where a map key stands.
    pub(super) fn key(&mut self) -> Result<Head<'a>, DecodeError> {
        let start = self.pos;
        match self.head()? {
            head @ (Head::Str(_) | Head::Bin(_)) => Ok(head),
            _ => Err(self.error(DecodeErrorKind::KeyType, start)),
        }
    }

    /// Skips one whole value under another rule for keys.
    pub(super) fn skip_with(&mut self, keys: Keys) -> Result<(), DecodeError> {
        let before = std::mem::replace(&mut self.keys, keys);
        let result = self.skip();
        self.keys = before;
        result
    }

    /// Skips one whole value, checking it.
    pub(super) fn skip(&mut self) -> Result<(), DecodeError> {
        self.skip_below(0)
    }

    /// Skips one whole value below `outer` open containers, checking it, with a stack that the
    /// depth limit bounds.
    pub(super) fn skip_below(&mut self, outer: usize) -> Result<(), DecodeError> {
        // One entry an open container: items left, and whether the next is a key.
        let mut open: Vec<Open> = Vec::new();
        loop {
            let start = self.pos;
            let head = match open.last() {
                Some(Open {
                    is_map: true,
                    next_is_key: true,
                    ..
                }) if self.keys == Keys::StrOrBin => self.key()?,
                _ => self.head()?,
            };
            let opened = match head {
                Head::Array(len) => Some(Open::array(len)),
                Head::Map(len) => Some(Open::map(len)),
                Head::Ext(EXT_TIMESTAMP, payload) if self.keys == Keys::StrOrBin => {
                    super::value::Timestamp::parse(payload)
                        .ok_or_else(|| self.error(DecodeErrorKind::Timestamp, start))?;
                    None
                }
                _ => None,
            };
            if let Some(frame) = opened {
                if outer + open.len() >= self.limits.depth {
                    let kind = DecodeErrorKind::Depth {
                        limit: self.limits.depth,
                    };
                    return Err(self.error(kind, start));
                }
                if frame.left > 0 {
                    open.push(frame);
                    continue;
                }
            }
            // A value is complete: close every container that it completes.
            loop {
                let Some(top) = open.last_mut() else {
                    return Ok(());
                };
                top.left -= 1;
                top.next_is_key = !top.next_is_key;
                if top.left > 0 {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Follows extension 2 down to the first value that is not a model.
    ///
    /// Returns the cursor that stands before that value.
    pub(super) fn peel_models(mut self) -> Result<Self, DecodeError> {
        for _ in 0..=self.limits.model_depth {
            let mut probe = self.nested(self.bytes, self.base);
            probe.pos = self.pos;
            match probe.head() {
                Ok(Head::Ext(EXT_MODEL, payload)) => {
                    probe.finish()?;
                    let offset = probe.offset() - payload.len();
                    self = probe.nested(payload, offset);
                }
                _ => return Ok(self),
            }
        }
        let kind = DecodeErrorKind::ModelDepth {
            limit: self.limits.model_depth,
        };
        Err(self.error(kind, self.pos))
    }
}

struct Open {
    /// Items left; a map entry counts twice.
    left: u64,
    is_map: bool,
    next_is_key: bool,
}

impl Open {
    fn array(len: u32) -> Self {
        Self {
            left: len.into(),
            is_map: false,
            next_is_key: false,
        }
    }

    fn map(len: u32) -> Self {
        Self {
            left: u64::from(len) * 2,
            is_map: true,
            next_is_key: true,
        }
    }
}
