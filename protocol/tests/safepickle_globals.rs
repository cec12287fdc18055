//! Names, calls and states, and what a policy makes of them.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    self, DecodeErrorKind, Decoder, Event, Kind, Limits, Malformed, Opcode, Origin, Policy, Value,
};

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

#[test]
fn globals_are_refused_by_name() {
    let refused = |module: &str, qualname: &str| DecodeErrorKind::RefusedGlobal {
        module: module.into(),
        qualname: qualname.into(),
    };
    assert_eq!(
        error(b"cos\nsystem\n."),
        (refused("os", "system"), 0, Some(Opcode::GLOBAL))
    );
    assert_eq!(
        error(b"(ios\nsystem\n."),
        (refused("os", "system"), 1, Some(Opcode::INST))
    );
    let stack_global = b"\x80\x04\x8c\x02os\x8c\x08path.sep\x93.";
    assert_eq!(
        error(stack_global),
        (refused("os", "path.sep"), 16, Some(Opcode::STACK_GLOBAL))
    );
    assert_eq!(
        error(b"\x8c\x04o\xed\xa0\x80\x8c\x01x\x93.").0,
        refused("o\\ud800", "x")
    );
    assert_eq!(error(b"co\xff\nx\n.").0, refused("o\\xff", "x"));
    assert_eq!(
        error(b"N0cbuiltins\neval\n0N.").0,
        refused("builtins", "eval"),
        "whether or not it is used"
    );
    assert_eq!(
        error(b"cbuiltins\nlist.append\n.").0,
        refused("builtins", "list.append")
    );
    let operand = Malformed::Operand {
        expected: "str",
        found: Kind::Bytes,
    };
    malformed(b"C\x02os\x8c\x01x\x93.", operand, 7, Opcode::STACK_GLOBAL);
    for (stream, code) in [
        (&b"\x82\xf0."[..], 240),
        (b"\x83\xf0\x01.", 496),
        (b"\x84\xff\xff\xff\xff.", -1),
    ] {
        assert_eq!(error(stream).0, DecodeErrorKind::RefusedExtension { code });
    }
    assert_eq!(
        error(b"Pid\n.").0,
        DecodeErrorKind::RefusedPersistentId { id: "id".into() }
    );
    assert_eq!(
        error(b"\x8c\x02idQ.").0,
        DecodeErrorKind::RefusedPersistentId { id: "id".into() }
    );
    let reduce = Malformed::Operand {
        expected: "a class or function",
        found: Kind::Str,
    };
    malformed(b"\x8c\x02os)R.", reduce, 5, Opcode::REDUCE);
    malformed(
        b"N)\x81.",
        Malformed::Operand {
            expected: "a class",
            found: Kind::None,
        },
        2,
        Opcode::NEWOBJ,
    );
    malformed(
        b"N)}\x92.",
        Malformed::Operand {
            expected: "a class",
            found: Kind::None,
        },
        3,
        Opcode::NEWOBJ_EX,
    );
    malformed(b"}}b.", Malformed::NoState(Kind::Dict), 2, Opcode::BUILD);
    malformed(
        b"(No.",
        Malformed::Operand {
            expected: "a class",
            found: Kind::None,
        },
        2,
        Opcode::OBJ,
    );
    malformed(b"(o.", Malformed::StackUnderflow, 1, Opcode::OBJ);
}

/// What stands for an instance of a class without slots, made by NEWOBJ and BUILD.
const POINT: &[u8] = b"\x80\x04\x8c\x03app\x8c\x05Point\x93)\x81}\x8c\x01xK\x01sb.";

#[test]
fn a_class_is_admitted_by_its_exact_name() {
    let refusals = [
        ("app", "point"),
        ("app", "Point.x"),
        ("app.x", "Point"),
        ("", ""),
    ];
    for (module, qualname) in refusals {
        let policy = Policy::agentix().allow(module, qualname);
        let error = Decoder::new(policy, Limits::default())
            .decode(POINT)
            .unwrap_err();
        assert!(matches!(
            error.kind(),
            DecodeErrorKind::RefusedGlobal { .. }
        ));
    }
    let policy = Policy::agentix().allow("app", "Point");
    assert!(policy.admits("app", "Point") && !policy.admits("app", "Line"));
    let decoder = Decoder::new(policy, Limits::default());
    let document = decoder.decode(POINT).unwrap();
    let point = document.root().record().unwrap();
    assert_eq!(point.origin(), Origin::New);
    let class = point.class().unwrap().global().unwrap();
    assert_eq!(class.module().as_str(), Some("app"));
    assert_eq!(class.qualname().as_str(), Some("Point"));
    assert!(point.args().is_empty() && point.kwargs().is_none());
    assert_eq!(point.field("x").and_then(Value::as_i64), Some(1));
    assert_eq!(point.state().map(Value::kind), Some(Kind::Dict));
    assert!(point.items().is_none() && point.entries().is_none());
}

