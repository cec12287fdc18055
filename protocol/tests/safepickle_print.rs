//! Printing.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{self, Document};

fn decode(stream: &[u8]) -> Document<'_> {
    safepickle::decode(stream).unwrap_or_else(|error| panic!("{}: {error}", stream.escape_ascii()))
}

#[test]
fn printing_is_bounded_and_in_the_manner_of_repr() {
    let document = decode(b"(N\x88K\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00\x8c\x02a'C\x01\xff](K\x01e\x85}\x8c\x01kNs\x8f(K\x01\x91t.");
    assert_eq!(
        format!("{document:?}"),
        "(None, True, 1, 1.5, 'a\\'', b'\\xff', ([1],), {'k': None}, set(), frozenset({1}))"
    );
    assert_eq!(format!("{:?}", decode(b"]\x94h\x00a.")), "[<cycle>]");
    let mut long = b"](".to_vec();
    long.extend(b"K\x01".repeat(100_000));
    long.extend(b"e.");
    assert!(format!("{:?}", decode(&long)).len() < 5000);
}
