//! Tests of admission and settlement, and the catalog that they share.

mod admission;
mod memory;
mod overshoot;
mod replicated;
mod unavailable;
