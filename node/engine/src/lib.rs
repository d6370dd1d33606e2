//! Execution of bound queries (`assay_node_btql::bound`) over the rows of shards. The crate depends on no network and
//! no HTTP. The query crate distributes queries over nodes.
//!
//! ```text
//! leaf      on every node with objects of the query
//!   traces    selected traces and their positions                              shapes traces, summary
//!   newest    the same for a page of the newest traces, which reads only their spans
//!   spans     units ─ filter ─┬─ groups: codes ─ states of aggregates         (groups, expressions::aggregates)
//!                             ├─ the best rows by their sort keys ─ read      (rows::rank)
//!                             └─ one by one: unpivot ─ filter ─ either        (rows::output, rows::row_expressions)
//!   audit     writes to single rows ─ one by one                              (D-90)
//!   summaries spans of each trace, rolled up ─ one by one                     (summary)
//! results   result rows in columns, with their ranks
//! partial   a node's part of a result, and its encoding
//! finish    on the node that took the request: merges parts, finishes groups, cuts rows to a page, runs outer queries
//! ```
//!
//! Folders import downwards: `finish` and `leaf`, then `traces`, `rows`, `summary` and `groups`, then `results` and
//! `scan`, then `scheduling`. Threads share the units of rows, and organizations take turns on them (`scheduling`).
//! Each unit is read column by column in its own types (`scan::inputs`). Results of two units meet as values, so that
//! units need not agree on types.

mod error;
mod finish;
mod groups;
mod leaf;
mod partial;
pub mod price;
mod results;
mod rows;
mod scan;
mod scheduling;
mod summary;
mod traces;

pub use error::EngineError;
pub use finish::{Limit, RowMerge, finish, innermost};
pub use groups::QUERY_GROUPS_MAX;
pub use leaf::{Ask, LeafRows, lowest, run};
pub use partial::{Partial, PartialFormat};
pub use results::{CellType, Cells, ResultColumn, Table};
pub use rows::rank::Position;
pub use scan::sampling::{Hash, last_of};
pub use scan::source::{Shared, Source};
pub use scheduling::fair_queue::Asker;
pub use scheduling::watch::{Memory, MemoryHold, Watch};
pub use scheduling::workers::Workers;
