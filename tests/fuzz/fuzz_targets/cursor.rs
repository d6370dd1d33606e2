//! Requests for pages.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz::cursor::run(input));
