//! Pickles made by a generator: see [`agentix_fuzz::structured`].
#![no_main]

libfuzzer_sys::fuzz_target!(|choices: &[u8]| agentix_fuzz::structured(choices));
