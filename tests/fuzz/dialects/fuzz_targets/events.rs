//! Bytes of streams, split into events.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| assay_fuzz_dialects::events::run(input));
