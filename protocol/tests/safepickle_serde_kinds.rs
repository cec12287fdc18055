//! Serde and the kinds that Rust has no type of its own for; documents from types; users' classes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use agentix_protocol::safepickle::{
    self, Decoder, DeserializeError, DeserializeErrorKind, Document, EncodeError, FromRecord, Kind,
    Limits, PathSegment, Policy, Protocol, Record, from_value, to_value,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

fn decoder() -> Decoder {
    let policy = Policy::agentix()
        .allow("app", "Point")
        .allow("zoneinfo", "ZoneInfo._unpickle");
    Decoder::new(policy, Limits::default())
}

#[track_caller]
fn decode(stream: &[u8]) -> Document<'_> {
    decoder().decode(stream).unwrap()
}

#[track_caller]
fn read<T: DeserializeOwned>(stream: &[u8]) -> T {
    from_value(decode(stream).root()).unwrap()
}

#[track_caller]
fn refused<T: DeserializeOwned + std::fmt::Debug>(stream: &[u8]) -> DeserializeError {
    from_value::<T>(decode(stream).root()).unwrap_err()
}

const DECIMAL: &[u8] = b"cdecimal\nDecimal\n\x8c\x041.50\x85R.";
const UUID: &[u8] = b"cuuid\nUUID\n)\x81}\x8c\x03intK\x01sb.";
const PATH: &[u8] = b"cpathlib\nPurePosixPath\n\x8c\x01/\x8c\x03srv\x86R.";
const DATE: &[u8] = b"cdatetime\ndate\nC\x04\x07\xe8\x05\x11\x85R.";
const TIME: &[u8] = b"cdatetime\ntime\nC\x06\x01\x02\x03\x00\x00\x05\x85R.";
const DATETIME: &[u8] = b"cdatetime\ndatetime\nC\x0a\x07\xe8\x05\x11\x01\x02\x03\x00\x00\x00\
    cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x00M\x10\x0eK\x00\x87R\x85R\x86R.";
const TIMEDELTA: &[u8] = b"cdatetime\ntimedelta\nK\x01K\x02J\x20\xa1\x07\x00\x87R.";
const DEQUE: &[u8] = b"ccollections\ndeque\n](K\x01K\x02eK\x05\x86R.";
const RANGE: &[u8] = b"cbuiltins\nrange\nK\x0aK\x00J\xfd\xff\xff\xff\x87R.";
const COMPLEX: &[u8] =
    b"cbuiltins\ncomplex\nG\x3f\xf8\x00\x00\x00\x00\x00\x00G\xc0\x00\x00\x00\x00\x00\x00\x00\x86R.";
const ORDERED: &[u8] = b"ccollections\nOrderedDict\n)R(\x8c\x01bK\x01\x8c\x01aK\x02u.";
const COUNTER: &[u8] = b"ccollections\nCounter\n}\x8c\x01aK\x02s\x85R.";
const DEFAULT: &[u8] = b"ccollections\ndefaultdict\ncbuiltins\nint\n\x85R\x8c\x01aK\x02s.";
/// A class with two attributes; one with keyword arguments; one with arguments, as NamedTuple has.
const POINT: &[u8] = b"capp\nPoint\n)\x81}(\x8c\x01xK\x01\x8c\x01yK\x02ub.";
const KEYWORDS: &[u8] = b"capp\nPoint\n)}(\x8c\x01xK\x01\x8c\x01yK\x02u\x92.";
const ARGUMENTS: &[u8] = b"capp\nPoint\nK\x01K\x02\x86\x81.";

#[derive(Debug, PartialEq, Deserialize)]
struct Point {
    x: i64,
    y: f64,
}

#[test]
fn numbers_times_and_paths_are_text() {
    assert_eq!(read::<String>(DECIMAL), "1.50");
    assert_eq!(
        read::<String>(b"cfractions\nFraction\nK\x01K\x02\x86R."),
        "1/2"
    );
    assert_eq!(read::<String>(UUID), "00000000-0000-0000-0000-000000000001");
    assert_eq!(read::<std::path::PathBuf>(PATH).to_str(), Some("/srv"));
    assert_eq!(read::<String>(DATE), "2024-05-17");
    assert_eq!(read::<String>(TIME), "01:02:03.000005");
    assert_eq!(
        read::<Option<String>>(DATETIME).as_deref(),
        Some("2024-05-17T01:02:03+01:00")
    );
}

