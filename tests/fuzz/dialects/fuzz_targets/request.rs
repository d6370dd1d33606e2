//! Bodies of requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz_dialects::request::run(input));
