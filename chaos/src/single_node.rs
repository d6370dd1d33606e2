//! Chaos tests of one node's store: a worker process that writes, faults that break it, and checks of the surviving
//! state.

pub mod bit_flip;
pub mod crash;
pub mod disk_full;
pub mod document_model;
pub mod documents;
pub mod dump;
pub mod harness;
pub mod power_cut;
pub mod store;
pub mod store_checks;
pub mod sync_fails;
pub mod worker;
pub mod worker_history;
