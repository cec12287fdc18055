//! The opcodes that an encoder writes.

use num_bigint::BigInt;
use thiserror::Error;

use super::opcode::Opcode;
use super::value::Kind;

/// The pickle protocol to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Protocol 2: Python 2.3. Without bytes. Names of classes are those of Python 3.
    V2,
    /// Protocol 3: Python 3.0. With bytes.
    V3,
    /// Protocol 4: Python 3.4. With opcodes for sets, and strs and bytes of any size.
    V4,
    /// Protocol 5: Python 3.8. With an opcode for bytearrays.
    V5,
}

impl Protocol {
    /// Protocol 4, for a reader that may be any CPython since 3.4; what CPython 3.8 to 3.13 write by
    /// default.
    pub const DEFAULT: Protocol = Protocol::V4;

    /// Protocol 5, for a reader that is a [`Decoder`](super::Decoder) of this crate or CPython 3.8 or
    /// later. It differs from 4 for bytearrays alone: they take an opcode and not the call of a class.
    pub const LATEST: Protocol = Protocol::V5;

    /// The number that PROTO states.
    pub const fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V5 => 5,
        }
    }
}

impl Default for Protocol {
    /// [`Protocol::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a value was not encoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The protocol has no opcode for values of this kind.
    #[error("protocol {} cannot hold {kind}; use protocol {} or later", .protocol.number(), .needed.number())]
    NotInProtocol {
        /// The kind.
        kind: Kind,
        /// The protocol asked for.
        protocol: Protocol,
        /// The first protocol that can.
        needed: Protocol,
    },
    /// A str, bytes object or int is longer than the protocol can state.
    #[error("a {kind} of {bytes} bytes is too long for protocol {}", .protocol.number())]
    TooLong {
        /// The kind.
        kind: Kind,
        /// Its size in bytes.
        bytes: usize,
        /// The protocol asked for.
        protocol: Protocol,
    },
    /// A map has a key of a kind that cannot be a key of a dict.
    #[error("a {0} cannot be a key of a dict")]
    Unhashable(Kind),
    /// The document would hold more than 2³² objects or bytes, or a key is nested too deeply.
    #[error("the value is too large for a document")]
    TooLarge,
    /// A `Serialize` implementation failed, or broke serde's contract.
    #[error("{0}")]
    Custom(String),
}

impl serde::ser::Error for EncodeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}

/// Items between MARK and APPENDS or SETITEMS, as in CPython: it bounds the reader's stack.
pub(super) const BATCH: usize = 1000;

/// Writes opcodes. Protocol 4 and later are written without frames, which readers do not need: all
/// of the stream is in memory on both sides.
#[derive(Debug)]
pub(super) struct Writer {
    out: Vec<u8>,
    protocol: Protocol,
    memo: u32,
}

impl Writer {
    pub(super) fn new(protocol: Protocol) -> Self {
        let mut writer = Self {
            out: Vec::new(),
            protocol,
            memo: 0,
        };
        writer.op(Opcode::PROTO);
        writer.out.push(protocol.number());
        writer
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.op(Opcode::STOP);
        self.out
    }

    pub(super) fn op(&mut self, opcode: Opcode) {
        self.out.push(opcode.byte());
    }

    pub(super) fn none(&mut self) {
        self.op(Opcode::NONE);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.op(if value {
            Opcode::NEWTRUE
        } else {
            Opcode::NEWFALSE
        });
    }

