//! Where decoded objects live: one flat table, so that nothing about them recurses.

use std::borrow::Cow;
use std::num::NonZeroU32;

use num_bigint::BigInt;

use super::known::Known;
use super::object::Object;
use super::types::decimal::DecimalData;
use super::types::path::PathClass;
use super::types::uuid::Uuid;
use super::value::Kind;

/// The number of an object in its [`Document`](super::Document).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(
    /// One more than the place in the table, so that an optional number takes no more room.
    NonZeroU32,
);

impl NodeId {
    /// The number for a place in the table, unless the place is too far.
    #[inline]
    pub(super) fn new(index: usize) -> Option<Self> {
        // One more than it still fits.
        let number = (index < u32::MAX as usize).then_some(index as u32 + 1)?;
        NonZeroU32::new(number).map(Self)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A run of bytes, in the input or in the arena's own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Index into [`Arena::complexes`].
    Complex(u32),
    /// Three items: start, stop, step.
    Range(Span),
    /// Three items: start, stop, step.
    Slice(Span),
    /// Year (two bytes, big-endian), month, day. All valid.
    Date([u8; 4]),
    /// Hour, minute, second, microsecond (three bytes, big-endian); the top bit of the hour is the
    /// fold. All valid.
    Time {
        raw: [u8; 6],
        tzinfo: Option<NodeId>,
    },
    /// As in a date, then as in a time; the top bit of the month is the fold. All valid.
    Datetime {
        raw: [u8; 10],
        tzinfo: Option<NodeId>,
    },
    /// As Python normalises it: seconds below a day, microseconds below a second.
    Timedelta {
        days: i32,
        seconds: u32,
        microseconds: u32,
    },
    /// A timedelta and a str.
    Timezone {
        offset: NodeId,
        name: Option<NodeId>,
    },
    /// Index into [`Arena::decimals`].
    Decimal(u32),
    /// Two ints in lowest terms, the second above zero.
    Fraction {
        numerator: NodeId,
        denominator: NodeId,
    },
    /// Index into [`Arena::uuids`].
    Uuid(u32),
    /// Its parts, strs.
    Path {
        class: PathClass,
        parts: Span,
    },
    /// Index into [`Arena::globals`].
    Global(u32),
    /// Index into [`Arena::objects`].
    Object(u32),
}

/// A class or function that a stream names.
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalData {
    pub(super) module: Bytes,
    pub(super) qualname: Bytes,
    /// What it is, unless it is only a name.
    pub(super) known: Option<Known>,
}

/// A part of [`Arena::items`] that nobody uses.
#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    start: u32,
    len: u32,
}

/// The arena is full: a number would no longer fit in 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

#[derive(Clone, Debug)]
pub(super) struct Arena<'a> {
    pub(super) input: Cow<'a, [u8]>,
    pub(super) nodes: Vec<Node>,
    pub(super) items: Vec<NodeId>,
    /// A part of `items` that a span has moved out of, for new spans to use.
    hole: Hole,
    pub(super) owned: Vec<u8>,
    pub(super) big_ints: Vec<BigInt>,
    pub(super) complexes: Vec<[f64; 2]>,
    pub(super) decimals: Vec<DecimalData>,
    pub(super) uuids: Vec<Uuid>,
    pub(super) globals: Vec<GlobalData>,
    pub(super) objects: Vec<Object>,
}

