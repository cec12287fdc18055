//! Numbers beyond int and float: complex, Decimal, Fraction.

use std::fmt;
use std::ops::Range;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

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

/// The most that the exponent of a Decimal's first digit can be.
const MAX_ADJUSTED: i64 = 999_999_999_999_999_999;
/// The least that the exponent of a Decimal's last digit can be.
const MIN_EXPONENT: i64 = -1_999_999_999_999_999_997;

/// A `decimal.Decimal`: sign, digits and exponent, as they were written. `1.5` and `1.50` differ here,
/// though not in Python.
///
/// `Display` gives what `str()` gives in Python.
///
/// ```
/// use agentix_protocol::safepickle::decode;
/// let document = decode(b"\x80\x04cdecimal\nDecimal\n\x8c\x05-1.50\x85R.")?;
/// let decimal = document.root().decimal().unwrap();
/// assert_eq!((decimal.digits(), decimal.exponent()), ("150", -2));
/// assert_eq!(decimal.to_string(), "-1.50");
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal<'d> {
    negative: bool,
    form: DecimalForm,
    digits: &'d str,
    exponent: i64,
}

impl<'d> Decimal<'d> {
    pub(in super::super) fn of(arena: &'d Arena<'_>, index: u32) -> Self {
        let data = arena.decimals[index as usize];
        Self {
            negative: data.negative,
            form: data.form,
            // They are ASCII.
            digits: std::str::from_utf8(arena.bytes(data.digits)).unwrap_or_default(),
            exponent: data.exponent,
        }
    }

    /// Whether the sign is minus; zero and NaN have one too.
    pub fn is_negative(self) -> bool {
        self.negative
    }

    /// What it stands for.
    pub fn form(self) -> DecimalForm {
        self.form
    }

    /// Whether it is NaN, signaling or not.
    pub fn is_nan(self) -> bool {
        matches!(self.form, DecimalForm::Nan | DecimalForm::SignalingNan)
    }

    /// The digits of a number, without leading zeros; `0` of zero. Of a NaN its payload, maybe empty;
    /// empty of infinity.
    pub fn digits(self) -> &'d str {
        self.digits
    }

    /// A number is its digits times ten to the power of this. 0 of what is no number.
    pub fn exponent(self) -> i64 {
        self.exponent
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        match self.form {
            DecimalForm::Finite => {}
            DecimalForm::Infinite => return f.write_str("Infinity"),
            DecimalForm::Nan => return write!(f, "NaN{}", self.digits),
            DecimalForm::SignalingNan => return write!(f, "sNaN{}", self.digits),
        }
        // How many digits stand before the point if there is no exponent. Both are within the bounds of
        // a Decimal, so the sum fits.
        let before = self.exponent + self.digits.len() as i64;
        if self.exponent > 0 || before <= -6 {
            let (first, rest) = self.digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}E{:+}", before - 1);
        }
        match usize::try_from(before) {
            // At most the number of digits, since the exponent is not positive.
            Ok(before) if before > 0 => {
                let (whole, fraction) = self.digits.split_at(before);
                let point = if fraction.is_empty() { "" } else { "." };
                write!(f, "{whole}{point}{fraction}")
            }
            // Less than six zeros.
            _ => write!(
                f,
                "0.{:0<1$}{2}",
                "",
                before.unsigned_abs() as usize,
                self.digits
            ),
        }
    }
}

/// What the text of a Decimal says.
pub(in super::super) struct DecimalText {
    pub(in super::super) negative: bool,
    pub(in super::super) form: DecimalForm,
    /// Where the digits are, without leading zeros.
    whole: Range<usize>,
    /// Where more of them are, after a point.
    fraction: Range<usize>,
    pub(in super::super) exponent: i64,
}

