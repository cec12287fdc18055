//! Decoded values back to pickle bytes, sharing and cycles kept, without recursion.

use super::arena::{Node, NodeId};
use super::opcode::Opcode;
use super::value::{Kind, Value};
use super::writer::{BATCH, EncodeError, Protocol, Writer};

/// Encodes a decoded value as a pickle.
///
/// Objects that are referred to more than once are written once, so the result is as small as the
/// value and shares what it shared. Strs and bytes are copied once, into the result.
///
/// # Errors
///
/// [`EncodeError::NotInProtocol`] for bytes at protocol 2, sets and frozensets below 4, and
/// bytearrays below 5; [`EncodeError::TooLong`] for what the protocol cannot state the size of.
pub fn encode(value: Value<'_>, protocol: Protocol) -> Result<Vec<u8>, EncodeError> {
    let survey = Survey::of(value);
    let mut encoder = Encoder {
        root: value,
        writer: Writer::new(protocol),
        objects: survey.objects,
    };
    if survey.tuple_cycle {
        encoder.hoist(&survey.mutable)?;
    }
    encoder.emit(value.id())?;
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
/// Being walked.
const OPEN: u8 = 2;
/// Met more than once.
const SHARED: u8 = 4;

/// A first walk over the value.
struct Survey {
    objects: Objects,
    mutable: Vec<NodeId>,
    /// A tuple is reached from itself. It cannot be written before its items, and these hold it.
    tuple_cycle: bool,
}

impl Survey {
    fn of(value: Value<'_>) -> Self {
        let count = value.document().node_count();
        let objects = Objects {
            state: vec![0; count],
            memo: vec![0; count],
        };
        let mut survey = Self {
            objects,
            mutable: Vec::new(),
            tuple_cycle: false,
        };
        let mut open: Vec<(NodeId, &[NodeId])> = Vec::new();
        let mut current = Some(value.id());
        loop {
            if let Some(id) = current.take()
                && survey.meet(id, value.at(id).node())
            {
                open.push((id, value.arena().children(id)));
            }
            let Some((id, rest)) = open.last_mut() else {
                return survey;
            };
            if let Some((next, after)) = rest.split_first() {
                *rest = after;
                current = Some(*next);
            } else {
                survey.objects.state[id.index()] &= !OPEN;
                open.pop();
            }
        }
    }

    /// Notes that the walk came to an object, and says whether it is to be walked.
    fn meet(&mut self, id: NodeId, node: Node) -> bool {
        if !memoisable(node) {
            return false;
        }
        let state = &mut self.objects.state[id.index()];
        if *state != 0 {
            self.tuple_cycle |= *state & OPEN != 0 && matches!(node, Node::Tuple(_));
            *state |= SHARED;
            return false;
        }
        *state = SEEN | OPEN;
        if matches!(node, Node::List(_) | Node::Dict(_) | Node::Set(_)) {
            self.mutable.push(id);
        }
        true
    }
}

/// Whether a second reference to such an object is written as one.
fn memoisable(node: Node) -> bool {
    match node {
        Node::None | Node::Bool(_) | Node::Int(_) | Node::Float(_) => false,
        Node::Tuple(span) => span.len > 0,
        _ => true,
    }
}

struct Encoder<'d> {
    root: Value<'d>,
    writer: Writer,
    objects: Objects,
}

/// A container whose items are being written.
struct Open<'d> {
    id: NodeId,
    kind: Kind,
    items: &'d [NodeId],
    next: usize,
}

impl<'d> Encoder<'d> {
    fn memoize(&mut self, id: NodeId, always: bool) {
        if always || self.objects.state[id.index()] & SHARED != 0 {
            self.objects.memo[id.index()] = self.writer.memoize() + 1;
        }
    }

    /// Writes every list, dict and set empty, then fills them, so that what is left can refer to
    /// them all. CPython instead writes a tuple inside itself, which takes quadratic time at worst.
    fn hoist(&mut self, mutable: &[NodeId]) -> Result<(), EncodeError> {
        for id in mutable {
            self.empty(*id)?;
            self.memoize(*id, true);
            self.writer.op(Opcode::POP);
        }
        for id in mutable {
            let mut open = Vec::new();
            self.value(*id, &mut open)?;
            open.push(self.open(*id));
            self.run(open)?;
            self.writer.op(Opcode::POP);
        }
        Ok(())
    }