#[test]
fn durations_are_seconds_or_durations() {
    assert_eq!(read::<f64>(TIMEDELTA), 86_402.5);
    assert_eq!(
        read::<Duration>(TIMEDELTA),
        Duration::from_millis(86_402_500)
    );
    let negative = b"cdatetime\ntimedelta\nJ\xff\xff\xff\xffK\x00K\x00\x87R.";
    assert_eq!(read::<f64>(negative), -86_400.0);
    assert!(matches!(
        refused::<Duration>(negative).kind(),
        DeserializeErrorKind::OutOfRange {
            target: "Duration",
            ..
        }
    ));
    assert_eq!(
        read::<Duration>(b"}(\x8c\x04secsK\x01\x8c\x05nanosK\x02u."),
        Duration::new(1, 2)
    );
}

#[test]
fn sequences_and_pairs() {
    assert_eq!(read::<Vec<u8>>(DEQUE), [1, 2]);
    assert_eq!(read::<(u8, u8)>(DEQUE), (1, 2));
    assert_eq!(read::<Vec<i64>>(RANGE), [10, 7, 4, 1]);
    assert_eq!(
        read::<Vec<Option<f64>>>(RANGE),
        [10.0, 7.0, 4.0, 1.0].map(Some)
    );
    assert_eq!(read::<[f64; 2]>(COMPLEX), [1.5, -2.0]);
    assert_eq!(read::<(f64, f64)>(COMPLEX), (1.5, -2.0));
    assert!(read::<Vec<u8>>(b"cbuiltins\nrange\nK\x05K\x05K\x01\x87R.").is_empty());
    assert!(matches!(
        refused::<(i64, i64)>(RANGE).kind(),
        DeserializeErrorKind::Length { found: 4, .. }
    ));
}

#[test]
fn maps_and_records() {
    let two = |a, b| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    assert_eq!(read::<BTreeMap<String, u8>>(ORDERED), two(2, 1));
    let one = BTreeMap::from([("a".to_owned(), 2)]);
    assert_eq!(read::<BTreeMap<String, u8>>(COUNTER), one);
    assert_eq!(read::<BTreeMap<String, u8>>(DEFAULT), one);
    let point = Point { x: 1, y: 2.0 };
    assert_eq!(read::<Point>(POINT), point);
    assert_eq!(read::<Point>(KEYWORDS), point);
    assert_eq!(read::<(u8, u8)>(ARGUMENTS), (1, 2));
    // The fields of a struct are read from a sequence nowhere else either.
    assert_eq!(refused::<Point>(ARGUMENTS).found(), Some("app.Point"));
}

#[test]
fn anything_shows_each_of_them() {
    for (stream, shown) in [
        (DECIMAL, json!("1.50")),
        (DATE, json!("2024-05-17")),
        (DATETIME, json!("2024-05-17T01:02:03+01:00")),
        (TIMEDELTA, json!(86_402.5)),
        (PATH, json!("/srv")),
        (DEQUE, json!([1, 2])),
        (RANGE, json!([10, 7, 4, 1])),
        (COMPLEX, json!([1.5, -2.0])),
        (ORDERED, json!({"b": 1, "a": 2})),
        (POINT, json!({"x": 1, "y": 2})),
        (ARGUMENTS, json!([1, 2])),
    ] {
        assert_eq!(read::<serde_json::Value>(stream), shown);
    }
}

#[test]
fn what_does_not_fit_says_so_and_where() {
    for (stream, kind) in [
        (&b"cbuiltins\nslice\nNNN\x87R."[..], "slice"),
        (b"cbuiltins\nKeyError\n)R.", "KeyError"),
        (b"cbuiltins\nlist\n.", "class or function"),
        (
            b"cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x00K\x00K\x00\x87R\x85R.",
            "timezone",
        ),
    ] {
        assert_eq!(
            refused::<serde_json::Value>(stream).kind(),
            &DeserializeErrorKind::Mismatch {
                expected: "plain value".into(),
                found: kind.into()
            }
        );
        assert_eq!(refused::<String>(stream).found(), Some(kind));
    }
    let error = refused::<Vec<i8>>(b"cbuiltins\nrange\nK\x7eM\x00\x01K\x01\x87R.");
    assert_eq!(error.path(), [PathSegment::Index(2)]);
    let error = refused::<BTreeMap<String, Vec<f64>>>(
        b"ccollections\nOrderedDict\n)R\x8c\x01a](K\x01\x8c\x01xes.",
    );
    assert_eq!(
        error.to_string(),
        "result[\"a\"][1]: expected float, found str"
    );
    assert_eq!(refused::<f64>(DECIMAL).found(), Some("Decimal"));
    assert_eq!(refused::<u8>(TIMEDELTA).found(), Some("timedelta"));
    // The offset of a zone by name alone is not known.
    let zoned = b"\x80\x04cdatetime\ndatetime\nC\x0a\x07\xe8\x05\x11\x01\x02\x03\x00\x00\x00\
        \x8c\x08zoneinfo\x8c\x12ZoneInfo._unpickle\x93\x8c\x03UTCK\x01\x86R\x86R.";
    assert_eq!(
        refused::<String>(zoned).kind(),
        &DeserializeErrorKind::Mismatch {
            expected: "time zone of a fixed offset".into(),
            found: "zoneinfo.ZoneInfo._unpickle".into()
        }
    );
}

