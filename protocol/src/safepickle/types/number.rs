//! Numbers beyond int and float: complex, Decimal, Fraction.

use super::super::arena::Bytes;

/// A Decimal.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct DecimalData {
    pub(in super::super) negative: bool,
    pub(in super::super) form: DecimalForm,
    /// ASCII digits without leading zeros, except for zero itself; of a NaN its payload, maybe none.
    pub(in super::super) digits: Bytes,
    /// Of a finite number: its value is digits times ten to the power of this.
    pub(in super::super) exponent: i64,
}

/// What a Decimal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecimalForm {
    /// A number.
    Finite,
    /// Infinity.
    Infinite,
    /// Not a number.
    Nan,
    /// Not a number, signaling.
    SignalingNan,
}
