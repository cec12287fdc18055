//! Numbers of every kind as Python compares and hashes them: by what they are worth.
//!
//! `1`, `True`, `1.0`, `1+0j`, `Decimal('1.00')` and `Fraction(1, 1)` are one key. Nothing here expands
//! what is only written short, such as `Decimal('1E+999999')`: the cost follows what is stored.

use num_bigint::{BigInt, Sign};
use num_traits::{FromPrimitive, One, Pow};

use super::arena::{Arena, Node, NodeId};
use super::keys::{Budget, KeyError};
use super::types::decimal::DecimalForm;
use super::types::numpy;

/// What hashes are taken modulo: a prime, so that fractions have one too.
const MODULUS: u64 = (1 << 61) - 1;

/// The first int that is too large for an `i64`, as a float.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// An int of any size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Int<'x> {
    Small(i64),
    /// None that an `i64` holds.
    Wide(u64),
    /// None that an `i64` holds.
    Big(&'x BigInt),
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number<'x> {
    Int(Int<'x>),
    /// A float, or a complex without imaginary part, or an infinite Decimal. What is said of ints, floats
    /// and complex numbers goes for numpy's too.
    Float(f64),
    Decimal(Decimal<'x>),
    /// In lowest terms.
    Fraction(Int<'x>, Int<'x>),
}

/// A finite Decimal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal<'x> {
    negative: bool,
    /// Without leading zeros, except for zero itself.
    digits: &'x [u8],
    exponent: i64,
}

impl<'x> Int<'x> {
    pub(super) fn of(arena: &'x Arena<'_>, id: NodeId) -> Option<Self> {
        match arena.node(id) {
            Node::Int(value) => Some(Self::Small(value)),
            Node::BigInt(index) => Some(Self::Big(&arena.big_ints[index as usize])),
            _ => None,
        }
    }

    pub(super) fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Small(x), Self::Small(y)) => x == y,
            (Self::Big(x), Self::Big(y)) => x == y,
            (Self::Wide(x), Self::Wide(y)) => x == y,
            (Self::Wide(x), Self::Big(y)) | (Self::Big(y), Self::Wide(x)) => {
                u64::try_from(y) == Ok(x)
            }
            _ => false,
        }
    }

    fn equals_float(self, float: f64) -> bool {
        match self {
            Self::Small(int) => {
                (-TWO_63..TWO_63).contains(&float) && float.trunc() == float && float as i64 == int
            }
            // 2^64 is the first float that is too large, and is what the largest would become.
            Self::Wide(int) => {
                float < 2.0 * TWO_63 && float as u64 == int && float.trunc() == float
            }
            // `from_f64` drops a fraction, but floats this large have none, and no int here is small.
            Self::Big(int) => {
                int.bits() <= 1024 && BigInt::from_f64(float).is_some_and(|whole| whole == *int)
            }
        }
    }

    /// How many bits its absolute value has.
    pub(super) fn bits(self) -> u64 {
        match self {
            Self::Small(int) => u64::from(64 - int.unsigned_abs().leading_zeros()),
            Self::Wide(_) => 64,
            Self::Big(int) => int.bits(),
        }
    }

    pub(super) fn to_big(self) -> BigInt {
        match self {
            Self::Small(int) => BigInt::from(int),
            Self::Wide(int) => BigInt::from(int),
            Self::Big(int) => int.clone(),
        }
    }

    fn residue(self) -> u64 {
        match self {
            // The modulus fits, and so does what is left.
            Self::Small(int) => int.rem_euclid(MODULUS as i64) as u64,
            Self::Wide(int) => int % MODULUS,
            Self::Big(int) => {
                // 2^64 is 8 modulo the modulus.
                let digits = int.magnitude().iter_u64_digits().rev();
                let residue = digits.fold(0, |residue, digit| {
                    reduce(u128::from(residue) * 8 + u128::from(digit))
                });
                signed(int.sign() == Sign::Minus, residue)
            }
        }
    }
}

impl<'x> Number<'x> {
    /// The number that a value is, if it is one. A Decimal NaN is none, and nor is a complex with an
    /// imaginary part.
    pub(super) fn of(arena: &'x Arena<'_>, id: NodeId) -> Option<Self> {
        Some(match arena.node(id) {
            Node::Bool(value) => Self::Int(Int::Small(i64::from(value))),
            Node::Int(value) => Self::Int(Int::Small(value)),
            Node::BigInt(index) => Self::Int(Int::Big(&arena.big_ints[index as usize])),
            Node::Float(value) => Self::Float(value),
            Node::Complex(index) => match arena.complexes[index as usize] {
                [re, 0.0] => Self::Float(re),
                _ => return None,
            },
            Node::Decimal(index) => {
                let data = arena.decimals[index as usize];
                match data.form {
                    DecimalForm::Finite => Self::Decimal(Decimal {
                        negative: data.negative,
                        digits: arena.bytes(data.digits),
                        exponent: data.exponent,
                    }),
                    DecimalForm::Infinite if data.negative => Self::Float(f64::NEG_INFINITY),
                    DecimalForm::Infinite => Self::Float(f64::INFINITY),
                    DecimalForm::Nan | DecimalForm::SignalingNan => return None,
                }
            }
            Node::Fraction {
                numerator,
                denominator,
            } => Self::Fraction(Int::of(arena, numerator)?, Int::of(arena, denominator)?),
            Node::Object(_) => return numpy::number(arena, id),
            _ => return None,
        })
    }