#[test]
fn what_unfolds_without_end_is_too_much_work() {
    // range(0, 2**62), and one of ints that serde has no type for.
    let wide = b"cbuiltins\nrange\nK\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40K\x01\x87R.";
    assert!(matches!(
        refused::<Vec<()>>(wide).kind(),
        DeserializeErrorKind::Mismatch { .. }
    ));
    #[derive(Debug)]
    struct Count;
    impl<'de> Deserialize<'de> for Count {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Count;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("ints")
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(
                    self,
                    mut items: A,
                ) -> Result<Count, A::Error> {
                    while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                    Ok(Count)
                }
            }
            deserializer.deserialize_seq(Visitor)
        }
    }
    assert!(matches!(
        refused::<Count>(wide).kind(),
        DeserializeErrorKind::TooMuchWork { .. }
    ));
    let wider = [
        &b"cbuiltins\nrange\nK\x00\x8a\x20"[..],
        &[0x7f; 32],
        b"K\x01\x87R.",
    ]
    .concat();
    assert!(matches!(
        refused::<Count>(&wider).kind(),
        DeserializeErrorKind::OutOfRange { target: "i128", .. }
    ));
    // A Fraction of more digits than anyone waits for.
    let digits = [
        &b"cfractions\nFraction\n\x8b\x00\x00\x04\x00"[..],
        &[0x55; 0x40000],
        b"K\x01\x86R.",
    ]
    .concat();
    assert!(matches!(
        refused::<String>(&digits).kind(),
        DeserializeErrorKind::TooMuchWork { .. }
    ));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    none: Option<u8>,
    big: u128,
    text: String,
    #[serde(with = "serde_bytes_like")]
    bytes: Vec<u8>,
    pair: (bool, f64),
    map: BTreeMap<u8, Vec<Shape>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Empty,
    Circle(f64),
    Box { width: u8 },
}

/// Bytes as serde has them.
mod serde_bytes_like {
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        <&[u8] as serde::Deserialize>::deserialize(deserializer).map(<[u8]>::to_vec)
    }
}

#[test]
fn a_document_of_a_type_is_what_its_pickle_decodes_to() {
    let value = Everything {
        none: None,
        big: u128::MAX,
        text: "λ".into(),
        bytes: vec![0, 255],
        pair: (true, -0.0),
        map: BTreeMap::from([(
            1,
            vec![Shape::Empty, Shape::Circle(1.5), Shape::Box { width: 2 }],
        )]),
    };
    let document = to_value(&value).unwrap();
    let pickle = safepickle::to_vec(&value, Protocol::V4).unwrap();
    assert_eq!(document, safepickle::decode(&pickle).unwrap());
    assert_eq!(from_value::<Everything>(document.root()).unwrap(), value);
    assert_eq!(document.root().kind(), Kind::Dict);
    let unhashable = BTreeMap::from([(vec![1_u8], 2)]);
    assert_eq!(
        to_value(&unhashable).map(|_| ()),
        Err(EncodeError::Unhashable(Kind::List))
    );
}

#[derive(Debug, PartialEq)]
struct Length(f64);

impl FromRecord for Length {
    const MODULE: &'static str = "app";
    const QUALNAME: &'static str = "Point";

    fn from_record(record: Record<'_>) -> Result<Self, DeserializeError> {
        let (x, y): (f64, f64) = (record.field_as("x")?, record.field_as("y")?);
        Ok(Self(x.hypot(y)))
    }
}

#[test]
fn a_class_becomes_a_type() {
    let decoder = Decoder::new(Policy::agentix().allow_type::<Length>(), Limits::default());
    let read = |stream| decoder.decode(stream).unwrap().root().to::<Length>();
    let stream = b"capp\nPoint\n)\x81}(\x8c\x01xK\x03\x8c\x01yK\x04ub.";
    assert_eq!(read(stream), Ok(Length(5.0)));
    let wrong = b"capp\nPoint\n)\x81}(\x8c\x01xK\x03\x8c\x01yNub.";
    let error = read(wrong).unwrap_err();
    assert_eq!(error.path(), [PathSegment::Key("\"y\"".into())]);
    let missing = read(b"capp\nPoint\n)\x81.").unwrap_err();
    assert_eq!(missing.kind(), &DeserializeErrorKind::MissingField("x"));
    let other = read(b"N.").unwrap_err();
    assert_eq!(
        (other.expected(), other.found()),
        (Some("app.Point"), Some("None"))
    );
}
