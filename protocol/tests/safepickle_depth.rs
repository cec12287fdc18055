//! Depth never reaches the machine stack: a million levels in a thread with 256 KiB of it.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    self, DecodeErrorKind, DeserializeErrorKind, EncodeError, LimitKind, Limits, MAX_TYPE_DEPTH,
    Protocol,
};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

const LEVELS: usize = 1_000_000;
const STACK: usize = 256 * 1024;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(test)
        .unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Lists nested `LEVELS` deep, around `None`.
fn nested_lists() -> Vec<u8> {
    let mut stream = vec![0x80, 4];
    stream.extend(std::iter::repeat_n(b']', LEVELS));
    stream.push(b'N');
    stream.extend(std::iter::repeat_n(b'a', LEVELS));
    stream.push(b'.');
    stream
}

/// Everything that walks a value, on one stream.
fn walk(stream: &[u8]) {
    let document = safepickle::decode(stream).unwrap();
    assert!(document.node_count() >= LEVELS);
    let copy = document.clone().into_owned();
    assert_eq!(document, copy);
    assert!(format!("{document:?}").len() < 100_000);
    let again = safepickle::encode(document.root(), Protocol::DEFAULT).unwrap();
    drop(document);
    assert_eq!(safepickle::decode(&again).unwrap(), copy);
    drop(copy);
}

#[test]
fn nested_lists_are_walked_in_a_small_stack() {
    on_a_small_stack(|| walk(&nested_lists()));
}

#[test]
fn nested_tuples_are_walked_in_a_small_stack() {
    on_a_small_stack(|| {
        let mut stream = b"\x80\x04N".to_vec();
        stream.extend(std::iter::repeat_n(0x85, LEVELS));
        stream.push(b'.');
        walk(&stream);
    });
}

#[test]
fn nested_dicts_are_walked_in_a_small_stack() {
    on_a_small_stack(|| {
        let mut stream = b"\x80\x04".to_vec();
        stream.extend(b"}N".repeat(LEVELS));
        stream.push(b'N');
        stream.extend(std::iter::repeat_n(b's', LEVELS));
        stream.push(b'.');
        walk(&stream);
    });
}

#[test]
fn open_marks_are_dropped_in_a_small_stack() {
    on_a_small_stack(|| {
        let mut stream = vec![b'('; LEVELS];
        stream.extend(b"N.");
        assert!(safepickle::decode(&stream).unwrap().root().is_none());
    });
}

#[test]
fn a_deep_difference_is_found() {
    on_a_small_stack(|| {
        let one = nested_lists();
        let mut other = one.clone();
        other[2 + LEVELS] = 0x88;
        assert_ne!(
            safepickle::decode(&one).unwrap(),
            safepickle::decode(&other).unwrap()
        );
    });
}

#[test]
fn a_deep_key_is_over_a_limit() {
    on_a_small_stack(|| {
        let mut stream = b"\x80\x04}N".to_vec();
        stream.extend(std::iter::repeat_n(0x85, LEVELS));
        stream.extend(b"Ns.");
        let error = safepickle::decode(&stream).unwrap_err();
        let expected = DecodeErrorKind::Limit {
            limit: LimitKind::KeyDepth,
            allowed: 500,
            value: 501,
        };
        assert_eq!(error.kind(), &expected);
        let deep = safepickle::Decoder::new(
            safepickle::Policy::agentix(),
            Limits::default().key_depth(u64::MAX),
        );
        assert_eq!(
            deep.decode(&stream).unwrap().root().dict().unwrap().len(),
            1
        );
    });
}

#[derive(Debug, Deserialize)]
struct Nest(#[allow(dead_code)] Vec<Nest>);

#[test]
fn a_type_is_followed_to_a_limit() {
    let level = |levels: usize| {
        let mut stream = vec![b']'; levels];
        stream.extend(std::iter::repeat_n(b'a', levels - 1));
        stream.push(b'.');
        safepickle::from_slice::<Nest>(&stream)
    };
    // Each level of `Nest` is a newtype and a list.
    level(MAX_TYPE_DEPTH / 2).unwrap();
    let safepickle::Error::Deserialize(error) = level(MAX_TYPE_DEPTH / 2 + 1).unwrap_err() else {
        panic!()
    };
    assert_eq!(
        error.kind(),
        &DeserializeErrorKind::TooDeep {
            allowed: MAX_TYPE_DEPTH
        }
    );
    assert_eq!(error.path().len(), MAX_TYPE_DEPTH / 2);
    let safepickle::Error::Deserialize(error) =
        safepickle::from_slice::<Nest>(b"]\x940h\x00h\x00a.").unwrap_err()
    else {
        panic!()
    };
    assert_eq!(
        error.kind(),
        &DeserializeErrorKind::TooDeep {
            allowed: MAX_TYPE_DEPTH
        },
        "a cycle"
    );
}

/// Walks lists and tuples, keeping nothing.
#[derive(Debug)]
struct Walk;

impl<'de> Deserialize<'de> for Walk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Walk)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = Walk;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("lists of lists")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Walk, A::Error> {
        while items.next_element::<Walk>()?.is_some() {}
        Ok(self)
    }
}

#[test]
fn a_graph_that_unfolds_without_end_is_too_much_work() {
    // Two references to two references to ... 2^40 leaves, in a hundred bytes.
    let mut stream = b"\x80\x04]".to_vec();
    for _ in 0..40 {
        stream.extend(b"2\x86");
    }
    stream.push(b'.');
    let document = safepickle::decode(&stream).unwrap();
    assert_eq!(document, document.clone());
    let error = safepickle::from_value::<Walk>(document.root()).unwrap_err();
    assert!(
        matches!(error.kind(), DeserializeErrorKind::TooMuchWork { .. }),
        "{error}"
    );
    let pickle: Result<Vec<u8>, EncodeError> =
        safepickle::encode(document.root(), Protocol::DEFAULT);
    assert!(pickle.unwrap().len() < 500);
}