    pub(super) fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.op(Opcode::BININT1);
            self.out.push(byte);
        } else if let Ok(short) = u16::try_from(value) {
            self.op(Opcode::BININT2);
            self.out.extend(short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(value) {
            self.op(Opcode::BININT);
            self.out.extend(word.to_le_bytes());
        } else {
            self.long1(&value.to_le_bytes());
        }
    }

    pub(super) fn wide_int(&mut self, value: i128) {
        match i64::try_from(value) {
            Ok(small) => self.int(small),
            Err(_) => self.long1(&value.to_le_bytes()),
        }
    }

    /// Writes a small LONG1 from two's complement, without needless bytes at its end.
    fn long1(&mut self, bytes: &[u8]) {
        let mut len = bytes.len();
        while len > 1 {
            let (last, below) = (bytes[len - 1], bytes[len - 2]);
            let sign_only = (last == 0 && below & 0x80 == 0) || (last == 0xff && below & 0x80 != 0);
            if !sign_only {
                break;
            }
            len -= 1;
        }
        self.op(Opcode::LONG1);
        // Callers pass at most 17 bytes.
        self.out.push(len as u8);
        self.out.extend_from_slice(&bytes[..len]);
    }

    pub(super) fn big_int(&mut self, value: &BigInt) -> Result<(), EncodeError> {
        let bytes = value.to_signed_bytes_le();
        if let Ok(len) = u8::try_from(bytes.len()) {
            self.op(Opcode::LONG1);
            self.out.push(len);
        } else {
            let len =
                i32::try_from(bytes.len()).map_err(|_| self.too_long(Kind::Int, bytes.len()))?;
            self.op(Opcode::LONG4);
            self.out.extend(len.to_le_bytes());
        }
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    pub(super) fn float(&mut self, value: f64) {
        self.op(Opcode::BINFLOAT);
        self.out.extend(value.to_be_bytes());
    }

    /// Writes a str, given as generalised UTF-8.
    pub(super) fn str(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        match u8::try_from(value.len()) {
            Ok(len) if self.protocol >= Protocol::V4 => {
                self.op(Opcode::SHORT_BINUNICODE);
                self.out.push(len);
            }
            _ => self.sized(
                Kind::Str,
                Opcode::BINUNICODE,
                Opcode::BINUNICODE8,
                value.len(),
            )?,
        }
        self.out.extend_from_slice(value);
        Ok(())
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        self.needs(Kind::Bytes, Protocol::V3)?;
        match u8::try_from(value.len()) {
            Ok(len) => {
                self.op(Opcode::SHORT_BINBYTES);
                self.out.push(len);
            }
            Err(_) => self.sized(
                Kind::Bytes,
                Opcode::BINBYTES,
                Opcode::BINBYTES8,
                value.len(),
            )?,
        }
        self.content(value);
        Ok(())
    }

    pub(super) fn bytearray(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        self.needs(Kind::Bytearray, Protocol::V5)?;
        self.op(Opcode::BYTEARRAY8);
        self.out.extend((value.len() as u64).to_le_bytes());
        self.content(value);
        Ok(())
    }

    /// Writes the opcode and size of a value of more than 255 bytes.
    fn sized(
        &mut self,
        kind: Kind,
        short: Opcode,
        long: Opcode,
        len: usize,
    ) -> Result<(), EncodeError> {
        match u32::try_from(len) {
            Ok(size) => {
                self.op(short);
                self.out.extend(size.to_le_bytes());
            }
            Err(_) if self.protocol >= Protocol::V4 => {
                self.op(long);
                self.out.extend((len as u64).to_le_bytes());
            }
            Err(_) => return Err(self.too_long(kind, len)),
        }
        Ok(())
    }

    fn content(&mut self, bytes: &[u8]) {
        // Room for what usually follows, so that a large buffer is not moved for the last opcode.
        self.out.reserve(bytes.len() + 64);
        self.out.extend_from_slice(bytes);
    }

    fn too_long(&self, kind: Kind, bytes: usize) -> EncodeError {
        EncodeError::TooLong {
            kind,
            bytes,
            protocol: self.protocol,
        }
    }

    /// Makes sure that the protocol has opcodes for `kind`.
    pub(super) fn needs(&self, kind: Kind, needed: Protocol) -> Result<(), EncodeError> {
        if self.protocol < needed {
            return Err(EncodeError::NotInProtocol {
                kind,
                protocol: self.protocol,
                needed,
            });
        }
        Ok(())
    }

    /// Writes a class or function.
    pub(super) fn global(&mut self, module: &[u8], qualname: &[u8]) -> Result<(), EncodeError> {
        if self.protocol >= Protocol::V4 {
            self.str(module)?;
            self.str(qualname)?;
            self.op(Opcode::STACK_GLOBAL);
            return Ok(());
        }
        // Lines of text; and readers of these protocols do not take dotted names apart.
        let is_line = |name: &[u8]| name.is_ascii() && !name.contains(&b'\n');
        if !is_line(module) || !is_line(qualname) || qualname.contains(&b'.') {
            self.needs(Kind::Global, Protocol::V4)?;
        }
        self.op(Opcode::GLOBAL);
        for line in [module, qualname] {
            self.out.extend_from_slice(line);
            self.out.push(b'\n');
        }
        Ok(())
    }

    /// Writes a code of the extension registry.
    pub(super) fn extension(&mut self, code: i64) {
        match (u8::try_from(code), u16::try_from(code)) {
            (Ok(code), _) => {
                self.op(Opcode::EXT1);
                self.out.push(code);
            }
            (_, Ok(code)) => {
                self.op(Opcode::EXT2);
                self.out.extend(code.to_le_bytes());
            }
            _ => {
                self.op(Opcode::EXT4);
                // Codes are 32 bits wide in a stream.
                self.out.extend((code as i32).to_le_bytes());
            }
        }
    }

    /// Ends a tuple of `len` items; those of four and more began with MARK.
    pub(super) fn end_tuple(&mut self, len: usize) {
        self.op(match len {
            0 => Opcode::EMPTY_TUPLE,
            1 => Opcode::TUPLE1,
            2 => Opcode::TUPLE2,
            3 => Opcode::TUPLE3,
            _ => Opcode::TUPLE,
        });
    }

    /// Begins a tuple of `len` items.
    pub(super) fn begin_tuple(&mut self, len: usize) {
        if len > 3 {
            self.op(Opcode::MARK);
        }
    }

    /// Stores the top of the stack in the memo and says under which index.
    pub(super) fn memoize(&mut self) -> u32 {
        let index = self.memo;
        self.memo += 1;
        if self.protocol >= Protocol::V4 {
            self.op(Opcode::MEMOIZE);
        } else if let Ok(byte) = u8::try_from(index) {
            self.op(Opcode::BINPUT);
            self.out.push(byte);
        } else {
            self.op(Opcode::LONG_BINPUT);
            self.out.extend(index.to_le_bytes());
        }
        index
    }

    /// Pushes what was stored under `index`.
    pub(super) fn recall(&mut self, index: u32) {
        if let Ok(byte) = u8::try_from(index) {
            self.op(Opcode::BINGET);
            self.out.push(byte);
        } else {
            self.op(Opcode::LONG_BINGET);
            self.out.extend(index.to_le_bytes());
        }
    }
}
