//! Writes instructions the way a pickler of some protocol does, or in any way that comes to the same.

use std::collections::BTreeMap;

use super::op;
use super::{Choices, Scope};

/// How closely a stream follows what a pickler would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As the pickler of this protocol: its opcodes, everything memoised.
    Pickler,
    /// The same without most of the memo entries, as `pickletools.optimize` leaves it.
    Optimized,
    /// Any opcode that makes the same value, and names as protocol 3 and up spell them.
    Loose,
}

/// What stands in the memo under some index.
#[derive(Clone, Debug)]
enum Entry {
    Value { hashable: bool },
    Text(String),
    Global(String, String),
}

/// A stream that is being written.
pub(super) struct Writer<'c> {
    pub(super) choices: &'c mut dyn Choices,
    pub(super) scope: Scope,
    pub(super) protocol: u8,
    pub(super) style: Style,
    /// Whether texts are written as Python 2 writes its `str`.
    pub(super) python2: bool,
    /// The modules that stand for `pathlib` and for numpy's in this stream: each has two names.
    pub(super) pathlib: &'static str,
    pub(super) multiarray: &'static str,
    /// How many more values may be opened.
    pub(super) budget: usize,
    pub(super) out: Vec<u8>,
    memo: BTreeMap<u32, Entry>,
}

impl<'c> Writer<'c> {
    pub(super) fn new(
        choices: &'c mut dyn Choices,
        scope: Scope,
        protocol: u8,
        style: Style,
    ) -> Self {
        Self {
            choices,
            scope,
            protocol,
            style,
            python2: false,
            pathlib: "pathlib",
            multiarray: "numpy._core.multiarray",
            budget: 0,
            out: Vec::new(),
            memo: BTreeMap::new(),
        }
    }

    pub(super) fn loose(&self) -> bool {
        self.style == Style::Loose
    }

    /// Whether an opcode of `since` may be used. A loose stream may use any.
    pub(super) fn has(&self, since: u8) -> bool {
        self.protocol >= since || self.loose()
    }

    pub(super) fn op(&mut self, opcode: u8) {
        self.out.push(opcode);
    }

    pub(super) fn line(&mut self, opcode: u8, text: &str) {
        self.out.push(opcode);
        self.out.extend(text.bytes());
        self.out.push(b'\n');
    }

    pub(super) fn fixed(&mut self, opcode: u8, argument: &[u8]) {
        self.out.push(opcode);
        self.out.extend(argument);
    }

    /// An opcode that carries its argument's size in `width` bytes.
    pub(super) fn sized(&mut self, opcode: u8, width: usize, content: &[u8]) {
        self.out.push(opcode);
        self.out
            .extend(&(content.len() as u64).to_le_bytes()[..width]);
        self.out.extend(content);
    }

    // Numbers.

    pub(super) fn bool(&mut self, value: bool) {
        if self.protocol < 2 || (self.loose() && self.choices.one_in(3)) {
            self.line(op::INT, if value { "01" } else { "00" });
        } else {
            self.op(if value { op::NEWTRUE } else { op::NEWFALSE });
        }
    }

    pub(super) fn int(&mut self, value: i64) {
        let small = i32::try_from(value);
        let way = match (self.style, self.protocol, small) {
            (Style::Loose, _, _) => self.choices.below(6),
            (_, 0, Ok(_)) => 0,
            (_, 0 | 1, Err(_)) => 1,
            (_, _, Err(_)) => 3,
            (_, _, Ok(_)) => 2,
        };
        match (way, value) {
            (0, _) => self.line(op::INT, &value.to_string()),
            (1, _) => self.line(op::LONG, &format!("{value}L")),
            (2, 0..=0xff) => self.fixed(op::BININT1, &[value as u8]),
            (2, 0..=0xffff) => self.fixed(op::BININT2, &(value as u16).to_le_bytes()),
            (4, 0..=0xffff) => self.fixed(op::BININT2, &(value as u16).to_le_bytes()),
            (2 | 4 | 5, _) if small.is_ok() => {
                self.fixed(op::BININT, &(value as i32).to_le_bytes());
            }
            _ => self.big_int(&minimal(value)),
        }
    }

    /// An int by its two's complement, little-endian.
    pub(super) fn big_int(&mut self, bytes: &[u8]) {
        if bytes.len() < 256 && !(self.loose() && self.choices.one_in(4)) {
            self.sized(op::LONG1, 1, bytes);
        } else {
            self.sized(op::LONG4, 4, bytes);
        }
    }

    pub(super) fn float(&mut self, value: f64) {
        if self.protocol == 0 || (self.loose() && self.choices.one_in(3)) {
            let text = match () {
                () if value.is_nan() => "nan".to_owned(),
                () if self.choices.one_in(3) => format!("{value:e}"),
                () => format!("{value:?}"),
            };
            self.line(op::FLOAT, &text);
        } else {
            self.fixed(op::BINFLOAT, &value.to_be_bytes());
        }
    }

    // Text and bytes.

