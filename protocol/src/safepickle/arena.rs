//! Where decoded objects live: one flat table, so that nothing about them recurses.

use std::borrow::Cow;

use num_bigint::BigInt;

use super::value::Kind;

/// The number of an object in its [`Document`](super::Document).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of bytes, in the input or in the arena's own bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) start: u32,
    pub(super) len: u32,
    /// Where, and for text whether it holds surrogates.
    pub(super) flags: BytesFlags,
}

/// Flags of [`Bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BytesFlags {
    /// In [`Arena::owned`], not in the input.
    pub(super) owned: bool,
    /// Text with surrogate code points, hence no UTF-8.
    pub(super) surrogates: bool,
}

/// A run of [`Arena::items`]: `len` in use of `cap` reserved. A dict counts each entry as two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) cap: u32,
}

/// One object. 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    None,
    Bool(bool),
    /// An int that fits; others are `BigInt`, so that each int has one form.
    Int(i64),
    /// Index into [`Arena::big_ints`].
    BigInt(u32),
    Float(f64),
    /// Generalised UTF-8: surrogates as three bytes each.
    Str(Bytes),
    Bytes(Bytes),
    Bytearray(Bytes),
    List(Span),
    Tuple(Span),
    Dict(Span),
    Set(Span),
    Frozenset(Span),
}

/// The arena is full: a number would no longer fit in 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

#[derive(Clone, Debug)]
pub(super) struct Arena<'a> {
    pub(super) input: Cow<'a, [u8]>,
    pub(super) nodes: Vec<Node>,
    pub(super) items: Vec<NodeId>,
    pub(super) owned: Vec<u8>,
    pub(super) big_ints: Vec<BigInt>,
}

impl<'a> Arena<'a> {
    pub(super) fn new(input: Cow<'a, [u8]>) -> Self {
        Self {
            input,
            nodes: Vec::new(),
            items: Vec::new(),
            owned: Vec::new(),
            big_ints: Vec::new(),
        }
    }

