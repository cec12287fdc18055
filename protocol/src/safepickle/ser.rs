//! Serde values to pickle bytes, directly.

use std::collections::HashMap;

use serde::ser::{self, Serialize};

use super::Decoder;
use super::error::{DecodeErrorKind, Malformed};
use super::limits::Limits;
use super::opcode::Opcode;
use super::policy::Policy;
use super::value::Document;
use super::writer::{BATCH, EncodeError, Protocol, Writer};

/// Encodes a value of yours as a pickle.
///
/// | Rust | Python |
/// | --- | --- |
/// | `()`, `None`, unit struct | `None` |
/// | `Some(x)`, newtype struct | what it holds |
/// | `bool` | `bool` |
/// | any integer, `i128` and `u128` too | `int` |
/// | `f32`, `f64` | `float` |
/// | `char`, `String` | `str` |
/// | bytes as serde has them (`serde_bytes`) | `bytes` (protocol 3 or later) |
/// | tuple, tuple struct, array; `serialize_tuple(0)` | `tuple`; `()` |
/// | `Vec` and other sequences | `list` |
/// | map, struct | `dict`; a struct's keys are `str` |
/// | enum | as in JSON: `"Name"`, or `{"Name": content}` |
///
/// Names of fields and variants are memoised, so a list of structs holds each name once.
///
/// Large bytes and strs are copied once, into the result.
///
/// # Errors
///
/// [`EncodeError`] for bytes at protocol 2, for strs and bytes of 4 GiB and more below protocol 4,
/// and for what a `Serialize` implementation reports itself.
pub fn to_vec<T: Serialize + ?Sized>(
    value: &T,
    protocol: Protocol,
) -> Result<Vec<u8>, EncodeError> {
    let mut serializer = Serializer {
        writer: Writer::new(protocol),
        names: HashMap::new(),
    };
    value.serialize(&mut serializer)?;
    Ok(serializer.writer.finish())
}

/// Converts a value of yours into a document, by the rules of [`to_vec`].
///
/// ```
/// use agentix_protocol::safepickle::{self, from_value};
/// let document = safepickle::to_value(&[("a", 1), ("b", 2)])?;
/// assert_eq!(format!("{document:?}"), "(('a', 1), ('b', 2))");
/// assert_eq!(from_value::<Vec<(String, u8)>>(document.root())?[1].1, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`to_vec`]; besides, [`EncodeError::Unhashable`] for a key that Python cannot have in a dict,
/// and [`EncodeError::TooLarge`].
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Document<'static>, EncodeError> {
    // By way of a pickle, so that there is one set of rules, and one place for the bytes.
    let pickle = to_vec(value, Protocol::LATEST)?;
    let limits = Limits::default()
        .input_bytes(u64::MAX)
        .nodes(u64::MAX)
        .owned_bytes(u64::MAX)
        .memo_entries(u64::MAX)
        .work_steps(u64::MAX, 0);
    let decoded = Decoder::new(Policy::agentix(), limits).decode_owned(pickle);
    decoded.map_err(|error| match error.kind() {
        DecodeErrorKind::Malformed(Malformed::Unhashable(kind)) => EncodeError::Unhashable(*kind),
        // What is written is read, unless it is too large.
        _ => EncodeError::TooLarge,
    })
}

struct Serializer {
    writer: Writer,
    /// Memo indexes of names in the program text.
    names: HashMap<&'static str, u32>,
}

impl Serializer {
    /// Writes the name of a field or variant.
    fn name(&mut self, name: &'static str) -> Result<(), EncodeError> {
        if let Some(index) = self.names.get(name) {
            self.writer.recall(*index);
            return Ok(());
        }
        self.writer.str(name.as_bytes())?;
        let index = self.writer.memoize();
        self.names.insert(name, index);
        Ok(())
    }

    fn begin_list(&mut self) -> Batch {
        self.writer.op(Opcode::EMPTY_LIST);
        Batch {
            filled: 0,
            append: Opcode::APPENDS,
        }
    }

    fn begin_dict(&mut self) -> Batch {
        self.writer.op(Opcode::EMPTY_DICT);
        Batch {
            filled: 0,
            append: Opcode::SETITEMS,
        }
    }

    /// Begins the dict of one entry that stands for an enum variant.
    fn begin_variant(&mut self, variant: &'static str) -> Result<(), EncodeError> {
        self.writer.op(Opcode::EMPTY_DICT);
        self.name(variant)
    }

    fn end_variant(&mut self) {
        self.writer.op(Opcode::SETITEM);
    }
}

