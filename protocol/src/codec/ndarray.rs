//! Extension 1: an ndarray as `dtype|d0,d1,…`, NUL, and the items in C order.

use std::borrow::Cow;
use std::fmt;

use super::EncodeError;

/// Most dimensions, as in numpy 2.
const MAX_DIMENSIONS: usize = 64;
/// Most digits of one shape entry: enough for 64 bits with leading zeros to spare.
const MAX_ENTRY_DIGITS: usize = 4300;

/// An array with its element type and shape; the items are raw bytes in C order.
///
/// # Example
///
/// ```
/// use agentix_protocol::codec::{Dtype, NdArray};
///
/// let array = NdArray::new(Dtype::parse("<i2")?, vec![2, 1], vec![1, 0, 2, 0])?;
/// assert_eq!(array.dtype().to_string(), "<i2");
/// assert_eq!(array.shape(), [2, 1]);
/// # Ok::<(), agentix_protocol::codec::InvalidNdArray>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdArray<'a> {
    dtype: Dtype,
    shape: Vec<u64>,
    data: Cow<'a, [u8]>,
}

/// An element type that can stand in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dtype {
    order: Order,
    kind: DtypeKind,
    /// Bytes of one item.
    item_size: usize,
    /// With datetime64 and timedelta64: the unit as numpy writes it, such as `25s`.
    unit: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
    Irrelevant,
}

/// What the items of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DtypeKind {
    /// `b`: one byte, 0 or 1.
    Bool,
    /// `i`: 1, 2, 4 or 8 bytes.
    Int,
    /// `u`: 1, 2, 4 or 8 bytes.
    Uint,
    /// `f`: 2, 4 or 8 bytes.
    Float,
    /// `f` of 16 bytes: the x87 type, whose items hold padding.
    LongDouble,
    /// `c`: two floats, 8 or 16 bytes together.
    Complex,
    /// `c` of 32 bytes: two x87 floats, whose items hold padding.
    LongComplex,
    /// `S`: bytes padded with NUL.
    Bytes,
    /// `U`: UCS-4 text padded with NUL.
    Str,
    /// `M`: 8 bytes.
    DateTime,
    /// `m`: 8 bytes.
    TimeDelta,
}

/// Which rule an ndarray breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidNdArray {
    /// There is no NUL after the header.
    #[error("no NUL ends the header")]
    NoTerminator,
    /// The header is not ASCII.
    #[error("the header is not ASCII")]
    NotAscii,
    /// The header has no `|`.
    #[error("the header is not dtype|shape")]
    Header,
    /// numpy has no such type.
    #[error("unknown dtype {0:?}")]
    UnknownDtype(String),
    /// The type holds references, fields or nothing.
    #[error("dtype {0:?} is not allowed (object, void, structured, subarray or zero-size)")]
    RefusedDtype(String),
    /// A shape entry is no integer.
    #[error("shape entry {0:?} is not an integer")]
    ShapeEntry(String),
    /// A shape entry is negative.
    #[error("a negative shape entry")]
    Negative,
    /// More dimensions than 64.
    #[error("{0} dimensions, more than 64")]
    Dimensions(usize),
    /// The shape does not account for the bytes that are there.
    #[error("the shape does not match {len} bytes of data")]
    Size {
        /// Bytes of data.
        len: usize,
    },
}

