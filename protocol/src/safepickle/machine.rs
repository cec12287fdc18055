//! The machine that carries out a pickle: one loop, one reader, one stack of object numbers.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::RandomState;

use super::arena::{Arena, Node, NodeId, Span};
use super::construct::How;
use super::error::{DecodeError, DecodeErrorKind, Malformed, TextRule, Unsupported};
use super::keys::{Budget, Keys};
use super::limits::{LimitKind, Limits};
use super::make::{SHARED_COUNT, SHARED_EMPTY_TUPLE, SHARED_FALSE, SHARED_NONE, SHARED_TRUE};
use super::memo::Memo;
use super::names::name;
use super::opcode::Opcode;
use super::policy::Policy;
use super::reader::Reader;
use super::text;
use super::types::record::Origin;
use super::value::{Document, Kind};

/// Decodes the first pickle in `input`.
pub(super) fn run<'a>(
    policy: &Policy,
    limits: &Limits,
    input: &'a [u8],
) -> Result<Document<'a>, DecodeError> {
    check_size(limits, input)?;
    let mut machine = Machine::new(policy, limits, input, false);
    loop {
        let at = machine.reader.at();
        let opcode = machine.opcode(at)?;
        match machine.step(opcode) {
            Ok(None) => {}
            Ok(Some(root)) => {
                machine.finish(root, at)?;
                return Ok(machine.into_document(root));
            }
            Err(kind) => return Err(DecodeError::new(kind, at, Some(opcode))),
        }
    }
}

/// The same, and tells `observe` what it meets. A loop of its own, since this much more for each opcode
/// would make the other one slow.
pub(super) fn run_observed<'a>(
    policy: &Policy,
    limits: &Limits,
    input: &'a [u8],
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Document<'a>, DecodeError> {
    check_size(limits, input)?;
    let mut machine = Machine::new(policy, limits, input, true);
    loop {
        let at = machine.reader.at();
        let offset = at as u64;
        let opcode = machine.opcode(at)?;
        let step = machine.step(opcode);
        if let Some((module, qualname, admitted)) = machine.named.take() {
            observe(Event::Global {
                offset,
                module: &module,
                qualname: &qualname,
                admitted,
            });
        }
        if let Some(id) = machine.persistent_id.take() {
            observe(Event::PersistentId { offset, id: &id });
        }
        let end = match step {
            Ok(end) => end,
            Err(kind) => return Err(DecodeError::new(kind, at, Some(opcode))),
        };
        observe(Event::Instruction {
            offset,
            opcode,
            argument: &input[at + 1..machine.reader.at()],
        });
        if let Some(root) = end {
            machine.finish(root, at)?;
            return Ok(machine.into_document(root));
        }
    }
}

fn check_size(limits: &Limits, input: &[u8]) -> Result<(), DecodeError> {
    if input.len() as u64 > limits.input_bytes {
        let kind = DecodeErrorKind::Limit {
            limit: LimitKind::InputBytes,
            allowed: limits.input_bytes,
            value: input.len() as u64,
        };
        return Err(DecodeError::new(kind, 0, None));
    }
    Ok(())
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

pub(super) type Step<T> = Result<T, DecodeErrorKind>;

pub(super) struct Machine<'p, 'a> {
    pub(super) policy: &'p Policy,
    pub(super) limits: &'p Limits,
    pub(super) reader: Reader<'a>,
    pub(super) arena: Arena<'a>,
    pub(super) stack: Vec<NodeId>,
    /// Stack heights at which marks are open.
    pub(super) marks: Vec<u32>,
    /// The last of `marks`, or 0: operands below it are out of reach.
    pub(super) fence: usize,
    pub(super) memo: Memo,
    pub(super) keys: Keys,
    pub(super) work_allowed: u64,
    pub(super) big_int_bytes: u64,
    pub(super) shared: [Option<NodeId>; SHARED_COUNT],
    /// Objects that are nothing yet without a state.
    pub(super) unbuilt: BTreeSet<NodeId>,
    /// The objects of names by their hash, so that one class is one object.
    pub(super) globals: HashMap<u64, Vec<NodeId>>,
    pub(super) hasher: RandomState,
    /// Whether what a stream names is to be told.
    pub(super) observed: bool,
    /// What the last opcode named, and whether that is admitted. If observed or refused.
    pub(super) named: Option<(String, String, bool)>,
    /// The persistent id that the last opcode refers to.
    pub(super) persistent_id: Option<String>,
}

/// What an observed decode meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The stream names a class or function. Comes before the instruction that does, and even if it is
    /// refused.
    Global {
        /// Where the instruction starts, in bytes from the start of the input.
        offset: u64,
        /// The module, as in [`DecodeErrorKind::RefusedGlobal`].
        module: &'e str,
        /// The name inside the module.
        qualname: &'e str,
        /// Whether the policy admits it.
        admitted: bool,
    },
    /// The stream refers to an object outside of itself. Comes before the instruction that does, and
    /// even if it is refused.
    PersistentId {
        /// Where the instruction starts.
        offset: u64,
        /// The id, as in [`DecodeErrorKind::RefusedPersistentId`].
        id: &'e str,
    },
    /// An instruction was carried out.
    Instruction {
        /// Where it starts.
        offset: u64,
        /// Its opcode.
        opcode: Opcode,
        /// Its argument as it stands in the stream, sizes and newlines included.
        argument: &'e [u8],
    },
}

