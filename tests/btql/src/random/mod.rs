//! Random queries and rows, the same for the same seed: engine and interpreter are compared on them, beyond handwritten
//! cases. A query may be refused when it is bound, and both must agree on that as well.

mod dice;
mod grammar;
mod queries;
mod rows;

pub use dice::Dice;
pub use queries::query;
pub use rows::{data, rows};

/// The object that the queries ask about.
pub const SOURCE: &str = "R";

/// Number of seeds; can be increased.
const SEEDS: u64 = 2_000;
const SEEDS_ASKED: &str = "ASSAY_TEST_SEEDS";

pub fn seeds() -> u64 {
    std::env::var(SEEDS_ASKED).map_or(SEEDS, |said| said.parse().expect("a number"))
}
