//! Decoded values: the document that owns them and the views into it.

use std::borrow::Cow;
use std::fmt;

use num_bigint::BigInt;

use super::arena::{Arena, Bytes, Node, NodeId};
use super::object::Object;
use super::types::record::Record;

pub use super::kind::Kind;
pub use super::view::{Deque, Entries, Global, Items, Range, Text};

/// One decoded pickle: the owner of all its objects.
///
/// Objects sit in one flat table and refer to each other by number, so shared references and cycles
/// are kept and dropping, cloning, comparing or printing a value of any depth takes no machine
/// stack. Large `bytes` and `str` are not copied: they borrow from the input, for `'a`.
///
/// Only [`Decoder`](super::Decoder) and [`Builder`](super::Builder) make documents.
///
/// `==` compares structure, as [`Value`]'s does.
#[derive(Clone)]
pub struct Document<'a> {
    arena: Arena<'a>,
    root: NodeId,
    consumed: usize,
}

impl<'a> Document<'a> {
    pub(super) fn new(arena: Arena<'a>, root: NodeId, consumed: usize) -> Self {
        Self {
            arena,
            root,
            consumed,
        }
    }

    /// How many bytes of the input were read, up to and with STOP; 0 if there was no input.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// The classes and functions that the stream names, each once, in the order of their first
    /// mention, whether or not the value refers to them.
    pub fn globals(&self) -> impl Iterator<Item = Global<'_>> {
        self.arena.globals.iter().map(|data| Global {
            arena: &self.arena,
            data: *data,
        })
    }

    /// The value that the stream stands for.
    pub fn root(&self) -> Value<'_> {
        Value {
            document: self,
            id: self.root,
        }
    }

    /// The same document with a copy of what it borrowed.
    pub fn into_owned(mut self) -> Document<'static> {
        let input = std::mem::take(&mut self.arena.input).into_owned();
        self.with_input(input)
    }

    /// The same document, with these as the bytes that it was decoded from.
    pub(super) fn with_input(self, input: Vec<u8>) -> Document<'static> {
        Document {
            arena: self.arena.with_input(Cow::Owned(input)),
            root: self.root,
            consumed: self.consumed,
        }
    }

    /// How many objects the table holds, including those the root does not reach.
    pub fn node_count(&self) -> usize {
        self.arena.nodes.len()
    }
}

impl PartialEq<Document<'_>> for Document<'_> {
    fn eq(&self, other: &Document<'_>) -> bool {
        super::compare::same(self.root(), other.root())
    }
}

impl Eq for Document<'_> {}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.root(), f)
    }
}

/// A view of one object of a [`Document`].
///
/// `==` is structural: same kind and same content, whether or not parts are shared. It is stricter
/// than Python's: `1`, `1.0` and `True` differ, floats compare by their bits (so NaN equals itself
/// and `0.0` differs from `-0.0`), and dict entries compare in order; the order of a set does not
/// matter. It takes time linear in the objects of both sides, cycles included (sets of NaN apart).
///
/// `Debug` prints in the manner of Python's `repr`, a bounded amount of it.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    id: NodeId,
}

impl<'d> Value<'d> {
    pub(super) fn new(document: &'d Document<'d>, id: NodeId) -> Self {
        Self { document, id }
    }

    /// The object's number in its document. Two views of one document with the same number are
    /// views of the same object: Python's `is`.
    pub fn id(self) -> NodeId {
        self.id
    }

    pub(super) fn document(self) -> &'d Document<'d> {
        self.document
    }

