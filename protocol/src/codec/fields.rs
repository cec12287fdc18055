//! Reading the named fields of a message, without building the rest.

use bytes::Bytes;

use super::scan::{Head, Scanner};
use super::{DecodeError, Keys, Limits};

/// Some fields of one message: each name beside the raw bytes of its value.
///
/// The whole message was checked; fields that nobody asked for were skipped, values are decoded
/// only when asked for, and `bin` values share the message's buffer.
///
/// # Example
///
/// ```
/// use agentix_protocol::codec::Fields;
/// use bytes::Bytes;
///
/// let message = Bytes::from_static(b"\x81\xa7call_id\xa1c");
/// let fields = Fields::parse(&message, &["call_id"])?.unwrap();
/// assert_eq!(fields.str("call_id")?, "c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fields {
    entries: Vec<(&'static str, Bytes)>,
}

/// A field that is missing or has another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}` {kind}")]
pub struct FieldError {
    /// Name of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub kind: FieldErrorKind,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldErrorKind {
    /// It is not there.
    #[error("is missing")]
    Missing,
    /// It has another type.
    #[error("is not {expected}")]
    Type {
        /// The type it must have.
        expected: &'static str,
    },
    /// It has the right type and a value that is not allowed.
    #[error("is not {expected}")]
    Value {
        /// What it must be.
        expected: &'static str,
    },
}

impl Fields {
    /// Reads the named fields of a message whose map keys are `str` or `bin` throughout; of a
    /// duplicate key the last value counts. `None` when the message is not a map.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes break a rule of the codec.
    pub fn parse(message: &Bytes, names: &[&'static str]) -> Result<Option<Self>, DecodeError> {
        Self::parse_relaying(message, names, &[])
    }

    /// Like [`Fields::parse`], but below the fields `relayed` any map key and any extension may
    /// stand: they are passed on, not read.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes break a rule of the codec.
    pub fn parse_relaying(
        message: &Bytes,
        names: &[&'static str],
        relayed: &[&'static str],
    ) -> Result<Option<Self>, DecodeError> {
        let limits = Limits::default();
        let mut scanner = Scanner::new(message, Keys::StrOrBin, &limits)?.peel_models()?;
        // Where the scanner's bytes begin in the message: inside an extension they are a part.
        let base = scanner.offset() - scanner.position();
        let Head::Map(len) = scanner.head()? else {
            // Not a map: it must still be one whole value.
            super::scan(message, Keys::StrOrBin, &limits)?;
            return Ok(None);
        };
        let mut entries: Vec<(&'static str, Bytes)> = Vec::new();
        for _ in 0..len {
            let key = scanner.key()?;
            let name = match key {
                Head::Str(text) => names.iter().copied().find(|name| *name == text),
                _ => None,
            };
            let start = base + scanner.position();
            match name {
                Some(name) if relayed.contains(&name) => scanner.skip_with(Keys::Any)?,
                // The message's map is one level of nesting already.
                _ => scanner.skip_below(1)?,
            }
            let Some(name) = name else { continue };
            let raw = message.slice(start..base + scanner.position());
            match entries.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = raw,
                None => entries.push((name, raw)),
            }
        }
        scanner.finish()?;
        Ok(Some(Self { entries }))
    }

    /// The raw msgpack of a field.
    #[must_use]
    pub fn raw(&self, field: &str) -> Option<&Bytes> {
        self.entries
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, raw)| raw)
    }

    fn head(&self, field: &'static str) -> Result<(Head<'_>, &Bytes), FieldError> {
        let missing = FieldError {
            field,
            kind: FieldErrorKind::Missing,
        };
        let raw = self.raw(field).ok_or(missing)?;
        let limits = Limits::default();
        let head = Scanner::new(raw, Keys::StrOrBin, &limits).and_then(|mut s| s.head());
        // The whole message was scanned, so the head is there.
        head.map(|head| (head, raw)).map_err(|_| missing)
    }

    fn wrong<T>(field: &'static str, expected: &'static str) -> Result<T, FieldError> {
        Err(FieldError {
            field,
            kind: FieldErrorKind::Type { expected },
        })
    }

    /// Is the field there with a value other than nil?
    #[must_use]
    pub fn has(&self, field: &'static str) -> bool {
        !matches!(self.head(field), Err(_) | Ok((Head::Nil, _)))
    }

    /// A string field.
    ///
    /// # Errors
    ///
    /// [`FieldError`] when it is missing or no `str`.
    pub fn str(&self, field: &'static str) -> Result<&str, FieldError> {
        match self.head(field)?.0 {
            Head::Str(text) => Ok(text),
            _ => Self::wrong(field, "a str"),
        }
    }

    /// A bytes field, sharing the message's buffer.
    ///
    /// # Errors
    ///
    /// [`FieldError`] when it is missing or no `bin` (AGX-RPC-016).
    pub fn bin(&self, field: &'static str) -> Result<Bytes, FieldError> {
        let (head, raw) = self.head(field)?;
        match head {
            Head::Bin(bytes) => Ok(raw.slice(raw.len() - bytes.len()..)),
            _ => Self::wrong(field, "a bin"),
        }
    }

    /// A boolean field.
    ///
    /// # Errors
    ///
    /// [`FieldError`] when it is missing or no `bool`.
    pub fn bool(&self, field: &'static str) -> Result<bool, FieldError> {
        match self.head(field)?.0 {
            Head::Bool(b) => Ok(b),
            _ => Self::wrong(field, "a bool"),
        }
    }

    /// An integer field.
    ///
    /// # Errors
    ///
    /// [`FieldError`] when it is missing or no integer that an `i64` holds.
    pub fn int(&self, field: &'static str) -> Result<i64, FieldError> {
        match self.head(field)?.0 {
            Head::Int(n) => Ok(n),
            Head::Uint(n) => i64::try_from(n).or_else(|_| Self::wrong(field, "an i64")),
            _ => Self::wrong(field, "an integer"),
        }
    }

    /// The named fields of a map field.
    ///
    /// # Errors
    ///
    /// [`FieldError`] when it is missing or no map.
    pub fn map(&self, field: &'static str, names: &[&'static str]) -> Result<Self, FieldError> {
        let (_, raw) = self.head(field)?;
        match Self::parse(raw, names) {
            Ok(Some(fields)) => Ok(fields),
            _ => Self::wrong(field, "a map"),
        }
    }

