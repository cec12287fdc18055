//! Every vector of `spec/vectors/codec`: what our codec makes of the same bytes.
#![allow(clippy::unwrap_used)]

mod support;

use agentix_protocol::codec::{
    DecodeErrorKind, EncodeError, Key, Keys, Limits, NdArray, Value, scan,
};
use agentix_protocol::framing::{self, FrameDecoder};
use bytes::Bytes;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

#[test]
fn every_codec_vector() {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for vector in support::spec_vectors("codec", "codec.jsonl") {
        let Some(op) = vector["op"].as_str() else {
            assert_eq!(vector["kind"], "meta");
            continue;
        };
        let id = vector["id"].as_str().unwrap();
        match op {
            "pack" => pack(id, &vector),
            "unpack" => unpack(id, &vector),
            "pack_frame" => pack_frame(id, &vector),
            "read_frame" => read_frame(id, &vector),
            other => panic!("{id}: unknown op {other}"),
        }
        *counts.entry(op.to_owned()).or_default() += 1;
    }
    let counts: Vec<(&str, usize)> = counts.iter().map(|(op, n)| (op.as_str(), *n)).collect();
    assert_eq!(
        counts,
        [
            ("pack", 196),
            ("pack_frame", 8),
            ("read_frame", 16),
            ("unpack", 160)
        ]
    );
}

/// A value that the recorded packer wrote: we read it as the recorded reader did, and write the
/// same bytes.
fn pack(id: &str, vector: &Json) {
    if vector["truncated"].as_bool() == Some(true) {
        return pack_large(id, vector);
    }
    let Some(hex) = vector["hex"].as_str() else {
        // A Python object that has no encoding. The one such case that the wire could carry is
        // depth.
        assert!(vector["error"].is_object(), "{id}");
        if let Some(depth) = id.strip_prefix("depth/pack-list-") {
            let mut value = Value::Nil;
            for _ in 0..depth.parse::<usize>().unwrap().min(1100) {
                value = Value::Array(vec![value]);
            }
            assert_eq!(value.encode(), Err(EncodeError::Depth), "{id}");
        }
        return;
    };
    let bytes = support::unhex(hex);
    if vector["unpack_error"].is_object() {
        assert!(Value::decode(&bytes).is_err(), "{id}: should be refused");
        // Relayed data may hold any key.
        assert!(scan(&bytes, Keys::Any, &Limits::default()).is_ok(), "{id}");
        return;
    }
    let value = Value::decode(&bytes).unwrap_or_else(|e| panic!("{id}: {e}"));
    if let Some(expected) = vector.get("unpacked") {
        assert_value(id, &value, expected);
    }
    let encoded = value.encode();
    if id == "ndarray/dtype-f16" {
        // Its items hold padding: read, but never written.
        assert!(matches!(encoded, Err(EncodeError::Dtype(_))), "{id}");
        return;
    }
    assert_eq!(support::hex(&encoded.unwrap()), hex, "{id}");
}

/// Cut short in the file; made anew here from its description.
fn pack_large(id: &str, vector: &Json) {
    let value = match id {
        "str/len-65535" => Value::Str("a".repeat(65535).into()),
        "str/len-65536" => Value::Str("a".repeat(65536).into()),
        "bin/len-65535" => Value::Bin(vec![0xa5; 65535].into()),
        "bin/len-65536" => Value::Bin(vec![0xa5; 65536].into()),
        "array/len-65535" => Value::Array(vec![Value::Nil; 65535]),
        "array/len-65536" => Value::Array(vec![Value::Nil; 65536]),
        "map/len-65536" => {
            let entry = |i: i64| (Key::Str(i.to_string().into()), Value::Int(i));
            Value::Map((0..65536).map(entry).collect())
        }
        other => panic!("{other}: not known how to make it"),
    };
    let bytes = value.encode().unwrap();
    assert_eq!(bytes.len() as u64, vector["len"].as_u64().unwrap(), "{id}");
    let digest = support::hex(&Sha256::digest(&bytes));
    assert_eq!(digest, vector["sha256"].as_str().unwrap(), "{id}");
    assert_eq!(Value::decode(&bytes).unwrap(), value, "{id}");
}

fn unpack(id: &str, vector: &Json) {
    let bytes = support::unhex(vector["hex"].as_str().unwrap());
    let decoded = Value::decode(&bytes);
    if vector["error"].is_object() {
        let error = decoded.expect_err(id);
        assert!(error.offset <= bytes.len(), "{id}: {error}");
        if id.starts_with("ndarray_decode/") {
            assert!(
                matches!(error.kind, DecodeErrorKind::NdArray(_)),
                "{id}: {error}"
            );
        }
        if id.starts_with("unpack/key-") && !id.contains("utf8") {
            assert_eq!(error.kind, DecodeErrorKind::KeyType, "{id}");
        }
        if id.starts_with("unpack/trunc") || id.starts_with("unpack/huge") {
            assert_eq!(error.kind, DecodeErrorKind::Truncated, "{id}");
        }
        return;
    }
    let value = decoded.unwrap_or_else(|e| panic!("{id}: {e}"));
    if vector["ok"].as_bool() == Some(true) {
        assert!(matches!(value, Value::Array(_) | Value::Map(_)), "{id}");
    } else {
        assert_value(id, &value, &vector["decoded"]);
    }
    assert!(
        scan(&bytes, Keys::StrOrBin, &Limits::default()).is_ok(),
        "{id}: scan and build differ"
    );
}

