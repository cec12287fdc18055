//! The opcodes of pickle protocols 0 to 5, by name.

use std::fmt;

/// One pickle opcode: the byte that starts each instruction of a stream.
///
/// Any byte can be held, so that an error about an unknown opcode can carry it;
/// [`Opcode::name`] is `None` for those.
///
/// ```
/// use agentix_protocol::safepickle::Opcode;
/// assert_eq!(Opcode::STOP.byte(), b'.');
/// assert_eq!(Opcode::STACK_GLOBAL.name(), Some("STACK_GLOBAL"));
/// assert_eq!(Opcode::from_byte(0x00).name(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(u8);

macro_rules! opcodes {
    ($($name:ident = $byte:literal, $doc:literal;)*) => {
        impl Opcode {
            $(#[doc = $doc] pub const $name: Opcode = Opcode($byte);)*

            /// The opcode's name as the pickle format spells it, or `None` if no protocol has it.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Opcode::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        /// Every opcode that exists, in the order of the table above.
        #[cfg(test)]
        pub(super) const ALL: &[Opcode] = &[$(Opcode::$name),*];
    };
}

opcodes! {
    MARK = b'(', "Opens a group of operands.";
    STOP = b'.', "Ends the stream; the top of the stack is the value.";
    POP = b'0', "Drops the top of the stack.";
    POP_MARK = b'1', "Drops everything down to the last mark.";
    DUP = b'2', "Pushes the top of the stack once more.";
    FLOAT = b'F', "A float as a line of text.";
    INT = b'I', "An int or a bool as a line of text.";
    BININT = b'J', "A signed 32-bit int.";
    BININT1 = b'K', "An unsigned 8-bit int.";
    LONG = b'L', "An int of any size as a line of text.";
    BININT2 = b'M', "An unsigned 16-bit int.";
    NONE = b'N', "`None`.";
    PERSID = b'P', "A persistent id as a line of text.";
    BINPERSID = b'Q', "A persistent id taken from the stack.";
    REDUCE = b'R', "Calls a callable with a tuple of arguments.";
    STRING = b'S', "A quoted byte string of Python 2 as a line of text.";
    BINSTRING = b'T', "A byte string of Python 2, 32-bit size.";
    SHORT_BINSTRING = b'U', "A byte string of Python 2, 8-bit size.";
    UNICODE = b'V', "A str as a line of raw-unicode-escape text.";
    BINUNICODE = b'X', "A str, 32-bit size.";
    APPEND = b'a', "Appends one item to a list.";
    BUILD = b'b', "Gives an object its state.";
    GLOBAL = b'c', "A class or function by two lines of text.";
    DICT = b'd', "A dict from the operands above the mark.";
    EMPTY_DICT = b'}', "An empty dict.";
    APPENDS = b'e', "Appends the operands above the mark to a list.";
    GET = b'g', "Pushes a memo entry, index as a line of text.";
    BINGET = b'h', "Pushes a memo entry, 8-bit index.";
    INST = b'i', "An instance of a class named by two lines of text.";
    LONG_BINGET = b'j', "Pushes a memo entry, 32-bit index.";
    LIST = b'l', "A list from the operands above the mark.";
    EMPTY_LIST = b']', "An empty list.";
    OBJ = b'o', "An instance of a class found above the mark.";
    PUT = b'p', "Stores the top of the stack, index as a line of text.";
    BINPUT = b'q', "Stores the top of the stack, 8-bit index.";
    LONG_BINPUT = b'r', "Stores the top of the stack, 32-bit index.";
    SETITEM = b's', "Sets one entry of a dict.";
    TUPLE = b't', "A tuple from the operands above the mark.";
    EMPTY_TUPLE = b')', "The empty tuple.";
    SETITEMS = b'u', "Sets the entries above the mark in a dict.";
    BINFLOAT = b'G', "A float, 8 bytes, big-endian.";
    PROTO = 0x80, "States the protocol.";
    NEWOBJ = 0x81, "An object from a class and a tuple of arguments.";
    EXT1 = 0x82, "A registered global, 8-bit code.";
    EXT2 = 0x83, "A registered global, 16-bit code.";
    EXT4 = 0x84, "A registered global, 32-bit code.";
    TUPLE1 = 0x85, "A tuple of the top item.";
    TUPLE2 = 0x86, "A tuple of the two top items.";
    TUPLE3 = 0x87, "A tuple of the three top items.";
    NEWTRUE = 0x88, "`True`.";
    NEWFALSE = 0x89, "`False`.";
    LONG1 = 0x8a, "An int of any size, little-endian, 8-bit size.";
    LONG4 = 0x8b, "An int of any size, little-endian, 32-bit size.";
    BINBYTES = b'B', "A bytes object, 32-bit size.";
    SHORT_BINBYTES = b'C', "A bytes object, 8-bit size.";
    SHORT_BINUNICODE = 0x8c, "A str, 8-bit size.";
    BINUNICODE8 = 0x8d, "A str, 64-bit size.";
    BINBYTES8 = 0x8e, "A bytes object, 64-bit size.";
    EMPTY_SET = 0x8f, "An empty set.";
    ADDITEMS = 0x90, "Adds the operands above the mark to a set.";
    FROZENSET = 0x91, "A frozenset from the operands above the mark.";
    NEWOBJ_EX = 0x92, "An object from a class, a tuple and a dict of arguments.";
    STACK_GLOBAL = 0x93, "A class or function by two strs on the stack.";
    MEMOIZE = 0x94, "Stores the top of the stack under the next index.";
    FRAME = 0x95, "Opens a frame, 64-bit size.";
    BYTEARRAY8 = 0x96, "A bytearray, 64-bit size.";
    NEXT_BUFFER = 0x97, "The next out-of-band buffer.";
    READONLY_BUFFER = 0x98, "Makes the top of the stack read-only.";
}

impl Opcode {
    /// The opcode that a stream spells with `byte`, known or not.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// The byte that spells this opcode in a stream.
    pub const fn byte(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:02x}", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_its_own_byte() {
        let bytes: std::collections::BTreeSet<u8> = ALL.iter().map(|op| op.byte()).collect();
        assert_eq!(bytes.len(), ALL.len());
        assert_eq!(ALL.len(), 68, "protocols 0 to 5 define 68 opcodes");
    }
}
