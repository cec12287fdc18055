//! Names that the decoder knows the meaning of. Each is spelled here and nowhere else.

use super::types::exception::ExceptionClass;
use super::types::path::PathClass;
use super::types::record::Framework;

/// A class or function whose calls the decoder carries out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Known {
    Complex,
    Range,
    Slice,
    Bytearray,
    Frozenset,
    Set,
    List,
    Dict,
    Tuple,
    Bytes,
    Str,
    Int,
    Float,
    Bool,
    Exception(ExceptionClass),
    Date,
    Time,
    Datetime,
    Timedelta,
    Timezone,
    Decimal,
    Fraction,
    Uuid,
    OrderedDict,
    DefaultDict,
    Counter,
    Deque,
    /// `None` for `Path` and `PurePath`, which stand for the class of the platform.
    Path(Option<PathClass>),
    PurePath,
    Framework(Framework),
    Reconstructor,
    NewObj,
    NewObjEx,
    Ndarray,
    Dtype,
    NumpyReconstruct,
    // Beyond the policy of the protocol:
    NumpyScalar,
    NumpyFromBuffer,
    CodecsEncode,
}

impl Known {
    /// Looks a name up, exactly as it stands in the stream.
    pub(super) fn find(module: &[u8], qualname: &[u8]) -> Option<Self> {
        Some(match (module, qualname) {
            (b"builtins", b"complex") => Self::Complex,
            (b"builtins", b"range") => Self::Range,
            (b"builtins", b"slice") => Self::Slice,
            (b"builtins", b"bytearray") => Self::Bytearray,
            (b"builtins", b"frozenset") => Self::Frozenset,
            (b"builtins", b"set") => Self::Set,
            (b"builtins", b"list") => Self::List,
            (b"builtins", b"dict") => Self::Dict,
            (b"builtins", b"tuple") => Self::Tuple,
            (b"builtins", b"bytes") => Self::Bytes,
            (b"builtins", b"str") => Self::Str,
            (b"builtins", b"int") => Self::Int,
            (b"builtins", b"float") => Self::Float,
            (b"builtins", b"bool") => Self::Bool,
            (b"builtins", name) => Self::Exception(ExceptionClass::from_name(name)?),
            (b"datetime", b"date") => Self::Date,
            (b"datetime", b"time") => Self::Time,
            (b"datetime", b"datetime") => Self::Datetime,
            (b"datetime", b"timedelta") => Self::Timedelta,
            (b"datetime", b"timezone") => Self::Timezone,
            (b"decimal", b"Decimal") => Self::Decimal,
            (b"fractions", b"Fraction") => Self::Fraction,
            (b"uuid", b"UUID") => Self::Uuid,
            (b"collections", b"OrderedDict") => Self::OrderedDict,
            (b"collections", b"defaultdict") => Self::DefaultDict,
            (b"collections", b"Counter") => Self::Counter,
            (b"collections", b"deque") => Self::Deque,
            (b"pathlib" | b"pathlib._local", name) => match name {
                b"PurePath" => Self::PurePath,
                b"PurePosixPath" => Self::Path(Some(PathClass::PurePosixPath)),
                b"PureWindowsPath" => Self::Path(Some(PathClass::PureWindowsPath)),
                b"Path" => Self::Path(None),
                b"PosixPath" => Self::Path(Some(PathClass::PosixPath)),
                b"WindowsPath" => Self::Path(Some(PathClass::WindowsPath)),
                _ => return None,
            },
            (b"copyreg", b"_reconstructor") => Self::Reconstructor,
            (b"copyreg", b"__newobj__") => Self::NewObj,
            (b"copyreg", b"__newobj_ex__") => Self::NewObjEx,
            (b"numpy", b"ndarray") => Self::Ndarray,
            (b"numpy", b"dtype") => Self::Dtype,
            (b"numpy._core.multiarray" | b"numpy.core.multiarray", name) => match name {
                b"_reconstruct" => Self::NumpyReconstruct,
                b"scalar" => Self::NumpyScalar,
                _ => return None,
            },
            (b"numpy._core.numeric" | b"numpy.core.numeric", b"_frombuffer") => {
                Self::NumpyFromBuffer
            }
            (b"_codecs", b"encode") => Self::CodecsEncode,
            _ => Self::Framework(Framework::find(module, qualname)?),
        })
    }

    /// Whether the policy of the protocol leaves it out.
    pub(super) fn is_extra(self) -> bool {
        matches!(
            self,
            Self::NumpyScalar | Self::NumpyFromBuffer | Self::CodecsEncode
        )
    }

    /// Whether it is a function and not a class.
    pub(super) fn is_function(self) -> bool {
        matches!(
            self,
            Self::Reconstructor
                | Self::NewObj
                | Self::NewObjEx
                | Self::NumpyReconstruct
                | Self::NumpyScalar
                | Self::NumpyFromBuffer
                | Self::CodecsEncode
        )
    }
}
