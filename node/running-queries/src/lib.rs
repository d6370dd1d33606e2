//! Queries that run on a node: their registry, cancels, counts, and which of them are slow.
//!
//! ```text
//! RunningQueries::begin -> QueryTicket ─ dropped: the query has ended
//!        │                     ├─ progress: rows scanned, memory
//!        └─ answer (list,      └─ cancelled
//!           cancel)
//! ```
//! The registry knows no cluster and runs nothing. Its caller asks the registries of other nodes.

mod progress;
mod query_counts;
mod registry;
mod slow_queries;

pub use progress::{QueryPhase, QueryProgress, QueryUsage};
pub use query_counts::{QueryEnding, QueryMeters};
pub use registry::{
    QueryDescription, QueryKind, QueryOwner, QueryTicket, RUNNING_ANSWERED_MAX, RUNNING_LISTED_MAX, RunningQueries,
    RunningQuery, RunningQuestion,
};
pub use slow_queries::SlowThreshold;
