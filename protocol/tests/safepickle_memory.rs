//! What decoding takes, counted by the allocator: the peak is at most a constant times the input, and
//! the value at most 24 bytes an object beside the bytes it has to own.
//!
//! All in one test, since the allocator counts for every thread of the process.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use agentix_protocol::safepickle::{
    DecodeError, Decoder, Document, Limits, Policy, Protocol, to_vec,
};
use peak_alloc::PeakAlloc;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Serialize;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of peak for each byte of input, as [`Limits`] documents it, and whatever the input.
const PEAK_PER_BYTE: usize = 64;
/// The same under [`Policy::inspect`], which makes a record of every instruction that others refuse.
const INSPECT_PEAK_PER_BYTE: usize = 192;
/// Bytes of peak beside that.
const PEAK_BASE: usize = 4096;

/// Decodes, and says how many bytes that took at its peak, and how many the value keeps.
fn measure<'a>(
    decoder: &Decoder,
    input: &'a [u8],
) -> (Result<Document<'a>, DecodeError>, usize, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let decoded = decoder.decode(input);
    let peak = ALLOCATOR.peak_usage() - before;
    let kept = ALLOCATOR.current_usage() - before;
    (decoded, peak, kept)
}

/// A decoder for every policy, with the bytes of peak for each byte of input that [`Limits`]
/// documents for it.
fn decoders(limits: Limits) -> [(Decoder, usize); 4] {
    [
        (Policy::agentix(), PEAK_PER_BYTE),
        (Policy::agentix().with_numpy(), PEAK_PER_BYTE),
        (Policy::agentix().allow("a", "b"), PEAK_PER_BYTE),
        (Policy::inspect(), INSPECT_PEAK_PER_BYTE),
    ]
    .map(|(policy, per_byte)| (Decoder::new(policy, limits), per_byte))
}

/// Decodes under every policy, and panics where the peak is above what is documented. Gives the
/// highest peak.
fn within(name: &str, input: &[u8]) -> usize {
    let peaks = decoders(Limits::default()).map(|(decoder, per_byte)| {
        let (decoded, peak, _) = measure(&decoder, input);
        let allowed = PEAK_BASE + per_byte * input.len();
        assert!(
            peak <= allowed,
            "{name}: {peak} bytes for {} of input, {allowed} allowed: {decoded:?}",
            input.len(),
        );
        peak
    });
    peaks.into_iter().max().unwrap_or_default()
}

/// How often an instruction is repeated: tables that double have just doubled.
const TIMES: usize = (1 << 14) + 1;

/// Streams that have `head`, then `unit` over and over, then `tail`.
fn repeated(head: &[u8], unit: &[u8], tail: &[u8]) -> Vec<u8> {
    [head, &unit.repeat(TIMES), tail].concat()
}

/// `part` of each number below [`TIMES`] between `head` and `tail`.
fn numbered(head: &[u8], part: impl Fn(u32) -> Vec<u8>, tail: &[u8]) -> Vec<u8> {
    let parts: Vec<_> = (0..TIMES as u32).flat_map(part).collect();
    [head, &parts, tail].concat()
}

/// An opcode, a number, and what follows.
fn after<const N: usize>(opcode: &[u8], number: [u8; N], rest: &[u8]) -> Vec<u8> {
    [opcode, &number, rest].concat()
}

/// A stream that stores a class as the first entry of the memo.
fn class(module: &str, name: &str) -> Vec<u8> {
    let mut stream = vec![0x80, 4, 0x8c, module.len() as u8];
    stream.extend(module.bytes());
    stream.extend([0x8c, name.len() as u8]);
    stream.extend(name.bytes());
    stream.extend(b"\x93\x94");
    stream
}

/// `unit` over and over, after a class.
fn of(module: &str, name: &str, unit: &[u8]) -> Vec<u8> {
    repeated(&class(module, name), unit, b".")
}

