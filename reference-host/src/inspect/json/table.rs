//! A value as a flat table of nodes.

use std::collections::HashMap;

use agentix_protocol::safepickle::{Complex, Kind, NodeId, Text, Value};
use num_bigint::BigInt;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::super::Bounds;
use super::super::show::{DECIMAL_BITS, readable};
use super::node::{self, Node};
use super::{CutText, hex};

/// The nodes that a value leads to, nearest first.
pub(super) struct Table<'d, 's> {
    pub(super) bounds: &'s Bounds,
    root: Value<'d>,
    nodes: Vec<Value<'d>>,
    numbers: HashMap<NodeId, usize>,
}

impl<'d, 's> Table<'d, 's> {
    pub(super) fn new(root: Value<'d>, bounds: &'s Bounds) -> Self {
        let mut table = Self {
            bounds,
            root,
            nodes: Vec::new(),
            numbers: HashMap::new(),
        };
        table.add(root);
        let mut next = 0;
        while let Some(value) = table.nodes.get(next).copied() {
            next += 1;
            node::references(value, bounds, |part| table.add(part));
        }
        table
    }

    fn add(&mut self, value: Value<'d>) {
        if !is_inline(value) {
            let number = self.nodes.len();
            let nodes = &mut self.nodes;
            self.numbers.entry(value.id()).or_insert_with(|| {
                nodes.push(value);
                number
            });
        }
    }

    pub(super) fn reference(&self, value: Value<'d>) -> Reference<'_, 'd, 's> {
        Reference(self, value)
    }
}

impl Serialize for Table<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("root", &self.reference(self.root))?;
        map.serialize_entry("nodes", &Nodes(self))?;
        let left_out = self.nodes.len().saturating_sub(self.bounds.lines);
        map.serialize_entry("nodes_left_out", &left_out)?;
        map.end()
    }
}

struct Nodes<'t, 'd, 's>(&'t Table<'d, 's>);

impl Serialize for Nodes<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table) = self;
        let shown = table.nodes.iter().take(table.bounds.lines);
        serializer.collect_seq(shown.map(|value| Node(table, *value)))
    }
}

/// Whether a value stands where it is used, and not in the table.
fn is_inline(value: Value<'_>) -> bool {
    matches!(
        value.kind(),
        Kind::None
            | Kind::Bool
            | Kind::Int
            | Kind::Float
            | Kind::Complex
            | Kind::Str
            | Kind::Bytes
            | Kind::Global
    )
}

/// `V`: a value, or the number of its node.
pub(super) struct Reference<'t, 'd, 's>(&'t Table<'d, 's>, Value<'d>);

impl Serialize for Reference<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table, value) = self;
        let most = table.bounds.content;
        if let Some(number) = table.numbers.get(&value.id()) {
            return if *number < table.bounds.lines {
                one(serializer, "ref", number)
            } else {
                one(serializer, "left_out", value.kind().name())
            };
        }
        if let Some(bool) = value.as_bool() {
            serializer.serialize_bool(bool)
        } else if let Some(int) = value.as_big_int() {
            integer(serializer, &int, most)
        } else if let Some(float) = value.as_f64() {
            Float(float).serialize(serializer)
        } else if let Some(Complex { re, im }) = value.as_complex() {
            one(serializer, "complex", &[Float(re), Float(im)])
        } else if let Some(text) = value.as_text() {
            text_value(serializer, text, most)
        } else if let Some(bytes) = value.as_bytes() {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("bytes", &hex(bytes, table.bounds))?;
            if bytes.len() > most {
                map.serialize_entry("left_out", &(bytes.len() - most))?;
            }
            map.end()
        } else if let Some(global) = value.global() {
            let what = if global.is_function() {
                "function"
            } else {
                "type"
            };
            one(serializer, what, &name(*value, most))
        } else {
            // What is left of the kinds is None.
            serializer.serialize_none()
        }
    }
}

/// An object with one field.
pub(super) fn one<S: Serializer>(
    serializer: S,
    name: &str,
    value: &(impl Serialize + ?Sized),
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, value)?;
    map.end()
}

fn integer<S: Serializer>(serializer: S, int: &BigInt, most: usize) -> Result<S::Ok, S::Error> {
    if int.bits() <= DECIMAL_BITS {
        return one(serializer, "int", &int.to_string());
    }
    let hex = format!("{int:#x}");
    one(serializer, "int_hex", &CutText(&hex, most))
}

/// A float, by its digits and its bits.
struct Float(f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(float) = self;
        let mut map = serializer.serialize_map(Some(2))?;
        let digits = python_digits(*float);
        map.serialize_entry("float", &digits)?;
        map.serialize_entry("bits", &format!("{:016x}", float.to_bits()))?;
        map.end()
    }
}

/// What `repr` gives in Python.
fn python_digits(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    let digits = format!("{float:?}");
    match digits.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{exponent:0>2}")
        }
        None => digits,
    }
}

pub(super) fn text_value<S: Serializer>(
    serializer: S,
    text: Text<'_>,
    most: usize,
) -> Result<S::Ok, S::Error> {
    if let Some(text) = text.as_str() {
        return CutText(text, most).serialize(serializer);
    }
    let mut rest = text.code_points();
    let points: Vec<u32> = rest.by_ref().take(most).collect();
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("str", &points)?;
    match rest.count() {
        0 => {}
        left => map.serialize_entry("left_out", &left)?,
    }
    map.end()
}

/// Module and name of a class or function.
pub(super) fn name(value: Value<'_>, most: usize) -> Option<[NameText; 2]> {
    let global = value.global()?;
    let most = most.saturating_mul(10);
    let text = |text: Text<'_>| NameText(readable(text, usize::MAX), most);
    Some([text(global.module()), text(global.qualname())])
}

/// Part of a name, as `globals` has it.
pub(super) struct NameText(String, usize);

impl Serialize for NameText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        CutText(&self.0, self.1).serialize(serializer)
    }
}