    /// A str by its code points, surrogates included.
    pub(super) fn str(&mut self, text: &[u32]) {
        let utf8 = generalised_utf8(text);
        let ascii = text.iter().all(|point| *point < 0x80);
        let way = match self.style {
            Style::Loose => self.choices.below(7),
            _ if self.python2 && ascii => match self.protocol {
                0 => 4,
                _ => 5,
            },
            _ => match self.protocol {
                0 => 3,
                1..=3 => 1,
                _ => 0,
            },
        };
        match way {
            0 if utf8.len() < 256 => self.sized(op::SHORT_BINUNICODE, 1, &utf8),
            2 => self.sized(op::BINUNICODE8, 8, &utf8),
            3 => {
                let line = raw_unicode_escape(text);
                self.fixed(op::UNICODE, &line);
            }
            4 if ascii => {
                let line = self.quoted(&utf8);
                self.fixed(op::STRING, &line);
            }
            5 if ascii && utf8.len() < 256 => self.sized(op::SHORT_BINSTRING, 1, &utf8),
            5 | 6 if ascii => self.sized(op::BINSTRING, 4, &utf8),
            _ => self.sized(op::BINUNICODE, 4, &utf8),
        }
        self.memoize(Entry::Value { hashable: true });
    }

    pub(super) fn text(&mut self, text: &str) {
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        self.str(&points);
    }

    /// ASCII between quotes, with a newline: what follows STRING.
    fn quoted(&mut self, ascii: &[u8]) -> Vec<u8> {
        let quote = if self.choices.one_in(3) { b'"' } else { b'\'' };
        let mut line = vec![quote];
        for byte in ascii {
            match byte {
                b'\n' => line.extend(b"\\n"),
                b'\r' => line.extend(b"\\r"),
                b'\\' => line.extend(b"\\\\"),
                byte if *byte == quote => line.extend([b'\\', quote]),
                byte if *byte < 0x20 || *byte == 0x7f => {
                    line.extend(format!("\\x{byte:02x}").bytes());
                }
                byte if self.loose() && self.choices.one_in(12) => {
                    line.extend(format!("\\{byte:03o}").bytes());
                }
                byte => line.push(*byte),
            }
        }
        line.extend([quote, b'\n']);
        line
    }

    pub(super) fn bytes(&mut self, content: &[u8]) {
        let way = if self.loose() {
            self.choices.below(3)
        } else {
            0
        };
        match way {
            0 if content.len() < 256 => self.sized(op::SHORT_BINBYTES, 1, content),
            2 => self.sized(op::BINBYTES8, 8, content),
            _ => self.sized(op::BINBYTES, 4, content),
        }
        self.memoize(Entry::Value { hashable: true });
    }

    // Tuples.

    /// Opens a tuple of `len` items. Says whether with a MARK, for [`Writer::close_tuple`].
    pub(super) fn open_tuple(&mut self, len: usize) -> bool {
        let marked = match len {
            0 => self.protocol == 0 || (self.loose() && self.choices.one_in(3)),
            1..=3 => self.protocol < 2 || (self.loose() && self.choices.one_in(3)),
            _ => true,
        };
        if marked {
            self.op(op::MARK);
        }
        marked
    }

    pub(super) fn close_tuple(&mut self, len: usize, marked: bool, hashable: bool) {
        match len {
            _ if marked => self.op(op::TUPLE),
            0 => self.op(op::EMPTY_TUPLE),
            1 => self.op(op::TUPLE1),
            2 => self.op(op::TUPLE2),
            _ => self.op(op::TUPLE3),
        }
        if len > 0 {
            self.memoize(Entry::Value { hashable });
        }
    }

    // Classes and calls.

    /// A class or function by name, from the memo if it is there.
    pub(super) fn global(&mut self, module: &str, name: &str) {
        if !(self.loose() && self.choices.one_in(3)) {
            let found = self.memo.iter().find_map(|(index, entry)| match entry {
                Entry::Global(m, n) if m == module && n == name => Some(*index),
                _ => None,
            });
            if let Some(index) = found {
                return self.get(index);
            }
        }
        // What a pickler below protocol 3 calls the modules that Python 3 renamed.
        let spelt = match module {
            "builtins" if self.protocol < 3 && !self.loose() => "__builtin__",
            "copyreg" if self.protocol < 3 && !self.loose() => "copy_reg",
            module => module,
        };
        if self.protocol >= 4 && !(self.loose() && self.choices.one_in(3)) {
            self.name(spelt);
            self.name(name);
            self.op(op::STACK_GLOBAL);
        } else {
            self.line(op::GLOBAL, spelt);
            self.out.extend(name.bytes());
            self.out.push(b'\n');
        }
        self.memoize(Entry::Global(module.to_owned(), name.to_owned()));
    }

    /// A module's or class's name as a str, from the memo if it is there.
    fn name(&mut self, name: &str) {
        let found = self.memo.iter().find_map(|(index, entry)| match entry {
            Entry::Text(text) if text == name => Some(*index),
            _ => None,
        });
        match found {
            Some(index) => self.get(index),
            None => {
                let utf8 = name.as_bytes();
                if utf8.len() < 256 && !(self.loose() && self.choices.one_in(4)) {
                    self.sized(op::SHORT_BINUNICODE, 1, utf8);
                } else {
                    self.sized(op::BINUNICODE, 4, utf8);
                }
                self.memoize(Entry::Text(name.to_owned()));
            }
        }
    }

