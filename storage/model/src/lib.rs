//! Types that are stored or sent: typed ids, transaction ids, rows, commands and their frozen encodings. Uses no files,
//! clock or network. The only crate that names bincode.

pub mod catalog;
pub mod command;
pub mod entry;
pub mod event;
pub mod ids;
pub mod merge;
pub mod position;
pub mod sabotage;
pub mod segment;
pub mod tokens;
pub mod write_outcome;
pub mod xact;

pub use ids::{
    ClusterId, GroupId, NodeId, ObjectKey, ObjectKind, OrgId, ProjectId, RecordId, ReplicaId, ShardId, UserId,
};
pub use position::{Applied, LogPosition};
pub use write_outcome::{NotWritten, WriteFailure, WriteOutcome};
pub use xact::{PaginationKey, Xact};
