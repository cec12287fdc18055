//! Plain pickles, against `serde-pickle`: see [`agentix_fuzz::differential`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agentix_fuzz::differential(bytes));
