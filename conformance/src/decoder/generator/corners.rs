//! Corners: small streams about one rule each, above all where decoders may differ.

use super::writer::Writer;
use super::{named_corners, op};

/// A corner: its name, whether it needs names of classes, and what writes it.
pub struct Corner {
    pub name: &'static str,
    globals: bool,
    write: fn(&mut Writer<'_>),
}

/// Every corner there is.
pub const ALL: &[Corner] = &[
    plain("int-text", int_text),
    plain("long-text", long_text),
    plain("float-text", float_text),
    plain("string-text", string_text),
    plain("unicode-text", unicode_text),
    plain("memo-text", memo_text),
    plain("memo-index", memo_index),
    plain("frame", frame),
    plain("size", size),
    plain("protocol", protocol),
    plain("mark", mark),
    plain("buffer", buffer),
    plain("deep-key", deep_key),
    plain("wide-key", wide_key),
    plain("equal-keys", equal_keys),
    plain("wrong-container", wrong_container),
    plain("name", name),
    named("days", named_corners::days),
    named("clocks", named_corners::clocks),
    named("instants", named_corners::instants),
    named("durations", named_corners::durations),
    named("zones", named_corners::zones),
    named("decimals", named_corners::decimals),
    named("fractions", named_corners::fractions),
    named("paths", named_corners::paths),
    named("uuids", named_corners::uuids),
    named("collections", named_corners::collections),
    named("builtins", named_corners::builtins),
    named("exceptions", named_corners::exceptions),
    named("exceptions", named_corners::exceptions),
    named("records", named_corners::records),
    named("classes", named_corners::classes),
    named("keys", named_corners::keys),
    named("keys", named_corners::keys),
    named("costs", named_corners::costs),
    named("helpers", named_corners::helpers),
    named("new_object_ex", named_corners::new_object_ex),
    named("instances", named_corners::instances),
];

const fn plain(name: &'static str, write: fn(&mut Writer<'_>)) -> Corner {
    Corner {
        name,
        globals: false,
        write,
    }
}

const fn named(name: &'static str, write: fn(&mut Writer<'_>)) -> Corner {
    Corner {
        name,
        globals: true,
        write,
    }
}

/// Writes one of the corners that the writer's scope admits.
pub(super) fn corner(writer: &mut Writer<'_>) {
    let fitting: Vec<&Corner> = ALL
        .iter()
        .filter(|corner| writer.scope.globals || !corner.globals)
        .collect();
    (writer.choices.pick(&fitting).write)(writer);
}

fn int_text(writer: &mut Writer<'_>) {
    let text = writer.choices.pick(&[
        "7",
        "-7",
        "00",
        "01",
        "0",
        "-0",
        "+0",
        "+1",
        "+7",
        "007",
        "08",
        " 7",
        "7 ",
        "\t1",
        "1\r",
        "1_000",
        "_1",
        "1__0",
        "0x10",
        "0b1",
        "1L",
        "",
        "-",
        "1.0",
        "True",
        "--1",
        "- 1",
        " 1",
        "10",
        "11",
        "02",
        "000",
        "-01",
        "2147483648",
        "99999999999999999999",
    ]);
    writer.line(op::INT, text);
}

fn long_text(writer: &mut Writer<'_>) {
    if writer.choices.one_in(10) {
        // As many digits as CPython reads, or one more.
        let digits = 4300 + writer.choices.below(2);
        let text = "7".repeat(digits);
        return writer.line(op::LONG, &text);
    }
    let text = writer.choices.pick(&[
        "7L", "7", "-7L", "+7L", "0L", "-0L", "00L", "07L", " 7L", "7 L", "7L ", "7LL", "L", "",
        "1_0L", "7l", "0x7L", "1.0L", "7\rL", "-L",
    ]);
    writer.line(op::LONG, text);
}

fn float_text(writer: &mut Writer<'_>) {
    let text = writer.choices.pick(&[
        "1.5",
        "-0.0",
        "5.",
        ".5",
        "1e5",
        "1E-5",
        "+1.5",
        "inf",
        "-inf",
        "+inf",
        "nan",
        "-nan",
        "Infinity",
        "-INFINITY",
        "INF",
        "NaN",
        "infinite",
        "1e999",
        "-1e999",
        "1e-999",
        " 1.5",
        "1.5 ",
        "1_0.5",
        "",
        ".",
        "1e",
        "0x1p3",
        "1,5",
        "1.5\0x",
        "1.5\r",
        "00012.5",
        "1e+05",
        "nan(1)",
        "4.9e-324",
        "2.4e-324",
    ]);
    writer.line(op::FLOAT, text);
}

