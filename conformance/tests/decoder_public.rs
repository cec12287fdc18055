//! Every pickle vector of the project against the decoder, without exception: what must be accepted gives the exact value,
//! what must be rejected gives an error, and the rest ends within the limits. Where a value of that rest is known, a decoder
//! may give another one; this one does not.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use agentix_conformance::decoder::{Expect, compare, read_vectors};
use agentix_protocol::safepickle;

#[test]
fn every_vector_is_decoded_as_it_must_be() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../spec/vectors/pickle/public.jsonl"
    );
    let vectors = read_vectors(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut failures = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for vector in &vectors {
        *counts.entry(vector.expect.name()).or_default() += 1;
        let id = &vector.id;
        match (vector.expect, safepickle::decode(&vector.stream)) {
            (Expect::Accept | Expect::Any, Ok(document)) => {
                // Only vectors of `any` may be without one.
                let table = vector.value.as_ref();
                let compared = table.map(|table| compare(table, document.root()));
                if let Some(Err(difference)) = compared {
                    failures.push(format!("{id}: {difference}"));
                }
            }
            (Expect::Accept, Err(error)) => failures.push(format!("{id}: {error}")),
            (Expect::Reject, Ok(document)) => failures.push(format!("{id}: gave {document:?}")),
            (Expect::Reject | Expect::Any, Err(_)) => {}
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} vectors failed:\n{}",
        failures.len(),
        vectors.len(),
        failures.join("\n")
    );
    // The file is whole.
    let all = [("accept", 1114), ("any", 360), ("reject", 1237)];
    assert_eq!(counts, all.into());
}
