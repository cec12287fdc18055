//! The msgpack that the suite writes: shortest forms, keys in the order given, and raw bytes where a case needs what no
//! encoder writes. Independent of the codec under test.

/// A value to write.
#[derive(Clone, Debug)]
pub(crate) enum Msg {
    Nil,
    Bool(bool),
    Int(i64),
    Str(String),
    Bin(Vec<u8>),
    Array(Vec<Msg>),
    Map(Vec<(Msg, Msg)>),
    /// Bytes that stand for a value, well formed or not.
    Raw(Vec<u8>),
}

/// A str.
pub(crate) fn text(value: &str) -> Msg {
    Msg::Str(value.to_owned())
}

/// A bin.
pub(crate) fn bin(value: &[u8]) -> Msg {
    Msg::Bin(value.to_vec())
}

/// A map with str keys, in this order.
pub(crate) fn map<const N: usize>(entries: [(&str, Msg); N]) -> Msg {
    Msg::Map(entries.map(|(key, value)| (text(key), value)).into())
}

impl Msg {
    /// The bytes of this value.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => out.push(0xc0),
            Self::Bool(value) => out.push(0xc2 + u8::from(*value)),
            Self::Int(value) => write_int(*value, out),
            Self::Str(value) => {
                let len = value.len();
                match len {
                    0..32 => out.push(0xa0 | len as u8),
                    _ => head(out, len, Some(0xd9), 0xda, 0xdb),
                }
                out.extend_from_slice(value.as_bytes());
            }
            Self::Bin(value) => {
                head(out, value.len(), Some(0xc4), 0xc5, 0xc6);
                out.extend_from_slice(value);
            }
            Self::Array(items) => {
                match items.len() {
                    0..16 => out.push(0x90 | items.len() as u8),
                    _ => head(out, items.len(), None, 0xdc, 0xdd),
                }
                items.iter().for_each(|item| item.write(out));
            }
            Self::Map(entries) => {
                match entries.len() {
                    0..16 => out.push(0x80 | entries.len() as u8),
                    _ => head(out, entries.len(), None, 0xde, 0xdf),
                }
                for (key, value) in entries {
                    key.write(out);
                    value.write(out);
                }
            }
            Self::Raw(bytes) => out.extend_from_slice(bytes),
        }
    }
}

fn head(out: &mut Vec<u8>, len: usize, tag8: Option<u8>, tag16: u8, tag32: u8) {
    match (tag8, len) {
        (Some(tag), 0..=0xff) => out.extend([tag, len as u8]),
        (_, 0..=0xffff) => {
            out.push(tag16);
            out.extend((len as u16).to_be_bytes());
        }
        _ => {
            out.push(tag32);
            out.extend((len as u32).to_be_bytes());
        }
    }
}

fn write_int(value: i64, out: &mut Vec<u8>) {
    match value {
        0..=0x7f => out.push(value as u8),
        -32..0 => out.push(value as i8 as u8),
        0x80..=0xff => out.extend([0xcc, value as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend((value as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend((value as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend((value as u64).to_be_bytes());
        }
        -0x80..-32 => out.extend([0xd0, value as i8 as u8]),
        -0x8000..-0x80 => {
            out.push(0xd1);
            out.extend((value as i16).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            out.push(0xd2);
            out.extend((value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(value.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of AGX-COD-002.
    #[test]
    fn shortest_forms() {
        let cases: &[(i64, &[u8])] = &[
            (0, &[0x00]),
            (127, &[0x7f]),
            (128, &[0xcc, 0x80]),
            (255, &[0xcc, 0xff]),
            (256, &[0xcd, 0x01, 0x00]),
            (65535, &[0xcd, 0xff, 0xff]),
            (65536, &[0xce, 0x00, 0x01, 0x00, 0x00]),
            (1 << 32, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
            (-1, &[0xff]),
            (-32, &[0xe0]),
            (-33, &[0xd0, 0xdf]),
            (-128, &[0xd0, 0x80]),
            (-129, &[0xd1, 0xff, 0x7f]),
        ];
        for (value, bytes) in cases {
            assert_eq!(Msg::Int(*value).bytes(), *bytes, "{value}");
        }
        assert_eq!(text(&"x".repeat(31)).bytes()[0], 0xbf);
        assert_eq!(text(&"x".repeat(32)).bytes()[..2], [0xd9, 0x20]);
        assert_eq!(bin(&[0; 256]).bytes()[..3], [0xc5, 0x01, 0x00]);
        assert_eq!(
            Msg::Array(vec![Msg::Nil; 16]).bytes()[..3],
            [0xdc, 0x00, 0x10]
        );
        assert_eq!(
            map([("a", Msg::Bool(true))]).bytes(),
            [0x81, 0xa1, b'a', 0xc3]
        );
    }
}
