//! The control group's state machine: records by kind, their unique keys, and the map of groups and replicas.
//!
//! All records are in memory, behind one lock that readers share; a node asks here what exists and who may see it,
//! many times a request, and never waits for a disk. What `apply` changes is marked, and `seal` writes what is marked
//! together with the applied position and the membership in one commit of the store below. Between two seals the log
//! alone has the changes; a start loads the last seal and applies the log since.
//!
//! On disk:
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
//! A value above 4 KiB lies in numbered chunks; the first says how many there are and the hash of the whole. An
//! install fills the next generation, switches CURRENT to it and only then takes the old one away, so a crash leaves
//! the old state or the new one, whole.
//!
//! Knows no clock, no dice, no network: the same entries give the same state on every replica.

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
