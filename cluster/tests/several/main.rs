//! Several nodes in one process: what is damaged, what fails for a while, and going on with one of them.

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
