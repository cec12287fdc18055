//! Decoded values to types of the user's, through serde.

use std::cell::Cell;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Visitor};

use super::arena::{Node, NodeId};
use super::de_access::{Map, Sequence, Variant};
use super::de_error::{DeserializeError, DeserializeErrorKind};
use super::de_kinds::found;
use super::de_literal::{self, Literal};
use super::value::{Kind, Text, Value};

/// How many levels of a type [`from_value`] follows: containers, options, newtypes and enums each
/// count as one. It bounds the machine stack, which only this part of the module uses, and ends
/// cycles.
pub const MAX_TYPE_DEPTH: usize = 128;

/// Steps of work that any document may take; see [`from_value`]. They bound what a few bytes can fill:
/// a range as a `Vec` of JSON values takes 32 MiB by then.
const BASE_WORK: u64 = 1_048_576;

/// Converts a decoded value into a type of yours.
///
/// | Python | Rust |
/// | --- | --- |
/// | `None` | `Option`, `()`, unit struct |
/// | `bool` | `bool` |
/// | `int` | any integer type that it fits, `i128` and `u128` too; floats, rounded |
/// | `float` | `f64`, `f32` |
/// | `str` | `String`, `&str`, `char`, enum variant without content |
/// | `bytes`, `bytearray` | bytes as serde has them (`serde_bytes`), `&[u8]` from `bytes`, `Vec<u8>` |
/// | `list`, `tuple`, `deque` | sequences, tuples, arrays |
/// | `set`, `frozenset` | sequences and sets |
/// | `range` | sequences, tuples and arrays of integers |
/// | `complex` | sequences, tuples and arrays of two floats |
/// | `dict`, `OrderedDict`, `Counter`, `defaultdict` | structs and maps; keys of any type |
/// | `dict` of one entry | enum variant with content, as in JSON |
/// | `Decimal`, `Fraction`, `UUID`, paths | `String`: what `str()` gives in Python |
/// | `date`, `time`, `datetime` | `String`: what `isoformat()` gives, as types of dates for serde read it |
/// | `timedelta` | floats, in seconds; [`Duration`](std::time::Duration) |
/// | record | structs and maps of its attributes, else of its keyword arguments; sequences, tuples and arrays of what was appended to it, else of its arguments |
///
/// So a dataclass, whose attributes are its state, becomes a struct, and a `NamedTuple`, which has
/// arguments, a tuple struct. For more than that, see [`FromRecord`](super::FromRecord).
///
/// A `bool` is not taken for an `int`. A `str` with surrogate code points is no Rust string. What is not
/// in the table (slices, time zones, exceptions, classes as values) has accessors on [`Value`], and
/// is no plain value. An error says where: `result["scores"][3]: expected float, found str`.
///
/// Shared parts are walked as often as they are referred to, so a small document may unfold into a
/// large value. Allowed are 1,048,576 steps, or 16 for each object reference of the document if that
/// is more; a step is one object, one int of a range, or 64 bytes of one.
///
/// # Errors
///
/// [`DeserializeError`] if the value does not fit the type, is deeper than [`MAX_TYPE_DEPTH`] (as a
/// cycle is), or takes too much work.
pub fn from_value<'d, T: Deserialize<'d>>(value: Value<'d>) -> Result<T, DeserializeError> {
    from_value_seed(std::marker::PhantomData, value)
}

/// [`from_value`] for a type that needs a [`DeserializeSeed`].
///
/// # Errors
///
/// As for [`from_value`].
pub fn from_value_seed<'d, S: DeserializeSeed<'d>>(
    seed: S,
    value: Value<'d>,
) -> Result<S::Value, DeserializeError> {
    let references = (value.arena().items.len() + value.arena().nodes.len()) as u64;
    let allowed = BASE_WORK.max(references.saturating_mul(16));
    let context = Context {
        left: Cell::new(allowed),
        allowed,
    };
    seed.deserialize(Deserializer {
        value,
        depth: 0,
        context: &context,
    })
}

