//! Corners of the named types: arguments and states at the edge of what their classes take.

use super::op;
use super::writer::Writer;

/// Some argument of a call or part of a state.
#[derive(Clone, Copy)]
enum Datum {
    None,
    Bool(bool),
    Int(i64),
    /// Two's complement, little-endian.
    Big(&'static [u8]),
    Float(f64),
    Str(&'static str),
    Bytes(&'static [u8]),
    Tuple(&'static [Datum]),
    List(&'static [Datum]),
    Dict(&'static [(Datum, Datum)]),
    Class(&'static str, &'static str),
    /// A call of a class.
    Call(&'static str, &'static str, &'static [Datum]),
}

use Datum::{Big, Bool, Bytes, Call, Class, Dict, Float, Int, List, Str, Tuple};

impl Writer<'_> {
    fn datum(&mut self, datum: Datum) {
        match datum {
            Datum::None => self.op(op::NONE),
            Bool(value) => self.bool(value),
            Int(value) => self.int(value),
            Big(value) => self.big_int(value),
            Float(value) => self.float(value),
            Str(text) => self.text(text),
            Bytes(content) => self.bytes(content),
            Tuple(items) => {
                let marked = self.open_tuple(items.len());
                for item in items {
                    self.datum(*item);
                }
                self.close_tuple(items.len(), marked, false);
            }
            List(items) => {
                self.empty_list();
                self.op(op::MARK);
                for item in items {
                    self.datum(*item);
                }
                self.op(op::APPENDS);
            }
            Dict(entries) => {
                self.empty_dict();
                self.entries(entries.len(), |writer, at| {
                    writer.datum(entries[at].0);
                    writer.datum(entries[at].1);
                });
            }
            Class(module, name) => self.global(module, name),
            Call(module, name, arguments) => {
                self.call(module, name, false, arguments.len(), |writer| {
                    for argument in arguments {
                        writer.datum(*argument);
                    }
                });
            }
        }
    }

    fn call_with(&mut self, module: &'static str, name: &'static str, from: &[&'static [Datum]]) {
        let arguments = self.choices.pick(from);
        self.datum(Call(module, name, arguments));
    }
}

pub(super) fn days(writer: &mut Writer<'_>) {
    writer.call_with(
        "datetime",
        "date",
        &[
            &[Bytes(b"\x07\xea\x02\x1c")],
            &[Bytes(b"\x07\xea\x02\x1d")],
            &[Bytes(b"\x07\xe8\x02\x1d")],
            &[Bytes(b"\x07\xea\x04\x1f")],
            &[Bytes(b"\x07\xea\x00\x01")],
            &[Bytes(b"\x07\xea\x0d\x01")],
            &[Bytes(b"\x07\xea\x01\x00")],
            &[Bytes(b"\x07\xea\x01\x20")],
            &[Bytes(b"\x00\x00\x01\x01")],
            &[Bytes(b"\x27\x10\x01\x01")],
            &[Bytes(b"\x07\xea\x81\x01")],
            &[Bytes(b"\x07\xea\x01")],
            &[Bytes(b"\x07\xea\x01\x01\x01")],
            &[Bytes(b"")],
            &[Str("\u{7}\u{ea}\u{1}\u{1}")],
            &[Int(2026), Int(1), Int(1)],
            &[Int(2026), Int(13), Int(1)],
            &[],
        ],
    );
}

pub(super) fn clocks(writer: &mut Writer<'_>) {
    const UTC: Datum = Call(
        "datetime",
        "timezone",
        &[Call("datetime", "timedelta", &[Int(0), Int(0), Int(0)])],
    );
    writer.call_with(
        "datetime",
        "time",
        &[
            &[Bytes(b"\x17\x3b\x3b\x0f\x42\x3f")],
            &[Bytes(b"\x97\x3b\x3b\x0f\x42\x3f")],
            &[Bytes(b"\x18\0\0\0\0\0")],
            &[Bytes(b"\x98\0\0\0\0\0")],
            &[Bytes(b"\0\x3c\0\0\0\0")],
            &[Bytes(b"\0\0\x3c\0\0\0")],
            &[Bytes(b"\0\0\0\x0f\x42\x40")],
            &[Bytes(b"\0\0\0\0\0")],
            &[Bytes(b"\0\0\0\0\0\0\0")],
            &[Bytes(b"\0\0\0\0\0\0"), UTC],
            &[Bytes(b"\0\0\0\0\0\0"), Datum::None],
            &[Bytes(b"\0\0\0\0\0\0"), Str("UTC")],
            &[Str("\0\0\0\0\0\0")],
            &[Int(1)],
            &[],
        ],
    );
}

pub(super) fn instants(writer: &mut Writer<'_>) {
    writer.call_with(
        "datetime",
        "datetime",
        &[
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x81\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x00\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x80\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x0d\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x02\x1e\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\0\0\x01\x02\x03\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x01\x02\x18\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x01\x02\x83\x04\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x3c\x05\0\0\x06")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x3c\0\0\x06")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\xff\xff\xff")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06\x07")],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06"), Datum::None],
            &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06"), Int(1)],
            &[Str("\u{7}\u{ea}\u{1}\u{2}\u{3}\u{4}\u{5}\0\0\u{6}")],
            &[Int(2026), Int(1), Int(2)],
            &[],
        ],
    );
}

pub(super) fn durations(writer: &mut Writer<'_>) {
    writer.call_with(
        "datetime",
        "timedelta",
        &[
            &[Int(999_999_999), Int(86_399), Int(999_999)],
            &[Int(-999_999_999), Int(0), Int(0)],
            &[Int(-999_999_999), Int(-1), Int(0)],
            &[Int(1_000_000_000), Int(0), Int(0)],
            &[Int(999_999_999), Int(86_400), Int(0)],
            &[Int(0), Int(86_400), Int(0)],
            &[Int(0), Int(-1), Int(0)],
            &[Int(0), Int(0), Int(1_000_000)],
            &[Int(0), Int(0), Int(i64::MIN)],
            &[Int(i64::MAX), Int(0), Int(0)],
            &[Big(b"\0\0\0\0\0\0\0\0\x01"), Int(0), Int(0)],
            &[Bool(true), Int(0), Int(0)],
            &[Float(0.5), Int(0), Int(0)],
            &[Float(f64::NAN), Int(0), Int(0)],
            &[Int(1)],
            &[],
            &[Int(0), Int(0), Int(0), Int(1)],
            &[Str("1"), Int(0), Int(0)],
        ],
    );
}

pub(super) fn zones(writer: &mut Writer<'_>) {
    const DAY: Datum = Call("datetime", "timedelta", &[Int(1), Int(0), Int(0)]);
    const MINUS_DAY: Datum = Call("datetime", "timedelta", &[Int(-1), Int(0), Int(0)]);
    const HOUR: Datum = Call("datetime", "timedelta", &[Int(0), Int(3600), Int(0)]);
    const ODD: Datum = Call("datetime", "timedelta", &[Int(-1), Int(1), Int(1)]);
    const ZERO: Datum = Call("datetime", "timedelta", &[Int(0), Int(0), Int(0)]);
    writer.call_with(
        "datetime",
        "timezone",
        &[
            &[HOUR],
            &[ODD],
            &[ZERO],
            &[ZERO, Str("UTC")],
            &[ZERO, Str("")],
            &[HOUR, Str("a\0")],
            &[DAY],
            &[MINUS_DAY],
            &[HOUR, Datum::None],
            &[HOUR, Bytes(b"a")],
            &[Int(3600)],
            &[HOUR, Str("a"), Str("b")],
            &[],
        ],
    );
}

pub(super) fn decimals(writer: &mut Writer<'_>) {
    const TEXTS: &[&str] = &[
        "1.5",
        "-0.00",
        "0E-10",
        "1E+5",
        "1e5",
        "1E5",
        "+7",
        " 7",
        "7 ",
        "\t7\n",
        "1_0",
        "007",
        "00.50",
        ".5",
        "5.",
        ".",
        "",
        "-",
        "abc",
        "1.2.3",
        "1e",
        "1e+",
        "1E400",
        "0x1",
        "\u{663}",
        "\u{ff11}\u{ff12}",
        "1\0",
        "nan",
        "NAN",
        "NaN0",
        "NaN007",
        "NaN7",
        "-sNaN12",
        "snan",
        "inf",
        "-INF",
        "Infinity",
        "infinity",
        "Infinit",
        "infinity1",
        "NaN-1",
        "1E+999999",
        "1E-999999",
        "1e999999999999999999",
        "1e-999999999999999999",
        "1e1000000000000000000",
        "1E+999999999999999999999999",
        "0E+999999999999999999",
        "123456789012345678901234567890",
        "0.000001",
        "0.0000001",
        "1E-7",
        "123E+3",
        "12.3E+3",
        "-0E+1",
        "1\u{a0}",
    ];
    let text = writer.choices.pick(TEXTS);
    if writer.choices.one_in(5) {
        return writer.call_with(
            "decimal",
            "Decimal",
            &[
                &[Int(5)],
                &[Bool(true)],
                &[Float(0.1)],
                &[Tuple(&[Int(1), Tuple(&[Int(1), Int(2)]), Int(-1)])],
                &[Bytes(b"1")],
                &[Datum::None],
                &[],
                &[Str("1"), Datum::None],
            ],
        );
    }
    writer.call("decimal", "Decimal", true, 1, |writer| writer.text(text));
}

pub(super) fn fractions(writer: &mut Writer<'_>) {
    writer.call_with(
        "fractions",
        "Fraction",
        &[
            &[Int(1), Int(2)],
            &[Int(2), Int(4)],
            &[Int(1), Int(-2)],
            &[Int(0), Int(5)],
            &[Int(1), Int(0)],
            &[Int(0), Int(0)],
            &[Int(i64::MIN), Int(i64::MAX)],
            &[Big(b"\0\0\0\0\0\0\0\0\x01"), Int(3)],
            &[Big(b"\0\0\0\0\0\0\0\0\x01"), Int(2)],
            &[Int(1), Datum::None],
            &[Bool(true), Int(2)],
            &[Int(1), Bool(true)],
            &[Float(0.5)],
            &[Int(3)],
            &[],
            &[Str("1/2")],
            &[Str("2/4")],
            &[Str("-3")],
            &[Str("+3")],
            &[Str("0")],
            &[Str("-0")],
            &[Str("007/2")],
            &[Str("1/02")],
            &[Str(" 1/2 ")],
            &[Str("1 /2")],
            &[Str("1/-2")],
            &[Str("1/0")],
            &[Str("0.5")],
            &[Str("1e5")],
            &[Str("1_0/3")],
            &[Str("\u{663}/2")],
            &[Str("")],
            &[Str("/")],
            &[Str("a")],
            &[Str("1"), Int(2)],
        ],
    );
}

pub(super) fn paths(writer: &mut Writer<'_>) {
    let name = writer.choices.pick(&[
        "PurePosixPath",
        "PureWindowsPath",
        "PosixPath",
        "WindowsPath",
        "PurePath",
        "Path",
    ]);
    let module = writer.pathlib;
    const INNER: Datum = Call("pathlib", "PurePosixPath", &[Str("/x")]);
    writer.call_with(
        module,
        name,
        &[
            &[],
            &[Str("")],
            &[Str("a")],
            &[Str("."), Str("."), Str("a")],
            &[Str("a"), Str("/b"), Str("c")],
            &[Str("///a")],
            &[Str("//a//b")],
            &[Str("a/../b/.")],
            &[Str("a\0b")],
            &[Str("c:"), Str("a")],
            &[Str("c:/"), Str("d:a")],
            &[Str("c:a"), Str("C:b")],
            &[Str("c:\\a"), Str("\\b")],
            &[Str("\\\\h\\s"), Str("a")],
            &[Str("//h/s/a")],
            &[Str("\\\\?\\c:\\a")],
            &[Str("\\\\h")],
            &[Str("\\\\.\\x")],
            &[Str("a:b:c")],
            &[Str("./c:a")],
            &[Str("a/b\\c")],
            &[INNER, Str("a")],
            &[Bytes(b"a")],
            &[Int(1)],
            &[Datum::None],
        ],
    );
}

pub(super) fn uuids(writer: &mut Writer<'_>) {
    if writer.choices.one_in(4) {
        return writer.call_with(
            "uuid",
            "UUID",
            &[
                &[Str("12345678123456781234567812345678")],
                &[Str("xyz")],
                &[Datum::None, Bytes(b"0123456789abcdef")],
                &[],
            ],
        );
    }
    writer.new_object("uuid", "UUID", false);
    let states: &[Datum] = &[
        Dict(&[(Str("int"), Int(7))]),
        Dict(&[(Str("int"), Int(0)), (Str("is_safe"), Int(0))]),
        Dict(&[(Str("is_safe"), Int(-1)), (Str("int"), Int(0))]),
        Dict(&[(Str("int"), Int(0)), (Str("is_safe"), Int(9))]),
        Dict(&[(Str("int"), Int(0)), (Str("is_safe"), Datum::None)]),
        Dict(&[(Str("int"), Int(0)), (Str("is_safe"), Str("a"))]),
        Dict(&[(Str("int"), Int(-1))]),
        Dict(&[(Str("int"), Bool(true))]),
        Dict(&[(Str("int"), Str("7"))]),
        Dict(&[(Str("int"), Float(7.0))]),
        Dict(&[(Str("int"), Big(&[0xff; 16]))]),
        Dict(&[(
            Str("int"),
            Big(&[
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 0xff, 0,
            ]),
        )]),
        Dict(&[(
            Str("int"),
            Big(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        )]),
        Dict(&[(Str("int"), Int(7)), (Str("other"), Int(1))]),
        Dict(&[]),
        Datum::None,
        Tuple(&[Datum::None, Dict(&[(Str("int"), Int(7))])]),
        List(&[]),
    ];
    for _ in 0..writer.choices.below(3) {
        let state = writer.choices.pick(states);
        writer.datum(state);
        writer.op(op::BUILD);
    }
}

pub(super) fn collections(writer: &mut Writer<'_>) {
    const PAIRS: Datum = List(&[Tuple(&[Str("a"), Int(1)]), List(&[Str("b"), Int(2)])]);
    match writer.choices.below(4) {
        0 => writer.call_with(
            "collections",
            "OrderedDict",
            &[
                &[PAIRS],
                &[List(&[Int(1)])],
                &[List(&[List(&[Str("a")])])],
                &[List(&[List(&[List(&[]), Int(1)])])],
                &[Tuple(&[])],
                &[Dict(&[(Int(1), Int(2))])],
                &[Datum::None],
            ],
        ),
        1 => writer.call_with(
            "collections",
            "Counter",
            &[
                &[],
                &[Dict(&[])],
                &[Dict(&[(Int(1), Str("many"))])],
                &[List(&[Str("a"), Str("a")])],
                &[Str("aab")],
                &[Datum::None],
                &[Call("collections", "Counter", &[Dict(&[(Int(1), Int(2))])])],
            ],
        ),
        2 => writer.call_with(
            "collections",
            "defaultdict",
            &[
                &[],
                &[Datum::None],
                &[Class("builtins", "int")],
                &[Class("copyreg", "__newobj__")],
                &[Class("builtins", "KeyError")],
                &[Int(3)],
                &[Datum::None, Dict(&[(Int(1), Int(2))])],
            ],
        ),
        _ => writer.call_with(
            "collections",
            "deque",
            &[
                &[],
                &[List(&[Int(1), Int(2), Int(3)])],
                &[List(&[Int(1), Int(2), Int(3)]), Int(2)],
                &[List(&[Int(1)]), Datum::None],
                &[Tuple(&[Int(1), Int(2)]), Int(0)],
                &[Tuple(&[]), Int(-1)],
                &[Tuple(&[]), Int(i64::MAX)],
                &[Tuple(&[]), Big(b"\0\0\0\0\0\0\0\0\x01")],
                &[Tuple(&[]), Float(1.0)],
                &[Tuple(&[]), Bool(true)],
                &[Str("abc")],
                &[Dict(&[(Int(1), Int(2))])],
                &[Int(1)],
            ],
        ),
    }
}

pub(super) fn builtins(writer: &mut Writer<'_>) {
    match writer.choices.below(5) {
        0 => writer.call_with(
            "builtins",
            "complex",
            &[
                &[Float(1.0), Float(-0.0)],
                &[Int(1), Int(2)],
                &[Float(1.0)],
                &[Str("1+2j")],
                &[],
                &[Bool(true), Float(0.0)],
                &[Big(&[0x7f; 200]), Float(0.0)],
            ],
        ),
        1 => writer.call_with(
            "builtins",
            "range",
            &[
                &[Int(0), Int(5), Int(1)],
                &[Int(0), Int(5), Int(0)],
                &[Int(5)],
                &[Int(0), Int(5)],
                &[Bool(false), Int(5), Int(1)],
                &[Float(0.0), Int(5), Int(1)],
                &[Big(b"\0\0\0\0\0\0\0\0\x01"), Int(5), Int(-1)],
                &[Int(i64::MIN), Int(i64::MAX), Int(1)],
            ],
        ),
        2 => writer.call_with(
            "builtins",
            "bytearray",
            &[
                &[],
                &[Bytes(b"")],
                &[Bytes(b"ab")],
                &[Str("ab")],
                &[Str("ab"), Str("latin-1")],
                &[Int(3)],
                &[List(&[Int(1), Int(2)])],
                &[Int(-1)],
            ],
        ),
        3 => {
            let name = writer
                .choices
                .pick(&["set", "frozenset", "list", "tuple", "dict"]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[],
                    &[List(&[])],
                    &[List(&[Int(1), Float(1.0), Bool(true)])],
                    &[Tuple(&[Int(1)])],
                    &[List(&[List(&[])])],
                    &[Str("ab")],
                    &[Dict(&[(Int(1), Int(2))])],
                    &[Int(1)],
                ],
            );
        }
        _ => {
            let name = writer
                .choices
                .pick(&["int", "float", "str", "bytes", "bool", "slice"]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[],
                    &[Int(1)],
                    &[Str("1")],
                    &[Bytes(b"1")],
                    &[Int(1), Int(2), Int(3)],
                    &[Datum::None],
                ],
            );
        }
    }
}

pub(super) fn exceptions(writer: &mut Writer<'_>) {
    const VALUE_ERROR: Datum = Call("builtins", "ValueError", &[Int(1)]);
    const EXIT: Datum = Call("builtins", "SystemExit", &[]);
    match writer.choices.below(7) {
        0 => {
            let name =
                writer
                    .choices
                    .pick(&["OSError", "IOError", "BlockingIOError", "TimeoutError"]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[Int(2), Str("x")],
                    &[Int(11), Str("x"), Int(5)],
                    &[Int(11), Str("x"), Float(5.0)],
                    &[Int(11), Str("x"), Bool(true)],
                    &[Int(9999), Str("x"), Str("f")],
                    &[Bool(true), Str("x")],
                    &[Float(2.0), Str("x")],
                    &[Int(2)],
                    &[Int(2), Str("x"), Datum::None],
                    &[Int(2), Str("x"), Str("f"), Int(5)],
                    &[Int(2), Str("x"), Str("f"), Datum::None, Datum::None],
                    &[Int(2), Str("x"), Str("f"), Int(1), Str("g")],
                    &[Int(2), Str("x"), Datum::None, Datum::None, Str("g")],
                    &[Int(1), Int(2), Int(3), Int(4), Int(5), Int(6)],
                ],
            );
        }
        1 => {
            let name = writer
                .choices
                .pick(&["ExceptionGroup", "BaseExceptionGroup"]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[Str("m"), List(&[VALUE_ERROR])],
                    &[Str("m"), Tuple(&[VALUE_ERROR])],
                    &[Str("m"), List(&[EXIT])],
                    &[Str("m"), List(&[VALUE_ERROR, EXIT])],
                    &[Str("m"), List(&[])],
                    &[Str("m"), List(&[Int(1)])],
                    &[Str("m"), List(&[Class("builtins", "ValueError")])],
                    &[Int(1), List(&[VALUE_ERROR])],
                    &[Str("m")],
                    &[Str("m"), Dict(&[])],
                    &[Str("m"), List(&[VALUE_ERROR]), Int(1)],
                ],
            );
        }
        2 => {
            let name = writer
                .choices
                .pick(&["SyntaxError", "IndentationError", "TabError"]);
            const DETAILS: &[Datum] = &[Str("f"), Int(1), Int(2), Str("t")];
            writer.call_with(
                "builtins",
                name,
                &[
                    &[Str("m"), Tuple(DETAILS)],
                    &[Str("m"), List(DETAILS)],
                    &[
                        Str("m"),
                        Tuple(&[Str("f"), Int(1), Int(2), Str("t"), Int(3), Int(4)]),
                    ],
                    &[
                        Str("m"),
                        Tuple(&[Str("f"), Int(1), Int(2), Str("t"), Int(3)]),
                    ],
                    &[Str("m"), Tuple(&[Str("f")])],
                    &[Str("m"), Datum::None],
                    &[Str("m"), Str("abcd")],
                    &[
                        Str("print 1"),
                        Tuple(&[Str("f"), Int(1), Int(2), Str("print 1")]),
                    ],
                    &[Int(1), Tuple(DETAILS), Int(2)],
                    &[Str("m"), Tuple(&[Int(1), Str("a"), Datum::None, Int(4)])],
                ],
            );
        }
        3 => {
            let name = writer.choices.pick(&[
                "UnicodeDecodeError",
                "UnicodeEncodeError",
                "UnicodeTranslateError",
            ]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[Str("u"), Bytes(b"ab"), Int(0), Int(1), Str("r")],
                    &[Str("u"), Str("ab"), Int(0), Int(1), Str("r")],
                    &[Str("u"), Bytes(b"ab"), Int(-5), Int(99), Str("r")],
                    &[Str("u"), Str("ab"), Int(i64::MIN), Int(i64::MAX), Str("r")],
                    &[
                        Str("u"),
                        Bytes(b""),
                        Big(b"\0\0\0\0\0\0\0\0\x01"),
                        Int(1),
                        Str("r"),
                    ],
                    &[Str("u"), Bytes(b"ab"), Bool(true), Int(1), Str("r")],
                    &[Str("u"), Bytes(b"ab"), Float(0.0), Int(1), Str("r")],
                    &[Str("u"), List(&[]), Int(0), Int(1), Str("r")],
                    &[Bytes(b"u"), Bytes(b"ab"), Int(0), Int(1), Str("r")],
                    &[Str("ab"), Int(0), Int(1), Str("r")],
                    &[Str("ab"), Int(0), Int(1), Datum::None],
                    &[Str("x")],
                    &[],
                ],
            );
        }
        4 => {
            let name = writer.choices.pick(&[
                "StopIteration",
                "SystemExit",
                "ImportError",
                "AttributeError",
                "NameError",
                "KeyError",
                "UnicodeError",
            ]);
            writer.call_with(
                "builtins",
                name,
                &[
                    &[],
                    &[Int(1)],
                    &[Int(1), Int(2)],
                    &[Tuple(&[Int(1)])],
                    &[Datum::None],
                ],
            );
        }
        _ => {
            let exception = writer.choices.pick(&[
                Call("builtins", "ValueError", &[Str("m")]),
                Call("builtins", "OSError", &[Int(2), Str("x")]),
                Call("builtins", "StopIteration", &[Int(1)]),
                Call("builtins", "SystemExit", &[Int(1)]),
                Call("builtins", "AttributeError", &[Str("a")]),
                Call("builtins", "NameError", &[Str("a")]),
                Call("builtins", "ImportError", &[Str("a")]),
                Call("builtins", "SyntaxError", &[Str("a")]),
                Call(
                    "builtins",
                    "UnicodeEncodeError",
                    &[Str("u"), Str("ab"), Int(0), Int(1), Str("r")],
                ),
                Call(
                    "builtins",
                    "ExceptionGroup",
                    &[Str("m"), List(&[VALUE_ERROR])],
                ),
                Call("builtins", "BlockingIOError", &[Int(11), Str("x"), Int(5)]),
            ]);
            writer.datum(exception);
            let states: &[Datum] = &[
                Dict(&[(Str("extra"), List(&[Int(1)]))]),
                Dict(&[(Str("args"), Tuple(&[Int(9)]))]),
                Dict(&[(Str("args"), List(&[Int(9)]))]),
                Dict(&[(Str("args"), Int(9))]),
                Dict(&[(Str("__cause__"), VALUE_ERROR)]),
                Dict(&[(Str("__cause__"), Datum::None)]),
                Dict(&[(Str("__cause__"), Int(1))]),
                Dict(&[(Str("__context__"), VALUE_ERROR)]),
                Dict(&[(Str("__suppress_context__"), Bool(true))]),
                Dict(&[(Str("__suppress_context__"), Int(1))]),
                Dict(&[(Str("__traceback__"), Datum::None)]),
                Dict(&[(Str("__traceback__"), Int(1))]),
                Dict(&[(Str("__notes__"), List(&[Str("n")]))]),
                Dict(&[(Str("__notes__"), Int(1))]),
                Dict(&[(Str("__class__"), Int(1))]),
                Dict(&[(Str("__dict__"), Dict(&[(Str("a"), Int(1))]))]),
                Dict(&[
                    (Str("name"), Str("n")),
                    (Str("path"), Str("p")),
                    (Str("obj"), Int(1)),
                ]),
                Dict(&[(Str("name_from"), Str("n"))]),
                Dict(&[(Str("value"), Int(7)), (Str("code"), Int(8))]),
                Dict(&[(Str("errno"), Int(3)), (Str("filename"), Str("f"))]),
                Dict(&[(Str("msg"), Int(3)), (Str("lineno"), Int(1))]),
                Dict(&[(Str("start"), Int(3)), (Str("reason"), Str("q"))]),
                Dict(&[(Str("start"), Str("a"))]),
                Dict(&[(Str("object"), Bytes(b"a"))]),
                Dict(&[(Str("message"), Str("a"))]),
                Dict(&[(Str("exceptions"), List(&[]))]),
                Dict(&[(Str("characters_written"), Int(3))]),
                Dict(&[(Str("characters_written"), Str("a"))]),
                Dict(&[(Str("print_file_and_line"), Int(3))]),
                Dict(&[(Int(1), Int(2))]),
                Dict(&[]),
                Datum::None,
                Int(1),
                Tuple(&[Datum::None, Dict(&[(Str("a"), Int(1))])]),
            ];
            for _ in 0..1 + writer.choices.below(2) {
                let state = writer.choices.pick(states);
                writer.datum(state);
                writer.op(op::BUILD);
            }
        }
    }
}

