//! The machine that carries out a pickle: one loop, one reader, one stack of object numbers.

use std::borrow::Cow;

use num_bigint::BigInt;

use super::arena::{Arena, Bytes, BytesFlags, Full, Node, NodeId, Span};
use super::error::{DecodeError, DecodeErrorKind, Malformed, TextRule, Unsupported};
use super::keys::{Budget, KeyError, Keys, Position};
use super::limits::{LimitKind, Limits};
use super::memo::Memo;
use super::opcode::Opcode;
use super::policy::Policy;
use super::text::{self, IntText};
use super::value::{Document, Kind, Text};

/// Decodes the first pickle in `input`.
pub(super) fn run<'a>(
    policy: &Policy,
    limits: &Limits,
    input: &'a [u8],
) -> Result<Document<'a>, DecodeError> {
    if input.len() as u64 > limits.input_bytes {
        let kind = DecodeErrorKind::Limit {
            limit: LimitKind::InputBytes,
            allowed: limits.input_bytes,
            value: input.len() as u64,
        };
        return Err(DecodeError::new(kind, 0, None));
    }
    let mut machine = Machine::new(policy, limits, input);
    loop {
        let at = machine.at;
        let Some(byte) = input.get(at) else {
            return Err(DecodeError::new(Malformed::NoStop.into(), at, None));
        };
        let opcode = Opcode::from_byte(*byte);
        match machine.step(opcode) {
            Ok(None) => {}
            Ok(Some(root)) => {
                machine.arena.shrink();
                return Ok(Document::new(machine.arena, root));
            }
            Err(kind) => return Err(DecodeError::new(kind, at, Some(opcode))),
        }
    }
}

impl From<Malformed> for DecodeErrorKind {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<TextRule> for DecodeErrorKind {
    fn from(rule: TextRule) -> Self {
        Self::Malformed(Malformed::Text(rule))
    }
}

type Step<T> = Result<T, DecodeErrorKind>;

// The places, in `Machine::shared`, of objects that are made once a stream and then shared, since
// their identity has no meaning.
const SHARED_NONE: usize = 0;
const SHARED_FALSE: usize = 1;
const SHARED_TRUE: usize = 2;
const SHARED_EMPTY_TUPLE: usize = 3;
const SHARED_INTS: usize = 4;

struct Machine<'p, 'a> {
    policy: &'p Policy,
    limits: &'p Limits,
    input: &'a [u8],
    /// The next byte to read.
    at: usize,
    /// Where the argument of the current opcode must have ended.
    end: usize,
    /// Where the current frame ends; at or before `at` if there is none.
    frame_end: usize,
    arena: Arena<'a>,
    stack: Vec<NodeId>,
    /// Stack heights at which marks are open.
    marks: Vec<u32>,
    /// The last of `marks`, or 0: operands below it are out of reach.
    fence: usize,
    memo: Memo,
    keys: Keys,
    work_allowed: u64,
    big_int_bytes: u64,
    shared: [Option<NodeId>; SHARED_INTS + 256],
}

impl<'p, 'a> Machine<'p, 'a> {
    fn new(policy: &'p Policy, limits: &'p Limits, input: &'a [u8]) -> Self {
        let work_allowed = limits.work_allowed(input.len());
        let depth = usize::try_from(limits.key_depth).unwrap_or(usize::MAX);
        Self {
            policy,
            limits,
            input,
            at: 0,
            end: input.len(),
            frame_end: 0,
            arena: Arena::new(Cow::Borrowed(input)),
            stack: Vec::new(),
            marks: Vec::new(),
            fence: 0,
            memo: Memo::default(),
            keys: Keys::new(Budget {
                work: work_allowed,
                depth,
            }),
            work_allowed,
            big_int_bytes: 0,
            shared: [None; SHARED_INTS + 256],
        }
    }

