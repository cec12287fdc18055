//! Documents made by hand.

use std::fmt;
use std::sync::LazyLock;

use num_bigint::BigInt;
use thiserror::Error;

use super::arena::{Full, Node, NodeId, Span};
use super::construct::How;
use super::error::{DecodeErrorKind, Malformed};
use super::known::Known;
use super::limits::Limits;
use super::machine::Machine;
use super::object::{MapClass, Object};
use super::policy::Policy;
use super::text;
use super::value::{Document, Kind, Value};

/// A builder admits names itself, and knows what every name stands for.
static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::agentix().with_numpy());

/// What is built comes from the program, so only what could take forever is bounded.
static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
    Limits::default()
        .nodes(u64::MAX)
        .owned_bytes(u64::MAX)
        .work_steps(1 << 32, 0)
});

/// Makes a [`Document`] object by object, shared references and cycles included.
///
/// What has a class of its own is made as in a stream: by calling the class. Nothing is called, of
/// course; the object becomes what the decoder would make of the same call, be it a value of a type
/// that the decoder knows or a [`Record`](super::Record).
///
/// ```
/// use agentix_protocol::safepickle::{Builder, Protocol, encode};
/// let mut builder = Builder::new();
/// let list = builder.list()?;
/// builder.append(list, list)?; // a list that holds itself
/// let document = builder.finish(list)?;
/// let pickle = encode(document.root(), Protocol::DEFAULT)?;
/// assert_eq!(agentix_protocol::safepickle::decode(&pickle)?, document);
///
/// let mut builder = Builder::new();
/// let (one, class) = (builder.int(1)?, builder.global("app", "Point")?);
/// let point = builder.call(class, &[one, one])?; // app.Point(1, 1)
/// assert!(builder.finish(point)?.root().record().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Builder {
    machine: Machine<'static, 'static>,
}

/// Why a [`Builder`] refused a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The number is of no object of this builder.
    #[error("there is no object {}", .0.index())]
    UnknownNode(NodeId),
    /// The object is not of the kind that the step wants.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// What the step wants.
        expected: &'static str,
        /// What the object is.
        found: Kind,
    },
    /// The object cannot be a dict key or a set element.
    #[error("a {0} cannot be a key")]
    Unhashable(Kind),
    /// The text is not generalised UTF-8.
    #[error("the text is not UTF-8, surrogates admitted")]
    NotText,
    /// A call or a state has no meaning to the decoder either.
    #[error("{0}")]
    Rule(Malformed),
    /// The document would hold more than 2³² objects, references or bytes, or a key is nested too
    /// deeply or shares too much to be hashed.
    #[error("the document is too large")]
    TooLarge,
}

impl From<Full> for BuildError {
    fn from(_: Full) -> Self {
        Self::TooLarge
    }
}

impl From<Malformed> for BuildError {
    fn from(rule: Malformed) -> Self {
        match rule {
            Malformed::Unhashable(kind) => Self::Unhashable(kind),
            Malformed::Operand { expected, found } => Self::WrongKind { expected, found },
            Malformed::Utf8 => Self::NotText,
            rule => Self::Rule(rule),
        }
    }
}

impl From<DecodeErrorKind> for BuildError {
    fn from(error: DecodeErrorKind) -> Self {
        match error {
            DecodeErrorKind::Malformed(rule) => rule.into(),
            // A builder reads no stream, so there is nothing else but limits.
            _ => Self::TooLarge,
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("objects", &self.machine.arena.nodes.len())
            .finish_non_exhaustive()
    }
}

type Built = Result<NodeId, BuildError>;

impl Builder {
    /// A builder without objects.
    pub fn new() -> Self {
        Self {
            machine: Machine::new(&POLICY, &LIMITS, &[], false),
        }
    }

    /// `None`.
    pub fn none(&mut self) -> Built {
        Ok(self.machine.make(Node::None)?)
    }

    /// A bool.
    pub fn bool(&mut self, value: bool) -> Built {
        Ok(self.machine.make(Node::Bool(value))?)
    }

    /// An int of any size.
    pub fn int(&mut self, value: impl Into<BigInt>) -> Built {
        Ok(self.machine.arena.push_big_int(value.into())?)
    }

    /// A float.
    pub fn float(&mut self, value: f64) -> Built {
        Ok(self.machine.make(Node::Float(value))?)
    }

    /// A str.
    pub fn str(&mut self, value: &str) -> Built {
        let bytes = self.machine.own(value.as_bytes(), false)?;
        Ok(self.machine.make(Node::Str(bytes))?)
    }

