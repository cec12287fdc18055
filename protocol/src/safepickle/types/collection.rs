//! Containers and the other types of the builtins that need a global, and those of `collections`.

use super::super::arena::{Node, NodeId, Span};
use super::super::construct::{Args, How};
use super::super::error::Malformed;
use super::super::known::Known;
use super::super::machine::{Machine, Step};
use super::super::object::{MapClass, Object};

impl Machine<'_, '_> {
    /// Calls a container class, in the ways that picklers write.
    pub(in super::super) fn collection(
        &mut self,
        known: Known,
        how: How,
        args: Args,
    ) -> Step<NodeId> {
        let ids: Vec<NodeId> = match args.len() {
            0..=3 => args.ids(&self.arena).to_vec(),
            _ => return Err(Malformed::Arguments.into()),
        };
        match (known, how, ids.as_slice()) {
            (Known::Set, How::Call, []) => self.make(Node::Set(Span::default())),
            (Known::Set, How::Call, [items]) => {
                let set = self.make(Node::Set(Span::default()))?;
                self.add_from(set, *items)
            }
            (Known::Frozenset, How::Call, []) => self.make(Node::Frozenset(Span::default())),
            (Known::Frozenset, How::Call, [items]) => {
                let set = self.make(Node::Frozenset(Span::default()))?;
                self.add_from(set, *items)
            }
            (Known::Bytearray, How::Call, []) => {
                let empty = self.own(&[], false)?;
                self.make(Node::Bytearray(empty))
            }
            (Known::Bytearray, How::Call, [content]) => match self.arena.node(*content) {
                Node::Bytes(bytes) => {
                    // Shared here, but whoever copies or writes the bytearrays does so for each.
                    self.charge(u64::from(bytes.len) / 8)?;
                    self.make(Node::Bytearray(bytes))
                }
                _ => Err(Malformed::Arguments.into()),
            },
            (Known::List, How::Call, []) => self.make(Node::List(Span::default())),
            (Known::Dict, How::Call, []) => self.make(Node::Dict(Span::default())),
            (Known::Bytes, How::Call, []) => {
                let empty = self.own(&[], false)?;
                self.make(Node::Bytes(empty))
            }
            (Known::Range, How::Call, [_, _, step]) => {
                let ints = ids
                    .iter()
                    .all(|id| matches!(self.arena.node(*id), Node::Int(_) | Node::BigInt(_)));
                if !ints || matches!(self.arena.node(*step), Node::Int(0)) {
                    return Err(Malformed::Arguments.into());
                }
                let span = self.new_span(&ids)?;
                self.make(Node::Range(span))
            }
            (Known::Slice, How::Call, [_, _, _]) => {
                let span = self.new_span(&ids)?;
                self.make(Node::Slice(span))
            }
            (Known::OrderedDict, How::Call, []) => self.map(MapClass::OrderedDict, None),
            (Known::OrderedDict, How::Call, [pairs]) => {
                let map = self.map(MapClass::OrderedDict, None)?;
                self.set_pairs(map, *pairs)?;
                Ok(map)
            }
            (Known::Counter, How::Call, []) => self.map(MapClass::Counter, None),
            (Known::Counter, How::Call, [counts]) => {
                if !matches!(self.arena.node(*counts), Node::Dict(_)) {
                    return Err(Malformed::Arguments.into());
                }
                let map = self.map(MapClass::Counter, None)?;
                let dict = self.dict_of(map)?;
                self.update(dict, *counts)?;
                Ok(map)
            }
            (Known::DefaultDict, How::Call, []) => self.map(MapClass::DefaultDict, None),
            (Known::DefaultDict, How::Call, [factory]) => {
                let factory = match self.arena.node(*factory) {
                    Node::None => None,
                    Node::Global(_) => Some(*factory),
                    _ if self.policy.is_inspect() => Some(*factory),
                    _ => return Err(Malformed::Arguments.into()),
                };
                self.map(MapClass::DefaultDict, factory)
            }
            (Known::Deque, How::Call, []) => self.deque(None),
            (Known::Deque, How::Call, [items]) => {
                let deque = self.deque(None)?;
                self.append_from(deque, *items)?;
                Ok(deque)
            }
            (Known::Deque, How::Call, [items, maxlen]) => {
                let maxlen = match self.arena.node(*maxlen) {
                    Node::None => None,
                    Node::Int(len) => Some(u64::try_from(len).map_err(|_| Malformed::Arguments)?),
                    _ => return Err(Malformed::Arguments.into()),
                };
                let deque = self.deque(maxlen)?;
                self.append_from(deque, *items)?;
                Ok(deque)
            }
            _ => Err(Malformed::Arguments.into()),
        }
    }

    fn map(&mut self, class: MapClass, factory: Option<NodeId>) -> Step<NodeId> {
        let dict = self.make(Node::Dict(Span::default()))?;
        self.make_object(Object::Map {
            class,
            dict,
            factory,
            attrs: None,
        })
    }

    fn deque(&mut self, maxlen: Option<u64>) -> Step<NodeId> {
        let list = self.make(Node::List(Span::default()))?;
        self.make_object(Object::Deque { list, maxlen })
    }

