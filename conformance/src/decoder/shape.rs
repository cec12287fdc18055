//! One vocabulary for both sides of a comparison: what a value is, and which values are its parts.

use std::borrow::Cow;
use std::fmt;

use num_bigint::BigInt;

use super::dtype::Dtype;
use super::table::{Body, ClassName, Datum, Elements, Node, Table};

/// A value that is all content, without parts and without identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf<'a> {
    None,
    Bool(bool),
    Int(Cow<'a, BigInt>),
    /// The bits.
    Float(u64),
    Complex(u64, u64),
    /// Generalised UTF-8.
    Str(Cow<'a, [u8]>),
    Bytes(&'a [u8]),
    Global {
        function: bool,
        name: Cow<'a, ClassName>,
    },
}

/// One part of a value: a leaf, or what leads to a value of its own on that side.
#[derive(Clone, Debug)]
pub(super) enum Part<'a, N> {
    Leaf(Leaf<'a>),
    Node(N),
}

/// Which part of a value something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Item(usize),
    Key(usize),
    Value(usize),
    Element(usize),
    Arg(usize),
    Field(Cow<'a, str>),
    AttrName(usize),
    AttrValue(usize),
    Factory,
    Maxlen,
    IsSafe,
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(index) => write!(f, "[{index}]"),
            Self::Key(index) => write!(f, ".keys[{index}]"),
            Self::Value(index) => write!(f, ".values[{index}]"),
            Self::Element(index) => write!(f, ".elements[{index}]"),
            Self::Arg(index) => write!(f, ".args[{index}]"),
            Self::Field(name) => write!(f, ".{name}"),
            Self::AttrName(index) => write!(f, ".attrs[{index}].name"),
            Self::AttrValue(index) => write!(f, ".attrs[{index}]"),
            Self::Factory => f.write_str(".factory"),
            Self::Maxlen => f.write_str(".maxlen"),
            Self::IsSafe => f.write_str(".is_safe"),
        }
    }
}

/// What a value is, apart from its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Label<'a> {
    /// The `t` of the format.
    pub(super) kind: &'static str,
    pub(super) class: Option<Cow<'a, ClassName>>,
    pub(super) content: Content<'a>,
}

/// What a value holds beside its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content<'a> {
    Nothing,
    Bytes(Cow<'a, [u8]>),
    Dtype(Cow<'a, Dtype>),
    Array {
        shape: Cow<'a, [u64]>,
        fortran: bool,
        dtype: Cow<'a, Dtype>,
        /// Elements in row-first order and native byte order; nothing where they are parts.
        raw: Option<Cow<'a, [u8]>>,
    },
}

/// How a value takes part in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nature {
    /// Does it matter whether two places hold one object or two?
    pub(super) identity: bool,
    /// Is it hashed by what it holds, so that equal ones are one element of a set?
    pub(super) by_value: bool,
}

/// A value, opened.
#[derive(Clone, Debug)]
pub(super) struct Shape<'a, N> {
    pub(super) label: Label<'a>,
    pub(super) nature: Nature,
    /// In an order that both sides share.
    pub(super) parts: Vec<(Step<'a>, Part<'a, N>)>,
    /// Those whose order has no meaning.
    pub(super) elements: Vec<Part<'a, N>>,
}

impl<'a, N> Shape<'a, N> {
    pub(super) fn new(kind: &'static str) -> Self {
        Self {
            label: Label {
                kind,
                class: None,
                content: Content::Nothing,
            },
            nature: Nature {
                identity: !matches!(kind, "range" | "object" | "dtype"),
                by_value: matches!(
                    kind,
                    "tuple" | "frozenset" | "range" | "slice" | "object" | "dtype"
                ),
            },
            parts: Vec::new(),
            elements: Vec::new(),
        }
    }

    pub(super) fn class(mut self, class: Cow<'a, ClassName>) -> Self {
        self.label.class = Some(class);
        self
    }

    pub(super) fn content(mut self, content: Content<'a>) -> Self {
        self.label.content = content;
        self
    }

    pub(super) fn part(mut self, step: Step<'a>, part: Part<'a, N>) -> Self {
        self.parts.push((step, part));
        self
    }

    /// Parts that are numbered: items or arguments.
    pub(super) fn numbered(
        mut self,
        step: fn(usize) -> Step<'a>,
        parts: impl IntoIterator<Item = Part<'a, N>>,
    ) -> Self {
        let parts = parts.into_iter().enumerate();
        self.parts
            .extend(parts.map(|(index, part)| (step(index), part)));
        self
    }

