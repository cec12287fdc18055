//! Exceptions, as the picklers of CPython write them: class, arguments, and attributes if there are any.

use super::op;
use super::writer::Writer;

/// Classes that keep nothing apart from their arguments, or only what follows from those.
const PLAIN: &[&str] = &[
    "ValueError",
    "BaseException",
    "Exception",
    "ArithmeticError",
    "AssertionError",
    "BufferError",
    "EOFError",
    "FloatingPointError",
    "GeneratorExit",
    "IndexError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "NotImplementedError",
    "OverflowError",
    "RecursionError",
    "ReferenceError",
    "RuntimeError",
    "StopAsyncIteration",
    "StopIteration",
    "SystemError",
    "SystemExit",
    "TypeError",
    "UnicodeError",
    "ZeroDivisionError",
    "AttributeError",
    "NameError",
    "UnboundLocalError",
    "BytesWarning",
    "DeprecationWarning",
    "EncodingWarning",
    "FutureWarning",
    "ImportWarning",
    "PendingDeprecationWarning",
    "ResourceWarning",
    "RuntimeWarning",
    "SyntaxWarning",
    "UnicodeWarning",
    "UserWarning",
    "Warning",
];

/// `OSError`, the class that each error number makes of it, and two old names for it.
const OS: &[&str] = &[
    "OSError",
    "BlockingIOError",
    "BrokenPipeError",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "FileExistsError",
    "FileNotFoundError",
    "InterruptedError",
    "IsADirectoryError",
    "NotADirectoryError",
    "PermissionError",
    "ProcessLookupError",
    "TimeoutError",
    "EnvironmentError",
    "IOError",
];

impl Writer<'_> {
    /// Writes an exception, which can be hashed: it is equal to itself only.
    pub(super) fn exception(&mut self, depth: usize) -> bool {
        match self.choices.below(11) {
            0..=5 => {
                let name = self.choices.pick(PLAIN);
                let count = self.choices.below(4).min(self.budget);
                self.raised(name, depth, count, |writer, _| {
                    writer.value(depth + 1);
                });
            }
            6 | 7 => self.os_error(depth),
            8 => self.import_error(depth),
            9 => self.syntax_or_unicode(depth),
            _ => self.group(depth),
        }
        true
    }

    /// An exception with its arguments, and attributes now and then.
    fn raised(
        &mut self,
        name: &str,
        depth: usize,
        count: usize,
        mut write: impl FnMut(&mut Self, usize),
    ) {
        self.call("builtins", name, true, count, |writer| {
            for at in 0..count {
                write(writer, at);
            }
        });
        match self.choices.below(8) {
            0 => self.attributes(depth),
            1 => self.state(&["__notes__"], |writer, _| {
                writer.empty_list();
                writer.appends(1, depth);
            }),
            2 if matches!(name, "AttributeError" | "NameError") => {
                // CPython 3.12 and later.
                self.state(&["name"], |writer, _| writer.any_str());
            }
            _ => {}
        }
    }

    /// BUILD with a dict of these names.
    fn state(&mut self, names: &[&str], mut write: impl FnMut(&mut Self, usize)) {
        self.empty_dict();
        self.entries(names.len(), |writer, at| {
            writer.text(names[at]);
            write(writer, at);
        });
        self.op(op::BUILD);
    }

    fn os_error(&mut self, depth: usize) {
        let name = self.choices.pick(OS);
        let count = self.choices.below(6);
        let number = self.choices.pick(&[0, 2, 13, 9999]);
        self.raised(name, depth, count, |writer, at| match at {
            0 => writer.int(number),
            1 => writer.any_str(),
            2 if name == "BlockingIOError" && count == 3 => writer.int(7),
            // The error number of Windows.
            3 => writer.op(op::NONE),
            _ => writer.any_str(),
        });
    }

    fn import_error(&mut self, depth: usize) {
        let name = self.choices.pick(&["ImportError", "ModuleNotFoundError"]);
        let count = self.choices.below(2);
        self.call("builtins", name, true, count, |writer| {
            for _ in 0..count {
                writer.any_str();
            }
        });
        let names = &["name", "path"][..self.choices.below(3)];
        if !names.is_empty() {
            self.state(names, |writer, at| {
                if at == 0 {
                    writer.any_str();
                } else {
                    writer.value(depth + 1);
                }
            });
        }
    }

    fn syntax_or_unicode(&mut self, depth: usize) {
        match self.choices.below(4) {
            0 => {
                let name = self
                    .choices
                    .pick(&["SyntaxError", "IndentationError", "TabError"]);
                let count = self.choices.below(3);
                let details = if self.choices.one_in(2) { 6 } else { 4 };
                self.raised(name, depth, count, |writer, at| {
                    if at == 0 {
                        writer.any_str();
                        return;
                    }
                    let marked = writer.open_tuple(details);
                    for detail in 0..details {
                        match detail {
                            0 | 3 => writer.any_str(),
                            _ => writer.int(detail as i64),
                        }
                    }
                    writer.close_tuple(details, marked, true);
                });
            }
            1 if self.has(3) => {
                let content = self.choices.bytes();
                self.unicode_error("UnicodeDecodeError", depth, |writer| {
                    writer.text("utf-8");
                    writer.bytes(&content);
                });
            }
            2 => self.unicode_error("UnicodeEncodeError", depth, |writer| {
                writer.text("ascii");
                writer.any_str();
            }),
            _ => self.unicode_error("UnicodeTranslateError", depth, Self::any_str),
        }
    }

    /// What was decoded or encoded, where it went wrong, and why.
    fn unicode_error(&mut self, name: &str, depth: usize, mut subject: impl FnMut(&mut Self)) {
        let count = if name == "UnicodeTranslateError" {
            4
        } else {
            5
        };
        self.call("builtins", name, true, count, |writer| {
            subject(writer);
            writer.int(0);
            let end = writer.choices.below(3) as i64;
            writer.int(end);
            writer.text("reason");
        });
        if self.choices.one_in(8) {
            self.attributes(depth);
        }
    }

    fn group(&mut self, depth: usize) {
        let name = self.choices.pick(&["ExceptionGroup", "BaseExceptionGroup"]);
        let count = 1 + self.choices.below(2);
        self.raised(name, depth, 2, |writer, at| {
            if at == 0 {
                writer.any_str();
                return;
            }
            writer.empty_list();
            writer.op(op::MARK);
            // A BaseExceptionGroup of none but Exceptions would become an ExceptionGroup.
            if name == "BaseExceptionGroup" {
                writer.call("builtins", "SystemExit", true, 0, |_| {});
            }
            for _ in 0..count {
                writer.call("builtins", "ValueError", true, 1, |writer| {
                    writer.value(depth + 1);
                });
            }
            writer.op(op::APPENDS);
        });
    }
}
