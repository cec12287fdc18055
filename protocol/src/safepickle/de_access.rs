//! The parts of containers and enums, as serde asks for them one by one.

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Visitor};

use super::arena::NodeId;
use super::de::Deserializer;
use super::de_error::{DeserializeError, PathSegment};
use super::value::{Kind, Value};

/// The items of a list, tuple or set.
pub(super) struct Sequence<'c, 'd> {
    pub(super) of: Deserializer<'c, 'd>,
    pub(super) ids: &'d [NodeId],
    pub(super) next: usize,
}

impl<'d> de::SeqAccess<'d> for Sequence<'_, 'd> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'d>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DeserializeError> {
        let Some(id) = self.ids.get(self.next) else {
            return Ok(None);
        };
        let at = self.next;
        self.next += 1;
        let item = self.of.child(*id).and_then(|item| seed.deserialize(item));
        item.map(Some)
            .map_err(|error| error.within(PathSegment::Index(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.ids.len() - self.next)
    }
}

/// The entries of a dict: ids of keys and values in turn.
pub(super) struct Map<'c, 'd> {
    pub(super) of: Deserializer<'c, 'd>,
    pub(super) ids: &'d [NodeId],
    pub(super) next: usize,
}

impl Map<'_, '_> {
    fn key(&self, index: usize) -> String {
        key_text(self.of.value.at(self.ids[index]))
    }
}

impl<'d> de::MapAccess<'d> for Map<'_, 'd> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'d>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DeserializeError> {
        let Some(id) = self.ids.get(self.next) else {
            return Ok(None);
        };
        let at = self.next;
        self.next += 1;
        let key = self.of.child(*id).and_then(|key| seed.deserialize(key));
        key.map(Some)
            .map_err(|error| error.within(PathSegment::InKey(self.key(at))))
    }

    fn next_value_seed<V: DeserializeSeed<'d>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DeserializeError> {
        let Some(id) = self.ids.get(self.next) else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        let at = self.next;
        self.next += 1;
        let value = self.of.child(*id).and_then(|value| seed.deserialize(value));
        value.map_err(|error| error.within(PathSegment::Key(self.key(at - 1))))
    }

    fn size_hint(&self) -> Option<usize> {
        Some((self.ids.len() - self.next) / 2)
    }
}

/// Characters of a key shown in a path.
const MAX_KEY_TEXT: usize = 200;

fn key_text(key: Value<'_>) -> String {
    let text = match key.as_text() {
        Some(text) => format!(
            "{:?}",
            text.to_string_lossy()
                .chars()
                .take(MAX_KEY_TEXT + 1)
                .collect::<String>()
        ),
        None => format!("{key:?}"),
    };
    match text.char_indices().nth(MAX_KEY_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// An enum variant: a str alone, or the one key of a dict and its value.
pub(super) struct Variant<'c, 'd> {
    pub(super) name: Deserializer<'c, 'd>,
    pub(super) content: Option<Deserializer<'c, 'd>>,
}

impl Variant<'_, '_> {
    fn within(&self, error: DeserializeError) -> DeserializeError {
        error.within(PathSegment::Key(key_text(self.name.value)))
    }

    fn no_content(&self) -> DeserializeError {
        DeserializeError::mismatch("dict of one entry", Kind::Str.name())
    }
}

impl<'d> de::EnumAccess<'d> for Variant<'_, 'd> {
    type Error = DeserializeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'d>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), DeserializeError> {
        Ok((seed.deserialize(self.name)?, self))
    }
}

impl<'d> de::VariantAccess<'d> for Variant<'_, 'd> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        match self.content {
            Some(content) => {
                <() as Deserialize>::deserialize(content).map_err(|error| self.within(error))
            }
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'d>>(
        self,
        seed: T,
    ) -> Result<T::Value, DeserializeError> {
        let content = self.content.ok_or_else(|| self.no_content())?;
        seed.deserialize(content)
            .map_err(|error| self.within(error))
    }

    fn tuple_variant<V: Visitor<'d>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let content = self.content.ok_or_else(|| self.no_content())?;
        de::Deserializer::deserialize_tuple(content, len, visitor)
            .map_err(|error| self.within(error))
    }

    fn struct_variant<V: Visitor<'d>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        let content = self.content.ok_or_else(|| self.no_content())?;
        de::Deserializer::deserialize_map(content, visitor).map_err(|error| self.within(error))
    }
}
