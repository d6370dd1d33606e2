//! Benchmarks of the whole server from the client's side: inserts, fetches and restarts over HTTP, compared with the
//! bare pipeline.
//!
//! ```text
//! this process: the client            a process of its own: the server
//! lanes, one keep-alive connection    `assay serve`, or `assay-bench bare`, the least that any durable server does
//! each, one request at a time   ───►
//! ```
//! Both servers get the same bytes in the same order. A lane's rows are its own, so that a merge is sent after its
//! start was acknowledged, however many lanes write to one project.

pub mod bare_server;
pub mod catalog;
pub mod client;
pub mod exports;
pub mod fetch;
pub mod files;
pub(crate) mod grpc;
mod http_message;
pub mod ingest;
pub mod overload;
pub mod request_driver;
pub mod restart;
pub mod row_loader;
pub mod server_process;

use std::path::PathBuf;

use anyhow::Context;
use tokio::runtime::Runtime;

/// Threads of the client, identified by name in the CPU measurement.
const CLIENT_THREADS: usize = 2;

/// Returns the named program, or the program `assay` beside this one.
pub fn program(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let program = match named {
        Some(named) => named,
        None => std::env::current_exe().context("finding this program's own file")?.with_file_name("assay"),
    };
    let found = program.canonicalize();
    found.with_context(|| format!("{} is no program: build `assay` or name one with --program", program.display()))
}

pub fn client_runtime() -> anyhow::Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(CLIENT_THREADS).thread_name("bench-client").enable_all();
    runtime.build().context("starting the client's threads")
}

/// The generator's object of a lane: the lanes' objects are logs of projects, which every fourth object is not.
pub fn object_of_lane(lane: usize) -> u64 {
    (lane + lane / 3) as u64
}

#[cfg(test)]
mod tests {
    use assay_bench::generate::{Profile, Workload};
    use assay_storage_model::ObjectKind;

    #[test]
    fn lanes_write_logs_of_projects_each_its_own() {
        let workload = Workload::new(1, Profile::Even, 0.0);
        let objects: Vec<u64> = (0..32).map(super::object_of_lane).collect();
        assert!(objects.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(objects.iter().all(|n| workload.object(*n).kind == ObjectKind::ProjectLogs));
    }
}
