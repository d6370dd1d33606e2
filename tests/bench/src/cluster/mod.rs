//! Benchmarks of a cluster of three nodes on this machine: the whole product, with real processes that are stopped,
//! killed and replaced while clients continue.
//!
//! ```text
//! this process                       processes of their own, on loopback, each on a directory below --dir
//! clients, over all nodes   ───►     assay serve, three of them      (in `peers` also three of etcd, three of NATS)
//! operator: assay cluster   ───►     drain, replace, status --wait
//! ```
//! The nodes share this machine's processors and its disk with each other and with the client. So the results are the
//! resources of a node, the durations of outages, and ratios within one run.

pub mod command;
mod failover;
mod founding;
mod idle;
pub mod ingest;
mod nodes;
pub mod peers;
mod readback;
mod readers;
mod replace;
mod roamer;
mod rolling;
mod stream;
mod writers;
