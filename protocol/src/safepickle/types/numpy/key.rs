//! Dtypes and scalars as keys: a scalar is the key that the same number, str or bytes is.

use super::super::super::arena::{Arena, Node, NodeId};
use super::super::super::keys::{Budget, KeyError, Side, bytes_hash, mix};
use super::super::super::numeric::{Int, Number};
use super::super::super::object::Object;
use super::DtypeData;
use super::dtype::{ByteOrder, DtypeKind, DtypeLabel, Unit, built};
use super::element::Element;

/// What a scalar is as a key, if it is no number.
#[derive(Clone, Debug)]
pub(in crate::safepickle) enum ScalarKey<'x> {
    /// With an imaginary part.
    Complex([f64; 2]),
    /// Generalised UTF-8.
    Str(Vec<u8>),
    Bytes(&'x [u8]),
    /// A date or a duration. Those of different units are different keys here.
    Count {
        kind: DtypeKind,
        unit: Option<Unit>,
        /// `None` where it is no time: equal to itself only.
        count: Option<i64>,
    },
}

/// The dtype of a scalar and its bytes; nothing for structures that hold objects.
fn bytes_of<'x>(arena: &'x Arena<'_>, id: NodeId) -> Option<(DtypeLabel, &'x [u8])> {
    let Some(Object::NumpyScalar(scalar)) = arena.object(id) else {
        return None;
    };
    match arena.node(scalar.data) {
        Node::Bytes(data) => Some((built(arena, scalar.dtype)?.label, arena.bytes(data))),
        _ => None,
    }
}

/// The parts of a complex, or a float as the first of them.
fn floats(label: DtypeLabel, data: &[u8]) -> Option<[f64; 2]> {
    let float = |data: &[u8]| match data.len() {
        2 => u16::read(data, label.order).map(half),
        4 => f32::read(data, label.order).map(f64::from),
        _ => f64::read(data, label.order),
    };
    match label.kind {
        DtypeKind::Float => Some([float(data)?, 0.0]),
        DtypeKind::Complex => {
            let (re, im) = data.split_at(data.len() / 2);
            Some([float(re)?, float(im)?])
        }
        _ => None,
    }
}

/// The number that a scalar is. `None` if it is none, or a float that only its sender can read, or a
/// complex with an imaginary part.
pub(in crate::safepickle) fn number<'x>(arena: &'x Arena<'_>, id: NodeId) -> Option<Number<'x>> {
    let (label, data) = bytes_of(arena, id)?;
    Some(Number::Int(match label.kind {
        DtypeKind::Bool => Int::Small(i64::from(*data.first()? != 0)),
        DtypeKind::Int => Int::Small(integer(data, label.order, true)?),
        DtypeKind::Uint => match integer(data, label.order, false)? {
            // The sign bit is part of the number.
            bits if data.len() == 8 && bits < 0 => Int::Wide(bits as u64),
            bits => Int::Small(bits),
        },
        _ => match floats(label, data)? {
            [re, 0.0] => return Some(Number::Float(re)),
            _ => return None,
        },
    }))
}

/// What a scalar is as a key, if it is no number; `None` if it cannot be a key.
pub(in crate::safepickle) fn scalar<'x>(arena: &'x Arena<'_>, id: NodeId) -> Option<ScalarKey<'x>> {
    let (label, data) = bytes_of(arena, id)?;
    Some(match label.kind {
        DtypeKind::Complex => ScalarKey::Complex(floats(label, data)?),
        DtypeKind::Str => ScalarKey::Str(text(data, label.order)?),
        DtypeKind::Bytes => {
            let len = data.iter().rposition(|byte| *byte != 0);
            ScalarKey::Bytes(&data[..len.map_or(0, |last| last + 1)])
        }
        DtypeKind::Datetime | DtypeKind::Timedelta => ScalarKey::Count {
            kind: label.kind,
            unit: label.unit,
            count: Some(integer(data, label.order, true)?).filter(|count| *count != i64::MIN),
        },
        _ => return None,
    })
}

/// An integer of up to eight bytes, with its sign or without.
fn integer(data: &[u8], order: ByteOrder, signed: bool) -> Option<i64> {
    let mut bytes = data.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    let negative = signed && bytes.last().is_some_and(|high| high & 0x80 != 0);
    bytes.resize(bytes.len().max(8), if negative { 0xff } else { 0 });
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// The bits of a float of two bytes as a float of eight.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (fraction + 1024.0) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// The text of code points of four bytes each, in generalised UTF-8.
fn text(data: &[u8], order: ByteOrder) -> Option<Vec<u8>> {
    let points = data.chunks_exact(4).map(|point| u32::read(point, order));
    let points: Vec<u32> = points.collect::<Option<_>>()?;
    let len = points.iter().rposition(|point| *point != 0);
    let mut text = Vec::with_capacity(points.len());
    for point in &points[..len.map_or(0, |last| last + 1)] {
        match char::from_u32(*point) {
            Some(char) => text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            None if *point < 0x11_0000 => {
                // A surrogate, six bits a byte.
                let six = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
                text.extend([0xe0 | (point >> 12) as u8, six(6), six(0)]);
            }
            None => return None,
        }
    }
    Some(text)
}

/// The hash of a dtype: of itself, and not of what it holds. `None` if it has not got its state.
pub(in crate::safepickle) fn dtype_hash(arena: &Arena<'_>, id: NodeId) -> Option<u64> {
    let label = built(arena, id)?.label;
    let name = bytes_hash(label.name().as_bytes(), 27);
    Some(mix(name, label.order as u64))
}

/// What of a dtype makes it equal to another.
fn parts(dtype: &DtypeData) -> [Option<NodeId>; 2] {
    [dtype.fields, dtype.subarray]
}

/// Whether two dtypes are equal, charged for each part that is looked at; or, if not `deep`, whether
/// they are apart from what they hold.
pub(in crate::safepickle) fn equal_dtypes(
    (left, a): Side<'_, '_>,
    (right, b): Side<'_, '_>,
    deep: bool,
    budget: &mut Budget,
) -> Result<bool, KeyError> {
    let mut pending = vec![(a, b)];
    while let Some((a, b)) = pending.pop() {
        budget.charge(1)?;
        if std::ptr::eq(left, right) && a == b {
            continue;
        }
        let equal = match (left.node(a), right.node(b)) {
            (Node::Tuple(x), Node::Tuple(y)) => {
                let same = x.len == y.len;
                if same {
                    // All of them are put down, whether or not the first that is looked at is equal.
                    budget.charge(x.len.into())?;
                    let pairs = left.span(x).iter().zip(right.span(y));
                    pending.extend(pairs.map(|(x, y)| (*x, *y)));
                }
                same
            }
            (Node::Str(x), Node::Str(y)) => {
                budget.charge(u64::from(x.len) / 32)?;
                left.bytes(x) == right.bytes(y)
            }
            (Node::Int(x), Node::Int(y)) => x == y,
            _ => match (built(left, a), built(right, b)) {
                (Some(x), Some(y)) => {
                    let (xs, ys) = (parts(x), parts(y));
                    if deep {
                        let pairs = xs.into_iter().flatten().zip(ys.into_iter().flatten());
                        pending.extend(pairs);
                    }
                    x.label == y.label
                        && xs.map(|part| part.is_some()) == ys.map(|part| part.is_some())
                }
                _ => false,
            },
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}
