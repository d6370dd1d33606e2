//! Comparison of experiments: pairs rows by their comparison key, and says what became better or worse. Pure.
//!
//! | module | subject |
//! |---|---|
//! | `row` | rows of experiments, as a query returns them |
//! | `statistics` | means, deviations, percentiles and intervals |
//! | `pairing` | rows of the same key side by side, their order, and which of them are shown |
//! | `summary` | what experiments have as wholes, by pairs and by groups |

mod pairing;
mod row;
mod statistics;
mod summary;

pub use pairing::{Kind, Order, Pair, Pairing, Selection};
pub use row::{ComparedRow, METRIC_PREFIX, Measured};
pub use statistics::{Interval, Sample};
pub use summary::{ComparisonSummary, ExperimentSummary, GroupSummary, PairedChange, groups, summary_of};
