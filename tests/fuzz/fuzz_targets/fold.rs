//! Documents, patches and rules.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz::fold::run(input));