    fn emit(&mut self, id: NodeId) -> Result<(), EncodeError> {
        let mut open = Vec::new();
        self.value(id, &mut open)?;
        self.run(open)
    }

    fn run(&mut self, mut open: Vec<Open<'d>>) -> Result<(), EncodeError> {
        while let Some(container) = open.last_mut() {
            if container.next == container.items.len() {
                let (id, kind, len) = (container.id, container.kind, container.items.len());
                open.pop();
                self.end(id, kind, len);
                continue;
            }
            let (item, at) = (container.items[container.next], container.next);
            container.next += 1;
            let kind = container.kind;
            self.before_item(kind, at);
            self.value(item, &mut open)?;
        }
        Ok(())
    }

    /// Writes a leaf or a reference, or begins a container.
    fn value(&mut self, id: NodeId, open: &mut Vec<Open<'d>>) -> Result<(), EncodeError> {
        if let Some(index) = self.objects.memo[id.index()].checked_sub(1) {
            self.writer.recall(index);
            return Ok(());
        }
        let value = self.root.at(id);
        match value.node() {
            Node::None => self.writer.none(),
            Node::Bool(bool) => self.writer.bool(bool),
            Node::Int(int) => self.writer.int(int),
            Node::BigInt(index) => self
                .writer
                .big_int(&value.arena().big_ints[index as usize])?,
            Node::Float(float) => self.writer.float(float),
            Node::Str(bytes) => self.writer.str(value.raw_bytes(bytes))?,
            Node::Bytes(bytes) => self.writer.bytes(value.raw_bytes(bytes))?,
            Node::Bytearray(bytes) => self.writer.bytearray(value.raw_bytes(bytes))?,
            Node::List(_) | Node::Dict(_) | Node::Set(_) => {
                self.empty(id)?;
                open.push(self.open(id));
            }
            Node::Tuple(span) => {
                self.writer.begin_tuple(span.len as usize);
                open.push(self.open(id));
                return Ok(());
            }
            Node::Frozenset(_) => {
                self.writer.needs(Kind::Frozenset, Protocol::V4)?;
                self.writer.op(Opcode::MARK);
                open.push(self.open(id));
                return Ok(());
            }
            _ => {
                return Err(EncodeError::Custom(format!(
                    "a {} is not encoded",
                    value.kind()
                )));
            }
        }
        self.memoize(id, false);
        Ok(())
    }

    fn open(&self, id: NodeId) -> Open<'d> {
        let value = self.root.at(id);
        Open {
            id,
            kind: value.kind(),
            items: value.arena().children(id),
            next: 0,
        }
    }

    fn empty(&mut self, id: NodeId) -> Result<(), EncodeError> {
        match self.root.at(id).kind() {
            Kind::Dict => self.writer.op(Opcode::EMPTY_DICT),
            Kind::Set => {
                self.writer.needs(Kind::Set, Protocol::V4)?;
                self.writer.op(Opcode::EMPTY_SET);
            }
            _ => self.writer.op(Opcode::EMPTY_LIST),
        }
        Ok(())
    }

    /// Closes a full batch and opens the next.
    fn before_item(&mut self, kind: Kind, at: usize) {
        let Some((batch, append)) = batch(kind) else {
            return;
        };
        if at.is_multiple_of(batch) {
            if at > 0 {
                self.writer.op(append);
            }
            self.writer.op(Opcode::MARK);
        }
    }

    fn end(&mut self, id: NodeId, kind: Kind, len: usize) {
        match (kind, batch(kind)) {
            (_, Some((_, append))) if len > 0 => self.writer.op(append),
            (_, Some(_)) => {}
            (Kind::Frozenset, None) => {
                self.writer.op(Opcode::FROZENSET);
                self.memoize(id, false);
            }
            (_, None) => {
                self.writer.end_tuple(len);
                self.memoize(id, false);
            }
        }
    }
}

/// Items of a batch and the opcode that ends it, for containers that are filled in batches.
fn batch(kind: Kind) -> Option<(usize, Opcode)> {
    match kind {
        Kind::List => Some((BATCH, Opcode::APPENDS)),
        Kind::Dict => Some((2 * BATCH, Opcode::SETITEMS)),
        Kind::Set => Some((BATCH, Opcode::ADDITEMS)),
        _ => None,
    }
}