fn string_text(writer: &mut Writer<'_>) {
    let text = writer.choices.pick(&[
        "'a'",
        "\"a\"",
        "'a\"",
        "a",
        "",
        "'",
        "''",
        "'a\\'",
        "'\\x41\\101\\q'",
        "'\\x4'",
        "'\\400'",
        "'\\8'",
        "'\\1'",
        "'\\\\'",
        "'\\N'",
        "'\\u0041'",
        "'a' ",
        " 'a'",
        "'a'b'",
        "'\\xe9'",
        "'\\a\\b\\f\\v'",
        "'\\r\\t'",
        "'it''s'",
        "u'a'",
        "'\\'",
        "'\\12345'",
        "'\\077\\08'",
    ]);
    writer.line(op::STRING, text);
}

fn unicode_text(writer: &mut Writer<'_>) {
    let text: &[u8] = writer.choices.pick(&[
        &b"a"[..],
        b"",
        b"\\u0041",
        b"\\\\u0041",
        b"\\\\\\u0041",
        b"\\u004",
        b"\\u00zz",
        b"\\U0001f600",
        b"\\U00110000",
        b"\\Uffffffff",
        b"\\ud83d\\ude00",
        b"\\udc00",
        b"\\x41\\n",
        b"\xe9\xff",
        b"\\",
        b"\\u",
        b"\\U0001",
        b"a\rb",
        b"\\u0000",
    ]);
    let mut line = text.to_vec();
    line.push(b'\n');
    writer.fixed(op::UNICODE, &line);
}

fn memo_text(writer: &mut Writer<'_>) {
    const INDEXES: &[&str] = &[
        "0",
        "1",
        "01",
        "00",
        " 1",
        "1 ",
        "+1",
        "-0",
        "-1",
        "0_1",
        "",
        "a",
        "0x1",
        "1L",
        "1\r",
        "18446744073709551615",
        "99999999999999999999",
    ];
    writer.op(op::NONE);
    let put = writer.choices.pick(INDEXES);
    let get = match writer.choices.below(3) {
        0 => put,
        1 => "1",
        _ => writer.choices.pick(INDEXES),
    };
    writer.line(op::PUT, put);
    writer.line(op::GET, get);
}

/// A memo entry far beyond all others. CPython makes a table that long.
fn memo_index(writer: &mut Writer<'_>) {
    let index = writer
        .choices
        .pick(&[300_u32, 4_096, (1 << 31) - 1, 1 << 31, u32::MAX]);
    writer.op(op::NONE);
    writer.fixed(op::LONG_BINPUT, &index.to_le_bytes());
    let near = index.wrapping_add(writer.choices.below(2) as u32);
    writer.fixed(op::LONG_BINGET, &near.to_le_bytes());
}

/// Frames whose ends do not fall between two instructions, and frames that do not fit.
fn frame(writer: &mut Writer<'_>) {
    let at = writer.out.len();
    let frame = |writer: &mut Writer<'_>, size: u64| writer.fixed(op::FRAME, &size.to_le_bytes());
    match writer.choices.below(8) {
        // Too long, by one or by much.
        0 => {
            let size = writer.choices.pick(&[3, 100, 1 << 31, 1 << 63, u64::MAX]);
            frame(writer, size);
            writer.op(op::NONE);
        }
        // Ends inside an argument.
        1 => {
            frame(writer, 3);
            writer.fixed(op::BININT, &[1, 2, 3, 4]);
        }
        // A frame inside a frame, at its start or across its end.
        2 => {
            let size = writer.choices.pick(&[10, 11, 12]);
            frame(writer, size);
            frame(writer, 2);
            writer.op(op::NONE);
        }
        3 => {
            frame(writer, 2);
            writer.op(op::NONE);
            frame(writer, 2);
            writer.op(op::NONE);
        }
        // Nothing in it.
        4 => {
            frame(writer, 0);
            writer.op(op::NONE);
        }
        // Ends inside a line of text.
        5 => {
            frame(writer, 2);
            writer.line(op::INT, "12");
        }
        // Goes on beyond STOP.
        6 => {
            frame(writer, 4);
            writer.op(op::NONE);
            writer.op(op::STOP);
            writer.out.extend([0, 0]);
        }
        // Ends where STOP begins.
        _ => {
            frame(writer, 1);
            writer.op(op::NONE);
        }
    }
    debug_assert!(writer.out.len() > at);
}

