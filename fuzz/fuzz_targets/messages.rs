//! Every typed message: see [`agentix_fuzz::messages`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agentix_fuzz::messages(bytes));
