//! What all queries of a node share: threads that may wait for the disk, memory, prices, who may run.

use std::sync::{Arc, OnceLock};

use assay_cluster::Cluster;
use assay_node_engine::{Memory, Shared};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::admission::Admission;
use crate::{AskError, Clock, QueryLimits};

/// Not named like threads whose panic ends the process: a panic in a query ends the query.
const THREAD: &str = "assay-query";

pub(crate) struct Office {
    pub cluster: Arc<Cluster>,
    pub shared: Shared,
    pub memory: Memory,
    pub limits: QueryLimits,
    pub admission: Arc<Admission>,
    pub threads: Threads,
    pub clock: Clock,
    /// On whose behalf queries that run on after their request ask other nodes.
    pub later_asker: OnceLock<Bytes>,
}

impl std::fmt::Debug for Office {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Office").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Threads on which queries run; what they do at once is for the engine's workers to say.
#[derive(Debug)]
pub(crate) struct Threads {
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
}

impl Threads {
    /// Panics where the system gives no runtime: it is called once, at the start of the program.
    pub fn start(threads: usize) -> Threads {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.thread_name(THREAD).max_blocking_threads(threads).build();
        let runtime = runtime.expect("the system gives a runtime");
        Threads { handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) }
    }

    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, AskError> {
        self.handle.spawn_blocking(work).await.map_err(|error| match error.is_panic() {
            true => AskError::Internal("the query ended in a panic; the log of this node has it".into()),
            false => AskError::Unavailable("this node shuts down".into()),
        })
    }

    pub fn close(&self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.close(); // a runtime may not be dropped where one runs
    }
}
