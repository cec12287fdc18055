//! Programs: any opcode wherever the stack admits it, and now and then where it does not.

use super::op;
use super::plain::Place;
use super::writer::Writer;

/// What stands on the stack, as far as the next opcode asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hashable,
    Int,
    Str,
    Bytes,
    Bytearray,
    List,
    Dict,
    Set,
    Tuple {
        hashable: bool,
    },
    /// A class that can be called without arguments.
    Class,
    /// Something that takes attributes.
    Object,
    Other,
}

impl Kind {
    fn hashable(self) -> bool {
        match self {
            Self::Hashable | Self::Int | Self::Str | Self::Bytes | Self::Class => true,
            Self::Tuple { hashable } => hashable,
            _ => false,
        }
    }
}

/// Classes that take no arguments, and what they make.
const CLASSES: &[(&str, &str, Kind)] = &[
    ("collections", "OrderedDict", Kind::Object),
    ("collections", "Counter", Kind::Object),
    ("builtins", "ValueError", Kind::Object),
    ("builtins", "KeyError", Kind::Object),
    ("collections", "deque", Kind::Other),
    ("collections", "defaultdict", Kind::Other),
    ("datetime", "timedelta", Kind::Other),
    ("builtins", "list", Kind::List),
];

/// A stack machine that only knows kinds.
struct Program<'w, 'c> {
    writer: &'w mut Writer<'c>,
    stack: Vec<Kind>,
    marks: Vec<usize>,
    memo: Vec<(u32, Kind)>,
}

impl Writer<'_> {
    /// Writes a program of up to `steps` opcodes, without STOP, that leaves a value on the stack.
    pub(super) fn program(&mut self, steps: usize) {
        let mut program = Program {
            writer: self,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        for _ in 0..steps {
            program.step();
        }
        if program.reach() == 0 {
            program.push_scalar();
        }
    }
}

