//! The pickle vectors through `inspect` and JSON: each ends, and shows the values that the vectors hold.

use std::collections::{HashMap, VecDeque};

use agentix_protocol::safepickle;
use agentix_reference_host::inspect::{Bounds, Format, Options, Verdict, inspect};
use agentix_reference_host::json::{self, JsonError};
use serde_json::{Value, json};

fn vectors() -> Vec<Value> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../spec/vectors/pickle/public.jsonl"
    );
    let lines = std::fs::read_to_string(path).unwrap();
    let vectors: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(vectors.len() > 2000, "the vectors are there");
    vectors
}

fn pickle(vector: &Value) -> Vec<u8> {
    let hex = vector["hex"].as_str().unwrap();
    data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap()
}

fn show(pickle: &[u8], format: Format, bounds: Bounds, opcodes: bool) -> (Verdict, String) {
    let options = Options {
        format,
        bounds,
        opcodes,
        ..Options::default()
    };
    let mut out = Vec::new();
    let verdict = inspect(pickle, &options, &mut out).unwrap();
    (verdict, String::from_utf8(out).unwrap())
}

/// In both forms, with and without bounds: it ends, nothing panics, the forms agree, and no stream that
/// must be rejected is clean.
#[test]
fn every_vector_is_shown() {
    for vector in vectors() {
        let (id, pickle) = (&vector["id"], pickle(&vector));
        let (verdict, text) = show(&pickle, Format::Text, Bounds::NONE, true);
        assert!(text.lines().count() < 1000 + 20 * pickle.len(), "{id}");
        let (of_json, report) = show(&pickle, Format::Json, Bounds::default(), true);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["status"], verdict.status(), "{id}");
        assert_eq!(of_json, verdict, "{id}");
        if vector["expect"] == "reject" {
            assert_ne!(verdict, Verdict::Clean, "{id}");
        }
    }
}

/// Results of every kind have JSON. The deepest have none, and say why.
#[test]
fn accepted_values_are_json() {
    let mut written = 0;
    for vector in vectors() {
        let (id, pickle) = (&vector["id"], pickle(&vector));
        let Ok(document) = safepickle::decode(&pickle) else {
            continue;
        };
        match json::to_string(document.root()) {
            Ok(text) => {
                written += 1;
                // Of any depth, with numbers of any size.
                let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&text);
                assert!(parsed.is_ok(), "{id}: {parsed:?}");
            }
            Err(JsonError::TooDeep | JsonError::TooLarge) => {}
            Err(error) => panic!("{id}: {error}"),
        }
    }
    assert!(written > 1000, "{written}");
}

/// What `--json` shows of a stream that is accepted is what the vector says, in its own form.
#[test]
fn values_are_those_of_the_vectors() {
    let mut compared = HashMap::<String, usize>::new();
    for vector in vectors() {
        let (id, pickle) = (vector["id"].as_str().unwrap(), pickle(&vector));
        if vector["expect"] != "accept" || vector["value"].is_null() {
            continue;
        }
        let (_, report) = show(&pickle, Format::Json, Bounds::NONE, false);
        let report: Value = serde_json::from_str(&report).unwrap();
        let stream = &report["streams"][0];
        let (Some(expected), Some(found)) =
            (canonical(&vector["value"]), canonical(&stream["value"]))
        else {
            continue;
        };
        assert_eq!(found, expected, "{id}");
        *compared
            .entry(id.split('/').next().unwrap().to_owned())
            .or_default() += 1;
    }
    for group in ["primitive", "stdlib", "graph", "record", "exception"] {
        assert!(
            compared.get(group).is_some_and(|count| *count > 5),
            "{group}: {compared:?}"
        );
    }
}

