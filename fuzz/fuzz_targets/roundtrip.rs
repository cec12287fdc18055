//! Pickles that decode, encoded again: see [`agentix_fuzz::roundtrip`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agentix_fuzz::roundtrip(bytes));