/// Sizes that the stream does not have, or that are negative.
fn size(writer: &mut Writer<'_>) {
    let (opcode, width) = writer.choices.pick(&[
        (op::BINUNICODE, 4),
        (op::SHORT_BINUNICODE, 1),
        (op::BINUNICODE8, 8),
        (op::BINBYTES, 4),
        (op::SHORT_BINBYTES, 1),
        (op::BINBYTES8, 8),
        (op::BYTEARRAY8, 8),
        (op::BINSTRING, 4),
        (op::SHORT_BINSTRING, 1),
        (op::LONG1, 1),
        (op::LONG4, 4),
    ]);
    let size = writer.choices.pick(&[
        0_u64,
        1,
        2,
        3,
        4,
        1 << 20,
        1 << 31,
        1 << 40,
        1 << 63,
        u64::MAX,
    ]);
    writer.fixed(opcode, &size.to_le_bytes()[..width]);
    writer.out.extend(b"ab\xc3");
}

fn protocol(writer: &mut Writer<'_>) {
    let number = writer.choices.below(8) as u8;
    writer.fixed(op::PROTO, &[number]);
    if writer.choices.one_in(3) {
        let byte = writer.choices.below(256) as u8;
        writer.op(byte);
    }
    writer.op(op::NONE);
}

/// Marks under values, and opcodes that look for what is on the other side of one.
fn mark(writer: &mut Writer<'_>) {
    let program: &[u8] = writer.choices.pick(&[
        // STOP finds its value above an open mark; or the mark.
        &b"(N"[..],
        b"N(",
        b"((N1N",
        b"N(0",
        b"N((0",
        b"N(2",
        b"N(\x85",
        b"](Na",
        b"](e",
        b"]Ne",
        b"}(Ns",
        b"}N(Ns",
        b"(1",
        b"1",
        b"(0N",
        b"N(\x94",
        b"N(q\x001h\x00",
        b"N(p0\n0g0\n",
        b"(d",
        b"(Nd",
        b"(NNd",
        b"}(u",
        b"}(Nu",
        b"\x8f(\x90",
        b"(\x91",
        b"(l",
        b"(t",
        b"NN\x93",
        b"N0",
        b"0",
        b"2",
        b"N2",
        b"Nt",
        b"(o",
        b"(No",
        b"N)R",
        b"N)\x81",
        b"N)}\x92",
        b"N}b",
        b"NQ",
    ]);
    writer.out.extend(program);
}

/// A read-only view of what is on top.
fn buffer(writer: &mut Writer<'_>) {
    match writer.choices.below(4) {
        0 => writer.sized(op::BYTEARRAY8, 8, b"ab"),
        1 => writer.sized(op::SHORT_BINBYTES, 1, b"ab"),
        2 => writer.op(op::NONE),
        _ => writer.op(op::NEXT_BUFFER),
    }
    writer.op(op::READONLY_BUFFER);
}

/// A key nested about as deep as is allowed, and deeper.
fn deep_key(writer: &mut Writer<'_>) {
    let links = 490 + writer.choices.below(20);
    writer.op(op::EMPTY_DICT);
    writer.op(op::NONE);
    for _ in 0..links {
        writer.op(op::TUPLE1);
    }
    writer.op(op::NONE);
    writer.op(op::SETITEM);
}

/// A key that takes far more steps to hash than bytes to write.
fn wide_key(writer: &mut Writer<'_>) {
    let doublings = match writer.choices.below(200) {
        0..=149 => 8,
        150..=198 => 16,
        // Not to be hashed in anybody's lifetime.
        _ => 60,
    };
    writer.op(op::EMPTY_SET);
    writer.op(op::MARK);
    writer.op(op::NONE);
    for _ in 0..doublings {
        writer.op(op::DUP);
        writer.op(op::TUPLE2);
    }
    writer.op(op::ADDITEMS);
}

