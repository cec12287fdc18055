//! Copies of values into a document that is being built, without recursion.

use super::arena::{Arena, Bytes, Node, NodeId, Span};
use super::builder::BuildError;
use super::machine::Machine;
use super::object::Object;
use super::types::decimal::DecimalData;
use super::types::exception::ExceptionData;
use super::types::record::RecordData;
use super::value::Value;

/// Copies `value` with everything that it refers to.
pub(super) fn copy(machine: &mut Machine<'_, '_>, value: Value<'_>) -> Result<NodeId, BuildError> {
    let mut copier = Copier {
        from: value.arena(),
        machine,
        copies: vec![0; value.document().node_count()],
        reached: Vec::new(),
    };
    copier.reach(value.id())?;
    for original in std::mem::take(&mut copier.reached) {
        let node = copier.node(original)?;
        let copied = copier.id(original);
        // A global has been made with all of it.
        if !matches!(node, Node::Global(_)) {
            copier.machine.arena.nodes[copied.index()] = node;
        }
    }
    Ok(copier.id(value.id()))
}

pub(super) struct Copier<'m, 'p, 'a, 'd> {
    from: &'d Arena<'d>,
    machine: &'m mut Machine<'p, 'a>,
    /// One more than the place of the copy of each object, or 0. Zeroed memory costs nothing until it
    /// is touched.
    copies: Vec<u32>,
    /// Originals in the order that they were met.
    reached: Vec<NodeId>,
}

type Copied<T> = Result<T, BuildError>;

impl Copier<'_, '_, '_, '_> {
    /// Sets a place aside for each object that `root` refers to, itself included.
    fn reach(&mut self, root: NodeId) -> Copied<()> {
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            if self.copies[id.index()] != 0 {
                continue;
            }
            let copied = match self.from.global(id) {
                Some(global) => self.machine.named_global(
                    self.from.bytes(global.module),
                    self.from.bytes(global.qualname),
                    global.known,
                )?,
                None => self.machine.make(Node::None)?,
            };
            // A place is below `u32::MAX`.
            self.copies[id.index()] = copied.index() as u32 + 1;
            self.reached.push(id);
            pending.extend(self.from.references(id).iter());
        }
        Ok(())
    }

    /// The copy of an object that was reached.
    pub(super) fn id(&self, original: NodeId) -> NodeId {
        let place = self.copies[original.index()] as usize;
        debug_assert!(place != 0, "only what is referred to is copied");
        NodeId::new(place.saturating_sub(1)).unwrap_or(original)
    }

    pub(super) fn optional(&self, original: Option<NodeId>) -> Option<NodeId> {
        original.map(|id| self.id(id))
    }

    pub(super) fn bytes(&mut self, bytes: Bytes) -> Copied<Bytes> {
        let content = self.from.bytes(bytes);
        Ok(self.machine.own(content, bytes.flags.surrogates)?)
    }

    fn span(&mut self, span: Span) -> Copied<Span> {
        let ids: Vec<_> = self.from.span(span).iter().map(|id| self.id(*id)).collect();
        Ok(self.machine.new_span(&ids)?)
    }

    fn node(&mut self, original: NodeId) -> Copied<Node> {
        Ok(match self.from.node(original) {
            node @ (Node::None
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Float(_)
            | Node::Date(_)
            | Node::Timedelta { .. }
            | Node::Global(_)) => node,
            Node::BigInt(index) => {
                let int = self.from.big_ints[index as usize].clone();
                self.machine.charge_big_int(&int)?;
                Node::BigInt(place(&mut self.machine.arena.big_ints, int)?)
            }
            Node::Complex(index) => {
                let value = self.from.complexes[index as usize];
                Node::Complex(place(&mut self.machine.arena.complexes, value)?)
            }
            Node::Str(bytes) => Node::Str(self.bytes(bytes)?),
            Node::Bytes(bytes) => Node::Bytes(self.bytes(bytes)?),
            Node::Bytearray(bytes) => Node::Bytearray(self.bytes(bytes)?),
            Node::List(span) => Node::List(self.span(span)?),
            Node::Tuple(span) => Node::Tuple(self.span(span)?),
            Node::Dict(span) => Node::Dict(self.span(span)?),
            Node::Set(span) => Node::Set(self.span(span)?),
            Node::Frozenset(span) => Node::Frozenset(self.span(span)?),
            Node::Range(span) => Node::Range(self.span(span)?),
            Node::Slice(span) => Node::Slice(self.span(span)?),
            Node::Time { raw, tzinfo } => Node::Time {
                raw,
                tzinfo: self.optional(tzinfo),
            },
            Node::Datetime { raw, tzinfo } => Node::Datetime {
                raw,
                tzinfo: self.optional(tzinfo),
            },
            Node::Timezone { offset, name } => Node::Timezone {
                offset: self.id(offset),
                name: self.optional(name),
            },
            Node::Decimal(index) => {
                let decimal = self.from.decimals[index as usize];
                let digits = self.bytes(decimal.digits)?;
                let decimal = DecimalData { digits, ..decimal };
                Node::Decimal(place(&mut self.machine.arena.decimals, decimal)?)
            }
            Node::Fraction {
                numerator,
                denominator,
            } => Node::Fraction {
                numerator: self.id(numerator),
                denominator: self.id(denominator),
            },
            Node::Uuid(index) => {
                let uuid = self.from.uuids[index as usize];
                Node::Uuid(place(&mut self.machine.arena.uuids, uuid)?)
            }
            Node::Path { class, parts } => Node::Path {
                class,
                parts: self.span(parts)?,
            },
            Node::Object(index) => {
                let object = self.object(&self.from.objects[index as usize])?;
                Node::Object(place(&mut self.machine.arena.objects, object)?)
            }
        })
    }

    fn object(&mut self, object: &Object) -> Copied<Object> {
        Ok(match object {
            Object::Map {
                class,
                dict,
                factory,
                attrs,
            } => Object::Map {
                class: *class,
                dict: self.id(*dict),
                factory: self.optional(*factory),
                attrs: self.optional(*attrs),
            },
            Object::Deque { list, maxlen } => Object::Deque {
                list: self.id(*list),
                maxlen: *maxlen,
            },
            Object::Exception(exception) => Object::Exception(ExceptionData {
                class: exception.class,
                args: self.id(exception.args),
                fields: self.id(exception.fields),
                attrs: self.optional(exception.attrs),
            }),
            Object::Dtype(dtype) => Object::Dtype(Box::new(dtype.with(|id| self.id(id)))),
            Object::Ndarray(array) => Object::Ndarray(array.with(|id| self.id(id))),
            Object::NumpyScalar(scalar) => Object::NumpyScalar(scalar.with(|id| self.id(id))),
            Object::Record(record) => Object::Record(RecordData {
                origin: record.origin,
                class: self.optional(record.class),
                args: self.id(record.args),
                kwargs: self.optional(record.kwargs),
                states: self.optional(record.states),
                attrs: self.optional(record.attrs),
                list: self.optional(record.list),
                dict: self.optional(record.dict),
            }),
        })
    }
}

/// Puts a value into a table of its own.
fn place<T>(table: &mut Vec<T>, value: T) -> Copied<u32> {
    let index = u32::try_from(table.len()).map_err(|_| BuildError::TooLarge)?;
    table.push(value);
    Ok(index)
}
