//! Decoded values back to pickle bytes, sharing and cycles kept, without recursion.

use std::collections::HashMap;

use super::arena::{Node, NodeId};
use super::forms::{self, Items, Step};
use super::opcode::Opcode;
use super::value::{Kind, Value};
use super::writer::{EncodeError, Protocol, Writer};

/// Encodes a decoded value as a pickle.
///
/// CPython's `pickle.loads` gives back an object of the same types with the same content, and so does
/// a [`Decoder`](super::Decoder) with the policy that admitted the value, or
/// [`Policy::agentix`](super::Policy::agentix) if all its kinds are that policy's.
///
/// Objects that are referred to more than once are written once, so the result is as small as the
/// value and shares what it shared. Strs and bytes are copied once, into the result.
///
/// # Errors
///
/// [`EncodeError::NotInProtocol`] for what the protocol cannot hold: below protocol 3 bytes and
/// bytearrays, unless they are empty, and so arrays of numpy; below 4 globals whose names are dotted or not ASCII, and sets
/// that hold themselves; below 5 the out-of-band buffers of
/// [`Policy::inspect`](super::Policy::inspect). [`EncodeError::TooLong`] for what the protocol
/// cannot state the size of.
pub fn encode(value: Value<'_>, protocol: Protocol) -> Result<Vec<u8>, EncodeError> {
    let survey = Survey::of(value, protocol);
    let mut encoder = Encoder {
        root: value,
        protocol,
        writer: Writer::new(protocol),
        objects: survey.objects,
        globals: HashMap::new(),
        steps: Vec::new(),
        hoisting: survey.needs_hoisting,
    };
    if survey.needs_hoisting {
        encoder.hoist(&survey.filled)?;
    }
    encoder.run(vec![Step::Value(value.id())])?;
    Ok(encoder.writer.finish())
}

/// What is known of each object, by number. Zeroed memory costs nothing until it is touched.
struct Objects {
    state: Vec<u8>,
    /// One more than the memo index, or 0.
    memo: Vec<u32>,
}

/// Met.
const SEEN: u8 = 1;
/// What it is made of is being walked.
const BEING_MADE: u8 = 2;
/// It is made, and what fills it is being walked.
const BEING_FILLED: u8 = 4;
/// Met more than once.
const SHARED: u8 = 8;

/// A first walk over the value, in the order in which it is going to be written.
struct Survey<'d> {
    root: Value<'d>,
    protocol: Protocol,
    objects: Objects,
    /// Objects that are made before they are filled or given a state.
    filled: Vec<NodeId>,
    /// An object is met while what it is made of is being written: the value cannot be written from the
    /// outside to the inside.
    needs_hoisting: bool,
}

impl<'d> Survey<'d> {
    fn of(value: Value<'d>, protocol: Protocol) -> Self {
        let count = value.document().node_count();
        let mut survey = Self {
            root: value,
            protocol,
            objects: Objects {
                state: vec![0; count],
                memo: vec![0; count],
            },
            filled: Vec::new(),
            needs_hoisting: false,
        };
        let mut steps = vec![Step::Value(value.id())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Value(id) => {
                    survey.meet(id, &mut steps);
                }
                Step::Items(mut items) => {
                    while let Some(id) = items.ids.get(items.next) {
                        items.next += 1;
                        let rest = steps.len();
                        if survey.meet(*id, &mut steps) {
                            // Behind the steps of this item.
                            steps.insert(rest, Step::Items(items));
                            break;
                        }
                    }
                }
                Step::Made(id) => {
                    let state = &mut survey.objects.state[id.index()];
                    *state = *state & !BEING_MADE | BEING_FILLED;
                }
                Step::End(id) => survey.objects.state[id.index()] &= !BEING_FILLED,
                _ => {}
            }
        }
        survey
    }

    /// Notes that the walk came to an object. Its steps, if there are any to walk, are added, and that
    /// there are is said.
    fn meet(&mut self, id: NodeId, steps: &mut Vec<Step<'d>>) -> bool {
        let node = self.root.arena().node(id);
        if !is_memoised(node) {
            return false;
        }
        let state = &mut self.objects.state[id.index()];
        if *state != 0 {
            self.needs_hoisting |= *state & BEING_MADE != 0;
            *state |= SHARED;
            return false;
        }
        *state = SEEN;
        if is_leaf(node, self.protocol) {
            return false;
        }
        *state |= BEING_MADE;
        steps.push(Step::End(id));
        let from = steps.len();
        forms::steps(self.root.at(id), self.protocol, steps);
        if !matches!(steps.last(), Some(Step::Made(_))) {
            self.filled.push(id);
        }
        steps[from..].reverse();
        true
    }
}