    /// A str from generalised UTF-8: surrogate code points as three bytes each.
    pub fn generalised_str(&mut self, value: &[u8]) -> Built {
        let surrogates = text::generalised_utf8(value).ok_or(BuildError::NotText)?;
        let bytes = self.machine.own(value, surrogates)?;
        Ok(self.machine.make(Node::Str(bytes))?)
    }

    /// A bytes object.
    pub fn bytes(&mut self, value: &[u8]) -> Built {
        let bytes = self.machine.own(value, false)?;
        Ok(self.machine.make(Node::Bytes(bytes))?)
    }

    /// A bytearray.
    pub fn bytearray(&mut self, value: &[u8]) -> Built {
        let bytes = self.machine.own(value, false)?;
        Ok(self.machine.make(Node::Bytearray(bytes))?)
    }

    /// A tuple of objects made before.
    pub fn tuple(&mut self, items: &[NodeId]) -> Built {
        self.all_known(items)?;
        let span = self.machine.new_span(items)?;
        Ok(self.machine.make(Node::Tuple(span))?)
    }

    /// An empty list.
    pub fn list(&mut self) -> Built {
        Ok(self.machine.make(Node::List(Span::default()))?)
    }

    /// Appends to a list, a deque or a record.
    pub fn append(&mut self, list: NodeId, item: NodeId) -> Result<(), BuildError> {
        self.all_known(&[list, item])?;
        Ok(self.machine.append_to(list, &[item])?)
    }

    /// An empty dict.
    pub fn dict(&mut self) -> Built {
        Ok(self.machine.make(Node::Dict(Span::default()))?)
    }

    /// Sets an entry of a dict, an OrderedDict, a Counter, a defaultdict or a record. As in Python, of
    /// equal keys the first stays, with the last value.
    pub fn insert(&mut self, dict: NodeId, key: NodeId, value: NodeId) -> Result<(), BuildError> {
        self.all_known(&[dict, key, value])?;
        let dict = self.machine.dict_of(dict)?;
        Ok(self.machine.set_item(dict, key, value)?)
    }

    /// A set.
    pub fn set(&mut self, elements: &[NodeId]) -> Built {
        self.filled_set(Node::Set(Span::default()), elements)
    }

    /// A frozenset.
    pub fn frozenset(&mut self, elements: &[NodeId]) -> Built {
        self.filled_set(Node::Frozenset(Span::default()), elements)
    }

    fn filled_set(&mut self, empty: Node, elements: &[NodeId]) -> Built {
        self.all_known(elements)?;
        let set = self.machine.make(empty)?;
        for element in elements {
            self.machine.add_item(set, *element)?;
        }
        Ok(set)
    }

    /// Adds an element to a set. Of equal ones the first stays.
    pub fn add(&mut self, set: NodeId, element: NodeId) -> Result<(), BuildError> {
        self.all_known(&[set, element])?;
        self.expect(set, Kind::Set)?;
        Ok(self.machine.add_item(set, element)?)
    }

    /// An empty OrderedDict.
    pub fn ordered_dict(&mut self) -> Built {
        self.map(MapClass::OrderedDict, None)
    }

    /// An empty Counter.
    pub fn counter(&mut self) -> Built {
        self.map(MapClass::Counter, None)
    }

    /// An empty defaultdict, with the class or function that it calls for a missing key.
    pub fn default_dict(&mut self, factory: Option<NodeId>) -> Built {
        if let Some(factory) = factory {
            self.all_known(&[factory])?;
            self.expect(factory, Kind::Global)?;
        }
        self.map(MapClass::DefaultDict, factory)
    }

    fn map(&mut self, class: MapClass, factory: Option<NodeId>) -> Built {
        let dict = self.dict()?;
        Ok(self.machine.make_object(Object::Map {
            class,
            dict,
            factory,
            attrs: None,
        })?)
    }

    /// An empty deque, and how many items it holds at most: beyond them it drops the first.
    pub fn deque(&mut self, maxlen: Option<u64>) -> Built {
        let list = self.list()?;
        Ok(self.machine.make_object(Object::Deque { list, maxlen })?)
    }

    /// A range.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if `step` is 0.
    pub fn range(
        &mut self,
        start: impl Into<BigInt>,
        stop: impl Into<BigInt>,
        step: impl Into<BigInt>,
    ) -> Built {
        let class = self.global("builtins", "range")?;
        let bounds = [self.int(start)?, self.int(stop)?, self.int(step)?];
        self.call(class, &bounds)
    }

    /// A slice.
    pub fn slice(&mut self, start: NodeId, stop: NodeId, step: NodeId) -> Built {
        let bounds = [start, stop, step];
        self.all_known(&bounds)?;
        let span = self.machine.new_span(&bounds)?;
        Ok(self.machine.make(Node::Slice(span))?)
    }

