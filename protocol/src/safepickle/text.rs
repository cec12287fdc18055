//! The text arguments of pickle opcodes.

use num_bigint::BigInt;

use super::error::TextRule;

/// An int as text: decimal, with a sign but no leading zeros. Also says how many digits there were,
/// if there were more than `max_digits`.
pub(super) enum IntText {
    Small(i64),
    Big(BigInt),
    TooLong(u64),
}

pub(super) fn int(text: &[u8], max_digits: u64) -> Result<IntText, TextRule> {
    let digits = match text {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    let plain = match digits {
        [] => false,
        [b'0'] => true,
        [b'0', ..] => false,
        digits => digits.iter().all(u8::is_ascii_digit),
    };
    if !plain {
        return Err(TextRule::Integer);
    }
    if digits.len() as u64 > max_digits {
        return Ok(IntText::TooLong(digits.len() as u64));
    }
    let text = std::str::from_utf8(text).map_err(|_| TextRule::Integer)?;
    if let Ok(small) = text.parse::<i64>() {
        return Ok(IntText::Small(small));
    }
    BigInt::parse_bytes(text.as_bytes(), 10)
        .map(IntText::Big)
        .ok_or(TextRule::Integer)
}

/// A memo index as text: decimal digits.
pub(super) fn memo_index(text: &[u8]) -> Result<u64, TextRule> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(TextRule::MemoIndex);
    }
    text.iter()
        .try_fold(0_u64, |index, digit| {
            index.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(TextRule::MemoIndex)
}

/// A float as text. A finite number too large for a float is none.
pub(super) fn float(text: &[u8]) -> Result<f64, TextRule> {
    let text = std::str::from_utf8(text).map_err(|_| TextRule::Float)?;
    let value: f64 = text.parse().map_err(|_| TextRule::Float)?;
    let named = text.bytes().any(|byte| matches!(byte, b'n' | b'N'));
    match () {
        () if value.is_infinite() && !named => Err(TextRule::Float),
        () if value.is_nan() => {
            Ok(f64::NAN.copysign(if text.starts_with('-') { -1.0 } else { 1.0 }))
        }
        () => Ok(value),
    }
}

/// The quoted text of STRING, quotes and escapes taken off.
pub(super) fn quoted(text: &[u8]) -> Result<Vec<u8>, TextRule> {
    let inner = match text {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => return Err(TextRule::Quoted),
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let [escape, after @ ..] = rest else {
            return Err(TextRule::Escape);
        };
        rest = after;
        match escape {
            b'\\' | b'\'' | b'"' => out.push(*escape),
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'v' => out.push(0x0b),
            b'f' => out.push(0x0c),
            b'r' => out.push(b'\r'),
            b'x' => {
                let (value, after) = hex(rest, 2).ok_or(TextRule::Escape)?;
                // Two hex digits are one byte.
                out.push(value as u8);
                rest = after;
            }
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    if let [digit @ b'0'..=b'7', after @ ..] = rest {
                        value = value * 8 + u32::from(digit - b'0');
                        rest = after;
                    }
                }
                // Values above 0o377 wrap, as in CPython.
                out.push(value as u8);
            }
            other => out.extend([b'\\', *other]),
        }
    }
    Ok(out)
}

/// Raw-unicode-escape text as generalised UTF-8, and whether it holds surrogates.
///
/// A backslash escapes if it ends an odd run of them.
pub(super) fn raw_unicode_escape(text: &[u8]) -> Result<(Vec<u8>, bool), TextRule> {
    let mut out = Vec::with_capacity(text.len());
    let mut surrogates = false;
    let mut rest = text;
    let mut odd = false;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'\\' {
            odd = !odd;
            let digits = match after.first() {
                Some(b'u') if odd => 4,
                Some(b'U') if odd => 8,
                _ => 0,
            };
            if digits > 0 {
                let (point, after) = hex(&after[1..], digits).ok_or(TextRule::Escape)?;
                if point > 0x10_ffff {
                    return Err(TextRule::Escape);
                }
                surrogates |= (0xd800..0xe000).contains(&point);
                push_code_point(&mut out, point);
                rest = after;
                odd = false;
                continue;
            }
        } else {
            odd = false;
        }
        push_code_point(&mut out, u32::from(*first));
    }
    Ok((out, surrogates))
}

fn hex(text: &[u8], digits: usize) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let value = digits.iter().try_fold(0_u32, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })?;
    Some((value, rest))
}

/// Appends a code point, surrogates included, as generalised UTF-8.
pub(super) fn push_code_point(out: &mut Vec<u8>, point: u32) {
    let tail = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
    match point {
        0..0x80 => out.push(point as u8),
        0x80..0x800 => out.extend([0xc0 | (point >> 6) as u8, tail(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (point >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend([0xf0 | (point >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Whether `bytes` are generalised UTF-8, and if so, whether they hold surrogates.
pub(super) fn generalised_utf8(bytes: &[u8]) -> Option<bool> {
    if bytes.is_ascii() {
        return Some(false);
    }
    let mut surrogates = false;
    let mut rest = bytes;
    loop {
        // ASCII, eight bytes at a time up to the first byte that is not.
        while let Some((word, after)) = rest.split_first_chunk() {
            let high = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
            if high != 0 {
                rest = &rest[high.trailing_zeros() as usize / 8..];
                break;
            }
            rest = after;
        }
        if rest.is_empty() {
            return Some(surrogates);
        }
        let (point, after) = next_code_point(rest)?;
        surrogates |= (0xd800..0xe000).contains(&point);
        rest = after;
    }
}

/// The first code point of generalised UTF-8, and what follows. `None` at the end or if it is not.
pub(super) fn next_code_point(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (len, start, least) = match first {
        0..0x80 => return Some((u32::from(*first), rest)),
        0xc0..0xe0 => (1, first & 0x1f, 0x80),
        0xe0..0xf0 => (2, first & 0x0f, 0x800),
        0xf0..0xf8 => (3, first & 0x07, 0x1_0000),
        _ => return None,
    };
    let (tail, rest) = rest.split_at_checked(len)?;
    let point = tail.iter().try_fold(u32::from(start), |point, byte| {
        (byte & 0xc0 == 0x80).then_some(point << 6 | u32::from(byte & 0x3f))
    })?;
    (least..=0x10_ffff)
        .contains(&point)
        .then_some((point, rest))
}
