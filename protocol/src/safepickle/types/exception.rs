//! Exceptions of the builtins: their classes, arguments, fields and attributes.

use super::super::arena::NodeId;

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

            /// The class that this one is derived from; `None` for `BaseException`.
            pub fn parent(self) -> Option<Self> {
                use ExceptionClass::*;
                match self { $(Self::$name => $parent,)* }
            }

            /// Finds the class of a name. `IOError` and `EnvironmentError` are `OSError`.
            pub(in super::super) fn from_name(name: &[u8]) -> Option<Self> {
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
        std::iter::successors(Some(self), |class| class.parent()).any(|class| class == ancestor)
    }
}

/// What an exception holds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ExceptionData {
    pub(in super::super) class: ExceptionClass,
    /// A tuple.
    pub(in super::super) args: NodeId,
    /// A tuple that is no object of the stream: the class's fields in their order.
    pub(in super::super) fields: NodeId,
    /// A dict that is no object of the stream: instance attributes.
    pub(in super::super) attrs: Option<NodeId>,
}
