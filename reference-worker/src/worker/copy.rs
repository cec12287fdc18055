//! Copies decoded values into a document that is being built.

use std::collections::HashMap;

use agentix_protocol::safepickle::{BuildError, Builder, Kind, NodeId, Value};

/// Deepest nesting that is copied; it bounds the machine stack.
const MAX_DEPTH: usize = 500;

/// Copies a value with everything in it, sharing kept.
///
/// # Errors
///
/// [`BuildError::TooLarge`] for more than 500 nested containers.
pub(super) fn copy(builder: &mut Builder, value: Value<'_>) -> Result<NodeId, BuildError> {
    let mut copier = Copier {
        builder,
        made: HashMap::new(),
    };
    copier.copy(value, 0)
}

struct Copier<'b> {
    builder: &'b mut Builder,
    /// Copies by the number of their original.
    made: HashMap<NodeId, NodeId>,
}

impl Copier<'_> {
    fn copy(&mut self, value: Value<'_>, depth: usize) -> Result<NodeId, BuildError> {
        if let Some(made) = self.made.get(&value.id()) {
            return Ok(*made);
        }
        if depth > MAX_DEPTH {
            return Err(BuildError::TooLarge);
        }
        if let Some(list) = value.list() {
            let copied = self.builder.list()?;
            // Known before its items, so that it may hold itself.
            self.made.insert(value.id(), copied);
            for item in list.iter() {
                let item = self.copy(item, depth + 1)?;
                self.builder.append(copied, item)?;
            }
            return Ok(copied);
        }
        if let Some(dict) = value.dict() {
            let copied = self.builder.dict()?;
            self.made.insert(value.id(), copied);
            for (key, item) in dict.iter() {
                let key = self.copy(key, depth + 1)?;
                let item = self.copy(item, depth + 1)?;
                self.builder.insert(copied, key, item)?;
            }
            return Ok(copied);
        }
        let mut items = Vec::new();
        for item in [value.tuple(), value.set(), value.frozenset()]
            .into_iter()
            .flatten()
            .flat_map(|items| items.iter())
        {
            items.push(self.copy(item, depth + 1)?);
        }
        // A tuple that holds itself, through a list, was copied on the way.
        if let Some(made) = self.made.get(&value.id()) {
            return Ok(*made);
        }
        let builder = &mut *self.builder;
        let copied = match value.kind() {
            Kind::Tuple => builder.tuple(&items)?,
            Kind::Set => builder.set(&items)?,
            Kind::Frozenset => builder.frozenset(&items)?,
            _ => atom(builder, value)?,
        };
        self.made.insert(value.id(), copied);
        Ok(copied)
    }
}

fn atom(builder: &mut Builder, value: Value<'_>) -> Result<NodeId, BuildError> {
    if let Some(value) = value.as_bool() {
        builder.bool(value)
    } else if let Some(int) = value.as_big_int() {
        builder.int(int.into_owned())
    } else if let Some(float) = value.as_f64() {
        builder.float(float)
    } else if let Some(text) = value.as_text() {
        builder.generalised_str(text.as_generalised_utf8())
    } else if let Some(bytes) = value.as_bytes() {
        builder.bytes(bytes)
    } else if let Some(bytes) = value.as_bytearray() {
        builder.bytearray(bytes)
    } else if value.is_none() {
        builder.none()
    } else {
        Err(BuildError::WrongKind {
            expected: Kind::None,
            found: value.kind(),
        })
    }
}

#[cfg(test)]
mod tests {
    use agentix_protocol::safepickle;

    use super::*;

    fn copied(pickle: &[u8]) -> Result<(), BuildError> {
        let document = safepickle::decode(pickle).unwrap();
        let mut builder = Builder::new();
        let root = copy(&mut builder, document.root())?;
        assert_eq!(builder.finish(root)?, document);
        Ok(())
    }

    #[test]
    fn copies_equal_their_originals() {
        // [None, True, 5, 1.5, "é", b"x", (), {"a": (1, {})}], and a list that holds itself.
        copied(b"\x80\x04](N\x88K\x05G\x3f\xf8\0\0\0\0\0\0\x8c\x02\xc3\xa9C\x01x)}\x8c\x01aK\x01}\x86se.")
            .unwrap();
        copied(b"\x80\x04]\x94h\0a.").unwrap();
        // A tuple that holds a list that holds the tuple.
        copied(b"\x80\x04]\x94h\0\x85\x94h\0h\x01a0h\x01.").unwrap();
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let deep = [
            b"\x80\x04".to_vec(),
            b"]".repeat(600),
            b"a".repeat(599),
            b".".to_vec(),
        ];
        assert!(matches!(copied(&deep.concat()), Err(BuildError::TooLarge)));
    }
}
