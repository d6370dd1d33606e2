//! Descriptions of the API's operations for the OpenAPI document. Handlers are in `assay-node-api`, whose test compares the
//! descriptions with the registered routes.

pub mod access;
pub mod console;
pub mod evaluations;
pub mod families;
pub mod files;
pub mod gateway;
pub mod identity;
pub mod invocations;
pub mod online_scoring;
pub mod otlp;
pub mod queries;
pub mod registering;
pub mod rows;
pub mod summaries;
