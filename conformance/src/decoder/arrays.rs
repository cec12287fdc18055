//! numpy's objects, in the vocabulary of the comparison.

use std::borrow::Cow;

use agentix_protocol::safepickle::Value;
use agentix_protocol::safepickle::numpy::{self, ArrayOrder, ByteOrder, DtypeKind, Ndarray};

use super::dtype::{Dtype, DtypeField};
use super::found::items;
use super::shape::{Content, Shape, Step};

pub(super) fn dtype_shape<'d>(value: Value<'d>) -> Option<Shape<'d, Value<'d>>> {
    let dtype = dtype(value.dtype()?)?;
    Some(Shape::new("dtype").content(Content::Dtype(Cow::Owned(dtype))))
}

/// A dtype; the decoder bounds how deep one may be.
fn dtype(of: numpy::Dtype<'_>) -> Option<Dtype> {
    let itemsize = u64::from(of.itemsize());
    let metadata = of.metadata().is_some_and(|metadata| !metadata.is_empty());
    if let Some(subarray) = of.subarray() {
        return Some(Dtype::Subarray {
            base: Box::new(dtype(subarray.base())?),
            shape: subarray.shape().collect(),
        });
    }
    let Some(fields) = of.fields() else {
        return Some(Dtype::Plain {
            kind: of.kind().code().to_string(),
            text: of.typestr(),
            itemsize,
            unit: of
                .unit()
                .map(|unit| (unit.unit.name().to_owned(), unit.count.into())),
            metadata,
        });
    };
    let fields = fields.map(|field| {
        let title = match field.title {
            Some(title) => Some(title.as_str()?.to_owned()),
            None => None,
        };
        Some(DtypeField {
            name: field.name.as_str()?.to_owned(),
            title,
            offset: field.offset.into(),
            dtype: dtype(field.dtype)?,
        })
    });
    Some(Dtype::Struct {
        fields: fields.collect::<Option<_>>()?,
        itemsize,
        aligned: of.is_aligned(),
        metadata,
    })
}

/// The reference makes numbers native while it loads an array; those inside of structures stay.
pub(super) fn array_shape<'d>(value: Value<'d>) -> Option<Shape<'d, Value<'d>>> {
    let array = value.ndarray()?;
    let is_foreign = array.dtype().byte_order() == ByteOrder::Big;
    let mut dtype = dtype(array.dtype())?;
    if let Dtype::Plain { text, .. } = &mut dtype
        && is_foreign
    {
        *text = text.replace('>', "<");
    }
    let raw = match array.row_first() {
        Some(raw) if is_foreign => Some(Cow::Owned(swapped(array, &raw)?)),
        raw => raw,
    };
    let parts = match array.items() {
        Some(parts) => items(parts)?,
        None => Vec::new(),
    };
    Some(
        Shape::new("ndarray")
            .content(Content::Array {
                shape: Cow::Owned(array.shape().collect()),
                fortran: array.order() == ArrayOrder::ColumnFirst,
                dtype: Cow::Owned(dtype),
                raw,
            })
            .numbered(Step::Item, parts),
    )
}

/// The bytes of each number the other way round.
fn swapped(array: Ndarray<'_>, raw: &[u8]) -> Option<Vec<u8>> {
    let size = match array.dtype().kind() {
        DtypeKind::Str => 4,
        DtypeKind::Complex => array.dtype().itemsize() as usize / 2,
        _ => array.dtype().itemsize() as usize,
    };
    let mut raw = raw.to_vec();
    for number in raw.chunks_exact_mut(size) {
        number.reverse();
    }
    Some(raw)
}