/// Instructions that make the most of each byte, over and over.
fn dense() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "marks",
            [&b"N"[..], &b"(".repeat(TIMES), &b"0".repeat(TIMES), b"."].concat(),
        ),
        ("none", repeated(b"", b"N", b".")),
        ("lists", repeated(b"", b"]", b".")),
        ("dicts", repeated(b"", b"}", b".")),
        ("sets", repeated(b"", b"\x8f", b".")),
        ("marked tuples", repeated(b"", b"(t", b".")),
        ("nested lists", repeated(b"]", b"]a", b".")),
        ("nested tuples", repeated(b"N", b"\x85", b".")),
        ("tuples of three", repeated(b"NN", b"N\x87NN", b".")),
        ("memo", repeated(b"N", b"\x94", b".")),
        ("lists in the memo", repeated(b"", b"]\x94", b".")),
        (
            "memo upside down",
            numbered(
                b"N",
                |n| after(b"r", (u32::MAX - n).to_le_bytes(), b""),
                b".",
            ),
        ),
        (
            "memo text",
            numbered(b"N", |n| format!("p{}\n", 99_999 - n).into_bytes(), b"."),
        ),
        ("floats", repeated(b"", b"F1\n", b".")),
        ("small ints", repeated(b"", b"I256\n", b".")),
        ("strs", repeated(b"", b"\x8c\0", b".")),
        ("text", repeated(b"", b"V\n", b".")),
        ("escapes", repeated(b"V", b"\\u0041", b"\n.")),
        ("latin text", repeated(b"V", b"\xff", b"\n.")),
        ("quoted", repeated(b"S'", b"a", b"'\n.")),
        (
            "ints of nine bytes",
            repeated(b"", b"\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09", b"."),
        ),
        (
            "int of many bytes",
            after(
                b"\x8b",
                60_000_u32.to_le_bytes(),
                &[&[0x55; 60_000][..], b"."].concat(),
            ),
        ),
        ("appends of one", repeated(b"]", b"Na", b".")),
        (
            "lists that take turns",
            repeated(b"]\x94]\x94", b"h\0Nah\x01Na", b"."),
        ),
        ("batches", repeated(b"](", b"N", b"e.")),
        (
            "dict of ints",
            numbered(b"}(", |n| after(b"J", n.to_le_bytes(), b"N"), b"u."),
        ),
        (
            "dict of shorts, one by one",
            numbered(b"}", |n| after(b"M", (n as u16).to_le_bytes(), b"Ns"), b"."),
        ),
        (
            "set of shorts",
            numbered(
                b"\x8f(",
                |n| after(b"M", (n as u16).to_le_bytes(), b""),
                b"\x90.",
            ),
        ),
        ("dicts of one", repeated(b"", b"}NNs", b".")),
        ("sets of one", repeated(b"", b"(N\x91", b".")),
        ("names", of("datetime", "date", b"h\0")),
        ("names anew", repeated(b"", b"cuuid\nUUID\n", b".")),
        (
            "objects without arguments",
            of("collections", "OrderedDict", b"h\0)R"),
        ),
        ("deques", of("collections", "deque", b"h\0)R")),
        ("exceptions", of("builtins", "ValueError", b"h\0)R")),
        (
            "exceptions with an argument",
            of("builtins", "KeyError", b"h\0N\x85R"),
        ),
        (
            "exceptions with fields",
            of("builtins", "OSError", b"h\0NN\x86R"),
        ),
        (
            "exceptions with most fields",
            of("builtins", "SyntaxError", b"h\0)R"),
        ),
        (
            "attributes",
            of("builtins", "ValueError", b"h\0)R}\x8c\x01aNsb"),
        ),
        ("uuids", of("uuid", "UUID", b"h\0)\x81}\x8c\x03intK\x01sb")),
        ("ranges", of("builtins", "range", b"h\0K\0K\x01K\x01\x87R")),
        ("slices", of("builtins", "slice", b"h\0NNN\x87R")),
        ("bytearrays", of("builtins", "bytearray", b"h\0)R")),
        ("complexes", of("builtins", "complex", b"h\0F1\nF1\n\x86R")),
        ("decimals", of("decimal", "Decimal", b"h\0\x8c\x011\x85R")),
        (
            "fractions",
            of("fractions", "Fraction", b"h\0\x8c\x011\x85R"),
        ),
        (
            "fractions of two",
            of("fractions", "Fraction", b"h\0K\x02K\x03\x86R"),
        ),
        (
            "dates",
            of("datetime", "date", b"h\0C\x04\x07\xe8\x01\x01\x85R"),
        ),
        (
            "times",
            of("datetime", "time", b"h\0C\x06\0\0\0\0\0\0\x85R"),
        ),
        (
            "datetimes",
            of(
                "datetime",
                "datetime",
                b"h\0C\x0a\x07\xe8\x01\x01\0\0\0\0\0\0\x85R",
            ),
        ),
        (
            "timedeltas",
            of("datetime", "timedelta", b"h\0K\0K\x01K\0\x87R"),
        ),
        (
            "timezones",
            repeated(
                b"\x80\x04cdatetime\ntimedelta\nK\0K\0K\0\x87R\x94cdatetime\ntimezone\n\x94",
                b"h\x01h\0\x85R",
                b".",
            ),
        ),
        ("paths", of("pathlib", "PurePosixPath", b"h\0)R")),
        (
            "paths with parts",
            of("pathlib", "PurePosixPath", b"h\0\x8c\x03a/b\x85R"),
        ),
        ("ordered dicts", of("collections", "OrderedDict", b"h\0)R")),
        (
            "ordered dicts of one",
            of("collections", "OrderedDict", b"h\0)RNNs"),
        ),
        ("counters", of("collections", "Counter", b"h\0}\x85R")),
        ("default dicts", of("collections", "defaultdict", b"h\0)R")),
        ("deques", of("collections", "deque", b"h\0)R")),
        (
            "deques with a bound",
            of("collections", "deque", b"h\0)K\x01\x86R"),
        ),
    ]
}