    /// The strings of an array field; other elements are skipped, as is a value that is no array.
    #[must_use]
    pub fn strings(&self, field: &'static str) -> Vec<&str> {
        let Some(raw) = self.raw(field) else {
            return Vec::new();
        };
        let limits = Limits::default();
        let Ok(mut scanner) = Scanner::new(raw, Keys::StrOrBin, &limits) else {
            return Vec::new();
        };
        let Ok(Head::Array(len)) = scanner.head() else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for _ in 0..len {
            let before = scanner.position();
            if scanner.skip().is_err() {
                break;
            }
            let element = &raw[before..scanner.position()];
            if let Ok(Head::Str(text)) =
                Scanner::new(element, Keys::StrOrBin, &limits).and_then(|mut s| s.head())
            {
                out.push(text);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::DecodeErrorKind;
    use crate::limits::MAX_DEPTH;

    /// AGX-COD-017: the map of the message is one level.
    #[test]
    fn depth_counts_the_message_itself() {
        let nested = |levels: usize| {
            let mut message = b"\x81\xa1x".to_vec();
            message.extend(std::iter::repeat_n(0x91, levels - 1));
            message.push(0xc0);
            Bytes::from(message)
        };
        assert!(Fields::parse(&nested(MAX_DEPTH), &["x"]).is_ok());
        let error = Fields::parse(&nested(MAX_DEPTH + 1), &["x"]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Depth { limit: MAX_DEPTH });
    }
}