fn pack_frame(id: &str, vector: &Json) {
    let bytes = support::unhex(vector["hex"].as_str().unwrap());
    let body = &bytes[framing::HEADER_BYTES..];
    assert_eq!(
        framing::header(body.len()).unwrap(),
        bytes[..framing::HEADER_BYTES],
        "{id}"
    );
    let value = Value::decode(body).unwrap();
    assert_value(id, &value, &vector["wire"]);
    assert_eq!(value.encode().unwrap(), body, "{id}");
}

fn read_frame(id: &str, vector: &Json) {
    let bytes = support::unhex(vector["hex"].as_str().unwrap());
    let mut decoder = FrameDecoder::default();
    decoder.push(&bytes);
    let frame = decoder.next_frame();
    if vector["eof"].as_bool() == Some(true) {
        assert_eq!(frame, Ok(None), "{id}");
        return;
    }
    // As a frame's reader does: a whole frame whose body is a map, maybe around models; an empty
    // body stands for an empty map.
    let map = match &frame {
        Ok(Some(body)) if body.is_empty() => true,
        Ok(Some(body)) => is_map(body),
        Ok(None) | Err(_) => false,
    };
    assert_eq!(map, vector.get("decoded").is_some(), "{id}");
}

fn is_map(body: &Bytes) -> bool {
    let mut value = match Value::decode(body) {
        Ok(value) => value,
        Err(_) => return false,
    };
    while let Value::Model(inner) = value {
        value = *inner;
    }
    matches!(value, Value::Map(_))
}

/// Compares with the vectors' typed JSON.
fn assert_value(id: &str, value: &Value<'_>, expected: &Json) {
    assert!(
        matches(value, expected),
        "{id}: {value:?} is not {expected}"
    );
}

fn matches(value: &Value<'_>, expected: &Json) -> bool {
    let tag = |name: &str| expected.get(name);
    match value {
        Value::Nil => expected.is_null(),
        Value::Bool(b) => expected.as_bool() == Some(*b),
        Value::Int(n) => expected.as_i64() == Some(*n),
        Value::BigUint(n) => expected.as_u64() == Some(*n),
        Value::F32(n) => float_matches((*n).into(), expected),
        Value::F64(n) => float_matches(*n, expected),
        Value::Str(text) => match tag("$str_prefix") {
            Some(_) => digest_matches(text.as_bytes(), expected),
            None => expected.as_str() == Some(text),
        },
        Value::Bin(bytes) => match tag("$bin_prefix") {
            Some(_) => digest_matches(bytes, expected),
            None => tag("$bin").and_then(Json::as_str) == Some(&support::hex(bytes)),
        },
        Value::Array(items) => expected.as_array().is_some_and(|list| {
            list.len() == items.len() && items.iter().zip(list).all(|(v, e)| matches(v, e))
        }),
        Value::Map(entries) => map_matches(entries, expected),
        Value::Model(inner) => matches(inner, expected),
        Value::NdArray(array) => tag("$ndarray").is_some_and(|e| array_matches(array, e)),
        Value::Timestamp(t) => tag("$timestamp").is_some_and(|e| {
            e["seconds"].as_i64() == Some(t.seconds)
                && e["nanoseconds"].as_u64() == Some(t.nanoseconds.into())
        }),
        Value::Ext(code, data) => {
            tag("$ext").and_then(Json::as_i64) == Some((*code).into())
                && tag("hex").and_then(Json::as_str) == Some(&support::hex(data))
        }
        other => panic!("a value that this test does not know: {other:?}"),
    }
}

fn float_matches(value: f64, expected: &Json) -> bool {
    let Some(text) = expected["$f64"].as_str() else {
        return false;
    };
    let expected: f64 = text.parse().unwrap();
    if expected.is_nan() {
        value.is_nan()
    } else {
        value.to_bits() == expected.to_bits()
    }
}

fn digest_matches(bytes: &[u8], expected: &Json) -> bool {
    expected["len"].as_u64() == Some(bytes.len() as u64)
        && expected["sha256"].as_str() == Some(&support::hex(&Sha256::digest(bytes)))
}

fn map_matches(entries: &[(Key<'_>, Value<'_>)], expected: &Json) -> bool {
    let key_matches = |key: &Key<'_>, expected: &Json| match key {
        Key::Str(text) => matches(&Value::Str(text.clone()), expected),
        Key::Bin(bytes) => matches(&Value::Bin(bytes.clone()), expected),
    };
    if let Some(pairs) = expected.get("$map").and_then(Json::as_array) {
        return pairs.len() == entries.len()
            && entries
                .iter()
                .zip(pairs)
                .all(|((k, v), pair)| key_matches(k, &pair[0]) && matches(v, &pair[1]));
    }
    expected.as_object().is_some_and(|object| {
        object.len() == entries.len()
            && entries.iter().all(|(key, value)| match key {
                Key::Str(text) => object.get(&**text).is_some_and(|e| matches(value, e)),
                Key::Bin(_) => false,
            })
    })
}

fn array_matches(array: &NdArray<'_>, expected: &Json) -> bool {
    let shape: Vec<u64> = expected["shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    let data = match expected["data"].as_str() {
        Some(hex) => support::hex(array.data()) == hex,
        None => digest_matches(array.data(), &expected["data"]),
    };
    expected["dtype"].as_str() == Some(&array.dtype().to_string()) && array.shape() == shape && data
}
