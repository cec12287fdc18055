//! Properties of the decoder and the encoder over generated values and generated damage.

#![allow(clippy::unwrap_used)]

mod plain;

use agentix_protocol::safepickle::{self, EncodeError, Limits, Policy, Protocol};
use plain::{PROTOCOLS, Plain, needed, plain};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Whatever can be done with a document, done, so that none of it panics.
fn exercise(stream: &[u8]) {
    let decoder = safepickle::Decoder::new(Policy::agentix(), Limits::default().nodes(100_000));
    let Ok(document) = decoder.decode(stream) else {
        return;
    };
    assert_eq!(document, document.clone(), "equality is reflexive");
    assert!(format!("{document:?}").len() <= 20_000_000);
    let _ = safepickle::from_value::<serde_json::Value>(document.root());
    let pickle = safepickle::encode(document.root(), Protocol::V5).unwrap();
    assert_eq!(safepickle::decode(&pickle).unwrap(), document);
}

/// Opcodes, with an argument where they take one.
const PIECES: &[&[u8]] = &[
    b"N",
    b"\x88",
    b"]",
    b"}",
    b")",
    b"\x8f",
    b"(",
    b"t",
    b"l",
    b"d",
    b"\x91",
    b"a",
    b"e",
    b"s",
    b"u",
    b"\x90",
    b"0",
    b"1",
    b"2",
    b"\x85",
    b"\x86",
    b"\x87",
    b"\x94",
    b"\x98",
    b"I01\n",
    b"Vx\n",
    b"S'y'\n",
    b".",
    b"G\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"C\x02ab",
    b"\x8c\x01k",
    b"cos\nx\n",
];

/// Streams made of opcodes and small arguments: most get far into the machine.
fn program() -> impl Strategy<Value = Vec<u8>> {
    let piece: BoxedStrategy<Vec<u8>> = prop_oneof![
        4 => proptest::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => (0_u8..6).prop_map(|index| vec![b'h', index]),
        1 => (0_u8..6).prop_map(|index| vec![b'q', index]),
        1 => (0_u8..3).prop_map(|int| vec![b'K', int]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
    .boxed();
    vec(piece, 0..60).prop_map(|pieces| [pieces.concat(), b".".to_vec()].concat())
}

#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, u8),
    Repeat(Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), vec(any::<u8>(), 1..6)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1_u8..6).prop_map(|(at, len)| Damage::Remove(at, len)),
        (any::<Index>(), 1_u8..6).prop_map(|(at, len)| Damage::Repeat(at, len)),
    ]
}

fn apply(stream: &mut Vec<u8>, damage: &Damage) {
    let Some(last) = stream.len().checked_sub(1) else {
        return;
    };
    match damage {
        Damage::Set(at, byte) => stream[at.index(last + 1)] = *byte,
        Damage::Insert(at, bytes) => {
            let at = at.index(last + 1);
            stream.splice(at..at, bytes.iter().copied());
        }
        Damage::Remove(at, len) => {
            let at = at.index(last + 1);
            stream.drain(at..(at + usize::from(*len)).min(last + 1));
        }
        Damage::Repeat(at, len) => {
            let at = at.index(last + 1);
            stream.extend_from_within(at..(at + usize::from(*len)).min(last + 1));
        }
    }
}

/// Failures are shown, not written into the source tree.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn values_survive_encoding_and_decoding(value in plain()) {
        let document = value.document();
        for protocol in PROTOCOLS {
            match safepickle::encode(document.root(), protocol) {
                Ok(pickle) => {
                    prop_assert!(needed(document.root()) <= protocol);
                    prop_assert_eq!(&safepickle::decode(&pickle).unwrap(), &document);
                }
                Err(EncodeError::NotInProtocol { needed: first, .. }) => {
                    prop_assert!(needed(document.root()) >= first && first > protocol);
                }
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
        }
    }

    #[test]
    fn serde_writes_what_the_builder_builds(value in plain()) {
        // Serde has neither sets nor bytearrays.
        let value = without(value);
        if let Ok(pickle) = safepickle::to_vec(&value, Protocol::V4) {
            prop_assert_eq!(&safepickle::decode(&pickle).unwrap(), &value.document());
        }
    }

    #[test]
    fn every_prefix_of_a_pickle_is_an_error(value in plain()) {
        let pickle = safepickle::encode(value.document().root(), Protocol::V5).unwrap();
        for end in 0..pickle.len() {
            prop_assert!(safepickle::decode(&pickle[..end]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(stream in vec(any::<u8>(), 0..300)) {
        exercise(&stream);
    }

    #[test]
    fn damaged_pickles_never_panic(value in plain(), protocol in 0..4_usize, damages in vec(damage(), 1..4)) {
        let protocol = PROTOCOLS[protocol].max(needed(value.document().root()));
        let mut stream = safepickle::encode(value.document().root(), protocol).unwrap();
        for damage in &damages {
            apply(&mut stream, damage);
        }
        exercise(&stream);
    }
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn arbitrary_programs_never_panic(stream in program()) {
        exercise(&stream);
    }
}

/// The value with sets as lists and bytearrays as bytes; as keys, which lists cannot be, frozensets
/// as tuples, which is why none of these values are compared with Python's.
fn without(value: Plain) -> Plain {
    let all = |items: Vec<Plain>| items.into_iter().map(without).collect();
    match value {
        Plain::Bytearray(bytes) => Plain::Bytes(bytes),
        Plain::Set(items) => Plain::List(all(items)),
        Plain::List(items) => Plain::List(all(items)),
        Plain::Tuple(items) | Plain::Frozenset(items) => Plain::Tuple(all(items)),
        Plain::Dict(entries) => Plain::Dict(
            entries
                .into_iter()
                .map(|(key, value)| (without(key), without(value)))
                .collect(),
        ),
        leaf => leaf,
    }
}