    /// Parts that come as pairs: entries or attributes.
    pub(super) fn pairs(
        mut self,
        first_step: fn(usize) -> Step<'a>,
        second_step: fn(usize) -> Step<'a>,
        parts: impl IntoIterator<Item = (Part<'a, N>, Part<'a, N>)>,
    ) -> Self {
        for (index, (first, second)) in parts.into_iter().enumerate() {
            self.parts.push((first_step(index), first));
            self.parts.push((second_step(index), second));
        }
        self
    }

    pub(super) fn entries(
        self,
        parts: impl IntoIterator<Item = (Part<'a, N>, Part<'a, N>)>,
    ) -> Self {
        self.pairs(Step::Key, Step::Value, parts)
    }

    pub(super) fn attrs(self, parts: impl IntoIterator<Item = (Part<'a, N>, Part<'a, N>)>) -> Self {
        self.pairs(Step::AttrName, Step::AttrValue, parts)
    }

    /// Parts by name; in the order of the names, since theirs has no meaning.
    pub(super) fn fields(
        mut self,
        parts: impl IntoIterator<Item = (Cow<'a, str>, Part<'a, N>)>,
    ) -> Self {
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts = parts.into_iter();
        self.parts
            .extend(parts.map(|(name, part)| (Step::Field(name), part)));
        self
    }

    /// Parts without order.
    pub(super) fn elements(mut self, parts: impl IntoIterator<Item = Part<'a, N>>) -> Self {
        self.elements.extend(parts);
        self
    }

    /// An immutable container that is empty has no identity: Python has just one of its kind.
    pub(super) fn shared_when_empty(mut self) -> Self {
        self.nature.identity = !(self.parts.is_empty() && self.elements.is_empty());
        self
    }
}

/// The value at one place of a table, as a part.
pub(super) fn part(datum: &Datum) -> Part<'_, usize> {
    Part::Leaf(match datum {
        Datum::None => Leaf::None,
        Datum::Bool(value) => Leaf::Bool(*value),
        Datum::Int(value) => Leaf::Int(Cow::Borrowed(value)),
        Datum::Float(bits) => Leaf::Float(*bits),
        Datum::Complex(re, im) => Leaf::Complex(*re, *im),
        Datum::Str(bytes) => Leaf::Str(Cow::Borrowed(bytes)),
        Datum::Bytes(bytes) => Leaf::Bytes(bytes),
        Datum::Global { function, name } => Leaf::Global {
            function: *function,
            name: Cow::Borrowed(name),
        },
        Datum::Ref(number) => return Part::Node(*number),
    })
}

fn data(items: &[Datum]) -> Vec<Part<'_, usize>> {
    items.iter().map(part).collect()
}

fn entries(items: &[(Datum, Datum)]) -> Vec<(Part<'_, usize>, Part<'_, usize>)> {
    let items = items.iter();
    items.map(|(key, value)| (part(key), part(value))).collect()
}

