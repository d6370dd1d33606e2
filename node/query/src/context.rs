//! Resources that all queries of a node share: threads for blocking work, memory, prices and admission.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use assay_cluster::Cluster;
use assay_node_btql::DEEP_THREAD_STACK;
use assay_node_engine::{Asker, Memory, Shared};
use assay_node_limits::{Budget, Holder, Reading, Refusals};
use assay_storage_model::OrgId;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use crate::admission::Admission;
use crate::running::RunningState;
use crate::{AskError, Clock, QueryLimits};

/// Name of the threads. A panic on these threads ends only its query, not the process.
const THREAD: &str = "assay-query";
/// Name of the threads in metrics and log lines.
const THREADS: &str = "queries.threads";

pub(crate) struct QueryContext {
    pub cluster: Arc<Cluster>,
    pub shared: Shared,
    pub memory: Memory,
    pub limits: QueryLimits,
    pub admission: Arc<Admission>,
    pub threads: Threads,
    /// Permits of streams from other nodes.
    pub streams: Arc<Semaphore>,
    pub clock: Clock,
    pub running: RunningState,
    /// Credential of jobs for requests to other nodes.
    pub job_asker: OnceLock<Bytes>,
}

impl std::fmt::Debug for QueryContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryContext").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl QueryContext {
    /// Returns the resources for queries of a holder, whose threads take turns with those of others.
    pub fn shared_by(&self, who: Holder) -> Shared {
        let asker = Asker { org: Some(OrgId(who.organization)), credential: who.credential.as_u128() };
        Shared { workers: self.shared.workers.of(asker), ..self.shared.clone() }
    }
}

/// Query threads, shared fairly by organization and by credential. The engine's workers bound their concurrency.
#[derive(Debug)]
pub(crate) struct Threads {
    places: Budget,
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
}

impl Threads {
    /// Starts the threads. It is called once, at the start of the program.
    ///
    /// # Panics
    ///
    /// Panics if the system has no resources for a runtime.
    pub fn start(threads: usize, refusals: &Refusals) -> Threads {
        let mut builder = Builder::new_current_thread();
        builder.thread_name(THREAD).thread_stack_size(DEEP_THREAD_STACK).max_blocking_threads(threads);
        let runtime = builder.build();
        let runtime = runtime.expect("the system gives a runtime");
        let places = Budget::new(THREADS, threads as u64, refusals);
        Threads { places, handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) }
    }

    /// Returns the name and the state of the thread budget.
    pub fn reading(&self) -> (&'static str, Reading) {
        (self.places.name(), self.places.reading())
    }

    /// Runs work on a thread. If the future is dropped, the work still completes and releases its thread.
    pub async fn run<T: Send + 'static>(
        &self,
        who: Holder,
        until: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let place = self.places.acquire(who, 1, until.into()).await;
        let place = place.map_err(|_| AskError::TooLate("the query had no thread within its time".into()))?;
        let work = move || {
            let _place = place;
            work()
        };
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
        self.close(); // a runtime must not be dropped inside of another one
    }
}
