//! Queries in each of their forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz::query::run(input));