    /// Carries out the opcode at `at`. STOP gives the value.
    fn step(&mut self, opcode: Opcode) -> Step<Option<NodeId>> {
        // An opcode and its argument lie in one frame, or both outside of any.
        self.end = if self.at < self.frame_end {
            self.frame_end
        } else {
            self.input.len()
        };
        self.at += 1;
        match opcode {
            Opcode::STOP => return self.pop().map(Some),
            Opcode::PROTO => {
                let protocol = self.u8()?;
                if protocol > 5 {
                    return Err(Malformed::Protocol(protocol).into());
                }
            }
            Opcode::FRAME => self.frame()?,

            Opcode::NONE => self.push_shared(SHARED_NONE, Node::None)?,
            Opcode::NEWFALSE => self.push_shared(SHARED_FALSE, Node::Bool(false))?,
            Opcode::NEWTRUE => self.push_shared(SHARED_TRUE, Node::Bool(true))?,
            Opcode::INT => self.int_text()?,
            Opcode::LONG => self.long_text()?,
            Opcode::BININT => {
                let value = i32::from_le_bytes(self.array()?);
                self.push_int(i64::from(value))?;
            }
            Opcode::BININT1 => {
                let value = self.u8()?;
                self.push_int(i64::from(value))?;
            }
            Opcode::BININT2 => {
                let value = u16::from_le_bytes(self.array()?);
                self.push_int(i64::from(value))?;
            }
            Opcode::LONG1 => {
                let len = self.u8()?;
                self.long(usize::from(len))?;
            }
            Opcode::LONG4 => {
                let len = self.i32_size()?;
                self.long(len)?;
            }
            Opcode::FLOAT => {
                let value = text::float(self.line()?)?;
                self.push(Node::Float(value))?;
            }
            Opcode::BINFLOAT => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Node::Float(value))?;
            }

            Opcode::SHORT_BINUNICODE => {
                let len = self.u8()?;
                self.str(usize::from(len))?;
            }
            Opcode::BINUNICODE => {
                let len = self.u32_size()?;
                self.str(len)?;
            }
            Opcode::BINUNICODE8 => {
                let len = self.u64_size()?;
                self.str(len)?;
            }
            Opcode::UNICODE => {
                let (bytes, surrogates) = text::raw_unicode_escape(self.line()?)?;
                self.push_owned_str(&bytes, surrogates)?;
            }
            Opcode::STRING => {
                let bytes = text::quoted(self.line()?)?;
                if !bytes.is_ascii() {
                    return Err(Malformed::NotAscii.into());
                }
                self.push_owned_str(&bytes, false)?;
            }
            Opcode::SHORT_BINSTRING => {
                let len = self.u8()?;
                self.ascii(usize::from(len))?;
            }
            Opcode::BINSTRING => {
                let len = self.i32_size()?;
                self.ascii(len)?;
            }

            Opcode::SHORT_BINBYTES => {
                let len = self.u8()?;
                self.bytes(usize::from(len), Node::Bytes)?;
            }
            Opcode::BINBYTES => {
                let len = self.u32_size()?;
                self.bytes(len, Node::Bytes)?;
            }
            Opcode::BINBYTES8 => {
                let len = self.u64_size()?;
                self.bytes(len, Node::Bytes)?;
            }
            Opcode::BYTEARRAY8 => {
                let len = self.u64_size()?;
                self.bytes(len, Node::Bytearray)?;
            }
            Opcode::NEXT_BUFFER => {
                return Err(DecodeErrorKind::Unsupported(Unsupported::OutOfBandBuffer));
            }
            Opcode::READONLY_BUFFER => match self.arena.kind(self.top()?) {
                // Bytes are read-only already.
                Kind::Bytes => {}
                Kind::Bytearray => {
                    return Err(DecodeErrorKind::Unsupported(Unsupported::ReadOnlyBytearray));
                }
                found => {
                    return Err(Malformed::Operand {
                        expected: "bytes",
                        found,
                    }
                    .into());
                }
            },

            Opcode::MARK => {
                self.fence = self.stack.len();
                // As many stack entries as input bytes at most, hence within 32 bits.
                self.marks.push(self.fence as u32);
            }
            Opcode::POP => {
                if self.stack.len() > self.fence {
                    self.stack.pop();
                } else if self.marks.is_empty() {
                    return Err(Malformed::StackUnderflow.into());
                } else {
                    self.close_mark()?;
                }
            }
            Opcode::POP_MARK => {
                let from = self.close_mark()?;
                self.stack.truncate(from);
            }
            Opcode::DUP => {
                let top = self.top()?;
                self.stack.push(top);
            }

