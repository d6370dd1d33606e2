//! Driver of the state machine of an evaluation: it executes effects, and reports their results as events.

use std::sync::Arc;
use std::time::Duration;

use assay_node_evaluations::{
    CaseIndex, EvalEffect, EvalEnd, EvalEvent, EvalRun, EvalTaskProgress, EvalTotals, SpanRow, WrittenCase,
};
use assay_node_http::responses::refusal::Refusal;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::calls::EvalCalls;
use super::lease::{EvalLease, LeaseStop};
use super::writes::EvalWriter;
use crate::clock::now_ms;
use crate::jobs::{EvalJobProgress, EvalJobState};
use crate::launch::PreparedEval;
use crate::service::add;

/// Upper bound of the results that wait for the state machine.
const EVENTS_WAITING_MAX: usize = 1_024;
/// Longest sleep before the next look at the deadline.
const DEADLINE_LOOK_MAX: Duration = Duration::from_secs(60);

/// End of a run.
#[derive(Debug)]
pub enum Driven {
    Ended {
        end: EvalEnd,
        totals: EvalTotals,
        has_experiment: bool,
    },
    /// End of an evaluation that another server ran.
    Remote {
        state: EvalJobState,
        summary: Option<Value>,
    },
    Stopped(LeaseStop),
}

/// Driver of one run.
pub struct EvalDriver<'l> {
    lease: &'l EvalLease,
    run: EvalRun,
    name: String,
    started_ms: u64,
    has_experiment: bool,
    calls: Arc<EvalCalls>,
    writer: Arc<EvalWriter>,
    outputs: Option<mpsc::Sender<EvalTaskProgress>>,
    /// Running tasks and scorers.
    calling: JoinSet<()>,
    /// Running writes, which a stop does not end.
    writing: JoinSet<()>,
    sender: mpsc::Sender<EvalEvent>,
    events: mpsc::Receiver<EvalEvent>,
    /// Totals at the last look, for the counts of the node.
    counted: EvalTotals,
}

