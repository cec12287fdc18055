//! Values of the standard library's types, as the picklers of CPython 2.7 to 3.14 write them.

use super::op;
use super::plain::Place;
use super::writer::Writer;

/// Modules and names of the result records of the framework, with their fields, and whether those
/// are slots.
const RECORDS: &[(&str, &str, &[&str], bool)] = &[
    (
        "agentix.bridge.proxy",
        "TunnelHandle",
        &["url", "port"],
        true,
    ),
    (
        "agentix.bash",
        "BashResult",
        &["exit_code", "stdout", "stderr"],
        false,
    ),
    ("agentix.files", "UploadResult", &["path", "size"], false),
    (
        "agentix.agents.claude_code.agent",
        "ClaudeCodeResult",
        &["returncode", "stdout", "stderr"],
        false,
    ),
    (
        "agentix.agents.qwen_code",
        "Result",
        &["exit_code", "stdout", "stderr"],
        false,
    ),
    (
        "agentix.plugins.datasets.swe.env",
        "PrepareEnvResult",
        &["ok", "head", "log"],
        false,
    ),
];

/// Classes and helpers as they may stand for themselves in a value.
const GLOBALS: &[(&str, &str)] = &[
    ("builtins", "list"),
    ("builtins", "dict"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "tuple"),
    ("builtins", "str"),
    ("builtins", "bytes"),
    ("builtins", "bytearray"),
    ("builtins", "int"),
    ("builtins", "float"),
    ("builtins", "bool"),
    ("builtins", "complex"),
    ("builtins", "range"),
    ("builtins", "slice"),
    ("builtins", "KeyError"),
    ("datetime", "date"),
    ("datetime", "time"),
    ("datetime", "datetime"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("pathlib", "PurePath"),
    ("pathlib", "Path"),
    ("pathlib", "PurePosixPath"),
    ("pathlib", "PosixPath"),
    ("pathlib", "PureWindowsPath"),
    ("pathlib", "WindowsPath"),
    ("copyreg", "_reconstructor"),
    ("copyreg", "__newobj__"),
    ("copyreg", "__newobj_ex__"),
    ("agentix.bridge.proxy", "TunnelHandle"),
    ("agentix.bash", "BashResult"),
    ("agentix.files", "UploadResult"),
    ("agentix.agents.claude_code.agent", "ClaudeCodeResult"),
    ("agentix.agents.qwen_code", "Result"),
    ("agentix.plugins.datasets.swe.env", "PrepareEnvResult"),
];

/// Numpy's names, which need numpy on the other side.
const NUMPY_GLOBALS: &[(&str, &str)] = &[
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
];

/// What Python's `str` of a Decimal may be. Several are equal to each other, or to other numbers.
const DECIMALS: &[&str] = &[
    "0",
    "-0",
    "0E+3",
    "0.000",
    "1",
    "1.0",
    "1.00",
    "-1",
    "2",
    "0.5",
    "0.1",
    "100",
    "1E+2",
    "1.5",
    "9007199254740993",
    "1E+30",
    "1.000E-7",
    "1E-7",
    "NaN",
    "-NaN123",
    "sNaN",
    "Infinity",
    "-Infinity",
    "123456789012345678901234567890.123456789",
    "1E+999999",
    "5E-324",
];

/// Parts of a path as picklers up to CPython 3.12 write them, and raw ones as later picklers do.
const POSIX: &[&[&str]] = &[
    &[],
    &["a"],
    &["/"],
    &["/", "a", "b"],
    &["a", "b"],
    &["//", "x"],
    &["..", "é"],
    &["a/b"],
    &["/a//b/./c/"],
    &["a/b", "c"],
    &["a", "", "b"],
    &["."],
];
const WINDOWS: &[&[&str]] = &[
    &[],
    &["a"],
    &["c:\\", "a", "b"],
    &["C:\\", "A", "B"],
    &["a", "b"],
    &["\\\\host\\share\\", "x"],
    &["c:/a/b"],
    &["c:a"],
    &["\\a"],
    &["a\\b", "c"],
];

impl Writer<'_> {
    /// Writes a value of a class by name; says whether it can be hashed.
    pub(super) fn named(&mut self, depth: usize, place: Place) -> bool {
        let kinds = if place == Place::Key { 13 } else { 21 };
        match self.choices.below(kinds) {
            0 if self.may_name("builtins") => self.complex(),
            1 if self.may_name("builtins") => self.range(),
            2 if self.has(3) || self.choices.one_in(40) => self.date(),
            3 if self.has(3) || self.choices.one_in(40) => self.time(),
            4 if self.has(3) || self.choices.one_in(40) => self.datetime(),
            5 => self.timedelta(),
            6 => self.timezone(),
            7 => self.decimal(),
            8 => self.fraction(),
            9 if self.has(2) => self.uuid(),
            10 => self.path(),
            11 if self.may_name("builtins") => return self.exception(depth),
            12 => self.global_as_value(),
            13 if self.may_name("builtins") => return self.slice(depth),
            14 => return self.ordered_dict(depth),
            15 => return self.counter(depth),
            16 => return self.default_dict(depth),
            17 => return self.deque(depth),
            18 if self.has(2) => return self.record(depth),
            19 if self.scope.numpy => return self.numpy(depth),
            20 if self.may_name("builtins") => return self.exception(depth),
            _ => return self.scalar(),
        }
        true
    }

    fn complex(&mut self) {
        self.call("builtins", "complex", true, 2, |writer| {
            for _ in 0..2 {
                let part = writer.choices.float();
                writer.float(part);
            }
        });
    }

    fn range(&mut self) {
        let step = self.choices.pick(&[1, 2, 3, -1, -2, 1 << 40]);
        self.call("builtins", "range", true, 3, |writer| {
            for _ in 0..2 {
                // Short ones, since equal ranges are one key.
                let end = match writer.choices.one_in(4) {
                    true => writer.choices.int(),
                    false => writer.choices.below(5) as i64,
                };
                writer.int(end);
            }
            writer.int(step);
        });
    }

    fn slice(&mut self, depth: usize) -> bool {
        self.call("builtins", "slice", false, 3, |writer| {
            for _ in 0..3 {
                match writer.choices.below(4) {
                    0 => writer.op(op::NONE),
                    1 | 2 => writer.any_int(),
                    _ => {
                        writer.value(depth + 1);
                    }
                }
            }
        });
        false
    }

    /// Year, month and day as `date` and `datetime` keep them. A small pool, so that some are equal.
    fn day(&mut self) -> [u8; 4] {
        let (year, month, day): (u16, u8, u8) = match self.choices.below(4) {
            0 => self
                .choices
                .pick(&[(1, 1, 1), (9999, 12, 31), (2024, 2, 29), (1970, 1, 1)]),
            1 => (2026, 7, 1 + self.choices.below(3) as u8),
            _ => (
                1 + self.choices.below(9999) as u16,
                1 + self.choices.below(12) as u8,
                1 + self.choices.below(28) as u8,
            ),
        };
        let [high, low] = year.to_be_bytes();
        [high, low, month, day]
    }

    /// Hour, minute, second and microsecond.
    fn clock(&mut self) -> [u8; 6] {
        let microsecond = match self.choices.below(3) {
            0 => 0,
            1 => 999_999,
            _ => self.choices.below(1_000_000) as u32,
        };
        let [_, high, middle, low] = microsecond.to_be_bytes();
        let small = self.choices.one_in(2);
        let mut below = |most| {
            if small {
                0
            } else {
                self.choices.below(most) as u8
            }
        };
        let (minute, second) = (below(60), below(60));
        [
            self.choices.below(24) as u8,
            minute,
            second,
            high,
            middle,
            low,
        ]
    }

    fn date(&mut self) {
        let state = self.day();
        self.call("datetime", "date", true, 1, |writer| writer.bytes(&state));
    }

    fn time(&mut self) {
        let mut state = self.clock();
        // The fold has a bit there since protocol 4.
        if self.has(4) && self.choices.one_in(4) {
            state[0] |= 0x80;
        }
        self.with_zone("time", &state);
    }

    fn datetime(&mut self) {
        let mut state = self.day().to_vec();
        state.extend(self.clock());
        if self.has(4) && self.choices.one_in(4) {
            state[2] |= 0x80;
        }
        self.with_zone("datetime", &state);
    }

    fn with_zone(&mut self, name: &str, state: &[u8]) {
        let aware = self.choices.one_in(3);
        self.call("datetime", name, true, 1 + usize::from(aware), |writer| {
            writer.bytes(state);
            if aware {
                writer.timezone();
            }
        });
    }

    fn timedelta(&mut self) {
        let (days, seconds, micros) = match self.choices.below(4) {
            0 => self.choices.pick(&[
                (0, 0, 0),
                (-1, 86_399, 999_999),
                (999_999_999, 86_399, 999_999),
                (-999_999_999, 0, 0),
            ]),
            1 => (0, 3600 * self.choices.below(3) as i64, 0),
            _ => (
                self.choices.below(2000) as i64 - 1000,
                self.choices.below(86_400) as i64,
                self.choices.below(1_000_000) as i64,
            ),
        };
        self.timedelta_of(days, seconds, micros);
    }

    fn timedelta_of(&mut self, days: i64, seconds: i64, micros: i64) {
        self.call("datetime", "timedelta", true, 3, |writer| {
            writer.int(days);
            writer.int(seconds);
            writer.int(micros);
        });
    }

    fn timezone(&mut self) {
        // Less than a day either way; a small pool, so that some instants are equal.
        let (days, seconds, micros) = match self.choices.below(5) {
            0 => (0, 0, 0),
            1 | 2 => (0, 3600 * self.choices.below(4) as i64, 0),
            3 => (-1, 86_400 - 3600 * (1 + self.choices.below(23) as i64), 0),
            _ => self
                .choices
                .pick(&[(-1, 1, 0), (0, 86_399, 999_999), (0, 1, 1), (-1, 86_340, 0)]),
        };
        let named = self.choices.one_in(3);
        self.call(
            "datetime",
            "timezone",
            true,
            1 + usize::from(named),
            |writer| {
                writer.timedelta_of(days, seconds, micros);
                if named {
                    writer.any_str();
                }
            },
        );
    }

    fn decimal(&mut self) {
        let text = match self.choices.below(5) {
            0 => {
                let digits = 1 + self.choices.below(40);
                let mut text = (1 + self.choices.below(9)).to_string();
                for _ in 0..digits {
                    text.push(char::from(b'0' + self.choices.below(10) as u8));
                }
                text
            }
            _ => self.choices.pick(DECIMALS).to_owned(),
        };
        self.call("decimal", "Decimal", true, 1, |writer| writer.text(&text));
    }

    fn fraction(&mut self) {
        let (numerator, denominator) = match self.choices.below(3) {
            0 => self
                .choices
                .pick(&[(1, 1), (1, 2), (0, 1), (-1, 1), (2, 1), (1, 10), (100, 1)]),
            1 => (self.choices.below(9) as i64 - 4, 1),
            // Coprime, as a Fraction keeps them.
            _ => (
                2 * self.choices.below(1 << 20) as i64 + 1,
                1 << self.choices.below(40),
            ),
        };
        // One str up to CPython 3.10, a pair since.
        if self.choices.one_in(3) {
            let text = match denominator {
                1 => numerator.to_string(),
                _ => format!("{numerator}/{denominator}"),
            };
            self.call("fractions", "Fraction", true, 1, |writer| {
                writer.text(&text)
            });
        } else {
            self.call("fractions", "Fraction", true, 2, |writer| {
                writer.int(numerator);
                writer.int(denominator);
            });
        }
    }

    fn uuid(&mut self) {
        self.new_object("uuid", "UUID", true);
        self.empty_dict();
        let safe = self.choices.below(4);
        let small = self.choices.one_in(3);
        self.entries(if safe == 0 { 1 } else { 2 }, |writer, at| {
            if at == 0 {
                writer.text("int");
                if small {
                    let value = writer.choices.below(3) as i64;
                    writer.int(value);
                } else {
                    let mut bytes = writer.choices.raw(16);
                    bytes.push(0);
                    writer.big_int(&bytes);
                }
            } else {
                writer.text("is_safe");
                match safe {
                    1 => writer.int(0),
                    2 => writer.int(-1),
                    // Older picklers also wrote what is unknown.
                    _ => writer.op(op::NONE),
                }
            }
        });
        self.op(op::BUILD);
    }

    fn path(&mut self) {
        let module = self.pathlib;
        let (name, parts) = match self.choices.below(4) {
            0 | 1 => ("PurePosixPath", self.choices.pick(POSIX)),
            2 => ("PosixPath", self.choices.pick(POSIX)),
            _ => ("PureWindowsPath", self.choices.pick(WINDOWS)),
        };
        self.call(module, name, true, parts.len(), |writer| {
            for part in parts {
                writer.text(part);
            }
        });
    }

    fn global_as_value(&mut self) {
        let (module, name) = match self.choices.below(12) {
            0 if self.scope.numpy => self.choices.pick(NUMPY_GLOBALS),
            _ => self.choices.pick(GLOBALS),
        };
        let module = match module {
            "pathlib" => self.pathlib,
            "numpy._core.multiarray" => self.multiarray,
            module => module,
        };
        self.global(module, name);
    }

    fn ordered_dict(&mut self, depth: usize) -> bool {
        let count = self.choices.below(4).min(self.budget);
        if self.protocol <= 2 && self.choices.one_in(3) {
            // CPython 2.7: a list of pairs.
            self.call("collections", "OrderedDict", false, 1, |writer| {
                writer.empty_list();
                for _ in 0..count {
                    writer.empty_list();
                    writer.op(op::MARK);
                    writer.key(depth + 1);
                    writer.value(depth + 1);
                    writer.op(op::APPENDS);
                    writer.op(op::APPEND);
                }
            });
        } else {
            self.call("collections", "OrderedDict", false, 0, |_| {});
            self.set_items(count, depth);
        }
        if self.choices.one_in(8) {
            self.attributes(depth);
        }
        false
    }

    /// BUILD with a dict of attributes.
    pub(super) fn attributes(&mut self, depth: usize) {
        self.empty_dict();
        let count = 1 + self.choices.below(2);
        let name = self.choices.word();
        self.entries(count, |writer, at| {
            writer.text(if at == 0 { name } else { "attribute" });
            writer.value(depth + 1);
        });
        self.op(op::BUILD);
    }

    fn counter(&mut self, depth: usize) -> bool {
        let count = self.choices.below(4).min(self.budget);
        self.call("collections", "Counter", false, 1, |writer| {
            writer.empty_dict();
            writer.entries(count, |writer, _| {
                writer.key(depth + 1);
                if writer.choices.one_in(6) {
                    writer.value(depth + 1);
                } else {
                    writer.any_int();
                }
            });
        });
        if self.choices.one_in(8) {
            self.attributes(depth);
        }
        false
    }

    fn default_dict(&mut self, depth: usize) -> bool {
        let factory = self.choices.below(4);
        let known = factory > 0 && self.may_name("builtins");
        self.call(
            "collections",
            "defaultdict",
            false,
            usize::from(known),
            |writer| {
                if known {
                    let name = writer
                        .choices
                        .pick(&["list", "int", "dict", "set", "str", "float"]);
                    match factory {
                        3 => writer.global("collections", "Counter"),
                        _ => writer.global("builtins", name),
                    }
                }
            },
        );
        let count = self.choices.below(4).min(self.budget);
        self.set_items(count, depth);
        false
    }

    fn deque(&mut self, depth: usize) -> bool {
        let count = self.choices.below(5).min(self.budget);
        let bounded = self.choices.one_in(3);
        // Mostly as long as the bound allows, as a deque is; sometimes the bound drops the first.
        let maxlen = match self.choices.below(4) {
            0 => count as i64,
            1 => 1000,
            2 => (count / 2) as i64,
            _ => count as i64 + 1,
        };
        if self.protocol <= 2 && self.choices.one_in(3) {
            // CPython 2.7: the items as a list.
            self.call(
                "collections",
                "deque",
                false,
                1 + usize::from(bounded),
                |writer| {
                    writer.empty_list();
                    writer.appends(count, depth);
                    if bounded {
                        writer.int(maxlen);
                    }
                },
            );
            return false;
        }
        let arguments = if bounded { 2 } else { 0 };
        self.call("collections", "deque", false, arguments, |writer| {
            if bounded {
                let marked = writer.open_tuple(0);
                writer.close_tuple(0, marked, true);
                writer.int(maxlen);
            }
        });
        self.appends(count, depth);
        false
    }

    fn record(&mut self, depth: usize) -> bool {
        let (module, name, fields, slots) = self.choices.pick(RECORDS);
        self.new_object(module, name, false);
        let write = |writer: &mut Self| {
            writer.empty_dict();
            writer.entries(fields.len(), |writer, at| {
                writer.text(fields[at]);
                match writer.choices.below(3) {
                    0 => writer.any_int(),
                    1 => writer.any_str(),
                    _ => {
                        writer.value(depth + 1);
                    }
                }
            });
        };
        if slots {
            // The state of slots is a pair: what is in the `__dict__`, and the slots.
            let marked = self.open_tuple(2);
            self.op(op::NONE);
            write(self);
            self.close_tuple(2, marked, false);
        } else {
            write(self);
        }
        self.op(op::BUILD);
        false
    }
}