    /// A class or function as a value. Any name will do: what reads the document decides what it
    /// admits.
    pub fn global(&mut self, module: &str, qualname: &str) -> Built {
        let (module, qualname) = (module.as_bytes(), qualname.as_bytes());
        let known = Known::find(module, qualname);
        Ok(self.machine.named_global(module, qualname, known)?)
    }

    /// What the decoder makes of a call of a class or function: a value of a type that it knows, or
    /// a [`Record`](super::Record) with these arguments.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if the decoder knows the class but not such arguments.
    pub fn call(&mut self, callee: NodeId, args: &[NodeId]) -> Built {
        self.all_known(&[callee])?;
        let args = self.tuple(args)?;
        Ok(self.machine.construct(How::Call, callee, args, None)?)
    }

    /// What the decoder makes of an object of `class` that was made without its initialiser, as pickle
    /// writes most: in general a [`Record`](super::Record), which [`Builder::build`] gives its state.
    ///
    /// # Errors
    ///
    /// As for [`Builder::call`].
    pub fn new_object(
        &mut self,
        class: NodeId,
        args: &[NodeId],
        kwargs: &[(NodeId, NodeId)],
    ) -> Built {
        self.all_known(&[class])?;
        let args = self.tuple(args)?;
        let kwargs = match kwargs {
            [] => None,
            kwargs => {
                let dict = self.dict()?;
                for (name, value) in kwargs {
                    self.insert(dict, *name, *value)?;
                }
                Some(dict)
            }
        };
        Ok(self.machine.new_object(class, args, kwargs)?)
    }

    /// Gives an object its state: a dict of attributes for most, anything for a record.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if such an object has no such state.
    pub fn build(&mut self, object: NodeId, state: NodeId) -> Result<(), BuildError> {
        self.all_known(&[object, state])?;
        self.machine.build(object, state)?;
        Ok(())
    }

    /// An object of a class that the decoder knows by name only, with these instance attributes:
    /// what pickle writes for most objects, and what a decoder with
    /// [`Policy::allow`](super::Policy::allow) reads as a [`Record`](super::Record).
    ///
    /// ```
    /// use agentix_protocol::safepickle::Builder;
    /// let mut builder = Builder::new();
    /// let (x, y) = (builder.int(1)?, builder.int(2)?);
    /// let point = builder.record("app", "Point", &[("x", x), ("y", y)])?;
    /// let document = builder.finish(point)?;
    /// assert_eq!(document.root().record().unwrap().field("y").unwrap().as_i64(), Some(2));
    /// # Ok::<(), agentix_protocol::safepickle::BuildError>(())
    /// ```
    pub fn record(&mut self, module: &str, qualname: &str, attrs: &[(&str, NodeId)]) -> Built {
        let class = self.global(module, qualname)?;
        let record = self.new_object(class, &[], &[])?;
        let state = self.dict()?;
        for (name, value) in attrs {
            let name = self.str(name)?;
            self.insert(state, name, *value)?;
        }
        self.build(record, state)?;
        Ok(record)
    }

    /// Copies a value of any document, with everything that it refers to; what it shares is shared in
    /// the copy, and cycles are kept. Takes time linear in what is copied, and no machine stack.
    ///
    /// Each call copies anew: what two values share is shared no more once they are copied one by one.
    /// Classes and functions are not copied twice.
    pub fn copy(&mut self, value: Value<'_>) -> Built {
        super::copy::copy(&mut self.machine, value)
    }

    /// The document whose value is `root`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if an object lacks the state without which it is none.
    pub fn finish(mut self, root: NodeId) -> Result<Document<'static>, BuildError> {
        self.all_known(&[root])?;
        if !self.machine.unbuilt.is_empty() {
            return Err(BuildError::Rule(Malformed::Unbuilt));
        }
        self.machine.arena.shrink();
        Ok(Document::new(self.machine.arena, root, 0))
    }

    fn all_known(&self, ids: &[NodeId]) -> Result<(), BuildError> {
        let count = self.machine.arena.nodes.len();
        match ids.iter().find(|id| id.index() >= count) {
            Some(unknown) => Err(BuildError::UnknownNode(*unknown)),
            None => Ok(()),
        }
    }

    fn expect(&self, id: NodeId, expected: Kind) -> Result<(), BuildError> {
        let found = self.machine.arena.kind(id);
        if found == expected {
            Ok(())
        } else {
            Err(BuildError::WrongKind {
                expected: expected.name(),
                found,
            })
        }
    }
}
