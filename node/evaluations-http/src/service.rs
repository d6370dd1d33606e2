//! Evaluations of one node: those that run here, those that wait to be started, and their counts.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_node_evaluations::EvalTaskProgress;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use uuid::Uuid;

use crate::jobs::{EvalJobRecord, EvalJobState};
use crate::launch::EvalWork;

/// Upper bound of the evaluations that run on one node.
pub const EVALS_PER_NODE_MAX: usize = 16;
/// Upper bound of the running evaluations of one organization on all nodes.
pub const EVALS_PER_ORGANIZATION_MAX: usize = 32;
/// Upper bound of the calls of tasks and scorers that one node runs at the same time.
pub const EVAL_CALLS_PER_NODE_MAX: usize = 512;
/// Upper bound of the data of all evaluations on one node, in bytes.
pub const EVAL_DATA_PER_NODE_BYTES_MAX: usize = 512 << 20;

/// Evaluation whose lease this process holds, before it runs.
#[derive(Debug)]
pub struct HeldEval {
    pub job: EvalJobRecord,
    /// Work with its data and functions, which a takeover still has to read.
    pub work: Option<EvalWork>,
    pub slot: EvalSlot,
    /// Receiver of the outputs of tasks, if a client reads a stream.
    pub outputs: Option<mpsc::Sender<EvalTaskProgress>>,
}

/// Evaluations of one node.
#[derive(Debug)]
pub struct EvalService {
    /// Identity of this process in leases.
    pub runner: Uuid,
    running: Mutex<HashMap<Uuid, watch::Sender<bool>>>,
    waiting: Mutex<Vec<HeldEval>>,
    /// Wakes the background work for a new evaluation.
    pub woken: Notify,
    pub calls: Arc<Semaphore>,
    /// Number of evaluations that have left this node, for clients that wait for one.
    pub left: watch::Sender<u64>,
    data_bytes: AtomicU64,
    pub counts: EvalCounts,
}

/// Counts of a node since its start.
#[derive(Debug, Default)]
pub struct EvalCounts {
    pub started: AtomicU64,
    pub takeovers: AtomicU64,
    pub lost_leases: AtomicU64,
    pub cases: AtomicU64,
    pub case_errors: AtomicU64,
    pub scorer_errors: AtomicU64,
    pub task_calls: AtomicU64,
    pub scorer_calls: AtomicU64,
    pub repeated_calls: AtomicU64,
    pub repeated_writes: AtomicU64,
    ended: [AtomicU64; ENDS.len()],
}

const ENDS: [EvalJobState; 4] =
    [EvalJobState::Completed, EvalJobState::TimedOut, EvalJobState::Cancelled, EvalJobState::Failed];

/// Place of an evaluation on this node. Dropping it frees the place.
#[derive(Debug)]
pub struct EvalSlot {
    service: Arc<EvalService>,
    job: Uuid,
    bytes: u64,
    /// Signal that the evaluation shall be cancelled.
    pub cancelled: watch::Receiver<bool>,
}

/// Limit that prevents an evaluation from running on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullNode {
    Evals,
    Data,
}

impl Default for EvalService {
    fn default() -> EvalService {
        EvalService {
            runner: Uuid::new_v4(),
            running: Mutex::default(),
            waiting: Mutex::default(),
            woken: Notify::new(),
            calls: Arc::new(Semaphore::new(EVAL_CALLS_PER_NODE_MAX)),
            left: watch::channel(0).0,
            data_bytes: AtomicU64::new(0),
            counts: EvalCounts::default(),
        }
    }
}

impl EvalService {
    /// Takes a place for an evaluation.
    pub fn enter(self: &Arc<EvalService>, job: Uuid) -> Result<EvalSlot, FullNode> {
        let mut running = self.running.lock();
        if running.len() >= EVALS_PER_NODE_MAX {
            return Err(FullNode::Evals);
        }
        let (sender, cancelled) = watch::channel(false);
        running.insert(job, sender);
        drop(running);
        Ok(EvalSlot { service: Arc::clone(self), job, bytes: 0, cancelled })
    }

    /// Returns whether an evaluation has a place on this node.
    pub fn has(&self, job: Uuid) -> bool {
        self.running.lock().contains_key(&job)
    }

    pub fn running(&self) -> usize {
        self.running.lock().len()
    }

    /// Cancels an evaluation that runs on this node.
    pub fn cancel(&self, job: Uuid) {
        if let Some(sender) = self.running.lock().get(&job) {
            sender.send_replace(true);
        }
    }

