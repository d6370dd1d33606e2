//! Routes of the AI gateway: calls of models in the wire format of any model API, and lists of models.
//!
//! | module | contents |
//! |---|---|
//! | [`paths`] | which endpoint a path is for, below any prefix |
//! | [`calls`] | the handler of all those paths |
//! | [`guards`] | guardrails of the project of a call |
//! | [`models_list`] | models that a caller can use |
//! | [`providers`] | providers of a caller and their keys |
//! | [`span_log`] | spans of calls |
//! | [`openapi`] | description for the OpenAPI document |

pub mod calls;
pub mod guards;
mod models_list;
pub mod openapi;
pub mod paths;
pub mod providers;
pub mod span_log;
