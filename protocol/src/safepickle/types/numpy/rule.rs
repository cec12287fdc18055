//! What a dtype, an array or a scalar may be.

use thiserror::Error;

/// Which rule of numpy's objects a stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumpyRule {
    /// A dtype is named in a way that numpy does not write.
    #[error("the name of a dtype is not a kind and a size")]
    TypeString,
    /// The state of a dtype is not of a form that numpy writes.
    #[error("the state of a dtype has neither of the two forms that numpy writes")]
    DtypeState,
    /// The byte order does not go with the kind.
    #[error("the byte order does not go with the kind of the dtype")]
    ByteOrder,
    /// The item size is not what the name of the dtype says.
    #[error("the item size is not what the name of the dtype says")]
    Itemsize,
    /// The alignment is none.
    #[error("the alignment does not go with the kind of the dtype")]
    Alignment,
    /// The flags say something else than the dtype, such as that it holds no objects.
    #[error("the flags contradict the dtype")]
    Flags,
    /// The names of a structure and its fields do not go together.
    #[error("names and fields of a structure do not go together")]
    Fields,
    /// A field lies outside of the item.
    #[error("a field lies outside of the item")]
    FieldOffset,
    /// Fields that hold objects overlap.
    #[error("fields of a structure that holds objects overlap")]
    FieldOverlap,
    /// A subarray is not as large as the item.
    #[error("a subarray is not as large as the item")]
    Subarray,
    /// Dtypes are nested in each other too deeply.
    #[error("dtypes are nested in each other more than 32 deep")]
    Depth,
    /// The unit of dates or durations is none.
    #[error("the unit of a date or a duration is none")]
    Unit,
    /// What must be a dtype is none, or one that has not got its state.
    #[error("a dtype is missing, or has not got its state")]
    NoDtype,
    /// The dtype cannot be that of an array or scalar.
    #[error("a dtype cannot be that of this object")]
    WrongDtype,
    /// An array is to be made in a way that numpy does not write.
    #[error("the array is not made in a way that numpy writes")]
    Reconstruct,
    /// The state of an array is not of the form that numpy writes.
    #[error("the state of an array does not have the form that numpy writes")]
    ArrayState,
    /// The shape is none, or is of more elements than there can be.
    #[error("the shape of an array is none, or is too large")]
    Shape,
    /// The order of the axes is none.
    #[error("the order of the axes of an array is none")]
    Order,
    /// There are more or fewer bytes or objects than the shape says.
    #[error("there is not as much data as the shape of the array says")]
    Size,
    /// The data is neither bytes nor a list of objects, or not the one that the dtype asks for.
    #[error("the data of an array or scalar is not of the form that its dtype asks for")]
    Data,
    /// An element of an array of structures does not go with the dtype.
    #[error("an element does not go with the dtype of its array")]
    Item,
}