impl<'p, 'a> Machine<'p, 'a> {
    #[inline(always)]
    pub(super) fn new(
        policy: &'p Policy,
        limits: &'p Limits,
        input: &'a [u8],
        observed: bool,
    ) -> Self {
        let work_allowed = limits.work_allowed(input.len());
        let depth = usize::try_from(limits.key_depth).unwrap_or(usize::MAX);
        Self {
            policy,
            limits,
            reader: Reader::new(input),
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
            shared: [None; SHARED_COUNT],
            unbuilt: BTreeSet::new(),
            globals: HashMap::new(),
            hasher: RandomState::new(),
            observed,
            named: None,
            persistent_id: None,
        }
    }

    /// The next opcode, which is due at `at`.
    #[inline(always)]
    fn opcode(&mut self, at: usize) -> Result<Opcode, DecodeError> {
        self.reader
            .opcode()
            .ok_or_else(|| DecodeError::new(Malformed::NoStop.into(), at, None))
    }

    /// What is left to do once the STOP at `at` has been carried out.
    fn finish(&mut self, root: NodeId, at: usize) -> Result<(), DecodeError> {
        let end = if self.unbuilt.is_empty() {
            self.check_depth(root)
        } else {
            Err(Malformed::Unbuilt.into())
        };
        end.map_err(|kind| DecodeError::new(kind, at, Some(Opcode::STOP)))?;
        self.arena.shrink();
        Ok(())
    }

