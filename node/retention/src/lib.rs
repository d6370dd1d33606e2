//! Retention: rows that are older than a rule allows are deleted, and leave the disk. `rules` reads the catalog's rules and
//! keeps which objects are being expired; `job` finds the rows and deletes them.

mod job;
mod rules;

pub use job::{Retention, RetentionConfig};
