//! Writing: the shortest form of everything, float 64, map keys in the given order.

use std::convert::Infallible;

use rmp::encode::{ByteBuf, ValueWriteError};

use super::{EXT_MODEL, EXT_NDARRAY, EXT_TIMESTAMP, Key, Value};
use crate::limits::MAX_DEPTH;

/// Why a value cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The value nests deeper than any reader accepts.
    #[error("more than {MAX_DEPTH} nested containers")]
    Depth,
    /// A string, bytes or container is longer than msgpack can say.
    #[error("{len} bytes or elements, more than 2^32-1")]
    Length {
        /// The length.
        len: usize,
    },
    /// An ndarray whose bytes would hold padding or references (AGX-COD).
    #[error("an ndarray of dtype {0:?}, which has padding bytes or references; convert it first")]
    Dtype(super::DtypeKind),
}

/// Writes msgpack into a growing buffer.
///
/// # Example
///
/// ```
/// use agentix_protocol::codec::Writer;
///
/// let mut w = Writer::default();
/// w.map(1);
/// w.str("call_id");
/// w.str("c");
/// assert_eq!(w.into_vec(), b"\x81\xa7call_id\xa1c");
/// ```
#[derive(Debug, Default)]
pub struct Writer(ByteBuf);

/// A buffer in memory takes every write.
fn done<T>(result: Result<T, ValueWriteError<Infallible>>) {
    if let Err(
        ValueWriteError::InvalidMarkerWrite(never) | ValueWriteError::InvalidDataWrite(never),
    ) = result
    {
        match never {}
    }
}

/// Lengths come from values in memory that are at most 256 MiB when they are messages; a longer
/// one is refused by [`Value::encode`] and by the size check on each edge.
fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Writer {
    /// A writer with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(ByteBuf::with_capacity(bytes))
    }

    /// `nil`.
    pub fn nil(&mut self) {
        match rmp::encode::write_nil(&mut self.0) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        match rmp::encode::write_bool(&mut self.0, value) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// An integer in its shortest form.
    pub fn int(&mut self, value: i64) {
        done(rmp::encode::write_sint(&mut self.0, value));
    }

    /// An unsigned integer in its shortest form.
    pub fn uint(&mut self, value: u64) {
        done(rmp::encode::write_uint(&mut self.0, value));
    }

    /// A float, always 64 bits.
    pub fn f64(&mut self, value: f64) {
        done(rmp::encode::write_f64(&mut self.0, value));
    }

    /// A string.
    pub fn str(&mut self, value: &str) {
        done(rmp::encode::write_str_len(&mut self.0, len32(value.len())));
        self.raw(value.as_bytes());
    }

    /// Bytes.
    pub fn bin(&mut self, value: &[u8]) {
        done(rmp::encode::write_bin_len(&mut self.0, len32(value.len())));
        self.raw(value);
    }

    /// The head of an array; its elements follow.
    pub fn array(&mut self, len: usize) {
        done(rmp::encode::write_array_len(&mut self.0, len32(len)));
    }

    /// The head of a map; its keys and values follow.
    pub fn map(&mut self, len: usize) {
        done(rmp::encode::write_map_len(&mut self.0, len32(len)));
    }

    /// An extension.
    pub fn ext(&mut self, code: i8, payload: &[u8]) {
        done(rmp::encode::write_ext_meta(
            &mut self.0,
            len32(payload.len()),
            code,
        ));
        self.raw(payload);
    }

    /// Bytes that are msgpack already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.as_mut_vec().extend_from_slice(bytes);
    }

    /// What was written.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl Value<'_> {
    /// Writes the value as one message.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] for what no reader would accept; nothing is written then.
    ///
    /// # Example
    ///
    /// ```
    /// use agentix_protocol::codec::Value;
    ///
    /// let bytes = Value::map([("a", Value::Bool(true))]).encode()?;
    /// assert_eq!(bytes, b"\x81\xa1a\xc3");
    /// # Ok::<(), agentix_protocol::codec::EncodeError>(())
    /// ```
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut writer = Writer::default();
        write(&mut writer, self, 0)?;
        Ok(writer.into_vec())
    }
}

/// Recursion ends at [`MAX_DEPTH`].
fn write(w: &mut Writer, value: &Value<'_>, depth: usize) -> Result<(), EncodeError> {
    let fits = |len: usize| match u32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(EncodeError::Length { len }),
    };
    match value {
        Value::Nil => w.nil(),
        Value::Bool(b) => w.bool(*b),
        Value::Int(n) => w.int(*n),
        Value::BigUint(n) => w.uint(*n),
        Value::F32(n) => w.f64((*n).into()),
        Value::F64(n) => w.f64(*n),
        Value::Str(text) => {
            fits(text.len())?;
            w.str(text);
        }
        Value::Bin(bytes) => {
            fits(bytes.len())?;
            w.bin(bytes);
        }
        Value::Array(_) | Value::Map(_) | Value::Model(_) if depth >= MAX_DEPTH => {
            return Err(EncodeError::Depth);
        }
        Value::Array(items) => {
            fits(items.len())?;
            w.array(items.len());
            for item in items {
                write(w, item, depth + 1)?;
            }
        }
        Value::Map(entries) => {
            fits(entries.len())?;
            w.map(entries.len());
            for (key, item) in entries {
                match key {
                    Key::Str(text) => {
                        fits(text.len())?;
                        w.str(text);
                    }
                    Key::Bin(bytes) => {
                        fits(bytes.len())?;
                        w.bin(bytes);
                    }
                }
                write(w, item, depth + 1)?;
            }
        }
        Value::NdArray(array) => {
            let payload = array.to_payload()?;
            fits(payload.len())?;
            w.ext(EXT_NDARRAY, &payload);
        }
        Value::Model(inner) => {
            let mut nested = Writer::default();
            write(&mut nested, inner, depth + 1)?;
            let payload = nested.into_vec();
            fits(payload.len())?;
            w.ext(EXT_MODEL, &payload);
        }
        Value::Timestamp(t) => w.ext(EXT_TIMESTAMP, &t.to_payload()),
        Value::Ext(code, data) => {
            fits(data.len())?;
            w.ext(*code, data);
        }
    }
    Ok(())
}
