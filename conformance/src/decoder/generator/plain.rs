//! Plain values: what needs no class by name.

use super::Choices;
use super::op;
use super::writer::{Style, Writer};

/// Ints at the edges of what each opcode carries, and those that are one key with other numbers.
const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    10,
    100,
    127,
    128,
    -128,
    -129,
    255,
    256,
    65_535,
    65_536,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    i32::MIN as i64,
    i32::MIN as i64 - 1,
    1 << 53,
    (1 << 53) + 1,
    (1 << 61) - 1,
    i64::MAX,
    i64::MIN,
];

const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    0.1,
    100.0,
    -1.5,
    1e16,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    1e300,
    5e-324,
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "key",
    "int",
    "é",
    "漢字",
    "😀",
    "line\nbreak\r",
    "tab\t nul\0",
    "back\\slash \\u0041",
    "it's \"quoted\"",
    "\u{7f}\u{80}\u{ff}\u{100}",
    "\u{ffff}\u{10000}\u{10ffff}",
];

/// Lone surrogates, in both orders, and one beside other text.
const SURROGATES: &[&[u32]] = &[
    &[0xd800],
    &[0xdfff, 0x61],
    &[0xd83d, 0xde00],
    &[0x61, 0xdc80],
];

/// What a value has to be good for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Any,
    /// A dict key or an element of a set.
    Key,
}

/// Values inside values, at most, apart from chains that are deep on purpose.
const DEPTH: usize = 7;

