//! The decoder's rules, one family of opcodes after the other.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    self, DecodeErrorKind, Document, Kind, LimitKind, Malformed, Opcode, TextRule, Unsupported,
    Value,
};

fn decode(stream: &[u8]) -> Document<'_> {
    safepickle::decode(stream).unwrap_or_else(|error| panic!("{}: {error}", stream.escape_ascii()))
}

/// Kind, offset and opcode of the error that `stream` gives.
#[track_caller]
fn error(stream: &[u8]) -> (DecodeErrorKind, u64, Option<Opcode>) {
    let error = safepickle::decode(stream).unwrap_err();
    (error.kind().clone(), error.offset(), error.opcode())
}

#[track_caller]
fn malformed(stream: &[u8], rule: Malformed, offset: u64, opcode: Opcode) {
    assert_eq!(
        error(stream),
        (DecodeErrorKind::Malformed(rule), offset, Some(opcode)),
        "{}",
        stream.escape_ascii()
    );
}

#[track_caller]
fn malformed_text(stream: &[u8], rule: TextRule) {
    assert_eq!(
        error(stream).0,
        DecodeErrorKind::Malformed(Malformed::Text(rule)),
        "{}",
        stream.escape_ascii()
    );
}

#[track_caller]
fn int(stream: &[u8], expected: &str) {
    assert_eq!(
        decode(stream).root().as_big_int().unwrap().to_string(),
        expected
    );
}

#[track_caller]
fn float(stream: &[u8], expected: f64) {
    assert_eq!(
        decode(stream).root().as_f64().unwrap().to_bits(),
        expected.to_bits()
    );
}

#[track_caller]
fn str(stream: &[u8], expected: &str) {
    assert_eq!(decode(stream).root().as_str(), Some(expected));
}

#[track_caller]
fn code_points(stream: &[u8], expected: &[u32]) {
    let document = decode(stream);
    let text = document.root().as_text().unwrap();
    assert_eq!(text.code_points().collect::<Vec<_>>(), expected);
    assert_eq!(text.as_str(), None);
}

