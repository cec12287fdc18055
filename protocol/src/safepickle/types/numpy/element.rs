//! Elements of arrays as Rust has them.

use super::super::number::Complex;
use super::dtype::{ByteOrder, Dtype, DtypeKind};

mod sealed {
    pub trait Sealed {}
}

/// A type of which elements of an array can be read: `bool`, the integers and floats of Rust of up to
/// 8 bytes, and [`Complex`] for complex numbers of 16 bytes.
///
/// An element is read as what it is and never converted: `f64` reads `f8` and no other floats. As an
/// `i64`, dates and durations can be read too: the count of their
/// [unit](super::Dtype::unit), with `i64::MIN` for none.
pub trait Element: sealed::Sealed + Copy + Sized {
    /// The name of the dtype in numpy, in the byte order that is lowest first.
    const TYPESTR: &'static str;
    /// Bytes of one element.
    const SIZE: usize;

    /// Whether elements of `kind`, [`Element::SIZE`] bytes each, are of this type.
    fn is_of(kind: DtypeKind) -> bool;

    /// Reads an element of [`Element::SIZE`] bytes; `None` for another number of bytes.
    fn read(bytes: &[u8], order: ByteOrder) -> Option<Self>;

    /// Appends an element, the lowest byte first.
    fn write(self, to: &mut Vec<u8>);
}

/// Whether elements of a dtype are of a type.
pub(super) fn fits<T: Element>(dtype: Dtype<'_>) -> bool {
    T::is_of(dtype.kind()) && dtype.itemsize() as usize == T::SIZE
}

macro_rules! numbers {
    ($($type:ty = $typestr:literal, $kinds:pat,)*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const TYPESTR: &'static str = $typestr;
            const SIZE: usize = size_of::<$type>();

            fn is_of(kind: DtypeKind) -> bool {
                matches!(kind, $kinds)
            }

            fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
                let bytes = bytes.try_into().ok()?;
                Some(match order {
                    ByteOrder::Big => Self::from_be_bytes(bytes),
                    ByteOrder::Little | ByteOrder::NotApplicable => Self::from_le_bytes(bytes),
                })
            }

            fn write(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
        }
    )*};
}

numbers! {
    i8 = "|i1", DtypeKind::Int,
    i16 = "<i2", DtypeKind::Int,
    i32 = "<i4", DtypeKind::Int,
    i64 = "<i8", DtypeKind::Int | DtypeKind::Datetime | DtypeKind::Timedelta,
    u8 = "|u1", DtypeKind::Uint,
    u16 = "<u2", DtypeKind::Uint,
    u32 = "<u4", DtypeKind::Uint,
    u64 = "<u8", DtypeKind::Uint,
    f32 = "<f4", DtypeKind::Float,
    f64 = "<f8", DtypeKind::Float,
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const TYPESTR: &'static str = "|b1";
    const SIZE: usize = 1;

    fn is_of(kind: DtypeKind) -> bool {
        kind == DtypeKind::Bool
    }

    fn read(bytes: &[u8], _: ByteOrder) -> Option<Self> {
        match bytes {
            [byte] => Some(*byte != 0),
            _ => None,
        }
    }

    fn write(self, to: &mut Vec<u8>) {
        to.push(self.into());
    }
}

impl sealed::Sealed for Complex {}

impl Element for Complex {
    const TYPESTR: &'static str = "<c16";
    const SIZE: usize = 16;

    fn is_of(kind: DtypeKind) -> bool {
        kind == DtypeKind::Complex
    }

    fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let (re, im) = bytes.split_at_checked(8)?;
        Some(Self {
            re: f64::read(re, order)?,
            im: f64::read(im, order)?,
        })
    }

    fn write(self, to: &mut Vec<u8>) {
        self.re.write(to);
        self.im.write(to);
    }
}
