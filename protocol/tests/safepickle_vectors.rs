//! Every pickle vector of the project, against the decoder.
//!
//! The format is told in `spec/vectors/pickle/README.md`.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use agentix_protocol::safepickle::{self, DecodeErrorKind, Document, Kind, NodeId, Value};
use serde_json::Value as Json;

/// What an accepted vector came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The exact value.
    Exact,
    /// Refused, since it names a class that the policy of the origin admits and this one does not yet.
    NotYetAdmitted,
}

/// Modules of the origin's allowlist: an accepted vector may be refused for a name in one of these.
const ADMITTED_MODULES: &[&str] = &[
    "agentix.agents.claude_code.agent",
    "agentix.agents.qwen_code",
    "agentix.bash",
    "agentix.bridge.proxy",
    "agentix.files",
    "agentix.plugins.datasets.swe.env",
    "builtins",
    "collections",
    "copyreg",
    "datetime",
    "decimal",
    "fractions",
    "numpy",
    "numpy._core.multiarray",
    "numpy.core.multiarray",
    "pathlib",
    "pathlib._local",
    "uuid",
];

#[test]
fn every_vector_is_decoded_as_it_must_be() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors/pickle/public.jsonl");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut failures = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        let id = vector["id"].as_str().unwrap();
        let stream = unhex(vector["hex"].as_str().unwrap());
        let decoded = safepickle::decode(&stream);
        let mut fail = |what: String| failures.push(format!("{id}: {what}"));
        let verdict = match vector["expect"].as_str().unwrap() {
            "reject" => match decoded {
                Err(_) => "rejected".to_owned(),
                Ok(document) => {
                    fail(format!("must be rejected, gave {document:?}"));
                    continue;
                }
            },
            // To have come here is what these ask for; a value, if there is one, is the reference's.
            "any" => match decoded {
                Err(_) => "any: an error".to_owned(),
                Ok(_) if vector["value"].is_null() => {
                    "any: a value, with none to compare".to_owned()
                }
                Ok(document) => match compare(&vector["value"], document.root()) {
                    Ok(()) => "any: the same value".to_owned(),
                    Err(what) => {
                        fail(what);
                        continue;
                    }
                },
            },
            "accept" => match accepted(&vector, &stream, decoded) {
                Ok(outcome) => format!("accept: {outcome:?}"),
                Err(what) => {
                    fail(what);
                    continue;
                }
            },
            other => panic!("{id}: unknown expectation {other}"),
        };
        *counts.entry(verdict).or_default() += 1;
    }
    println!("{counts:#?}");
    assert!(
        failures.is_empty(),
        "{} vectors failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    // More may become exact, none may cease to be.
    let expected = [
        ("rejected", 1237),
        ("accept: Exact", 526),
        ("accept: NotYetAdmitted", 588),
    ]
    .map(|(k, n)| (k.to_owned(), n));
    for (verdict, count) in expected {
        assert_eq!(counts[&verdict], count, "{verdict}");
    }
    assert_eq!(counts.values().sum::<usize>(), text.lines().count());
}

fn accepted(
    vector: &Json,
    stream: &[u8],
    decoded: Result<Document<'_>, safepickle::DecodeError>,
) -> Result<Outcome, String> {
    let expected = &vector["value"];
    match decoded {
        Ok(document) if expected.is_null() => {
            Err(format!("has no value to compare {document:?} with"))
        }
        Ok(document) => {
            compare(expected, document.root())?;
            Ok(Outcome::Exact)
        }
        Err(error) => match error.kind() {
            DecodeErrorKind::RefusedGlobal { module, qualname } => {
                let occurs = |name: &str| {
                    stream
                        .windows(name.len())
                        .any(|window| window == name.as_bytes())
                };
                if ADMITTED_MODULES.contains(&module.as_str()) && occurs(module) && occurs(qualname)
                {
                    Ok(Outcome::NotYetAdmitted)
                } else {
                    Err(format!("{module}.{qualname} is not what is missing here"))
                }
            }
            other => Err(format!("must be accepted, gave {other:?}")),
        },
    }
}

