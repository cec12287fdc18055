//! What kinds of Python look like to serde, where it is not what they are called.

use super::arena::{Node, NodeId};
use super::de::Deserializer;
use super::de_error::DeserializeError;
use super::object::Object;
use super::types::record::RecordData;
use super::value::Value;

/// What a value is, for an error: its kind, or its class if that says more.
pub(super) fn found(value: Value<'_>) -> String {
    if let Some(exception) = value.exception() {
        return exception.class().name().to_owned();
    }
    match value.record().and_then(|record| record.class()?.global()) {
        Some(global) => format!("{global:?}"),
        None => value.kind().name().to_owned(),
    }
}

impl<'d> Deserializer<'_, 'd> {
    /// The items of what is a sequence in Rust; of a set only if `sets`.
    pub(super) fn items(&self, sets: bool) -> Option<&'d [NodeId]> {
        let arena = self.value.arena();
        match self.value.node() {
            Node::List(span) | Node::Tuple(span) => Some(arena.span(span)),
            Node::Set(span) | Node::Frozenset(span) if sets => Some(arena.span(span)),
            Node::Object(_) => match arena.object(self.value.id())? {
                Object::Deque { list, .. } => Some(arena.children(*list)),
                Object::Record(record) => {
                    let items = record.list.or(has_class(record).then_some(record.args))?;
                    Some(arena.children(items))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The keys and values of what is a map in Rust.
    pub(super) fn entries(&self) -> Option<&'d [NodeId]> {
        let arena = self.value.arena();
        match self.value.node() {
            Node::Dict(span) => Some(arena.span(span)),
            Node::Object(_) => match arena.object(self.value.id())? {
                Object::Map { dict, .. } => Some(arena.children(*dict)),
                Object::Record(record) => {
                    let entries = record.attrs.or(record.kwargs).or(record.dict)?;
                    Some(arena.children(entries))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The text of a kind that is a string in Rust though it is none in Python.
    pub(super) fn written(&self) -> Result<Option<String>, DeserializeError> {
        let value = self.value;
        let with_offset = |tzinfo: Option<Value<'_>>| match tzinfo {
            Some(tzinfo) if tzinfo.timezone().is_none() => Err(DeserializeError::mismatch(
                "time zone of a fixed offset",
                &found(tzinfo),
            )),
            _ => Ok(()),
        };
        Ok(Some(match value.node() {
            Node::Decimal(_) => {
                let decimal = value.decimal().map(|decimal| decimal.to_string());
                let text = decimal.unwrap_or_default();
                self.charge(text.len() as u64 / 64)?;
                text
            }
            Node::Fraction {
                numerator,
                denominator,
            } => {
                for id in [numerator, denominator] {
                    let int = value.at(id).as_big_int();
                    let words = int.map_or(0, |int| int.bits() / 64);
                    // Digits take quadratic time.
                    self.charge(words.saturating_mul(words))?;
                }
                let fraction = value.fraction().map(|fraction| fraction.to_string());
                fraction.unwrap_or_default()
            }
            Node::Uuid(index) => value.arena().uuids[index as usize].to_string(),
            Node::Date(_) => value
                .date()
                .map(|date| date.to_string())
                .unwrap_or_default(),
            Node::Time { tzinfo, .. } => {
                with_offset(tzinfo.map(|id| value.at(id)))?;
                value
                    .time()
                    .map(|time| time.to_string())
                    .unwrap_or_default()
            }
            Node::Datetime { tzinfo, .. } => {
                with_offset(tzinfo.map(|id| value.at(id)))?;
                let text = value
                    .datetime()
                    .map(|datetime| datetime.isoformat().to_string());
                text.unwrap_or_default()
            }
            Node::Path { parts, .. } => {
                for part in value.arena().span(parts) {
                    self.child(*part)?;
                    if value.at(*part).as_str().is_none() {
                        let found = "path with surrogate code points";
                        return Err(DeserializeError::mismatch("str", found));
                    }
                }
                value
                    .path()
                    .map(|path| path.to_string())
                    .unwrap_or_default()
            }
            _ => return Ok(None),
        }))
    }
}

/// Whether the arguments of a record are those of a class.
fn has_class(record: &RecordData) -> bool {
    record.class.is_some()
}