    pub(super) fn into_owned(self) -> Arena<'static> {
        Arena {
            input: Cow::Owned(self.input.into_owned()),
            nodes: self.nodes,
            items: self.items,
            owned: self.owned,
            big_ints: self.big_ints,
        }
    }

    pub(super) fn push(&mut self, node: Node) -> Result<NodeId, Full> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| Full)?;
        if id == u32::MAX {
            return Err(Full);
        }
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    /// Pushes an int in its one form.
    pub(super) fn push_big_int(&mut self, value: BigInt) -> Result<NodeId, Full> {
        if let Ok(small) = i64::try_from(&value) {
            return self.push(Node::Int(small));
        }
        let index = u32::try_from(self.big_ints.len()).map_err(|_| Full)?;
        self.big_ints.push(value);
        self.push(Node::BigInt(index))
    }

    /// Copies `bytes` into the arena's own.
    pub(super) fn own(&mut self, bytes: &[u8], surrogates: bool) -> Result<Bytes, Full> {
        let start = u32::try_from(self.owned.len()).map_err(|_| Full)?;
        let len = u32::try_from(bytes.len()).map_err(|_| Full)?;
        start.checked_add(len).ok_or(Full)?;
        self.owned.extend_from_slice(bytes);
        Ok(Bytes {
            start,
            len,
            flags: BytesFlags {
                owned: true,
                surrogates,
            },
        })
    }

    pub(super) fn node(&self, id: NodeId) -> Node {
        self.nodes[id.index()]
    }

    pub(super) fn bytes(&self, bytes: Bytes) -> &[u8] {
        let from: &[u8] = if bytes.flags.owned {
            &self.owned
        } else {
            &self.input
        };
        &from[bytes.start as usize..][..bytes.len as usize]
    }

    pub(super) fn span(&self, span: Span) -> &[NodeId] {
        &self.items[span.start as usize..][..span.len as usize]
    }

    /// The objects that `id` holds: items, or keys and values in turn.
    pub(super) fn children(&self, id: NodeId) -> &[NodeId] {
        match self.node(id) {
            Node::List(span)
            | Node::Tuple(span)
            | Node::Dict(span)
            | Node::Set(span)
            | Node::Frozenset(span) => self.span(span),
            _ => &[],
        }
    }

    /// A new span that holds `items`, with nothing to spare.
    pub(super) fn new_span(&mut self, items: &[NodeId]) -> Result<Span, Full> {
        let start = u32::try_from(self.items.len()).map_err(|_| Full)?;
        let len = u32::try_from(items.len()).map_err(|_| Full)?;
        start.checked_add(len).ok_or(Full)?;
        self.items.extend_from_slice(items);
        Ok(Span {
            start,
            len,
            cap: len,
        })
    }

    /// Appends `new` to the span of a container.
    ///
    /// A span at the end of the table grows in place. Others move there, and reserve as much again,
    /// so that appending costs a constant per item however containers take turns.
    pub(super) fn extend(&mut self, id: NodeId, new: &[NodeId]) -> Result<(), Full> {
        let index = id.index();
        let span = match self.nodes[index] {
            Node::List(span)
            | Node::Tuple(span)
            | Node::Dict(span)
            | Node::Set(span)
            | Node::Frozenset(span) => span,
            _ => Span::default(),
        };
        let grown = self.extend_span(span, new)?;
        match &mut self.nodes[index] {
            Node::List(span)
            | Node::Tuple(span)
            | Node::Dict(span)
            | Node::Set(span)
            | Node::Frozenset(span) => {
                *span = grown;
            }
            _ => debug_assert!(false, "only containers are extended"),
        }
        Ok(())
    }

    fn extend_span(&mut self, span: Span, new: &[NodeId]) -> Result<Span, Full> {
        let used_end = span.start as usize + span.len as usize;
        let len = span.len as usize + new.len();
        let len32 = u32::try_from(len).map_err(|_| Full)?;
        if len32 <= span.cap {
            self.items[used_end..used_end + new.len()].copy_from_slice(new);
            return Ok(Span { len: len32, ..span });
        }
        if span.len == 0 {
            return self.new_span(new);
        }
        if span.start as usize + span.cap as usize == self.items.len() {
            span.start.checked_add(len32).ok_or(Full)?;
            self.items.truncate(used_end);
            self.items.extend_from_slice(new);
            return Ok(Span {
                start: span.start,
                len: len32,
                cap: len32,
            });
        }
        let start = u32::try_from(self.items.len()).map_err(|_| Full)?;
        let cap = len32.checked_next_power_of_two().ok_or(Full)?;
        start.checked_add(cap).ok_or(Full)?;
        self.items.extend_from_within(span.start as usize..used_end);
        self.items.extend_from_slice(new);
        self.items.resize(start as usize + cap as usize, NodeId(0));
        Ok(Span {
            start,
            len: len32,
            cap,
        })
    }

    pub(super) fn kind(&self, id: NodeId) -> Kind {
        match self.node(id) {
            Node::None => Kind::None,
            Node::Bool(_) => Kind::Bool,
            Node::Int(_) | Node::BigInt(_) => Kind::Int,
            Node::Float(_) => Kind::Float,
            Node::Str(_) => Kind::Str,
            Node::Bytes(_) => Kind::Bytes,
            Node::Bytearray(_) => Kind::Bytearray,
            Node::List(_) => Kind::List,
            Node::Tuple(_) => Kind::Tuple,
            Node::Dict(_) => Kind::Dict,
            Node::Set(_) => Kind::Set,
            Node::Frozenset(_) => Kind::Frozenset,
        }
    }

    /// Gives back what growing reserved and nobody uses.
    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.items.shrink_to_fit();
        self.owned.shrink_to_fit();
        self.big_ints.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_16_bytes() {
        assert_eq!(size_of::<Node>(), 16);
    }

    #[test]
    fn lists_that_take_turns_keep_their_items_and_cost_a_constant_each() {
        let mut arena = Arena::new(Cow::Borrowed(&[][..]));
        let one = arena.push(Node::Int(1)).unwrap();
        let two = arena.push(Node::Int(2)).unwrap();
        let a = arena.push(Node::List(Span::default())).unwrap();
        let b = arena.push(Node::List(Span::default())).unwrap();
        for _ in 0..10_000 {
            arena.extend(a, &[one]).unwrap();
            arena.extend(b, &[two, one]).unwrap();
        }
        assert!(arena.children(a).iter().all(|id| *id == one) && arena.children(a).len() == 10_000);
        assert!(arena.children(b).chunks(2).all(|pair| pair == [two, one]));
        assert_eq!(arena.children(b).len(), 20_000);
        assert!(arena.items.len() <= 6 * 30_000, "{}", arena.items.len());
    }
}
