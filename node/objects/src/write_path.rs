//! Write path, from a client's rows to the outcome of the shard:
//!
//! ```text
//! parents, prepare ──> deliver ──> registry (reservation_queue, reservations) ──> actor (write_queue) ──> committer
//!                        └── other nodes: deliver::service                          outcomes <──────────────┘
//! ```
//! Writes with controls of online scoring (`scoring`) are conditional, and may take several attempts (`controlled`).

pub(crate) mod actor;
pub(crate) mod actor_threads;
pub(crate) mod controlled;
pub(crate) mod deliver;
pub(crate) mod meters;
pub(crate) mod outcomes;
pub(crate) mod parents;
pub(crate) mod prepare;
pub(crate) mod registry;
pub(crate) mod reservation_queue;
pub(crate) mod reservations;
pub(crate) mod scoring;
pub(crate) mod work;
pub(crate) mod write_queue;
