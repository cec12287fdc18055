//! Why a value did not become a type, and where in the value.

use std::fmt;

use serde::de;
use thiserror::Error;

/// A value that does not fit the type asked for: where, and why.
///
/// ```
/// use agentix_protocol::safepickle::{self, PathSegment, Protocol};
/// let pickle = safepickle::to_vec(&[("scores", vec!["high"])], Protocol::DEFAULT)?;
/// let document = safepickle::decode(&pickle)?;
/// let error = safepickle::from_value::<Vec<(String, Vec<f64>)>>(document.root()).unwrap_err();
/// assert_eq!(error.path(), [PathSegment::Index(0), PathSegment::Index(1), PathSegment::Index(0)]);
/// assert_eq!((error.expected(), error.found()), (Some("float"), Some("str")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeserializeError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    /// Innermost first.
    path: Vec<PathSegment>,
    kind: DeserializeErrorKind,
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathSegment {
    /// The item of a list or tuple, from 0.
    Index(usize),
    /// The value under a dict key, which is given as Python would write it, strs in double quotes.
    /// Long keys are cut and end in `…`.
    Key(String),
    /// That key itself.
    InKey(String),
}

impl fmt::Display for PathSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(key) => write!(f, "[{key}]"),
            Self::InKey(key) => write!(f, "[key {key}]"),
        }
    }
}

/// Why a value does not fit a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeserializeErrorKind {
    /// The value is of another kind. Kinds have their Python names.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What the type wants.
        expected: String,
        /// What the value is.
        found: String,
    },
    /// The number does not fit.
    #[error("{found} does not fit into {target}")]
    OutOfRange {
        /// The Rust type.
        target: &'static str,
        /// The number.
        found: String,
    },
    /// There are too few or too many items.
    #[error("expected {expected}, found a length of {found}")]
    Length {
        /// What the type wants.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// A dict lacks a key that the type needs.
    #[error("key {0:?} is missing")]
    MissingField(&'static str),
    /// A dict has a key that the type does not know and does not admit.
    #[error("key {0:?} is unknown")]
    UnknownField(String),
    /// An enum has no such variant.
    #[error("{found:?} is none of {expected:?}")]
    UnknownVariant {
        /// The variants.
        expected: &'static [&'static str],
        /// What the value says.
        found: String,
    },
    /// The value is nested deeper than [`MAX_TYPE_DEPTH`](super::MAX_TYPE_DEPTH), or holds itself.
    #[error("nested deeper than {allowed} levels, or holds itself")]
    TooDeep {
        /// How deep is allowed.
        allowed: usize,
    },
    /// The value unfolds into too large a one; see [`from_value`](super::from_value).
    #[error("more than {allowed} objects once shared parts are unfolded")]
    TooMuchWork {
        /// How many steps are allowed.
        allowed: u64,
    },
    /// What a `Deserialize` implementation reports itself.
    #[error("{0}")]
    Custom(String),
}

impl DeserializeError {
    pub(super) fn mismatch(expected: &str, found: &str) -> Self {
        DeserializeErrorKind::Mismatch {
            expected: expected.into(),
            found: found.into(),
        }
        .into()
    }

    /// The same error, seen from one level further out.
    pub(super) fn within(mut self, segment: PathSegment) -> Self {
        self.0.path.insert(0, segment);
        self
    }

    /// Why the value does not fit.
    pub fn kind(&self) -> &DeserializeErrorKind {
        &self.0.kind
    }

    /// The way from the whole value to the part that does not fit.
    pub fn path(&self) -> &[PathSegment] {
        &self.0.path
    }

    /// What the type wants, for a [`DeserializeErrorKind::Mismatch`].
    pub fn expected(&self) -> Option<&str> {
        match &self.0.kind {
            DeserializeErrorKind::Mismatch { expected, .. } => Some(expected),
            _ => None,
        }
    }

    /// What the value is, for a [`DeserializeErrorKind::Mismatch`].
    pub fn found(&self) -> Option<&str> {
        match &self.0.kind {
            DeserializeErrorKind::Mismatch { found, .. } => Some(found),
            _ => None,
        }
    }
}

impl From<DeserializeErrorKind> for DeserializeError {
    fn from(kind: DeserializeErrorKind) -> Self {
        Self(Box::new(Inner {
            path: Vec::new(),
            kind,
        }))
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("result")?;
        for segment in &self.0.path {
            write!(f, "{segment}")?;
        }
        write!(f, ": {}", self.0.kind)
    }
}

impl std::error::Error for DeserializeError {}

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        DeserializeErrorKind::Custom(message.to_string()).into()
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match unexpected {
            de::Unexpected::Bool(_) => "bool",
            de::Unexpected::Unsigned(_) | de::Unexpected::Signed(_) => "int",
            de::Unexpected::Float(_) => "float",
            de::Unexpected::Char(_) | de::Unexpected::Str(_) => "str",
            de::Unexpected::Bytes(_) => "bytes",
            de::Unexpected::Unit => "None",
            de::Unexpected::Seq => "list",
            de::Unexpected::Map => "dict",
            other => return Self::mismatch(&expected.to_string(), &other.to_string()),
        };
        Self::mismatch(&expected.to_string(), found)
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::mismatch(&expected.to_string(), &unexpected.to_string())
    }

    fn invalid_length(found: usize, expected: &dyn de::Expected) -> Self {
        DeserializeErrorKind::Length {
            expected: expected.to_string(),
            found,
        }
        .into()
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        DeserializeErrorKind::UnknownVariant {
            expected,
            found: found.into(),
        }
        .into()
    }

    fn unknown_field(found: &str, _: &'static [&'static str]) -> Self {
        DeserializeErrorKind::UnknownField(found.into()).into()
    }

    fn missing_field(field: &'static str) -> Self {
        DeserializeErrorKind::MissingField(field).into()
    }
}