            Opcode::EMPTY_TUPLE => {
                self.push_shared(SHARED_EMPTY_TUPLE, Node::Tuple(Span::default()))?
            }
            Opcode::TUPLE1 => self.tuple(1)?,
            Opcode::TUPLE2 => self.tuple(2)?,
            Opcode::TUPLE3 => self.tuple(3)?,
            Opcode::TUPLE => {
                let from = self.close_mark()?;
                self.tuple(self.stack.len() - from)?;
            }
            Opcode::EMPTY_LIST => self.push(Node::List(Span::default()))?,
            Opcode::LIST => {
                let from = self.close_mark()?;
                let span = self
                    .arena
                    .new_span(&self.stack[from..])
                    .map_err(|full| self.full(full))?;
                self.stack.truncate(from);
                self.push(Node::List(span))?;
            }
            Opcode::APPEND => self.append(self.stack.len().saturating_sub(1))?,
            Opcode::APPENDS => {
                let from = self.close_mark()?;
                self.append(from)?;
            }
            Opcode::EMPTY_DICT => self.push(Node::Dict(Span::default()))?,
            Opcode::DICT => {
                let from = self.close_mark()?;
                let dict = self.make(Node::Dict(Span::default()))?;
                self.set_items(dict, from)?;
                self.stack.push(dict);
            }
            Opcode::SETITEM => {
                self.need(3)?;
                let from = self.stack.len() - 2;
                let dict = self.container(from, Kind::Dict)?;
                self.set_items(dict, from)?;
            }
            Opcode::SETITEMS => {
                let from = self.close_mark()?;
                let dict = self.container(from, Kind::Dict)?;
                self.set_items(dict, from)?;
            }
            Opcode::EMPTY_SET => self.push(Node::Set(Span::default()))?,
            Opcode::ADDITEMS => {
                let from = self.close_mark()?;
                let set = self.container(from, Kind::Set)?;
                self.add_items(set, from)?;
            }
            Opcode::FROZENSET => {
                let from = self.close_mark()?;
                let set = self.make(Node::Frozenset(Span::default()))?;
                self.add_items(set, from)?;
                self.stack.push(set);
            }

            Opcode::PUT => {
                let index = text::memo_index(self.line()?)?;
                self.store(index)?;
            }
            Opcode::BINPUT => {
                let index = self.u8()?;
                self.store(u64::from(index))?;
            }
            Opcode::LONG_BINPUT => {
                let index = u32::from_le_bytes(self.array()?);
                self.store(u64::from(index))?;
            }
            Opcode::MEMOIZE => self.store(self.memo.len())?,
            Opcode::GET => {
                let index = text::memo_index(self.line()?)?;
                self.load(index)?;
            }
            Opcode::BINGET => {
                let index = self.u8()?;
                self.load(u64::from(index))?;
            }
            Opcode::LONG_BINGET => {
                let index = u32::from_le_bytes(self.array()?);
                self.load(u64::from(index))?;
            }

