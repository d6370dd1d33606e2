//! Routes of the AI gateway: model calls in the wire format of each model API, and lists of models.
//!
//! | module | contents |
//! |---|---|
//! | [`calls`] | handler of all paths |
//! | [`guards`] | guardrails of the project of a call |
//! | [`models_list`] | models that a caller can use |
//! | [`providers`] | providers of a caller and their keys |
//! | [`span_log`], [`span_batches`], [`span_attachments`] | spans of calls, their batched writes, and their media |

pub mod calls;
pub(crate) mod guards;
mod models_list;
pub(crate) mod providers;
mod span_attachments;
mod span_batches;
pub(crate) mod span_log;
