//! Queries over HTTP: at once, as a job, and as a download; and what their texts mean.
//!
//! | module | subject |
//! |---|---|
//! | `body` | bodies of queries |
//! | `sources` | objects that a query names, and whether the caller may read them |
//! | `answers` | `/btql`, and queries of the server on a caller's behalf |
//! | `jobs` | `/btql/async` |
//! | `downloads` | `/console/download`: the result of a query as a file, by a link |
//! | `parsing` | `/console/parse`: from a text to a tree and back |

mod answers;
mod body;
mod sources;

pub mod downloads;
pub mod jobs;
pub mod parsing;

pub use answers::{QueryOptions, btql, rows_of};
