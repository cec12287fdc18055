//! Properties of the decoder and the encoder over generated values and generated damage.

#![allow(clippy::unwrap_used)]

mod plain;

use agentix_protocol::safepickle::{self, EncodeError, Limits, Policy, Protocol, Value};
use plain::{PROTOCOLS, Plain, plain};
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

/// Names, calls and states, of what each policy admits and of what one alone does.
const CLASSES: &[&[u8]] = &[
    b"capp\nA\n",
    b"\x8c\x03app\x8c\x01B\x93",
    b"ccollections\nOrderedDict\n",
    b"\x8c\x0bcollections\x8c\x05deque\x93",
    b"cbuiltins\nset\n",
    b"cbuiltins\nbytearray\n",
    b"\x8c\x08builtins\x8c\x09ValueError\x93",
    b"cnumpy._core.multiarray\nscalar\n",
    b"c_codecs\nencode\nVa\nVlatin1\n\x86R",
    b"ccopyreg\n__newobj__\n",
    b")R",
    b"]\x85R",
    b"K\x01\x85R",
    b")\x81",
    b")}\x92",
    b"}b",
    b"Nb",
    b"}Vx\nK\x01sb",
    b"(iapp\nA\n",
    b"(capp\nB\no",
    b"\x82\x01",
    b"Px\n",
    b"Q",
];

/// Streams made of opcodes and small arguments: most get far into the machine.
fn program() -> impl Strategy<Value = Vec<u8>> {
    program_of(PIECES.to_vec())
}

fn program_of(pieces: Vec<&'static [u8]>) -> impl Strategy<Value = Vec<u8>> {
    let piece: BoxedStrategy<Vec<u8>> = prop_oneof![
        4 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => (0_u8..6).prop_map(|index| vec![b'h', index]),
        1 => (0_u8..6).prop_map(|index| vec![b'q', index]),
        1 => (0_u8..3).prop_map(|int| vec![b'K', int]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
    .boxed();
    vec(piece, 0..60).prop_map(|pieces| [pieces.concat(), b".".to_vec()].concat())
}

/// A policy, and one that admits as much and perhaps more.
fn policies() -> impl Strategy<Value = (Policy, Policy)> {
    let level = || 0..3_u8;
    let make = |app: u8, numpy: bool, inspect: bool| {
        let mut policy = match inspect {
            true => Policy::inspect(),
            false => Policy::agentix(),
        };
        for name in ["A", "B"].into_iter().take(usize::from(app)) {
            policy = policy.allow("app", name);
        }
        if numpy { policy.with_numpy() } else { policy }
    };
    let flags = || (level(), any::<bool>(), any::<bool>());
    (flags(), flags()).prop_map(move |(one, other)| {
        let (app, numpy, inspect) = (one.0.min(other.0), one.1 & other.1, one.2 & other.2);
        (make(app, numpy, inspect), make(one.0, one.1, one.2))
    })
}

/// The streams of the vectors, hostile ones included, up to a length.
fn vectors(longest: usize) -> Vec<(String, Vec<u8>)> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../spec/vectors/pickle/public.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut streams = Vec::new();
    for line in text.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let hex = vector["hex"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        if bytes.len() <= longest {
            streams.push((vector["id"].as_str().unwrap().to_owned(), bytes));
        }
    }
    assert!(streams.len() > 2000);
    streams
}

/// What the first policy accepts, the second does, and the value is the same.
fn is_monotone(less: Policy, more: Policy, stream: &[u8]) -> bool {
    let Ok(value) = safepickle::Decoder::new(less, Limits::default()).decode(stream) else {
        return true;
    };
    safepickle::Decoder::new(more, Limits::default()).decode(stream) == Ok(value)
}

#[test]
fn admitting_more_refuses_no_vector() {
    let chain = [
        Policy::agentix(),
        Policy::agentix().allow("app", "A"),
        Policy::agentix().allow("app", "A").with_numpy(),
        Policy::inspect(),
    ];
    for (id, stream) in vectors(usize::MAX) {
        for pair in chain.windows(2) {
            assert!(
                is_monotone(pair[0].clone(), pair[1].clone(), &stream),
                "{id}"
            );
        }
    }
}

#[test]
fn every_prefix_of_a_vector_is_an_error_or_a_value() {
    let policies = [Policy::agentix().with_numpy(), Policy::inspect()];
    for policy in policies {
        let decoder = safepickle::Decoder::new(policy, Limits::default());
        for (id, stream) in vectors(512) {
            let whole = decoder.decode(&stream);
            for end in 0..stream.len() {
                match (decoder.decode(&stream[..end]), &whole) {
                    // What comes after STOP is not read.
                    (Ok(value), whole) => {
                        assert!(value.consumed() <= end, "{id}");
                        assert_eq!(Ok(&value), whole.as_ref(), "{id}");
                    }
                    (Err(error), Ok(whole)) => {
                        assert!(error.offset() as usize <= end, "{id}");
                        // A frame may go on after STOP.
                        assert!(end < whole.consumed() || stream.contains(&0x95), "{id}");
                    }
                    (Err(error), Err(_)) => assert!(error.offset() as usize <= end, "{id}"),
                }
            }
        }
    }
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

/// The first protocol that can hold every kind in a value without cycles.
fn needed(value: Value<'_>) -> Protocol {
    let parts: Vec<_> = match value.dict() {
        Some(entries) => entries
            .iter()
            .flat_map(|(key, value)| [key, value])
            .collect(),
        None => [value.list(), value.tuple(), value.set(), value.frozenset()]
            .into_iter()
            .flatten()
            .flat_map(|items| items.iter())
            .collect(),
    };
    let bytes = value.as_bytes().or(value.as_bytearray());
    let own = match bytes {
        Some([_, ..]) => Protocol::V3,
        _ => Protocol::V2,
    };
    parts.into_iter().map(needed).fold(own, Protocol::max)
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

    #[test]
    fn admitting_more_refuses_nothing(
        (less, more) in policies(),
        stream in program_of([PIECES, CLASSES].concat()),
    ) {
        prop_assert!(is_monotone(less, more, &stream));
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
