//! Comparison of experiments, which pairs rows by comparison key and summarizes their differences.
//!
//! This crate performs no I/O.
//!
//! | module | subject |
//! |---|---|
//! | `row` | rows of experiments, as a query returns them |
//! | `statistics` | means, deviations, percentiles and confidence intervals |
//! | `pairing` | pairs of rows with the same key, their order and their selection |
//! | `tally` | means of scores and metrics of one experiment, and their changes against another one |
//! | `summary` | summaries of whole experiments, of pairs and of groups |

mod pairing;
mod row;
mod statistics;
mod summary;
mod tally;

pub use pairing::{Kind, Order, Pair, Pairing, Selection};
pub use row::{ComparedRow, METRIC_PREFIX, Measured};
pub use statistics::{Interval, Sample};
pub use summary::{ComparisonSummary, ExperimentSummary, GroupSummary, PairedChange, groups, summary_of};
pub use tally::{KeyHasher, METRIC, SCORE, Tally, TooManyNumbers};