/// The table with nodes in the order in which they are met, and those without identity once for each
/// reference. `None` if it has a set of anything but plain values, whose order has no meaning.
fn canonical(table: &Value) -> Option<Value> {
    let nodes = table["nodes"].as_array().unwrap();
    let mut numbers = HashMap::new();
    let mut queue = VecDeque::new();
    let mut count = 0;
    let mut refer = |value: &Value, queue: &mut VecDeque<usize>| -> Value {
        let Some(node) = value.get("ref").and_then(Value::as_u64) else {
            return match value.get("int").and_then(Value::as_str) {
                // The vectors have decimals of any length.
                Some(long) if long.len() > 4000 => {
                    let int: num_bigint::BigInt = long.parse().unwrap();
                    json!({"int_hex": format!("{int:#x}")})
                }
                _ => value.clone(),
            };
        };
        let node = usize::try_from(node).unwrap();
        let shape = &nodes[node];
        let kind = shape["t"].as_str().unwrap();
        let empty = shape["items"].as_array().is_some_and(Vec::is_empty);
        let identity = match kind {
            "tuple" | "frozenset" => !empty,
            "object" | "range" | "dtype" => false,
            _ => true,
        };
        let mut number = || {
            queue.push_back(node);
            count += 1;
            count - 1
        };
        let number = if identity {
            *numbers.entry(node).or_insert_with(number)
        } else {
            number()
        };
        json!({"ref": number})
    };
    let root = refer(&table["root"], &mut queue);
    let mut out = Vec::new();
    while let Some(node) = queue.pop_front() {
        let mut shape = nodes[node].as_object().unwrap().clone();
        if shape["t"] == "ndarray" && shape.contains_key("hex") {
            make_native(&mut shape);
        }
        if shape["t"] == "dtype" {
            // The vectors only say that there is some.
            shape.remove("metadata");
        }
        if shape["t"] == "record" {
            // What the stream says beside the attributes is no part of the vectors' form.
            shape.retain(|key, _| matches!(key.as_str(), "t" | "class" | "attrs"));
        }
        let is_set = matches!(shape["t"].as_str(), Some("set" | "frozenset"));
        let mut keys: Vec<String> = shape.keys().cloned().collect();
        keys.sort();
        for key in keys {
            let field = shape.get_mut(&key).unwrap();
            match (key.as_str(), &mut *field) {
                ("items" | "args" | "attrs" | "fields", Value::Array(items)) => {
                    for item in items.iter_mut() {
                        match item {
                            Value::Array(pair) => {
                                for part in pair {
                                    *part = refer(part, &mut queue);
                                }
                            }
                            item => *item = refer(item, &mut queue),
                        }
                    }
                    if is_set {
                        if items.iter().any(|item| item.get("ref").is_some()) {
                            return None;
                        }
                        items.sort_by_key(ToString::to_string);
                    }
                }
                ("factory" | "maxlen", value) => *value = refer(value, &mut queue),
                _ => {}
            }
        }
        // The order of fields has no meaning.
        let shape: std::collections::BTreeMap<_, _> = shape.into_iter().collect();
        out.push(json!(shape));
    }
    Some(json!({"root": root, "nodes": out}))
}

/// The reference turns the bytes of numbers round while it loads an array.
fn make_native(array: &mut serde_json::Map<String, Value>) {
    let dtype = array["dtype"].as_object_mut().unwrap();
    let Some(big) = dtype
        .get("str")
        .and_then(Value::as_str)
        .and_then(|name| name.strip_prefix('>'))
    else {
        return;
    };
    let native = format!("<{big}");
    let size = match dtype["kind"].as_str().unwrap() {
        "U" => 4,
        "c" => dtype["itemsize"].as_u64().unwrap() / 2,
        _ => dtype["itemsize"].as_u64().unwrap(),
    };
    dtype.insert("str".to_owned(), native.into());
    let hex = array["hex"].as_str().unwrap();
    let mut bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
    for number in bytes.chunks_mut(usize::try_from(size).unwrap()) {
        number.reverse();
    }
    array.insert(
        "hex".to_owned(),
        data_encoding::HEXLOWER.encode(&bytes).into(),
    );
}
