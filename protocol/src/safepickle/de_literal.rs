//! Numbers that are no objects of a document: what ranges, complex numbers and bytes hold.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::arena::Node;
use super::de::Deserializer;
use super::de_error::{DeserializeError, PathSegment};
use super::value::Value;

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Literal {
    Int(i128),
    Float(f64),
}

impl<'de> de::Deserializer<'de> for Literal {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self {
            Self::Float(float) => visitor.visit_f64(float),
            Self::Int(int) => match (u64::try_from(int), i64::try_from(int)) {
                (Ok(int), _) => visitor.visit_u64(int),
                (_, Ok(int)) => visitor.visit_i64(int),
                _ => visitor.visit_i128(int),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

impl<'d> IntoDeserializer<'d, DeserializeError> for Literal {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The numbers that a value stands for, if it stands for some.
pub(super) fn sequence<'x, 'c, 'd>(of: &'x Deserializer<'c, 'd>) -> Option<Numbers<'x, 'c, 'd>> {
    let value = of.value;
    let source = match value.node() {
        Node::Bytes(bytes) | Node::Bytearray(bytes) => Source::Bytes(value.raw_bytes(bytes)),
        Node::Complex(index) => Source::Floats(value.arena().complexes[index as usize]),
        Node::Range(_) => {
            let range = value.range()?;
            Source::Range(Range {
                next: int(range.start),
                stop: int(range.stop),
                step: int(range.step),
            })
        }
        _ => return None,
    };
    Some(Numbers {
        of,
        source,
        visited: 0,
    })
}

fn int(value: Value<'_>) -> Option<i128> {
    i128::try_from(value.as_big_int()?.as_ref()).ok()
}

/// Numbers to visit, one after the other.
pub(super) struct Numbers<'x, 'c, 'd> {
    of: &'x Deserializer<'c, 'd>,
    source: Source<'d>,
    visited: usize,
}

enum Source<'d> {
    Bytes(&'d [u8]),
    Floats([f64; 2]),
    Range(Range),
}

/// What is left of a range; `None` for what is too wide for serde.
#[derive(Clone, Copy)]
struct Range {
    next: Option<i128>,
    stop: Option<i128>,
    step: Option<i128>,
}

impl Range {
    fn parts(self) -> Option<(i128, i128, i128)> {
        Some((self.next?, self.stop?, self.step?))
    }

    /// How many ints are left, as far as a usize says.
    fn left(self) -> usize {
        let Some((next, stop, step)) = self.parts() else {
            return usize::MAX;
        };
        let (from, to) = if step > 0 { (next, stop) } else { (stop, next) };
        if from >= to {
            return 0;
        }
        let count = to.abs_diff(from).div_ceil(step.unsigned_abs());
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

impl Numbers<'_, '_, '_> {
    /// How many have been visited.
    pub(super) fn visited(&self) -> usize {
        self.visited
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        match &self.source {
            Source::Bytes(bytes) => bytes.len() - self.visited,
            Source::Floats(floats) => floats.len() - self.visited,
            Source::Range(range) => range.left(),
        }
    }

    fn next(&mut self) -> Result<Option<Literal>, DeserializeError> {
        let literal = match &mut self.source {
            Source::Bytes(bytes) => bytes
                .get(self.visited)
                .map(|byte| Literal::Int((*byte).into())),
            Source::Floats(floats) => floats.get(self.visited).copied().map(Literal::Float),
            Source::Range(range) if range.left() == 0 => None,
            Source::Range(range) => {
                let Some((next, _, step)) = range.parts() else {
                    return Err(self.of.out_of_range("i128"));
                };
                self.of.charge(1)?;
                // Past the end of what an i128 holds is past the stop, which is one.
                range.next = Some(next.saturating_add(step));
                Some(Literal::Int(next))
            }
        };
        self.visited += usize::from(literal.is_some());
        Ok(literal)
    }
}

impl<'d> de::SeqAccess<'d> for Numbers<'_, '_, 'd> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'d>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DeserializeError> {
        let at = self.visited;
        let Some(literal) = self.next()? else {
            return Ok(None);
        };
        let item = seed.deserialize(literal);
        item.map(Some)
            .map_err(|error| error.within(PathSegment::Index(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left())
    }
}