impl DecimalText {
    /// Reads what `str()` of a Decimal gives: no blanks, underscores or other digits than ASCII's.
    pub(in super::super) fn parse(text: &[u8]) -> Option<Self> {
        let negative = text.first() == Some(&b'-');
        let mut at = usize::from(negative);
        let special = |form, digits: Range<usize>| Self {
            negative,
            form,
            whole: digits,
            fraction: 0..0,
            exponent: 0,
        };
        let payload = |from| {
            let end = digits_end(text, from);
            (end == text.len()).then(|| zeros_end(text, from..end)..end)
        };
        match &text[at..] {
            b"Infinity" => return Some(special(DecimalForm::Infinite, 0..0)),
            [b'N', b'a', b'N', ..] => return Some(special(DecimalForm::Nan, payload(at + 3)?)),
            [b's', b'N', b'a', b'N', ..] => {
                return Some(special(DecimalForm::SignalingNan, payload(at + 4)?));
            }
            _ => {}
        }
        let whole = at..digits_end(text, at);
        at = whole.end;
        let mut fraction = at..at;
        if text.get(at) == Some(&b'.') {
            fraction = at + 1..digits_end(text, at + 1);
            at = fraction.end;
            if fraction.is_empty() {
                return None;
            }
        }
        if whole.is_empty() {
            return None;
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = text.get(at) {
            // The sign is optional, as where the exponent is an int that was formatted.
            exponent = std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?;
        } else if at != text.len() {
            return None;
        }
        exponent = i64::checked_sub(exponent, i64::try_from(fraction.len()).ok()?)?;
        let mut whole = zeros_end(text, whole.clone())..whole.end;
        if whole.is_empty() {
            fraction.start = zeros_end(text, fraction.clone());
            if fraction.is_empty() {
                // The last zero.
                whole = at - 1..at;
                fraction = at..at;
            }
        }
        let count = i64::try_from(whole.len() + fraction.len()).ok()?;
        let zero = whole.len() == 1 && text[whole.start] == b'0';
        let most = if zero {
            exponent
        } else {
            exponent.checked_add(count - 1)?
        };
        (most <= MAX_ADJUSTED && exponent >= MIN_EXPONENT).then_some(Self {
            negative,
            form: DecimalForm::Finite,
            whole,
            fraction,
            exponent,
        })
    }
}

/// Where the run of digits that begins at `from` ends.
fn digits_end(text: &[u8], from: usize) -> usize {
    let digits = text[from..].iter().take_while(|byte| byte.is_ascii_digit());
    from + digits.count()
}

/// Where the zeros at the start of a run of digits end.
fn zeros_end(text: &[u8], digits: Range<usize>) -> usize {
    let zeros = text[digits.clone()]
        .iter()
        .take_while(|byte| **byte == b'0');
    digits.start + zeros.count()
}

/// A `fractions.Fraction`, in lowest terms.
///
/// `Display` gives what `str()` gives in Python; it takes time quadratic in the digits.
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

    /// A Decimal.
    pub fn decimal(self) -> Option<Decimal<'d>> {
        match self.node() {
            Node::Decimal(index) => Some(Decimal::of(self.arena(), index)),
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

    fn decimal_text(&mut self, bytes: Bytes) -> Step<NodeId> {
        self.charge(u64::from(bytes.len) / 32)?;
        let text = self.arena.bytes(bytes);
        let parsed = DecimalText::parse(text).ok_or(Malformed::Arguments)?;
        // Digits in one piece stay where they are. The offsets are within the text, hence within 32 bits.
        let piece = |range: &Range<usize>| Bytes {
            start: bytes.start + range.start as u32,
            len: range.len() as u32,
            flags: bytes.flags,
        };
        let digits = if parsed.fraction.is_empty() {
            piece(&parsed.whole)
        } else if parsed.whole.is_empty() {
            piece(&parsed.fraction)
        } else {
            let both = [&text[parsed.whole.clone()], &text[parsed.fraction.clone()]].concat();
            self.own(&both, false)?
        };
        self.room()?;
        self.arena
            .push_decimal(DecimalData {
                negative: parsed.negative,
                form: parsed.form,
                digits,
                exponent: parsed.exponent,
            })
            .map_err(|full| self.full(full))
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
        let (n, d) = match (self.arena.node(numerator), self.arena.node(denominator)) {
            (Node::Int(n), Node::Int(d)) => (i128::from(n), i128::from(d)),
            _ => return self.big_fraction(numerator, denominator),
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
            self.charge(d_words.saturating_mul(d_words).saturating_mul(4))?;
            rest.gcd(&d) * d.signum()
        };
        let one = BigInt::from(1);
        if divisor == one {
            return self.make(Node::Fraction {
                numerator,
                denominator,
            });
        }
        self.charge(n_words.saturating_mul(d_words) / 2)?;
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
