//! What numpy's objects are in JSON.

use std::borrow::Cow;
use std::cell::Cell;

use agentix_protocol::safepickle::numpy::{Dtype, DtypeField, DtypeKind, Element};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// Parts of one dtype that are told at most: fields, and names by their length. Those who refer to one
/// dtype in many places can make a few bytes mean more than there is room for.
pub(crate) const MOST_PARTS: usize = 10_000;

/// A dtype in the form of the vectors: `{"kind", "str", "itemsize"}` with `unit` and `metadata`,
/// `{"kind": "V", "fields": [[name, title, offset, dtype]], "itemsize", "aligned"}`, or
/// `{"base": dtype, "shape"}`. Beyond that form, a title that is no str is told by its kind, and a
/// dtype that has more than so many parts, [`MOST_PARTS`] at most, has `"left_out": true`.
pub(crate) struct DtypeObject<'d>(pub(crate) Dtype<'d>, pub(crate) usize);

impl Serialize for DtypeObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part(self.0, &Cell::new(self.1.min(MOST_PARTS))).serialize(serializer)
    }
}

/// A dtype inside of another; the decoder bounds how deep that goes.
struct Part<'b, 'd>(Dtype<'d>, &'b Cell<usize>);

impl Serialize for Part<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(dtype, left) = self;
        let mut map = serializer.serialize_map(None)?;
        if let Some(subarray) = dtype.subarray() {
            map.serialize_entry("base", &Part(subarray.base(), left))?;
            map.serialize_entry("shape", &subarray.shape().collect::<Vec<_>>())?;
            return map.end();
        }
        map.serialize_entry("kind", &dtype.kind().code())?;
        match dtype.fields() {
            Some(_) => {
                map.serialize_entry("fields", &Fields(*dtype, left))?;
                map.serialize_entry("itemsize", &dtype.itemsize())?;
                map.serialize_entry("aligned", &dtype.is_aligned())?;
            }
            None => {
                map.serialize_entry("str", &dtype.typestr())?;
                map.serialize_entry("itemsize", &dtype.itemsize())?;
                if let Some(unit) = dtype.unit() {
                    map.serialize_entry("unit", &(unit.unit.name(), unit.count))?;
                }
            }
        }
        if dtype
            .metadata()
            .is_some_and(|metadata| !metadata.is_empty())
        {
            map.serialize_entry("metadata", &true)?;
        }
        if left.get() == 0 {
            map.serialize_entry("left_out", &true)?;
        }
        map.end()
    }
}

/// As many fields of a structure as may be told.
struct Fields<'b, 'd>(Dtype<'d>, &'b Cell<usize>);

impl Serialize for Fields<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(dtype, left) = self;
        let mut seq = serializer.serialize_seq(None)?;
        for field in dtype.fields().into_iter().flatten() {
            let title = field.title.and_then(|title| title.as_text());
            let names = [Some(field.name), title].into_iter().flatten();
            let bytes: usize = names.map(|name| name.as_generalised_utf8().len()).sum();
            left.set(left.get().saturating_sub(1 + bytes / 32));
            if left.get() == 0 {
                break;
            }
            seq.serialize_element(&Field(field, left))?;
        }
        seq.end()
    }
}

struct Field<'b, 'd>(DtypeField<'d>, &'b Cell<usize>);

impl Serialize for Field<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(field, left) = self;
        let title = field.title.map(|title| match title.as_text() {
            Some(text) => text.to_string_lossy(),
            None => Cow::Borrowed(title.kind().name()),
        });
        let name = field.name.to_string_lossy();
        (name, title, field.offset, Part(field.dtype, left)).serialize(serializer)
    }
}

/// An element of an array that JSON has a number for, or nearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// Its shortest digits are fewer than those of the same number as an `f64`.
    Single(f32),
    Double(f64),
}

/// Whether [`number`] has one for elements of this dtype.
pub(crate) fn has_numbers(dtype: Dtype<'_>) -> bool {
    let kinds = match dtype.itemsize() {
        1 | 2 => &[DtypeKind::Bool, DtypeKind::Int, DtypeKind::Uint][..],
        4 | 8 => &[DtypeKind::Int, DtypeKind::Uint, DtypeKind::Float],
        _ => &[],
    };
    kinds.contains(&dtype.kind())
}

/// Reads an element.
pub(crate) fn number(dtype: Dtype<'_>, bytes: &[u8]) -> Option<Number> {
    let order = dtype.byte_order();
    Some(match (dtype.kind(), bytes.len()) {
        (DtypeKind::Bool, 1) => Number::Bool(bool::read(bytes, order)?),
        (DtypeKind::Int, 1) => Number::Int(i8::read(bytes, order)?.into()),
        (DtypeKind::Int, 2) => Number::Int(i16::read(bytes, order)?.into()),
        (DtypeKind::Int, 4) => Number::Int(i32::read(bytes, order)?.into()),
        (DtypeKind::Int, 8) => Number::Int(i64::read(bytes, order)?),
        (DtypeKind::Uint, 1) => Number::Uint(u8::read(bytes, order)?.into()),
        (DtypeKind::Uint, 2) => Number::Uint(u16::read(bytes, order)?.into()),
        (DtypeKind::Uint, 4) => Number::Uint(u32::read(bytes, order)?.into()),
        (DtypeKind::Uint, 8) => Number::Uint(u64::read(bytes, order)?),
        (DtypeKind::Float, 4) => Number::Single(f32::read(bytes, order)?),
        (DtypeKind::Float, 8) => Number::Double(f64::read(bytes, order)?),
        _ => return None,
    })
}
