//! Streamed answers of model servers.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz_dialects::stream::run(input));