    /// The items of a list or tuple, charged as a walk over them.
    fn walk(&mut self, from: NodeId) -> Step<Vec<NodeId>> {
        match self.arena.node(from) {
            Node::List(span) | Node::Tuple(span) => {
                self.charge_copies(span.len as usize)?;
                Ok(self.arena.span(span).to_vec())
            }
            _ => Err(Malformed::Arguments.into()),
        }
    }

    fn add_from(&mut self, set: NodeId, items: NodeId) -> Step<NodeId> {
        for item in self.walk(items)? {
            self.add_item(set, item)?;
        }
        Ok(set)
    }

    fn append_from(&mut self, deque: NodeId, items: NodeId) -> Step<()> {
        let items = self.walk(items)?;
        self.append_to(deque, &items)
    }

    /// Sets what a list of pairs says, as Python 2 writes an OrderedDict.
    fn set_pairs(&mut self, map: NodeId, pairs: NodeId) -> Step<()> {
        let dict = self.dict_of(map)?;
        for pair in self.walk(pairs)? {
            let (Node::List(span) | Node::Tuple(span)) = self.arena.node(pair) else {
                return Err(Malformed::Arguments.into());
            };
            let [key, value] = *self.arena.span(span) else {
                return Err(Malformed::Arguments.into());
            };
            self.set_item(dict, key, value)?;
        }
        Ok(())
    }

    /// Appends to a list, a deque or a record. A deque drops from its front what is too much.
    pub(in super::super) fn append_to(&mut self, target: NodeId, items: &[NodeId]) -> Step<()> {
        let list = self.list_of(target)?;
        self.extend(list, items)?;
        if let Some(Object::Deque {
            maxlen: Some(maxlen),
            ..
        }) = self.arena.object(target)
        {
            let maxlen = *maxlen;
            if let Node::List(span) = &mut self.arena.nodes[list.index()] {
                let excess = u64::from(span.len).saturating_sub(maxlen);
                // At most `span.len`, hence within 32 bits.
                let excess = excess as u32;
                span.start += excess;
                span.len -= excess;
                span.cap -= excess;
            }
        }
        Ok(())
    }

    /// The list that appending to `id` fills.
    fn list_of(&mut self, id: NodeId) -> Step<NodeId> {
        let record = match self.arena.object(id) {
            Some(Object::Deque { list, .. }) => return Ok(*list),
            Some(Object::Record(record)) => record.list,
            _ if matches!(self.arena.node(id), Node::List(_)) => return Ok(id),
            _ => {
                return Err(Malformed::Operand {
                    expected: "list",
                    found: self.arena.kind(id),
                }
                .into());
            }
        };
        if let Some(list) = record {
            return Ok(list);
        }
        self.generic(id, "list")?;
        let list = self.make(Node::List(Span::default()))?;
        if let Some(Object::Record(record)) = self.arena.object_mut(id) {
            record.list = Some(list);
        }
        Ok(list)
    }

    /// The dict that setting keys of `id` fills.
    pub(in super::super) fn dict_of(&mut self, id: NodeId) -> Step<NodeId> {
        let record = match self.arena.object(id) {
            Some(Object::Map { dict, .. }) => return Ok(*dict),
            Some(Object::Record(record)) => record.dict,
            _ if matches!(self.arena.node(id), Node::Dict(_)) => return Ok(id),
            _ => {
                return Err(Malformed::Operand {
                    expected: "dict",
                    found: self.arena.kind(id),
                }
                .into());
            }
        };
        if let Some(dict) = record {
            return Ok(dict);
        }
        self.generic(id, "dict")?;
        let dict = self.make(Node::Dict(Span::default()))?;
        if let Some(Object::Record(record)) = self.arena.object_mut(id) {
            record.dict = Some(dict);
        }
        Ok(dict)
    }

    /// Makes sure that a record is of a class that is known by name only.
    fn generic(&self, id: NodeId, expected: &'static str) -> Step<()> {
        let known = self.arena.object(id).and_then(|object| match object {
            Object::Record(record) => self.arena.global(record.class?)?.known,
            _ => None,
        });
        match known {
            Some(_) if !self.policy.is_inspect() => Err(Malformed::Operand {
                expected,
                found: self.arena.kind(id),
            }
            .into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    /// Appending to a full deque drops from its front; when it takes turns with a list, so that neither
    /// lies at the end of the table, that costs a constant each time.
    #[test]
    fn a_full_deque_that_is_appended_to_takes_a_constant_each_time() {
        let mut stream = b"](".to_vec();
        // 1,023 and the item that is too much make a power of two.
        stream.extend(b"ccollections\ndeque\n(](");
        stream.extend(b"N".repeat(1023));
        stream.extend(b"eM\xff\x03tRq\x00]q\x01e");
        for _ in 0..10_000 {
            stream.extend(b"h\x00Na0h\x01Na0");
        }
        stream.extend(b".");
        let document = super::super::super::decode(&stream).unwrap();
        let outer = document.root().list().unwrap();
        let deque = outer.iter().next().unwrap().deque().unwrap();
        assert_eq!((deque.items.len(), deque.maxlen), (1023, Some(1023)));
        let items = document.root().arena().items.len();
        assert!(items < 10 * stream.len(), "{items}");
    }
}
