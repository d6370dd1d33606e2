//! Handlers of Langfuse's public API under `/api/public`, for its unmodified SDKs.
//!
//! | module | subject |
//! |---|---|
//! | `wire` | the entrance: setting, credential, operation, and the form of errors |
//! | `rows` | reads and writes of rows with the rights of the caller |
//! | `ingestion` | exports of OpenTelemetry, and the ingestion endpoint |
//! | `scores` | scores, and their values on traces and observations |
//! | `traces` | traces, observations and sessions |
//! | `prompts` | prompts with versions and labels |
//! | `datasets`, `runs` | datasets, their items, and runs as experiments |
//!
//! `assay-node-langfuse` has the mapping, without I/O.

mod datasets;
mod ingestion;
mod prompts;
mod rows;
mod runs;
mod scores;
mod traces;
mod wire;

pub use wire::{LANGFUSE_PATH, serve};
