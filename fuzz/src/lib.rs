//! What each fuzz target checks, as functions of bytes.
//!
//! The targets call these with what the fuzzer makes; `protocol/tests/fuzz_regressions.rs` includes
//! this file and calls them with what was found before, on stable. So a target and its replay
//! cannot drift apart.

mod differential;
#[allow(
    dead_code,
    reason = "made for the conformance suite, which uses more of it"
)]
#[path = "../../conformance/src/decoder/generator.rs"]
mod generator;
mod messages;
mod roundtrip;
mod structured;
mod unpickle;
mod walk;

use std::path::Path;

pub use differential::{Known, agree, differential, known};
pub use messages::messages;
pub use roundtrip::roundtrip;
pub use structured::{chosen, structured};
pub use unpickle::unpickle;

/// One fuzz target.
pub struct Target {
    /// Its name, and that of its file, corpus and regressions.
    pub name: &'static str,
    /// Panics at what must not be.
    pub check: fn(&[u8]),
    /// Where in `spec/vectors` its seeds are.
    pub vectors: &'static str,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "differential",
        check: differential,
        vectors: PICKLES,
    },
    Target {
        name: "messages",
        check: messages,
        vectors: "codec/codec.jsonl",
    },
    Target {
        name: "roundtrip",
        check: roundtrip,
        vectors: PICKLES,
    },
    Target {
        name: "structured",
        check: structured,
        vectors: PICKLES,
    },
    Target {
        name: "unpickle",
        check: unpickle,
        vectors: PICKLES,
    },
];

const PICKLES: &str = "pickle/public.jsonl";

/// Vectors that are longer, in bytes, are no seeds: they make the fuzzer slow and teach it nothing.
const LONGEST_SEED: usize = 4096;

/// The seeds of a target, by the id of their vector: the `hex` field of each line that has one.
pub fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../spec/vectors")
        .join(target.vectors);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut seeds = Vec::new();
    for line in text.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).expect("vectors are JSON");
        if let (Some(id), Some(hex)) = (vector["id"].as_str(), vector["hex"].as_str())
            && hex.len() <= 2 * LONGEST_SEED
        {
            seeds.push((id.to_owned(), unhex(hex)));
        }
    }
    seeds
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("vectors are hex"))
        .collect()
}
