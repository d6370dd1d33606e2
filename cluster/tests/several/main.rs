//! Tests with several nodes in one process: damage, temporary failures, and recovery with one of them.

#[path = "../addresses/mod.rs"]
mod addresses;
mod damaged;
mod half_connected;
#[path = "../keys/mod.rs"]
mod keys;
mod leads;
mod nodes;
mod old_copy;
mod recovered;
mod retried;