/// The same of what numpy writes.
fn dense_numpy() -> Vec<(&'static str, Vec<u8>)> {
    // A class, the arguments of a dtype, and its state, in the memo as 0 to 2.
    let dtype = b"\x80\x04cnumpy\ndtype\n\x94\x8c\x02u1\x89\x88\x87\x94(K\x03\x8c\x01|\
        NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0t\x94h\0h\x01Rh\x02b\x94";
    let after = |head: &[u8], unit: &[u8]| repeated(&[dtype, head].concat(), unit, b".");
    vec![
        ("dtypes", after(b"", b"h\0h\x01Rh\x02b")),
        (
            "arrays",
            after(
                b"cnumpy._core.multiarray\n_reconstruct\n\x94\
                cnumpy\nndarray\nK\0\x85C\x01b\x87\x94(K\x01K\0\x85h\x03\x89C\0t\x94",
                b"h\x04h\x05Rh\x06b",
            ),
        ),
        (
            "scalars",
            after(
                b"cnumpy._core.multiarray\nscalar\n\x94h\x03C\x01a\x86\x94",
                b"h\x04h\x05R",
            ),
        ),
        (
            "arrays of one",
            after(
                b"cnumpy._core.multiarray\n_reconstruct\n\x94\
                cnumpy\nndarray\nK\0\x85C\x01b\x87\x94",
                b"h\x04h\x05R(K\x01K\x01\x85h\x03\x89C\x01atb",
            ),
        ),
    ]
}

/// The same of a class that is admitted by its name, `a.b`.
fn dense_records() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("records", of("a", "b", b"h\0)\x81")),
        ("records with arguments", of("a", "b", b"(h\0No")),
        ("records with keywords", of("a", "b", b"h\0)}NNs\x92")),
        ("records with states", of("a", "b", b"h\0)\x81NbNb")),
        ("records with attributes", of("a", "b", b"h\0)\x81}NNsb")),
        ("records with items", of("a", "b", b"h\0)\x81NaNNs")),
        ("a record with many states", {
            let head = [class("a", "b"), b"h\0)\x81".to_vec()].concat();
            repeated(&head, b"Nb", b".")
        }),
    ]
}

/// The same of what [`Policy::inspect`] alone makes something of.
fn dense_inspected() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("names", repeated(b"", b"cx\ny\n", b".")),
        ("instances", repeated(b"", b"(ix\ny\n", b".")),
        (
            "names of all kinds",
            numbered(b"", |n| format!("cx\n{n:x}\n").into_bytes(), b"."),
        ),
        ("persistent ids", repeated(b"", b"P\n", b".")),
        ("persistent objects", repeated(b"N", b"Q", b".")),
        ("extensions", repeated(b"", b"\x82\x01", b".")),
        ("buffers", repeated(b"", b"\x97", b".")),
        ("read-only buffers", repeated(b"\x97", b"\x98", b".")),
        ("dates that are none", of("datetime", "date", b"h\0)R")),
        (
            "exceptions without their arguments",
            of("builtins", "UnicodeDecodeError", b"h\0)R"),
        ),
    ]
}

fn the_peak_of_dense_streams_is_a_constant_times_the_input() {
    let accepting = decoders(Limits::default());
    let groups = [dense(), dense_numpy(), dense_records(), dense_inspected()];
    for ((decoder, _), group) in accepting.iter().zip(groups) {
        for (name, stream) in group {
            let refused = decoder.decode(&stream).err();
            assert!(refused.is_none(), "{name}: {refused:?}");
            let peak = within(name, &stream);
            println!("{name:<40}{:>8.1}", peak as f64 / stream.len() as f64);
        }
    }
}

