//! Views of what a value holds: text, items, entries, names.

use std::borrow::Cow;
use std::fmt;

use super::arena::{Arena, Bytes, GlobalData, NodeId, Span};
use super::known::Known;
use super::types::exception::ExceptionClass;
use super::value::{Document, Value};

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
    pub(super) fn of(value: Value<'d>, span: Span) -> Option<Self> {
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
    pub(super) arena: &'d Arena<'d>,
    pub(super) data: GlobalData,
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
    pub(super) document: &'d Document<'d>,
    pub(super) ids: &'d [NodeId],
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
        self.ids.get(index).map(|id| Value::new(self.document, *id))
    }

    /// The items in order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = Value<'d>> + DoubleEndedIterator + Clone + use<'d> {
        let document = self.document;
        self.ids.iter().map(move |id| Value::new(document, *id))
    }
}

/// The entries of a dict.
#[derive(Clone, Copy)]
pub struct Entries<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) ids: &'d [NodeId],
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
                Value::new(document, entry[0]),
                Value::new(document, entry[1]),
            )
        })
    }
}