            Opcode::GLOBAL | Opcode::INST => {
                let module = self.line()?;
                let qualname = self.line()?;
                return Err(self.global(module, qualname));
            }
            Opcode::STACK_GLOBAL => return Err(self.stack_global()?),
            Opcode::EXT1 => {
                let code = i64::from(self.u8()?);
                return Err(DecodeErrorKind::RefusedExtension { code });
            }
            Opcode::EXT2 => {
                let code = i64::from(u16::from_le_bytes(self.array()?));
                return Err(DecodeErrorKind::RefusedExtension { code });
            }
            Opcode::EXT4 => {
                let code = i64::from(i32::from_le_bytes(self.array()?));
                return Err(DecodeErrorKind::RefusedExtension { code });
            }
            Opcode::PERSID => {
                let id = self.line()?.escape_ascii().to_string();
                return Err(DecodeErrorKind::RefusedPersistentId { id });
            }
            Opcode::BINPERSID => {
                let id = self.pop()?;
                let id = match self.arena.node(id) {
                    Node::Str(bytes) => name(self.arena.bytes(bytes)),
                    Node::Int(id) => id.to_string(),
                    _ => format!("of kind {}", self.arena.kind(id)),
                };
                return Err(DecodeErrorKind::RefusedPersistentId { id });
            }
            // The rest work on a class or on an object made from one. There are none on the stack,
            // since a stream that names one has been refused there.
            Opcode::REDUCE => return Err(self.no_class(2, "a callable")?),
            Opcode::NEWOBJ => return Err(self.no_class(2, "a class")?),
            Opcode::NEWOBJ_EX => return Err(self.no_class(3, "a class")?),
            Opcode::BUILD => return Err(self.no_class(2, "an object")?),
            Opcode::OBJ => {
                let from = self.close_mark()?;
                let Some(first) = self.stack.get(from) else {
                    return Err(Malformed::StackUnderflow.into());
                };
                let found = self.arena.kind(*first);
                return Err(Malformed::Operand {
                    expected: "a class",
                    found,
                }
                .into());
            }
            _ => return Err(Malformed::UnknownOpcode.into()),
        }
        Ok(None)
    }

    // Reading.

    /// The next `len` bytes of the argument.
    fn take(&mut self, len: usize) -> Step<&'a [u8]> {
        let available = self.end - self.at;
        if len > available {
            return Err(self.cut(len as u64));
        }
        let bytes = &self.input[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    fn cut(&self, needed: u64) -> DecodeErrorKind {
        let available = (self.input.len() - self.at) as u64;
        if needed > available {
            Malformed::Truncated { needed, available }.into()
        } else {
            Malformed::FrameCrossed.into()
        }
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.cut(N as u64))
    }

    fn u8(&mut self) -> Step<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn u32_size(&mut self) -> Step<usize> {
        let size = u32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(u64::from(size)))
    }

    fn u64_size(&mut self) -> Step<usize> {
        let size = u64::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| self.cut(size))
    }

    fn i32_size(&mut self) -> Step<usize> {
        let size = i32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| Malformed::NegativeSize.into())
    }

    /// The text up to the next newline, which is read as well.
    fn line(&mut self) -> Step<&'a [u8]> {
        let rest = &self.input[self.at..];
        let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(Malformed::NoNewline.into());
        };
        if self.at + len >= self.end {
            return Err(Malformed::FrameCrossed.into());
        }
        self.at += len + 1;
        Ok(&rest[..len])
    }

    fn frame(&mut self) -> Step<()> {
        let size = u64::from_le_bytes(self.array()?);
        if self.at < self.frame_end {
            return Err(Malformed::FrameInFrame.into());
        }
        let available = self.input.len() - self.at;
        match usize::try_from(size) {
            Ok(size) if size <= available => {
                self.frame_end = self.at + size;
                Ok(())
            }
            _ => Err(Malformed::FrameTooLong {
                size,
                available: available as u64,
            }
            .into()),
        }
    }

    // The stack.

    fn top(&self) -> Step<NodeId> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.fence => Ok(*top),
            _ => Err(Malformed::StackUnderflow.into()),
        }
    }

    fn pop(&mut self) -> Step<NodeId> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Makes sure that `count` operands are within reach.
    fn need(&self, count: usize) -> Step<()> {
        if self.stack.len() - self.fence < count {
            Err(Malformed::StackUnderflow.into())
        } else {
            Ok(())
        }
    }

    /// Closes the last mark and says where its operands begin.
    fn close_mark(&mut self) -> Step<usize> {
        let mark = self.marks.pop().ok_or(Malformed::NoMark)?;
        self.fence = self.marks.last().map_or(0, |below| *below as usize);
        Ok(mark as usize)
    }

    /// The container right below the operands that begin at `from`.
    fn container(&self, from: usize, kind: Kind) -> Step<NodeId> {
        if from <= self.fence {
            return Err(Malformed::StackUnderflow.into());
        }
        let id = self.stack[from - 1];
        let found = self.arena.kind(id);
        if found != kind {
            return Err(Malformed::Operand {
                expected: kind.name(),
                found,
            }
            .into());
        }
        Ok(id)
    }

    fn no_class(&self, operands: usize, expected: &'static str) -> Step<DecodeErrorKind> {
        self.need(operands)?;
        let found = self.arena.kind(self.stack[self.stack.len() - operands]);
        Ok(Malformed::Operand { expected, found }.into())
    }

    // Making objects.

    fn full(&self, _: Full) -> DecodeErrorKind {
        self.over(
            LimitKind::Nodes,
            u64::from(u32::MAX),
            u64::from(u32::MAX) + 1,
        )
    }

    fn over(&self, limit: LimitKind, allowed: u64, value: u64) -> DecodeErrorKind {
        DecodeErrorKind::Limit {
            limit,
            allowed,
            value,
        }
    }

    /// Makes sure that one more object is allowed.
    fn room(&self) -> Step<()> {
        let count = self.arena.nodes.len() as u64;
        if count >= self.limits.nodes {
            return Err(self.over(LimitKind::Nodes, self.limits.nodes, count + 1));
        }
        Ok(())
    }

    fn make(&mut self, node: Node) -> Step<NodeId> {
        self.room()?;
        self.arena.push(node).map_err(|full| self.full(full))
    }

    fn push(&mut self, node: Node) -> Step<()> {
        let id = self.make(node)?;
        self.stack.push(id);
        Ok(())
    }

    fn push_shared(&mut self, place: usize, node: Node) -> Step<()> {
        let id = match self.shared[place] {
            Some(id) => id,
            None => self.make(node)?,
        };
        self.shared[place] = Some(id);
        self.stack.push(id);
        Ok(())
    }

    fn push_int(&mut self, value: i64) -> Step<()> {
        match value {
            0..256 => self.push_shared(SHARED_INTS + value as usize, Node::Int(value)),
            _ => self.push(Node::Int(value)),
        }
    }

    fn push_big_int(&mut self, value: BigInt) -> Step<()> {
        if let Ok(small) = i64::try_from(&value) {
            return self.push_int(small);
        }
        self.big_int_bytes += value.bits().div_ceil(8);
        self.charge_owned(0)?;
        self.room()?;
        let id = self
            .arena
            .push_big_int(value)
            .map_err(|full| self.full(full))?;
        self.stack.push(id);
        Ok(())
    }

    fn charge_owned(&self, more: usize) -> Step<()> {
        let value = self.arena.owned.len() as u64 + self.big_int_bytes + more as u64;
        if value > self.limits.owned_bytes {
            return Err(self.over(LimitKind::OwnedBytes, self.limits.owned_bytes, value));
        }
        Ok(())
    }

    fn int_text(&mut self) -> Step<()> {
        let line = self.line()?;
        match line {
            b"00" => self.push_shared(SHARED_FALSE, Node::Bool(false)),
            b"01" => self.push_shared(SHARED_TRUE, Node::Bool(true)),
            // The reference takes these two characters for booleans, against what they say.
            b"-0" | b"+0" | b"+1" => Err(TextRule::Integer.into()),
            _ => self.push_int_text(line),
        }
    }

    fn long_text(&mut self) -> Step<()> {
        let line = self.line()?;
        self.push_int_text(line.strip_suffix(b"L").unwrap_or(line))
    }

    fn push_int_text(&mut self, line: &[u8]) -> Step<()> {
        match text::int(line, self.limits.integer_digits)? {
            IntText::Small(value) => self.push_int(value),
            IntText::Big(value) => self.push_big_int(value),
            IntText::TooLong(digits) => {
                Err(self.over(LimitKind::IntegerDigits, self.limits.integer_digits, digits))
            }
        }
    }

    fn long(&mut self, len: usize) -> Step<()> {
        let bytes = self.take(len)?;
        if len <= 8 {
            let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
            let mut word = [if negative { 0xff } else { 0 }; 8];
            word[..len].copy_from_slice(bytes);
            return self.push_int(i64::from_le_bytes(word));
        }
        self.charge_owned(len)?;
        self.push_big_int(BigInt::from_signed_bytes_le(bytes))
    }

    /// Where the next `len` bytes of the argument lie in the input.
    fn borrow(&mut self, len: usize) -> Step<(Bytes, &'a [u8])> {
        let start = self.at;
        let bytes = self.take(len)?;
        // The input is below 4 GiB, so both fit.
        let flags = BytesFlags {
            owned: false,
            surrogates: false,
        };
        Ok((
            Bytes {
                start: start as u32,
                len: len as u32,
                flags,
            },
            bytes,
        ))
    }

    fn bytes(&mut self, len: usize, node: fn(Bytes) -> Node) -> Step<()> {
        let (bytes, _) = self.borrow(len)?;
        self.push(node(bytes))
    }

    fn str(&mut self, len: usize) -> Step<()> {
        let (mut bytes, content) = self.borrow(len)?;
        bytes.flags.surrogates = text::generalised_utf8(content).ok_or(Malformed::Utf8)?;
        self.push(Node::Str(bytes))
    }

    fn ascii(&mut self, len: usize) -> Step<()> {
        let (bytes, content) = self.borrow(len)?;
        if !content.is_ascii() {
            return Err(Malformed::NotAscii.into());
        }
        self.push(Node::Str(bytes))
    }

    fn push_owned_str(&mut self, content: &[u8], surrogates: bool) -> Step<()> {
        self.charge_owned(content.len())?;
        let bytes = self
            .arena
            .own(content, surrogates)
            .map_err(|full| self.full(full))?;
        self.push(Node::Str(bytes))
    }

    // Containers.

    fn tuple(&mut self, count: usize) -> Step<()> {
        if count == 0 {
            return self.push_shared(SHARED_EMPTY_TUPLE, Node::Tuple(Span::default()));
        }
        self.need(count)?;
        let from = self.stack.len() - count;
        let span = self
            .arena
            .new_span(&self.stack[from..])
            .map_err(|full| self.full(full))?;
        self.stack.truncate(from);
        self.push(Node::Tuple(span))
    }

    /// Appends the operands that begin at `from` to the list right below them.
    fn append(&mut self, from: usize) -> Step<()> {
        let list = self.container(from, Kind::List)?;
        self.arena
            .extend(list, &self.stack[from..])
            .map_err(|full| self.full(full))?;
        self.stack.truncate(from);
        Ok(())
    }

    /// Sets the keys and values that begin at `from`: the first key stays, the last value wins.
    fn set_items(&mut self, dict: NodeId, from: usize) -> Step<()> {
        if !(self.stack.len() - from).is_multiple_of(2) {
            return Err(Malformed::OddOperands.into());
        }
        for at in (from..self.stack.len()).step_by(2) {
            let (key, value) = (self.stack[at], self.stack[at + 1]);
            match self
                .keys
                .position(&self.arena, dict, 2, key)
                .map_err(|error| self.key_error(error))?
            {
                Position::At(entry) => {
                    if let Node::Dict(span) = self.arena.node(dict) {
                        self.arena.items[span.start as usize + 2 * entry + 1] = value;
                    }
                }
                Position::New => self
                    .arena
                    .extend(dict, &[key, value])
                    .map_err(|full| self.full(full))?,
            }
        }
        self.stack.truncate(from);
        Ok(())
    }

    fn add_items(&mut self, set: NodeId, from: usize) -> Step<()> {
        for at in from..self.stack.len() {
            let element = self.stack[at];
            match self
                .keys
                .position(&self.arena, set, 1, element)
                .map_err(|error| self.key_error(error))?
            {
                Position::At(_) => {}
                Position::New => self
                    .arena
                    .extend(set, &[element])
                    .map_err(|full| self.full(full))?,
            }
        }
        self.stack.truncate(from);
        Ok(())
    }

    fn key_error(&self, error: KeyError) -> DecodeErrorKind {
        match error {
            KeyError::Unhashable(kind) => Malformed::Unhashable(kind).into(),
            KeyError::TooDeep => self.over(
                LimitKind::KeyDepth,
                self.limits.key_depth,
                self.limits.key_depth.saturating_add(1),
            ),
            KeyError::WorkSpent => self.over(
                LimitKind::WorkSteps,
                self.work_allowed,
                self.work_allowed.saturating_add(1),
            ),
        }
    }

    // The memo.

    fn store(&mut self, index: u64) -> Step<()> {
        let top = self.top()?;
        if self.memo.len() >= self.limits.memo_entries && self.memo.load(index).is_none() {
            return Err(self.over(
                LimitKind::MemoEntries,
                self.limits.memo_entries,
                self.memo.len() + 1,
            ));
        }
        self.memo.store(index, top);
        Ok(())
    }

    fn load(&mut self, index: u64) -> Step<()> {
        let id = self.memo.load(index).ok_or(Malformed::MemoMissing(index))?;
        self.stack.push(id);
        Ok(())
    }

    // Globals.

    fn global(&self, module: &[u8], qualname: &[u8]) -> DecodeErrorKind {
        debug_assert!(
            !self.policy.admits(module, qualname),
            "no policy admits a global yet"
        );
        DecodeErrorKind::RefusedGlobal {
            module: name(module),
            qualname: name(qualname),
        }
    }

    fn stack_global(&mut self) -> Step<DecodeErrorKind> {
        self.need(2)?;
        let [module, qualname] =
            [self.stack.len() - 2, self.stack.len() - 1].map(|at| self.stack[at]);
        let text = |id| match self.arena.node(id) {
            Node::Str(bytes) => Ok(self.arena.bytes(bytes)),
            _ => Err(Malformed::Operand {
                expected: Kind::Str.name(),
                found: self.arena.kind(id),
            }),
        };
        Ok(self.global(text(module)?, text(qualname)?))
    }
}

/// A name as it stands in a stream, readable whatever its bytes are.
fn name(bytes: &[u8]) -> String {
    match text::generalised_utf8(bytes) {
        Some(surrogates) => Text::new(bytes, surrogates)
            .code_points()
            .map(|point| {
                char::from_u32(point).map_or_else(|| format!("\\u{point:04x}"), String::from)
            })
            .collect(),
        None => bytes.escape_ascii().to_string(),
    }
}
