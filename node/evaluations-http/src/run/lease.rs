//! Lease of an evaluation: its renewal in the catalog, and the signals that stop the run.
//!
//! The holder renews the lease every two seconds. It stops when its last renewal is older than [`HELD_FOR`], counted from
//! the begin of that renewal. Other processes take the lease only [`STALE_AFTER`] after they saw the last renewal, which
//! is later. All times are durations of one clock each, so the clocks of the nodes need not agree.

use std::sync::Arc;
use std::time::Duration;

use assay_node_evaluations::EvalTarget;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use assay_node_records::RecordsError;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{QUEUE_WAIT, patient};
use crate::jobs::{EvalJobBody, EvalJobExperiment, EvalJobProgress, EvalJobPut, EvalJobRecord, EvalJobs};
use crate::service::EvalService;

/// Interval between two looks at the record.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// Time after the begin of a renewal for which the lease is certainly held.
const HELD_FOR: Duration = Duration::from_secs(8);
/// Time without a renewal after which another process may take the lease.
pub const STALE_AFTER: Duration = Duration::from_secs(10);
/// Pause between two attempts to write the end of a run.
const FINISH_WAIT: Duration = Duration::from_millis(300);

/// Signal that ends a run from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStop {
    /// Another process has the lease, or may have it. Nothing must be written any more.
    Lost,
    /// The evaluation fails, for example because its credential has ended.
    Failed(String),
}

/// Lease that this process holds. Dropping it lets any node continue the evaluation.
#[derive(Debug)]
pub struct EvalLease {
    pub edge: Data<Edge>,
    pub service: Arc<EvalService>,
    shared: Arc<LeaseState>,
    keeper: JoinHandle<()>,
    /// Whether the record needs no release, because it has an end or belongs to another process.
    is_over: bool,
}

#[derive(Debug)]
struct LeaseState {
    jobs: EvalJobs,
    runner: Uuid,
    job: Mutex<EvalJobRecord>,
    held_until: Mutex<Instant>,
    progress: Mutex<EvalJobProgress>,
    stop: watch::Sender<Option<LeaseStop>>,
    cancelled: watch::Sender<bool>,
    caller: watch::Sender<Option<Caller>>,
    /// Held while the record is written, so that a renewal and the end do not compete.
    writing: tokio::sync::Mutex<()>,
}

impl EvalLease {
    /// Starts to renew a lease that was just taken. `cancelled` is the signal of requests on this node.
    pub fn start(
        edge: Data<Edge>,
        service: Arc<EvalService>,
        job: EvalJobRecord,
        cancelled: watch::Receiver<bool>,
    ) -> EvalLease {
        let shared = Arc::new(LeaseState {
            jobs: EvalJobs::new(edge.records.catalog()),
            runner: service.runner,
            progress: Mutex::new(job.body.progress),
            job: Mutex::new(job),
            held_until: Mutex::new(Instant::now() + HELD_FOR),
            stop: watch::channel(None).0,
            cancelled: watch::channel(false).0,
            caller: watch::channel(None).0,
            writing: tokio::sync::Mutex::default(),
        });
        let keeper = tokio::spawn(keep(edge.clone(), Arc::clone(&shared), cancelled));
        EvalLease { edge, service, shared, keeper, is_over: false }
    }

    /// Returns the record as this process last wrote it.
    pub fn job(&self) -> EvalJobRecord {
        self.shared.job.lock().clone()
    }

    /// Returns the caller with its present rights. The first call waits for them.
    pub async fn caller(&self) -> Result<Caller, Refusal> {
        let mut known = self.shared.caller.subscribe();
        let known = known.wait_for(Option::is_some).await;
        let caller = known.ok().and_then(|caller| caller.clone());
        let gone = || Refusal::new(ErrorKind::Unavailable, "the evaluation has no caller");
        caller.map(|caller| patient(&caller)).ok_or_else(gone)
    }

    /// Returns a reader of the caller, which follows changes of its rights.
    pub fn callers(&self) -> watch::Receiver<Option<Caller>> {
        self.shared.caller.subscribe()
    }

    /// Returns a signal that the evaluation was cancelled.
    pub fn cancelled(&self) -> watch::Receiver<bool> {
        self.shared.cancelled.subscribe()
    }

    /// Waits until a signal ends the run.
    pub async fn stopped(&self) -> LeaseStop {
        let mut stop = self.shared.stop.subscribe();
        let found = stop.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or(LeaseStop::Lost)
    }

    /// Returns a check whether the lease is certainly held, for use before each write.
    pub fn guard(&self) -> LeaseGuard {
        LeaseGuard { edge: self.edge.clone(), shared: Arc::clone(&self.shared) }
    }

    /// Enters the experiment that another server created. The next renewal stores it.
    pub fn note_experiment(&self, experiment: EvalJobExperiment) {
        let mut job = self.shared.job.lock();
        job.body.target = EvalTarget::experiment(experiment.id);
        job.body.experiment = Some(experiment);
    }

    pub fn note_progress(&self, progress: EvalJobProgress) {
        *self.shared.progress.lock() = progress;
    }

    /// Writes the end of the run, with attempts for as long as the lease is held.
    ///
    /// If no attempt succeeds, another process takes the lease, finds all rows written, and ends the run.
    pub async fn finish(mut self, change: impl Fn(&mut EvalJobBody)) {
        while self.shared.is_held() {
            match self.shared.write(&change).await {
                Ok(EvalJobPut::Written { .. }) => {
                    self.is_over = true;
                    return;
                }
                Ok(EvalJobPut::Stale) => {}
                Err(error) => tracing::warn!(%error, "the end of an evaluation could not be written; retrying"),
            }
            sleep(FINISH_WAIT).await;
        }
        self.is_over = true;
    }

