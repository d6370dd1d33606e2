//! Parts of `/metrics` that several crates share: histograms of durations, counters by organization, and readings of
//! the process.
//!
//! Metrics are counted where they occur and rendered in the text format of Prometheus. Every label has a bounded number
//! of values. Organizations are labelled by their ids, never by their names.

mod duration_histogram;
mod organization_counters;
mod process_reading;

pub use duration_histogram::DurationHistogram;
pub use organization_counters::{ORGANIZATIONS_LABELLED_MAX, OrganizationCounters};
pub use process_reading::ProcessReading;

/// Returns the lines that precede the values of a family.
pub fn family_head(name: &str, help: &str, kind: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}
