//! Files of vectors: what is one, and what is none.
#![allow(clippy::unwrap_used)]

use agentix_conformance::decoder::{Expect, FieldProblem, VectorProblem, read_vectors};
use serde_json::{Value as Json, json};

fn fields() -> Json {
    json!({ "id": "a/b", "group": "a", "hex": "4b012e", "expect": "accept",
            "value": { "root": { "int": "1" }, "nodes": [] } })
}

fn with(name: &str, value: Json) -> String {
    let mut fields = fields();
    fields[name] = value;
    fields.to_string()
}

fn without(name: &str) -> String {
    let mut fields = fields();
    fields.as_object_mut().unwrap().remove(name);
    fields.to_string()
}

#[test]
fn a_line_is_a_vector() {
    let vectors = read_vectors(&format!("{}\n\n", fields())).unwrap();
    let [vector] = &*vectors else {
        panic!("{vectors:?}");
    };
    assert_eq!((vector.id.as_str(), vector.group.as_str()), ("a/b", "a"));
    assert_eq!(vector.expect, Expect::Accept);
    assert_eq!(vector.stream, b"K\x01.");
    assert!(vector.value.is_some());
}

#[test]
fn a_line_that_is_none_is_told_with_its_field() {
    let cases = [
        (without("id"), "vector.id"),
        (with("id", json!("b/b")), "vector.id"),
        (with("id", json!("ab")), "vector.id"),
        (without("group"), "vector.group"),
        (without("hex"), "vector.hex"),
        (with("hex", json!("4b0")), "vector.hex"),
        (without("expect"), "vector.expect"),
        (with("expect", json!("maybe")), "vector.expect"),
        (without("value"), "vector.value"),
        (with("value", Json::Null), "vector.value"),
        (with("protocol", json!("4")), "vector.protocol"),
        (with("stage", json!(1)), "vector.stage"),
        (with("effects", json!("none")), "vector.effects"),
        (with("hint", json!("")), "vector.hint"),
        ("[]".to_owned(), "vector"),
    ];
    for (line, at) in cases {
        let error = read_vectors(&format!("\n{line}\n")).unwrap_err();
        assert_eq!(error.line(), 2, "{line}");
        let VectorProblem::Field(field) = error.problem() else {
            panic!("{line}: {error}");
        };
        assert_eq!(field.at(), at, "{line}");
    }
    let error = read_vectors(&with("hint", json!(""))).unwrap_err();
    assert!(matches!(error.problem(),
        VectorProblem::Field(field) if *field.problem() == FieldProblem::Unknown));
    let error = read_vectors("{\n").unwrap_err();
    assert!(matches!(error.problem(), VectorProblem::Json(_)));
    let error = read_vectors(&format!("{}\n{}\n", fields(), fields())).unwrap_err();
    assert_eq!(error.line(), 2);
    assert_eq!(error.problem(), &VectorProblem::SameId(1));
    // Only what decides is asked for.
    let least = json!({ "id": "a/b", "group": "a", "hex": "", "expect": "any" });
    assert!(read_vectors(&least.to_string()).is_ok());
}