pub(super) fn records(writer: &mut Writer<'_>) {
    let (module, name) = writer.choices.pick(&[
        ("agentix.bash", "BashResult"),
        ("agentix.bridge.proxy", "TunnelHandle"),
        ("agentix.files", "UploadResult"),
    ]);
    if writer.choices.one_in(4) {
        return writer.call_with(
            module,
            name,
            &[&[Str("a"), Int(1)], &[Int(0), Str("o"), Str("e")], &[]],
        );
    }
    const UPLOAD: &[(Datum, Datum)] = &[(Str("path"), Str("p")), (Str("size"), Int(1))];
    const TUNNEL: &[(Datum, Datum)] = &[(Str("url"), Str("u")), (Str("port"), Int(1))];
    const BASH: &[(Datum, Datum)] = &[
        (Str("exit_code"), Int(0)),
        (Str("stdout"), Str("o")),
        (Str("stderr"), Str("e")),
    ];
    const EXTRA: &[(Datum, Datum)] = &[
        (Str("path"), Str("p")),
        (Str("size"), Int(1)),
        (Str("other"), Int(1)),
    ];
    writer.new_object(module, name, false);
    let states: &[Datum] = &[
        Dict(BASH),
        Dict(UPLOAD),
        Dict(TUNNEL),
        Dict(EXTRA),
        Dict(&[(Str("path"), Str("p"))]),
        Dict(&[(Str("size"), Int(1)), (Str("path"), Str("p"))]),
        Dict(&[]),
        Dict(&[(Int(1), Int(2))]),
        Datum::None,
        Tuple(&[Datum::None, Dict(TUNNEL)]),
        Tuple(&[Datum::None, Dict(UPLOAD)]),
        Tuple(&[Dict(UPLOAD), Datum::None]),
        Tuple(&[Datum::None, Dict(&[(Str("url"), Str("u"))])]),
        Tuple(&[Dict(&[]), Dict(BASH)]),
        List(&[Str("u"), Int(1)]),
    ];
    for _ in 0..writer.choices.below(3) {
        let state = writer.choices.pick(states);
        writer.datum(state);
        writer.op(op::BUILD);
    }
}

