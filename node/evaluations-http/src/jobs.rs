//! Records of evaluations in the catalog, and their conditional writes.

mod record;
mod store;

pub use record::{EvalJobBody, EvalJobExperiment, EvalJobProgress, EvalJobRecord, EvalJobRequest, EvalJobState};
pub use store::{EvalJobPut, EvalJobs};
