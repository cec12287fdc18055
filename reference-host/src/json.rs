//! JSON for tools: arguments that a person types, results that a person or a script reads.
//!
//! Arguments become Python values as JSON suggests: object to `dict`, array to `list`, and so on. The
//! keys of an object are sorted on the way, and integers have at most 64 bits.
//!
//! Results become JSON in the manner of Python's `json.dumps`, with a blank after `:` and `,` and
//! keys in the order of the dict. Characters are written as they are. What JSON lacks is written as
//! an object with one key that begins with `$`:
//!
//! | Python | JSON |
//! | --- | --- |
//! | `None`, `bool`, `str`, `list` | `null`, `true`, `"…"`, `[…]` |
//! | `int` of any size | digits |
//! | finite `float` | a number with a point or an exponent |
//! | `nan`, `inf`, `-inf` | `{"$float": "nan"}` |
//! | `tuple` | an array, as in Python |
//! | `dict` with `str` keys | an object |
//! | other `dict` | `{"$dict": [[key, value], …]}` |
//! | `bytes`, `bytearray` | `{"$bytes": "base64"}`, `{"$bytearray": "base64"}` |
//! | `set`, `frozenset` | `{"$set": […]}`, `{"$frozenset": […]}` |
//!
//! A dict whose only key is a `str` that begins with `$` is written as `$dict` too, so that it is
//! not taken for one of these. A surrogate code point in a `str` is written as its `\uXXXX`.

use std::io;

use agentix_protocol::safepickle::{Kind, Text, Value};
use data_encoding::BASE64;
use serde::ser::{Serialize, SerializeTuple, Serializer};
use serde_json::Map;
use serde_json::ser::Formatter;

/// Deepest nesting that is written. Python's own `json.dumps` gives up at about the same.
pub const MAX_DEPTH: usize = 1000;
/// Most values that are written; shared parts count each time.
const MAX_VALUES: u64 = 16_777_216;

/// Why a value was not written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The value is nested too deep, or holds itself.
    #[error("the value is nested deeper than {MAX_DEPTH} levels, or holds itself")]
    TooDeep,
    /// Too many values once shared parts are unfolded.
    #[error("the value has more than {MAX_VALUES} parts once shared ones are unfolded")]
    TooLarge,
}

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

/// Writes a decoded value as one line of JSON.
///
/// # Errors
///
/// [`JsonError`] when it is too deep or too large.
///
/// # Example
///
/// ```
/// use agentix_protocol::safepickle;
/// use agentix_reference_host::json;
///
/// // {"output": "HELLO"}
/// let document = safepickle::decode(b"\x80\x04}\x8c\x06output\x8c\x05HELLOs.")?;
/// assert_eq!(json::to_string(document.root())?, r#"{"output": "HELLO"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_string(value: Value<'_>) -> Result<String, JsonError> {
    write(value, MAX_VALUES)
}

fn write(value: Value<'_>, values: u64) -> Result<String, JsonError> {
    let mut writer = Writer {
        out: String::new(),
        left: values,
    };
    let mut stack = vec![Task::Value(value, 0)];
    while let Some(task) = stack.pop() {
        match task {
            Task::Text(text) => writer.out.push_str(text),
            Task::Key(key) => writer.text(key),
            Task::Value(value, depth) => writer.value(value, depth, &mut stack)?,
        }
    }
    Ok(writer.out)
}

/// Writes any serializable value as one line of JSON, with the blanks that [`to_string`] writes.
///
/// # Errors
///
/// What a `Serialize` implementation reports, and map keys that are no strings.
///
/// # Example
///
/// ```
/// use agentix_protocol::http::Health;
/// use agentix_reference_host::json;
///
/// let line = json::to_line(&Health::healthy("1.4.2"))?;
/// assert_eq!(line, r#"{"status": "ok", "version": "1.4.2", "protocol": "1.0"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn to_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut out, Blanks,
    ))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A blank after `:` and `,`.
struct Blanks;

