//! The kinds of values.

use std::fmt;

/// The kind of a value: its Python type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `None`.
    None,
    /// `bool`.
    Bool,
    /// `int`, of any size.
    Int,
    /// `float`.
    Float,
    /// `str`.
    Str,
    /// `bytes`.
    Bytes,
    /// `bytearray`.
    Bytearray,
    /// `list`.
    List,
    /// `tuple`.
    Tuple,
    /// `dict`.
    Dict,
    /// `set`.
    Set,
    /// `frozenset`.
    Frozenset,
    /// `complex`.
    Complex,
    /// `range`.
    Range,
    /// `slice`.
    Slice,
    /// `datetime.date`.
    Date,
    /// `datetime.time`.
    Time,
    /// `datetime.datetime`.
    Datetime,
    /// `datetime.timedelta`.
    Timedelta,
    /// `datetime.timezone`.
    Timezone,
    /// `decimal.Decimal`.
    Decimal,
    /// `fractions.Fraction`.
    Fraction,
    /// `uuid.UUID`.
    Uuid,
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `collections.Counter`.
    Counter,
    /// `collections.defaultdict`.
    DefaultDict,
    /// `collections.deque`.
    Deque,
    /// A path of `pathlib`.
    Path,
    /// An exception of the builtins.
    Exception,
    /// `numpy.dtype`.
    Dtype,
    /// `numpy.ndarray`.
    Ndarray,
    /// A scalar of numpy.
    NumpyScalar,
    /// A class or function as a value.
    Global,
    /// An object of a class that the decoder knows by name only, or a result record of the framework.
    Record,
}

impl Kind {
    /// The name of the Python type.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Bytes => "bytes",
            Self::Bytearray => "bytearray",
            Self::List => "list",
            Self::Tuple => "tuple",
            Self::Dict => "dict",
            Self::Set => "set",
            Self::Frozenset => "frozenset",
            Self::Complex => "complex",
            Self::Range => "range",
            Self::Slice => "slice",
            Self::Date => "date",
            Self::Time => "time",
            Self::Datetime => "datetime",
            Self::Timedelta => "timedelta",
            Self::Timezone => "timezone",
            Self::Decimal => "Decimal",
            Self::Fraction => "Fraction",
            Self::Uuid => "UUID",
            Self::OrderedDict => "OrderedDict",
            Self::Counter => "Counter",
            Self::DefaultDict => "defaultdict",
            Self::Deque => "deque",
            Self::Path => "path",
            Self::Exception => "exception",
            Self::Dtype => "dtype",
            Self::Ndarray => "ndarray",
            Self::NumpyScalar => "numpy scalar",
            Self::Global => "class or function",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
