//! The comparison of decoded values with the tables of vectors.
#![allow(clippy::unwrap_used)]

use agentix_conformance::decoder::{Difference, FieldProblem, Reason, Table, compare};
use agentix_protocol::safepickle;
use serde_json::{Value as Json, json};

fn check(stream: &[u8], table: Json) -> Result<(), Difference> {
    let document = safepickle::decode(stream).unwrap();
    compare(&table, document.root())
}

fn reason(stream: &[u8], table: Json) -> Reason {
    check(stream, table).unwrap_err().reason().clone()
}

fn only(root: Json) -> Json {
    json!({ "root": root, "nodes": [] })
}

fn graph(nodes: Json) -> Json {
    json!({ "root": { "ref": 0 }, "nodes": nodes })
}

fn int(value: i64) -> Json {
    json!({ "int": value.to_string() })
}

#[test]
fn leaves() {
    let one = json!({ "float": "1.0", "bits": "3ff0000000000000" });
    let cases: &[(&[u8], Json, Json)] = &[
        (b"N.", json!(null), json!(false)),
        (b"I01\n.", json!(true), int(1)),
        (b"K\x01.", int(1), json!(true)),
        (b"K\x01.", int(1), int(2)),
        (b"G\x3f\xf0\0\0\0\0\0\0.", one.clone(), int(1)),
        (
            b"G\x7f\xf8\0\0\0\0\0\x01.",
            json!({ "float": "nan", "bits": "7ff8000000000001" }),
            json!({ "float": "nan", "bits": "7ff8000000000000" }),
        ),
        (
            b"G\x80\0\0\0\0\0\0\0.",
            json!({ "float": "-0.0", "bits": "8000000000000000" }),
            json!({ "float": "0.0", "bits": "0000000000000000" }),
        ),
        (b"X\x01\0\0\0a.", json!("a"), json!({ "bytes": "61" })),
        (b"C\x01a.", json!({ "bytes": "61" }), json!("a")),
        (
            b"X\x06\0\0\0\xed\xa0\xbd\xed\xb8\x80.",
            json!({ "str": [0xd83d, 0xde00] }),
            json!("\u{1f600}"),
        ),
    ];
    for (stream, same, other) in cases {
        assert_eq!(check(stream, only(same.clone())), Ok(()), "{same}");
        let reason = reason(stream, only(other.clone()));
        assert!(
            matches!(reason, Reason::Content { .. }),
            "{other}: {reason:?}"
        );
    }
}

#[test]
fn parts_are_compared_in_order_and_the_path_is_told() {
    let stream = b"(lI1\na(dS'k'\nI2\nsa.";
    let nodes = |value| {
        graph(json!([
            { "t": "list", "items": [int(1), { "ref": 1 }] },
            { "t": "dict", "items": [["k", int(value)]] },
        ]))
    };
    assert_eq!(check(stream, nodes(2)), Ok(()));
    let difference = check(stream, nodes(3)).unwrap_err();
    assert_eq!(difference.path(), "$[1].values[0]");
    let swapped = b"}(K\x01K\x02K\x03K\x04u.";
    let reversed = json!([{ "t": "dict", "items": [[int(3), int(4)], [int(1), int(2)]] }]);
    assert_eq!(
        check(swapped, graph(reversed)).unwrap_err().path(),
        "$.keys[0]"
    );
    let shorter = json!([{ "t": "dict", "items": [[int(1), int(2)]] }]);
    let reason = reason(swapped, graph(shorter));
    assert!(matches!(reason, Reason::Parts { .. }), "{reason:?}");
}

#[test]
fn identity() {
    let two = json!([{ "t": "tuple", "items": [{ "ref": 1 }, { "ref": 2 }] },
                     { "t": "list", "items": [] }, { "t": "list", "items": [] }]);
    let one = json!([{ "t": "tuple", "items": [{ "ref": 1 }, { "ref": 1 }] },
                     { "t": "list", "items": [] }]);
    assert_eq!(check(b"]]\x86.", graph(two.clone())), Ok(()));
    assert_eq!(check(b"]q\0h\0\x86.", graph(one.clone())), Ok(()));
    assert_eq!(
        reason(b"]]\x86.", graph(one)),
        Reason::Sharing {
            expected_shared: true
        }
    );
    assert_eq!(
        reason(b"]q\0h\0\x86.", graph(two)),
        Reason::Sharing {
            expected_shared: false
        }
    );
    // There is one empty tuple.
    let empty = json!([{ "t": "tuple", "items": [{ "ref": 1 }, { "ref": 2 }] },
                       { "t": "tuple", "items": [] }, { "t": "tuple", "items": [] }]);
    assert_eq!(check(b")q\0h\0\x86.", graph(empty)), Ok(()));
}

