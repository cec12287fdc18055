//! Files of vectors: one JSON object a line.

use std::collections::HashMap;

use serde_json::Value as Json;
use thiserror::Error;

use super::fields::{FieldError, FieldProblem, Fields, hex, text};

/// One stream, and what a decoder must do with it.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Unique in its file; starts with the group and a slash.
    pub id: String,
    /// What it belongs to.
    pub group: String,
    /// What a decoder must do.
    pub expect: Expect,
    /// The stream.
    pub stream: Vec<u8>,
    /// The table of its value, where the file has one.
    pub value: Option<Json>,
}

/// What a decoder must do with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Decode to exactly the value.
    Accept,
    /// Return an error.
    Reject,
    /// Either, within the bounds.
    Any,
}

impl Expect {
    /// As files spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Any => "any",
        }
    }
}

/// A line that is no vector.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct VectorError {
    line: usize,
    problem: VectorProblem,
}

impl VectorError {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &VectorProblem {
        &self.problem
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VectorProblem {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// A field is not what the format asks for.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// An earlier line has the same id.
    #[error("vector.id: line {0} has the same")]
    SameId(usize),
}

/// Fields that tell how the reference behaved: they must be text or null, and decide nothing.
const TOLD: [&str; 6] = [
    "verdict",
    "error_class",
    "stage",
    "value_omitted",
    "error_message",
    "note",
];

/// Reads a whole file. Empty lines are none.
///
/// # Errors
///
/// The first line that is no vector.
pub fn read(text: &str) -> Result<Vec<Vector>, VectorError> {
    let mut vectors = Vec::new();
    let mut lines = HashMap::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if text.trim().is_empty() {
            continue;
        }
        let wrong = |problem| VectorError { line, problem };
        let json = serde_json::from_str(text)
            .map_err(|error| wrong(VectorProblem::Json(error.to_string())))?;
        let vector = vector(json).map_err(|error| wrong(error.into()))?;
        if let Some(first) = lines.insert(vector.id.clone(), line) {
            return Err(wrong(VectorProblem::SameId(first)));
        }
        vectors.push(vector);
    }
    Ok(vectors)
}

fn vector(mut json: Json) -> Result<Vector, FieldError> {
    let value = json.get_mut("value").map(Json::take);
    let mut fields = Fields::of(&json, "vector")?;
    let wrong = |field: &str, expected| FieldError::new(field, FieldProblem::Expected(expected));
    let id = text(fields.take("id")?, "vector.id")?.to_owned();
    let group = text(fields.take("group")?, "vector.group")?.to_owned();
    let of_group = id
        .strip_prefix(&*group)
        .is_some_and(|rest| rest.starts_with('/'));
    if !of_group {
        return Err(wrong("vector.id", "the group, a slash and a name"));
    }
    let stream = hex(fields.take("hex")?, "vector.hex")?;
    let expect = match text(fields.take("expect")?, "vector.expect")? {
        "accept" => Expect::Accept,
        "reject" => Expect::Reject,
        "any" => Expect::Any,
        _ => return Err(wrong("vector.expect", "accept, reject or any")),
    };
    // Taken out above; null now where it was there.
    fields.find("value");
    let value = value.filter(|value| !value.is_null());
    // A table that is not of the format is told when its value is compared: the rest of the file can be run.
    if expect == Expect::Accept && value.is_none() {
        return Err(FieldError::new("vector.value", FieldProblem::Missing));
    }
    if let Some(protocol) = fields.find("protocol")
        && !protocol.is_u64()
    {
        return Err(wrong("vector.protocol", "an unsigned integer"));
    }
    if let Some(effects) = fields.find("effects")
        && !effects.is_array()
    {
        return Err(wrong("vector.effects", "an array"));
    }
    for name in TOLD {
        if let Some(told) = fields.find(name)
            && !(told.is_string() || told.is_null())
        {
            return Err(wrong(&format!("vector.{name}"), "text or null"));
        }
    }
    fields.end()?;
    Ok(Vector {
        id,
        group,
        expect,
        stream,
        value,
    })
}
