//! Decimals: what their text says, and how it is written back.

use std::fmt;
use std::ops::Range;

use super::super::arena::{Arena, Bytes, Node, NodeId};
use super::super::error::Malformed;
use super::super::machine::{Machine, Step};
use super::super::value::Value;

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
    /// Reads what `str()` of a Decimal gives, and the same with more zeros or with letters in another case:
    /// no blanks, underscores or other digits than ASCII's.
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
        // Letters may be in either case, as for the exponent.
        let starts_with = |name: &str| {
            let start = text.get(at..at + name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        let rest = &text[at..];
        if rest.eq_ignore_ascii_case(b"Infinity") || rest.eq_ignore_ascii_case(b"Inf") {
            return Some(special(DecimalForm::Infinite, 0..0));
        }
        if starts_with("NaN") {
            return Some(special(DecimalForm::Nan, payload(at + 3)?));
        }
        if starts_with("sNaN") {
            return Some(special(DecimalForm::SignalingNan, payload(at + 4)?));
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

impl<'d> Value<'d> {
    /// A Decimal.
    pub fn decimal(self) -> Option<Decimal<'d>> {
        match self.node() {
            Node::Decimal(index) => Some(Decimal::of(self.arena(), index)),
            _ => None,
        }
    }
}

impl Machine<'_, '_> {
    /// Makes a Decimal of its text.
    pub(super) fn decimal_text(&mut self, bytes: Bytes) -> Step<NodeId> {
        // Each byte is looked at twice, and copied if it has to be.
        self.charge(u64::from(bytes.len) / 16)?;
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
            self.charge(u64::from(bytes.len) / 4)?;
            let text = self.arena.bytes(bytes);
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
}

#[cfg(test)]
mod tests {
    use super::super::super::{Builder, DecodeErrorKind, Document, LimitKind, decode};
    use super::*;

    fn decimal(text: &str) -> Option<Document<'static>> {
        let mut builder = Builder::new();
        let decimal = builder.decimal(text).ok()?;
        builder.finish(decimal).ok()
    }

    #[test]
    fn decimals_are_digits_and_an_exponent() {
        let parts = |text| {
            let document = decimal(text)?;
            let decimal = document.root().decimal()?;
            let digits = decimal.digits().to_owned();
            Some((
                decimal.is_negative(),
                digits,
                decimal.exponent(),
                decimal.to_string(),
            ))
        };
        for (text, negative, digits, exponent, back) in [
            ("0", false, "0", 0, "0"),
            ("-0E+5", true, "0", 5, "-0E+5"),
            ("0.00", false, "0", -2, "0.00"),
            ("0E-7", false, "0", -7, "0E-7"),
            ("0.000000", false, "0", -6, "0.000000"),
            ("1e5", false, "1", 5, "1E+5"),
            ("12.50", false, "1250", -2, "12.50"),
            ("0.0125", false, "125", -4, "0.0125"),
            ("0.000001", false, "1", -6, "0.000001"),
            ("0.0000001", false, "1", -7, "1E-7"),
            ("00120.5", false, "1205", -1, "120.5"),
            ("1.5E+10", false, "15", 9, "1.5E+10"),
            ("-Infinity", true, "", 0, "-Infinity"),
            ("NaN", false, "", 0, "NaN"),
            ("-sNaN0123", true, "123", 0, "-sNaN123"),
            ("nan1", false, "1", 0, "NaN1"),
            ("-INF", true, "", 0, "-Infinity"),
            ("NaN000", false, "", 0, "NaN"),
            (
                "9E+999999999999999999",
                false,
                "9",
                999_999_999_999_999_999,
                "9E+999999999999999999",
            ),
            (
                "1E-1999999999999999997",
                false,
                "1",
                MIN_EXPONENT,
                "1E-1999999999999999997",
            ),
        ] {
            let expected = (negative, digits.to_owned(), exponent, back.to_owned());
            assert_eq!(parts(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_no_decimal_writes_is_none() {
        for text in [
            "",
            "-",
            "+1",
            ".",
            ".5",
            "5.",
            "1.2.3",
            " 1",
            "1 ",
            "1_0",
            "1E",
            "1E+",
            "1E+-1",
            "--1",
            "abc",
            "na",
            "infi",
            "Infabcde",
            "Infinity0",
            "NaNx",
            "sNaN-1",
            "1\0",
            "\u{663}",
            "E5",
            "0x1",
            "10E+999999999999999999",
            "0E+1000000000000000000",
            "1E-1999999999999999998",
            "1E+9223372036854775807",
            "1E-9223372036854775808",
            "1E+99999999999999999999",
        ] {
            assert!(decimal(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_used_often_is_charged_each_time() {
        let mut stream = b"\x80\x04(cdecimal\nDecimal\n\x940X\x20\x4e\x00\x00".to_vec();
        stream.extend(std::iter::repeat_n(b'7', 20_000));
        stream.extend(b"\x85\x940");
        for _ in 0..2000 {
            stream.extend(b"h\x00h\x01R");
        }
        stream.extend(b"t.");
        let error = decode(&stream).unwrap_err();
        let limit = LimitKind::WorkSteps;
        assert!(
            matches!(error.kind(), DecodeErrorKind::Limit { limit: found, .. } if *found == limit)
        );
    }
}