/// Streams that ask for the same large thing again and again, as often as the work budget allows.
fn repeating() -> Vec<(&'static str, Vec<u8>)> {
    // Each object is kept on the stack; what is too much is an error, after the peak.
    let calls = |argument: &[u8], class: &[u8]| {
        let head = [argument, b"\x85q\0", class, b"q\x01"].concat();
        repeated(&head, b"h\x01h\0R", b".")
    };
    let long = |opcode: u8, head: &[u8]| {
        let content = [head, &b"7".repeat(TIMES)].concat();
        [
            &[opcode][..],
            &(content.len() as u32).to_le_bytes(),
            &content,
        ]
        .concat()
    };
    let ints = numbered(b"](", |n| after(b"J", n.to_le_bytes(), b""), b"e");
    let entries = |n: u32| [b"\x8c\x05", format!("{n:05}N").as_bytes()].concat();
    let state = numbered(b"}(", entries, b"uq\0ca\nb\n)\x81h\0b");
    vec![
        ("sets of one list", calls(&ints, b"cbuiltins\nset\n")),
        ("deques of one list", calls(&ints, b"ccollections\ndeque\n")),
        (
            "decimals of one text",
            calls(&long(b'X', b"1."), b"cdecimal\nDecimal\n"),
        ),
        (
            "drives of one text",
            calls(&long(b'X', b"\\\\h\\"), b"cpathlib\nPureWindowsPath\n"),
        ),
        (
            "halves of one int",
            repeated(
                &[
                    &long(0x8b, b"\0"),
                    &b"K\x02\x86q\0cfractions\nFraction\nq\x01"[..],
                ]
                .concat(),
                b"h\x01h\0R",
                b".",
            ),
        ),
        ("states on top of one", repeated(&state, b"}b", b".")),
    ]
}

fn the_peak_of_repeating_streams_follows_the_work_budget() {
    for (name, stream) in repeating() {
        let steps = 65_536 + 32 * stream.len();
        for (decoder, per_byte) in decoders(Limits::default()) {
            let (_, peak, _) = measure(&decoder, &stream);
            let allowed = PEAK_BASE + per_byte * stream.len() + 8 * steps;
            let per_step = peak as f64 / steps as f64;
            println!("{name:<40}{per_step:>8.1} a step");
            assert!(peak <= allowed, "{name}: {peak} bytes, {allowed} allowed");
        }
    }
}

/// The streams of the vectors, hostile ones included.
fn vectors() -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors/pickle/public.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut streams = Vec::new();
    for line in text.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let hex = vector["hex"].as_str().unwrap();
        let bytes = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        streams.push((vector["id"].as_str().unwrap().to_owned(), bytes));
    }
    assert!(streams.len() > 2000);
    streams
}

fn the_peak_of_every_vector_is_a_constant_times_the_input() {
    for (id, stream) in vectors() {
        within(&id, &stream);
    }
}

/// Failures are shown, not written into the source tree.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn the_peak_of_random_bytes_is_a_constant_times_the_input() {
    proptest!(config(), |(stream in vec(any::<u8>(), 0..2000))| {
        within("random", &stream);
    });
}

fn the_peak_of_crossed_vectors_is_a_constant_times_the_input() {
    let vectors: Vec<_> = vectors()
        .into_iter()
        .map(|(_, stream)| stream)
        .filter(|stream| stream.len() <= 4096)
        .collect();
    proptest!(config(), |(picks in vec((any::<Index>(), any::<Index>(), any::<Index>()), 1..5))| {
        let mut stream = Vec::new();
        for (vector, from, to) in picks {
            let vector = vector.get(&vectors);
            if !vector.is_empty() {
                let (from, to) = (from.index(vector.len()), to.index(vector.len()));
                stream.extend_from_slice(&vector[from.min(to)..=from.max(to)]);
            }
        }
        stream.push(b'.');
            within("crossed", &stream);
    });
}

fn a_value_keeps_what_its_limits_allow() {
    let dense = [dense(), dense_numpy(), dense_records(), dense_inspected()].concat();
    proptest!(config(), |(pick in any::<Index>(), nodes in 0_u64..300, owned in 0_u64..300)| {
        let (name, stream) = pick.get(&dense);
        for (decoder, _) in decoders(Limits::default().nodes(nodes).owned_bytes(owned)) {
            let (decoded, _, kept) = measure(&decoder, stream);
            if let Ok(document) = &decoded {
                prop_assert!(document.node_count() as u64 <= nodes);
            }
            // References to objects made once are no nodes: there are as many as there is input.
            let allowed = 96 * nodes + owned + 4 * stream.len() as u64 + 1024;
            prop_assert!(kept as u64 <= allowed, "{}: {} kept, {} allowed", name, kept, allowed);
        }
    });
}

