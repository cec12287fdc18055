//! The classes of exceptions, and what each holds beside its arguments.

macro_rules! exceptions {
    ($($name:ident = $parent:expr;)*) => {
        /// A class of exceptions that Python 3.11 has built in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the names are Python's")]
        pub enum ExceptionClass { $($name,)* }

        impl ExceptionClass {
            /// The name inside `builtins`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The class that this one is derived from; `None` for `BaseException`. `ExceptionGroup`
            /// is derived from `Exception` as well.
            pub fn parent(self) -> Option<Self> {
                use ExceptionClass::*;
                match self { $(Self::$name => $parent,)* }
            }

            /// Finds the class of a name. `IOError` and `EnvironmentError` are `OSError`.
            pub(in crate::safepickle) fn from_name(name: &[u8]) -> Option<Self> {
                Some(match name {
                    $(name if name == stringify!($name).as_bytes() => Self::$name,)*
                    b"IOError" | b"EnvironmentError" => Self::OSError,
                    _ => return None,
                })
            }
        }
    };
}

exceptions! {
    ArithmeticError = Some(Exception);
    AssertionError = Some(Exception);
    AttributeError = Some(Exception);
    BaseException = None;
    BaseExceptionGroup = Some(BaseException);
    BlockingIOError = Some(OSError);
    BrokenPipeError = Some(ConnectionError);
    BufferError = Some(Exception);
    BytesWarning = Some(Warning);
    ChildProcessError = Some(OSError);
    ConnectionAbortedError = Some(ConnectionError);
    ConnectionError = Some(OSError);
    ConnectionRefusedError = Some(ConnectionError);
    ConnectionResetError = Some(ConnectionError);
    DeprecationWarning = Some(Warning);
    EOFError = Some(Exception);
    EncodingWarning = Some(Warning);
    Exception = Some(BaseException);
    ExceptionGroup = Some(BaseExceptionGroup);
    FileExistsError = Some(OSError);
    FileNotFoundError = Some(OSError);
    FloatingPointError = Some(ArithmeticError);
    FutureWarning = Some(Warning);
    GeneratorExit = Some(BaseException);
    ImportError = Some(Exception);
    ImportWarning = Some(Warning);
    IndentationError = Some(SyntaxError);
    IndexError = Some(LookupError);
    InterruptedError = Some(OSError);
    IsADirectoryError = Some(OSError);
    KeyError = Some(LookupError);
    KeyboardInterrupt = Some(BaseException);
    LookupError = Some(Exception);
    MemoryError = Some(Exception);
    ModuleNotFoundError = Some(ImportError);
    NameError = Some(Exception);
    NotADirectoryError = Some(OSError);
    NotImplementedError = Some(RuntimeError);
    OSError = Some(Exception);
    OverflowError = Some(ArithmeticError);
    PendingDeprecationWarning = Some(Warning);
    PermissionError = Some(OSError);
    ProcessLookupError = Some(OSError);
    RecursionError = Some(RuntimeError);
    ReferenceError = Some(Exception);
    ResourceWarning = Some(Warning);
    RuntimeError = Some(Exception);
    RuntimeWarning = Some(Warning);
    StopAsyncIteration = Some(Exception);
    StopIteration = Some(Exception);
    SyntaxError = Some(Exception);
    SyntaxWarning = Some(Warning);
    SystemError = Some(Exception);
    SystemExit = Some(BaseException);
    TabError = Some(IndentationError);
    TimeoutError = Some(OSError);
    TypeError = Some(Exception);
    UnboundLocalError = Some(NameError);
    UnicodeDecodeError = Some(UnicodeError);
    UnicodeEncodeError = Some(UnicodeError);
    UnicodeError = Some(ValueError);
    UnicodeTranslateError = Some(UnicodeError);
    UnicodeWarning = Some(Warning);
    UserWarning = Some(Warning);
    ValueError = Some(Exception);
    Warning = Some(Exception);
    ZeroDivisionError = Some(ArithmeticError);
}

impl ExceptionClass {
    /// Whether this is `ancestor` or derived from it, as `issubclass` has it.
    pub fn is_subclass_of(self, ancestor: Self) -> bool {
        let second = self == Self::ExceptionGroup && ancestor == Self::Exception;
        second || std::iter::successors(Some(self), |class| class.parent()).any(|up| up == ancestor)
    }
}

/// The fields of an OSError; the last only once characters were written.
const OS_ERROR: &[&str] = &[
    "errno",
    "strerror",
    "filename",
    "filename2",
    "characters_written",
];
pub(super) const SYNTAX_ERROR: &[&str] = &[
    "msg",
    "filename",
    "lineno",
    "offset",
    "text",
    "end_lineno",
    "end_offset",
    "print_file_and_line",
];

/// What the classes that hold more than arguments have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Plain,
    OsError,
    SystemExit,
    StopIteration,
    ImportError,
    SyntaxError,
    NameError,
    AttributeError,
    UnicodeEncode,
    UnicodeDecode,
    UnicodeTranslate,
    Group,
}

impl ExceptionClass {
    pub(super) fn layout(self) -> Layout {
        let layouts = [
            (Self::OSError, Layout::OsError),
            (Self::SystemExit, Layout::SystemExit),
            (Self::StopIteration, Layout::StopIteration),
            (Self::ImportError, Layout::ImportError),
            (Self::SyntaxError, Layout::SyntaxError),
            (Self::NameError, Layout::NameError),
            (Self::AttributeError, Layout::AttributeError),
            (Self::UnicodeEncodeError, Layout::UnicodeEncode),
            (Self::UnicodeDecodeError, Layout::UnicodeDecode),
            (Self::UnicodeTranslateError, Layout::UnicodeTranslate),
            (Self::BaseExceptionGroup, Layout::Group),
        ];
        let found = layouts
            .into_iter()
            .find(|(class, _)| self.is_subclass_of(*class));
        found.map_or(Layout::Plain, |(_, layout)| layout)
    }

    /// The names of what its exceptions hold apart from arguments and attributes, in the order of
    /// [`Exception::fields`](super::Exception::fields).
    pub fn field_names(self) -> &'static [&'static str] {
        match self.layout() {
            Layout::Plain => &[],
            Layout::OsError => OS_ERROR,
            Layout::SystemExit => &["code"],
            Layout::StopIteration => &["value"],
            Layout::ImportError => &["msg", "name", "path"],
            Layout::SyntaxError => SYNTAX_ERROR,
            Layout::NameError => &["name"],
            Layout::AttributeError => &["name", "obj"],
            Layout::UnicodeEncode | Layout::UnicodeDecode => {
                &["encoding", "object", "start", "end", "reason"]
            }
            Layout::UnicodeTranslate => &["object", "start", "end", "reason"],
            Layout::Group => &["message", "exceptions"],
        }
    }

    /// The class that `OSError(errno, ...)` makes on Linux.
    pub(super) fn of_errno(errno: i64) -> Option<Self> {
        Some(match errno {
            1 | 13 => Self::PermissionError,
            2 => Self::FileNotFoundError,
            3 => Self::ProcessLookupError,
            4 => Self::InterruptedError,
            10 => Self::ChildProcessError,
            11 | 114 | 115 => Self::BlockingIOError,
            17 => Self::FileExistsError,
            20 => Self::NotADirectoryError,
            21 => Self::IsADirectoryError,
            32 | 108 => Self::BrokenPipeError,
            103 => Self::ConnectionAbortedError,
            104 => Self::ConnectionResetError,
            110 => Self::TimeoutError,
            111 => Self::ConnectionRefusedError,
            _ => return None,
        })
    }
}
