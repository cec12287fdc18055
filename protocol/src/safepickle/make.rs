//! The part of the machine that makes and fills objects, within the limits.

use num_bigint::BigInt;

use super::arena::{Bytes, BytesFlags, Full, Node, NodeId, Span};
use super::error::{DecodeErrorKind, Malformed, TextRule};
use super::keys::{KeyError, Position};
use super::limits::LimitKind;
use super::machine::{Machine, Step};
use super::object::Object;
use super::text::{self, IntText};

// The places, in `Machine::shared`, of objects that are made once a stream and then shared, since
// their identity has no meaning.
pub(super) const SHARED_NONE: usize = 0;
pub(super) const SHARED_FALSE: usize = 1;
pub(super) const SHARED_TRUE: usize = 2;
pub(super) const SHARED_EMPTY_TUPLE: usize = 3;
/// Ints from 0 to 255 begin here.
const SHARED_INTS: usize = 4;
pub(super) const SHARED_COUNT: usize = SHARED_INTS + 256;

/// Steps for the copy of a reference to an object: four bytes of memory, and as many in reserve.
const COPY: u64 = 4;

impl<'a> Machine<'_, 'a> {
    #[cold]
    pub(super) fn full(&self, _: Full) -> DecodeErrorKind {
        self.over(
            LimitKind::Nodes,
            u64::from(u32::MAX),
            u64::from(u32::MAX) + 1,
        )
    }

    #[cold]
    pub(super) fn over(&self, limit: LimitKind, allowed: u64, value: u64) -> DecodeErrorKind {
        DecodeErrorKind::Limit {
            limit,
            allowed,
            value,
        }
    }

    /// Makes sure that one more object is allowed.
    #[inline(always)]
    pub(super) fn room(&self) -> Step<()> {
        let count = self.arena.nodes.len() as u64;
        if count >= self.limits.nodes {
            return Err(self.over(LimitKind::Nodes, self.limits.nodes, count + 1));
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn make(&mut self, node: Node) -> Step<NodeId> {
        self.room()?;
        if self.arena.nodes.len() == self.arena.nodes.capacity() {
            self.grow();
        }
        self.arena.push(node).map_err(|full| self.full(full))
    }

    /// Reserves for as many objects as there will be if the stream goes on as it began.
    ///
    /// At least as many again as there are, and at most three times as many, unless what is reserved
    /// is small beside the input.
    #[cold]
    fn grow(&mut self) {
        if self.arena.nodes.is_empty() {
            let few = (self.arena.input.len() / 4).clamp(4, 64);
            self.arena.nodes.reserve_exact(few);
            self.stack.reserve(few.min(16));
            return;
        }
        let (len, read, input) = (
            self.arena.nodes.len(),
            self.reader.at(),
            self.arena.input.len(),
        );
        // Below 2^64: both are below 2^32.
        let expected = (len as u64 * input as u64) / (read as u64).max(1);
        let expected = usize::try_from(expected + expected / 32).unwrap_or(usize::MAX);
        let allowed = usize::try_from(self.limits.nodes).unwrap_or(usize::MAX);
        let most = (4 * len).max(input / 4);
        // There is room for one, hence this is above `len`.
        let wanted = expected.min(most).max(2 * len).min(allowed);
        self.arena.nodes.reserve_exact(wanted - len);
        // The others grow in step. Counts are below 2^32, so their product fits.
        let more = |now: usize| {
            let more = now as u64 * (wanted - len) as u64 / len as u64;
            usize::try_from(more).unwrap_or(0)
        };
        let items = more(self.arena.items.len());
        self.arena.items.reserve_exact(items);
        self.memo.reserve(more(self.memo.len() as usize));
    }

    #[inline(always)]
    pub(super) fn push(&mut self, node: Node) -> Step<()> {
        let id = self.make(node)?;
        self.stack.push(id);
        Ok(())
    }

    #[inline]
    pub(super) fn make_shared(&mut self, place: usize, node: Node) -> Step<NodeId> {
        if let Some(id) = self.shared[place] {
            return Ok(id);
        }
        let id = self.make(node)?;
        self.shared[place] = Some(id);
        Ok(id)
    }

    #[inline]
    pub(super) fn push_shared(&mut self, place: usize, node: Node) -> Step<()> {
        let id = self.make_shared(place, node)?;
        self.stack.push(id);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn push_int(&mut self, value: i64) -> Step<()> {
        match value {
            0..256 => self.push_shared(SHARED_INTS + value as usize, Node::Int(value)),
            _ => self.push(Node::Int(value)),
        }
    }

    pub(super) fn push_big_int(&mut self, value: BigInt) -> Step<()> {
        if let Ok(small) = i64::try_from(&value) {
            return self.push_int(small);
        }
        let id = self.make_big_int(value)?;
        self.stack.push(id);
        Ok(())
    }

    /// An int of any size, not on the stack.
    pub(super) fn make_big_int(&mut self, value: BigInt) -> Step<NodeId> {
        self.charge_big_int(&value)?;
        self.room()?;
        self.arena
            .push_big_int(value)
            .map_err(|full| self.full(full))
    }

    pub(super) fn charge_big_int(&mut self, value: &BigInt) -> Step<()> {
        self.big_int_bytes += value.bits().div_ceil(8);
        self.charge_owned(0)
    }

    pub(super) fn charge_owned(&self, more: usize) -> Step<()> {
        let value = self.arena.owned.len() as u64 + self.big_int_bytes + more as u64;
        if value > self.limits.owned_bytes {
            return Err(self.over(LimitKind::OwnedBytes, self.limits.owned_bytes, value));
        }
        Ok(())
    }

    pub(super) fn int_text(&mut self) -> Step<()> {
        let line = self.reader.line()?;
        match line {
            b"00" => self.push_shared(SHARED_FALSE, Node::Bool(false)),
            b"01" => self.push_shared(SHARED_TRUE, Node::Bool(true)),
            // The reference takes these two characters for booleans, against what they say.
            b"-0" | b"+0" | b"+1" => Err(TextRule::Integer.into()),
            _ => self.push_int_text(line),
        }
    }

    pub(super) fn long_text(&mut self) -> Step<()> {
        let line = self.reader.line()?;
        self.push_int_text(line.strip_suffix(b"L").unwrap_or(line))
    }

    pub(super) fn push_int_text(&mut self, line: &[u8]) -> Step<()> {
        match text::int(line, self.limits.integer_digits)? {
            IntText::Small(value) => self.push_int(value),
            IntText::Big(value) => self.push_big_int(value),
            IntText::TooLong(digits) => {
                Err(self.over(LimitKind::IntegerDigits, self.limits.integer_digits, digits))
            }
        }
    }

    pub(super) fn long(&mut self, len: usize) -> Step<()> {
        let bytes = self.reader.take(len)?;
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
    pub(super) fn borrow(&mut self, len: usize) -> Step<(Bytes, &'a [u8])> {
        let start = self.reader.at();
        let bytes = self.reader.take(len)?;
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

    pub(super) fn bytes(&mut self, len: usize, node: fn(Bytes) -> Node) -> Step<()> {
        let (bytes, _) = self.borrow(len)?;
        self.push(node(bytes))
    }

    pub(super) fn str(&mut self, len: usize) -> Step<()> {
        let (mut bytes, content) = self.borrow(len)?;
        bytes.flags.surrogates = text::generalised_utf8(content).ok_or(Malformed::Utf8)?;
        self.push(Node::Str(bytes))
    }

    pub(super) fn ascii(&mut self, len: usize) -> Step<()> {
        let (bytes, content) = self.borrow(len)?;
        if !content.is_ascii() {
            return Err(Malformed::NotAscii.into());
        }
        self.push(Node::Str(bytes))
    }

    pub(super) fn push_owned_str(&mut self, content: &[u8], surrogates: bool) -> Step<()> {
        let bytes = self.own(content, surrogates)?;
        self.push(Node::Str(bytes))
    }

    // Containers.

    pub(super) fn tuple(&mut self, count: usize) -> Step<()> {
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

    /// Appends the operands that begin at `from` to what lies right below them.
    pub(super) fn append(&mut self, from: usize) -> Step<()> {
        let target = self.below(from)?;
        if matches!(self.arena.node(target), Node::List(_)) {
            self.arena
                .extend(target, &self.stack[from..])
                .map_err(|full| self.full(full))?;
        } else {
            let items = self.stack[from..].to_vec();
            self.append_to(target, &items)?;
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// Sets the keys and values that begin at `from` in what lies right below them.
    pub(super) fn set_items_below(&mut self, from: usize) -> Step<()> {
        let target = self.below(from)?;
        let dict = match self.arena.node(target) {
            Node::Dict(_) => target,
            _ => self.dict_of(target)?,
        };
        self.set_items(dict, from)
    }

    /// Sets the keys and values that begin at `from`.
    pub(super) fn set_items(&mut self, dict: NodeId, from: usize) -> Step<()> {
        if !(self.stack.len() - from).is_multiple_of(2) {
            return Err(Malformed::OddOperands.into());
        }
        let new = &self.stack[from..];
        if self.arena.children(dict).is_empty() && self.keys.distinct(&self.arena, new) {
            self.arena
                .extend(dict, new)
                .map_err(|full| self.full(full))?;
            self.stack.truncate(from);
            return Ok(());
        }
        for at in (from..self.stack.len()).step_by(2) {
            self.set_item(dict, self.stack[at], self.stack[at + 1])?;
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// Sets an entry of a dict: of equal keys the first stays, and the last value wins.
    pub(super) fn set_item(&mut self, dict: NodeId, key: NodeId, value: NodeId) -> Step<()> {
        match self
            .keys
            .position(&self.arena, dict, 2, key)
            .map_err(|error| self.key_error(error))?
        {
            Position::At(entry) => {
                if let Node::Dict(span) = self.arena.node(dict) {
                    self.arena.items[span.start as usize + 2 * entry + 1] = value;
                }
                Ok(())
            }
            Position::New => self.extend(dict, &[key, value]),
        }
    }

    /// Sets in a dict what another holds.
    pub(super) fn update(&mut self, dict: NodeId, from: NodeId) -> Step<()> {
        let entries = self.arena.children(from).to_vec();
        self.charge_copies(entries.len())?;
        for entry in entries.chunks_exact(2) {
            self.set_item(dict, entry[0], entry[1])?;
        }
        Ok(())
    }

    pub(super) fn add_items(&mut self, set: NodeId, from: usize) -> Step<()> {
        for at in from..self.stack.len() {
            self.add_item(set, self.stack[at])?;
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// Adds an element to a set or frozenset: of equal ones the first stays.
    pub(super) fn add_item(&mut self, set: NodeId, element: NodeId) -> Step<()> {
        match self
            .keys
            .position(&self.arena, set, 1, element)
            .map_err(|error| self.key_error(error))?
        {
            Position::At(_) => Ok(()),
            Position::New => self.extend(set, &[element]),
        }
    }

    // What constructors need.

    pub(super) fn extend(&mut self, container: NodeId, items: &[NodeId]) -> Step<()> {
        self.arena
            .extend(container, items)
            .map_err(|full| self.full(full))
    }

    pub(super) fn new_span(&mut self, items: &[NodeId]) -> Step<Span> {
        self.arena.new_span(items).map_err(|full| self.full(full))
    }

    pub(super) fn empty_tuple(&mut self) -> Step<NodeId> {
        self.make_shared(SHARED_EMPTY_TUPLE, Node::Tuple(Span::default()))
    }

    /// Copies bytes into the arena, within the budget for owned bytes.
    pub(super) fn own(&mut self, content: &[u8], surrogates: bool) -> Step<Bytes> {
        self.charge_owned(content.len())?;
        self.arena
            .own(content, surrogates)
            .map_err(|full| self.full(full))
    }

    pub(super) fn make_object(&mut self, object: Object) -> Step<NodeId> {
        self.room()?;
        self.arena
            .push_object(object)
            .map_err(|full| self.full(full))
    }

    /// Takes steps from the work budget.
    pub(super) fn charge(&mut self, steps: u64) -> Step<()> {
        self.keys
            .budget
            .charge(steps)
            .map_err(|error| self.key_error(error))
    }

    /// Takes the steps for copying references to so many objects, which the stream wrote down but once.
    pub(super) fn charge_copies(&mut self, references: usize) -> Step<()> {
        self.charge(COPY * references as u64)
    }

    #[cold]
    pub(super) fn key_error(&self, error: KeyError) -> DecodeErrorKind {
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
}
