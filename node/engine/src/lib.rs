//! Answers bound queries (`assay_node_btql::bound`) from the rows of shards. Knows columns and values, and neither network
//! nor HTTP: what is asked of other nodes is somebody else's.
//!
//! ```text
//! leaf      on every node that has objects of the query
//!   traces    which traces are selected, and their places                     shapes traces, summary
//!   newest    the same of a page of the newest, of whose spans alone it is read
//!   spans     units ─ select ─┬─ groups: codes ─ states                       (groups, codes, aggregate)
//!                             ├─ the best rows by what orders them ─ read     (rank)
//!                             └─ one by one: unpivot ─ filter ─ either        (output, slots)
//!   audit     what was written to single rows ─ one by one                    (D-90)
//!   summaries spans of each trace, rolled up ─ one by one                     (summary)
//! partial   what a node has of an answer, as it travels
//! finish    on the node that was asked: parts together, groups seen, rows cut to a page; a query over another
//! ```
//!
//! Units of rows are shared out among threads (`workers`), of which organizations take turns (`fair`), each read column by column in the types that it has itself
//! (`inputs`). What is met of two units is met as values, so that no type need be agreed between them.

pub mod aggregate;
mod audit;
mod codes;
mod distinct;
mod error;
mod fair;
mod finish;
mod groups;
mod infer;
mod inputs;
mod leaf;
mod members;
mod newest;
mod notes;
mod output;
mod partial;
mod preview;
pub mod price;
mod rank;
mod sample;
mod sampling;
mod select;
mod slots;
mod source;
mod spans;
mod summaries;
mod summary;
mod traces;
mod unpivoted;
mod watch;
mod wire;
mod workers;

pub use error::EngineError;
pub use fair::Asker;
pub use finish::{Limit, Table, finish, innermost};
pub use groups::GROUPS_MAX;
pub use leaf::{Ask, lowest, run};
pub use partial::Partial;
pub use rank::{Position, value_bytes};
pub use sampling::{Hash, last_of};
pub use source::{Shared, Source};
pub use watch::{Held, Memory, Watch};
pub use workers::Workers;
