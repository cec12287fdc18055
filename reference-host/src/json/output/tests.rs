//! Values of every kind, and the bounds.

use agentix_protocol::safepickle::{self, Protocol};
use serde::ser::Serialize;

use super::*;

/// Decodes a pickle written by hand and writes it as JSON.
fn json(pickle: &[u8]) -> Result<String, JsonError> {
    to_string(safepickle::decode(pickle).unwrap().root())
}

fn json_of<T: Serialize>(value: &T) -> String {
    json(&safepickle::to_vec(value, Protocol::DEFAULT).unwrap()).unwrap()
}

#[test]
fn plain_values() {
    assert_eq!(
        json_of(&(1, (), true, "a", 1.0, 1e300)),
        r#"[1, null, true, "a", 1.0, 1e300]"#
    );
    assert_eq!(json_of(&vec![0_u8; 0]), "[]");
    assert_eq!(
        json_of(&u128::MAX),
        "340282366920938463463374607431768211455"
    );
    assert_eq!(
        json_of(&(f64::NAN, f64::INFINITY, f64::NEG_INFINITY)),
        r#"[{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}]"#
    );
    assert_eq!(
        json_of(&"é\"\\\n\u{7}\u{1f600}"),
        "\"é\\\"\\\\\\n\\u0007\u{1f600}\""
    );
    // '\ud800' as Python writes it.
    assert_eq!(json(b"\x8c\x03\xed\xa0\x80.").unwrap(), r#""\ud800""#);
}

#[test]
fn dicts_keep_their_order_and_odd_keys() {
    assert_eq!(
        json_of(
            &[("b", 1)]
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>()
        ),
        r#"{"b": 1}"#
    );
    // {"b": 1, "a": [2]}
    assert_eq!(
        json(b"}(\x8c\x01bK\x01\x8c\x01a](K\x02eu.").unwrap(),
        r#"{"b": 1, "a": [2]}"#
    );
    // {1: "x", None: 2}
    assert_eq!(
        json(b"}(K\x01\x8c\x01xNK\x02u.").unwrap(),
        r#"{"$dict": [[1, "x"], [null, 2]]}"#
    );
    // {"$bytes": 1}
    assert_eq!(
        json(b"}\x8c\x06$bytesK\x01s.").unwrap(),
        r#"{"$dict": [["$bytes", 1]]}"#
    );
}

#[test]
fn bytes_and_sets() {
    assert_eq!(json(b"C\x02\x00\xff.").unwrap(), r#"{"$bytes": "AP8="}"#);
    // {1} and frozenset({2})
    assert_eq!(
        json(b"\x80\x04\x8f(K\x01\x90.").unwrap(),
        r#"{"$set": [1]}"#
    );
    assert_eq!(
        json(b"\x80\x04(K\x02\x91.").unwrap(),
        r#"{"$frozenset": [2]}"#
    );
}

/// `module.name(*args)`, the arguments as opcodes.
fn call(module: &str, name: &str, args: &[u8]) -> Vec<u8> {
    let args = [b"(", args, b"t"].concat();
    [
        b"c",
        module.as_bytes(),
        b"\n",
        name.as_bytes(),
        b"\n",
        &args,
        b"R",
    ]
    .concat()
}

fn json_of_call(module: &str, name: &str, args: &[u8]) -> String {
    json(&[&call(module, name, args)[..], b"."].concat()).unwrap()
}

#[test]
fn numbers_beyond_json() {
    let complex = [
        b"G",
        &1.5_f64.to_be_bytes()[..],
        b"G",
        &f64::NAN.to_be_bytes(),
    ]
    .concat();
    assert_eq!(
        json_of_call("builtins", "complex", &complex),
        r#"{"$complex": [1.5, {"$float": "nan"}]}"#
    );
    assert_eq!(
        json_of_call("decimal", "Decimal", b"\x8c\x051E+20"),
        r#""1E+20""#
    );
    assert_eq!(
        json_of_call("fractions", "Fraction", b"\x8c\x031/3"),
        r#""1/3""#
    );
    // 2**16000
    let mut wide = vec![0x8b, 0xd1, 0x07, 0, 0];
    wide.extend(vec![0; 2000]);
    wide.extend(b"\x01.");
    let zeros = "0".repeat(4000);
    assert_eq!(json(&wide).unwrap(), format!(r#"{{"$int": "0x1{zeros}"}}"#));
}

#[test]
fn days_and_times() {
    let utc = call(
        "datetime",
        "timezone",
        &call("datetime", "timedelta", b"K\x00K\x3cK\x00"),
    );
    let date = b"C\x04\x07\xea\x01\x02";
    assert_eq!(json_of_call("datetime", "date", date), r#""2026-01-02""#);
    let time = [b"C\x06\x03\x04\x05\x00\x00\x06".as_slice(), &utc].concat();
    assert_eq!(
        json_of_call("datetime", "time", &time),
        r#""03:04:05.000006+00:01""#
    );
    let datetime = b"C\x0a\x07\xea\x01\x02\x03\x04\x05\x00\x00\x00";
    assert_eq!(
        json_of_call("datetime", "datetime", datetime),
        r#""2026-01-02T03:04:05""#
    );
    assert_eq!(
        json_of_call("datetime", "timedelta", b"K\x01K\x02K\x03"),
        r#"{"$timedelta": [1, 2, 3]}"#
    );
    assert_eq!(
        json(&[&utc[..], b"."].concat()).unwrap(),
        r#"{"$timezone": [{"$timedelta": [0, 60, 0]}, null]}"#
    );
}

#[test]
fn a_path_keeps_the_bytes_that_are_no_utf8() {
    // PosixPath('/srv', 'a\ufffd\udcff')
    let parts = b"\x8c\x04/srv\x8c\x07a\xef\xbf\xbd\xed\xb3\xbf";
    assert_eq!(
        json_of_call("pathlib", "PosixPath", parts),
        "\"/srv/a\u{fffd}\\udcff\""
    );
}

#[test]
fn collections_are_what_they_resemble() {
    let counter = call("collections", "Counter", b"}\x8c\x01aK\x02s");
    assert_eq!(json(&[&counter[..], b"."].concat()).unwrap(), r#"{"a": 2}"#);
    assert_eq!(
        json_of_call("collections", "deque", b"](K\x01Ne"),
        "[1, null]"
    );
    assert_eq!(
        json_of_call("collections", "OrderedDict", b"](](K\x01Nee"),
        r#"{"$dict": [[1, null]]}"#
    );
    assert_eq!(
        json_of_call("builtins", "range", b"K\x00M\xe8\x03K\x02"),
        r#"{"$range": [0, 1000, 2]}"#
    );
    assert_eq!(
        json_of_call("builtins", "slice", b"NK\x05N"),
        r#"{"$slice": [null, 5, null]}"#
    );
}

#[test]
fn exceptions_classes_and_records() {
    assert_eq!(
        json_of_call("builtins", "KeyError", b"K\x01"),
        r#"{"$exception": {"class": "KeyError", "args": [1]}}"#
    );
    // OSError(2, "no"), then a note.
    let error = call("builtins", "OSError", b"K\x02\x8c\x02no");
    let noted = [&error[..], b"}\x8c\x09__notes__]\x8c\x01nasb."].concat();
    assert_eq!(
        json(&noted).unwrap(),
        concat!(
            r#"{"$exception": {"class": "FileNotFoundError", "args": [2, "no"], "#,
            r#""fields": {"errno": 2, "strerror": "no"}, "attrs": {"__notes__": ["n"]}}}"#
        )
    );
    assert_eq!(
        json(b"cbuiltins\nlist\n.").unwrap(),
        r#"{"$global": "builtins:list"}"#
    );
    let upload = b"cagentix.files\nUploadResult\n)\x81}(\x8c\x04path\x8c\x01p\x8c\x04sizeK\x01ub.";
    assert_eq!(
        json(upload).unwrap(),
        r#"{"$record": {"class": "agentix.files:UploadResult", "attrs": {"path": "p", "size": 1}}}"#
    );
}

#[test]
fn every_kind_that_is_shown_is_json() {
    use agentix_protocol::safepickle::{Decoder, Limits, Policy};
    let inspector = Decoder::new(Policy::inspect(), Limits::default());
    // A call with every part that a record can have: argument, appended, entry, state.
    let stream = b"cm\nf\n(K\x01tRK\x02aK\x03K\x04sK\x05b.";
    let document = inspector.decode(stream).unwrap();
    let text = to_string(document.root()).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        parsed,
        serde_json::json!({"$record": {
            "class": "m:f", "args": [1], "entries": {"$dict": [[3, 4]]}, "states": [5], "items": [2],
        }})
    );
    // A persistent id has no class; a callee may be an object.
    for stream in [
        &b"Px\n."[..],
        b"]N\x85R.",
        b"\x97.",
        b"\x82\x01.",
        b"K\x01K\x02b.",
    ] {
        let document = inspector.decode(stream).unwrap();
        let text = to_string(document.root()).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(parsed["$record"].get("class").is_some(), "{text}");
    }
}

#[test]
fn depth_and_sharing_are_bounded() {
    let mut deep = vec![b']'; MAX_DEPTH + 2];
    deep.extend(vec![b'a'; MAX_DEPTH + 1]);
    deep.push(b'.');
    assert_eq!(json(&deep), Err(JsonError::TooDeep));
    // A list that holds itself.
    assert_eq!(json(b"]q\x00h\x00a."), Err(JsonError::TooDeep));
    // Each list holds the one before twice: 2^40 values.
    let mut bomb = b"]".to_vec();
    for i in 0..40_u8 {
        bomb.extend([b'q', i, b']', b'(', b'h', i, b'h', i, b'e']);
    }
    bomb.push(b'.');
    let document = safepickle::decode(&bomb).unwrap();
    let root = document.root();
    assert_eq!(write(root, 10_000, MAX_BYTES), Err(JsonError::TooLarge));
    // A str in many places.
    let mut long = b"(X\xe8\x03\0\0".to_vec();
    long.extend(vec![b'a'; 1000]);
    long.extend(b"q\0");
    long.extend(b"h\0".repeat(1000));
    long.extend(b"l.");
    let document = safepickle::decode(&long).unwrap();
    let root = document.root();
    assert_eq!(write(root, MAX_VALUES, 100_000), Err(JsonError::TooLarge));
    assert!(write(root, MAX_VALUES, MAX_BYTES).is_ok());
}

#[test]
fn arrays_and_scalars() {
    use agentix_protocol::safepickle::Builder;
    let mut builder = Builder::new();
    let array = builder.ndarray(&[2, 1], &[1.5_f32, f32::NAN]).unwrap();
    let document = builder.finish(array).unwrap();
    assert_eq!(
        to_string(document.root()).unwrap(),
        concat!(
            r#"{"$ndarray": {"dtype": "<f4", "shape": [2, 1], "#,
            r#""elements": [1.5, {"$float": "nan"}]}}"#
        )
    );
    // Elements count as values do.
    assert_eq!(
        write(document.root(), 2, MAX_BYTES),
        Err(JsonError::TooLarge)
    );

    let mut builder = Builder::new();
    let dtype = builder.dtype("|S3").unwrap();
    let document = builder.finish(dtype).unwrap();
    assert_eq!(to_string(document.root()).unwrap(), r#"{"$dtype": "|S3"}"#);
}

/// Every dtype and array of the vectors, and scalars beyond the policy, are JSON with the same bytes.
#[test]
fn arrays_of_the_vectors() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../spec/vectors/pickle/public.jsonl"
    );
    let mut seen = std::collections::BTreeSet::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let hex = vector["hex"].as_str().unwrap();
        let pickle = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
        let policy = safepickle::Policy::agentix().with_numpy();
        let decoder = safepickle::Decoder::new(policy, safepickle::Limits::default());
        let Ok(document) = decoder.decode(&pickle) else {
            continue;
        };
        let root = document.root();
        let is_numpy = matches!(root.kind(), Kind::Ndarray | Kind::Dtype | Kind::NumpyScalar);
        if !is_numpy {
            continue;
        }
        let text = match to_string(root) {
            // An array of objects may hold itself.
            Err(JsonError::TooDeep) => continue,
            text => text.unwrap(),
        };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let form = if let Some(array) = value.get("$ndarray") {
            let shape = array["shape"].as_array().unwrap().iter();
            let count: u64 = shape.map(|dimension| dimension.as_u64().unwrap()).product();
            let forms = ["elements", "items", "data"];
            let form = forms
                .into_iter()
                .find(|form| array.get(form).is_some())
                .unwrap();
            match form {
                "data" => {
                    let data = BASE64
                        .decode(array["data"].as_str().unwrap().as_bytes())
                        .unwrap();
                    assert_eq!(data, *root.ndarray().unwrap().row_first().unwrap());
                }
                form => assert_eq!(array[form].as_array().unwrap().len() as u64, count),
            }
            form
        } else if value.get("$dtype").is_some() {
            "dtype"
        } else if value.get("$scalar").is_some() {
            "scalar"
        } else {
            assert!(
                value.is_number() || value.is_string() || value.is_boolean(),
                "{text}"
            );
            "plain"
        };
        seen.insert(form);
    }
    let all = ["data", "dtype", "elements", "items", "plain", "scalar"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}