/// Keys that are equal, though not alike.
fn equal_keys(writer: &mut Writer<'_>) {
    let set = writer.choices.one_in(2);
    writer.op(if set { op::EMPTY_SET } else { op::EMPTY_DICT });
    writer.op(op::MARK);
    for at in 0..2 + writer.choices.below(16) {
        let (int, float) = writer.choices.pick(&[
            (0, 0.0),
            (0, -0.0),
            (1, 1.0),
            (1 << 53, 9_007_199_254_740_992.0),
            ((1 << 53) + 1, 9_007_199_254_740_992.0),
            (i64::MAX, 9_223_372_036_854_775_808.0),
            (i64::MIN, -9_223_372_036_854_775_808.0),
            (-1, f64::NAN),
            (-2, -1.0),
        ]);
        let nested = writer.choices.one_in(4);
        let key = |writer: &mut Writer<'_>| match writer.choices.below(4) {
            0 => writer.int(int),
            1 => writer.bool(int != 0),
            2 => writer
                .big_int(&[&int.to_le_bytes()[..], &[if int < 0 { 0xff } else { 0 }; 3]].concat()),
            _ => writer.float(float),
        };
        if nested {
            writer.op(op::MARK);
            key(writer);
            key(writer);
            let end = writer.choices.pick(&[op::FROZENSET, op::TUPLE]);
            writer.op(end);
        } else {
            key(writer);
        }
        if !set {
            writer.int(at as i64);
        }
    }
    writer.op(if set { op::ADDITEMS } else { op::SETITEMS });
}

/// Opcodes of one container applied to another, and states for what has none.
fn wrong_container(writer: &mut Writer<'_>) {
    match writer.choices.below(7) {
        0 => writer.op(op::EMPTY_LIST),
        1 => writer.op(op::EMPTY_DICT),
        2 => writer.op(op::EMPTY_SET),
        3 => writer.sized(op::BYTEARRAY8, 8, b"ab"),
        4 => writer.op(op::EMPTY_TUPLE),
        5 => writer.out.extend([op::MARK, op::NONE, op::LIST]),
        _ => writer.op(op::NONE),
    }
    let key = writer.choices.below(3) as i64 - 1;
    match writer.choices.below(6) {
        0 => {
            writer.int(key);
            writer.op(op::APPEND);
        }
        1 => {
            writer.op(op::MARK);
            writer.int(key);
            writer.op(op::APPENDS);
        }
        2 => {
            writer.int(key);
            writer.op(op::NONE);
            writer.op(op::SETITEM);
        }
        3 => {
            writer.op(op::MARK);
            writer.int(key);
            writer.int(7);
            writer.op(op::SETITEMS);
        }
        4 => {
            writer.op(op::MARK);
            writer.int(key);
            writer.op(op::ADDITEMS);
        }
        _ => {
            let nothing = writer
                .choices
                .pick(&[op::NONE, op::EMPTY_DICT, op::EMPTY_TUPLE]);
            writer.op(nothing);
            writer.op(op::BUILD);
        }
    }
}

/// Names that are refused: known dangers, and near misses of what is admitted.
fn name(writer: &mut Writer<'_>) {
    let (module, qualname) = writer.choices.pick(&[
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "object"),
        ("builtins", "type"),
        ("builtins", "getattr"),
        ("builtins", "memoryview"),
        ("builtins", "List"),
        ("builtins", "list.append"),
        ("builtins", "Exception.__init__"),
        ("builtins", ""),
        ("", "list"),
        ("", ""),
        ("builtins ", "list"),
        ("builtins", "list "),
        ("Builtins", "list"),
        ("__builtin__", "list"),
        ("__builtin__", "set"),
        ("exceptions", "ValueError"),
        ("copy_reg", "_reconstructor"),
        ("copyreg", "__reduce_ex__"),
        ("collections", "UserDict"),
        ("collections", "namedtuple"),
        ("collections.abc", "Mapping"),
        ("_collections", "deque"),
        ("datetime", "tzinfo"),
        ("_datetime", "date"),
        ("decimal", "Context"),
        ("_decimal", "Decimal"),
        ("pathlib", "os"),
        ("pathlib._local", "os"),
        ("pathlib._abc", "PurePath"),
        ("uuid", "SafeUUID"),
        ("numpy", "array"),
        ("numpy", "dtype.type"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("agentix.bash", "run"),
        ("agentix.files", "Result"),
        ("_codecs", "encode"),
        ("b\u{fc}iltins", "list"),
        ("builtins", "l\u{131}st"),
        ("builtins\r", "list"),
    ]);
    match writer.choices.below(3) {
        0 => {
            writer.text(module);
            writer.text(qualname);
            writer.op(op::STACK_GLOBAL);
        }
        1 => {
            writer.line(op::GLOBAL, module);
            writer.out.extend(qualname.bytes());
            writer.op(b'\n');
        }
        _ => {
            writer.op(op::MARK);
            writer.line(op::INST, module);
            writer.out.extend(qualname.bytes());
            writer.op(b'\n');
        }
    }
}
