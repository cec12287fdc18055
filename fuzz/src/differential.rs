//! Plain values, against the crate `serde-pickle`: what both accept is the same value.

use std::collections::{BTreeMap, BTreeSet};

use agentix_protocol::safepickle::{
    Decoder, Document, Event, Limits, Opcode, Policy, Value as Ours,
};
use serde_pickle::{DeOptions, HashableValue, Value as Theirs};

use super::walk;

/// Where `serde-pickle` is known to differ from Python, or takes what a process may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It puts an empty dict in the place of objects, and has few of the classes.
    Objects,
    /// DUP, and storing an object in the memo twice, copy the object, so that what is done to one
    /// is not done to the other. DUP of a list into itself takes memory without end.
    Copies,
    /// Storing under an index that is taken changes what was read from there before.
    MemoOverwritten,
    /// It drops a carriage return before the newline that ends a text.
    CarriageReturn,
    /// Its keys are ordered, and NaN, and floats that may equal integers only by rounding, have no
    /// place in its order; a large integer and the float that equals it are two keys to it.
    FloatKeys,
    /// It recurses, so a deep value overflows the stack.
    Deep,
    /// It unfolds what is shared.
    Unfolds,
}

/// Containers made by one stream, at most; its values are no deeper.
const CONTAINERS: usize = 200;
/// Objects of a value, shared ones as often as they are referred to.
const UNFOLDED: usize = 10_000;
/// Bytes of input; some of its costs are quadratic.
const LONGEST: usize = 16_384;

/// Decodes `bytes` by both, unless it is known that they differ.
pub fn differential(bytes: &[u8]) {
    let mut watch = Watch::default();
    let Ok(document) = decoder().decode_observed(bytes, |event| watch.event(&event)) else {
        return;
    };
    if watch.known.or_else(|| unlike(document.root())).is_none()
        && let Some(theirs) = theirs(bytes, &document)
    {
        let ours = document.root();
        assert!(same(ours, &theirs), "{ours:?} is not {theirs:?}");
    }
}

/// What is known to be different about these bytes, if we accept them.
pub fn known(bytes: &[u8]) -> Option<Known> {
    let mut watch = Watch::default();
    let decoded = decoder().decode_observed(bytes, |event| watch.event(&event));
    let document = decoded.ok()?;
    watch.known.or_else(|| unlike(document.root()))
}

/// Whether both give the same value, if both accept. Only for bytes that do it no harm.
pub fn agree(bytes: &[u8]) -> Option<bool> {
    let document = decoder().decode(bytes).ok()?;
    Some(same(document.root(), &theirs(bytes, &document)?))
}

fn decoder() -> Decoder {
    let limits = Limits::default().input_bytes(LONGEST as u64);
    Decoder::new(Policy::agentix(), limits)
}

fn theirs(bytes: &[u8], ours: &Document<'_>) -> Option<Theirs> {
    let options = DeOptions::new().decode_strings();
    serde_pickle::value_from_slice(&bytes[..ours.consumed()], options).ok()
}

/// What is known of a stream from its instructions.
#[derive(Default)]
struct Watch {
    known: Option<Known>,
    stored: BTreeSet<u64>,
    containers: usize,
    /// The last instruction left a new object on top of the stack.
    new_on_top: bool,
}

impl Watch {
    fn event(&mut self, event: &Event<'_>) {
        let Event::Instruction {
            opcode, argument, ..
        } = *event
        else {
            self.known.get_or_insert(Known::Objects);
            return;
        };
        if let Some(known) = self.instruction(opcode, argument) {
            self.known.get_or_insert(known);
        }
    }

    fn instruction(&mut self, opcode: Opcode, argument: &[u8]) -> Option<Known> {
        let new_before = self.new_on_top;
        self.new_on_top = false;
        match opcode {
            Opcode::PROTO | Opcode::FRAME => self.new_on_top = new_before,
            Opcode::DUP => return Some(Known::Copies),
            Opcode::PUT | Opcode::BINPUT | Opcode::LONG_BINPUT | Opcode::MEMOIZE => {
                if !new_before {
                    return Some(Known::Copies);
                }
                if !self.stored.insert(self.index(opcode, argument)?) {
                    return Some(Known::MemoOverwritten);
                }
            }
            Opcode::EMPTY_LIST
            | Opcode::EMPTY_DICT
            | Opcode::EMPTY_SET
            | Opcode::LIST
            | Opcode::DICT
            | Opcode::FROZENSET
            | Opcode::TUPLE
            | Opcode::TUPLE1
            | Opcode::TUPLE2
            | Opcode::TUPLE3 => {
                self.new_on_top = true;
                self.containers += 1;
                if self.containers > CONTAINERS {
                    return Some(Known::Deep);
                }
            }
            Opcode::MARK
            | Opcode::POP
            | Opcode::POP_MARK
            | Opcode::APPEND
            | Opcode::APPENDS
            | Opcode::SETITEM
            | Opcode::SETITEMS
            | Opcode::ADDITEMS
            | Opcode::GET
            | Opcode::BINGET
            | Opcode::LONG_BINGET => {}
            Opcode::REDUCE
            | Opcode::NEWOBJ
            | Opcode::NEWOBJ_EX
            | Opcode::OBJ
            | Opcode::INST
            | Opcode::BUILD => return Some(Known::Objects),
            _ => self.new_on_top = true,
        }
        let is_text = matches!(
            opcode,
            Opcode::INT
                | Opcode::LONG
                | Opcode::FLOAT
                | Opcode::STRING
                | Opcode::UNICODE
                | Opcode::PUT
                | Opcode::GET
        );
        if is_text && argument.ends_with(b"\r\n") {
            return Some(Known::CarriageReturn);
        }
        None
    }