impl Table {
    /// A node, opened; or what the format calls that which it does not describe.
    pub(super) fn shape(&self, number: usize) -> Result<Shape<'_, usize>, &'static str> {
        // References were checked when the table was read.
        let Node { body, attrs } = &self.nodes[number];
        let shape = match body {
            Body::List(items) => Shape::new("list").numbered(Step::Item, data(items)),
            Body::Tuple(items) => Shape::new("tuple")
                .numbered(Step::Item, data(items))
                .shared_when_empty(),
            Body::Set(items) => Shape::new("set").elements(data(items)),
            Body::Frozenset(items) => Shape::new("frozenset")
                .elements(data(items))
                .shared_when_empty(),
            Body::Dict(items) => Shape::new("dict").entries(entries(items)),
            Body::Bytearray(bytes) => {
                Shape::new("bytearray").content(Content::Bytes(Cow::Borrowed(bytes)))
            }
            Body::Range(args) => Shape::new("range").numbered(Step::Arg, data(args)),
            Body::Slice(args) => Shape::new("slice").numbered(Step::Arg, data(args)),
            Body::Map {
                class,
                items,
                factory,
            } => {
                let shape = Shape::new("map")
                    .class(Cow::Borrowed(class))
                    .entries(entries(items));
                match factory {
                    Some(factory) => shape.part(Step::Factory, part(factory)),
                    None => shape,
                }
            }
            Body::Deque { maxlen, items } => Shape::new("deque")
                .part(Step::Maxlen, part(maxlen))
                .numbered(Step::Item, data(items)),
            Body::Object {
                class,
                args,
                is_safe,
            } => {
                let shape = Shape::new("object")
                    .class(Cow::Borrowed(class))
                    .numbered(Step::Arg, data(args));
                match is_safe {
                    Some(is_safe) => shape.part(Step::IsSafe, part(is_safe)),
                    None => shape,
                }
            }
            Body::Exception {
                class,
                args,
                fields,
            } => {
                let fields = fields.iter();
                Shape::new("exception")
                    .class(Cow::Borrowed(class))
                    .numbered(Step::Arg, data(args))
                    .fields(fields.map(|(name, value)| (Cow::Borrowed(name.as_str()), part(value))))
            }
            Body::Record { class } => Shape::new("record").class(Cow::Borrowed(class)),
            Body::Dtype(dtype) => Shape::new("dtype").content(Content::Dtype(Cow::Borrowed(dtype))),
            Body::Ndarray {
                shape,
                fortran,
                dtype,
                elements,
            } => {
                let (raw, items) = match elements {
                    Elements::Raw(raw) => (Some(Cow::Borrowed(raw.as_slice())), Vec::new()),
                    Elements::Objects(items) => (None, data(items)),
                };
                Shape::new("ndarray")
                    .content(Content::Array {
                        shape: Cow::Borrowed(shape),
                        fortran: *fortran,
                        dtype: Cow::Borrowed(dtype),
                        raw,
                    })
                    .numbered(Step::Item, items)
            }
            Body::Opaque(what) => return Err(what),
        };
        Ok(shape.attrs(entries(attrs)))
    }
}

/// At most this many bytes of a value are shown.
const SHOWN: usize = 200;

fn shorten(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => write!(f, "{}...", &text[..end]),
        None => f.write_str(text),
    }
}

fn show_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let shown = &bytes[..bytes.len().min(SHOWN)];
    f.write_str(&data_encoding::HEXLOWER.encode(shown))?;
    if shown.len() < bytes.len() {
        write!(f, "... ({} bytes)", bytes.len())?;
    }
    Ok(())
}

fn show_float(f: &mut fmt::Formatter<'_>, bits: u64) -> fmt::Result {
    write!(f, "{:?} ({bits:016x})", f64::from_bits(bits))
}

impl fmt::Display for Leaf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            // Decimal takes quadratic time.
            Self::Int(value) if value.bits() > 4096 => {
                write!(f, "int of {} bits", value.bits())
            }
            Self::Int(value) => {
                f.write_str("int ")?;
                shorten(f, &value.to_string())
            }
            Self::Float(bits) => {
                f.write_str("float ")?;
                show_float(f, *bits)
            }
            Self::Complex(re, im) => {
                f.write_str("complex ")?;
                show_float(f, *re)?;
                f.write_str(", ")?;
                show_float(f, *im)
            }
            Self::Str(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    f.write_str("str ")?;
                    shorten(f, &format!("{:?}", text))
                }
                Err(_) => {
                    f.write_str("str with surrogates ")?;
                    show_bytes(f, bytes)
                }
            },
            Self::Bytes(bytes) => {
                f.write_str("bytes ")?;
                show_bytes(f, bytes)
            }
            Self::Global { function, name } => {
                let what = if *function { "function" } else { "class" };
                write!(f, "{what} {}.{}", name.module, name.name)
            }
        }
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(class) = &self.class {
            write!(f, " {}.{}", class.module, class.name)?;
        }
        match &self.content {
            Content::Nothing => Ok(()),
            Content::Bytes(bytes) => {
                f.write_str(" ")?;
                show_bytes(f, bytes)
            }
            Content::Dtype(dtype) => write!(f, " {dtype:?}"),
            Content::Array {
                shape,
                fortran,
                dtype,
                raw,
            } => {
                let order = if *fortran { "column" } else { "row" };
                write!(f, " {shape:?} {order} first, {dtype:?}")?;
                match raw {
                    Some(raw) => {
                        f.write_str(", ")?;
                        show_bytes(f, raw)
                    }
                    None => Ok(()),
                }
            }
        }
    }
}
