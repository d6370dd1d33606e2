//! HTTP handlers for queries: direct queries, query jobs, downloads, and the parsing of query texts.
//!
//! | module | subject |
//! |---|---|
//! | `body` | request bodies of queries |
//! | `sources` | objects that a query names, and the caller's permission to read them |
//! | `answers` | `/btql`, and queries that the server runs on a caller's behalf |
//! | `jobs` | `/btql/async`: queries as jobs |
//! | `downloads` | `/console/download`: the result of a query as a file |
//! | `masks` | masks of blind projects |
//! | `running` | `/v1/query`: running queries and their cancel |
//! | `parsing` | `/console/parse`: conversion between texts and trees |

mod answers;
mod body;
mod sources;

pub mod downloads;
pub mod jobs;
pub mod masks;
pub mod parsing;
pub mod running;

pub use answers::{QueryOptions, RowsPage, btql, rows_of, rows_page, whole_page};
