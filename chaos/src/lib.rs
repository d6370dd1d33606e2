//! The storm: crashes, power cuts, flipped bits, full disks and failing syncs, and the checkers that say what survived.
//!
//! A worker process writes through the shards from a seeded workload and says each thing before it does it and after
//! (`history`). The parent breaks it (`crash`, `power_cut`, `bit_flip`, `disk_full`, `sync_fails`; `http_crash` does it to the whole program), opens the directory
//! in a fresh process that prints everything it can read (`dump`), and holds the one against the other (`check`): each
//! checker in its own file, itself tested with bad histories made by hand. Nothing here is part of the product, and
//! nothing in the product knows of it. `store` is the only file that names the cluster's API.
//!
//! `cluster` does the same to a whole cluster of real processes, with clients that speak HTTP; `sim` to a whole cluster
//! within one thread, where a seed says everything.

pub mod bit_flip;
pub mod check;
pub mod child;
pub mod cluster;
pub mod copies;
pub mod crash;
pub mod disk_full;
pub mod dump;
pub mod history;
pub mod http_client;
pub mod http_crash;
pub mod loop_image;
pub mod model;
pub mod power_cut;
pub mod probe;
pub mod report;
pub mod rows;
pub mod sabotage;
pub mod scene;
pub mod sim;
pub mod store;
pub mod sync_fails;
pub mod worker;
