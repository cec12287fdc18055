//! The arguments of opcodes, for the listing.

use std::borrow::Cow;

use agentix_protocol::safepickle::Opcode;

use super::show::{cut, shown_bytes};
use crate::terminal::visible;

/// An argument as its opcode reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Argument<'a> {
    None,
    Int(i128),
    Float(f64),
    /// Text, or bytes that are none as escapes.
    Text(Cow<'a, str>),
    /// Module and name.
    Names(Cow<'a, str>, Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl<'a> Argument<'a> {
    /// Reads the argument as it stands in the stream.
    pub(super) fn of(opcode: Opcode, raw: &'a [u8]) -> Self {
        let after = |size: usize| raw.get(size..).unwrap_or_default();
        match opcode {
            Opcode::BININT | Opcode::EXT4 => signed(raw),
            Opcode::BININT1
            | Opcode::BININT2
            | Opcode::BINPUT
            | Opcode::BINGET
            | Opcode::LONG_BINPUT
            | Opcode::LONG_BINGET
            | Opcode::EXT1
            | Opcode::EXT2
            | Opcode::PROTO
            | Opcode::FRAME => unsigned(raw),
            Opcode::LONG1 => signed(after(1)),
            Opcode::LONG4 => signed(after(4)),
            Opcode::BINFLOAT => match raw.try_into() {
                Ok(bytes) => Self::Float(f64::from_be_bytes(bytes)),
                Err(_) => Self::Bytes(raw),
            },
            Opcode::SHORT_BINUNICODE | Opcode::SHORT_BINSTRING => Self::Text(text(after(1))),
            Opcode::BINUNICODE | Opcode::BINSTRING => Self::Text(text(after(4))),
            Opcode::BINUNICODE8 => Self::Text(text(after(8))),
            Opcode::SHORT_BINBYTES => Self::Bytes(after(1)),
            Opcode::BINBYTES => Self::Bytes(after(4)),
            Opcode::BINBYTES8 | Opcode::BYTEARRAY8 => Self::Bytes(after(8)),
            Opcode::INT
            | Opcode::LONG
            | Opcode::FLOAT
            | Opcode::STRING
            | Opcode::UNICODE
            | Opcode::PERSID
            | Opcode::GET
            | Opcode::PUT => Self::Text(text(line(raw))),
            Opcode::GLOBAL | Opcode::INST => {
                let mut lines = line(raw).splitn(2, |byte| *byte == b'\n');
                let mut next = || text(lines.next().unwrap_or_default());
                Self::Names(next(), next())
            }
            _ if raw.is_empty() => Self::None,
            _ => Self::Bytes(raw),
        }
    }

    /// The argument in a line of the listing.
    pub(super) fn show(&self, content: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Int(int) => int.to_string(),
            Self::Float(float) => format!("{float:?}"),
            Self::Text(text) => format!("'{}'", visible(&cut(text, content), false)),
            Self::Names(module, name) => {
                let shown = |text| visible(&cut(text, content.saturating_mul(10)), false);
                format!("'{}' '{}'", shown(module), shown(name))
            }
            Self::Bytes(bytes) => shown_bytes(bytes, content),
        }
    }
}

/// A line without its end.
fn line(raw: &[u8]) -> &[u8] {
    raw.strip_suffix(b"\n").unwrap_or(raw)
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.escape_ascii().to_string()),
    }
}

fn unsigned(raw: &[u8]) -> Argument<'_> {
    integer(raw, 0)
}

fn signed(raw: &[u8]) -> Argument<'_> {
    let negative = raw.last().is_some_and(|byte| byte & 0x80 != 0);
    integer(raw, if negative { 0xff } else { 0 })
}

/// A little-endian integer, filled up with `fill`; bytes if it is too long.
fn integer(raw: &[u8], fill: u8) -> Argument<'_> {
    let mut bytes = [fill; 16];
    match bytes.get_mut(..raw.len()) {
        Some(low) => {
            low.copy_from_slice(raw);
            Argument::Int(i128::from_le_bytes(bytes))
        }
        None => Argument::Bytes(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_their_opcodes_do() {
        let int = |opcode, raw: &[u8]| match Argument::of(opcode, raw) {
            Argument::Int(int) => Some(int),
            _ => None,
        };
        assert_eq!(int(Opcode::BININT, b"\xfe\xff\xff\xff"), Some(-2));
        assert_eq!(int(Opcode::BININT2, b"\xfe\xff"), Some(0xfffe));
        assert_eq!(
            int(Opcode::LONG_BINPUT, b"\xff\xff\xff\xff"),
            Some(0xffff_ffff)
        );
        assert_eq!(int(Opcode::LONG1, b"\x00"), Some(0));
        assert_eq!(int(Opcode::LONG1, b"\x02\x00\xff"), Some(-256));
        assert_eq!(int(Opcode::FRAME, &[0xff; 8]), Some(i128::from(u64::MAX)));
        let wide = [[17].as_slice(), &[1; 17]].concat();
        assert_eq!(
            Argument::of(Opcode::LONG1, &wide),
            Argument::Bytes(&[1; 17])
        );
        assert_eq!(
            Argument::of(Opcode::GLOBAL, b"os\nsystem\n"),
            Argument::Names("os".into(), "system".into())
        );
        assert_eq!(
            Argument::of(Opcode::BINUNICODE, b"\x02\0\0\0\xed\xa0"),
            Argument::Text("\\xed\\xa0".into())
        );
        assert_eq!(Argument::of(Opcode::MARK, b""), Argument::None);
        assert_eq!(
            Argument::of(Opcode::BINFLOAT, &1.5_f64.to_be_bytes()),
            Argument::Float(1.5)
        );
    }
}
