//! Every vector of `spec/vectors/target`: the part of it that a target string carries.
#![allow(clippy::unwrap_used)]

mod support;

use agentix_protocol::target::CallTarget;

/// Why a recorded target cannot be one of ours although its producer accepted it: attributes
/// with contrived names, which no import finds again.
const CONTRIVED: [&str; 4] = ["app::a::b", "app::<lambda>", "a::b::add", "a b::add"];

#[test]
fn every_target_vector() {
    let (mut accepted, mut refused, mut objects) = (0, 0, 0);
    for vector in support::spec_vectors("target", "target.jsonl") {
        let id = vector["id"].as_str().unwrap_or_default();
        match vector["op"].as_str() {
            Some("validate" | "validate_main") => match vector["target"].as_str() {
                Some(target) if CONTRIVED.contains(&target) => {
                    assert!(vector["resolve_error"].is_object(), "{id}: it resolves");
                    assert!(CallTarget::validate(target).is_err(), "{id}: {target}");
                    refused += 1;
                }
                Some(target) => {
                    let parsed =
                        CallTarget::validate(target).unwrap_or_else(|e| panic!("{id}: {e}"));
                    assert_eq!(parsed.as_str(), target, "{id}");
                    accepted += 1;
                }
                // About an object that has no target: nothing travels. Where the text that names
                // it in messages could never be a target, it must not be taken for one.
                None => {
                    assert!(vector["error"].is_object(), "{id}");
                    let shown = vector["display_name"].as_str().unwrap_or_default();
                    if shown.contains('<') {
                        assert!(CallTarget::validate(shown).is_err(), "{id}: {shown}");
                    }
                    objects += 1;
                }
            },
            Some("resolve") => {
                let target = vector["target"].as_str().unwrap();
                if vector["resolved"].is_object() {
                    // What resolves is a target.
                    assert!(CallTarget::validate(target).is_ok(), "{id}: {target:?}");
                    accepted += 1;
                } else if malformed(target) {
                    assert!(CallTarget::validate(target).is_err(), "{id}: {target:?}");
                    refused += 1;
                } else {
                    // Well formed; only an import can tell.
                    assert!(CallTarget::validate(target).is_ok(), "{id}: {target:?}");
                    accepted += 1;
                }
            }
            None => assert_eq!(vector["kind"], "meta"),
            Some(other) => panic!("{id}: unknown op {other}"),
        }
    }
    assert_eq!((accepted, refused, objects), (100, 33, 49));
}

/// The grammar once more, written another way: two halves, each of dotted identifiers.
fn malformed(target: &str) -> bool {
    let halves: Vec<&str> = target.split("::").collect();
    let identifier = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric())
    };
    halves.len() != 2 || halves.iter().any(|half| !half.split('.').all(identifier))
}