/// Compares a decoded value with a vector's, sharing included.
fn compare(expected: &Json, found: Value<'_>) -> Result<(), String> {
    let nodes = expected["nodes"].as_array().unwrap();
    let mut to_found: HashMap<u64, NodeId> = HashMap::new();
    let mut to_expected: HashMap<NodeId, u64> = HashMap::new();
    let mut pending = vec![(expected["root"].clone(), found)];
    while let Some((want, have)) = pending.pop() {
        let differ = || Err(format!("wanted {want}, found {have:?}"));
        let Some(number) = want.get("ref").and_then(Json::as_u64) else {
            if leaf(&want) == leaf_of(have) {
                continue;
            }
            return differ();
        };
        let node = &nodes[usize::try_from(number).unwrap()];
        let items = |node: &Json| node["items"].as_array().cloned().unwrap_or_default();
        let (kind, want_items) = match node["t"].as_str().unwrap() {
            "list" => (Kind::List, items(node)),
            "tuple" => (Kind::Tuple, items(node)),
            "set" => (Kind::Set, items(node)),
            "frozenset" => (Kind::Frozenset, items(node)),
            "dict" => (
                Kind::Dict,
                items(node)
                    .iter()
                    .flat_map(|entry| entry.as_array().unwrap().clone())
                    .collect(),
            ),
            "bytearray" => {
                if have.as_bytearray() != Some(&unhex(node["hex"].as_str().unwrap())) {
                    return differ();
                }
                (Kind::Bytearray, Vec::new())
            }
            other => return Err(format!("a {other} was wanted, found {have:?}")),
        };
        if have.kind() != kind {
            return differ();
        }
        let mut have_items = parts(have);
        if have_items.len() != want_items.len() {
            return differ();
        }
        // Sharing of what is empty and immutable has no meaning.
        if !(have_items.is_empty() && matches!(kind, Kind::Tuple | Kind::Frozenset)) {
            match (
                to_found.insert(number, have.id()),
                to_expected.insert(have.id(), number),
            ) {
                (None, None) => {}
                (Some(before), Some(number_before))
                    if before == have.id() && number_before == number =>
                {
                    continue;
                }
                _ => return Err(format!("{have:?} is not shared as it should be")),
            }
        }
        let mut want_items = want_items;
        if matches!(kind, Kind::Set | Kind::Frozenset) {
            want_items.sort_by_cached_key(|item| canonical(item, nodes));
            have_items.sort_by_cached_key(|item| canonical_of(*item));
        }
        pending.extend(want_items.into_iter().zip(have_items));
    }
    Ok(())
}

fn parts(value: Value<'_>) -> Vec<Value<'_>> {
    if let Some(entries) = value.dict() {
        return entries
            .iter()
            .flat_map(|(key, value)| [key, value])
            .collect();
    }
    [value.list(), value.tuple(), value.set(), value.frozenset()]
        .into_iter()
        .flatten()
        .flat_map(|items| items.iter())
        .collect()
}

/// One text for each value without parts.
fn leaf(want: &Json) -> Option<String> {
    Some(match want {
        Json::Null => "None".into(),
        Json::Bool(value) => format!("bool {value}"),
        Json::String(text) => format!("str {:?}", text.chars().map(u32::from).collect::<Vec<_>>()),
        want => {
            if let Some(int) = want.get("int") {
                format!("int {}", int.as_str()?)
            } else if let Some(bits) = want.get("bits") {
                format!("float {}", bits.as_str()?)
            } else if let Some(points) = want.get("str") {
                let points: Vec<u32> = serde_json::from_value(points.clone()).ok()?;
                format!("str {points:?}")
            } else {
                format!("bytes {}", want.get("bytes")?.as_str()?)
            }
        }
    })
}

fn leaf_of(have: Value<'_>) -> Option<String> {
    Some(match have.kind() {
        Kind::None => "None".into(),
        Kind::Bool => format!("bool {}", have.as_bool()?),
        Kind::Int => format!("int {}", have.as_big_int()?),
        Kind::Float => format!("float {:016x}", have.as_f64()?.to_bits()),
        Kind::Str => format!(
            "str {:?}",
            have.as_text()?.code_points().collect::<Vec<_>>()
        ),
        Kind::Bytes => format!(
            "bytes {}",
            have.as_bytes()?
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        ),
        _ => return None,
    })
}

/// One text for each set element, parts included. They are hashable, hence without cycles.
fn canonical(want: &Json, nodes: &[Json]) -> String {
    leaf(want).unwrap_or_else(|| {
        let node = &nodes[want["ref"].as_u64().unwrap() as usize];
        let mut items: Vec<_> = node["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| canonical(item, nodes))
            .collect();
        if node["t"] == "frozenset" {
            items.sort();
        }
        format!("{} {items:?}", node["t"].as_str().unwrap())
    })
}

fn canonical_of(have: Value<'_>) -> String {
    leaf_of(have).unwrap_or_else(|| {
        let mut items: Vec<_> = parts(have).into_iter().map(canonical_of).collect();
        if have.kind() == Kind::Frozenset {
            items.sort();
        }
        format!("{} {items:?}", have.kind())
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
