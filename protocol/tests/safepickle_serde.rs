//! Serde both ways: how Rust types meet Python values, and what errors say.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use agentix_protocol::safepickle::{
    self, DeserializeError, DeserializeErrorKind, EncodeError, Kind, PathSegment, Protocol, decode,
    from_slice, to_vec,
};
use serde::de::DeserializeOwned;
use serde::ser::{SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};

const PROTOCOLS: [Protocol; 4] = [Protocol::V2, Protocol::V3, Protocol::V4, Protocol::V5];

#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T) {
    for protocol in PROTOCOLS {
        let pickle = to_vec(&value, protocol).unwrap();
        assert_eq!(
            from_slice::<T>(&pickle).unwrap(),
            value,
            "protocol {protocol:?}"
        );
    }
}

#[track_caller]
fn refused<T: DeserializeOwned + std::fmt::Debug>(pickle: &[u8]) -> DeserializeError {
    match from_slice::<T>(pickle).unwrap_err() {
        safepickle::Error::Deserialize(error) => error,
        other => panic!("{other}"),
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    name: String,
    scores: Vec<f64>,
    pair: (i64, Option<bool>),
    #[serde(default)]
    extra: BTreeMap<u32, String>,
    unit: (),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Choice {
    Nothing,
    One(u8),
    Two(u8, String),
    Named { left: u8, right: Vec<Choice> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(u16);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

fn record() -> Record {
    Record {
        name: "λ".into(),
        scores: vec![0.5, -1.0],
        pair: (i64::MIN, Some(true)),
        extra: BTreeMap::from([(7, "seven".into())]),
        unit: (),
    }
}

#[test]
fn types_survive_the_round_trip_at_every_protocol() {
    round_trip(());
    round_trip(Unit);
    round_trip(true);
    round_trip(None::<u8>);
    round_trip(Some(5_u8));
    round_trip('λ');
    round_trip(String::from("a\0b\n"));
    round_trip("x".repeat(300));
    round_trip(Wrapper(9));
    round_trip(record());
    round_trip(vec![record(), record()]);
    round_trip([1.5_f32, f32::MAX]);
    round_trip((1_u8, "two".to_owned(), 3.0_f64, None::<u8>));
    round_trip(BTreeMap::from([
        ((1_i8, 'a'), vec![0_u8; 3]),
        ((2, 'b'), vec![]),
    ]));
    round_trip(vec![
        Choice::Nothing,
        Choice::One(1),
        Choice::Two(2, "b".into()),
        Choice::Named {
            left: 3,
            right: vec![Choice::Nothing],
        },
    ]);
    round_trip((0..2500).collect::<Vec<u32>>());
    round_trip(
        (0..2500)
            .map(|key| (key, ()))
            .collect::<BTreeMap<u16, ()>>(),
    );
}

#[test]
fn integers_of_every_width_survive() {
    let mut wanted: Vec<i128> = vec![0, i128::MIN, i128::MAX];
    for bits in 0..127 {
        let power = 1_i128 << bits;
        wanted.extend([power, power - 1, -power, -power - 1]);
    }
    for int in wanted {
        let pickle = to_vec(&int, Protocol::V2).unwrap();
        assert_eq!(from_slice::<i128>(&pickle).unwrap(), int);
        assert_eq!(from_slice::<i64>(&pickle).ok(), i64::try_from(int).ok());
        assert_eq!(from_slice::<u64>(&pickle).ok(), u64::try_from(int).ok());
        assert_eq!(from_slice::<u8>(&pickle).ok(), u8::try_from(int).ok());
        assert_eq!(from_slice::<f64>(&pickle).unwrap(), int as f64);
    }
    round_trip(u128::MAX);
    round_trip(u64::MAX);
}

#[test]
fn ints_are_written_as_short_as_cpython_writes_them() {
    let hex = |int: i128| to_vec(&int, Protocol::V2).unwrap()[2..].to_vec();
    assert_eq!(hex(255), b"K\xff.");
    assert_eq!(hex(256), b"M\x00\x01.");
    assert_eq!(hex(-1), b"J\xff\xff\xff\xff.");
    assert_eq!(hex(1 << 31), b"\x8a\x05\x00\x00\x00\x80\x00.");
    assert_eq!(hex(-(1 << 39)), b"\x8a\x05\x00\x00\x00\x00\x80.");
}

#[test]
fn shapes_are_those_that_python_has() {
    let kind = |pickle: Vec<u8>| decode(&pickle).unwrap().root().kind();
    assert_eq!(kind(to_vec(&(), Protocol::V4).unwrap()), Kind::None);
    assert_eq!(kind(to_vec(&Unit, Protocol::V4).unwrap()), Kind::None);
    assert_eq!(kind(to_vec(&(1, 2), Protocol::V4).unwrap()), Kind::Tuple);
    assert_eq!(kind(to_vec(&vec![1], Protocol::V4).unwrap()), Kind::List);
    assert_eq!(kind(to_vec(&record(), Protocol::V4).unwrap()), Kind::Dict);
    assert_eq!(kind(to_vec("", Protocol::V4).unwrap()), Kind::Str);
    assert_eq!(kind(to_vec(&'x', Protocol::V4).unwrap()), Kind::Str);
    assert_eq!(kind(to_vec(&1.0_f32, Protocol::V4).unwrap()), Kind::Float);
    let choice = to_vec(&Choice::Two(1, "x".into()), Protocol::V4).unwrap();
    let document = decode(&choice).unwrap();
    let content = document.root().dict().unwrap().value("Two").unwrap();
    assert_eq!(content.tuple().unwrap().len(), 2);
}

/// Call arguments, as the host builds them: a tuple of no or some positional arguments, and a dict.
struct Arguments<'a>(&'a [u8]);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Positional<'a>(&'a [u8]);
        impl Serialize for Positional<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut tuple = serializer.serialize_tuple(self.0.len())?;
                for item in self.0 {
                    tuple.serialize_element(item)?;
                }
                tuple.end()
            }
        }
        (Positional(self.0), BTreeMap::from([("input", "hello")])).serialize(serializer)
    }
}