/// States for classes and functions, which would change them for the whole process.
pub(super) fn classes(writer: &mut Writer<'_>) {
    let (module, name) = writer.choices.pick(&[
        ("collections", "Counter"),
        ("fractions", "Fraction"),
        ("pathlib", "PurePath"),
        ("uuid", "UUID"),
        ("agentix.bash", "BashResult"),
        ("copyreg", "__newobj__"),
        ("builtins", "list"),
        ("builtins", "ValueError"),
        ("datetime", "timezone"),
    ]);
    writer.global(module, name);
    let state = writer.choices.pick(&[
        Dict(&[(Str("marker"), Int(1))]),
        Tuple(&[Datum::None, Dict(&[(Str("marker"), Int(1))])]),
        Tuple(&[Datum::None, Dict(&[(Str("__doc__"), Str("changed"))])]),
        Datum::None,
    ]);
    writer.datum(state);
    writer.op(op::BUILD);
}

/// Keys of named types that are equal to each other or to plain ones, that equal only themselves, or that
/// cannot be keys.
pub(super) fn keys(writer: &mut Writer<'_>) {
    const UTC: Datum = Call(
        "datetime",
        "timezone",
        &[Call("datetime", "timedelta", &[Int(0), Int(0), Int(0)])],
    );
    const UTC_NAMED: Datum = Call(
        "datetime",
        "timezone",
        &[
            Call("datetime", "timedelta", &[Int(0), Int(0), Int(0)]),
            Str("UTC"),
        ],
    );
    const EAST: Datum = Call(
        "datetime",
        "timezone",
        &[Call("datetime", "timedelta", &[Int(0), Int(3600), Int(0)])],
    );
    const POOLS: &[&[Datum]] = &[
        &[
            Int(1),
            Float(1.0),
            Bool(true),
            Call("decimal", "Decimal", &[Str("1")]),
            Call("decimal", "Decimal", &[Str("1.00")]),
            Call("decimal", "Decimal", &[Str("10E-1")]),
            Call("fractions", "Fraction", &[Int(1), Int(1)]),
            Call("builtins", "complex", &[Float(1.0), Float(0.0)]),
            Call("builtins", "complex", &[Float(1.0), Float(-0.0)]),
        ],
        &[
            Float(0.5),
            Call("decimal", "Decimal", &[Str("0.5")]),
            Call("decimal", "Decimal", &[Str("5E-1")]),
            Call("fractions", "Fraction", &[Int(1), Int(2)]),
            Call("builtins", "complex", &[Float(0.5), Float(0.0)]),
        ],
        &[
            Float(0.1),
            Call("decimal", "Decimal", &[Str("0.1")]),
            Call("fractions", "Fraction", &[Int(1), Int(10)]),
            Call(
                "decimal",
                "Decimal",
                &[Str(
                    "0.1000000000000000055511151231257827021181583404541015625",
                )],
            ),
            Call(
                "fractions",
                "Fraction",
                &[Int(3_602_879_701_896_397), Int(36_028_797_018_963_968)],
            ),
        ],
        &[
            Int(0),
            Float(-0.0),
            Bool(false),
            Call("decimal", "Decimal", &[Str("-0")]),
            Call("decimal", "Decimal", &[Str("0E+5")]),
            Call("fractions", "Fraction", &[Int(0), Int(1)]),
            Call("builtins", "complex", &[Float(-0.0), Float(-0.0)]),
        ],
        &[
            Big(b"\0\0\0\0\0\0\0\0\x01"),
            Float(18_446_744_073_709_551_616.0),
            Call("decimal", "Decimal", &[Str("18446744073709551616")]),
            Call("decimal", "Decimal", &[Str("1.8446744073709551616E+19")]),
            Int(i64::MAX),
        ],
        &[
            Float(f64::NAN),
            Float(f64::INFINITY),
            Float(f64::NEG_INFINITY),
            Call("decimal", "Decimal", &[Str("NaN")]),
            Call("decimal", "Decimal", &[Str("Infinity")]),
            Call("decimal", "Decimal", &[Str("-Infinity")]),
            Call("builtins", "complex", &[Float(f64::NAN), Float(0.0)]),
            Call("builtins", "complex", &[Float(f64::INFINITY), Float(0.0)]),
        ],
        &[
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06")],
            ),
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x81\x02\x03\x04\x05\0\0\x06")],
            ),
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06"), UTC],
            ),
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x01\x02\x04\x04\x05\0\0\x06"), EAST],
            ),
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x01\x02\x03\x04\x05\0\0\x06"), UTC_NAMED],
            ),
            Call(
                "datetime",
                "datetime",
                &[Bytes(b"\x07\xea\x01\x02\0\0\0\0\0\0")],
            ),
            Call("datetime", "date", &[Bytes(b"\x07\xea\x01\x02")]),
        ],
        &[
            Call("datetime", "time", &[Bytes(b"\x03\x04\x05\0\0\x06")]),
            Call("datetime", "time", &[Bytes(b"\x83\x04\x05\0\0\x06")]),
            Call("datetime", "time", &[Bytes(b"\x03\x04\x05\0\0\x06"), UTC]),
            Call("datetime", "time", &[Bytes(b"\x04\x04\x05\0\0\x06"), EAST]),
            UTC,
            UTC_NAMED,
            EAST,
            Call("datetime", "timedelta", &[Int(0), Int(3600), Int(0)]),
        ],
        &[
            Call("pathlib", "PurePosixPath", &[Str("a/b")]),
            Call("pathlib", "PurePosixPath", &[Str("a"), Str("b")]),
            Call("pathlib", "PosixPath", &[Str("a/b")]),
            Call("pathlib", "PureWindowsPath", &[Str("a/b")]),
            Call("pathlib", "PureWindowsPath", &[Str("A\\B")]),
            Str("a/b"),
            Call("pathlib", "PureWindowsPath", &[Str("\u{130}")]),
            Call("pathlib", "PureWindowsPath", &[Str("i\u{307}")]),
        ],
        &[
            Call("builtins", "range", &[Int(0), Int(0), Int(1)]),
            Call("builtins", "range", &[Int(5), Int(2), Int(1)]),
            Call("builtins", "range", &[Int(0), Int(3), Int(2)]),
            Call("builtins", "range", &[Int(0), Int(4), Int(2)]),
            Call("builtins", "range", &[Int(0), Int(1), Int(7)]),
            Call("builtins", "range", &[Int(0), Int(1), Int(-7)]),
            Call("builtins", "range", &[Int(0), Int(1), Int(1)]),
        ],
        // Equal to themselves only.
        &[
            Call("builtins", "ValueError", &[Int(1)]),
            Call("builtins", "ValueError", &[Int(1)]),
            Class("builtins", "list"),
            Class("builtins", "OSError"),
            Class("builtins", "IOError"),
            Class("copyreg", "__newobj__"),
            Call("uuid", "UUID", &[Str("12345678123456781234567812345678")]),
        ],
        // No keys.
        &[
            Call("decimal", "Decimal", &[Str("sNaN")]),
            Call("decimal", "Decimal", &[Str("1")]),
            Int(1),
        ],
        &[Call(
            "builtins",
            "slice",
            &[Datum::None, Int(1), Datum::None],
        )],
        &[Call("collections", "OrderedDict", &[])],
        &[Call("collections", "Counter", &[Dict(&[])])],
        &[Call("collections", "deque", &[])],
        &[Call("builtins", "bytearray", &[])],
        &[Call("builtins", "set", &[List(&[])])],
    ];
    let pool = writer.choices.pick(POOLS);
    let ending = writer.choices.below(3);
    if ending > 0 {
        writer.op(if ending == 1 {
            op::EMPTY_SET
        } else {
            op::EMPTY_DICT
        });
    }
    writer.op(op::MARK);
    for at in 0..1 + writer.choices.below(20) {
        let key = writer.choices.pick(pool);
        if writer.choices.one_in(5) {
            writer.datum(key);
            writer.datum(key);
            writer.op(op::TUPLE2);
        } else {
            writer.datum(key);
        }
        if ending == 2 {
            writer.int(at as i64);
        }
    }
    writer.op(match ending {
        0 => op::FROZENSET,
        1 => op::ADDITEMS,
        _ => op::SETITEMS,
    });
}

