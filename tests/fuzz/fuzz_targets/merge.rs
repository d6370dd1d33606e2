//! Histories of writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz::merge::run(input));