    /// Hands an evaluation over to the background work.
    pub fn submit(&self, held: HeldEval) {
        self.waiting.lock().push(held);
        self.woken.notify_one();
    }

    /// Takes the evaluations that wait to be started.
    pub fn take_waiting(&self) -> Vec<HeldEval> {
        std::mem::take(&mut self.waiting.lock())
    }

    pub fn note_end(&self, state: EvalJobState) {
        if let Some(place) = ENDS.iter().position(|known| *known == state) {
            add(&self.counts.ended[place], 1);
        }
    }

    /// Returns the metrics of the node in Prometheus text format.
    pub fn metrics_text(&self) -> String {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        let mut text = String::new();
        let gauges = [
            ("running", "Evaluations that run on this node.", self.running() as u64),
            ("data_bytes", "Memory of the data of the evaluations on this node.", read(&self.data_bytes)),
        ];
        for (name, help, value) in gauges {
            let _ = write!(
                text,
                "# HELP assay_eval_{name} {help}\n# TYPE assay_eval_{name} gauge\nassay_eval_{name} {value}\n"
            );
        }
        let counters = [
            ("started_total", "Evaluations that were started on this node.", &counts.started),
            ("takeovers_total", "Evaluations that this node continued after another process.", &counts.takeovers),
            (
                "lost_leases_total",
                "Evaluations that this node stopped because it lost their lease.",
                &counts.lost_leases,
            ),
            ("cases_total", "Cases of evaluations that ended on this node.", &counts.cases),
            ("case_errors_total", "Cases that ended with an error.", &counts.case_errors),
            ("scorer_errors_total", "Scorers and classifiers that failed.", &counts.scorer_errors),
            ("task_calls_total", "Calls of tasks.", &counts.task_calls),
            ("scorer_calls_total", "Calls of scorers.", &counts.scorer_calls),
            ("repeated_calls_total", "Calls that were repeated after an error that may pass.", &counts.repeated_calls),
            ("repeated_writes_total", "Writes of rows that were repeated.", &counts.repeated_writes),
        ];
        for (name, help, count) in counters {
            let value = read(count);
            let _ = write!(
                text,
                "# HELP assay_eval_{name} {help}\n# TYPE assay_eval_{name} counter\nassay_eval_{name} {value}\n"
            );
        }
        text.push_str("# HELP assay_eval_ended_total Evaluations that ended on this node.\n# TYPE assay_eval_ended_total counter\n");
        for (state, count) in ENDS.iter().zip(&counts.ended) {
            let _ = writeln!(text, "assay_eval_ended_total{{state=\"{}\"}} {}", state.name(), read(count));
        }
        text
    }
}

impl EvalSlot {
    /// Reserves the memory of the data, unless the node has too much of it.
    pub fn hold(&mut self, bytes: usize) -> Result<(), FullNode> {
        let more = bytes as u64;
        let all = &self.service.data_bytes;
        let fits = |held: u64| (held + more <= EVAL_DATA_PER_NODE_BYTES_MAX as u64).then_some(held + more);
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| FullNode::Data)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for EvalSlot {
    fn drop(&mut self) {
        self.service.data_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.service.running.lock().remove(&self.job);
        self.service.left.send_modify(|left| *left += 1);
    }
}

/// Adds to a count.
pub fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_bounded_places_and_memory() {
        let service = Arc::new(EvalService::default());
        let slots: Vec<EvalSlot> =
            (0..EVALS_PER_NODE_MAX as u128).map(|id| service.enter(Uuid::from_u128(id)).expect("a place")).collect();
        assert_eq!(service.enter(Uuid::from_u128(99)).err(), Some(FullNode::Evals));
        drop(slots);
        assert_eq!(service.running(), 0);
        let mut slot = service.enter(Uuid::nil()).expect("a place");
        slot.hold(EVAL_DATA_PER_NODE_BYTES_MAX).expect("memory");
        assert_eq!(slot.hold(1), Err(FullNode::Data));
        drop(slot);
        assert_eq!(service.data_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_cancel_reaches_its_evaluation_alone() {
        let service = Arc::new(EvalService::default());
        let [one, two] = [1, 2].map(|id| service.enter(Uuid::from_u128(id)).expect("a place"));
        service.cancel(Uuid::from_u128(1));
        assert_eq!((*one.cancelled.borrow(), *two.cancelled.borrow()), (true, false));
        service.note_end(EvalJobState::Cancelled);
        assert!(service.metrics_text().contains("assay_eval_ended_total{state=\"cancelled\"} 1"));
    }
}