impl Writer<'_> {
    /// Writes a value; says whether it can be hashed.
    pub(super) fn value(&mut self, depth: usize) -> bool {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 || depth >= DEPTH {
            return self.scalar();
        }
        if self.choices.one_in(8)
            && let Some(hashable) = self.reference(false)
        {
            return hashable;
        }
        let kinds = if self.scope.globals { 26 } else { 14 };
        match self.choices.below(kinds) {
            0..=4 => self.scalar(),
            5 | 6 => self.list(depth),
            7 | 8 => self.tuple(depth, Place::Any),
            9 | 10 => self.dict(depth),
            11 => self.set(depth),
            12 => self.frozenset(depth),
            13 => self.odd(depth),
            _ => self.named(depth, Place::Any),
        }
    }

    /// Writes a value that can be hashed.
    pub(super) fn key(&mut self, depth: usize) {
        self.budget = self.budget.saturating_sub(1);
        if self.choices.one_in(8) && self.reference(true).is_some() {
            return;
        }
        let deep = self.budget == 0 || depth >= DEPTH;
        let kinds = match () {
            () if deep => 5,
            () if self.scope.globals => 12,
            () => 7,
        };
        match self.choices.below(kinds) {
            0..=4 => {
                self.scalar();
            }
            5 => {
                self.tuple(depth, Place::Key);
            }
            6 => {
                self.frozenset(depth);
            }
            _ => {
                self.named(depth, Place::Key);
            }
        }
    }

    /// A value without parts. All of them can be hashed.
    pub(super) fn scalar(&mut self) -> bool {
        match self.choices.below(12) {
            0 => self.op(op::NONE),
            1 => {
                let value = self.choices.one_in(2);
                self.bool(value);
            }
            2..=5 => self.any_int(),
            6 | 7 => {
                let value = self.choices.float();
                self.float(value);
            }
            8..=10 => self.any_str(),
            // Below protocol 3 no pickler has an opcode for them.
            _ if self.has(3) => {
                let content = self.choices.bytes();
                self.bytes(&content);
            }
            _ => self.any_str(),
        }
        true
    }

    pub(super) fn any_int(&mut self) {
        if self.choices.one_in(8) {
            self.huge_int();
        } else {
            let value = self.choices.int();
            self.int(value);
        }
    }

    /// An int beyond 64 bits, as text or in binary.
    fn huge_int(&mut self) {
        let len = match self.choices.one_in(10) {
            true => 250 + self.choices.below(20),
            false => 9 + self.choices.below(24),
        };
        if self.protocol < 2 || (self.loose() && self.choices.one_in(3)) {
            let mut digits = (1 + self.choices.below(9)).to_string();
            for _ in 0..len.min(60) {
                digits.push(char::from(b'0' + self.choices.below(10) as u8));
            }
            let sign = if self.choices.one_in(2) { "-" } else { "" };
            self.line(op::LONG, &format!("{sign}{digits}L"));
        } else {
            let bytes = self.choices.raw(len);
            self.big_int(&bytes);
        }
    }

    pub(super) fn any_str(&mut self) {
        match self.choices.below(10) {
            0 if self.has(1) => {
                let text = self.choices.pick(SURROGATES);
                self.str(text);
            }
            1 => {
                let len = self.choices.below(6);
                let text: Vec<u32> = (0..len).map(|_| self.choices.code_point()).collect();
                self.str(&text);
            }
            2 if self.choices.one_in(4) => {
                let len = 250 + self.choices.below(12);
                self.str(&vec![0x78; len]);
            }
            _ => {
                let text = self.choices.pick(TEXTS);
                self.text(text);
            }
        }
    }

    /// How many items a container gets: few, seldom more than a hash table's first size.
    fn count(&mut self) -> usize {
        let most = if self.choices.one_in(12) { 20 } else { 4 };
        self.choices.below(most + 1).min(self.budget)
    }

    fn list(&mut self, depth: usize) -> bool {
        let count = self.count();
        if self.loose() && self.choices.one_in(5) {
            self.op(op::MARK);
            for _ in 0..count {
                self.value(depth + 1);
            }
            self.op(op::LIST);
            self.memoized(false);
        } else {
            self.empty_list();
            self.appends(count, depth);
        }
        false
    }

    pub(super) fn empty_list(&mut self) {
        if self.protocol == 0 || (self.loose() && self.choices.one_in(4)) {
            self.op(op::MARK);
            self.op(op::LIST);
        } else {
            self.op(op::EMPTY_LIST);
        }
        self.memoized(false);
    }

    /// Appends `count` values to what is on top of the stack.
    pub(super) fn appends(&mut self, count: usize, depth: usize) {
        let one_by_one = self.protocol == 0 || (self.loose() && self.choices.one_in(3));
        if count == 1 || one_by_one {
            for _ in 0..count {
                self.value(depth + 1);
                self.op(op::APPEND);
            }
        } else if count > 1 || (self.loose() && self.choices.one_in(5)) {
            self.op(op::MARK);
            for _ in 0..count {
                self.value(depth + 1);
            }
            self.op(op::APPENDS);
        }
    }

    pub(super) fn tuple(&mut self, depth: usize, place: Place) -> bool {
        let count = self.count();
        let marked = self.open_tuple(count);
        let mut hashable = true;
        for _ in 0..count {
            if place == Place::Key {
                self.key(depth + 1);
            } else {
                hashable &= self.value(depth + 1);
            }
        }
        self.close_tuple(count, marked, hashable);
        hashable
    }

    fn dict(&mut self, depth: usize) -> bool {
        let count = self.count();
        if self.loose() && self.choices.one_in(5) {
            self.op(op::MARK);
            for _ in 0..count {
                self.key(depth + 1);
                self.value(depth + 1);
            }
            self.op(op::DICT);
            self.memoized(false);
        } else {
            self.empty_dict();
            self.set_items(count, depth);
        }
        false
    }

    pub(super) fn empty_dict(&mut self) {
        if self.protocol == 0 || (self.loose() && self.choices.one_in(4)) {
            self.op(op::MARK);
            self.op(op::DICT);
        } else {
            self.op(op::EMPTY_DICT);
        }
        self.memoized(false);
    }

    /// Sets `count` entries of what is on top of the stack.
    pub(super) fn set_items(&mut self, count: usize, depth: usize) {
        self.entries(count, |writer, _| {
            writer.key(depth + 1);
            writer.value(depth + 1);
        });
    }

    /// Sets `count` entries, of which `write` writes each.
    pub(super) fn entries(&mut self, count: usize, mut write: impl FnMut(&mut Self, usize)) {
        let one_by_one = self.protocol == 0 || (self.loose() && self.choices.one_in(3));
        if count == 1 || one_by_one {
            for at in 0..count {
                write(self, at);
                self.op(op::SETITEM);
            }
        } else if count > 1 || (self.loose() && self.choices.one_in(5)) {
            self.op(op::MARK);
            for at in 0..count {
                write(self, at);
            }
            self.op(op::SETITEMS);
        }
    }

    fn set(&mut self, depth: usize) -> bool {
        let count = self.count();
        if self.protocol >= 4 || (self.loose() && !self.scope.globals) {
            self.op(op::EMPTY_SET);
            self.memoized(false);
            if count > 0 || (self.loose() && self.choices.one_in(5)) {
                self.op(op::MARK);
                for _ in 0..count {
                    self.key(depth + 1);
                }
                self.op(op::ADDITEMS);
            }
        } else if self.may_name("builtins") {
            self.call("builtins", "set", false, 1, |writer| {
                writer.list_of_keys(count, depth);
            });
        } else {
            return self.scalar();
        }
        false
    }

    fn frozenset(&mut self, depth: usize) -> bool {
        let count = self.count();
        if self.protocol >= 4 || (self.loose() && !self.scope.globals) {
            self.op(op::MARK);
            for _ in 0..count {
                self.key(depth + 1);
            }
            self.op(op::FROZENSET);
            self.memoized(true);
        } else if self.may_name("builtins") {
            self.call("builtins", "frozenset", true, 1, |writer| {
                writer.list_of_keys(count, depth);
            });
        } else {
            return self.scalar();
        }
        true
    }

    fn list_of_keys(&mut self, count: usize, depth: usize) {
        self.empty_list();
        if count == 0 {
            return;
        }
        if self.protocol == 0 || count == 1 {
            for _ in 0..count {
                self.key(depth + 1);
                self.op(op::APPEND);
            }
        } else {
            self.op(op::MARK);
            for _ in 0..count {
                self.key(depth + 1);
            }
            self.op(op::APPENDS);
        }
    }

    /// Shapes that the rest gives seldom.
    fn odd(&mut self, depth: usize) -> bool {
        match self.choices.below(5) {
            0 => self.deep(),
            1 => self.recursive_tuple(),
            2 => self.bytearray(),
            3 if self.loose() => {
                // A value, doubled, of which one copy goes.
                let hashable = self.value(depth + 1);
                self.op(op::DUP);
                self.op(op::POP);
                hashable
            }
            4 if self.loose() => {
                // Operands that nothing takes.
                self.op(op::MARK);
                for _ in 0..self.choices.below(3) {
                    self.value(depth + 1);
                }
                self.op(op::POP_MARK);
                self.scalar()
            }
            _ => self.list(depth),
        }
    }

    /// A chain of containers, deeper than values usually are.
    fn deep(&mut self) -> bool {
        let links = 10 + self.choices.below(150);
        match self.choices.below(3) {
            0 => {
                for _ in 0..links {
                    self.op(op::EMPTY_LIST);
                }
                for _ in 1..links {
                    self.op(op::APPEND);
                }
                false
            }
            1 if self.has(2) => {
                self.scalar();
                for _ in 0..links {
                    self.op(op::TUPLE1);
                }
                true
            }
            _ => {
                for _ in 0..links {
                    self.op(op::EMPTY_DICT);
                    self.op(op::NONE);
                }
                self.op(op::NONE);
                for _ in 0..links {
                    self.op(op::SETITEM);
                }
                false
            }
        }
    }

    /// A tuple that holds itself through a list, as picklers write it: they notice at the end that
    /// the tuple has been written already, drop what they have, and refer to it.
    fn recursive_tuple(&mut self) -> bool {
        if self.style != Style::Pickler || self.protocol == 0 {
            return self.scalar();
        }
        self.op(op::EMPTY_LIST);
        self.memoized(false);
        let Some(list) = self.last_memo() else {
            return self.scalar();
        };
        let marked = self.open_tuple(1);
        self.refer(list);
        self.close_tuple(1, marked, false);
        let Some(tuple) = self.last_memo() else {
            return self.scalar();
        };
        self.op(op::APPEND);
        if marked {
            // The outer tuple's MARK, had it been written, goes with its items.
            self.op(op::MARK);
            self.op(op::POP_MARK);
        }
        self.op(op::POP);
        self.refer(tuple);
        false
    }

    fn bytearray(&mut self) -> bool {
        let content = self.choices.bytes();
        if self.protocol >= 5 || (self.loose() && !self.scope.globals) {
            self.sized(op::BYTEARRAY8, 8, &content);
            self.memoized(false);
            return false;
        }
        if !self.may_name("builtins") {
            return self.scalar();
        }
        let arguments = usize::from(!content.is_empty());
        self.call("builtins", "bytearray", false, arguments, |writer| {
            if arguments > 0 {
                writer.bytes(&content);
            }
        });
        false
    }

    /// Whether to write a name of this module now. What protocols 0 to 2 write for it may be
    /// refused, which is worth a try only now and then.
    pub(super) fn may_name(&mut self, module: &str) -> bool {
        let renamed = module == "builtins" && self.protocol < 3 && !self.loose();
        self.scope.globals && (!renamed || self.choices.one_in(40))
    }
}