/// Small streams that ask for much.
pub(super) fn costs(writer: &mut Writer<'_>) {
    let datum = writer.choices.pick(&[
        Call("builtins", "bytearray", &[Int(1_000_000)]),
        Call("builtins", "bytes", &[Int(1_000_000)]),
        Call("fractions", "Fraction", &[Str("1e2000")]),
        Call(
            "builtins",
            "list",
            &[Call("builtins", "range", &[Int(0), Int(10_000), Int(1)])],
        ),
        Call(
            "collections",
            "deque",
            &[
                Call("builtins", "range", &[Int(0), Int(10_000), Int(1)]),
                Int(0),
            ],
        ),
        Call("builtins", "int", &[Str("0x1")]),
    ]);
    writer.datum(datum);
}

/// The helpers of protocols 0 and 1, called.
pub(super) fn helpers(writer: &mut Writer<'_>) {
    match writer.choices.below(3) {
        0 => writer.call_with(
            "copyreg",
            "_reconstructor",
            &[
                &[
                    Class("builtins", "list"),
                    Class("builtins", "list"),
                    List(&[Int(1)]),
                ],
                &[
                    Class("collections", "Counter"),
                    Class("builtins", "dict"),
                    Dict(&[]),
                ],
                &[
                    Class("builtins", "KeyError"),
                    Class("builtins", "Exception"),
                    Int(1),
                ],
                &[Class("builtins", "list"), Class("builtins", "list")],
                &[Int(1), Class("builtins", "list"), Datum::None],
                &[],
            ],
        ),
        1 => writer.call_with(
            "copyreg",
            "__newobj__",
            &[
                &[Class("agentix.files", "UploadResult")],
                &[Class("uuid", "UUID")],
                &[Class("fractions", "Fraction"), Int(1), Int(2)],
                &[Class("builtins", "ValueError"), Int(1)],
                &[Int(1)],
                &[Class("copyreg", "__newobj__")],
                &[],
            ],
        ),
        _ => writer.call_with(
            "copyreg",
            "__newobj_ex__",
            &[
                &[
                    Class("agentix.files", "UploadResult"),
                    Tuple(&[]),
                    Dict(&[]),
                ],
                &[Class("builtins", "list"), Tuple(&[]), Dict(&[])],
                &[
                    Class("fractions", "Fraction"),
                    Tuple(&[]),
                    Dict(&[(Str("numerator"), Int(1))]),
                ],
                &[Class("builtins", "list"), List(&[]), Dict(&[])],
                &[Class("builtins", "list"), Tuple(&[])],
                &[Class("builtins", "list"), Tuple(&[]), List(&[])],
            ],
        ),
    }
    if writer.choices.one_in(2) {
        writer.datum(Dict(&[(Str("path"), Str("p")), (Str("size"), Int(1))]));
        writer.op(op::BUILD);
    }
}

