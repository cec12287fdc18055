//! Reading JSON strictly: every field is asked for, and an error names the field.

use data_encoding::HEXLOWER_PERMISSIVE;
use serde_json::{Map, Value as Json};
use thiserror::Error;

/// A field that is not what the format asks for: which, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct FieldError {
    at: String,
    problem: FieldProblem,
}

impl FieldError {
    pub(super) fn new(at: impl Into<String>, problem: FieldProblem) -> Self {
        Self {
            at: at.into(),
            problem,
        }
    }

    /// The field, such as `nodes[3].items[0]`.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &FieldProblem {
        &self.problem
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// It is not there.
    #[error("missing")]
    Missing,
    /// The format has no such field here.
    #[error("unknown field")]
    Unknown,
    /// It is not what the format asks for.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A reference to a node that is not in the table.
    #[error("no node {0}")]
    NoNode(u64),
    /// A type of node that the format does not have.
    #[error("no type of node {0:?}")]
    NodeType(String),
}

/// An object, and which of its fields have not been asked for.
pub(super) struct Fields<'j> {
    fields: &'j Map<String, Json>,
    taken: Vec<&'static str>,
    at: &'j str,
}

impl<'j> Fields<'j> {
    pub(super) fn of(json: &'j Json, at: &'j str) -> Result<Self, FieldError> {
        match json {
            Json::Object(fields) => Ok(Self {
                fields,
                taken: Vec::new(),
                at,
            }),
            _ => Err(FieldError::new(at, FieldProblem::Expected("an object"))),
        }
    }

    pub(super) fn find(&mut self, name: &'static str) -> Option<&'j Json> {
        self.taken.push(name);
        self.fields.get(name)
    }

    pub(super) fn take(&mut self, name: &'static str) -> Result<&'j Json, FieldError> {
        let found = self.find(name);
        found.ok_or_else(|| FieldError::new(self.path(name), FieldProblem::Missing))
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    /// Are there fields that the format does not have?
    pub(super) fn end(self) -> Result<(), FieldError> {
        let unknown = self
            .fields
            .keys()
            .find(|name| !self.taken.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(FieldError::new(self.path(name), FieldProblem::Unknown)),
            None => Ok(()),
        }
    }
}

pub(super) fn array<'j>(json: &'j Json, at: &str) -> Result<&'j [Json], FieldError> {
    match json {
        Json::Array(items) => Ok(items),
        _ => Err(FieldError::new(at, FieldProblem::Expected("an array"))),
    }
}

pub(super) fn text<'j>(json: &'j Json, at: &str) -> Result<&'j str, FieldError> {
    let text = json.as_str();
    text.ok_or_else(|| FieldError::new(at, FieldProblem::Expected("text")))
}

pub(super) fn count(json: &Json, at: &str) -> Result<u64, FieldError> {
    let count = json.as_u64();
    count.ok_or_else(|| FieldError::new(at, FieldProblem::Expected("an unsigned integer")))
}

pub(super) fn flag(json: &Json, at: &str) -> Result<bool, FieldError> {
    let flag = json.as_bool();
    flag.ok_or_else(|| FieldError::new(at, FieldProblem::Expected("true or false")))
}

pub(super) fn hex(json: &Json, at: &str) -> Result<Vec<u8>, FieldError> {
    unhex(text(json, at)?).ok_or_else(|| FieldError::new(at, FieldProblem::Expected("hex")))
}

/// Bytes from hex.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

pub(super) fn pair<'j>(json: &'j Json, at: &str) -> Result<(&'j Json, &'j Json), FieldError> {
    match array(json, at)? {
        [first, second] => Ok((first, second)),
        _ => Err(FieldError::new(at, FieldProblem::Expected("two items"))),
    }
}

pub(super) fn counts(json: &Json, at: &str) -> Result<Vec<u64>, FieldError> {
    array(json, at)?
        .iter()
        .map(|item| count(item, at))
        .collect()
}