#[derive(Serialize)]
struct User {
    id: usize,
    name: String,
    email: String,
    active: bool,
    score: f64,
    tags: [&'static str; 3],
    address: Address,
    points: Vec<Vec<usize>>,
}

#[derive(Serialize)]
struct Address {
    street: String,
    zip: usize,
    extra: Option<()>,
}

/// The shapes of the benchmarks' payloads, smaller where they are of many objects.
fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    let users: Vec<User> = (0..2000)
        .map(|id| User {
            id,
            name: format!("user {id}"),
            email: format!("user.{id}@example.org"),
            active: id % 2 == 0,
            score: id as f64 / 7.0,
            tags: ["red", "green", "blue"],
            address: Address {
                street: format!("{id} High Street"),
                zip: 10_000 + 37 * id,
                extra: None,
            },
            points: vec![vec![id, id + 1]; 4],
        })
        .collect();
    let strings: Vec<_> = (0..20_000).map(|n| format!("string number {n}")).collect();
    let texts: Vec<_> = (0..2000).map(|n| "naïve über ".repeat(n % 20)).collect();
    let dict = BTreeMap::from([("a", Some(true)), ("b", None)]);
    let moments = repeated(
        b"\x80\x04\x8c\x08datetime\x94\x8c\x08datetime\x94\x93\x94]\x94(",
        b"h\x02C\x0a\x07\xe8\x01\x01\0\0\0\0\0\0\x94\x85\x94R\x94",
        b"e.",
    );
    let mut deep = b"\x80\x04".to_vec();
    deep.extend(b"]\x94}\x94K\x01".repeat(5000));
    deep.push(b'N');
    deep.extend(b"sa".repeat(5000));
    deep.push(b'.');
    vec![
        ("ints", pickle(&(0..100_000).collect::<Vec<u32>>())),
        ("tree", pickle(&users)),
        ("strings", pickle(&strings)),
        ("texts", pickle(&texts)),
        ("dict", pickle(&dict)),
        ("datetimes", moments),
        ("deep", deep),
    ]
}

fn pickle(value: &impl Serialize) -> Vec<u8> {
    to_vec(value, Protocol::V4).unwrap()
}

/// Bytes that an object may take in the decoded value.
const NODE: usize = 24;

fn an_object_takes_at_most_24_bytes() {
    for (name, stream) in payloads() {
        let (decoded, _, kept) = measure(&Decoder::default(), &stream);
        let nodes = decoded.unwrap().node_count();
        println!("{name:<12}{nodes:>8}{:>8.1}", kept as f64 / nodes as f64);
        assert!(
            kept <= NODE * nodes,
            "{name}: {kept} bytes for {nodes} objects"
        );
    }
}

fn large_objects_are_not_copied() {
    const SIZE: usize = 32 << 20;
    let sized = |opcode: u8| {
        let mut stream = vec![0x80, 5, opcode];
        stream.extend((SIZE as u64).to_le_bytes());
        stream.resize(stream.len() + SIZE, b'x');
        stream.push(b'.');
        stream
    };
    for (name, opcode) in [("bytes", 0x8e), ("str", 0x8d), ("bytearray", 0x96)] {
        let stream = sized(opcode);
        let (decoded, peak, kept) = measure(&Decoder::default(), &stream);
        assert_eq!(decoded.unwrap().node_count(), 1);
        // Input and value together are at most 1.1 times the input.
        assert!(kept <= SIZE / 10, "{name}: {kept}");
        assert!(peak <= SIZE / 10, "{name}: {peak}");
    }
}

#[test]
fn memory_is_bounded() {
    the_peak_of_dense_streams_is_a_constant_times_the_input();
    the_peak_of_repeating_streams_follows_the_work_budget();
    the_peak_of_every_vector_is_a_constant_times_the_input();
    the_peak_of_crossed_vectors_is_a_constant_times_the_input();
    the_peak_of_random_bytes_is_a_constant_times_the_input();
    a_value_keeps_what_its_limits_allow();
    an_object_takes_at_most_24_bytes();
    large_objects_are_not_copied();
}