impl<'a> Arena<'a> {
    pub(super) fn new(input: Cow<'a, [u8]>) -> Self {
        Self {
            input,
            nodes: Vec::new(),
            items: Vec::new(),
            hole: Hole::default(),
            owned: Vec::new(),
            big_ints: Vec::new(),
            complexes: Vec::new(),
            decimals: Vec::new(),
            uuids: Vec::new(),
            globals: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// The same objects, and the same bytes at another place.
    pub(super) fn with_input<'b>(self, input: Cow<'b, [u8]>) -> Arena<'b> {
        Arena {
            input,
            nodes: self.nodes,
            items: self.items,
            hole: self.hole,
            owned: self.owned,
            big_ints: self.big_ints,
            complexes: self.complexes,
            decimals: self.decimals,
            uuids: self.uuids,
            globals: self.globals,
            objects: self.objects,
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, node: Node) -> Result<NodeId, Full> {
        let id = NodeId::new(self.nodes.len()).ok_or(Full)?;
        self.nodes.push(node);
        Ok(id)
    }

    pub(super) fn push_complex(&mut self, value: [f64; 2]) -> Result<NodeId, Full> {
        let index = u32::try_from(self.complexes.len()).map_err(|_| Full)?;
        self.complexes.push(value);
        self.push(Node::Complex(index))
    }

    pub(super) fn push_decimal(&mut self, value: DecimalData) -> Result<NodeId, Full> {
        let index = u32::try_from(self.decimals.len()).map_err(|_| Full)?;
        self.decimals.push(value);
        self.push(Node::Decimal(index))
    }

    pub(super) fn push_global(&mut self, value: GlobalData) -> Result<NodeId, Full> {
        let index = u32::try_from(self.globals.len()).map_err(|_| Full)?;
        self.globals.push(value);
        self.push(Node::Global(index))
    }

    pub(super) fn push_object(&mut self, value: Object) -> Result<NodeId, Full> {
        let index = u32::try_from(self.objects.len()).map_err(|_| Full)?;
        self.objects.push(value);
        self.push(Node::Object(index))
    }

    /// The object behind a number, if it is one of those kept apart.
    pub(super) fn object(&self, id: NodeId) -> Option<&Object> {
        match self.node(id) {
            Node::Object(index) => Some(&self.objects[index as usize]),
            _ => None,
        }
    }

    pub(super) fn object_mut(&mut self, id: NodeId) -> Option<&mut Object> {
        match self.node(id) {
            Node::Object(index) => Some(&mut self.objects[index as usize]),
            _ => None,
        }
    }

    /// The global behind a number.
    pub(super) fn global(&self, id: NodeId) -> Option<GlobalData> {
        match self.node(id) {
            Node::Global(index) => Some(self.globals[index as usize]),
            _ => None,
        }
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

    /// What `id` holds, if it holds any number of one sort: items, or keys and values in turn.
    pub(super) fn children(&self, id: NodeId) -> &[NodeId] {
        match self.node(id) {
            Node::List(span)
            | Node::Tuple(span)
            | Node::Dict(span)
            | Node::Set(span)
            | Node::Frozenset(span)
            | Node::Range(span)
            | Node::Slice(span)
            | Node::Path { parts: span, .. } => self.span(span),
            _ => &[],
        }
    }

    /// All that `id` refers to, in an order that is the same for every object of its kind.
    pub(super) fn references(&self, id: NodeId) -> Cow<'_, [NodeId]> {
        match self.node(id) {
            Node::Time { tzinfo, .. } | Node::Datetime { tzinfo, .. } => {
                Cow::Owned(tzinfo.into_iter().collect())
            }
            Node::Timezone { offset, name } => {
                Cow::Owned(std::iter::once(offset).chain(name).collect())
            }
            Node::Fraction {
                numerator,
                denominator,
            } => Cow::Owned(vec![numerator, denominator]),
            Node::Object(index) => Cow::Owned(self.objects[index as usize].references()),
            _ => Cow::Borrowed(self.children(id)),
        }
    }

    /// A new span that holds `items`, with nothing to spare.
    pub(super) fn new_span(&mut self, items: &[NodeId]) -> Result<Span, Full> {
        let len = u32::try_from(items.len()).map_err(|_| Full)?;
        if len <= self.hole.len {
            return Ok(self.fill_hole(items, len));
        }
        let start = u32::try_from(self.items.len()).map_err(|_| Full)?;
        start.checked_add(len).ok_or(Full)?;
        self.items.extend_from_slice(items);
        Ok(Span {
            start,
            len,
            cap: len,
        })
    }

    #[cold]
    fn fill_hole(&mut self, items: &[NodeId], len: u32) -> Span {
        let start = self.hole.start;
        self.items[start as usize..][..items.len()].copy_from_slice(items);
        self.hole = Hole {
            start: start + len,
            len: self.hole.len - len,
        };
        Span {
            start,
            len,
            cap: len,
        }
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
        let grown = self.extend_span(id, span, new)?;
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

    fn extend_span(&mut self, id: NodeId, span: Span, new: &[NodeId]) -> Result<Span, Full> {
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
        // Twice the length, not up to the next power of two: a deque that drops from its front as
        // it is appended to must find room for as many again.
        let cap = len32.checked_mul(2).ok_or(Full)?;
        start.checked_add(cap).ok_or(Full)?;
        self.items.extend_from_within(span.start as usize..used_end);
        self.items.extend_from_slice(new);
        if span.cap > self.hole.len {
            self.hole = Hole {
                start: span.start,
                len: span.cap,
            };
        }
        // What is reserved is never read before it is set.
        self.items.resize(start as usize + cap as usize, id);
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
            Node::Complex(_) => Kind::Complex,
            Node::Range(_) => Kind::Range,
            Node::Slice(_) => Kind::Slice,
            Node::Date(_) => Kind::Date,
            Node::Time { .. } => Kind::Time,
            Node::Datetime { .. } => Kind::Datetime,
            Node::Timedelta { .. } => Kind::Timedelta,
            Node::Timezone { .. } => Kind::Timezone,
            Node::Decimal(_) => Kind::Decimal,
            Node::Fraction { .. } => Kind::Fraction,
            Node::Uuid(_) => Kind::Uuid,
            Node::Path { .. } => Kind::Path,
            Node::Global(_) => Kind::Global,
            Node::Object(index) => self.objects[index as usize].kind(),
        }
    }

    /// Gives back what growing reserved and nobody uses.
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.nodes);
        shrink(&mut self.items);
        shrink(&mut self.owned);
        shrink(&mut self.big_ints);
        shrink(&mut self.complexes);
        shrink(&mut self.decimals);
        shrink(&mut self.uuids);
        shrink(&mut self.globals);
        shrink(&mut self.objects);
    }
}

/// Shrinks a table to what it holds, unless the rest is little and not worth a copy.
fn shrink<T>(table: &mut Vec<T>) {
    if table.capacity() - table.len() > 1 + table.len() / 16 {
        table.shrink_to_fit();
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

    #[test]
    fn what_a_span_moved_out_of_is_used_again() {
        let mut arena = Arena::new(Cow::Borrowed(&[][..]));
        let one = arena.push(Node::Int(1)).unwrap();
        let two = arena.push(Node::Int(2)).unwrap();
        let list = arena.push(Node::List(Span::default())).unwrap();
        arena.extend(list, &[one; 10]).unwrap();
        arena.new_span(&[two]).unwrap();
        arena.extend(list, &[two]).unwrap();
        let used = arena.items.len();
        let spans: Vec<_> = (1..=4)
            .map(|len| arena.new_span(&[two, one, two, one][..len]).unwrap())
            .collect();
        assert_eq!(arena.items.len(), used, "ten items fit");
        for (span, len) in spans.iter().zip(1..) {
            assert_eq!(arena.span(*span), &[two, one, two, one][..len]);
        }
        assert_eq!(arena.new_span(&[two]).unwrap().start as usize, used);
        assert_eq!(arena.children(list)[..10], [one; 10]);
        assert_eq!(arena.children(list)[10..], [two]);
    }
}