    pub(super) fn at(self, id: NodeId) -> Value<'d> {
        Value {
            document: self.document,
            id,
        }
    }

    pub(super) fn arena(self) -> &'d Arena<'d> {
        &self.document.arena
    }

    pub(super) fn node(self) -> Node {
        self.document.arena.node(self.id)
    }

    /// The value's kind.
    pub fn kind(self) -> Kind {
        self.document.arena.kind(self.id)
    }

    /// Whether this is `None`.
    pub fn is_none(self) -> bool {
        matches!(self.node(), Node::None)
    }

    /// The value of a bool; ints are not bools.
    pub fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The value of an int that fits; bools are not ints.
    pub fn as_i64(self) -> Option<i64> {
        match self.node() {
            Node::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value of an int of any size; bools are not ints.
    pub fn as_big_int(self) -> Option<Cow<'d, BigInt>> {
        match self.node() {
            Node::Int(value) => Some(Cow::Owned(BigInt::from(value))),
            Node::BigInt(index) => Some(Cow::Borrowed(&self.arena().big_ints[index as usize])),
            _ => None,
        }
    }

    /// The value of a float; ints are not floats.
    pub fn as_f64(self) -> Option<f64> {
        match self.node() {
            Node::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a str without surrogate code points; use [`Value::as_text`] for any str.
    ///
    /// The bytes are checked to be UTF-8 on each call.
    pub fn as_str(self) -> Option<&'d str> {
        self.as_text().and_then(Text::as_str)
    }

    /// The text of a str.
    pub fn as_text(self) -> Option<Text<'d>> {
        match self.node() {
            Node::Str(bytes) => Some(Text::new(self.arena().bytes(bytes), bytes.flags.surrogates)),
            _ => None,
        }
    }

    /// The content of a bytes object.
    pub fn as_bytes(self) -> Option<&'d [u8]> {
        match self.node() {
            Node::Bytes(bytes) => Some(self.arena().bytes(bytes)),
            _ => None,
        }
    }

    /// The content of a bytearray.
    pub fn as_bytearray(self) -> Option<&'d [u8]> {
        match self.node() {
            Node::Bytearray(bytes) => Some(self.arena().bytes(bytes)),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn list(self) -> Option<Items<'d>> {
        match self.node() {
            Node::List(span) => Some(Items {
                document: self.document,
                ids: self.arena().span(span),
            }),
            _ => None,
        }
    }

    /// The items of a tuple.
    pub fn tuple(self) -> Option<Items<'d>> {
        match self.node() {
            Node::Tuple(span) => Some(Items {
                document: self.document,
                ids: self.arena().span(span),
            }),
            _ => None,
        }
    }

    /// The elements of a set, in the order of the stream, which has no meaning.
    pub fn set(self) -> Option<Items<'d>> {
        match self.node() {
            Node::Set(span) => Some(Items {
                document: self.document,
                ids: self.arena().span(span),
            }),
            _ => None,
        }
    }

    /// The elements of a frozenset, in the order of the stream, which has no meaning.
    pub fn frozenset(self) -> Option<Items<'d>> {
        match self.node() {
            Node::Frozenset(span) => Some(Items {
                document: self.document,
                ids: self.arena().span(span),
            }),
            _ => None,
        }
    }

    /// The entries of a dict, in insertion order.
    pub fn dict(self) -> Option<Entries<'d>> {
        match self.node() {
            Node::Dict(span) => Some(Entries {
                document: self.document,
                ids: self.arena().span(span),
            }),
            _ => None,
        }
    }

    /// The entries of a dict, OrderedDict, Counter or defaultdict, in insertion order.
    pub fn entries(self) -> Option<Entries<'d>> {
        match self.arena().object(self.id) {
            Some(Object::Map { dict, .. }) => Some(self.entries_of(*dict)),
            _ => self.dict(),
        }
    }

    /// What a defaultdict calls for a missing key: a class or function, if any.
    pub fn default_factory(self) -> Option<Value<'d>> {
        match self.arena().object(self.id) {
            Some(Object::Map { factory, .. }) => factory.map(|id| self.at(id)),
            _ => None,
        }
    }

    /// The instance attributes of an object that has some.
    pub fn attrs(self) -> Option<Entries<'d>> {
        let attrs = self.arena().object(self.id)?.attrs()?;
        Some(self.entries_of(attrs))
    }

    /// A deque.
    pub fn deque(self) -> Option<Deque<'d>> {
        match self.arena().object(self.id) {
            Some(Object::Deque { list, maxlen }) => Some(Deque {
                items: self.items_of(*list),
                maxlen: *maxlen,
            }),
            _ => None,
        }
    }

    /// A range: three ints.
    pub fn range(self) -> Option<Range<'d>> {
        match self.node() {
            Node::Range(span) => Range::of(self, span),
            _ => None,
        }
    }

    /// A slice: three values of any kind.
    pub fn slice(self) -> Option<Range<'d>> {
        match self.node() {
            Node::Slice(span) => Range::of(self, span),
            _ => None,
        }
    }

    /// A class or function as a value.
    pub fn global(self) -> Option<Global<'d>> {
        Some(Global {
            arena: self.arena(),
            data: self.arena().global(self.id)?,
        })
    }

    /// A record.
    pub fn record(self) -> Option<Record<'d>> {
        match self.arena().object(self.id) {
            Some(Object::Record(record)) => Some(Record::new(self, record)),
            _ => None,
        }
    }

    pub(super) fn items_of(self, id: NodeId) -> Items<'d> {
        Items {
            document: self.document,
            ids: self.arena().children(id),
        }
    }

    pub(super) fn entries_of(self, id: NodeId) -> Entries<'d> {
        Entries {
            document: self.document,
            ids: self.arena().children(id),
        }
    }

    pub(super) fn raw_bytes(self, bytes: Bytes) -> &'d [u8] {
        self.arena().bytes(bytes)
    }
}

impl PartialEq<Value<'_>> for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        super::compare::same(*self, *other)
    }
}

impl Eq for Value<'_> {}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::print::print(*self, f)
    }
}
