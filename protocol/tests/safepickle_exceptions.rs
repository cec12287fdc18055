//! Exceptions of the builtins: what each class makes of its arguments and of a state, as CPython 3.11 has it.
//!
//! Streams are in the text opcodes of protocol 0: `c` names a class, `(` to `t` is a tuple, `R` calls,
//! `}`, `s` and `b` make a state and set it.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    BuildError, Builder, DecodeErrorKind, Decoder, Document, ExceptionClass, Kind, LimitKind,
    Limits, Malformed, Policy, Value, decode,
};

/// A call of a class with arguments.
fn call(class: &str, args: &str) -> String {
    format!("cbuiltins\n{class}\n({args}tR")
}

fn read(stream: &str) -> Result<Document<'_>, DecodeErrorKind> {
    decode(stream.as_bytes()).map_err(|error| error.kind().clone())
}

/// A value in short: its repr.
fn repr(value: Value<'_>) -> String {
    format!("{value:?}")
}

/// The class, the arguments and the fields of the exception that a stream makes.
fn made(stream: &str) -> (ExceptionClass, Vec<String>, Vec<(&'static str, String)>) {
    let stream = format!("{stream}.");
    let document = read(&stream).unwrap_or_else(|error| panic!("{stream}: {error}"));
    let exception = document.root().exception().unwrap();
    (
        exception.class(),
        exception.args().iter().map(repr).collect(),
        exception
            .fields()
            .map(|(name, value)| (name, repr(value)))
            .collect(),
    )
}

/// The class, the arguments and the fields that a call makes.
fn called(class: &str, args: &str) -> (ExceptionClass, Vec<String>, Vec<(&'static str, String)>) {
    made(&call(class, args))
}

fn is_refused(class: &str, args: &str) {
    let stream = format!("{}.", call(class, args));
    let error = read(&stream).map(drop);
    assert_eq!(
        error,
        Err(DecodeErrorKind::Malformed(Malformed::Arguments)),
        "{stream}"
    );
}

fn takes_no_state(stream: &str) {
    let stream = format!("{stream}.");
    let error = read(&stream).map(drop);
    let expected = DecodeErrorKind::Malformed(Malformed::NoState(Kind::Exception));
    assert_eq!(error, Err(expected), "{stream}");
}

fn texts(values: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    values
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[test]
fn every_class_of_the_builtins_is_known_by_its_name() {
    let names = "ArithmeticError AssertionError AttributeError BaseException BlockingIOError \
        BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError \
        ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError \
        EncodingWarning Exception FileExistsError FileNotFoundError FloatingPointError FutureWarning \
        GeneratorExit ImportError ImportWarning IndentationError IndexError InterruptedError \
        IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError \
        NameError NotADirectoryError NotImplementedError OSError OverflowError \
        PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError \
        ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError \
        SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError \
        UnicodeError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError";
    for name in names.split_whitespace() {
        let (class, args, _) = called(name, "Vm\n");
        assert_eq!((class.name(), args), (name, vec!["'m'".to_owned()]));
        assert!(class.is_subclass_of(ExceptionClass::BaseException));
    }
    // Two names of one class.
    for name in ["IOError", "EnvironmentError"] {
        assert_eq!(called(name, "Vm\n").0, ExceptionClass::OSError);
    }
}

#[test]
fn os_error_takes_its_class_and_fields_from_its_arguments() {
    let classes = [
        (1, ExceptionClass::PermissionError),
        (2, ExceptionClass::FileNotFoundError),
        (3, ExceptionClass::ProcessLookupError),
        (4, ExceptionClass::InterruptedError),
        (5, ExceptionClass::OSError),
        (10, ExceptionClass::ChildProcessError),
        (11, ExceptionClass::BlockingIOError),
        (13, ExceptionClass::PermissionError),
        (17, ExceptionClass::FileExistsError),
        (20, ExceptionClass::NotADirectoryError),
        (21, ExceptionClass::IsADirectoryError),
        (32, ExceptionClass::BrokenPipeError),
        (103, ExceptionClass::ConnectionAbortedError),
        (104, ExceptionClass::ConnectionResetError),
        (108, ExceptionClass::BrokenPipeError),
        (110, ExceptionClass::TimeoutError),
        (111, ExceptionClass::ConnectionRefusedError),
        (114, ExceptionClass::BlockingIOError),
        (115, ExceptionClass::BlockingIOError),
    ];
    for (errno, class) in classes {
        let args = format!("I{errno}\nVx\n");
        assert_eq!(called("OSError", &args).0, class, "{errno}");
        // A class of its own stays what it is, and so does one without a text.
        let own = called("ConnectionError", &args);
        assert_eq!(own.0, ExceptionClass::ConnectionError);
        assert_eq!(own.2[0], ("errno", errno.to_string()));
        assert_eq!(
            called("OSError", &format!("I{errno}\n")).0,
            ExceptionClass::OSError
        );
    }

    let (class, args, fields) = called("OSError", "I2\nVx\nVf\nNVg\n");
    assert_eq!(class, ExceptionClass::FileNotFoundError);
    assert_eq!(args, ["2", "'x'"], "the names leave the arguments");
    let expected = [
        ("errno", "2"),
        ("strerror", "'x'"),
        ("filename", "'f'"),
        ("filename2", "'g'"),
    ];
    assert_eq!(fields, texts(&expected));

    // Without a name they all stay, and without a first name there is no second.
    let (_, args, fields) = called("OSError", "I5\nVx\nNNVg\n");
    assert_eq!(args, ["5", "'x'", "None", "None", "'g'"]);
    let expected = [
        ("errno", "5"),
        ("strerror", "'x'"),
        ("filename", "None"),
        ("filename2", "None"),
    ];
    assert_eq!(fields, texts(&expected));

    // One argument, or more than five, are arguments and nothing else.
    for (args, count) in [("I2\n", 1), ("I2\nVx\nVf\nNVg\nV6\n", 6)] {
        let (class, given, fields) = called("OSError", args);
        assert_eq!((class, given.len()), (ExceptionClass::OSError, count));
        assert!(fields.iter().all(|(_, value)| value == "None"));
    }
    // True is 1; a float is no number of an error.
    assert_eq!(
        called("OSError", "I01\nVx\n").0,
        ExceptionClass::PermissionError
    );
    assert_eq!(called("OSError", "F2\nVx\n").0, ExceptionClass::OSError);
}

#[test]
fn blocking_io_error_counts_characters() {
    let count = |args: &str| {
        let (class, given, fields) = called("OSError", args);
        assert_eq!(class, ExceptionClass::BlockingIOError);
        let find = |name| fields.iter().find(|(found, _)| *found == name);
        let count = find("characters_written").map(|(_, value)| value.clone());
        (given.len(), find("filename").unwrap().1.clone(), count)
    };
    assert_eq!(
        count("I11\nVx\nI42\n"),
        (3, "None".into(), Some("42".into()))
    );
    assert_eq!(
        count("I11\nVx\nI01\n"),
        (3, "None".into(), Some("1".into()))
    );
    // Python's own mark for none.
    assert_eq!(count("I11\nVx\nI-1\n"), (3, "None".into(), None));
    assert_eq!(count("I11\nVx\nVf\n"), (2, "'f'".into(), None));
    assert_eq!(count("I11\nVx\n"), (2, "None".into(), None));
    // Numbers that Python cannot count with.
    for number in [
        "F4\n",
        "I99999999999999999999\n",
        "cbuiltins\ncomplex\n(F1\nF1\ntR",
    ] {
        let args = format!("I11\nVx\n{number}");
        let stream = format!("{}.", call("OSError", &args));
        assert!(read(&stream).is_err(), "{number}");
    }
    // To any other class it is a file name.
    assert_eq!(
        called("OSError", "I2\nVx\nI42\n").2[2],
        ("filename", "42".into())
    );
}

#[test]
fn classes_that_keep_an_argument_as_a_field() {
    let field = |class, args| called(class, args).2;
    assert_eq!(field("SystemExit", ""), texts(&[("code", "None")]));
    assert_eq!(field("SystemExit", "I3\n"), texts(&[("code", "3")]));
    assert_eq!(
        field("SystemExit", "I3\nI4\n"),
        texts(&[("code", "(3, 4)")])
    );
    assert_eq!(field("StopIteration", ""), texts(&[("value", "None")]));
    assert_eq!(field("StopIteration", "I3\nI4\n"), texts(&[("value", "3")]));
    assert_eq!(field("StopAsyncIteration", "I3\n"), []);
    let import = [("msg", "'m'"), ("name", "None"), ("path", "None")];
    assert_eq!(field("ImportError", "Vm\n"), texts(&import));
    assert_eq!(field("ModuleNotFoundError", "Vm\n"), texts(&import));
    // Two arguments are no message.
    assert_eq!(field("ImportError", "Vm\nVn\n")[0], ("msg", "None".into()));
    assert_eq!(field("NameError", "Vm\n"), texts(&[("name", "None")]));
    assert_eq!(
        field("UnboundLocalError", "Vm\n"),
        texts(&[("name", "None")])
    );
    assert_eq!(
        field("AttributeError", "Vm\n"),
        texts(&[("name", "None"), ("obj", "None")])
    );
}

#[test]
fn syntax_error_takes_its_details_apart() {
    let names = ExceptionClass::SyntaxError.field_names();
    let field = |args: &str| {
        let fields = called("IndentationError", args).2;
        assert_eq!(
            fields.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            names
        );
        fields
            .into_iter()
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
    };
    assert_eq!(field(""), ["None"; 8]);
    let four = ["'m'", "'f'", "3", "5", "'t'", "None", "None", "None"];
    assert_eq!(field("Vm\n(Vf\nI3\nI5\nVt\nt"), four);
    assert_eq!(field("Vm\n(Vf\nI3\nI5\nVt\nl"), four, "a list will do");
    let six = ["'m'", "'f'", "3", "5", "'t'", "3", "6", "None"];
    assert_eq!(field("Vm\n(Vf\nI3\nI5\nVt\nI3\nI6\nt"), six);
    // Details are looked at if there are exactly two arguments.
    assert_eq!(field("Vm\nI1\nI2\n")[0], "'m'");
    for details in [
        "I1\n",
        "(t",
        "(Vf\nI3\nI5\nt",
        "(Vf\nI3\nI5\nVt\nI3\nt",
        "(Vf\nI3\nI5\nVt\nI3\nI6\nI7\nt",
    ] {
        is_refused("SyntaxError", &format!("Vm\n{details}"));
    }
}

#[test]
fn unicode_errors_check_their_arguments() {
    let (_, args, fields) = called("UnicodeEncodeError", "Va\nVb\nI0\nI01\nVr\n");
    assert_eq!(args, ["'a'", "'b'", "0", "True", "'r'"]);
    let expected = [
        ("encoding", "'a'"),
        ("object", "'b'"),
        ("start", "0"),
        ("end", "1"),
        ("reason", "'r'"),
    ];
    assert_eq!(fields, texts(&expected), "a bool is a number");
    let bytes = "cbuiltins\nbytes\n(tR";
    let bytearray = format!("cbuiltins\nbytearray\n({bytes}tR");
    for object in [bytes, &bytearray] {
        let args = format!("Va\n{object}I0\nI1\nVr\n");
        let (_, _, fields) = called("UnicodeDecodeError", &args);
        assert_eq!(fields[1], ("object", "b''".into()));
    }
    let (_, _, fields) = called("UnicodeTranslateError", "Vb\nI0\nI1\nVr\n");
    let expected = [
        ("object", "'b'"),
        ("start", "0"),
        ("end", "1"),
        ("reason", "'r'"),
    ];
    assert_eq!(fields, texts(&expected));

    let int = "I0\n";
    let wrong = [
        ("UnicodeEncodeError", String::new()),
        ("UnicodeEncodeError", format!("Va\n{bytes}I0\nI1\nVr\n")),
        ("UnicodeEncodeError", format!("{int}Vb\nI0\nI1\nVr\n")),
        ("UnicodeEncodeError", "Va\nVb\nI0\nF1\nVr\n".into()),
        (
            "UnicodeEncodeError",
            "Va\nVb\nI0\nI99999999999999999999\nVr\n".into(),
        ),
        ("UnicodeEncodeError", "Va\nVb\nI0\nI1\nN".into()),
        ("UnicodeEncodeError", "Va\nVb\nI0\nI1\nVr\nVs\n".into()),
        ("UnicodeDecodeError", "Va\nVb\nI0\nI1\nVr\n".into()),
        ("UnicodeTranslateError", "Va\nVb\nI0\nI1\nVr\n".into()),
        ("UnicodeTranslateError", format!("{bytes}I0\nI1\nVr\n")),
    ];
    for (class, args) in wrong {
        is_refused(class, &args);
    }
    // Their base class has no rules.
    assert_eq!(called("UnicodeError", "I1\n").2, []);
}

#[test]
fn groups_hold_exceptions() {
    let value_error = call("ValueError", "");
    let exit = call("SystemExit", "");
    let (class, args, fields) = called("ExceptionGroup", &format!("Vm\n({value_error}l"));
    assert_eq!(class, ExceptionClass::ExceptionGroup);
    assert_eq!(args.len(), 2);
    assert_eq!(fields[0], ("message", "'m'".into()));
    let stream = format!(
        "{}.",
        call("ExceptionGroup", &format!("Vm\n({value_error}l"))
    );
    let document = read(&stream).unwrap();
    let group = document.root().exception().unwrap();
    let nested = group.exceptions().unwrap();
    assert_eq!(nested.len(), 1);
    let list = group.args().at(1).unwrap().list().unwrap();
    assert_eq!(list.at(0).unwrap().id(), nested.at(0).unwrap().id());

    // Without a base exception it is the narrower group; with one it cannot be.
    let both = format!("Vm\n({value_error}{exit}l");
    assert_eq!(
        called("BaseExceptionGroup", &both).0,
        ExceptionClass::BaseExceptionGroup
    );
    let narrow = called("BaseExceptionGroup", &format!("Vm\n({value_error}t")).0;
    assert_eq!(narrow, ExceptionClass::ExceptionGroup);
    is_refused("ExceptionGroup", &both);
    // The narrower group is an exception itself, and may be in another of its kind.
    let inner = call("ExceptionGroup", &format!("Vm\n({value_error}l"));
    let outer = called("BaseExceptionGroup", &format!("Vm\n({inner}l")).0;
    assert_eq!(outer, ExceptionClass::ExceptionGroup);
    for args in [
        String::new(),
        "Vm\n".into(),
        "Vm\n(l".into(),
        "Vm\n(I1\nl".into(),
        "Vm\ncbuiltins\nValueError\n".into(),
        "Vm\n(cbuiltins\nValueError\nl".into(),
        format!("I1\n({value_error}l"),
        format!("Vm\n({value_error}lN"),
        format!("Vm\n{value_error}"),
    ] {
        is_refused("BaseExceptionGroup", &args);
    }
}

/// The tuple of a group's exceptions does not change with the list that it was made of.
#[test]
fn a_group_keeps_what_the_list_held() {
    let value_error = call("ValueError", "");
    let stream = format!("(]p0\n{value_error}acbuiltins\nExceptionGroup\n(Vm\ng0\ntRg0\nI1\nal.");
    let document = read(&stream).unwrap();
    let group = document.root().list().unwrap().at(1).unwrap();
    let group = group.exception().unwrap();
    assert_eq!(group.args().at(1).unwrap().list().unwrap().len(), 2);
    assert_eq!(group.exceptions().unwrap().len(), 1);
}

#[test]
fn classes_known_by_name_may_be_in_a_group() {
    let policy = Policy::agentix().allow("app", "Mine");
    let read = |class: &str| {
        let stream = format!("cbuiltins\n{class}\n(Vm\n(capp\nMine\n(tRltR.");
        let document = Decoder::new(policy.clone(), Limits::default())
            .decode(stream.as_bytes())
            .map(Document::into_owned)
            .unwrap();
        document.root().exception().unwrap().class()
    };
    assert_eq!(read("ExceptionGroup"), ExceptionClass::ExceptionGroup);
    assert_eq!(
        read("BaseExceptionGroup"),
        ExceptionClass::BaseExceptionGroup
    );
}

/// Each group looks at the same thousand exceptions and keeps them in a tuple of its own.
#[test]
fn groups_over_one_list_are_charged_for_it() {
    let one = call("ValueError", "");
    let mut stream = format!("]p0\n({one}p1\n{}e", "g1\n".repeat(20_000));
    for _ in 0..1_000 {
        stream.push_str("cbuiltins\nExceptionGroup\n(Vm\ng0\ntR0");
    }
    stream.push('.');
    let error = read(&stream).map(drop).unwrap_err();
    assert!(
        matches!(
            error,
            DecodeErrorKind::Limit {
                limit: LimitKind::WorkSteps,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_state_sets_fields_and_attributes() {
    let import = format!(
        "{}}}Vname\nVn\nsVpath\nVp\nsVextra\nI1\nsb",
        call("ImportError", "Vm\n")
    );
    let expected = [("msg", "'m'"), ("name", "'n'"), ("path", "'p'")];
    assert_eq!(made(&import).2, texts(&expected));
    let stream = format!("{import}.");
    let document = read(&stream).unwrap();
    let exception = document.root().exception().unwrap();
    let attrs: Vec<_> = exception
        .attrs()
        .unwrap()
        .iter()
        .map(|(key, _)| repr(key))
        .collect();
    assert_eq!(attrs, ["'extra'"]);
    assert_eq!(
        document
            .root()
            .attrs()
            .unwrap()
            .value("extra")
            .unwrap()
            .as_i64(),
        Some(1)
    );

    // What is a field of one class is an attribute of another.
    let stream = format!("{}}}Vname\nVn\nsb.", call("ValueError", ""));
    let document = read(&stream).unwrap();
    assert_eq!(document.root().attrs().unwrap().len(), 1);

    // Python 3.12 and later write arguments of an AttributeError once more.
    let (_, args, fields) = made(&format!(
        "{}}}Vname\nVx\nsVargs\n(I1\nI2\ntsb",
        call("AttributeError", "")
    ));
    assert_eq!(args, ["1", "2"]);
    assert_eq!(fields[0], ("name", "'x'".into()));

    let notes = format!("{}}}V__notes__\n(Va\nI1\nVb\nlsb.", call("ValueError", ""));
    let document = read(&notes).unwrap();
    let exception = document.root().exception().unwrap();
    let notes: Vec<_> = exception.notes().filter_map(|note| note.as_str()).collect();
    assert_eq!(notes, ["a", "b"]);

    let written = made(&format!(
        "{}}}Vcharacters_written\nI7\nsb",
        call("OSError", "I5\nVx\n")
    ));
    assert_eq!(written.2[4], ("characters_written", "7".into()));
    // Each state adds to the one before.
    let twice = format!(
        "{}}}Va\nI1\nsb}}Vb\nI2\nsVa\nI3\nsb.",
        call("ValueError", "")
    );
    let document = read(&twice).unwrap();
    let attrs = document.root().attrs().unwrap();
    assert_eq!(
        (attrs.len(), attrs.value("a").unwrap().as_i64()),
        (2, Some(3))
    );
}

#[test]
fn a_state_that_would_do_something_is_refused() {
    let value_error = call("ValueError", "");
    for state in [
        "I1\n",
        "N",
        "(t",
        "(N}t",
        "}I1\nI1\ns",
        "}Vargs\nI1\ns",
        "}Vargs\n(ls",
    ] {
        takes_no_state(&format!("{value_error}{state}b"));
    }
    for name in [
        "__cause__",
        "__context__",
        "__suppress_context__",
        "__traceback__",
        "__dict__",
        "__class__",
    ] {
        takes_no_state(&format!("{value_error}}}V{name}\nNsb"));
    }
    let group = call("ExceptionGroup", &format!("Vm\n({value_error}l"));
    takes_no_state(&format!("{group}}}Vmessage\nVx\nsb"));
    takes_no_state(&format!("{group}}}Vexceptions\n(tsb"));
    let encode = call("UnicodeEncodeError", "Va\nVb\nI0\nI1\nVr\n");
    for state in ["Vstart\nVx\n", "Vobject\nI1\n", "Vend\nF1\n", "Vreason\nN"] {
        takes_no_state(&format!("{encode}}}{state}sb"));
    }
    let os_error = call("OSError", "I5\nVx\n");
    takes_no_state(&format!("{os_error}}}Vcharacters_written\nVx\nsb"));
}

#[test]
fn an_exception_may_hold_itself() {
    let stream = format!("{}p0\n}}Vme\ng0\nsb.", call("KeyError", "Vk\n"));
    let document = read(&stream).unwrap();
    let me = document.root().attrs().unwrap().value("me").unwrap();
    assert_eq!(me.id(), document.root().id());
}

/// `Class.__new__` leaves an exception half made; no pickler asks for it.
#[test]
fn an_exception_is_made_by_a_call() {
    for stream in [
        "\u{80}\u{2}cbuiltins\nValueError\n(t\u{81}.",
        "(ibuiltins\nValueError\n.",
        "(cbuiltins\nValueError\no.",
    ] {
        let bytes: Vec<u8> = stream.chars().map(|char| char as u8).collect();
        let error = decode(&bytes).map(drop).unwrap_err();
        let expected = DecodeErrorKind::Malformed(Malformed::Arguments);
        assert_eq!(*error.kind(), expected, "{stream:?}");
    }
}

#[test]
fn messages_read_as_in_python() {
    let value_error = call("ValueError", "");
    let bytes = "cbuiltins\nbytes\n(tR";
    let cases = [
        (call("ValueError", ""), ""),
        (call("ValueError", "Vit's\n"), "it's"),
        (call("ValueError", "I1\nVx\n"), "(1, 'x')"),
        (call("KeyError", "Vk\n"), "'k'"),
        (call("OSError", "I2\nVno\n"), "[Errno 2] no"),
        (
            call("OSError", "I2\nVno\nVa\nNVb\n"),
            "[Errno 2] no: 'a' -> 'b'",
        ),
        (call("OSError", "Vonly\n"), "only"),
        (call("ImportError", "Vm\n"), "m"),
        (
            call("SyntaxError", "Vbad\n(Vd/f.py\nI3\nI5\nVx\nt"),
            "bad (f.py, line 3)",
        ),
        (call("SyntaxError", "Vbad\n"), "bad"),
        (
            call("UnicodeEncodeError", "Vascii\nVa\\u03bb\nI1\nI2\nVno\n"),
            "'ascii' codec can't encode character '\\u03bb' in position 1: no",
        ),
        (
            call("UnicodeEncodeError", "Vascii\nVab\nI0\nI2\nVno\n"),
            "'ascii' codec can't encode characters in position 0-1: no",
        ),
        (
            call(
                "UnicodeDecodeError",
                &format!("Vutf-8\n{bytes}I0\nI1\nVno\n"),
            ),
            "'utf-8' codec can't decode bytes in position 0-0: no",
        ),
        (
            call("UnicodeTranslateError", "Va\nI0\nI1\nVno\n"),
            "can't translate character '\\x61' in position 0: no",
        ),
        (
            call("ExceptionGroup", &format!("Vm\n({value_error}l")),
            "m (1 sub-exception)",
        ),
    ];
    for (stream, expected) in cases {
        let stream = format!("{stream}.");
        let document = read(&stream).unwrap();
        assert_eq!(document.root().exception().unwrap().to_string(), expected);
    }
}

#[test]
fn exceptions_are_built_by_hand() {
    let mut builder = Builder::new();
    let args = [builder.int(2).unwrap(), builder.str("x").unwrap()];
    let error = builder.exception(ExceptionClass::OSError, &args).unwrap();
    let refused = builder.exception(ExceptionClass::ExceptionGroup, &args);
    assert_eq!(refused, Err(BuildError::Rule(Malformed::Arguments)));
    let document = builder.finish(error).unwrap();
    let error = document.root().exception().unwrap();
    assert_eq!(
        (error.class(), error.errno()),
        (ExceptionClass::FileNotFoundError, Some(2))
    );
}