impl<'l> EvalDriver<'l> {
    pub async fn new(
        lease: &'l EvalLease,
        prepared: PreparedEval,
        outputs: Option<mpsc::Sender<EvalTaskProgress>>,
    ) -> Result<EvalDriver<'l>, Refusal> {
        let job = lease.job();
        let limits = prepared.request.limits;
        let run = EvalRun::new(Arc::clone(&prepared.plan), limits);
        let writer = Arc::new(EvalWriter::new(lease, &prepared).await?);
        let calls = Arc::new(EvalCalls::new(lease, prepared).await?);
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        Ok(EvalDriver {
            lease,
            run,
            name: job.body.name,
            started_ms: job.body.started_ms,
            has_experiment: job.body.experiment.is_some(),
            calls,
            writer,
            outputs,
            calling: JoinSet::new(),
            writing: JoinSet::new(),
            sender,
            events,
            counted: EvalTotals::default(),
        })
    }

    /// Runs the evaluation. `restored` are the cases that an earlier process has written.
    pub async fn run(mut self, restored: Vec<WrittenCase>) -> Driven {
        self.run.step(now_ms(), EvalEvent::Restored { cases: restored });
        // Cases of an earlier process are not counted here.
        self.counted = self.run.totals().clone();
        let mut cancelled = self.lease.cancelled();
        let mut is_cancelled = false;
        let mut next = Some(EvalEvent::Started { started_ms: self.started_ms });
        loop {
            if let Some(event) = next.take() {
                let effects = self.run.step(now_ms(), event);
                if let Some(ended) = self.execute(effects) {
                    return ended;
                }
            }
            // Ended tasks only take memory.
            while self.calling.try_join_next().is_some() || self.writing.try_join_next().is_some() {}
            next = tokio::select! {
                event = self.events.recv() => event,
                Ok(_) = cancelled.wait_for(|cancelled| *cancelled), if !is_cancelled => {
                    is_cancelled = true;
                    Some(EvalEvent::Cancelled)
                }
                () = sleep(until(self.run.deadline_ms())) => self.is_late().then_some(EvalEvent::TimedOut),
            };
        }
    }

    fn is_late(&self) -> bool {
        self.run.deadline_ms().is_some_and(|deadline| now_ms() >= deadline)
    }

    /// Executes effects, and returns the end of the run if they contain it.
    fn execute(&mut self, effects: Vec<EvalEffect>) -> Option<Driven> {
        for effect in effects {
            match effect {
                EvalEffect::RunTask { case, datum, ids } => {
                    add(&self.lease.service.counts.task_calls, 1);
                    let trial = self.run.plan().trial(case);
                    let (calls, sender) = (Arc::clone(&self.calls), self.sender.clone());
                    let told = self.outputs.clone().map(|outputs| (outputs, self.name.clone()));
                    self.calling.spawn(async move {
                        let row_id = ids.root.row_id;
                        let outcome = calls.task(datum, trial, ids).await;
                        if let Some((outputs, name)) = told {
                            let result = outcome.result.clone();
                            // A slow reader misses outputs, which are in the rows.
                            let _ = outputs.try_send(EvalTaskProgress { row_id, name, result });
                        }
                        send(&sender, EvalEvent::TaskEnded { case, outcome }).await;
                    });
                }
                EvalEffect::RunScorer { case, scorer, input, ids } => {
                    add(&self.lease.service.counts.scorer_calls, 1);
                    let (calls, sender) = (Arc::clone(&self.calls), self.sender.clone());
                    self.calling.spawn(async move {
                        let outcome = calls.scorer(scorer, input, ids).await;
                        send(&sender, EvalEvent::ScorerEnded { case, scorer, outcome }).await;
                    });
                }
                EvalEffect::WriteTrace { case, rows } | EvalEffect::WriteCase { case, rows } => self.write(case, rows),
                EvalEffect::StopCalls => self.calling.abort_all(),
                EvalEffect::Progress(_) => self.note_progress(),
                EvalEffect::Finished { totals, end } => {
                    return Some(Driven::Ended { end, totals, has_experiment: self.has_experiment });
                }
            }
        }
        None
    }

    fn write(&mut self, case: CaseIndex, rows: Vec<SpanRow>) {
        let (writer, sender) = (Arc::clone(&self.writer), self.sender.clone());
        self.writing.spawn(async move {
            let event = match writer.write(rows).await {
                Ok(()) => EvalEvent::Written { case },
                Err(reason) => EvalEvent::WriteFailed { case, reason },
            };
            send(&sender, event).await;
        });
    }

    fn note_progress(&mut self) {
        let totals = self.run.totals().clone();
        let counts = &self.lease.service.counts;
        add(&counts.cases, totals.done().saturating_sub(self.counted.done()));
        add(&counts.case_errors, totals.errors.saturating_sub(self.counted.errors));
        add(&counts.scorer_errors, totals.scorer_errors.saturating_sub(self.counted.scorer_errors));
        self.lease.note_progress(progress_of(&totals));
        self.counted = totals;
    }
}

/// Returns the progress that totals show.
pub fn progress_of(totals: &EvalTotals) -> EvalJobProgress {
    let EvalTotals { cases, errors, scorer_errors, unwritten, .. } = *totals;
    EvalJobProgress { cases, done: totals.done(), errors, scorer_errors, unwritten }
}

async fn send(sender: &mpsc::Sender<EvalEvent>, event: EvalEvent) {
    // The receiver is gone only after the end of the run.
    let _ = sender.send(event).await;
}

fn until(deadline_ms: Option<u64>) -> Duration {
    let left = deadline_ms.map(|deadline| Duration::from_millis(deadline.saturating_sub(now_ms())));
    left.map_or(DEADLINE_LOOK_MAX, |left| left.min(DEADLINE_LOOK_MAX))
}
