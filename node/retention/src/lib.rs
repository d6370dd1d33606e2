//! Retention, which deletes rows that are older than a rule allows and removes them from the disk.
//!
//! | module | subject |
//! |---|---|
//! | `rules` | rules in the catalog, and records of the objects with pending deletes |
//! | `job` | background job that finds and deletes old rows |

mod job;
mod rules;

pub use job::{Retention, RetentionConfig};
