//! Decoded values, in the vocabulary of the comparison.

use std::borrow::Cow;

use agentix_protocol::safepickle::{Entries, Items, Kind, Value};

use super::shape::{Content, Leaf, Part, Shape, Step};

/// A decoded value as a part; `None` if its accessors contradict its kind.
pub(super) fn part<'d>(value: Value<'d>) -> Option<Part<'d, Value<'d>>> {
    Some(Part::Leaf(match value.kind() {
        Kind::None => Leaf::None,
        Kind::Bool => Leaf::Bool(value.as_bool()?),
        Kind::Int => Leaf::Int(value.as_big_int()?),
        Kind::Float => Leaf::Float(value.as_f64()?.to_bits()),
        Kind::Str => Leaf::Str(Cow::Borrowed(value.as_text()?.as_generalised_utf8())),
        Kind::Bytes => Leaf::Bytes(value.as_bytes()?),
        _ => return Some(Part::Node(value)),
    }))
}

fn items<'d>(items: Items<'d>) -> Option<Vec<Part<'d, Value<'d>>>> {
    items.iter().map(part).collect()
}

type Pair<'d> = (Part<'d, Value<'d>>, Part<'d, Value<'d>>);

fn entries<'d>(entries: Entries<'d>) -> Option<Vec<Pair<'d>>> {
    let pair = |(key, value)| Some((part(key)?, part(value)?));
    entries.iter().map(pair).collect()
}

/// A decoded value that is no leaf, opened; `None` if its accessors contradict its kind, or if the format has no such kind.
pub(super) fn shape<'d>(value: Value<'d>) -> Option<Shape<'d, Value<'d>>> {
    Some(match value.kind() {
        Kind::List => Shape::new("list").numbered(Step::Item, items(value.list()?)?),
        Kind::Tuple => Shape::new("tuple")
            .numbered(Step::Item, items(value.tuple()?)?)
            .shared_when_empty(),
        Kind::Set => Shape::new("set").elements(items(value.set()?)?),
        Kind::Frozenset => Shape::new("frozenset")
            .elements(items(value.frozenset()?)?)
            .shared_when_empty(),
        Kind::Dict => Shape::new("dict").entries(entries(value.dict()?)?),
        Kind::Bytearray => {
            Shape::new("bytearray").content(Content::Bytes(Cow::Borrowed(value.as_bytearray()?)))
        }
        _ => return None,
    })
}
