//! JSON on one line, for terminals too.

use std::io;

use serde::ser::Serialize;
use serde_json::ser::Formatter;

use crate::terminal::is_hidden;

/// Writes any serializable value as one line of JSON, with the blanks and escapes that
/// [`to_string`](super::to_string) writes.
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
    write_line(value, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes what [`to_line`] gives.
pub(crate) fn write_line<T: Serialize>(value: &T, out: impl io::Write) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Line))
}

/// A blank after `:` and `,`, and escapes for what a terminal would obey or not show.
struct Line;

impl Formatter for Line {
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        mut fragment: &str,
    ) -> io::Result<()> {
        while let Some((at, c)) = fragment.char_indices().find(|(_, c)| is_hidden(*c)) {
            out.write_all(&fragment.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            fragment = &fragment[at + c.len_utf8()..];
        }
        out.write_all(fragment.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_same_json_and_harmless() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0001}é\"\\";
        let line = to_line(&[text]).unwrap();
        assert!(!line.contains(is_hidden));
        assert_eq!(serde_json::from_str::<[String; 1]>(&line).unwrap(), [text]);
    }
}
