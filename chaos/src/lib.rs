//! Chaos tests: crashes, power cuts, flipped bits, full disks and failing syncs, and checkers of the surviving state.
//!
//! In `single_node` a worker process writes through the shards from a seeded workload and reports each step before and
//! after it (`worker_history`). The parent breaks it (`crash`, `power_cut`, `bit_flip`, `disk_full`, `sync_fails`),
//! opens the directory in a new process that prints everything it can read (`dump`), and compares the two
//! (`store_checks`). Each checker has its own file and is tested with bad histories made by hand. `http_crash` does the
//! same to the whole program. Nothing here is part of the product, and the product does not depend on it.
//! `single_node::store` is the only file that names the cluster's API.
//!
//! `cluster` breaks a whole cluster of real processes, with HTTP clients. `sim` breaks a whole cluster within one
//! thread, with one seed that determines everything.

pub mod capabilities;
pub mod child_process;
pub mod cluster;
pub mod directory_copies;
pub mod http_client;
pub mod http_crash;
pub mod loop_image;
pub mod report;
pub mod sabotage;
pub mod sim;
pub mod single_node;
