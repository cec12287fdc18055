//! Hostile pickles: see [`agentix_fuzz::unpickle`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agentix_fuzz::unpickle(bytes));
