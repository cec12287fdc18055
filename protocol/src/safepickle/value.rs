//! Decoded values: the document that owns them and the views into it.

use std::borrow::Cow;
use std::fmt;

use num_bigint::BigInt;

use super::arena::{Arena, Bytes, GlobalData, Node, NodeId, Span};
use super::known::Known;
use super::object::Object;
use super::types::exception::ExceptionClass;
use super::types::record::Record;

/// The kind of a value: its Python type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `None`.
    None,
    /// `bool`.
    Bool,
    /// `int`, of any size.
    Int,
    /// `float`.
    Float,
    /// `str`.
    Str,
    /// `bytes`.
    Bytes,
    /// `bytearray`.
    Bytearray,
    /// `list`.
    List,
    /// `tuple`.
    Tuple,
    /// `dict`.
    Dict,
    /// `set`.
    Set,
    /// `frozenset`.
    Frozenset,
    /// `complex`.
    Complex,
    /// `range`.
    Range,
    /// `slice`.
    Slice,
    /// `datetime.date`.
    Date,
    /// `datetime.time`.
    Time,
    /// `datetime.datetime`.
    Datetime,
    /// `datetime.timedelta`.
    Timedelta,
    /// `datetime.timezone`.
    Timezone,
    /// `decimal.Decimal`.
    Decimal,
    /// `fractions.Fraction`.
    Fraction,
    /// `uuid.UUID`.
    Uuid,
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `collections.Counter`.
    Counter,
    /// `collections.defaultdict`.
    DefaultDict,
    /// `collections.deque`.
    Deque,
    /// A path of `pathlib`.
    Path,
    /// An exception of the builtins.
    Exception,
    /// `numpy.dtype`.
    Dtype,
    /// `numpy.ndarray`.
    Ndarray,
    /// A scalar of numpy.
    NumpyScalar,
    /// A class or function as a value.
    Global,
    /// An object of a class that the decoder knows by name only, or a result record of the framework.
    Record,
}

impl Kind {
    /// The name of the Python type.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Bytes => "bytes",
            Self::Bytearray => "bytearray",
            Self::List => "list",
            Self::Tuple => "tuple",
            Self::Dict => "dict",
            Self::Set => "set",
            Self::Frozenset => "frozenset",
            Self::Complex => "complex",
            Self::Range => "range",
            Self::Slice => "slice",
            Self::Date => "date",
            Self::Time => "time",
            Self::Datetime => "datetime",
            Self::Timedelta => "timedelta",
            Self::Timezone => "timezone",
            Self::Decimal => "Decimal",
            Self::Fraction => "Fraction",
            Self::Uuid => "UUID",
            Self::OrderedDict => "OrderedDict",
            Self::Counter => "Counter",
            Self::DefaultDict => "defaultdict",
            Self::Deque => "deque",
            Self::Path => "path",
            Self::Exception => "exception",
            Self::Dtype => "dtype",
            Self::Ndarray => "ndarray",
            Self::NumpyScalar => "numpy scalar",
            Self::Global => "class or function",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
            Node::Str(bytes) => Some(Text {
                bytes: self.arena().bytes(bytes),
                surrogates: bytes.flags.surrogates,
            }),
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

/// A `collections.deque`.
#[derive(Clone, Copy, Debug)]
pub struct Deque<'d> {
    /// What it holds.
    pub items: Items<'d>,
    /// How many it holds at most.
    pub maxlen: Option<u64>,
}

/// A `range` or a `slice`.
#[derive(Clone, Copy, Debug)]
pub struct Range<'d> {
    /// The first.
    pub start: Value<'d>,
    /// Where it ends.
    pub stop: Value<'d>,
    /// From one to the next; never 0 in a range.
    pub step: Value<'d>,
}

impl<'d> Range<'d> {
    fn of(value: Value<'d>, span: Span) -> Option<Self> {
        match *value.arena().span(span) {
            [start, stop, step] => Some(Self {
                start: value.at(start),
                stop: value.at(stop),
                step: value.at(step),
            }),
            _ => None,
        }
    }
}

/// A class or function that a stream names. It is a name and nothing more.
#[derive(Clone, Copy)]
pub struct Global<'d> {
    arena: &'d Arena<'d>,
    data: GlobalData,
}