    /// What is left of it modulo a prime, the same for equal numbers; [`MODULUS`] for what has no such
    /// rest: infinity, NaN, and fractions with the prime in their denominator.
    pub(super) fn residue(self) -> u64 {
        match self {
            Self::Int(int) => int.residue(),
            Self::Float(float) if float.is_finite() => {
                let (negative, mantissa, exponent) = split(float);
                // 2^61 is 1.
                let power = 1 << exponent.rem_euclid(61);
                signed(negative, multiply(reduce(u128::from(mantissa)), power))
            }
            Self::Float(_) => MODULUS,
            Self::Decimal(decimal) => decimal.residue(),
            Self::Fraction(numerator, denominator) => match denominator.residue() {
                0 => MODULUS,
                // By Fermat, this is one divided by the denominator.
                rest => multiply(numerator.residue(), power(rest, MODULUS - 2)),
            },
        }
    }

    /// Whether two numbers are worth the same.
    pub(super) fn equals(self, other: Self, budget: &mut Budget) -> Result<bool, KeyError> {
        Ok(match (self, other) {
            (Self::Int(x), Self::Int(y)) => x.equals(y),
            (Self::Float(x), Self::Float(y)) => x == y,
            (Self::Int(int), Self::Float(float)) | (Self::Float(float), Self::Int(int)) => {
                int.equals_float(float)
            }
            (Self::Fraction(n, d), Self::Fraction(m, e)) => d.equals(e) && n.equals(m),
            (Self::Fraction(n, d), Self::Int(int)) | (Self::Int(int), Self::Fraction(n, d)) => {
                d.equals(Int::Small(1)) && n.equals(int)
            }
            (Self::Fraction(n, d), Self::Float(float))
            | (Self::Float(float), Self::Fraction(n, d)) => {
                // The denominator of a float is a power of two, 2^1074 at most.
                float.is_finite() && d.bits() <= 1075 && n.bits() <= 1024 && {
                    let (m, e) = ratio(float);
                    n.to_big() == m && d.to_big() == e
                }
            }
            (Self::Decimal(x), Self::Decimal(y)) => x.equals(y, budget)?,
            (Self::Decimal(decimal), Self::Int(int)) | (Self::Int(int), Self::Decimal(decimal)) => {
                decimal.equals_ratio(int, Int::Small(1), budget)?
            }
            (Self::Decimal(decimal), Self::Fraction(n, d))
            | (Self::Fraction(n, d), Self::Decimal(decimal)) => {
                decimal.equals_ratio(n, d, budget)?
            }
            (Self::Decimal(decimal), Self::Float(float))
            | (Self::Float(float), Self::Decimal(decimal)) => {
                if !float.is_finite() {
                    return Ok(false);
                }
                let (n, d) = ratio(float);
                let int = |big: &'_ BigInt| i64::try_from(big).ok();
                let (small_n, small_d) = (int(&n), int(&d));
                decimal.equals_ratio(
                    small_n.map_or(Int::Big(&n), Int::Small),
                    small_d.map_or(Int::Big(&d), Int::Small),
                    budget,
                )?
            }
        })
    }
}