#[test]
fn a_record_holds_all_that_the_stream_says() {
    let policy = Policy::agentix().allow("m", "C");
    let decoder = Decoder::new(policy, Limits::default());
    // Keyword arguments, appended items, entries, and two states, the second with slots.
    let stream = b"cm\nC\n(K\x01t}\x8c\x01kK\x02s\x92(K\x03K\x04e(K\x05K\x06u}\x8c\x01aK\x07sbN}\x8c\x01aK\x08s\x86b.";
    let document = decoder.decode(stream).unwrap();
    let record = document.root().record().unwrap();
    let int = |value: Option<Value<'_>>| value.and_then(Value::as_i64);
    assert_eq!(int(record.args().iter().next()), Some(1));
    let entry = |entries: Option<safepickle::Entries<'_>>| {
        entries.and_then(|entries| int(entries.iter().next().map(|(_, value)| value)))
    };
    assert_eq!(entry(record.kwargs()), Some(2));
    let items: Vec<_> = record.items().unwrap().iter().map(Value::as_i64).collect();
    assert_eq!(items, [Some(3), Some(4)]);
    assert_eq!(entry(record.entries()), Some(6));
    assert_eq!(record.states().unwrap().len(), 2);
    assert_eq!(int(record.field("a")), Some(8), "the last word counts");
}

#[test]
fn inspection_admits_every_name_and_carries_nothing_out() {
    let decoder = Decoder::new(Policy::inspect(), Limits::default());
    let document = decoder.decode(b"cos\nsystem\n(S'id'\ntR.").unwrap();
    let call = document.root().record().unwrap();
    assert_eq!(call.origin(), Origin::Call);
    assert_eq!(
        call.args().iter().next().and_then(Value::as_str),
        Some("id")
    );
    // What is called may itself be the result of a call.
    let chained = b"cbuiltins\ngetattr\n(cos\npath\nS'join'\ntR(S'a'\ntR.";
    let document = decoder.decode(chained).unwrap();
    let called = document.root().record().unwrap().class().unwrap();
    assert_eq!(called.kind(), Kind::Record);
    let names: Vec<_> = document.globals().map(|name| format!("{name:?}")).collect();
    assert_eq!(names, ["builtins.getattr", "os.path"]);
    // A state for a class, a persistent id, an extension code, a buffer.
    for (stream, origin) in [
        (&b"cos\nsystem\n}b."[..], Origin::State),
        (b"Pid\n.", Origin::PersistentId),
        (b"(K\x01\x8c\x01xtQ.", Origin::PersistentId),
        (b"\x82\x07.", Origin::Extension),
        (b"\x97.", Origin::Buffer),
        // No pickler writes these arguments.
        (b"cbuiltins\nlist\n(NNNtR.", Origin::Call),
    ] {
        let document = decoder.decode(stream).unwrap();
        let record = document.root().record().unwrap();
        assert_eq!(record.origin(), origin, "{}", stream.escape_ascii());
    }
}

#[test]
fn an_observer_hears_of_what_is_refused() {
    let mut names = Vec::new();
    let mut ends = Vec::new();
    let decoder = Decoder::default();
    let result = decoder.decode_observed(b"cbuiltins\nset\n0cos\nsystem\n.", |event| match event {
        Event::Global {
            offset,
            qualname,
            admitted,
            ..
        } => names.push((offset, qualname.to_owned(), admitted)),
        Event::Instruction {
            offset, argument, ..
        } => ends.push((offset, argument.len())),
        _ => {}
    });
    assert!(result.is_err());
    let expected = [
        (0, "set".to_owned(), true),
        (15, "system".to_owned(), false),
    ];
    assert_eq!(names, expected);
    assert_eq!(ends, [(0, 13), (14, 0)]);
    let mut ids = Vec::new();
    let result = decoder.decode_observed(b"Pid\n.", |event| {
        if let Event::PersistentId { id, .. } = event {
            ids.push(id.to_owned());
        }
    });
    assert!(result.is_err());
    assert_eq!(ids, ["id"]);
}

#[test]
fn what_was_read_ends_with_stop() {
    let document = safepickle::decode(b"K\x01.K\x02.").unwrap();
    assert_eq!(document.consumed(), 3);
}

#[test]
fn a_result_record_has_all_of_its_fields() {
    let stream = b"cagentix.bash\nBashResult\n)\x81}(\x8c\x09exit_codeK\x03\x8c\x06stdout\x8c\x01o\x8c\x06stderr\x8c\x01eub.";
    let document = safepickle::decode(stream).unwrap();
    let result = document.root().bash_result().unwrap();
    assert_eq!(result.exit_code.as_i64(), Some(3));
    assert_eq!(result.stderr.as_str(), Some("e"));
    assert!(document.root().upload_result().is_none());
    let incomplete = b"cagentix.bash\nBashResult\n)\x81}\x8c\x09exit_codeK\x03sb.";
    let no_state = DecodeErrorKind::Malformed(Malformed::NoState(Kind::Record));
    assert_eq!(error(incomplete).0, no_state);
    let unbuilt = b"cagentix.bash\nBashResult\n)\x810N.";
    malformed(unbuilt, Malformed::Unbuilt, 29, Opcode::STOP);
}

/// A message is printed and logged: it holds no line breaks or escapes of a stranger's, and not megabytes.
#[test]
fn messages_are_safe_to_print() {
    let long = "a".repeat(1_000_000);
    let stream = [
        b"cos\x1b[31m\r\n\xe2\x80\xae".as_slice(),
        long.as_bytes(),
        b"\n.",
    ]
    .concat();
    let error = safepickle::decode(&stream).unwrap_err();
    let message = error.to_string();
    assert!(
        message.len() < 2000
            && message
                .chars()
                .all(|char| char == '\u{2026}' || char.is_ascii_graphic() || char == ' ')
    );
    let DecodeErrorKind::RefusedGlobal { module, qualname } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(module, "os\x1b[31m\r");
    assert_eq!(
        qualname.chars().count(),
        1_000_001,
        "the fields hold it all"
    );
}
