//! The value tree: what plugin data, logs and tests look at.

use std::borrow::Cow;
use std::collections::HashMap;

use super::scan::{Head, Scanner};
use super::{
    DecodeError, DecodeErrorKind, EXT_MODEL, EXT_NDARRAY, EXT_TIMESTAMP, Keys, Limits, NdArray,
};

/// One msgpack value; large strings and bytes borrow from the message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `nil`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer from -2^63 to 2^63-1.
    Int(i64),
    /// An integer from 2^63 to 2^64-1; smaller ones are [`Value::Int`].
    BigUint(u64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A string.
    Str(Cow<'a, str>),
    /// Bytes.
    Bin(Cow<'a, [u8]>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// A map in wire order; of duplicate keys the first position and the last value stay.
    Map(Vec<(Key<'a>, Value<'a>)>),
    /// Extension 1: an ndarray.
    NdArray(Box<NdArray<'a>>),
    /// Extension 2: a dumped model, decoded to its content.
    Model(Box<Value<'a>>),
    /// Extension -1: a point in time.
    Timestamp(Timestamp),
    /// Extension 0 and 3 to 127: passed through.
    Ext(i8, Cow<'a, [u8]>),
}

/// A map key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// A string.
    Str(Cow<'a, str>),
    /// Bytes.
    Bin(Cow<'a, [u8]>),
}

/// Extension -1: seconds since the Unix epoch, and nanoseconds within the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z; may be negative.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanoseconds: u32,
}

impl Timestamp {
    pub(super) fn parse(payload: &[u8]) -> Option<Self> {
        let (seconds, nanoseconds) = match *payload {
            [a, b, c, d] => (i64::from(u32::from_be_bytes([a, b, c, d])), 0),
            [a, b, c, d, e, f, g, h] => {
                let both = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                // 34 and 30 bits: neither cast can lose any.
                ((both & 0x3_ffff_ffff) as i64, (both >> 34) as u32)
            }
            [a, b, c, d, ref rest @ ..] if rest.len() == 8 => {
                let mut seconds = [0; 8];
                seconds.copy_from_slice(rest);
                (
                    i64::from_be_bytes(seconds),
                    u32::from_be_bytes([a, b, c, d]),
                )
            }
            _ => return None,
        };
        (nanoseconds < 1_000_000_000).then_some(Self {
            seconds,
            nanoseconds,
        })
    }

    pub(super) fn to_payload(self) -> Vec<u8> {
        match u64::try_from(self.seconds) {
            Ok(seconds) if self.nanoseconds == 0 && seconds <= u64::from(u32::MAX) => {
                (seconds as u32).to_be_bytes().to_vec()
            }
            Ok(seconds) if seconds < 1 << 34 => (u64::from(self.nanoseconds) << 34 | seconds)
                .to_be_bytes()
                .to_vec(),
            _ => {
                let mut out = self.nanoseconds.to_be_bytes().to_vec();
                out.extend_from_slice(&self.seconds.to_be_bytes());
                out
            }
        }
    }
}

impl<'a> Value<'a> {
    /// Reads one whole message under the default limits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] names the rule and the offset.
    ///
    /// # Example
    ///
    /// ```
    /// use agentix_protocol::codec::Value;
    ///
    /// let value = Value::decode(&[0x81, 0xa1, b'a', 0x05])?;
    /// assert_eq!(value.field("a"), Some(&Value::Int(5)));
    /// # Ok::<(), agentix_protocol::codec::DecodeError>(())
    /// ```
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_with(bytes, &Limits::default())
    }

    /// Reads one whole message under the given limits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] names the rule and the offset.
    pub fn decode_with(bytes: &'a [u8], limits: &Limits) -> Result<Self, DecodeError> {
        let mut scanner = Scanner::new(bytes, Keys::StrOrBin, limits)?;
        let value = build(&mut scanner, 0, 0)?;
        scanner.finish()?;
        Ok(value)
    }

    /// Builds a map with string keys, in the given order.
    pub fn map<const N: usize>(entries: [(&'a str, Value<'a>); N]) -> Self {
        Self::Map(entries.map(|(k, v)| (Key::Str(k.into()), v)).into())
    }

    /// The value under a string key; `None` when this is no map or has no such key.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(key, _)| matches!(key, Key::Str(text) if text == name))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if this is `bin`.
    #[must_use]
    pub fn as_bin(&self) -> Option<&[u8]> {
        match self {
            Self::Bin(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The integer, if this is one that an `i64` holds.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// The integer, if this is one that a `u64` holds.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(n) => u64::try_from(*n).ok(),
            Self::BigUint(n) => Some(*n),
            _ => None,
        }
    }

    /// The float, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F64(n) => Some(*n),
            Self::F32(n) => Some((*n).into()),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&[(Key<'a>, Value<'a>)]> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Copies what is borrowed.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Nil => Value::Nil,
            Self::Bool(b) => Value::Bool(b),
            Self::Int(n) => Value::Int(n),
            Self::BigUint(n) => Value::BigUint(n),
            Self::F32(n) => Value::F32(n),
            Self::F64(n) => Value::F64(n),
            Self::Str(text) => Value::Str(Cow::Owned(text.into_owned())),
            Self::Bin(bytes) => Value::Bin(Cow::Owned(bytes.into_owned())),
            Self::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Self::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(k, v)| (k.into_owned(), v.into_owned()))
                    .collect(),
            ),
            Self::NdArray(array) => Value::NdArray(Box::new(array.into_owned())),
            Self::Model(inner) => Value::Model(Box::new(inner.into_owned())),
            Self::Timestamp(t) => Value::Timestamp(t),
            Self::Ext(code, data) => Value::Ext(code, Cow::Owned(data.into_owned())),
        }
    }
}

impl Key<'_> {
    /// Copies what is borrowed.
    #[must_use]
    pub fn into_owned(self) -> Key<'static> {
        match self {
            Self::Str(text) => Key::Str(Cow::Owned(text.into_owned())),
            Self::Bin(bytes) => Key::Bin(Cow::Owned(bytes.into_owned())),
        }
    }
}