#[test]
fn cycles() {
    let cycle = json!([{ "t": "list", "items": [{ "ref": 0 }] }]);
    assert_eq!(check(b"]q\0h\0a.", graph(cycle.clone())), Ok(()));
    // [[...]] of one list, and of two that hold each other.
    let longer = json!([{ "t": "list", "items": [{ "ref": 1 }] },
                        { "t": "list", "items": [{ "ref": 0 }] }]);
    assert_eq!(check(b"]q\0]q\x01h\0aa.", graph(longer.clone())), Ok(()));
    assert!(matches!(
        reason(b"]q\0h\0a.", graph(longer)),
        Reason::Sharing { .. }
    ));
    assert!(matches!(
        reason(b"]q\0]q\x01h\0aa.", graph(cycle)),
        Reason::Sharing { .. }
    ));
}

#[test]
fn sets_have_no_order() {
    let table = |last: Json| {
        graph(json!([
            { "t": "set", "items": [{ "ref": 1 }, int(1), { "ref": 3 }, last] },
            { "t": "tuple", "items": [int(1), { "ref": 2 }] },
            { "t": "frozenset", "items": [int(7), int(8)] },
            { "t": "frozenset", "items": [int(8), int(7)] },
        ]))
    };
    // {"x", frozenset({8, 7}), (1, frozenset({7, 8})), 1}
    let stream = b"\x8f(\x8c\x01x(K\x08K\x07\x91K\x01(K\x07K\x08\x91\x86K\x01\x90.";
    assert_eq!(check(stream, table(json!("x"))), Ok(()));
    let reason = reason(stream, table(json!("y")));
    let Reason::Elements { expected, found } = reason else {
        panic!("{reason:?}");
    };
    assert!(
        expected.contains('y') && found.contains('x'),
        "{expected} {found}"
    );
}

#[test]
fn an_element_that_is_shared_with_another_place() {
    // [t, {t}] with one tuple, and with two.
    let one = b"(K\x01\x85q\0\x8f(h\0\x90l.";
    let two = b"(K\x01\x85\x8f(K\x01\x85\x90l.";
    let table = |element: usize| {
        graph(json!([
            { "t": "list", "items": [{ "ref": 1 }, { "ref": 2 }] },
            { "t": "tuple", "items": [int(1)] },
            { "t": "set", "items": [{ "ref": element }] },
            { "t": "tuple", "items": [int(1)] },
        ]))
    };
    assert_eq!(check(one, table(1)), Ok(()));
    assert_eq!(check(two, table(3)), Ok(()));
    assert!(matches!(reason(one, table(3)), Reason::Sharing { .. }));
    assert!(matches!(reason(two, table(1)), Reason::Sharing { .. }));
}

/// {(nan,), (nan,)} has two elements that hold the same: only what else refers to them tells them apart.
#[test]
fn equal_elements_are_paired_by_what_else_refers_to_them() {
    const NAN: &[u8] = b"G\x7f\xf8\0\0\0\0\0\0";
    let nan = json!({ "float": "nan", "bits": "7ff8000000000000" });
    // ({a, b}, {b}, {b, a}), the elements of each set in both orders.
    for (first, second) in [(0, 1), (1, 0)] {
        let mut stream = b"\x8f(".to_vec();
        for memo in [0, 1] {
            stream.extend_from_slice(NAN);
            stream.extend_from_slice(&[b'\x85', b'q', memo]);
        }
        stream.extend_from_slice(&[b'\x90', b'\x8f', b'(', b'h', second, b'\x90']);
        stream.extend_from_slice(&[b'\x8f', b'(', b'h', second, b'h', first]);
        stream.extend_from_slice(b"\x90\x87.");
        let table = |third: Json| {
            graph(json!([
                { "t": "tuple", "items": [{ "ref": 1 }, { "ref": 2 }, { "ref": 3 }] },
                { "t": "set", "items": [{ "ref": 4 }, { "ref": 5 }] },
                { "t": "set", "items": [{ "ref": 5 }] },
                { "t": "set", "items": third },
                { "t": "tuple", "items": [nan] },
                { "t": "tuple", "items": [nan] },
                { "t": "tuple", "items": [nan] },
            ]))
        };
        assert_eq!(
            check(&stream, table(json!([{ "ref": 4 }, { "ref": 5 }]))),
            Ok(())
        );
        assert!(check(&stream, table(json!([{ "ref": 4 }, { "ref": 6 }]))).is_err());
        assert!(check(&stream, table(json!([{ "ref": 5 }, { "ref": 6 }]))).is_err());
    }
}

/// Exceptions are hashed by identity: a set may hold equal ones, which hold the set in turn.
#[test]
fn equal_exceptions_that_hold_their_set() {
    let error: &[u8] = b"cbuiltins\nValueError\n)R";
    let state: &[u8] = b"}\x8c\x01sh\0sb";
    // ({a, b}, a, b), where a.s and b.s are the set.
    let stream = [
        b"\x8fq\0(",
        error,
        b"q\x01",
        state,
        error,
        b"q\x02",
        state,
        b"\x90h\x01h\x02\x87.",
    ]
    .concat();
    let table = |elements: [usize; 2], last: usize| {
        let error = json!({ "t": "exception", "class": ["builtins", "ValueError"], "args": [],
                            "attrs": [["s", { "ref": 1 }]] });
        graph(json!([
            { "t": "tuple", "items": [{ "ref": 1 }, { "ref": 2 }, { "ref": last }] },
            { "t": "set", "items": elements.map(|element| json!({ "ref": element })) },
            error, error, error,
        ]))
    };
    assert_eq!(check(&stream, table([2, 3], 3)), Ok(()));
    assert_eq!(check(&stream, table([3, 2], 3)), Ok(()));
    assert!(check(&stream, table([2, 3], 2)).is_err());
    assert!(check(&stream, table([2, 3], 4)).is_err());
    assert!(check(&stream, table([4, 3], 3)).is_err());
}

