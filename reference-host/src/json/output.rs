//! Decoded values to JSON.

use std::io;

use agentix_protocol::safepickle::{Kind, Text, Value};
use data_encoding::BASE64;
use serde::ser::Serialize;
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
}