pub(super) struct Context {
    left: Cell<u64>,
    allowed: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Deserializer<'c, 'd> {
    pub(super) value: Value<'d>,
    depth: usize,
    context: &'c Context,
}

impl<'c, 'd> Deserializer<'c, 'd> {
    /// One level down, in the same value: what an option or newtype holds.
    fn deeper(self) -> Result<Self, DeserializeError> {
        if self.depth == MAX_TYPE_DEPTH {
            return Err(DeserializeErrorKind::TooDeep {
                allowed: MAX_TYPE_DEPTH,
            }
            .into());
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }

    /// One of the objects that this one holds.
    pub(super) fn child(self, id: NodeId) -> Result<Self, DeserializeError> {
        let value = self.value.at(id);
        let cost = match value.node() {
            Node::Str(bytes) | Node::Bytes(bytes) | Node::Bytearray(bytes) => {
                1 + u64::from(bytes.len) / 64
            }
            _ => 1,
        };
        self.charge(cost)?;
        Ok(Self { value, ..self })
    }

    /// Takes steps from what is allowed.
    pub(super) fn charge(&self, steps: u64) -> Result<(), DeserializeError> {
        let Some(left) = self.context.left.get().checked_sub(steps) else {
            return Err(DeserializeErrorKind::TooMuchWork {
                allowed: self.context.allowed,
            }
            .into());
        };
        self.context.left.set(left);
        Ok(())
    }

    pub(super) fn mismatch(&self, expected: &str) -> DeserializeError {
        DeserializeError::mismatch(expected, &found(self.value))
    }

    fn int<T>(&self, name: &'static str) -> Result<T, DeserializeError>
    where
        T: TryFrom<i64> + for<'b> TryFrom<&'b BigInt>,
    {
        let fits = match self.value.node() {
            Node::Int(int) => T::try_from(int).ok(),
            Node::BigInt(index) => T::try_from(&self.value.arena().big_ints[index as usize]).ok(),
            _ => return Err(self.mismatch("int")),
        };
        fits.ok_or_else(|| self.out_of_range(name))
    }

    pub(super) fn out_of_range(&self, target: &'static str) -> DeserializeError {
        let found = format!("{:?}", self.value);
        DeserializeErrorKind::OutOfRange { target, found }.into()
    }

    fn float(&self) -> Result<f64, DeserializeError> {
        match self.value.node() {
            Node::Float(float) => Ok(float),
            Node::Int(int) => Ok(int as f64),
            Node::BigInt(index) => self.value.arena().big_ints[index as usize]
                .to_f64()
                .filter(|float| float.is_finite())
                .ok_or_else(|| self.out_of_range("f64")),
            // Below 2^53, or a double is exact to a second at least.
            Node::Timedelta { .. } => Ok(self
                .value
                .timedelta()
                .map_or(0.0, |timedelta| timedelta.total_microseconds() as f64 / 1e6)),
            _ => Err(self.mismatch("float")),
        }
    }

    fn str(&self) -> Result<&'d str, DeserializeError> {
        match self.value.as_text().map(Text::as_str) {
            Some(Some(text)) => Ok(text),
            Some(None) => Err(DeserializeError::mismatch(
                "str",
                "str with surrogate code points",
            )),
            None => Err(self.mismatch("str")),
        }
    }

    fn visit_bytes<V: Visitor<'d>>(self, visitor: V) -> Option<Result<V::Value, DeserializeError>> {
        match self.value.node() {
            Node::Bytes(bytes) | Node::Bytearray(bytes) => {
                Some(visitor.visit_borrowed_bytes(self.value.raw_bytes(bytes)))
            }
            _ => None,
        }
    }

    fn visit_str<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.written()? {
            Some(text) => visitor.visit_string(text),
            None => visitor.visit_borrowed_str(self.str()?),
        }
    }

    fn visit_sequence<V: Visitor<'d>>(
        self,
        visitor: V,
        sets: bool,
        expected: &str,
    ) -> Result<V::Value, DeserializeError> {
        if let Some(ids) = self.items(sets) {
            let mut access = Sequence {
                of: self.deeper()?,
                ids,
                next: 0,
            };
            let value = visitor.visit_seq(&mut access)?;
            return if access.next == ids.len() {
                Ok(value)
            } else {
                Err(too_long(access.next, ids.len()))
            };
        }
        let mut literals = de_literal::sequence(&self).ok_or_else(|| self.mismatch(expected))?;
        let value = visitor.visit_seq(&mut literals)?;
        match literals.left() {
            0 => Ok(value),
            left => {
                let visited = literals.visited();
                Err(too_long(visited, visited.saturating_add(left)))
            }
        }
    }

    fn visit_map<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let ids = self.entries().ok_or_else(|| self.mismatch("dict"))?;
        let mut access = Map {
            of: self.deeper()?,
            ids,
            next: 0,
        };
        let value = visitor.visit_map(&mut access)?;
        if access.next == ids.len() {
            Ok(value)
        } else {
            Err(too_long(access.next / 2, ids.len() / 2))
        }
    }
}

fn too_long(expected: usize, found: usize) -> DeserializeError {
    DeserializeErrorKind::Length {
        expected: expected.to_string(),
        found,
    }
    .into()
}

