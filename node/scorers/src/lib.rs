//! Global functions: the scorers that every organization has. Computes those without a model as the autoevals packages
//! do; for the others makes the requests to a model, and the score from its responses. Checks results of scorers.
//!
//! Pure: calls no model, so that callers decide on secrets, caching and retries.

pub mod arguments;
mod edit_distance;
mod error;
#[cfg(test)]
mod golden_cases;
mod native;
mod score;
mod texts;

pub use arguments::ScorerArguments;
pub use edit_distance::EDIT_PAIRS_MAX;
pub use error::ScorerError;
pub use native::{
    DIFF_DEPTH_MAX, LIST_ITEMS_MAX, SCHEMA_PATTERN_STEPS_MAX, SCHEMA_REFERENCES_MAX, SCHEMA_STEPS_MAX, native_score,
};
pub use score::Score;
pub use texts::AutoevalsPackage;
