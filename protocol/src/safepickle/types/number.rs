//! Numbers beyond int and float: complex and Fraction.

use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use super::super::arena::{Arena, Bytes, Node, NodeId};
use super::super::construct::{Args, How};
use super::super::error::Malformed;
use super::super::known::Known;
use super::super::limits::LimitKind;
use super::super::machine::{Machine, Step};
use super::super::text::{self, IntText};
use super::super::value::Value;

/// A `complex`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex {
    /// The real part.
    pub re: f64,
    /// The imaginary part.
    pub im: f64,
}

/// A `fractions.Fraction`, in lowest terms.
///
/// `Display` gives what `str()` gives in Python; it takes time quadratic in the digits, and so does
/// decoding: under the default limits there is work enough for some 2,400 digits above and below each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction<'d> {
    /// An int.
    pub numerator: Value<'d>,
    /// An int above zero.
    pub denominator: Value<'d>,
}

impl fmt::Display for Fraction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both are ints.
        let int = |value: Value<'_>| value.as_big_int().map(std::borrow::Cow::into_owned);
        write!(f, "{}", int(self.numerator).unwrap_or_default())?;
        match self.denominator.as_i64() {
            Some(1) => Ok(()),
            _ => write!(f, "/{}", int(self.denominator).unwrap_or_default()),
        }
    }
}

impl<'d> Value<'d> {
    /// The value of a complex.
    pub fn as_complex(self) -> Option<Complex> {
        match self.node() {
            Node::Complex(index) => {
                let [re, im] = self.arena().complexes[index as usize];
                Some(Complex { re, im })
            }
            _ => None,
        }
    }

    /// A Fraction.
    pub fn fraction(self) -> Option<Fraction<'d>> {
        match self.node() {
            Node::Fraction {
                numerator,
                denominator,
            } => Some(Fraction {
                numerator: self.at(numerator),
                denominator: self.at(denominator),
            }),
            _ => None,
        }
    }
}

impl Machine<'_, '_> {
    /// Calls a class of numbers, in the ways that picklers write.
    pub(in super::super) fn number(&mut self, known: Known, how: How, args: Args) -> Step<NodeId> {
        if how != How::Call {
            return Err(Malformed::Arguments.into());
        }
        let nodes: Vec<Node> = match args.len() {
            1 | 2 => args.ids(&self.arena).iter(),
            _ => return Err(Malformed::Arguments.into()),
        }
        .map(|id| self.arena.node(*id))
        .collect();
        match (known, nodes.as_slice()) {
            (Known::Complex, [Node::Float(re), Node::Float(im)]) => {
                self.room()?;
                self.arena
                    .push_complex([*re, *im])
                    .map_err(|full| self.full(full))
            }
            (Known::Decimal, [Node::Str(text)]) => self.decimal_text(*text),
            (Known::Fraction, [Node::Str(text)]) => self.fraction_text(*text),
            (
                Known::Fraction,
                [
                    Node::Int(_) | Node::BigInt(_),
                    Node::Int(_) | Node::BigInt(_),
                ],
            ) => {
                let [numerator, denominator] = args.exactly(&self.arena)?;
                self.fraction(numerator, denominator)
            }
            _ => Err(Malformed::Arguments.into()),
        }
    }

    /// `3/4` or `3`: how older versions write a Fraction.
    fn fraction_text(&mut self, bytes: Bytes) -> Step<NodeId> {
        self.charge(u64::from(bytes.len) / 32)?;
        let text = self.arena.bytes(bytes).to_vec();
        let mut parts = text.splitn(2, |byte| *byte == b'/');
        let numerator = self.int_of_text(parts.next().unwrap_or_default())?;
        let denominator = match parts.next() {
            // A sign may only stand in front.
            Some([b'-' | b'+', ..]) => return Err(Malformed::Arguments.into()),
            Some(digits) => self.int_of_text(digits)?,
            None => self.make(Node::Int(1))?,
        };
        self.fraction(numerator, denominator)
    }

    fn int_of_text(&mut self, text: &[u8]) -> Step<NodeId> {
        let limit = self.limits.integer_digits;
        match text::int(text, limit).map_err(|_| Malformed::Arguments)? {
            IntText::Small(value) => self.make(Node::Int(value)),
            IntText::Big(value) => {
                // Reading digits is quadratic.
                let words = value.bits() / 64;
                self.charge(words * words / 16)?;
                self.make_big_int(value)
            }
            IntText::TooLong(digits) => Err(self.over(LimitKind::IntegerDigits, limit, digits)),
        }
    }