impl Dtype {
    /// Reads an element type as numpy writes it (`<f8`, `|u1`, `<M8[ns]`), or one of numpy's
    /// short names (`float64`, `int`, `d`).
    ///
    /// # Errors
    ///
    /// [`InvalidNdArray::UnknownDtype`] or [`InvalidNdArray::RefusedDtype`].
    pub fn parse(text: &str) -> Result<Self, InvalidNdArray> {
        let unknown = || InvalidNdArray::UnknownDtype(text.to_owned());
        let refused = || InvalidNdArray::RefusedDtype(text.to_owned());
        // Structured and subarray spellings, and leading repeat counts.
        if text.starts_with('(') || text.contains(',') && !text.starts_with('{') {
            return Err(refused());
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(refused());
        }
        let (order, code) = match text.as_bytes().first() {
            Some(b'<' | b'=') => (Order::Little, &text[1..]),
            Some(b'>') => (Order::Big, &text[1..]),
            Some(b'|') => (Order::Irrelevant, &text[1..]),
            _ => (Order::Little, text),
        };
        let code = expand_name(code);
        let mut chars = code.chars();
        let letter = chars.next().ok_or_else(unknown)?;
        let rest = chars.as_str();
        let (size, unit) = match rest.split_once('[') {
            Some((size, unit)) => (size, Some(unit.strip_suffix(']').ok_or_else(unknown)?)),
            None => (rest, None),
        };
        if matches!(letter, 'O' | 'V' | 'T') && unit.is_none() && is_digits_or_empty(size) {
            return Err(refused());
        }
        if size.is_empty() || !is_digits_or_empty(size) || size.len() > 9 {
            return Err(unknown());
        }
        let size: usize = size.parse().map_err(|_| unknown())?;
        let kind = match (letter, size) {
            ('b', 1) => DtypeKind::Bool,
            ('i', 1 | 2 | 4 | 8) => DtypeKind::Int,
            ('u', 1 | 2 | 4 | 8) => DtypeKind::Uint,
            ('f', 2 | 4 | 8) => DtypeKind::Float,
            ('f', 16) => DtypeKind::LongDouble,
            ('c', 8 | 16) => DtypeKind::Complex,
            ('c', 32) => DtypeKind::LongComplex,
            ('S' | 'U', 0) => return Err(refused()),
            ('S', _) => DtypeKind::Bytes,
            ('U', _) => DtypeKind::Str,
            ('M', 8) => DtypeKind::DateTime,
            ('m', 8) => DtypeKind::TimeDelta,
            _ => return Err(unknown()),
        };
        let unit = match (kind, unit) {
            (DtypeKind::DateTime | DtypeKind::TimeDelta, Some(unit)) => {
                if !is_time_unit(unit) {
                    return Err(unknown());
                }
                Some(unit.into())
            }
            (_, Some(_)) => return Err(unknown()),
            (_, None) => None,
        };
        let item_size = if kind == DtypeKind::Str {
            size * 4
        } else {
            size
        };
        let order = match kind {
            DtypeKind::Bytes | DtypeKind::Bool => Order::Irrelevant,
            _ if item_size == 1 => Order::Irrelevant,
            // A type that has an order and a text that says it has none: the native one.
            _ if order == Order::Irrelevant => Order::Little,
            _ => order,
        };
        Ok(Self {
            order,
            kind,
            item_size,
            unit,
        })
    }

    /// What the items are.
    #[must_use]
    pub fn kind(&self) -> DtypeKind {
        self.kind
    }

    /// Bytes of one item.
    #[must_use]
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Are the items big-endian?
    #[must_use]
    pub fn is_big_endian(&self) -> bool {
        self.order == Order::Big
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Little => '<',
            Order::Big => '>',
            Order::Irrelevant => '|',
        };
        let (letter, size) = match self.kind {
            DtypeKind::Bool => ('b', self.item_size),
            DtypeKind::Int => ('i', self.item_size),
            DtypeKind::Uint => ('u', self.item_size),
            DtypeKind::Float | DtypeKind::LongDouble => ('f', self.item_size),
            DtypeKind::Complex | DtypeKind::LongComplex => ('c', self.item_size),
            DtypeKind::Bytes => ('S', self.item_size),
            DtypeKind::Str => ('U', self.item_size / 4),
            DtypeKind::DateTime => ('M', self.item_size),
            DtypeKind::TimeDelta => ('m', self.item_size),
        };
        write!(f, "{order}{letter}{size}")?;
        match &self.unit {
            Some(unit) => write!(f, "[{unit}]"),
            None => Ok(()),
        }
    }
}

/// numpy's names for its types, on 64-bit Linux.
fn expand_name(code: &str) -> &str {
    match code {
        "?" | "bool" => "b1",
        "b" | "int8" => "i1",
        "B" | "uint8" => "u1",
        "h" | "int16" => "i2",
        "H" | "uint16" => "u2",
        "i" | "int32" => "i4",
        "I" | "uint32" => "u4",
        "l" | "q" | "p" | "int64" | "int" => "i8",
        "L" | "Q" | "P" | "uint64" | "uint" => "u8",
        "e" | "float16" => "f2",
        "f" | "float32" => "f4",
        "d" | "float64" | "float" => "f8",
        "F" | "complex64" => "c8",
        "D" | "complex128" | "complex" => "c16",
        "object" => "O",
        other => other,
    }
}