    #[inline(always)]
    fn into_document(self, root: NodeId) -> Document<'a> {
        Document::new(self.arena, root, self.reader.at())
    }

    /// Makes sure that the value is within the budget for depth, if there is one.
    fn check_depth(&self, root: NodeId) -> Step<()> {
        let allowed = self.limits.depth;
        if allowed == u64::MAX {
            return Ok(());
        }
        match super::depth::depth(&self.arena, root).unwrap_or(u64::MAX) {
            deep if deep > allowed => Err(self.over(LimitKind::Depth, allowed, deep)),
            _ => Ok(()),
        }
    }

    /// Carries out an opcode. STOP gives the value.
    #[inline(always)]
    fn step(&mut self, opcode: Opcode) -> Step<Option<NodeId>> {
        match opcode {
            Opcode::STOP => return self.pop().map(Some),
            Opcode::PROTO => {
                let protocol = self.reader.u8()?;
                if protocol > 5 {
                    return Err(Malformed::Protocol(protocol).into());
                }
            }
            Opcode::FRAME => self.reader.frame()?,

            Opcode::NONE => self.push_shared(SHARED_NONE, Node::None)?,
            Opcode::NEWFALSE => self.push_shared(SHARED_FALSE, Node::Bool(false))?,
            Opcode::NEWTRUE => self.push_shared(SHARED_TRUE, Node::Bool(true))?,
            Opcode::INT => self.int_text()?,
            Opcode::LONG => self.long_text()?,
            Opcode::BININT => {
                let value = i32::from_le_bytes(self.reader.array()?);
                self.push_int(i64::from(value))?;
            }
            Opcode::BININT1 => {
                let value = self.reader.u8()?;
                self.push_int(i64::from(value))?;
            }
            Opcode::BININT2 => {
                let value = u16::from_le_bytes(self.reader.array()?);
                self.push_int(i64::from(value))?;
            }
            Opcode::LONG1 => {
                let len = self.reader.u8()?;
                self.long(usize::from(len))?;
            }
            Opcode::LONG4 => {
                let len = self.reader.i32_size()?;
                self.long(len)?;
            }
            Opcode::FLOAT => {
                let value = text::float(self.reader.line()?)?;
                self.push(Node::Float(value))?;
            }
            Opcode::BINFLOAT => {
                let value = f64::from_be_bytes(self.reader.array()?);
                self.push(Node::Float(value))?;
            }

            Opcode::SHORT_BINUNICODE => {
                let len = self.reader.u8()?;
                self.str(usize::from(len))?;
            }
            Opcode::BINUNICODE => {
                let len = self.reader.u32_size()?;
                self.str(len)?;
            }
            Opcode::BINUNICODE8 => {
                let len = self.reader.u64_size()?;
                self.str(len)?;
            }
            Opcode::UNICODE => {
                let (bytes, surrogates) = text::raw_unicode_escape(self.reader.line()?)?;
                self.push_owned_str(&bytes, surrogates)?;
            }
            Opcode::STRING => {
                let bytes = text::quoted(self.reader.line()?)?;
                if !bytes.is_ascii() {
                    return Err(Malformed::NotAscii.into());
                }
                self.push_owned_str(&bytes, false)?;
            }
            Opcode::SHORT_BINSTRING => {
                let len = self.reader.u8()?;
                self.ascii(usize::from(len))?;
            }
            Opcode::BINSTRING => {
                let len = self.reader.i32_size()?;
                self.ascii(len)?;
            }

            Opcode::SHORT_BINBYTES => {
                let len = self.reader.u8()?;
                self.bytes(usize::from(len), Node::Bytes)?;
            }
            Opcode::BINBYTES => {
                let len = self.reader.u32_size()?;
                self.bytes(len, Node::Bytes)?;
            }
            Opcode::BINBYTES8 => {
                let len = self.reader.u64_size()?;
                self.bytes(len, Node::Bytes)?;
            }
            Opcode::BYTEARRAY8 => {
                let len = self.reader.u64_size()?;
                self.bytes(len, Node::Bytearray)?;
            }
            Opcode::NEXT_BUFFER if self.policy.is_inspect() => {
                self.outside(Origin::Buffer, &[])?;
            }
            Opcode::NEXT_BUFFER => {
                return Err(DecodeErrorKind::Unsupported(Unsupported::OutOfBandBuffer));
            }
            Opcode::READONLY_BUFFER => match self.arena.kind(self.top()?) {
                // Bytes are read-only already, and what is only shown is not written to.
                Kind::Bytes => {}
                _ if self.policy.is_inspect() => {}
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
                self.set_items_below(self.stack.len() - 2)?;
            }
            Opcode::SETITEMS => {
                let from = self.close_mark()?;
                self.set_items_below(from)?;
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
                let index = text::memo_index(self.reader.line()?)?;
                self.store(index)?;
            }
            Opcode::BINPUT => {
                let index = self.reader.u8()?;
                self.store(u64::from(index))?;
            }
            Opcode::LONG_BINPUT => {
                let index = u32::from_le_bytes(self.reader.array()?);
                self.store(u64::from(index))?;
            }
            Opcode::MEMOIZE => self.memoize()?,
            Opcode::GET => {
                let index = text::memo_index(self.reader.line()?)?;
                self.load(index)?;
            }
            Opcode::BINGET => {
                let index = self.reader.u8()?;
                self.load(u64::from(index))?;
            }
            Opcode::LONG_BINGET => {
                let index = u32::from_le_bytes(self.reader.array()?);
                self.load(u64::from(index))?;
            }

            Opcode::GLOBAL => {
                let global = self.line_global()?;
                self.stack.push(global);
            }
            Opcode::STACK_GLOBAL => {
                let global = self.stack_global()?;
                self.stack.push(global);
            }
            Opcode::INST => {
                let class = self.line_global()?;
                let from = self.close_mark()?;
                let arguments = self.stack.split_off(from);
                let made = self.instance(class, &arguments)?;
                self.stack.push(made);
            }
            Opcode::OBJ => {
                let from = self.close_mark()?;
                let operands = self.stack.split_off(from);
                let Some((class, arguments)) = operands.split_first() else {
                    return Err(Malformed::StackUnderflow.into());
                };
                let made = self.instance(*class, arguments)?;
                self.stack.push(made);
            }
            Opcode::REDUCE => {
                let [callee, args] = self.operands()?;
                let made = self.construct(How::Call, callee, args, None)?;
                self.stack.push(made);
            }
            Opcode::NEWOBJ => {
                let [class, args] = self.operands()?;
                let made = self.new_object(class, args, None)?;
                self.stack.push(made);
            }
            Opcode::NEWOBJ_EX => {
                let [class, args, kwargs] = self.operands()?;
                let made = self.new_object(class, args, Some(kwargs))?;
                self.stack.push(made);
            }
            Opcode::BUILD => {
                let [object, state] = self.operands()?;
                let built = self.build(object, state)?;
                self.stack.push(built);
            }
            Opcode::EXT1 => {
                let code = self.reader.u8()?;
                self.extension(i64::from(code))?;
            }
            Opcode::EXT2 => {
                let code = u16::from_le_bytes(self.reader.array()?);
                self.extension(i64::from(code))?;
            }
            Opcode::EXT4 => {
                let code = i32::from_le_bytes(self.reader.array()?);
                self.extension(i64::from(code))?;
            }
            Opcode::PERSID => {
                let line = self.reader.line()?;
                let id = line.escape_ascii().to_string();
                self.persistent_id = Some(id.clone());
                if !self.policy.is_inspect() {
                    return Err(DecodeErrorKind::RefusedPersistentId { id });
                }
                self.push_owned_str(id.as_bytes(), false)?;
                let [id] = self.operands()?;
                self.outside(Origin::PersistentId, &[id])?;
            }
            Opcode::BINPERSID => {
                let node = self.pop()?;
                let id = match self.arena.node(node) {
                    Node::Str(bytes) => {
                        // The same long text may be the id again and again.
                        self.charge(u64::from(bytes.len) / 4)?;
                        name(self.arena.bytes(bytes))
                    }
                    Node::Int(id) => id.to_string(),
                    _ => format!("of kind {}", self.arena.kind(node)),
                };
                self.persistent_id = Some(id.clone());
                if !self.policy.is_inspect() {
                    return Err(DecodeErrorKind::RefusedPersistentId { id });
                }
                self.outside(Origin::PersistentId, &[node])?;
            }
            _ => return Err(Malformed::UnknownOpcode.into()),
        }
        Ok(None)
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
    pub(super) fn need(&self, count: usize) -> Step<()> {
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
    pub(super) fn container(&self, from: usize, kind: Kind) -> Step<NodeId> {
        let id = self.below(from)?;
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

    /// What lies right below the operands that begin at `from`.
    pub(super) fn below(&self, from: usize) -> Step<NodeId> {
        if from <= self.fence {
            return Err(Malformed::StackUnderflow.into());
        }
        Ok(self.stack[from - 1])
    }

    /// Takes the `N` operands on top, the topmost last.
    pub(super) fn operands<const N: usize>(&mut self) -> Step<[NodeId; N]> {
        self.need(N)?;
        let from = self.stack.len() - N;
        let operands = std::array::from_fn(|at| self.stack[from + at]);
        self.stack.truncate(from);
        Ok(operands)
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

    /// Stores under the next index.
    fn memoize(&mut self) -> Step<()> {
        let top = self.top()?;
        let count = self.memo.len();
        if count >= self.limits.memo_entries {
            return self.store(count);
        }
        self.memo.push(top);
        Ok(())
    }

    fn load(&mut self, index: u64) -> Step<()> {
        let id = self.memo.load(index).ok_or(Malformed::MemoMissing(index))?;
        self.stack.push(id);
        Ok(())
    }
}