impl<'d> Global<'d> {
    fn text(self, bytes: Bytes) -> Text<'d> {
        Text::new(self.arena.bytes(bytes), bytes.flags.surrogates)
    }

    /// The module, as it stands in the stream.
    pub fn module(self) -> Text<'d> {
        self.text(self.data.module)
    }

    /// The name inside the module, as it stands in the stream.
    pub fn qualname(self) -> Text<'d> {
        self.text(self.data.qualname)
    }

    /// Whether it is known to be a function and not a class.
    pub fn is_function(self) -> bool {
        self.data.known.is_some_and(Known::is_function)
    }

    /// Whether it is more than a name to the decoder.
    pub(super) fn is_known(self) -> bool {
        self.data.known.is_some()
    }

    /// The exception class that it is.
    pub fn exception_class(self) -> Option<ExceptionClass> {
        match self.data.known {
            Some(Known::Exception(class)) => Some(class),
            _ => None,
        }
    }
}

impl fmt::Debug for Global<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, qualname) = (self.module(), self.qualname());
        write!(
            f,
            "{}.{}",
            module.to_string_lossy(),
            qualname.to_string_lossy()
        )
    }
}

/// The text of a `str`, which in Python may hold surrogate code points that no Unicode encoding can.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'d> {
    bytes: &'d [u8],
    surrogates: bool,
}

impl<'d> Text<'d> {
    pub(super) fn new(bytes: &'d [u8], surrogates: bool) -> Self {
        Self { bytes, surrogates }
    }

    /// How many bytes it takes in generalised UTF-8.
    pub(super) fn len_bytes(self) -> usize {
        self.bytes.len()
    }

    /// The text, if it has no surrogate code points.
    pub fn as_str(self) -> Option<&'d str> {
        if self.surrogates {
            None
        } else {
            std::str::from_utf8(self.bytes).ok()
        }
    }

    /// The text in generalised UTF-8: UTF-8, but surrogate code points are there as well, three
    /// bytes each, and a pair of them stays two. Python calls it `utf-8` with `surrogatepass`.
    pub fn as_generalised_utf8(self) -> &'d [u8] {
        self.bytes
    }

    /// The text with surrogate code points replaced by U+FFFD.
    pub fn to_string_lossy(self) -> Cow<'d, str> {
        match self.as_str() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(
                self.code_points()
                    .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect(),
            ),
        }
    }

    /// The code points, surrogates included.
    pub fn code_points(self) -> impl Iterator<Item = u32> + 'd {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (point, after) = super::text::next_code_point(rest)?;
            rest = after;
            Some(point)
        })
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::print::print_text(*self, f)
    }
}

/// The items of a list, tuple or set.
#[derive(Clone, Copy)]
pub struct Items<'d> {
    document: &'d Document<'d>,
    ids: &'d [NodeId],
}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items", self.len())
    }
}

impl<'d> Items<'d> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The item at `index`, from 0.
    pub fn at(&self, index: usize) -> Option<Value<'d>> {
        self.ids.get(index).map(|id| Value {
            document: self.document,
            id: *id,
        })
    }

    /// The items in order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = Value<'d>> + DoubleEndedIterator + Clone + use<'d> {
        let document = self.document;
        self.ids.iter().map(move |id| Value { document, id: *id })
    }
}

/// The entries of a dict.
#[derive(Clone, Copy)]
pub struct Entries<'d> {
    document: &'d Document<'d>,
    ids: &'d [NodeId],
}

impl<'d> Entries<'d> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len() / 2
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The entry at `index`, from 0, as key and value.
    pub fn at(&self, index: usize) -> Option<(Value<'d>, Value<'d>)> {
        self.iter().nth(index)
    }

    /// The value under the str `key`. Takes time linear in the number of entries.
    pub fn value(&self, key: &str) -> Option<Value<'d>> {
        self.iter().find_map(|(found, value)| {
            let text = found.as_text()?;
            (text.as_generalised_utf8() == key.as_bytes()).then_some(value)
        })
    }

    /// Keys and values in insertion order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (Value<'d>, Value<'d>)> + DoubleEndedIterator + Clone + use<'d>
    {
        let document = self.document;
        self.ids.chunks_exact(2).map(move |entry| {
            (
                Value {
                    document,
                    id: entry[0],
                },
                Value {
                    document,
                    id: entry[1],
                },
            )
        })
    }
}