impl Program<'_, '_> {
    /// How many operands are above the last mark.
    fn reach(&self) -> usize {
        self.stack.len() - self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Option<Kind> {
        (self.reach() > 0).then(|| self.stack[self.stack.len() - 1])
    }

    /// The operand below the top.
    fn second(&self) -> Option<Kind> {
        (self.reach() > 1).then(|| self.stack[self.stack.len() - 2])
    }

    /// What a group of operands belongs to: the operand right below the last mark.
    fn below_mark(&self) -> Option<Kind> {
        let mark = *self.marks.last()?;
        let fence = self.marks.iter().rev().nth(1).copied().unwrap_or(0);
        (mark > fence).then(|| self.stack[mark - 1])
    }

    fn group(&self) -> &[Kind] {
        &self.stack[self.marks.last().copied().unwrap_or(0)..]
    }

    fn close(&mut self) {
        if let Some(mark) = self.marks.pop() {
            self.stack.truncate(mark);
        }
    }

    fn push_scalar(&mut self) {
        match self.writer.choices.below(4) {
            0 => {
                self.writer.any_int();
                self.stack.push(Kind::Int);
            }
            1 => {
                self.writer.any_str();
                self.stack.push(Kind::Str);
            }
            2 => {
                let content = self.writer.choices.bytes();
                self.writer.bytes(&content);
                self.stack.push(Kind::Bytes);
            }
            _ => {
                self.writer.scalar();
                self.stack.push(Kind::Hashable);
            }
        }
    }

    fn step(&mut self) {
        // Values come first as often as everything else together, or most opcodes find nothing.
        if self.writer.choices.below(5) < 2 {
            return self.push_scalar();
        }
        let (opcode, _, argument) = self.writer.choices.pick(op::ALL);
        if self.apply(opcode) {
            return;
        }
        // Out of place: seldom, since most streams end there.
        if argument == op::Argument::None && opcode != op::STOP && self.writer.choices.one_in(60) {
            self.writer.op(opcode);
        }
    }

    /// Writes the opcode if the stack admits it.
    fn apply(&mut self, opcode: u8) -> bool {
        let named = self.writer.scope.globals;
        match opcode {
            op::MARK => {
                self.writer.op(opcode);
                self.marks.push(self.stack.len());
            }
            op::POP => {
                if self.reach() > 0 {
                    self.stack.pop();
                } else if self.marks.pop().is_none() {
                    return false;
                }
                self.writer.op(opcode);
            }
            op::POP_MARK if !self.marks.is_empty() => {
                self.writer.op(opcode);
                self.close();
            }
            op::DUP => {
                let Some(top) = self.top() else { return false };
                self.writer.op(opcode);
                self.stack.push(top);
            }
            op::EMPTY_LIST => self.push(opcode, Kind::List),
            op::EMPTY_DICT => self.push(opcode, Kind::Dict),
            op::EMPTY_SET => self.push(opcode, Kind::Set),
            op::EMPTY_TUPLE => self.push(opcode, Kind::Tuple { hashable: true }),
            op::TUPLE1 => return self.tuple(opcode, 1),
            op::TUPLE2 => return self.tuple(opcode, 2),
            op::TUPLE3 => return self.tuple(opcode, 3),
            op::TUPLE if !self.marks.is_empty() => {
                let hashable = self.group().iter().all(|kind| kind.hashable());
                self.close();
                self.push(opcode, Kind::Tuple { hashable });
            }
            op::LIST if !self.marks.is_empty() => {
                self.close();
                self.push(opcode, Kind::List);
            }
            op::DICT if !self.marks.is_empty() && pairs(self.group()) => {
                self.close();
                self.push(opcode, Kind::Dict);
            }
            op::FROZENSET
                if !self.marks.is_empty() && self.group().iter().all(|kind| kind.hashable()) =>
            {
                self.close();
                self.push(opcode, Kind::Hashable);
            }
            op::APPEND if self.second() == Some(Kind::List) => {
                self.stack.pop();
                self.writer.op(opcode);
            }
            op::APPENDS if self.below_mark() == Some(Kind::List) => {
                self.writer.op(opcode);
                self.close();
            }
            op::SETITEM => {
                let at = self.stack.len();
                if self.reach() < 3
                    || self.stack[at - 3] != Kind::Dict
                    || !self.stack[at - 2].hashable()
                {
                    return false;
                }
                self.stack.truncate(at - 2);
                self.writer.op(opcode);
            }
            op::SETITEMS if self.below_mark() == Some(Kind::Dict) && pairs(self.group()) => {
                self.writer.op(opcode);
                self.close();
            }
            op::ADDITEMS
                if self.below_mark() == Some(Kind::Set)
                    && self.group().iter().all(|kind| kind.hashable()) =>
            {
                self.writer.op(opcode);
                self.close();
            }
            op::PUT | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => return self.memoize(opcode),
            op::GET | op::BINGET | op::LONG_BINGET => return self.recall(opcode),
            op::PROTO => {
                let protocol = self.writer.choices.below(6) as u8;
                self.writer.fixed(opcode, &[protocol]);
            }
            op::BYTEARRAY8 => {
                let content = self.writer.choices.bytes();
                self.writer.sized(opcode, 8, &content);
                self.stack.push(Kind::Bytearray);
            }
            op::READONLY_BUFFER if self.top() == Some(Kind::Bytes) => self.writer.op(opcode),
            op::GLOBAL | op::STACK_GLOBAL if named => {
                let (module, name, _) = self.writer.choices.pick(CLASSES);
                self.writer.global(module, name);
                self.stack.push(Kind::Class);
            }
            op::REDUCE | op::NEWOBJ | op::OBJ | op::INST if named => return self.make(opcode),
            op::BUILD if named && self.top() == Some(Kind::Object) => {
                self.writer.attributes(3);
            }
            // The refused ones: each ends the stream, so they are rare.
            op::PERSID if self.writer.choices.one_in(20) => self.writer.line(opcode, "id"),
            op::BINPERSID if self.reach() > 0 && self.writer.choices.one_in(20) => {
                self.writer.op(opcode);
            }
            op::EXT1 | op::EXT2 | op::EXT4 if self.writer.choices.one_in(20) => {
                let width = match opcode {
                    op::EXT1 => 1,
                    op::EXT2 => 2,
                    _ => 4,
                };
                let code = 1 + self.writer.choices.below(255) as u32;
                let code = code.to_le_bytes();
                self.writer.fixed(opcode, &code[..width]);
                self.stack.push(Kind::Other);
            }
            op::NEXT_BUFFER if self.writer.choices.one_in(20) => {
                self.writer.op(opcode);
                self.stack.push(Kind::Other);
            }
            _ => return false,
        }
        true
    }

    fn push(&mut self, opcode: u8, kind: Kind) {
        self.writer.op(opcode);
        self.stack.push(kind);
    }

    fn tuple(&mut self, opcode: u8, len: usize) -> bool {
        if self.reach() < len {
            return false;
        }
        let from = self.stack.len() - len;
        let hashable = self.stack[from..].iter().all(|kind| kind.hashable());
        self.stack.truncate(from);
        self.push(opcode, Kind::Tuple { hashable });
        true
    }

    /// A class and a call of it that takes no arguments, by the opcode that is asked for.
    fn make(&mut self, opcode: u8) -> bool {
        let (module, name, kind) = self.writer.choices.pick(CLASSES);
        match opcode {
            op::REDUCE => self.writer.call(module, name, false, 0, |_| {}),
            op::NEWOBJ => self.writer.new_object(module, name, false),
            op::OBJ => {
                self.writer.op(op::MARK);
                self.writer.global(module, name);
                self.writer.op(op::OBJ);
            }
            _ => {
                self.writer.op(op::MARK);
                self.writer.line(op::INST, module);
                self.writer.out.extend(name.bytes());
                self.writer.out.push(b'\n');
            }
        }
        self.stack.push(kind);
        true
    }

    fn memoize(&mut self, opcode: u8) -> bool {
        let Some(top) = self.top() else { return false };
        let index = match opcode {
            op::MEMOIZE => self.memo.len() as u32,
            _ => self.writer.choices.below(5) as u32,
        };
        match opcode {
            op::MEMOIZE => self.writer.op(opcode),
            op::PUT => self.writer.line(opcode, &index.to_string()),
            op::BINPUT => self.writer.fixed(opcode, &[index as u8]),
            _ => self.writer.fixed(opcode, &index.to_le_bytes()),
        }
        self.memo.retain(|(known, _)| *known != index);
        self.memo.push((index, top));
        true
    }

    fn recall(&mut self, opcode: u8) -> bool {
        if self.memo.is_empty() {
            return false;
        }
        let (index, kind) = self.writer.choices.pick(&self.memo);
        match opcode {
            op::GET => self.writer.line(opcode, &index.to_string()),
            op::BINGET => self.writer.fixed(opcode, &[index as u8]),
            _ => self.writer.fixed(opcode, &index.to_le_bytes()),
        }
        self.stack.push(kind);
        true
    }
}

/// Whether these are keys, each with a value.
fn pairs(group: &[Kind]) -> bool {
    group.len().is_multiple_of(2) && group.iter().step_by(2).all(|kind| kind.hashable())
}

impl Writer<'_> {
    /// A call of an admitted class or helper with whatever arguments: what no pickler writes.
    pub(super) fn accident(&mut self) {
        const CALLABLE: &[(&str, &str)] = &[
            ("builtins", "complex"),
            ("builtins", "range"),
            ("builtins", "slice"),
            ("builtins", "bytearray"),
            ("builtins", "frozenset"),
            ("builtins", "set"),
            ("builtins", "list"),
            ("builtins", "dict"),
            ("builtins", "tuple"),
            ("builtins", "bytes"),
            ("builtins", "str"),
            ("builtins", "int"),
            ("builtins", "float"),
            ("builtins", "bool"),
            ("builtins", "OSError"),
            ("builtins", "UnicodeDecodeError"),
            ("builtins", "ExceptionGroup"),
            ("builtins", "SyntaxError"),
            ("builtins", "ImportError"),
            ("datetime", "date"),
            ("datetime", "time"),
            ("datetime", "datetime"),
            ("datetime", "timedelta"),
            ("datetime", "timezone"),
            ("decimal", "Decimal"),
            ("fractions", "Fraction"),
            ("uuid", "UUID"),
            ("collections", "OrderedDict"),
            ("collections", "defaultdict"),
            ("collections", "Counter"),
            ("collections", "deque"),
            ("pathlib", "PurePosixPath"),
            ("pathlib", "PureWindowsPath"),
            ("pathlib", "PurePath"),
            ("copyreg", "_reconstructor"),
            ("copyreg", "__newobj__"),
            ("copyreg", "__newobj_ex__"),
            ("agentix.bash", "BashResult"),
            ("agentix.bridge.proxy", "TunnelHandle"),
        ];
        let (module, name) = self.choices.pick(CALLABLE);
        let way = self.choices.below(6);
        if way == 4 {
            self.op(op::MARK);
        }
        self.global(module, name);
        match way {
            0..=2 => {
                self.arguments();
                self.op(op::REDUCE);
            }
            3 => {
                self.arguments();
                self.op(op::NEWOBJ);
            }
            4 => {
                for _ in 0..self.choices.below(3) {
                    self.argument();
                }
                self.op(op::OBJ);
            }
            _ => {
                self.arguments();
                self.empty_dict();
                self.op(op::NEWOBJ_EX);
            }
        }
        if self.choices.one_in(4) {
            self.argument();
            self.op(op::BUILD);
        }
    }

    fn arguments(&mut self) {
        if self.choices.one_in(20) {
            self.argument();
            return;
        }
        let count = self.choices.below(4);
        let marked = self.open_tuple(count);
        for _ in 0..count {
            self.argument();
        }
        self.close_tuple(count, marked, false);
    }

    /// An argument: small, since a number may be a length there.
    fn argument(&mut self) {
        match self.choices.below(10) {
            0 | 1 => {
                let value = self.choices.below(40) as i64 - 3;
                self.int(value);
            }
            2 => self.any_str(),
            3 => {
                let content = self.choices.bytes();
                self.bytes(&content);
            }
            4 => self.op(op::NONE),
            5 => {
                let value = self.choices.pick(&[0.5, 1.0, -2.0, 1e300, f64::NAN]);
                self.float(value);
            }
            6 => {
                self.tuple(5, Place::Any);
            }
            7 => {
                self.global("builtins", "list");
            }
            _ => {
                self.value(5);
            }
        }
    }
}
