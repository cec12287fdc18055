//! JSON to what travels as `arguments`.

use serde::ser::{Serialize, SerializeTuple, Serializer};
use serde_json::Map;

/// Text that is no JSON argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// An integer beyond 64 bits, which would lose digits.
    #[error("{0} has more than 64 bits; pass it as a string, or as a float with a point")]
    Integer(String),
}

/// Reads an argument.
///
/// # Errors
///
/// [`ParseError`] when it is not JSON, or holds an integer of more than 64 bits.
///
/// # Example
///
/// ```
/// use agentix_reference_host::json::{self, ParseError};
///
/// assert_eq!(json::parse("[1, 18446744073709551615]")?[1], u64::MAX);
/// assert!(matches!(json::parse("18446744073709551616"), Err(ParseError::Integer(_))));
/// # Ok::<(), ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<serde_json::Value, ParseError> {
    let value = serde_json::from_str(text)?;
    match wide_integer(text) {
        Some(integer) => Err(ParseError::Integer(integer.to_owned())),
        None => Ok(value),
    }
}

/// The first integer of more than 64 bits in a JSON text; it would be read as a float.
fn wide_integer(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(string) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = string.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?;
            rest = &string[end + 1..];
            continue;
        }
        let end = rest
            .find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E') && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number = &rest[..end];
        let is_integer = !number.contains(['.', 'e', 'E']);
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = &rest[end..];
    }
    None
}

/// What travels as `arguments`: a tuple of positional and a dict of keyword arguments.
pub(crate) struct Arguments<'a>(
    pub(crate) &'a [serde_json::Value],
    pub(crate) &'a Map<String, serde_json::Value>,
);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&Positional(self.0))?;
        pair.serialize_element(self.1)?;
        pair.end()
    }
}

struct Positional<'a>(&'a [serde_json::Value]);

impl Serialize for Positional<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for value in self.0 {
            tuple.serialize_element(value)?;
        }
        tuple.end()
    }
}

#[cfg(test)]
mod tests {
    use agentix_protocol::safepickle::{self, Kind, Protocol};

    use super::*;
    use crate::json::to_string;

    #[test]
    fn integers_that_would_lose_digits_are_refused() {
        for fine in [
            "-9223372036854775808",
            "18446744073709551615",
            "1e40",
            "18446744073709551616.0",
            r#"{"99999999999999999999999": "99999999999999999999999", "\"9": "\\\"99999999999999999999999"}"#,
        ] {
            assert!(parse(fine).is_ok(), "{fine}");
        }
        for wide in ["18446744073709551616", "-9223372036854775809"] {
            for text in [wide.to_owned(), format!(r#"["\\", {{"a": {wide}}}]"#)] {
                let found = parse(&text);
                assert!(
                    matches!(found, Err(ParseError::Integer(n)) if n == wide),
                    "{text}"
                );
            }
        }
        assert!(matches!(parse("[1,"), Err(ParseError::Syntax(_))));
    }

    #[test]
    fn arguments_are_a_tuple_and_a_dict() {
        let args = vec![serde_json::json!([1, "a"])];
        let kwargs: Map<_, _> = [("k".to_owned(), serde_json::json!(null))]
            .into_iter()
            .collect();
        let pickle = safepickle::to_vec(&Arguments(&args, &kwargs), Protocol::DEFAULT).unwrap();
        let document = safepickle::decode(&pickle).unwrap();
        let pair = document.root().tuple().unwrap();
        assert_eq!(pair.at(0).unwrap().kind(), Kind::Tuple);
        assert_eq!(
            to_string(document.root()).unwrap(),
            r#"[[[1, "a"]], {"k": null}]"#
        );
    }

    /// A Python function sees its keyword arguments in the order in which they were typed.
    #[test]
    fn keys_keep_their_order() {
        let text = r#"{"z": 1, "a": {"y": 2, "b": 3}}"#;
        let pickle = safepickle::to_vec(&parse(text).unwrap(), Protocol::DEFAULT).unwrap();
        let document = safepickle::decode(&pickle).unwrap();
        assert_eq!(to_string(document.root()).unwrap(), text);
    }
}