/// Whether a second reference to such an object is written as one.
fn is_memoised(node: Node) -> bool {
    match node {
        // A global has a memo of its own, by its name.
        Node::None | Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Global(_) => false,
        Node::Tuple(span) => span.len > 0,
        _ => true,
    }
}

/// Whether an object is written without steps.
fn is_leaf(node: Node, protocol: Protocol) -> bool {
    match node {
        Node::None
        | Node::Bool(_)
        | Node::Int(_)
        | Node::BigInt(_)
        | Node::Float(_)
        | Node::Str(_)
        | Node::Global(_) => true,
        Node::Tuple(span) => span.len == 0,
        Node::Bytes(bytes) => bytes.len > 0 || protocol >= Protocol::V3,
        Node::Bytearray(_) => protocol >= Protocol::V5,
        _ => false,
    }
}

struct Encoder<'d> {
    root: Value<'d>,
    protocol: Protocol,
    writer: Writer,
    objects: Objects,
    /// Memo indexes of classes and functions, by module and name.
    globals: HashMap<(&'d [u8], &'d [u8]), u32>,
    /// What is left to write, the next last.
    steps: Vec<Step<'d>>,
    /// Everything that can be filled is made first, and filled later.
    hoisting: bool,
}

impl<'d> Encoder<'d> {
    /// Makes everything that can be filled, then fills it, then gives it its states: so what is left
    /// can refer to all of it. CPython instead writes a tuple inside itself, which takes quadratic time
    /// at worst, and does not end for other objects that are made of themselves.
    fn hoist(&mut self, filled: &[NodeId]) -> Result<(), EncodeError> {
        for id in filled {
            if self.objects.memo[id.index()] == 0 {
                self.run(vec![Step::Op(Opcode::POP), Step::Value(*id)])?;
            }
        }
        for states in [false, true] {
            for id in filled {
                let mut steps = Vec::new();
                forms::steps(self.root.at(*id), self.protocol, &mut steps);
                let made = steps.iter().position(|step| matches!(step, Step::Made(_)));
                let mut steps = steps.split_off(made.map_or(0, |made| made + 1));
                let full = steps.iter().position(|step| matches!(step, Step::Filled));
                let last = steps.split_off(full.unwrap_or(steps.len()));
                let mut steps = if states { last } else { steps };
                if !steps
                    .iter()
                    .any(|step| matches!(step, Step::Op(_) | Step::Items(_)))
                {
                    continue;
                }
                steps.insert(0, Step::Value(*id));
                steps.push(Step::Op(Opcode::POP));
                steps.reverse();
                self.run(steps)?;
            }
        }
        Ok(())
    }

