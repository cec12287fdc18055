//! Generated plain values, in the three forms that tests need: a document, serde, a Python expression.

use agentix_protocol::safepickle::{BuildError, Builder, Document, NodeId, Protocol};
use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::ser::{Serialize, SerializeMap, SerializeTuple, Serializer};

pub(crate) const PROTOCOLS: [Protocol; 4] =
    [Protocol::V2, Protocol::V3, Protocol::V4, Protocol::V5];

/// A plain Python value.
#[derive(Clone, Debug)]
pub(crate) enum Plain {
    None,
    Bool(bool),
    Int(BigInt),
    Float(f64),
    /// Code points, surrogates included.
    Str(Vec<u32>),
    Bytes(Vec<u8>),
    Bytearray(Vec<u8>),
    List(Vec<Plain>),
    Tuple(Vec<Plain>),
    Dict(Vec<(Plain, Plain)>),
    Set(Vec<Plain>),
    Frozenset(Vec<Plain>),
}

impl Plain {
    pub(crate) fn document(&self) -> Document<'static> {
        let mut builder = Builder::new();
        let root = self.build(&mut builder).unwrap();
        builder.finish(root).unwrap()
    }

    fn build(&self, builder: &mut Builder) -> Result<NodeId, BuildError> {
        match self {
            Self::None => builder.none(),
            Self::Bool(value) => builder.bool(*value),
            Self::Int(value) => builder.int(value.clone()),
            Self::Float(value) => builder.float(*value),
            Self::Str(points) => builder.generalised_str(&generalised_utf8(points)),
            Self::Bytes(bytes) => builder.bytes(bytes),
            Self::Bytearray(bytes) => builder.bytearray(bytes),
            Self::List(items) => {
                let list = builder.list()?;
                for item in items {
                    let item = item.build(builder)?;
                    builder.append(list, item)?;
                }
                Ok(list)
            }
            Self::Tuple(items) => {
                let items = build_all(items, builder)?;
                builder.tuple(&items)
            }
            Self::Dict(entries) => {
                let dict = builder.dict()?;
                for (key, value) in entries {
                    let (key, value) = (key.build(builder)?, value.build(builder)?);
                    builder.insert(dict, key, value)?;
                }
                Ok(dict)
            }
            Self::Set(items) => {
                let items = build_all(items, builder)?;
                builder.set(&items)
            }
            Self::Frozenset(items) => {
                let items = build_all(items, builder)?;
                builder.frozenset(&items)
            }
        }
    }

    /// A Python expression for the value. `f` makes a float from its bits, `s` a str from its code points.
    #[allow(dead_code, reason = "not every test that uses this module asks Python")]
    pub(crate) fn python(&self) -> String {
        match self {
            Self::None => "None".into(),
            Self::Bool(true) => "True".into(),
            Self::Bool(false) => "False".into(),
            Self::Int(value) => format!("({value})"),
            Self::Float(value) => format!("f({})", value.to_bits()),
            Self::Str(points) => format!("s({points:?})"),
            Self::Bytes(bytes) => format!("bytes({bytes:?})"),
            Self::Bytearray(bytes) => format!("bytearray({bytes:?})"),
            Self::List(items) => format!("[{}]", python_all(items)),
            Self::Tuple(items) => format!("({})", python_all(items)),
            Self::Dict(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", key.python(), value.python()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Set(items) => format!("set([{}])", python_all(items)),
            Self::Frozenset(items) => format!("frozenset([{}])", python_all(items)),
        }
    }
}

fn build_all(items: &[Plain], builder: &mut Builder) -> Result<Vec<NodeId>, BuildError> {
    items.iter().map(|item| item.build(builder)).collect()
}

fn python_all(items: &[Plain]) -> String {
    items.iter().map(|item| item.python() + ", ").collect()
}

/// Written apart from the crate's own, so that tests do not check it against itself.
fn generalised_utf8(points: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for point in points {
        match char::from_u32(*point) {
            Some(char) => out.extend(char.encode_utf8(&mut [0; 4]).bytes()),
            None => out.extend([
                0xed,
                (0x80 | (point >> 6 & 0x3f)) as u8,
                (0x80 | (point & 0x3f)) as u8,
            ]),
        }
    }
    out
}

/// Serializes as a type of a user's would. Sets and bytearrays, which serde lacks, become lists and bytes.
impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => match (i64::try_from(value), i128::try_from(value)) {
                (Ok(value), _) => serializer.serialize_i64(value),
                (_, Ok(value)) => serializer.serialize_i128(value),
                _ => Err(serde::ser::Error::custom("too wide")),
            },
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Str(points) => {
                let text: Option<String> =
                    points.iter().map(|point| char::from_u32(*point)).collect();
                serializer
                    .serialize_str(&text.ok_or_else(|| serde::ser::Error::custom("surrogates"))?)
            }
            Self::Bytes(bytes) | Self::Bytearray(bytes) => serializer.serialize_bytes(bytes),
            Self::List(items) | Self::Set(items) | Self::Frozenset(items) => {
                serializer.collect_seq(items)
            }
            Self::Tuple(items) => {
                let mut tuple = serializer.serialize_tuple(items.len())?;
                for item in items {
                    tuple.serialize_element(item)?;
                }
                tuple.end()
            }
            Self::Dict(entries) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

fn int() -> impl Strategy<Value = BigInt> {
    prop_oneof![
        (-300_i64..300).prop_map(BigInt::from),
        any::<i64>().prop_map(BigInt::from),
        any::<i128>().prop_map(BigInt::from),
        (0_u32..130, -1_i8..=1).prop_map(|(bits, off)| (BigInt::from(1) << bits) + off),
        (0_u32..130, -1_i8..=1).prop_map(|(bits, off)| -(BigInt::from(1) << bits) + off),
        vec(any::<u8>(), 0..600).prop_map(|bytes| BigInt::from_signed_bytes_le(&bytes)),
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (-5_i8..5).prop_map(f64::from),
        Just(-0.0),
        Just(f64::NAN)
    ]
}

fn code_points() -> impl Strategy<Value = Vec<u32>> {
    let point = prop_oneof![8 => 0_u32..0x80, 2 => 0_u32..0x1_0000, 1 => 0_u32..0x11_0000, 1 => 0xd800_u32..0xe000];
    prop_oneof![9 => vec(point, 0..12), 1 => vec(0_u32..0x300, 200..400)]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => vec(any::<u8>(), 0..12), 1 => vec(any::<u8>(), 250..300)]
}

fn hashable() -> impl Strategy<Value = Plain> {
    let leaf = prop_oneof![
        Just(Plain::None),
        any::<bool>().prop_map(Plain::Bool),
        int().prop_map(Plain::Int),
        float().prop_map(Plain::Float),
        code_points().prop_map(Plain::Str),
        bytes().prop_map(Plain::Bytes),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Plain::Tuple),
            vec(inner, 0..4).prop_map(Plain::Frozenset),
        ]
    })
}

/// Any plain value.
pub(crate) fn plain() -> impl Strategy<Value = Plain> {
    let leaf = prop_oneof![4 => hashable(), 1 => bytes().prop_map(Plain::Bytearray)];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Plain::List),
            vec(inner.clone(), 0..6).prop_map(Plain::Tuple),
            vec((hashable(), inner.clone()), 0..20).prop_map(Plain::Dict),
            vec(hashable(), 0..20).prop_map(Plain::Set),
        ]
    })
}