    /// Calls the class or function `name` with the arguments that `write` writes.
    pub(super) fn call(
        &mut self,
        module: &str,
        name: &str,
        hashable: bool,
        arguments: usize,
        write: impl FnOnce(&mut Self),
    ) {
        self.global(module, name);
        let marked = self.open_tuple(arguments);
        write(self);
        self.close_tuple(arguments, marked, false);
        self.op(op::REDUCE);
        self.memoized(hashable);
    }

    /// Makes an object without calling its constructor.
    pub(super) fn new_object(&mut self, module: &str, name: &str, hashable: bool) {
        self.global(module, name);
        let marked = self.open_tuple(0);
        self.close_tuple(0, marked, true);
        self.op(op::NEWOBJ);
        self.memoized(hashable);
    }

    // The memo.

    /// Memoises the top of the stack, a value.
    pub(super) fn memoized(&mut self, hashable: bool) {
        self.memoize(Entry::Value { hashable });
    }

    fn memoize(&mut self, entry: Entry) {
        if self.style != Style::Pickler && !self.choices.one_in(3) {
            return;
        }
        let next = self.memo.len() as u32;
        let index = match self.loose() {
            true if self.choices.one_in(8) => {
                let near = self.choices.below(6) as u32;
                self.choices.pick(&[near, 200 + near, 255, 256, 1000])
            }
            _ => next,
        };
        let way = match (self.style, self.protocol) {
            (Style::Loose, _) => self.choices.below(4),
            (_, 0) => 0,
            (_, 1..=3) => 1,
            _ => 3,
        };
        match way {
            0 => self.line(op::PUT, &index.to_string()),
            3 if index == next => self.op(op::MEMOIZE),
            1 | 3 if index < 256 => self.fixed(op::BINPUT, &[index as u8]),
            _ => self.fixed(op::LONG_BINPUT, &index.to_le_bytes()),
        }
        self.memo.insert(index, entry);
    }

    fn get(&mut self, index: u32) {
        let way = match (self.style, self.protocol) {
            (Style::Loose, _) => self.choices.below(3),
            (_, 0) => 0,
            _ => 1,
        };
        match way {
            0 => self.line(op::GET, &index.to_string()),
            1 if index < 256 => self.fixed(op::BINGET, &[index as u8]),
            _ => self.fixed(op::LONG_BINGET, &index.to_le_bytes()),
        }
    }

    /// Writes a reference to something in the memo, hashable if that is asked for; says whether it
    /// is hashable, or nothing if there is none.
    pub(super) fn reference(&mut self, need_hashable: bool) -> Option<bool> {
        let fitting: Vec<(u32, bool)> = self
            .memo
            .iter()
            .map(|(index, entry)| match entry {
                Entry::Value { hashable } => (*index, *hashable),
                Entry::Text(_) | Entry::Global(..) => (*index, true),
            })
            .filter(|(_, hashable)| *hashable || !need_hashable)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let (index, hashable) = self.choices.pick(&fitting);
        self.get(index);
        Some(hashable)
    }

    /// The index under which the last object was memoised, if the last instruction did that in order.
    pub(super) fn last_memo(&self) -> Option<u32> {
        (self.style == Style::Pickler).then(|| self.memo.len() as u32 - 1)
    }

    /// Writes a reference to the memo entry `index`.
    pub(super) fn refer(&mut self, index: u32) {
        self.get(index);
    }
}

/// The shortest two's complement, little-endian; nothing for 0.
fn minimal(value: i64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    while let [.., below, last] = bytes[..] {
        let redundant = (last == 0 && below & 0x80 == 0) || (last == 0xff && below & 0x80 != 0);
        if !redundant {
            break;
        }
        bytes.pop();
    }
    if bytes == [0] { Vec::new() } else { bytes }
}

/// Code points as UTF-8 in which surrogates take three bytes each.
pub(super) fn generalised_utf8(text: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for point in text {
        match char::from_u32(*point) {
            Some(char) => out.extend(char.encode_utf8(&mut [0; 4]).bytes()),
            None => out.extend([
                0xe0 | (point >> 12) as u8,
                0x80 | (point >> 6 & 0x3f) as u8,
                0x80 | (point & 0x3f) as u8,
            ]),
        }
    }
    out
}

/// Code points as UNICODE spells them, with the newline.
fn raw_unicode_escape(text: &[u32]) -> Vec<u8> {
    let mut line = Vec::with_capacity(text.len() + 1);
    for point in text {
        match point {
            0 | 0x0a | 0x0d | 0x1a | 0x5c | 0x100..=0xffff => {
                line.extend(format!("\\u{point:04x}").bytes());
            }
            0..=0xff => line.push(*point as u8),
            _ => line.extend(format!("\\U{point:08x}").bytes()),
        }
    }
    line.push(b'\n');
    line
}