impl dyn Choices + '_ {
    /// True once in `n` times; `false` is the simple choice.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of these; the first is the simple choice.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// So many bytes.
    pub(super) fn raw(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    pub(super) fn u64(&mut self) -> u64 {
        (0..4).fold(0, |word, _| word << 16 | self.below(1 << 16) as u64)
    }

    pub(super) fn int(&mut self) -> i64 {
        match self.below(4) {
            0 | 1 => self.pick(INTS),
            2 => self.below(20) as i64 - 5,
            _ => {
                let bits = self.below(64);
                (self.u64() as i64) >> bits
            }
        }
    }

    pub(super) fn float(&mut self) -> f64 {
        if self.one_in(4) {
            f64::from_bits(self.u64())
        } else {
            self.pick(FLOATS)
        }
    }

    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let len = match self.below(12) {
            0 => 0,
            1 => 254 + self.below(4),
            _ => self.below(9),
        };
        self.raw(len)
    }

    fn code_point(&mut self) -> u32 {
        match self.below(6) {
            0 | 1 => 0x20 + self.below(0x60) as u32,
            2 => self.below(0x100) as u32,
            3 => self.below(0xd800) as u32,
            4 => 0x1_0000 + self.below(0x10_0000) as u32,
            // Surrogates included.
            _ => 0xd000 + self.below(0x3000) as u32,
        }
    }

    /// A str of plain letters.
    pub(super) fn word(&mut self) -> &'static str {
        self.pick(&["a", "b", "name", "value", "x y", "ü", ""])
    }
}