#[test]
fn a_tuple_of_nothing_is_the_empty_tuple() {
    for count in 0..6_u8 {
        let pickle = to_vec(
            &Arguments(&(0..count).collect::<Vec<_>>()),
            Protocol::DEFAULT,
        )
        .unwrap();
        let document = decode(&pickle).unwrap();
        let arguments = document.root().tuple().unwrap();
        assert_eq!(
            arguments.at(0).unwrap().tuple().unwrap().len(),
            usize::from(count)
        );
        assert_eq!(
            arguments
                .at(1)
                .unwrap()
                .dict()
                .unwrap()
                .value("input")
                .unwrap()
                .as_str(),
            Some("hello")
        );
    }
}

#[test]
fn a_tuple_that_miscounts_is_an_error() {
    struct Miscounted(usize);
    impl Serialize for Miscounted {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut tuple = serializer.serialize_tuple(self.0)?;
            tuple.serialize_element(&1)?;
            tuple.end()
        }
    }
    assert!(matches!(
        to_vec(&Miscounted(0), Protocol::V4),
        Err(EncodeError::Custom(_))
    ));
    assert!(matches!(
        to_vec(&Miscounted(2), Protocol::V4),
        Err(EncodeError::Custom(_))
    ));
}

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

#[test]
fn bytes_need_protocol_3_and_become_vectors_and_slices() {
    let bytes = Bytes((0..=255).cycle().take(700).collect());
    let expected = EncodeError::NotInProtocol {
        kind: Kind::Bytes,
        protocol: Protocol::V2,
        needed: Protocol::V3,
    };
    assert_eq!(to_vec(&bytes, Protocol::V2), Err(expected));
    for protocol in [Protocol::V3, Protocol::V4, Protocol::V5] {
        let pickle = to_vec(&bytes, protocol).unwrap();
        assert_eq!(from_slice::<Vec<u8>>(&pickle).unwrap(), bytes.0);
        let document = decode(&pickle).unwrap();
        assert_eq!(document.root().as_bytes(), Some(&bytes.0[..]));
        assert_eq!(
            safepickle::from_value::<&[u8]>(document.root()).unwrap(),
            bytes.0
        );
    }
    assert_eq!(
        from_slice::<Vec<u8>>(b"](K\x01K\x02e.").unwrap(),
        [1, 2],
        "a list of ints does as well"
    );
    assert_eq!(from_slice::<[u8; 2]>(b"C\x02ab.").unwrap(), *b"ab");
    let error = refused::<[u8; 2]>(b"C\x03abc.");
    assert_eq!(
        error.kind(),
        &DeserializeErrorKind::Length {
            expected: "2".into(),
            found: 3
        }
    );
}

