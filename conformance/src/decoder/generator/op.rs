//! The opcodes of pickle, as bytes, and where one instruction ends and the next begins.
//!
//! A table of its own, apart from the decoder's, so that a mistake in one shows against the other.

use std::ops::Range;

/// What follows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// So many bytes.
    Fixed(usize),
    /// A size in so many bytes, little-endian, and then as many bytes as it says.
    Sized(usize),
    /// A line of text.
    Line,
    /// Two lines of text.
    TwoLines,
}

macro_rules! opcodes {
    ($($name:ident = $byte:literal, $argument:expr;)*) => {
        $(pub const $name: u8 = $byte;)*

        /// Every opcode of protocols 0 to 5: byte, name, argument.
        pub const ALL: &[(u8, &str, Argument)] = &[$(($byte, stringify!($name), $argument)),*];
    };
}

opcodes! {
    MARK = b'(', Argument::None;
    STOP = b'.', Argument::None;
    POP = b'0', Argument::None;
    POP_MARK = b'1', Argument::None;
    DUP = b'2', Argument::None;
    FLOAT = b'F', Argument::Line;
    INT = b'I', Argument::Line;
    BININT = b'J', Argument::Fixed(4);
    BININT1 = b'K', Argument::Fixed(1);
    LONG = b'L', Argument::Line;
    BININT2 = b'M', Argument::Fixed(2);
    NONE = b'N', Argument::None;
    PERSID = b'P', Argument::Line;
    BINPERSID = b'Q', Argument::None;
    REDUCE = b'R', Argument::None;
    STRING = b'S', Argument::Line;
    BINSTRING = b'T', Argument::Sized(4);
    SHORT_BINSTRING = b'U', Argument::Sized(1);
    UNICODE = b'V', Argument::Line;
    BINUNICODE = b'X', Argument::Sized(4);
    APPEND = b'a', Argument::None;
    BUILD = b'b', Argument::None;
    GLOBAL = b'c', Argument::TwoLines;
    DICT = b'd', Argument::None;
    EMPTY_DICT = b'}', Argument::None;
    APPENDS = b'e', Argument::None;
    GET = b'g', Argument::Line;
    BINGET = b'h', Argument::Fixed(1);
    INST = b'i', Argument::TwoLines;
    LONG_BINGET = b'j', Argument::Fixed(4);
    LIST = b'l', Argument::None;
    EMPTY_LIST = b']', Argument::None;
    OBJ = b'o', Argument::None;
    PUT = b'p', Argument::Line;
    BINPUT = b'q', Argument::Fixed(1);
    LONG_BINPUT = b'r', Argument::Fixed(4);
    SETITEM = b's', Argument::None;
    TUPLE = b't', Argument::None;
    EMPTY_TUPLE = b')', Argument::None;
    SETITEMS = b'u', Argument::None;
    BINFLOAT = b'G', Argument::Fixed(8);
    PROTO = 0x80, Argument::Fixed(1);
    NEWOBJ = 0x81, Argument::None;
    EXT1 = 0x82, Argument::Fixed(1);
    EXT2 = 0x83, Argument::Fixed(2);
    EXT4 = 0x84, Argument::Fixed(4);
    TUPLE1 = 0x85, Argument::None;
    TUPLE2 = 0x86, Argument::None;
    TUPLE3 = 0x87, Argument::None;
    NEWTRUE = 0x88, Argument::None;
    NEWFALSE = 0x89, Argument::None;
    LONG1 = 0x8a, Argument::Sized(1);
    LONG4 = 0x8b, Argument::Sized(4);
    BINBYTES = b'B', Argument::Sized(4);
    SHORT_BINBYTES = b'C', Argument::Sized(1);
    SHORT_BINUNICODE = 0x8c, Argument::Sized(1);
    BINUNICODE8 = 0x8d, Argument::Sized(8);
    BINBYTES8 = 0x8e, Argument::Sized(8);
    EMPTY_SET = 0x8f, Argument::None;
    ADDITEMS = 0x90, Argument::None;
    FROZENSET = 0x91, Argument::None;
    NEWOBJ_EX = 0x92, Argument::None;
    STACK_GLOBAL = 0x93, Argument::None;
    MEMOIZE = 0x94, Argument::None;
    FRAME = 0x95, Argument::Fixed(8);
    BYTEARRAY8 = 0x96, Argument::Sized(8);
    NEXT_BUFFER = 0x97, Argument::None;
    READONLY_BUFFER = 0x98, Argument::None;
}

/// The instructions of a stream, in order, up to and with STOP or the end. What is no opcode is an
/// instruction of one byte; an argument that is cut short ends with the stream.
pub fn instructions(stream: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = stream.get(at) {
        let end = end(stream, at).min(stream.len());
        found.push(at..end);
        if *byte == STOP {
            break;
        }
        at = end;
    }
    found
}

/// Where the instruction at `at` ends, if the stream is that long.
fn end(stream: &[u8], at: usize) -> usize {
    let argument = ALL.iter().find(|(byte, _, _)| *byte == stream[at]);
    let start = at + 1;
    let line = |from: usize| {
        let rest = stream.get(from..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'\n') {
            Some(newline) => from + newline + 1,
            None => stream.len(),
        }
    };
    match argument.map_or(Argument::None, |(_, _, argument)| *argument) {
        Argument::None => start,
        Argument::Fixed(len) => start + len,
        Argument::Line => line(start),
        Argument::TwoLines => line(line(start)),
        Argument::Sized(width) => {
            let Some(size) = stream.get(start..start + width) else {
                return stream.len();
            };
            let size = size
                .iter()
                .rev()
                .fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
            usize::try_from(size)
                .ok()
                .and_then(|size| size.checked_add(start + width))
                .unwrap_or(stream.len())
        }
    }
}