    /// A Fraction of two ints, brought into lowest terms.
    fn fraction(&mut self, numerator: NodeId, denominator: NodeId) -> Step<NodeId> {
        let small = |id| match self.arena.node(id) {
            Node::Int(int) => Some(i128::from(int)),
            // Far enough from its bounds for whatever is done below.
            Node::BigInt(index) => Some(&self.arena.big_ints[index as usize])
                .filter(|int| int.bits() < 127)?
                .to_i128(),
            _ => None,
        };
        let (Some(n), Some(d)) = (small(numerator), small(denominator)) else {
            return self.big_fraction(numerator, denominator);
        };
        if d == 0 {
            return Err(Malformed::Arguments.into());
        }
        let divisor = n.gcd(&d) * d.signum();
        if divisor == 1 {
            return self.make(Node::Fraction {
                numerator,
                denominator,
            });
        }
        let numerator = self.make_big_int(BigInt::from(n / divisor))?;
        let denominator = self.make_big_int(BigInt::from(d / divisor))?;
        self.make(Node::Fraction {
            numerator,
            denominator,
        })
    }

    fn big_fraction(&mut self, numerator: NodeId, denominator: NodeId) -> Step<NodeId> {
        let (n, d) = (
            big_int(&self.arena, numerator),
            big_int(&self.arena, denominator),
        );
        if d.is_zero() {
            return Err(Malformed::Arguments.into());
        }
        // A division, then the binary algorithm on what is no larger than the denominator.
        let (n_words, d_words) = (n.bits() / 64 + 1, d.bits() / 64 + 1);
        self.charge(n_words.saturating_mul(d_words) / 4)?;
        let rest = &n % &d;
        let divisor = if rest.is_zero() {
            d.clone()
        } else {
            let steps = d_words.saturating_add(4).saturating_mul(d_words);
            self.charge(steps.saturating_mul(4))?;
            rest.gcd(&d) * d.signum()
        };
        let one = BigInt::from(1);
        if divisor == one {
            return self.make(Node::Fraction {
                numerator,
                denominator,
            });
        }
        self.charge(n_words.saturating_mul(d_words) / 2 + 2 * (n_words + d_words))?;
        let numerator = self.make_big_int(n / &divisor)?;
        let denominator = self.make_big_int(d / &divisor)?;
        self.make(Node::Fraction {
            numerator,
            denominator,
        })
    }
}

/// The value of an int, or zero.
fn big_int(arena: &Arena<'_>, id: NodeId) -> BigInt {
    match arena.node(id) {
        Node::Int(value) => BigInt::from(value),
        Node::BigInt(index) => arena.big_ints[index as usize].clone(),
        _ => BigInt::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Builder, DecodeErrorKind, decode};
    use super::*;

    #[test]
    fn fractions_are_in_lowest_terms() {
        fn fraction(n: impl Into<BigInt>, d: impl Into<BigInt>) -> String {
            let mut builder = Builder::new();
            let fraction = builder.fraction(n, d).unwrap();
            let document = builder.finish(fraction).unwrap();
            document.root().fraction().unwrap().to_string()
        }
        assert_eq!(fraction(0, -5), "0");
        assert_eq!(fraction(i64::MIN, -1), "9223372036854775808");
        assert_eq!(fraction(i64::MIN, i64::MIN), "1");
        assert_eq!(fraction(6, 4), "3/2");
        assert_eq!(
            fraction(i128::MIN, -2),
            BigInt::from(1_u128 << 126).to_string()
        );
        assert_eq!(
            fraction(i128::MIN, i128::MAX),
            format!("-{}/{}", 1_u128 << 127, i128::MAX)
        );
        let big: BigInt = BigInt::from(3) << 500;
        assert_eq!(fraction(-&big, &big * 7), "-1/7");
        assert_eq!(fraction(&big * 7, -&big), "-7");
        assert_eq!(
            fraction(&big + 1, big.clone()),
            format!("{}/{big}", &big + 1)
        );
    }

    #[test]
    fn the_cost_of_lowest_terms_is_bounded() {
        // Two ints of a megabyte each, and nearly no common factor: minutes of work.
        let mut stream = b"\x80\x04cfractions\nFraction\n".to_vec();
        for filler in [0x55, 0x33] {
            stream.extend(b"\x8b\x40\x42\x0f\x00");
            stream.extend(std::iter::repeat_n(filler, 1_000_000));
        }
        stream.extend(b"\x86R.");
        let error = decode(&stream).unwrap_err();
        let limit = LimitKind::WorkSteps;
        assert!(
            matches!(error.kind(), DecodeErrorKind::Limit { limit: found, .. } if *found == limit)
        );
    }
}