    /// Where an instruction stores.
    fn index(&self, opcode: Opcode, argument: &[u8]) -> Option<u64> {
        match opcode {
            Opcode::PUT => std::str::from_utf8(argument).ok()?.trim_end().parse().ok(),
            Opcode::BINPUT => argument.first().map(|index| u64::from(*index)),
            Opcode::LONG_BINPUT => Some(u64::from(u32::from_le_bytes(argument.try_into().ok()?))),
            _ => Some(self.stored.len() as u64),
        }
    }
}

/// What is known of a value.
fn unlike(root: Ours<'_>) -> Option<Known> {
    if walk::unfolds_to_more_than(UNFOLDED, root) {
        return Some(Known::Unfolds);
    }
    let mut known = None;
    walk::each(root, |value| {
        let mut keys = Vec::new();
        if let Some(entries) = value.dict() {
            keys.extend(entries.iter().map(|(key, _)| key));
        }
        for elements in [value.set(), value.frozenset()].into_iter().flatten() {
            keys.extend(elements.iter());
        }
        while let Some(key) = keys.pop() {
            // From here on, an integer and its neighbour may round to the same float.
            if key
                .as_f64()
                .is_some_and(|float| float.is_nan() || float.abs() >= (1_u64 << 53) as f64)
                || is_large_float(key)
            {
                known = Some(Known::FloatKeys);
            }
            keys.extend(walk::parts(key));
        }
    });
    known
}

/// Whether an integer is from 2^53 on and equals a float, which may have been a key after it: the
/// first of equal keys stays.
fn is_large_float(key: Ours<'_>) -> bool {
    key.as_big_int()
        .is_some_and(|int| (54..=1024).contains(&int.bits()) && equals_a_float(&int.to_string()))
}

/// Whether the nearest float to a decimal integer has just its digits.
fn equals_a_float(digits: &str) -> bool {
    digits
        .parse::<f64>()
        .is_ok_and(|float| format!("{float:.0}") == digits)
}

fn same(ours: Ours<'_>, theirs: &Theirs) -> bool {
    match theirs {
        Theirs::None => ours.is_none(),
        Theirs::Bool(bool) => ours.as_bool() == Some(*bool),
        Theirs::I64(int) => ours.as_i64() == Some(*int),
        Theirs::Int(int) => ours
            .as_big_int()
            .is_some_and(|ours| ours.to_signed_bytes_le() == int.to_signed_bytes_le()),
        Theirs::F64(float) => ours.as_f64().map(f64::to_bits) == Some(float.to_bits()),
        // It makes bytes of a bytearray.
        Theirs::Bytes(bytes) => ours.as_bytes().or(ours.as_bytearray()) == Some(bytes.as_slice()),
        Theirs::String(text) => ours.as_str() == Some(text.as_str()),
        Theirs::List(items) | Theirs::Tuple(items) => {
            let found = match theirs {
                Theirs::List(_) => ours.list(),
                _ => ours.tuple(),
            };
            found.is_some_and(|found| {
                found.len() == items.len()
                    && found
                        .iter()
                        .zip(items)
                        .all(|(ours, theirs)| same(ours, theirs))
            })
        }
        Theirs::Set(elements) => ours.set().is_some_and(|found| {
            found
                .iter()
                .map(hashable)
                .collect::<Option<BTreeSet<_>>>()
                .as_ref()
                == Some(elements)
        }),
        Theirs::FrozenSet(elements) => ours.frozenset().is_some_and(|found| {
            found
                .iter()
                .map(hashable)
                .collect::<Option<BTreeSet<_>>>()
                .as_ref()
                == Some(elements)
        }),
        Theirs::Dict(entries) => ours.dict().is_some_and(|found| {
            let found: Option<BTreeMap<_, _>> = found
                .iter()
                .map(|(key, value)| Some((hashable(key)?, value)))
                .collect();
            found.is_some_and(|found| {
                found.len() == entries.len()
                    && found
                        .iter()
                        .zip(entries)
                        .all(|((key, value), (their_key, theirs))| {
                            // Of equal keys the first stays in both, so its type is the same.
                            std::mem::discriminant(key) == std::mem::discriminant(their_key)
                                && key == their_key
                                && same(*value, theirs)
                        })
            })
        }),
    }
}

/// A key of ours as one of theirs.
fn hashable(key: Ours<'_>) -> Option<HashableValue> {
    if key.is_none() {
        return Some(HashableValue::None);
    }
    if let Some(bool) = key.as_bool() {
        return Some(HashableValue::Bool(bool));
    }
    if let Some(int) = key.as_i64() {
        return Some(HashableValue::I64(int));
    }
    if let Some(int) = key.as_big_int() {
        // Its integers are of another version of the crate.
        return int.to_string().parse().ok().map(HashableValue::Int);
    }
    if let Some(float) = key.as_f64() {
        return Some(HashableValue::F64(float));
    }
    if let Some(bytes) = key.as_bytes() {
        return Some(HashableValue::Bytes(bytes.to_vec()));
    }
    if let Some(text) = key.as_str() {
        return Some(HashableValue::String(text.to_owned()));
    }
    if let Some(items) = key.tuple() {
        return items
            .iter()
            .map(hashable)
            .collect::<Option<_>>()
            .map(HashableValue::Tuple);
    }
    key.frozenset()?
        .iter()
        .map(hashable)
        .collect::<Option<_>>()
        .map(HashableValue::FrozenSet)
}