/// The items of a list or dict since the last MARK.
struct Batch {
    filled: usize,
    append: Opcode,
}

impl Batch {
    fn before_item(&mut self, writer: &mut Writer) {
        if self.filled == BATCH {
            self.end(writer);
            self.filled = 0;
        }
        if self.filled == 0 {
            writer.op(Opcode::MARK);
        }
        self.filled += 1;
    }

    fn end(&self, writer: &mut Writer) {
        if self.filled > 0 {
            writer.op(self.append);
        }
    }
}

/// A list, dict, tuple or variant under way.
pub(super) struct Compound<'s> {
    serializer: &'s mut Serializer,
    shape: Shape,
    variant: bool,
}

enum Shape {
    Batched(Batch),
    Tuple { len: usize, left: usize },
}

impl Compound<'_> {
    fn before_item(&mut self) -> Result<(), EncodeError> {
        match &mut self.shape {
            Shape::Batched(batch) => batch.before_item(&mut self.serializer.writer),
            Shape::Tuple { left, .. } => {
                *left = left.checked_sub(1).ok_or_else(|| wrong_length("more"))?;
            }
        }
        Ok(())
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.before_item()?;
        value.serialize(&mut *self.serializer)
    }

    fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.before_item()?;
        self.serializer.name(name)?;
        value.serialize(&mut *self.serializer)
    }

    fn finish(self) -> Result<(), EncodeError> {
        match self.shape {
            Shape::Batched(batch) => batch.end(&mut self.serializer.writer),
            Shape::Tuple { left: 1.., .. } => return Err(wrong_length("fewer")),
            Shape::Tuple { len, .. } => self.serializer.writer.end_tuple(len),
        }
        if self.variant {
            self.serializer.end_variant();
        }
        Ok(())
    }
}

fn wrong_length(how: &str) -> EncodeError {
    EncodeError::Custom(format!("a tuple has {how} items than it stated"))
}

impl<'s> ser::Serializer for &'s mut Serializer {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Compound<'s>;
    type SerializeTuple = Compound<'s>;
    type SerializeTupleStruct = Compound<'s>;
    type SerializeTupleVariant = Compound<'s>;
    type SerializeMap = Compound<'s>;
    type SerializeStruct = Compound<'s>;
    type SerializeStructVariant = Compound<'s>;

    fn serialize_bool(self, value: bool) -> Result<(), EncodeError> {
        self.writer.bool(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i16(self, value: i16) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i32(self, value: i32) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i64(self, value: i64) -> Result<(), EncodeError> {
        self.writer.int(value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), EncodeError> {
        self.writer.wide_int(value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_u16(self, value: u16) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_u32(self, value: u32) -> Result<(), EncodeError> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_u64(self, value: u64) -> Result<(), EncodeError> {
        self.writer.wide_int(i128::from(value));
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), EncodeError> {
        match i128::try_from(value) {
            Ok(value) => self.writer.wide_int(value),
            Err(_) => self.writer.big_int(&value.into())?,
        }
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), EncodeError> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), EncodeError> {
        self.writer.float(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), EncodeError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), EncodeError> {
        self.writer.str(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        self.writer.bytes(value)
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.writer.none();
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), EncodeError> {
        self.serialize_none()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.name(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.begin_variant(variant)?;
        value.serialize(&mut *self)?;
        self.end_variant();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'s>, EncodeError> {
        let shape = Shape::Batched(self.begin_list());
        Ok(Compound {
            serializer: self,
            shape,
            variant: false,
        })
    }

    fn serialize_tuple(self, len: usize) -> Result<Compound<'s>, EncodeError> {
        self.writer.begin_tuple(len);
        Ok(Compound {
            serializer: self,
            shape: Shape::Tuple { len, left: len },
            variant: false,
        })
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<Compound<'s>, EncodeError> {
        self.serialize_tuple(len)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'s>, EncodeError> {
        self.begin_variant(variant)?;
        let tuple = self.serialize_tuple(len)?;
        Ok(Compound {
            variant: true,
            ..tuple
        })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'s>, EncodeError> {
        let shape = Shape::Batched(self.begin_dict());
        Ok(Compound {
            serializer: self,
            shape,
            variant: false,
        })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'s>, EncodeError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'s>, EncodeError> {
        self.begin_variant(variant)?;
        let map = self.serialize_map(None)?;
        Ok(Compound {
            variant: true,
            ..map
        })
    }
}

impl ser::SerializeSeq for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.item(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeTuple for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.item(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeTupleStruct for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.item(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeTupleVariant for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.item(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        self.item(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        value.serialize(&mut *self.serializer)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeStruct for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish()
    }
}
