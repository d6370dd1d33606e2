//! Client side of imports: requests to the source and the target, the saved state, and the comparison at the end.
//!
//! ```text
//! source (HTTP or files) ─> importers (pure) ─> target (public API) ─> state on disk ─> next page
//!                                                                          └─ at the end: read back, compare, report
//! ```
//! One page is in memory at a time. The state on disk is replaced after the target has acknowledged the page.

mod files;
mod http;
mod parquet_rows;
mod run;
mod store;
mod target;
mod verify;

pub use http::{HttpPeer, PeerHeader, basic};
pub use run::{ImportJob, ImportOutcome, SourceAccess, run};
