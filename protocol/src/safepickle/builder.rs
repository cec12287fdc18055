//! Documents made by hand.

use std::borrow::Cow;

use num_bigint::BigInt;
use thiserror::Error;

use super::arena::{Arena, Full, Node, NodeId, Span};
use super::keys::{Budget, KeyError, Keys, Position};
use super::text;
use super::value::{Document, Kind};

/// Makes a [`Document`] object by object, shared references and cycles included.
///
/// ```
/// use agentix_protocol::safepickle::{Builder, Protocol, encode};
/// let mut builder = Builder::new();
/// let list = builder.list()?;
/// builder.append(list, list)?; // a list that holds itself
/// let document = builder.finish(list)?;
/// let pickle = encode(document.root(), Protocol::DEFAULT)?;
/// assert_eq!(agentix_protocol::safepickle::decode(&pickle)?, document);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    arena: Arena<'static>,
    keys: Keys,
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
        expected: Kind,
        /// What the object is.
        found: Kind,
    },
    /// The object cannot be a dict key or a set element.
    #[error("a {0} cannot be a key")]
    Unhashable(Kind),
    /// The text is not generalised UTF-8.
    #[error("the text is not UTF-8, surrogates admitted")]
    NotText,
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

impl From<KeyError> for BuildError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Unhashable(kind) => Self::Unhashable(kind),
            KeyError::TooDeep | KeyError::WorkSpent => Self::TooLarge,
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A builder without objects.
    pub fn new() -> Self {
        let budget = Budget {
            work: 1 << 32,
            depth: 500,
        };
        Self {
            arena: Arena::new(Cow::Borrowed(&[])),
            keys: Keys::new(budget),
        }
    }

    /// `None`.
    pub fn none(&mut self) -> Result<NodeId, BuildError> {
        Ok(self.arena.push(Node::None)?)
    }

    /// A bool.
    pub fn bool(&mut self, value: bool) -> Result<NodeId, BuildError> {
        Ok(self.arena.push(Node::Bool(value))?)
    }

    /// An int of any size.
    pub fn int(&mut self, value: impl Into<BigInt>) -> Result<NodeId, BuildError> {
        Ok(self.arena.push_big_int(value.into())?)
    }

    /// A float.
    pub fn float(&mut self, value: f64) -> Result<NodeId, BuildError> {
        Ok(self.arena.push(Node::Float(value))?)
    }

    /// A str.
    pub fn str(&mut self, value: &str) -> Result<NodeId, BuildError> {
        let bytes = self.arena.own(value.as_bytes(), false)?;
        Ok(self.arena.push(Node::Str(bytes))?)
    }

    /// A str from generalised UTF-8: surrogate code points as three bytes each.
    pub fn generalised_str(&mut self, value: &[u8]) -> Result<NodeId, BuildError> {
        let surrogates = text::generalised_utf8(value).ok_or(BuildError::NotText)?;
        let bytes = self.arena.own(value, surrogates)?;
        Ok(self.arena.push(Node::Str(bytes))?)
    }

    /// A bytes object.
    pub fn bytes(&mut self, value: &[u8]) -> Result<NodeId, BuildError> {
        let bytes = self.arena.own(value, false)?;
        Ok(self.arena.push(Node::Bytes(bytes))?)
    }

    /// A bytearray.
    pub fn bytearray(&mut self, value: &[u8]) -> Result<NodeId, BuildError> {
        let bytes = self.arena.own(value, false)?;
        Ok(self.arena.push(Node::Bytearray(bytes))?)
    }

    /// A tuple of objects made before.
    pub fn tuple(&mut self, items: &[NodeId]) -> Result<NodeId, BuildError> {
        for item in items {
            self.known(*item)?;
        }
        let span = self.arena.new_span(items)?;
        Ok(self.arena.push(Node::Tuple(span))?)
    }

    /// An empty list.
    pub fn list(&mut self) -> Result<NodeId, BuildError> {
        Ok(self.arena.push(Node::List(Span::default()))?)
    }

    /// Appends to a list.
    pub fn append(&mut self, list: NodeId, item: NodeId) -> Result<(), BuildError> {
        self.expect(list, Kind::List)?;
        self.known(item)?;
        Ok(self.arena.extend(list, &[item])?)
    }

    /// An empty dict.
    pub fn dict(&mut self) -> Result<NodeId, BuildError> {
        Ok(self.arena.push(Node::Dict(Span::default()))?)
    }

    /// Sets an entry of a dict. As in Python, of equal keys the first stays, with the last value.
    pub fn insert(&mut self, dict: NodeId, key: NodeId, value: NodeId) -> Result<(), BuildError> {
        self.expect(dict, Kind::Dict)?;
        self.known(key)?;
        self.known(value)?;
        match self.keys.position(&self.arena, dict, 2, key)? {
            Position::At(entry) => {
                if let Node::Dict(span) = self.arena.node(dict) {
                    self.arena.items[span.start as usize + 2 * entry + 1] = value;
                }
                Ok(())
            }
            Position::New => Ok(self.arena.extend(dict, &[key, value])?),
        }
    }

    /// A set.
    pub fn set(&mut self, elements: &[NodeId]) -> Result<NodeId, BuildError> {
        let set = self.arena.push(Node::Set(Span::default()))?;
        self.add_all(set, elements)
    }

    /// A frozenset.
    pub fn frozenset(&mut self, elements: &[NodeId]) -> Result<NodeId, BuildError> {
        let set = self.arena.push(Node::Frozenset(Span::default()))?;
        self.add_all(set, elements)
    }

    fn add_all(&mut self, set: NodeId, elements: &[NodeId]) -> Result<NodeId, BuildError> {
        for element in elements {
            self.known(*element)?;
            if *element == set {
                return Err(BuildError::UnknownNode(set));
            }
            if self.keys.position(&self.arena, set, 1, *element)? == Position::New {
                self.arena.extend(set, &[*element])?;
            }
        }
        Ok(set)
    }

    /// The document whose value is `root`.
    pub fn finish(mut self, root: NodeId) -> Result<Document<'static>, BuildError> {
        self.known(root)?;
        self.arena.shrink();
        Ok(Document::new(self.arena, root, 0))
    }

    fn known(&self, id: NodeId) -> Result<(), BuildError> {
        if id.index() < self.arena.nodes.len() {
            Ok(())
        } else {
            Err(BuildError::UnknownNode(id))
        }
    }

    fn expect(&self, id: NodeId, expected: Kind) -> Result<(), BuildError> {
        self.known(id)?;
        let found = self.arena.kind(id);
        if found == expected {
            Ok(())
        } else {
            Err(BuildError::WrongKind { expected, found })
        }
    }
}
