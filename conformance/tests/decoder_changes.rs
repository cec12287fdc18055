//! The comparison can fail: whatever is changed in the tables of the public vectors, it notices.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use agentix_conformance::decoder::{Expect, compare, read_vectors};
use agentix_protocol::safepickle;
use serde_json::{Value as Json, json};

/// How many places of one table are changed.
const PLACES: usize = 30;

/// Every text, number and word of a table decides something: each is changed, one at a time, and each change is noticed.
#[test]
fn every_change_of_a_table_is_noticed() {
    let vectors = read_vectors(&public()).unwrap();
    let mut kinds = BTreeSet::new();
    let mut changes = 0;
    for vector in &vectors {
        let (Expect::Accept, Some(table)) = (vector.expect, &vector.value) else {
            continue;
        };
        let document = safepickle::decode(&vector.stream).unwrap();
        assert_eq!(compare(table, document.root()), Ok(()), "{}", vector.id);
        kinds.extend(
            table["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|node| node["t"].as_str().unwrap().to_owned()),
        );
        let mut places = Vec::new();
        places_of(table, String::new(), &mut places);
        let mut changed = table.clone();
        let step = places.len().div_ceil(PLACES);
        for place in places.iter().step_by(step) {
            let leaf = changed.pointer_mut(place).unwrap();
            let other = another(place, leaf);
            let leaf = std::mem::replace(leaf, other);
            changes += 1;
            assert!(
                compare(&changed, document.root()).is_err(),
                "{}: {place} may be {} as well",
                vector.id,
                changed.pointer(place).unwrap()
            );
            *changed.pointer_mut(place).unwrap() = leaf;
        }
    }
    let all = [
        "bytearray",
        "deque",
        "dict",
        "dtype",
        "exception",
        "frozenset",
        "list",
        "map",
        "ndarray",
        "object",
        "range",
        "record",
        "set",
        "slice",
        "tuple",
    ];
    assert_eq!(kinds, all.map(str::to_owned).into());
    assert!(changes > 6000, "{changes}");
}

fn public() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../spec/vectors/pickle/public.jsonl"
    );
    std::fs::read_to_string(path).unwrap()
}

/// Where the parts of a table are that have no parts, except for the decimal text of floats, which is for readers.
fn places_of(json: &Json, at: String, out: &mut Vec<String>) {
    match json {
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places_of(item, format!("{at}/{index}"), out);
            }
        }
        Json::Object(fields) => {
            for (name, field) in fields {
                if name != "float" {
                    places_of(field, format!("{at}/{name}"), out);
                }
            }
        }
        _ => out.push(at),
    }
}

/// Something else that may stand there.
fn another(place: &str, leaf: &Json) -> Json {
    match leaf {
        Json::Null => json!(false),
        Json::Bool(value) => json!(!value),
        Json::Number(number) => json!(number.as_u64().unwrap() + 1),
        Json::String(text) => match place.rsplit('/').next() {
            Some("int") if text == "0" => json!("1"),
            Some("int") => json!(format!("{text}0")),
            Some("hex" | "bytes") => json!(format!("{text}00")),
            Some("bits") if text.ends_with('0') => json!(format!("{}1", &text[..15])),
            Some("bits") => json!(format!("{}0", &text[..15])),
            _ => json!(format!("{text}+")),
        },
        _ => panic!("{leaf} has parts"),
    }
}

/// The order of a set's elements is the only thing in a table without meaning.
#[test]
fn order_has_meaning_but_in_sets() {
    let mut sets = 0;
    for vector in read_vectors(&public()).unwrap() {
        let (Expect::Accept, Some(table)) = (vector.expect, &vector.value) else {
            continue;
        };
        let document = safepickle::decode(&vector.stream).unwrap();
        let mut changed = table.clone();
        let mut reversed = 0;
        for node in changed["nodes"].as_array_mut().unwrap() {
            if matches!(node["t"].as_str(), Some("set" | "frozenset")) {
                node["items"].as_array_mut().unwrap().reverse();
                reversed += 1;
            }
        }
        if reversed > 0 {
            sets += 1;
            assert_eq!(compare(&changed, document.root()), Ok(()), "{}", vector.id);
        }
    }
    assert!(sets > 20, "{sets}");
}

/// One more node, which nothing refers to, is no difference; one more item is.
#[test]
fn one_more_is_noticed() {
    for vector in read_vectors(&public()).unwrap() {
        let (Expect::Accept, Some(table)) = (vector.expect, &vector.value) else {
            continue;
        };
        let document = safepickle::decode(&vector.stream).unwrap();
        for (number, node) in table["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .take(5)
        {
            for name in ["items", "args", "fields", "attrs"] {
                let mut changed = table.clone();
                let one = match (name, node["t"].as_str().unwrap()) {
                    ("items", "dict" | "map") => json!(["more", null]),
                    ("fields", _) => json!(["more", null]),
                    ("attrs", _) => json!(["more", null]),
                    _ => json!("more"),
                };
                match &mut changed["nodes"][number][name] {
                    Json::Array(items) => items.push(one),
                    absent if name == "attrs" => *absent = json!([one]),
                    _ => continue,
                }
                assert!(
                    compare(&changed, document.root()).is_err(),
                    "{}: nodes[{number}].{name}",
                    vector.id
                );
            }
        }
    }
}