/// NEWOBJ_EX as it may be written for what NEWOBJ makes, and otherwise.
pub(super) fn new_object_ex(writer: &mut Writer<'_>) {
    let (class, state) = writer.choices.pick(&[
        (Class("uuid", "UUID"), Dict(&[(Str("int"), Int(1))])),
        (
            Class("agentix.files", "UploadResult"),
            Dict(&[(Str("path"), Str("p")), (Str("size"), Int(1))]),
        ),
    ]);
    let class = if writer.choices.one_in(4) {
        writer.choices.pick(&[
            Class("builtins", "list"),
            Class("builtins", "ValueError"),
            Int(1),
            Class("copyreg", "__newobj__"),
        ])
    } else {
        class
    };
    writer.datum(class);
    let arguments = writer
        .choices
        .pick(&[Tuple(&[]), Tuple(&[]), Tuple(&[Int(1)]), List(&[])]);
    writer.datum(arguments);
    let keywords = writer.choices.pick(&[
        Dict(&[]),
        Dict(&[]),
        Dict(&[(Str("a"), Int(1))]),
        Dict(&[(Int(1), Int(1))]),
        Datum::None,
    ]);
    writer.datum(keywords);
    writer.op(op::NEWOBJ_EX);
    writer.datum(state);
    writer.op(op::BUILD);
}

/// INST and OBJ of a class with its arguments in the form that a pickler gives to REDUCE.
pub(super) fn instances(writer: &mut Writer<'_>) {
    let (module, name, arguments): (&str, &str, &[Datum]) = writer.choices.pick(&[
        ("datetime", "timedelta", &[Int(1), Int(2), Int(3)][..]),
        ("decimal", "Decimal", &[Str("1.5")]),
        ("builtins", "KeyError", &[Int(1)]),
        ("builtins", "KeyError", &[]),
        ("pathlib", "PurePosixPath", &[Str("a")]),
        ("builtins", "complex", &[Float(1.0), Float(2.0)]),
        ("fractions", "Fraction", &[Int(1), Int(2)]),
        ("collections", "OrderedDict", &[]),
        ("copyreg", "__newobj__", &[]),
    ]);
    writer.op(op::MARK);
    if writer.choices.one_in(2) {
        writer.global(module, name);
        for argument in arguments {
            writer.datum(*argument);
        }
        writer.op(op::OBJ);
    } else {
        for argument in arguments {
            writer.datum(*argument);
        }
        writer.line(op::INST, module);
        writer.out.extend(name.bytes());
        writer.op(b'\n');
    }
}