    /// Leaves the record to the process that has the lease now.
    pub fn abandon(mut self) {
        self.is_over = true;
    }
}

impl Drop for EvalLease {
    fn drop(&mut self) {
        self.keeper.abort();
        if self.is_over || !self.shared.is_held() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        // The gateway waits for its background tasks at shutdown, so that the release is written before the end.
        self.edge.gateway.spawn(async move {
            let release = |body: &mut EvalJobBody| body.runner = None;
            if let Err(error) = shared.write(&release).await {
                tracing::warn!(%error, "the lease of an evaluation could not be released; it runs out soon");
            }
        });
    }
}

/// Check whether a lease is held.
#[derive(Clone, Debug)]
pub struct LeaseGuard {
    edge: Data<Edge>,
    shared: Arc<LeaseState>,
}

impl LeaseGuard {
    pub fn is_held(&self) -> bool {
        self.shared.is_held()
    }

    /// Reads the rights of the caller after a refusal. Never returns if its credential has ended.
    ///
    /// The signal of that end then stops the run, before the refusal becomes an error of a case.
    pub async fn confirm_rights(&self) {
        refresh_caller(&self.edge, &self.shared).await;
        let is_stopped = self.shared.stop.borrow().is_some();
        if is_stopped {
            std::future::pending::<()>().await;
        }
    }
}

impl LeaseState {
    fn is_held(&self) -> bool {
        Instant::now() < *self.held_until.lock() && !matches!(*self.stop.borrow(), Some(LeaseStop::Lost))
    }

    fn stop(&self, stop: LeaseStop) {
        self.stop.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(stop);
            }
            is_first
        });
    }

    /// Writes a change of the record, which also renews the lease.
    async fn write(&self, change: impl Fn(&mut EvalJobBody)) -> Result<EvalJobPut, RecordsError> {
        let _writing = self.writing.lock().await;
        let mut job = self.job.lock().clone();
        let began = Instant::now();
        let progress = *self.progress.lock();
        job.body.progress = progress;
        job.body.renewals += 1;
        change(&mut job.body);
        let put = self.jobs.put(&job).await;
        match put {
            Ok(EvalJobPut::Written { revision }) => {
                job.revision = Some(revision);
                *self.job.lock() = job;
                *self.held_until.lock() = began + HELD_FOR;
            }
            Ok(EvalJobPut::Stale) => self.read_again().await?,
            Err(_) => {}
        }
        put
    }

    /// Reads the record after another write, which may be a cancel or an earlier attempt of this process.
    async fn read_again(&self) -> Result<(), RecordsError> {
        let id = self.job.lock().id;
        match self.jobs.newest(id).await? {
            Some(stored) => self.note(stored),
            None => self.stop(LeaseStop::Lost),
        }
        Ok(())
    }

    /// Takes the stored record, unless it is older than the known one.
    fn note(&self, stored: EvalJobRecord) {
        let mut job = self.job.lock();
        if !stored.is_held_by(self.runner, job.body.epoch) {
            drop(job);
            return self.stop(LeaseStop::Lost);
        }
        if stored.body.is_cancelled {
            self.cancelled.send_replace(true);
        }
        if stored.revision > job.revision {
            // Others change nothing but the cancel.
            (job.revision, job.body.is_cancelled) = (stored.revision, stored.body.is_cancelled);
        }
    }
}

/// Renews a lease, reads its record, and updates the rights of its caller.
async fn keep(edge: Data<Edge>, state: Arc<LeaseState>, mut cancelled: watch::Receiver<bool>) {
    let mut renewed = Instant::now();
    refresh_caller(&edge, &state).await;
    loop {
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            Ok(_) = cancelled.wait_for(|cancelled| *cancelled), if !*state.cancelled.borrow() => {
                state.cancelled.send_replace(true);
            }
        }
        if !state.is_held() {
            return state.stop(LeaseStop::Lost);
        }
        let known = state.job.lock().clone();
        match state.jobs.get(known.id) {
            // The local copy may be older than the own write.
            Some(stored) if stored.revision >= known.revision => state.note(stored),
            _ => {}
        }
        if renewed.elapsed() < RENEW_EVERY {
            continue;
        }
        renewed = Instant::now();
        if let Err(error) = state.write(&|_: &mut EvalJobBody| {}).await {
            tracing::warn!(job = %known.id, %error, "the lease of an evaluation could not be renewed; retrying");
        }
        refresh_caller(&edge, &state).await;
    }
}

/// Reads the rights of the caller. The evaluation fails when its credential has ended.
async fn refresh_caller(edge: &Data<Edge>, state: &LeaseState) {
    let asker = state.job.lock().body.asker.clone();
    match edge.identity.principal_now(&asker).await {
        Ok(principal) => {
            let caller = Caller::of_background(edge.clone(), principal, Instant::now() + QUEUE_WAIT);
            state.caller.send_replace(Some(caller));
        }
        Err(error @ (RecordsError::Unauthenticated(_) | RecordsError::Forbidden(_) | RecordsError::NotFound(_))) => {
            let why = format!("the credential that started the evaluation has ended: {error}");
            state.stop(LeaseStop::Failed(why));
        }
        // The rights of the last look apply for a while.
        Err(error) => tracing::warn!(%error, "the rights of an evaluation could not be read; retrying"),
    }
}