    /// Carries out steps, the last first.
    fn run(&mut self, steps: Vec<Step<'d>>) -> Result<(), EncodeError> {
        self.steps = steps;
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Value(id) => {
                    self.value(id)?;
                }
                Step::Items(items) => self.items(items)?,
                Step::Made(id) => self.made(id),
                Step::Filled | Step::End(_) => {}
                Step::Op(opcode) => self.writer.op(opcode),
                Step::EndTuple(len) => self.writer.end_tuple(len),
                Step::Global(module, name) => self.global(module.as_bytes(), name.as_bytes())?,
                Step::Int(int) => self.writer.int(int),
                Step::Wide(int) => match i128::try_from(int) {
                    Ok(int) => self.writer.wide_int(int),
                    Err(_) => self.writer.big_int(&int.into())?,
                },
                Step::Float(float) => self.writer.float(float),
                Step::Str(text) => self.writer.str(text.as_bytes())?,
                Step::Text(text) => self.writer.str(&text)?,
                Step::Bytes(bytes) => self.writer.bytes(bytes)?,
                Step::TimeState(state) => self.time_state(&state)?,
                Step::Extension(code) => self.writer.extension(code),
                Step::Buffer => {
                    self.writer.needs(Kind::Record, Protocol::V5)?;
                    self.writer.op(Opcode::NEXT_BUFFER);
                }
            }
        }
        Ok(())
    }

    fn items(&mut self, mut items: Items<'d>) -> Result<(), EncodeError> {
        while let Some(id) = items.ids.get(items.next) {
            if let Some((batch, append)) = items.batch
                && items.next.is_multiple_of(batch)
            {
                if items.next > 0 {
                    self.writer.op(append);
                }
                self.writer.op(Opcode::MARK);
            }
            items.next += 1;
            let rest = self.steps.len();
            if self.value(*id)? {
                // Behind the steps of this item.
                self.steps.insert(rest, Step::Items(items));
                return Ok(());
            }
        }
        if let Some((_, append)) = items.batch
            && !items.ids.is_empty()
        {
            self.writer.op(append);
        }
        Ok(())
    }

    fn made(&mut self, id: NodeId) {
        let state = &mut self.objects.state[id.index()];
        *state &= !BEING_MADE;
        if *state & SHARED != 0 || self.hoisting {
            self.objects.memo[id.index()] = self.writer.memoize() + 1;
        }
    }

    /// Writes a leaf or a reference, or adds the steps of an object and says so.
    fn value(&mut self, id: NodeId) -> Result<bool, EncodeError> {
        if let Some(index) = self.objects.memo[id.index()].checked_sub(1) {
            self.writer.recall(index);
            return Ok(false);
        }
        let value = self.root.at(id);
        let arena = value.arena();
        let node = value.node();
        if is_leaf(node, self.protocol) {
            match node {
                Node::Bool(bool) => self.writer.bool(bool),
                Node::Int(int) => self.writer.int(int),
                Node::BigInt(index) => self.writer.big_int(&arena.big_ints[index as usize])?,
                Node::Float(float) => self.writer.float(float),
                Node::Str(bytes) => self.writer.str(value.raw_bytes(bytes))?,
                Node::Bytes(bytes) => self.writer.bytes(value.raw_bytes(bytes))?,
                Node::Bytearray(bytes) => self.writer.bytearray(value.raw_bytes(bytes))?,
                Node::Tuple(_) => self.writer.end_tuple(0),
                Node::Global(index) => {
                    let global = arena.globals[index as usize];
                    self.global(arena.bytes(global.module), arena.bytes(global.qualname))?;
                }
                _ => self.writer.none(),
            }
            if self.objects.state[id.index()] & SHARED != 0 {
                self.objects.memo[id.index()] = self.writer.memoize() + 1;
            }
            return Ok(false);
        }
        let state = &mut self.objects.state[id.index()];
        if *state & BEING_MADE != 0 {
            // What a stream makes of others came after them. But before they could be filled, sets were
            // made of their elements.
            return Err(EncodeError::NotInProtocol {
                kind: Kind::Set,
                protocol: self.protocol,
                needed: Protocol::V4,
            });
        }
        *state |= BEING_MADE;
        let from = self.steps.len();
        forms::steps(value, self.protocol, &mut self.steps);
        if self.hoisting {
            let made = self.steps[from..]
                .iter()
                .position(|step| matches!(step, Step::Made(_)));
            self.steps
                .truncate(made.map_or(from, |made| from + made + 1));
        }
        self.steps[from..].reverse();
        Ok(true)
    }

    fn global(&mut self, module: &'d [u8], qualname: &'d [u8]) -> Result<(), EncodeError> {
        if let Some(index) = self.globals.get(&(module, qualname)) {
            self.writer.recall(*index);
            return Ok(());
        }
        self.writer.global(module, qualname)?;
        let index = self.writer.memoize();
        self.globals.insert((module, qualname), index);
        Ok(())
    }

    /// The state of a date or time: bytes, or before there were any, text of as many code points, which
    /// is what Python 2 wrote and later versions still read.
    fn time_state(&mut self, state: &[u8]) -> Result<(), EncodeError> {
        if self.protocol >= Protocol::V3 {
            return self.writer.bytes(state);
        }
        let text: String = state.iter().map(|byte| char::from(*byte)).collect();
        self.writer.str(text.as_bytes())
    }
}