#[test]
fn large_values_borrow_from_the_input() {
    let pickle = to_vec(&("x".repeat(5000), Bytes(vec![7; 5000])), Protocol::V4).unwrap();
    let document = decode(&pickle).unwrap();
    let range = pickle.as_ptr_range();
    let pair = document.root().tuple().unwrap();
    assert!(range.contains(&pair.at(0).unwrap().as_str().unwrap().as_ptr()));
    assert!(range.contains(&pair.at(1).unwrap().as_bytes().unwrap().as_ptr()));
}

#[test]
fn names_of_fields_are_written_once() {
    let pickle = to_vec(&vec![record(), record(), record()], Protocol::V4).unwrap();
    assert_eq!(
        pickle
            .windows(6)
            .filter(|window| window == b"scores")
            .count(),
        1
    );
}

#[test]
fn python_values_become_types() {
    assert_eq!(
        from_slice::<f64>(b"K\x05.").unwrap(),
        5.0,
        "an int where a float is wanted"
    );
    assert_eq!(
        from_slice::<Vec<u8>>(b"K\x01K\x02\x86.").unwrap(),
        [1, 2],
        "a tuple where a list is wanted"
    );
    assert_eq!(
        from_slice::<(u8, u8)>(b"](K\x01K\x02e.").unwrap(),
        (1, 2),
        "a list where a tuple is wanted"
    );
    assert_eq!(
        from_slice::<BTreeMap<i8, bool>>(b"}(K\x01\x88K\x02\x89u.").unwrap(),
        [(1, true), (2, false)].into()
    );
    assert_eq!(
        from_slice::<std::collections::BTreeSet<u8>>(b"\x8f(K\x02K\x01\x90.").unwrap(),
        [1, 2].into()
    );
    assert_eq!(
        from_slice::<Choice>(b"\x8c\x07Nothing.").unwrap(),
        Choice::Nothing
    );
    assert_eq!(
        from_slice::<Choice>(b"}\x8c\x07NothingNs.").unwrap(),
        Choice::Nothing
    );
    assert_eq!(
        from_slice::<Choice>(b"}\x8c\x03OneK\x09s.").unwrap(),
        Choice::One(9)
    );
    let json: serde_json::Value =
        from_slice(b"}(\x8c\x01aN\x8c\x01b](K\x01J\xff\xff\xff\xff\x88eu.").unwrap();
    assert_eq!(json, serde_json::json!({"a": null, "b": [1, -1, true]}));
}

