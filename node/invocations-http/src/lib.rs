//! Handlers for calls of models and invocations of functions, with their spans.
//!
//! | module | contents |
//! |---|---|
//! | [`gateway`] | calls of models, lists of models, spans of calls |
//! | [`invocations`] | invocations of functions, with whole and streamed responses |
//!
//! `assay-node-api` registers the routes.

pub mod gateway;
pub mod invocations;
