//! State machine of the control group: records by kind, their unique keys, and the map of groups and replicas.
//!
//! All records are in memory, behind one lock that readers share. A node checks existence and permissions here many
//! times per request and never waits for a disk. `apply` marks its changes. `seal` writes the marked values in one
//! commit of the store, together with the applied position and the membership. Between two seals, only the log has the
//! changes. A start loads the last seal and applies the log after it.
//!
//! Layout on disk:
//!
//! ```text
//! CURRENT           names the generation in use, with a checksum; replaced whole
//! g0001/kv/         one key-value store:
//!   h                 the header: applied position, counters, how many values there are and the sum of their hashes
//!   m                 the membership as consensus encoded it
//!   s                 the shard map
//!   t <page>          where deleted records stood in their lists, sixty-four a page
//!   r <kind> <id>     a record
//! ```
//! A value above 4 KiB is split into numbered chunks; the first one holds their number and the hash of the whole value.
//! An install fills the next generation, switches CURRENT to it, and only then removes the old one. So a crash leaves
//! the old state or the new one as a whole.
//!
//! The crate uses no clock, randomness or network. The same entries give the same state on every replica.

mod apply;
mod catalog;
mod deleted;
mod error;
mod export;
mod hash;
mod home;
mod list;
mod rules;
mod state;
mod stored;

pub use catalog::{Catalog, CatalogConfig};
pub use deleted::DELETED_KEPT_MAX;
pub use error::CatalogError;
pub use export::{EXPORT_BYTES_MAX, Export};
pub use list::{Cursor, ListQuery, UnknownCursor};
pub use rules::check;
pub use state::State;