/// Many that hold the same: the first way to pair them is right, and is found without keeping every other in mind.
#[test]
fn many_equal_exceptions() {
    const COUNT: usize = 1000;
    let mut stream = b"\x8f(cbuiltins\nValueError\nq\0)R".to_vec();
    stream.extend(b"h\0)R".repeat(COUNT - 1));
    stream.extend_from_slice(b"\x90.");
    let mut nodes = vec![json!({ "t": "set",
        "items": (1..=COUNT).map(|element| json!({ "ref": element })).collect::<Vec<_>>() })];
    let error = json!({ "t": "exception", "class": ["builtins", "ValueError"], "args": [] });
    nodes.extend(vec![error; COUNT]);
    assert_eq!(check(&stream, graph(nodes.into())), Ok(()));
}

/// Neither depth nor sharing costs stack or more than its length.
#[test]
fn deep_and_shared() {
    const DEPTH: usize = 200_000;
    let nested = |kind: &str| {
        let mut nodes: Vec<Json> = (1..=DEPTH)
            .map(|next| json!({ "t": kind, "items": [{ "ref": next }] }))
            .collect();
        nodes.push(json!({ "t": "tuple", "items": [] }));
        nodes
    };
    let mut lists = b"(".repeat(DEPTH);
    lists.push(b')');
    lists.extend(b"l".repeat(DEPTH));
    lists.push(b'.');
    assert_eq!(check(&lists, graph(nested("list").into())), Ok(()));
    let mut other = nested("list");
    other[DEPTH] = json!({ "t": "list", "items": [] });
    let difference = check(&lists, graph(other.into())).unwrap_err();
    assert!(matches!(difference.reason(), Reason::Content { .. }));
    assert!(difference.path().len() < 200, "{}", difference.path());

    // A key of 60 tuples, each holding the one below twice.
    let mut shared = b"\x8f()".to_vec();
    shared.extend(b"2\x86".repeat(60));
    shared.extend_from_slice(b"\x90.");
    let mut nodes = vec![json!({ "t": "set", "items": [{ "ref": 1 }] })];
    for next in 2..=61 {
        nodes.push(json!({ "t": "tuple", "items": [{ "ref": next }, { "ref": next }] }));
    }
    nodes.push(json!({ "t": "tuple", "items": [] }));
    match safepickle::decode(&shared) {
        Ok(document) => assert_eq!(compare(&graph(nodes.into()), document.root()), Ok(())),
        // The work of hashing may be refused.
        Err(error) => assert!(matches!(
            error.kind(),
            safepickle::DecodeErrorKind::Limit { .. }
        )),
    }
}

#[test]
fn tables_that_are_not_of_the_format() {
    let cases = [
        (json!({ "nodes": [] }), "value.root"),
        (json!({ "root": null }), "value.nodes"),
        (
            json!({ "root": null, "nodes": [], "more": 1 }),
            "value.more",
        ),
        (only(json!(1)), "root"),
        (only(json!({ "int": "1", "ref": 0 })), "root"),
        (only(json!({ "int": "x" })), "root"),
        (only(json!({ "float": "1.0", "bits": "3ff" })), "root"),
        (only(json!({ "ref": 0 })), "root"),
        (only(json!({ "str": [0x11_0000] })), "root"),
        (graph(json!([{ "t": "list" }])), "nodes[0].items"),
        (
            graph(json!([{ "t": "list", "items": [{ "ref": 1 }] }])),
            "nodes[0].items[0]",
        ),
        (graph(json!([{ "t": "bag", "items": [] }])), "nodes[0].t"),
        (
            graph(json!([{ "t": "set", "items": [], "order": 1 }])),
            "nodes[0].order",
        ),
        (
            graph(json!([{ "t": "dict", "items": [[null]] }])),
            "nodes[0].items[0]",
        ),
        (
            graph(json!([{ "t": "bytearray", "hex": "0" }])),
            "nodes[0].hex",
        ),
        (
            graph(json!([{ "t": "range", "args": [null] }])),
            "nodes[0].args",
        ),
    ];
    for (table, at) in cases {
        let error = Table::parse(&table).unwrap_err();
        assert_eq!(error.at(), at, "{table}: {error}");
    }
    let error = Table::parse(&graph(json!([{ "t": "bag" }]))).unwrap_err();
    assert_eq!(error.problem(), &FieldProblem::NodeType("bag".to_owned()));
    let reason = reason(b"N.", json!({}));
    assert!(matches!(reason, Reason::Table(_)), "{reason:?}");
}