fn is_digits_or_empty(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_time_unit(unit: &str) -> bool {
    let name = unit.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = &unit[..unit.len() - name.len()];
    let known = [
        "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic",
    ];
    known.contains(&name)
        && count.len() <= 9
        && (count.is_empty() || count.parse::<u32>().is_ok_and(|n| n > 0))
}

impl<'a> NdArray<'a> {
    /// Puts an array together.
    ///
    /// # Errors
    ///
    /// [`InvalidNdArray`] when the shape does not account for the data.
    pub fn new(
        dtype: Dtype,
        shape: Vec<u64>,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self, InvalidNdArray> {
        let data = data.into();
        if shape.len() > MAX_DIMENSIONS {
            return Err(InvalidNdArray::Dimensions(shape.len()));
        }
        let mismatch = InvalidNdArray::Size { len: data.len() };
        // Bytes that the array would have without its zero entries: numpy wants them below 2^63.
        let mut bytes = u64::try_from(dtype.item_size).unwrap_or(u64::MAX);
        for &entry in shape.iter().filter(|&&entry| entry != 0) {
            bytes = match bytes.checked_mul(entry) {
                Some(n) if i64::try_from(n).is_ok() => n,
                _ => return Err(mismatch),
            };
        }
        if shape.contains(&0) {
            bytes = 0;
        }
        if u64::try_from(data.len()) != Ok(bytes) {
            return Err(mismatch);
        }
        Ok(Self { dtype, shape, data })
    }

    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, InvalidNdArray> {
        let end = payload
            .iter()
            .position(|&b| b == 0)
            .ok_or(InvalidNdArray::NoTerminator)?;
        let (header, data) = (&payload[..end], &payload[end + 1..]);
        if !header.is_ascii() {
            return Err(InvalidNdArray::NotAscii);
        }
        let header = std::str::from_utf8(header).map_err(|_| InvalidNdArray::NotAscii)?;
        let (dtype, shape) = header.rsplit_once('|').ok_or(InvalidNdArray::Header)?;
        let dtype = Dtype::parse(dtype)?;
        let mut entries = Vec::new();
        for entry in shape.split(',').filter(|entry| !entry.is_empty()) {
            if entries.len() == MAX_DIMENSIONS {
                let count = shape.split(',').filter(|entry| !entry.is_empty()).count();
                return Err(InvalidNdArray::Dimensions(count));
            }
            entries.push(shape_entry(entry, data.len())?);
        }
        Self::new(dtype, entries, data)
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Items along each dimension; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The items, in C order and in the byte order of the element type.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Copies what is borrowed.
    #[must_use]
    pub fn into_owned(self) -> NdArray<'static> {
        NdArray {
            dtype: self.dtype,
            shape: self.shape,
            data: Cow::Owned(self.data.into_owned()),
        }
    }

    pub(super) fn to_payload(&self) -> Result<Vec<u8>, EncodeError> {
        if matches!(
            self.dtype.kind,
            DtypeKind::LongDouble | DtypeKind::LongComplex
        ) {
            return Err(EncodeError::Dtype(self.dtype.kind));
        }
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let mut out = format!("{}|{}\0", self.dtype, shape.join(",")).into_bytes();
        out.extend_from_slice(&self.data);
        Ok(out)
    }
}

/// One entry as Python's `int()` reads it: blanks around, a sign, single underscores inside.
fn shape_entry(entry: &str, data_len: usize) -> Result<u64, InvalidNdArray> {
    let bad = || InvalidNdArray::ShapeEntry(entry.chars().take(40).collect());
    let text = entry.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let well_formed = !digits.is_empty()
        && digits.len() <= MAX_ENTRY_DIGITS
        && !digits.starts_with('_')
        && !digits.ends_with('_')
        && !digits.contains("__")
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !well_formed {
        return Err(bad());
    }
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    let value = digits.trim_start_matches('0');
    if value.is_empty() {
        return Ok(0);
    }
    if negative {
        return Err(InvalidNdArray::Negative);
    }
    value
        .parse()
        .map_err(|_| InvalidNdArray::Size { len: data_len })
}