impl<'d> de::Deserializer<'d> for Deserializer<'_, 'd> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value.node() {
            Node::None => visitor.visit_unit(),
            Node::Bool(bool) => visitor.visit_bool(bool),
            Node::Int(int) => match u64::try_from(int) {
                Ok(int) => visitor.visit_u64(int),
                Err(_) => visitor.visit_i64(int),
            },
            Node::BigInt(index) => {
                let int = &self.value.arena().big_ints[index as usize];
                if let Ok(int) = u64::try_from(int) {
                    visitor.visit_u64(int)
                } else if let Ok(int) = i128::try_from(int) {
                    visitor.visit_i128(int)
                } else if let Ok(int) = u128::try_from(int) {
                    visitor.visit_u128(int)
                } else {
                    Err(self.out_of_range("i128"))
                }
            }
            Node::Float(float) => visitor.visit_f64(float),
            Node::Timedelta { .. } => visitor.visit_f64(self.float()?),
            Node::Str(_)
            | Node::Decimal(_)
            | Node::Fraction { .. }
            | Node::Uuid(_)
            | Node::Date(_)
            | Node::Time { .. }
            | Node::Datetime { .. }
            | Node::Path { .. } => self.visit_str(visitor),
            Node::Bytes(bytes) | Node::Bytearray(bytes) => {
                visitor.visit_borrowed_bytes(self.value.raw_bytes(bytes))
            }
            _ if self.entries().is_some() => self.visit_map(visitor),
            _ => self.visit_sequence(visitor, true, "plain value"),
        }
    }

    fn deserialize_bool<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_bool(self.value.as_bool().ok_or_else(|| self.mismatch("bool"))?)
    }

    fn deserialize_i8<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_i8(self.int("i8")?)
    }

    fn deserialize_i16<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_i16(self.int("i16")?)
    }

    fn deserialize_i32<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_i32(self.int("i32")?)
    }

    fn deserialize_i64<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_i64(self.int("i64")?)
    }

    fn deserialize_i128<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_i128(self.int("i128")?)
    }

    fn deserialize_u8<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_u8(self.int("u8")?)
    }

    fn deserialize_u16<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_u16(self.int("u16")?)
    }

    fn deserialize_u32<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_u32(self.int("u32")?)
    }

    fn deserialize_u64<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_u64(self.int("u64")?)
    }

    fn deserialize_u128<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_u128(self.int("u128")?)
    }

    fn deserialize_f32<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_f32(self.float()? as f32)
    }

    fn deserialize_f64<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_char<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let text = self.str()?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => visitor.visit_char(char),
            _ => Err(DeserializeErrorKind::Length {
                expected: "one character".into(),
                found: text.chars().count(),
            }
            .into()),
        }
    }

    fn deserialize_str<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.visit_str(visitor)
    }

    fn deserialize_string<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.items(false).is_some() {
            // A list of ints is taken by visitors that take sequences.
            return self.visit_sequence(visitor, false, "bytes");
        }
        match self.value.kind() {
            Kind::Bytes | Kind::Bytearray => self
                .visit_bytes(visitor)
                .unwrap_or_else(|| Err(self.mismatch("bytes"))),
            _ => Err(self.mismatch("bytes")),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'d>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.value.is_none() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self.deeper()?)
        }
    }

    fn deserialize_unit<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        if self.value.is_none() {
            visitor.visit_unit()
        } else {
            Err(self.mismatch("None"))
        }
    }

    fn deserialize_unit_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self.deeper()?)
    }

    fn deserialize_seq<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.visit_sequence(visitor, true, "list")
    }

    fn deserialize_tuple<V: Visitor<'d>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.visit_sequence(visitor, false, "tuple")
    }

    fn deserialize_tuple_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'d>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.visit_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'d>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.value.timedelta() {
            Some(timedelta) if (name, fields) == ("Duration", &["secs", "nanos"]) => {
                let duration = timedelta.to_duration();
                let duration = duration.ok_or_else(|| self.out_of_range("Duration"))?;
                let parts = [duration.as_secs().into(), duration.subsec_nanos().into()];
                visitor.visit_map(de::value::MapDeserializer::new(
                    fields.iter().copied().zip(parts.map(Literal::Int)),
                ))
            }
            _ => self.visit_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'d>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.value.node() {
            Node::Str(_) => visitor.visit_enum(Variant {
                name: self.deeper()?,
                content: None,
            }),
            Node::Dict(span) => {
                let [name, content] = *self.value.arena().span(span) else {
                    let found = span.len as usize / 2;
                    return Err(DeserializeErrorKind::Length {
                        expected: "one entry".into(),
                        found,
                    }
                    .into());
                };
                let of = self.deeper()?;
                visitor.visit_enum(Variant {
                    name: of.child(name)?,
                    content: Some(of.child(content)?),
                })
            }
            _ => Err(self.mismatch("str or dict of one entry")),
        }
    }

    fn deserialize_identifier<V: Visitor<'d>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.value.node() {
            Node::Int(int) if int >= 0 => visitor.visit_u64(int as u64),
            _ => visitor.visit_borrowed_str(self.str()?),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'d>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }
}