#[test]
fn an_error_names_the_path() {
    let pickle = to_vec(
        &BTreeMap::from([("scores", vec![Some(1.0), None, Some(2.0)])]),
        Protocol::DEFAULT,
    )
    .unwrap();
    let error = refused::<BTreeMap<String, Vec<f64>>>(&pickle);
    assert_eq!(
        error.path(),
        [PathSegment::Key("\"scores\"".into()), PathSegment::Index(1)]
    );
    assert_eq!(
        (error.expected(), error.found()),
        (Some("float"), Some("None"))
    );
    assert!(error.to_string().starts_with("result[\"scores\"][1]: "));

    let error = refused::<BTreeMap<String, u8>>(b"}(\x8c\x01aK\x01K\x02K\x02u.");
    assert_eq!(error.path(), [PathSegment::InKey("2".into())]);
    assert_eq!(
        (error.expected(), error.found()),
        (Some("str"), Some("int"))
    );

    let error = refused::<Vec<Choice>>(b"]}\x8c\x03TwoK\x01\x88\x86sa.");
    let two = PathSegment::Key("\"Two\"".into());
    assert_eq!(
        error.path(),
        [PathSegment::Index(0), two, PathSegment::Index(1)]
    );
    assert_eq!(
        (error.expected(), error.found()),
        (Some("str"), Some("bool"))
    );
}

#[test]
fn every_kind_of_misfit_has_its_own_error() {
    let kind = |error: DeserializeError| error.kind().clone();
    let mismatch = |expected: &str, found: &str| DeserializeErrorKind::Mismatch {
        expected: expected.into(),
        found: found.into(),
    };
    assert_eq!(kind(refused::<bool>(b"K\x01.")), mismatch("bool", "int"));
    assert_eq!(kind(refused::<u8>(b"\x88.")), mismatch("int", "bool"));
    assert_eq!(
        kind(refused::<String>(b"C\x01a.")),
        mismatch("str", "bytes")
    );
    assert_eq!(kind(refused::<()>(b"K\x01.")), mismatch("None", "int"));
    assert_eq!(
        kind(refused::<Vec<u8>>(b"\x8c\x01a.")),
        mismatch("list", "str")
    );
    assert_eq!(kind(refused::<Record>(b"].")), mismatch("dict", "list"));
    assert_eq!(
        kind(refused::<String>(b"\x8c\x03\xed\xa0\x80.")),
        mismatch("str", "str with surrogate code points")
    );
    assert_eq!(
        kind(refused::<Choice>(b"\x8c\x03One.")),
        mismatch("dict of one entry", "str")
    );
    assert_eq!(
        kind(refused::<u8>(b"M\x00\x01.")),
        DeserializeErrorKind::OutOfRange {
            target: "u8",
            found: "256".into()
        }
    );
    assert_eq!(
        kind(refused::<Unnested>(b"}.")),
        DeserializeErrorKind::MissingField("needed")
    );
    assert_eq!(
        kind(refused::<Unnested>(
            b"}(\x8c\x06neededK\x01\x8c\x05otherNu."
        )),
        DeserializeErrorKind::UnknownField("other".into())
    );
    assert_eq!(
        kind(refused::<Choice>(b"\x8c\x05Other.")),
        DeserializeErrorKind::UnknownVariant {
            expected: &["Nothing", "One", "Two", "Named"],
            found: "Other".into()
        }
    );
    assert!(matches!(
        kind(refused::<(u8, u8)>(b"](K\x01K\x02K\x03e.")),
        DeserializeErrorKind::Length { found: 3, .. }
    ));
    assert!(matches!(
        kind(refused::<(u8, u8)>(b"]K\x01a.")),
        DeserializeErrorKind::Length { found: 1, .. }
    ));
    assert!(matches!(
        kind(refused::<char>(b"\x8c\x02ab.")),
        DeserializeErrorKind::Length { found: 2, .. }
    ));
    assert!(matches!(
        kind(refused::<Choice>(b"}.")),
        DeserializeErrorKind::Length { found: 0, .. }
    ));
    assert!(matches!(
        kind(refused::<std::net::IpAddr>(b"\x8c\x01x.")),
        DeserializeErrorKind::Custom(_)
    ));
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unnested {
    #[allow(dead_code)]
    needed: u8,
}
