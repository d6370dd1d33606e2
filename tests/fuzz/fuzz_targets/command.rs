//! Stored bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz::command::run(input));
