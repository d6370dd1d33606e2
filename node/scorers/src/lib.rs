//! Global functions: the scorers that every organization has. Computes those without a model as the autoevals packages
//! do; for the others makes the requests to a model, and the score from its responses. Checks results of scorers.
//!
//! Pure: calls no model, so that callers decide on secrets, caching and retries.

mod arguments;
mod edit_distance;
mod embeddings;
mod error;
mod global_functions;
#[cfg(test)]
mod golden_cases;
mod judges;
mod model_call;
mod moderation;
mod native;
mod rag;
pub mod results;
mod score;
mod scorer_run;
#[cfg(test)]
mod scorer_run_tests;
mod texts;

pub use arguments::{ScorerArguments, VALUE_DEPTH_MAX};
pub use edit_distance::EDIT_PAIRS_MAX;
pub use embeddings::EMBEDDING_NUMBERS_MAX;
pub use error::ScorerError;
pub use global_functions::{
    GLOBAL_FUNCTIONS, GlobalFunction, GlobalFunctionKind, GlobalFunctionParameter, GlobalFunctionType, ParameterForm,
    UnknownGlobalFunction, global_function,
};
pub use judges::{JUDGES, Judge, judge, judge_prompt};
pub use model_call::{DefaultModels, ModelCall, ModelOperation};
pub use native::{
    DIFF_DEPTH_MAX, LIST_ITEMS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PATTERN_STEPS_MAX, SCHEMA_STEPS_MAX, native_score,
    schema_complaint,
};
pub use rag::STRICTNESS_MAX;
pub use score::Score;
pub use scorer_run::{RUN_STEPS_MAX, ScorerRun, ScorerStep, start_scorer};
pub use texts::AutoevalsPackage;