impl Decimal<'_> {
    fn is_zero(self) -> bool {
        self.digits == b"0"
    }

    /// Where its point would stand: it is below ten to the power of this, but not below a tenth of
    /// that. Of no meaning for zero.
    fn magnitude(self) -> i64 {
        // Both are within the bounds of a Decimal.
        self.exponent + self.digits.len() as i64
    }

    fn residue(self) -> u64 {
        let mut rest = 0;
        for chunk in self.digits.chunks(18) {
            let digits = chunk
                .iter()
                .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
            let scale = 10_u64.pow(chunk.len() as u32);
            rest = reduce(u128::from(rest) * u128::from(scale) + u128::from(digits));
        }
        // By Fermat, exponents may be taken modulo one less than the modulus.
        let exponent = self.exponent.rem_euclid(MODULUS as i64 - 1) as u64;
        signed(self.negative, multiply(rest, power(10, exponent)))
    }

    fn equals(self, other: Self, budget: &mut Budget) -> Result<bool, KeyError> {
        if self.is_zero() || other.is_zero() {
            return Ok(self.is_zero() && other.is_zero());
        }
        if self.negative != other.negative || self.magnitude() != other.magnitude() {
            return Ok(false);
        }
        budget.charge((self.digits.len() + other.digits.len()) as u64 / 32)?;
        let common = self.digits.len().min(other.digits.len());
        let rests = self.digits[common..].iter().chain(&other.digits[common..]);
        Ok(
            self.digits[..common] == other.digits[..common] && { rests }
                .all(|digit| *digit == b'0'),
        )
    }

    /// Whether it is worth a fraction in lowest terms, the lower above zero.
    fn equals_ratio(self, n: Int<'_>, d: Int<'_>, budget: &mut Budget) -> Result<bool, KeyError> {
        let negative = match n {
            Int::Small(0) => return Ok(self.is_zero()),
            Int::Small(int) => int < 0,
            Int::Wide(_) => false,
            Int::Big(int) => int.sign() == Sign::Minus,
        };
        if self.is_zero() || self.negative != negative {
            return Ok(false);
        }
        // The fraction lies between two to the power of `low` and of `high`; if that is apart from
        // where the Decimal lies, the two differ, and if not, they are of about one size.
        let difference = i128::from(n.bits()) - i128::from(d.bits());
        let (low, high) = (difference - 1, difference + 1);
        let magnitude = i128::from(self.magnitude());
        if log2_of_10_power(magnitude).1 <= low * 10_000
            || high * 10_000 <= log2_of_10_power(magnitude - 1).0
        {
            return Ok(false);
        }
        budget.charge(self.digits.len() as u64 / 32)?;
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == b'0');
        let zeros = zeros.count();
        let digits = &self.digits[..self.digits.len() - zeros];
        // Both are within the bounds of a Decimal.
        let exponent = self.exponent + zeros as i64;
        let (up, down) = if exponent >= 0 {
            if !d.equals(Int::Small(1)) {
                return Ok(false);
            }
            (exponent.unsigned_abs(), 0)
        } else {
            // The lower of `digits / 10^down` in lowest terms has that power of 2 or of 5 in full.
            let down = exponent.unsigned_abs();
            let power_of_two = d.to_power_of_two();
            if down >= d.bits() || power_of_two.is_some_and(|power| power != down) {
                return Ok(false);
            }
            (0, down)
        };
        // Neither power is much larger than what it is compared with.
        let words = (n.bits() + d.bits() + 4 * (up + down)) / 64 + 1;
        budget.charge(words.saturating_mul(words) / 8 + words)?;
        let Some(number) = BigInt::parse_bytes(digits, 10) else {
            return Ok(false);
        };
        let ten = BigInt::from(10);
        let left = number * Pow::pow(&ten, up) * d.to_big();
        let right = BigInt::from(n.to_big().magnitude().clone()) * Pow::pow(&ten, down);
        Ok(left == right)
    }
}

impl Int<'_> {
    /// Which power of two it is.
    fn to_power_of_two(self) -> Option<u64> {
        let zeros = match self {
            Self::Small(int) => u64::from(int.trailing_zeros()),
            Self::Wide(int) => u64::from(int.trailing_zeros()),
            Self::Big(int) => int.trailing_zeros()?,
        };
        (zeros + 1 == self.bits()).then_some(zeros)
    }
}

/// Bounds, from below and above, of ten thousand times the logarithm of a power of ten to base 2.
fn log2_of_10_power(power: i128) -> (i128, i128) {
    let (one, other) = (power * 33_219, power * 33_220);
    (one.min(other), one.max(other))
}

/// The sign, mantissa and exponent of a finite float.
fn split(float: f64) -> (bool, u64, i32) {
    let bits = float.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    // Eleven bits.
    match (bits >> 52 & 0x7ff) as i32 {
        0 => (float.is_sign_negative(), fraction, -1074),
        exponent => (
            float.is_sign_negative(),
            fraction | 1 << 52,
            exponent - 1075,
        ),
    }
}

/// A finite float as a fraction in lowest terms.
fn ratio(float: f64) -> (BigInt, BigInt) {
    let (negative, mantissa, exponent) = split(float);
    if mantissa == 0 {
        return (BigInt::ZERO, BigInt::one());
    }
    let zeros = mantissa
        .trailing_zeros()
        .min(exponent.min(0).unsigned_abs());
    let mut numerator = BigInt::from(mantissa >> zeros);
    if negative {
        numerator = -numerator;
    }
    // At most 52 zeros.
    match exponent + zeros as i32 {
        up if up >= 0 => (numerator << up, BigInt::one()),
        down => (numerator, BigInt::one() << -down),
    }
}

fn reduce(value: u128) -> u64 {
    // A product of two residues, or less, is below 2^125; so is what this folds.
    let folded = (value & u128::from(MODULUS)) + (value >> 61);
    let folded = (folded as u64 & MODULUS) + (folded >> 61) as u64;
    if folded >= MODULUS {
        folded - MODULUS
    } else {
        folded
    }
}

fn multiply(x: u64, y: u64) -> u64 {
    reduce(u128::from(x) * u128::from(y))
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut product = 1;
    while exponent != 0 {
        if exponent & 1 == 1 {
            product = multiply(product, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    product
}

fn signed(negative: bool, residue: u64) -> u64 {
    if negative && residue != 0 {
        MODULUS - residue
    } else {
        residue
    }
}