impl Formatter for Blanks {
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// What is still to be written; the last one first.
enum Task<'d> {
    Text(&'static str),
    Key(Text<'d>),
    Value(Value<'d>, usize),
}

struct Writer {
    out: String,
    left: u64,
}

impl Writer {
    fn value<'d>(
        &mut self,
        value: Value<'d>,
        depth: usize,
        stack: &mut Vec<Task<'d>>,
    ) -> Result<(), JsonError> {
        self.left = self.left.checked_sub(1).ok_or(JsonError::TooLarge)?;
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        if let Some(text) = value.as_text() {
            self.text(text);
        } else if let Some(bool) = value.as_bool() {
            self.out.push_str(if bool { "true" } else { "false" });
        } else if let Some(int) = value.as_big_int() {
            self.out.push_str(&int.to_string());
        } else if let Some(float) = value.as_f64() {
            self.float(float);
        } else if let Some(bytes) = value.as_bytes() {
            self.bytes("{\"$bytes\": \"", bytes);
        } else if let Some(bytes) = value.as_bytearray() {
            self.bytes("{\"$bytearray\": \"", bytes);
        } else if let Some(entries) = value.dict() {
            let has_other_keys = entries.iter().any(|(key, _)| key.kind() != Kind::Str);
            let looks_special = entries.len() == 1
                && entries.at(0).is_some_and(|(key, _)| {
                    key.as_text()
                        .is_some_and(|text| text.as_generalised_utf8().starts_with(b"$"))
                });
            if has_other_keys || looks_special {
                self.out.push_str("{\"$dict\": [");
                stack.push(Task::Text("]}"));
                for (i, (key, value)) in entries.iter().enumerate().rev() {
                    stack.push(Task::Text("]"));
                    stack.push(Task::Value(value, depth + 1));
                    stack.push(Task::Text(", "));
                    stack.push(Task::Value(key, depth + 1));
                    stack.push(Task::Text(if i == 0 { "[" } else { ", [" }));
                }
            } else {
                self.out.push('{');
                stack.push(Task::Text("}"));
                for (i, (key, value)) in entries.iter().enumerate().rev() {
                    stack.push(Task::Value(value, depth + 1));
                    stack.push(Task::Text(": "));
                    stack.extend(key.as_text().map(Task::Key));
                    if i > 0 {
                        stack.push(Task::Text(", "));
                    }
                }
            }
        } else {
            let (open, close, items) = match value.kind() {
                Kind::Set => ("{\"$set\": [", "]}", value.set()),
                Kind::Frozenset => ("{\"$frozenset\": [", "]}", value.frozenset()),
                _ => ("[", "]", value.list().or_else(|| value.tuple())),
            };
            let Some(items) = items else {
                // What is left of the kinds is None.
                self.out.push_str("null");
                return Ok(());
            };
            self.out.push_str(open);
            stack.push(Task::Text(close));
            for (i, item) in items.iter().enumerate().rev() {
                stack.push(Task::Value(item, depth + 1));
                if i > 0 {
                    stack.push(Task::Text(", "));
                }
            }
        }
        Ok(())
    }

    fn bytes(&mut self, open: &str, bytes: &[u8]) {
        self.out.push_str(open);
        BASE64.encode_append(bytes, &mut self.out);
        self.out.push_str("\"}");
    }

    fn float(&mut self, float: f64) {
        if float.is_finite() {
            self.out.push_str(&format!("{float:?}"));
        } else {
            let name = match float {
                f if f.is_nan() => "nan",
                f if f > 0.0 => "inf",
                _ => "-inf",
            };
            self.out.push_str(&format!("{{\"$float\": \"{name}\"}}"));
        }
    }

    fn text(&mut self, text: Text<'_>) {
        self.out.push('"');
        for point in text.code_points() {
            match char::from_u32(point) {
                Some('"') => self.out.push_str("\\\""),
                Some('\\') => self.out.push_str("\\\\"),
                Some('\n') => self.out.push_str("\\n"),
                Some('\r') => self.out.push_str("\\r"),
                Some('\t') => self.out.push_str("\\t"),
                Some(c) if !c.is_control() => self.out.push(c),
                // Control characters, which a terminal would obey, and surrogates.
                _ => self.out.push_str(&format!("\\u{point:04x}")),
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use agentix_protocol::safepickle::{self, Protocol};

    use super::*;

    /// Decodes a pickle written by hand and writes it as JSON.
    fn json(pickle: &[u8]) -> Result<String, JsonError> {
        to_string(safepickle::decode(pickle).unwrap().root())
    }

    fn json_of<T: Serialize>(value: &T) -> String {
        json(&safepickle::to_vec(value, Protocol::DEFAULT).unwrap()).unwrap()
    }

    #[test]
    fn plain_values() {
        assert_eq!(
            json_of(&(1, (), true, "a", 1.0, 1e300)),
            r#"[1, null, true, "a", 1.0, 1e300]"#
        );
        assert_eq!(json_of(&vec![0_u8; 0]), "[]");
        assert_eq!(
            json_of(&u128::MAX),
            "340282366920938463463374607431768211455"
        );
        assert_eq!(
            json_of(&(f64::NAN, f64::INFINITY, f64::NEG_INFINITY)),
            r#"[{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}]"#
        );
        assert_eq!(
            json_of(&"é\"\\\n\u{7}\u{1f600}"),
            "\"é\\\"\\\\\\n\\u0007\u{1f600}\""
        );
        // '\ud800' as Python writes it.
        assert_eq!(json(b"\x8c\x03\xed\xa0\x80.").unwrap(), r#""\ud800""#);
    }

    #[test]
    fn dicts_keep_their_order_and_odd_keys() {
        assert_eq!(
            json_of(
                &[("b", 1)]
                    .into_iter()
                    .collect::<std::collections::BTreeMap<_, _>>()
            ),
            r#"{"b": 1}"#
        );
        // {"b": 1, "a": [2]}
        assert_eq!(
            json(b"}(\x8c\x01bK\x01\x8c\x01a](K\x02eu.").unwrap(),
            r#"{"b": 1, "a": [2]}"#
        );
        // {1: "x", None: 2}
        assert_eq!(
            json(b"}(K\x01\x8c\x01xNK\x02u.").unwrap(),
            r#"{"$dict": [[1, "x"], [null, 2]]}"#
        );
        // {"$bytes": 1}
        assert_eq!(
            json(b"}\x8c\x06$bytesK\x01s.").unwrap(),
            r#"{"$dict": [["$bytes", 1]]}"#
        );
    }

    #[test]
    fn bytes_and_sets() {
        assert_eq!(json(b"C\x02\x00\xff.").unwrap(), r#"{"$bytes": "AP8="}"#);
        // {1} and frozenset({2})
        assert_eq!(
            json(b"\x80\x04\x8f(K\x01\x90.").unwrap(),
            r#"{"$set": [1]}"#
        );
        assert_eq!(
            json(b"\x80\x04(K\x02\x91.").unwrap(),
            r#"{"$frozenset": [2]}"#
        );
    }

    #[test]
    fn depth_and_sharing_are_bounded() {
        let mut deep = vec![b']'; MAX_DEPTH + 2];
        deep.extend(vec![b'a'; MAX_DEPTH + 1]);
        deep.push(b'.');
        assert_eq!(json(&deep), Err(JsonError::TooDeep));
        // A list that holds itself.
        assert_eq!(json(b"]q\x00h\x00a."), Err(JsonError::TooDeep));
        // Each list holds the one before twice: 2^40 values.
        let mut bomb = b"]".to_vec();
        for i in 0..40_u8 {
            bomb.extend([b'q', i, b']', b'(', b'h', i, b'h', i, b'e']);
        }
        bomb.push(b'.');
        let document = safepickle::decode(&bomb).unwrap();
        assert_eq!(write(document.root(), 10_000), Err(JsonError::TooLarge));
    }

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
}