enum Open<'a> {
    Array {
        items: Vec<Value<'a>>,
        left: u32,
    },
    Map {
        entries: Entries<'a>,
        key: Option<Key<'a>>,
        left: u32,
    },
}

/// Map entries under construction, with an index once a linear search would cost.
#[derive(Default)]
struct Entries<'a> {
    list: Vec<(Key<'a>, Value<'a>)>,
    index: HashMap<Key<'a>, usize>,
}

impl<'a> Entries<'a> {
    const LINEAR: usize = 16;

    fn insert(&mut self, key: Key<'a>, value: Value<'a>) {
        let found = if self.list.len() < Self::LINEAR {
            self.list.iter().position(|(k, _)| *k == key)
        } else {
            if self.index.is_empty() {
                self.index = self
                    .list
                    .iter()
                    .enumerate()
                    .map(|(i, (k, _))| (k.clone(), i))
                    .collect();
            }
            self.index.get(&key).copied()
        };
        match found {
            Some(i) => self.list[i].1 = value,
            None => {
                if self.list.len() >= Self::LINEAR {
                    self.index.insert(key.clone(), self.list.len());
                }
                self.list.push((key, value));
            }
        }
    }
}

/// Builds the value at the cursor. Recursion happens only into extension 2, `model_depth` deep.
fn build<'a>(
    scanner: &mut Scanner<'a, '_>,
    depth: usize,
    models: usize,
) -> Result<Value<'a>, DecodeError> {
    let limit = scanner.limits().depth;
    let mut open: Vec<Open<'a>> = Vec::new();
    loop {
        let start = scanner.position();
        if let Some(Open::Map {
            key: key @ None, ..
        }) = open.last_mut()
        {
            *key = Some(match scanner.key()? {
                Head::Str(text) => Key::Str(text.into()),
                Head::Bin(bytes) => Key::Bin(bytes.into()),
                // `key` returns nothing else.
                _ => return Err(scanner.error(DecodeErrorKind::KeyType, start)),
            });
            continue;
        }
        let mut value = match scanner.head()? {
            Head::Nil => Value::Nil,
            Head::Bool(b) => Value::Bool(b),
            Head::Uint(n) => i64::try_from(n).map_or(Value::BigUint(n), Value::Int),
            Head::Int(n) => Value::Int(n),
            Head::F32(n) => Value::F32(n),
            Head::F64(n) => Value::F64(n),
            Head::Str(text) => Value::Str(text.into()),
            Head::Bin(bytes) => Value::Bin(bytes.into()),
            Head::Array(_) | Head::Map(_) if depth + open.len() >= limit => {
                return Err(scanner.error(DecodeErrorKind::Depth { limit }, start));
            }
            Head::Array(0) => Value::Array(Vec::new()),
            Head::Map(0) => Value::Map(Vec::new()),
            Head::Array(left) => {
                open.push(Open::Array {
                    items: Vec::new(),
                    left,
                });
                continue;
            }
            Head::Map(left) => {
                open.push(Open::Map {
                    entries: Entries::default(),
                    key: None,
                    left,
                });
                continue;
            }
            Head::Ext(EXT_NDARRAY, payload) => {
                let array = NdArray::parse(payload)
                    .map_err(|e| scanner.error(DecodeErrorKind::NdArray(e), start))?;
                Value::NdArray(Box::new(array))
            }
            Head::Ext(EXT_MODEL, payload) => {
                let limit = scanner.limits().model_depth;
                if models >= limit {
                    return Err(scanner.error(DecodeErrorKind::ModelDepth { limit }, start));
                }
                let mut inner = scanner.nested(payload, scanner.offset() - payload.len());
                let value = build(&mut inner, depth + open.len(), models + 1)?;
                inner.finish()?;
                scanner.set_values(inner.values());
                Value::Model(Box::new(value))
            }
            Head::Ext(EXT_TIMESTAMP, payload) => Value::Timestamp(
                Timestamp::parse(payload)
                    .ok_or_else(|| scanner.error(DecodeErrorKind::Timestamp, start))?,
            ),
            Head::Ext(code, payload) => Value::Ext(code, payload.into()),
        };
        // A value is complete: put it into its container, and close what that completes.
        loop {
            let left = match open.last_mut() {
                None => return Ok(value),
                Some(Open::Array { items, left }) => {
                    items.push(value);
                    *left -= 1;
                    *left
                }
                Some(Open::Map { entries, key, left }) => {
                    if let Some(key) = key.take() {
                        entries.insert(key, value);
                    }
                    *left -= 1;
                    *left
                }
            };
            if left > 0 {
                break;
            }
            value = match open.pop() {
                Some(Open::Array { items, .. }) => Value::Array(items),
                Some(Open::Map { entries, .. }) => Value::Map(entries.list),
                // The loop just saw a container on top.
                None => Value::Nil,
            };
        }
    }
}