/// The ints of a list, tuple, set or frozenset.
fn ints(value: Value<'_>) -> Vec<i64> {
    [value.list(), value.tuple(), value.set(), value.frozenset()]
        .into_iter()
        .flatten()
        .flat_map(|items| {
            items
                .iter()
                .map(|item| item.as_i64().unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn none_and_booleans() {
    assert!(decode(b"N.").root().is_none());
    assert_eq!(decode(b"\x88.").root().as_bool(), Some(true));
    assert_eq!(decode(b"\x89.").root().as_bool(), Some(false));
    assert_eq!(decode(b"I01\n.").root().as_bool(), Some(true));
    assert_eq!(decode(b"I00\n.").root().as_bool(), Some(false));
    assert_eq!(decode(b"I1\n.").root().as_bool(), None);
}

#[test]
fn ints_as_text() {
    int(b"I5\n.", "5");
    int(b"I-5\n.", "-5");
    int(b"I+15\n.", "15");
    int(b"I9223372036854775808\n.", "9223372036854775808");
    int(b"L-12345678901234567890L\n.", "-12345678901234567890");
    int(b"L5\n.", "5");
    let refused: [&[u8]; 10] = [
        b"", b"-", b" 1", b"08", b"010", b"0x10", b"1_0", b"1.0", b"--1", b"1\r",
    ];
    for text in refused {
        malformed_text(&[b"I", text, b"\n."].concat(), TextRule::Integer);
        malformed_text(&[b"L", text, b"L\n."].concat(), TextRule::Integer);
    }
    for text in [&b"-0"[..], b"+0", b"+1", b"1L"] {
        malformed_text(&[b"I", text, b"\n."].concat(), TextRule::Integer);
    }
    let digits = |count: usize| [&b"I"[..], &b"7".repeat(count), b"\n."].concat();
    assert_eq!(
        decode(&digits(4300))
            .root()
            .as_big_int()
            .unwrap()
            .to_string()
            .len(),
        4300
    );
    let limit = DecodeErrorKind::Limit {
        limit: LimitKind::IntegerDigits,
        allowed: 4300,
        value: 4301,
    };
    assert_eq!(error(&digits(4301)).0, limit);
}

#[test]
fn ints_as_binary() {
    int(b"K\xff.", "255");
    int(b"M\x00\xff.", "65280");
    int(b"J\xff\xff\xff\xff.", "-1");
    int(b"\x8a\x00.", "0");
    int(b"\x8a\x01\xff.", "-1");
    int(
        b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.",
        "-9223372036854775808",
    );
    int(
        b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.",
        "9223372036854775808",
    );
    int(b"\x8a\x0a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00.", "1");
    assert_eq!(
        decode(b"\x8a\x0a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00.")
            .root()
            .as_i64(),
        Some(1),
        "one form each"
    );
    int(b"\x8b\x02\x00\x00\x00\x00\x80.", "-32768");
    malformed(
        b"\x8b\xff\xff\xff\xff.",
        Malformed::NegativeSize,
        0,
        Opcode::LONG4,
    );
    let truncated = Malformed::Truncated {
        needed: 2_147_483_647,
        available: 1,
    };
    malformed(b"\x8b\xff\xff\xff\x7f.", truncated, 0, Opcode::LONG4);
    malformed(
        b"NJ\x00\x00",
        Malformed::Truncated {
            needed: 4,
            available: 2,
        },
        1,
        Opcode::BININT,
    );
}

#[test]
fn floats() {
    float(b"G\x3f\xf8\x00\x00\x00\x00\x00\x00.", 1.5);
    float(
        b"G\x7f\xf0\x00\x00\x00\x00\x00\x01.",
        f64::from_bits(0x7ff0_0000_0000_0001),
    );
    float(b"F1.5\n.", 1.5);
    float(b"F1e5\n.", 1e5);
    float(b"F-0.0\n.", -0.0);
    float(b"F1e-999\n.", 0.0);
    float(b"Finf\n.", f64::INFINITY);
    float(b"F-Infinity\n.", f64::NEG_INFINITY);
    float(b"Fnan\n.", f64::from_bits(0x7ff8_0000_0000_0000));
    float(b"F-nan\n.", f64::from_bits(0xfff8_0000_0000_0000));
    for text in [
        "", ".", " 1.5", "1.5 ", "1_0.5", "1e999", "-1e999", "1,5", "1.5\r", "1d5", "1e", "nan(1)",
        "0x1p3",
    ] {
        malformed_text(format!("F{text}\n.").as_bytes(), TextRule::Float);
    }
}

#[test]
fn strs() {
    str(b"\x8c\x02\xce\xbb.", "λ");
    str(b"X\x02\x00\x00\x00\xce\xbb.", "λ");
    str(b"\x8d\x02\x00\x00\x00\x00\x00\x00\x00\xce\xbb.", "λ");
    code_points(b"\x8c\x03\xed\xa0\x80.", &[0xd800]);
    code_points(
        b"\x8c\x07a\xed\xa0\xbd\xed\xb8\x80.",
        &[0x61, 0xd83d, 0xde00],
    );
    let not_utf8: [&[u8]; 7] = [
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xe2\x82",
        b"\xf4\x90\x80\x80",
        b"\xed\xa0",
        b"\xed\xa0\x80\xff",
    ];
    for bytes in not_utf8 {
        let stream = [&[0x8c, bytes.len() as u8], bytes, b"."].concat();
        malformed(&stream, Malformed::Utf8, 0, Opcode::SHORT_BINUNICODE);
    }
    let lossy = decode(b"\x8c\x04a\xed\xa0\x80.");
    assert_eq!(
        lossy.root().as_text().unwrap().to_string_lossy(),
        "a\u{fffd}"
    );
    let truncated = Malformed::Truncated {
        needed: u64::MAX,
        available: 1,
    };
    malformed(
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        truncated,
        0,
        Opcode::BINUNICODE8,
    );
}

#[test]
fn strs_as_raw_unicode_escape() {
    str(b"V\xe9\\u0041\\U0001f600\\n\n.", "é\u{41}\u{1f600}\\n");
    str(b"V\\\\u0041\\\\\\u0041\n.", "\\\\u0041\\\\A");
    str(b"V\\u005cu0041\n.", "\\u0041");
    str(b"V\r\n.", "\r");
    code_points(b"V\\ud83d\\ude00\n.", &[0xd83d, 0xde00]);
    for text in ["\\u", "\\u12", "\\u123g", "\\U00110000", "\\Uffffffff"] {
        malformed_text(format!("V{text}\n.").as_bytes(), TextRule::Escape);
    }
    malformed(b"Vabc", Malformed::NoNewline, 0, Opcode::UNICODE);
}

#[test]
fn strings_of_python_2() {
    str(b"U\x02ab.", "ab");
    str(b"T\x02\x00\x00\x00ab.", "ab");
    malformed(
        b"U\x01\xff.",
        Malformed::NotAscii,
        0,
        Opcode::SHORT_BINSTRING,
    );
    malformed(
        b"T\xff\xff\xff\xffa.",
        Malformed::NegativeSize,
        0,
        Opcode::BINSTRING,
    );
    str(b"S'a'b'\n.", "a'b");
    str(b"S\"\"\n.", "");
    str(
        b"S'\\n\\x41\\101\\q\\8\\u0041\\\\\\''\n.",
        "\nAA\\q\\8\\u0041\\'",
    );
    str(b"S'\\400\\0'\n.", "\0\0");
    for text in ["", "'", "a", "'a", "a'", "'a\"", "'a'\r"] {
        malformed_text(format!("S{text}\n.").as_bytes(), TextRule::Quoted);
    }
    for text in ["'\\'", "'\\x'", "'\\x4'"] {
        malformed_text(format!("S{text}\n.").as_bytes(), TextRule::Escape);
    }
    malformed(b"S'\\xe9'\n.", Malformed::NotAscii, 0, Opcode::STRING);
}

#[test]
fn bytes_and_bytearrays() {
    assert_eq!(decode(b"C\x01\xff.").root().as_bytes(), Some(&b"\xff"[..]));
    assert_eq!(
        decode(b"B\x01\x00\x00\x00\xff.").root().as_bytes(),
        Some(&b"\xff"[..])
    );
    assert_eq!(
        decode(b"\x8e\x01\x00\x00\x00\x00\x00\x00\x00\xff.")
            .root()
            .as_bytes(),
        Some(&b"\xff"[..])
    );
    let bytearray = b"\x96\x01\x00\x00\x00\x00\x00\x00\x00\xff.";
    assert_eq!(decode(bytearray).root().as_bytearray(), Some(&b"\xff"[..]));
    assert_eq!(decode(bytearray).root().as_bytes(), None);
    assert_eq!(decode(b"C\x01x\x98.").root().as_bytes(), Some(&b"x"[..]));
    let unsupported = DecodeErrorKind::Unsupported(Unsupported::OutOfBandBuffer);
    assert_eq!(
        error(b"N\x97."),
        (unsupported, 1, Some(Opcode::NEXT_BUFFER))
    );
    let read_only = DecodeErrorKind::Unsupported(Unsupported::ReadOnlyBytearray);
    assert_eq!(
        error(b"\x96\x00\x00\x00\x00\x00\x00\x00\x00\x98.").0,
        read_only
    );
    malformed(
        b"]\x98.",
        Malformed::Operand {
            expected: "bytes",
            found: Kind::List,
        },
        1,
        Opcode::READONLY_BUFFER,
    );
}

#[test]
fn lists_and_tuples() {
    assert_eq!(ints(decode(b"](K\x01K\x02eK\x03a.").root()), [1, 2, 3]);
    assert_eq!(ints(decode(b"(K\x01K\x02l.").root()), [1, 2]);
    assert_eq!(ints(decode(b"K\x01K\x02K\x03\x87.").root()), [1, 2, 3]);
    assert_eq!(
        ints(decode(b"(K\x01K\x02K\x03K\x04t.").root()),
        [1, 2, 3, 4]
    );
    assert_eq!(decode(b").").root().tuple().unwrap().len(), 0);
    assert_eq!(decode(b"(t.").root(), decode(b").").root());
    malformed(b"e.", Malformed::NoMark, 0, Opcode::APPENDS);
    malformed(b"(e.", Malformed::StackUnderflow, 1, Opcode::APPENDS);
    malformed(b"(NN\x87.", Malformed::StackUnderflow, 3, Opcode::TUPLE3);
    malformed(b"]N(a.", Malformed::StackUnderflow, 3, Opcode::APPEND);
    malformed(
        b")Na.",
        Malformed::Operand {
            expected: "list",
            found: Kind::Tuple,
        },
        2,
        Opcode::APPEND,
    );
}

#[test]
fn dicts_keep_the_first_key_and_the_last_value() {
    let document = decode(
        b"}(\x88K\x00K\x01K\x02G\x3f\xf0\x00\x00\x00\x00\x00\x00K\x03\x8c\x011K\x04C\x011K\x05u.",
    );
    let entries: Vec<_> = document.root().dict().unwrap().iter().collect();
    assert_eq!(
        entries.len(),
        3,
        "True, 1 and 1.0 are one key; '1' and b'1' are others"
    );
    assert_eq!(entries[0].0.as_bool(), Some(true));
    assert_eq!(entries[0].1.as_i64(), Some(3));
    assert_eq!(entries[1].0.as_str(), Some("1"));
    malformed(b"(Nd.", Malformed::OddOperands, 2, Opcode::DICT);
    malformed(b"}(Nu.", Malformed::OddOperands, 3, Opcode::SETITEMS);
    malformed(
        b"}]Ns.",
        Malformed::Unhashable(Kind::List),
        3,
        Opcode::SETITEM,
    );
    malformed(
        b"}]\x85Ns.",
        Malformed::Unhashable(Kind::List),
        4,
        Opcode::SETITEM,
    );
    malformed(
        b"\x8f(}\x90.",
        Malformed::Unhashable(Kind::Dict),
        3,
        Opcode::ADDITEMS,
    );
    malformed(
        b"](NNu.",
        Malformed::Operand {
            expected: "dict",
            found: Kind::List,
        },
        4,
        Opcode::SETITEMS,
    );
    malformed(b"NNs.", Malformed::StackUnderflow, 2, Opcode::SETITEM);
}

#[test]
fn keys_are_equal_as_in_python_however_many_there_are() {
    // 2**64 as an int and as a float; tuples; frozensets in any order; NaN by identity.
    let keys: &[(&[u8], &[u8])] = &[
        (
            b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01",
            b"G\x43\xf0\x00\x00\x00\x00\x00\x00",
        ),
        (b"G\x80\x00\x00\x00\x00\x00\x00\x00", b"\x89"),
        (b"K\x01\x8c\x01a\x86", b"\x88\x8c\x01a\x86"),
        (
            b"(K\x01K\x02\x85\x8c\x01a\x91",
            b"(\x8c\x01aG\x40\x00\x00\x00\x00\x00\x00\x00\x85\x88\x91",
        ),
        (b"G\x7f\xf8\x00\x00\x00\x00\x00\x00q\x07", b"h\x07"),
        (b"G\x7f\xf8\x00\x00\x00\x00\x00\x00\x85q\x07", b"h\x07"),
        (b"N", b"N"),
    ];
    let different: &[(&[u8], &[u8])] = &[
        (
            b"G\x7f\xf8\x00\x00\x00\x00\x00\x00",
            b"G\x7f\xf8\x00\x00\x00\x00\x00\x00",
        ),
        (
            b"\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x01",
            b"G\x43\xf0\x00\x00\x00\x00\x00\x00",
        ),
        (b"\x8c\x011", b"K\x01"),
        (b"K\x01\x85", b"(K\x01\x91"),
        (b"(K\x01K\x02\x91", b"(K\x01K\x03\x91"),
        (b"G\x40\x04\x00\x00\x00\x00\x00\x00", b"K\x02"),
    ];
    // Short dicts are searched, long ones are indexed.
    for padding in [0, 100] {
        for (pairs, entries) in [(keys, 1), (different, 2)] {
            for (first, second) in pairs {
                let mut stream = b"}(".to_vec();
                for pad in 0..padding {
                    stream.extend(format!("Vpad {pad}\nN").as_bytes());
                }
                stream.extend([first, &b"K\x0a"[..], second, b"K\x14u."].concat());
                let document = decode(&stream);
                let dict = document.root().dict().unwrap();
                assert_eq!(
                    dict.len(),
                    padding + entries,
                    "{} {}",
                    first.escape_ascii(),
                    second.escape_ascii()
                );
                assert_eq!(
                    dict.at(padding).unwrap().1.as_i64(),
                    Some(if entries == 1 { 20 } else { 10 })
                );
            }
        }
    }
}

#[test]
fn sets_hold_equal_elements_once() {
    assert_eq!(ints(decode(b"\x8f(K\x02K\x01K\x02\x90.").root()), [2, 1]);
    assert_eq!(ints(decode(b"(K\x01K\x01\x91.").root()), [1]);
    assert_eq!(
        decode(b"\x8f(K\x02K\x01\x90."),
        decode(b"\x8f(K\x01K\x02\x90."),
        "the order has no meaning"
    );
    assert_ne!(
        decode(b"\x8f(K\x02K\x01\x90."),
        decode(b"\x8f(K\x01K\x03\x90.")
    );
    assert_ne!(
        decode(b"\x8f(K\x01\x90."),
        decode(b"\x8f(\x88\x90."),
        "True is not 1 here"
    );
    assert_ne!(decode(b"\x8f(K\x01\x90."), decode(b"(K\x01\x91."));
    malformed(
        b"](N\x90.",
        Malformed::Operand {
            expected: "set",
            found: Kind::List,
        },
        3,
        Opcode::ADDITEMS,
    );
}

#[test]
fn the_stack_and_its_marks() {
    assert_eq!(ints(decode(b"K\x01K\x022\x87.").root()), [1, 2, 2], "DUP");
    int(b"K\x01K\x020.", "1");
    int(b"K\x01(K\x02K\x031.", "1");
    int(b"K\x01(0.", "1");
    malformed(b"0.", Malformed::StackUnderflow, 0, Opcode::POP);
    malformed(b"N((0.", Malformed::StackUnderflow, 4, Opcode::STOP);
    malformed(b"N1.", Malformed::NoMark, 1, Opcode::POP_MARK);
    malformed(b"N(2.", Malformed::StackUnderflow, 2, Opcode::DUP);
    let lists = decode(b"](N(l.");
    assert_eq!(
        lists.root().list().unwrap().len(),
        0,
        "an inner mark takes only what is above it"
    );
}

#[test]
fn the_memo() {
    assert_eq!(
        ints(decode(b"K\x07p100000\n0g100000\nK\x08\x86.").root()),
        [7, 8]
    );
    assert_eq!(
        ints(decode(b"K\x01q\x05K\x02\x94h\x01\x87.").root()),
        [1, 2, 2],
        "MEMOIZE counts entries"
    );
    int(b"K\x07r\xff\xff\xff\xff0j\xff\xff\xff\xff.", "7");
    int(
        b"K\x07p18446744073709551615\n0g18446744073709551615\n.",
        "7",
    );
    malformed(b"h\x03.", Malformed::MemoMissing(3), 0, Opcode::BINGET);
    malformed(b"\x94.", Malformed::StackUnderflow, 0, Opcode::MEMOIZE);
    malformed(b"N(q\x05.", Malformed::StackUnderflow, 2, Opcode::BINPUT);
    for text in ["", "-1", "+1", " 1", "1_0", "18446744073709551616"] {
        malformed_text(format!("Np{text}\n.").as_bytes(), TextRule::MemoIndex);
    }
    let shared = decode(b"]\x940h\x00h\x00\x86.");
    let pair = shared.root().tuple().unwrap();
    assert_eq!(pair.at(0).unwrap().id(), pair.at(1).unwrap().id());
    let cycle = decode(b"]\x94h\x00a.");
    assert_eq!(
        cycle.root().list().unwrap().at(0).unwrap().id(),
        cycle.root().id()
    );
}

#[test]
fn frames_are_enforced() {
    let frame = |size: u64, rest: &[u8]| [&b"\x80\x04\x95"[..], &size.to_le_bytes(), rest].concat();
    int(&frame(3, b"K\x07."), "7");
    int(&frame(2, b"K\x07."), "7");
    malformed(
        &frame(1, b"K\x07."),
        Malformed::FrameCrossed,
        11,
        Opcode::BININT1,
    );
    malformed(
        &frame(2, b"J\x07\x00\x00\x00."),
        Malformed::FrameCrossed,
        11,
        Opcode::BININT,
    );
    malformed(
        &frame(3, b"Vab\n."),
        Malformed::FrameCrossed,
        11,
        Opcode::UNICODE,
    );
    malformed(
        &frame(4, b"N."),
        Malformed::FrameTooLong {
            size: 4,
            available: 2,
        },
        2,
        Opcode::FRAME,
    );
    malformed(
        &frame(u64::MAX, b"N."),
        Malformed::FrameTooLong {
            size: u64::MAX,
            available: 2,
        },
        2,
        Opcode::FRAME,
    );
    let inner = [&b"\x95"[..], &1_u64.to_le_bytes(), b"N."].concat();
    malformed(
        &frame(11, &inner),
        Malformed::FrameInFrame,
        11,
        Opcode::FRAME,
    );
    assert!(
        decode(&frame(9, &inner)).root().is_none(),
        "a frame may follow another at once"
    );
}

#[test]
fn protocols_and_ends() {
    for protocol in 0..=5 {
        assert!(decode(&[0x80, protocol, b'N', b'.']).root().is_none());
    }
    malformed(b"\x80\x06N.", Malformed::Protocol(6), 0, Opcode::PROTO);
    int(b"K\x01.garbage", "1");
    int(b"K\x01K\x02.", "2");
    int(b"(K\x01.", "1");
    malformed(b"N(.", Malformed::StackUnderflow, 2, Opcode::STOP);
    let no_stop = DecodeErrorKind::Malformed(Malformed::NoStop);
    assert_eq!(error(b"N"), (no_stop.clone(), 1, None));
    assert_eq!(error(b""), (no_stop, 0, None));
}

#[test]
fn every_byte_without_an_opcode_is_refused() {
    let unknown: Vec<u8> = (0..=255)
        .filter(|byte| Opcode::from_byte(*byte).name().is_none())
        .collect();
    assert_eq!(unknown.len(), 256 - 68);
    for byte in unknown {
        malformed(
            &[byte, b'N', b'.'],
            Malformed::UnknownOpcode,
            0,
            Opcode::from_byte(byte),
        );
    }
}
