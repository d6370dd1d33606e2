//! State machine of a run: order and number of the cases, their tasks, their scorers and their writes.
//!
//! ```text
//! RunTask -> TaskEnded ─┬─ WriteTrace -> Written ─┬─ RunScorer (all at once) -> ScorerEnded -> WriteCase -> Written
//!                       └─ no scorer reads spans ─┘
//! ```
//! A failed task has no scorers. A stop ends the cases under way with an error. After a timeout, the cases that never
//! started are written with that error, too. Events for a call or a write that is not under way are ignored.

mod case;
mod messages;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub use messages::{EvalEffect, EvalEnd, EvalEvent, EvalProgress};

use crate::plan::{CaseIndex, EvalPlan, WrittenCase};
use crate::request::{CONCURRENCY_MAX, EvalLimits};
use crate::rows::EvalCallOutcome;
use crate::totals::EvalTotals;
use case::{CaseRun, CaseStep};

/// Upper bound of the successive cases whose rows cannot be written. The run ends beyond it.
pub const UNWRITTEN_CASES_MAX: u32 = 8;

/// Run of a plan.
#[derive(Debug)]
pub struct EvalRun {
    plan: Arc<EvalPlan>,
    limits: EvalLimits,
    phase: RunPhase,
    started_ms: u64,
    /// Next case that has not started.
    next: u32,
    restored: HashSet<CaseIndex>,
    /// At most `max_concurrency` cases.
    under_way: BTreeMap<CaseIndex, CaseRun>,
    totals: EvalTotals,
    unwritten_in_a_row: u32,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    New,
    Running,
    Stopping(EvalEnd),
    Ended,
}

impl EvalRun {
    /// Returns a run that has not started. The concurrency is at least 1 and at most [`CONCURRENCY_MAX`].
    pub fn new(plan: Arc<EvalPlan>, limits: EvalLimits) -> EvalRun {
        let max_concurrency = limits.max_concurrency.clamp(1, CONCURRENCY_MAX);
        let limits = EvalLimits { max_concurrency, ..limits };
        let totals = EvalTotals { cases: plan.case_count().into(), ..EvalTotals::default() };
        EvalRun {
            plan,
            limits,
            phase: RunPhase::New,
            started_ms: 0,
            next: 0,
            restored: HashSet::new(),
            under_way: BTreeMap::new(),
            totals,
            unwritten_in_a_row: 0,
        }
    }

    pub fn plan(&self) -> &EvalPlan {
        &self.plan
    }

    pub fn totals(&self) -> &EvalTotals {
        &self.totals
    }

    /// Returns the number of cases that have started and not yet ended.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Returns the time at which [`EvalEvent::TimedOut`] is due.
    pub fn deadline_ms(&self) -> Option<u64> {
        let limit = self.limits.timeout_ms.filter(|_| self.phase == RunPhase::Running);
        limit.map(|limit| self.started_ms.saturating_add(limit))
    }

    /// Takes an event at the time `now_ms` since 1970, and returns the effects in their order.
    pub fn step(&mut self, now_ms: u64, event: EvalEvent) -> Vec<EvalEffect> {
        let mut effects = Vec::new();
        match event {
            EvalEvent::Restored { cases } => self.restore(cases),
            EvalEvent::Started { started_ms } if self.phase == RunPhase::New => {
                (self.phase, self.started_ms) = (RunPhase::Running, started_ms);
            }
            EvalEvent::Started { .. } => {}
            EvalEvent::TaskEnded { case, outcome } => self.end_task(now_ms, case, outcome, &mut effects),
            EvalEvent::ScorerEnded { case, scorer, outcome } => {
                self.end_scorer(now_ms, case, scorer, outcome, &mut effects);
            }
            EvalEvent::Written { case } => self.end_write(now_ms, case, &mut effects),
            EvalEvent::WriteFailed { case, reason } => self.fail_write(now_ms, case, &reason, &mut effects),
            EvalEvent::Cancelled => self.stop(now_ms, EvalEnd::Cancelled, &mut effects),
            EvalEvent::TimedOut => self.stop(now_ms, EvalEnd::TimedOut, &mut effects),
        }
        if self.deadline_ms().is_some_and(|deadline| now_ms >= deadline) {
            self.stop(now_ms, EvalEnd::TimedOut, &mut effects);
        }
        self.start_cases(now_ms, &mut effects);
        self.finish(&mut effects);
        effects
    }

    fn restore(&mut self, cases: Vec<WrittenCase>) {
        if self.phase != RunPhase::New {
            return;
        }
        for WrittenCase { case, tally } in cases {
            if case.0 < self.plan.case_count() && self.restored.insert(case) {
                self.totals.add(&tally);
            }
        }
    }

    fn start_cases(&mut self, now_ms: u64, effects: &mut Vec<EvalEffect>) {
        let is_timeout = self.phase == RunPhase::Stopping(EvalEnd::TimedOut);
        if self.phase != RunPhase::Running && !is_timeout {
            return;
        }
        while self.under_way.len() < self.limits.max_concurrency as usize {
            let Some(mut run) = self.next_case(now_ms) else { return };
            effects.push(match is_timeout {
                true => run.end_early(&self.plan, now_ms, &self.stop_reason(EvalEnd::TimedOut)),
                false => run.start_task(),
            });
            self.under_way.insert(run.case, run);
        }
    }

    fn next_case(&mut self, now_ms: u64) -> Option<CaseRun> {
        self.skip_restored();
        let run = CaseRun::new(&self.plan, CaseIndex(self.next), now_ms)?;
        self.next += 1;
        Some(run)
    }

    fn skip_restored(&mut self) {
        while self.restored.contains(&CaseIndex(self.next)) {
            self.next += 1;
        }
    }

    /// Returns whether all calls have ended, so that a stop would change nothing.
    fn has_no_more_calls(&mut self) -> bool {
        self.skip_restored();
        self.next >= self.plan.case_count() && self.under_way.values().all(CaseRun::is_writing)
    }

    fn end_task(&mut self, now_ms: u64, case: CaseIndex, outcome: EvalCallOutcome, effects: &mut Vec<EvalEffect>) {
        let Some(run) = self.under_way.get_mut(&case) else { return };
        effects.extend(run.end_task(&self.plan, now_ms, outcome));
        self.totals.omitted_spans += run.take_omitted_spans();
    }

    fn end_scorer(
        &mut self,
        now_ms: u64,
        case: CaseIndex,
        scorer: usize,
        outcome: EvalCallOutcome,
        effects: &mut Vec<EvalEffect>,
    ) {
        let Some(run) = self.under_way.get_mut(&case) else { return };
        effects.extend(run.end_scorer(&self.plan, now_ms, scorer, outcome));
        self.totals.omitted_spans += run.take_omitted_spans();
    }

    fn end_write(&mut self, now_ms: u64, case: CaseIndex, effects: &mut Vec<EvalEffect>) {
        let stopped = match self.phase {
            RunPhase::Stopping(end) => Some(self.stop_reason(end)),
            _ => None,
        };
        let Some(run) = self.under_way.get_mut(&case) else { return };
        match run.end_write(&self.plan, now_ms, stopped.as_deref()) {
            CaseStep::None => {}
            CaseStep::Effects(next) => effects.extend(next),
            CaseStep::Written(tally) => {
                self.under_way.remove(&case);
                self.totals.add(&tally);
                self.unwritten_in_a_row = 0;
                effects.push(self.progress());
            }
        }
    }

    fn fail_write(&mut self, now_ms: u64, case: CaseIndex, reason: &str, effects: &mut Vec<EvalEffect>) {
        let Some(run) = self.under_way.get_mut(&case) else { return };
        if let Some(effect) = run.reduce(&self.plan, now_ms, reason) {
            effects.push(effect);
            return;
        }
        if !run.is_writing() {
            return;
        }
        self.under_way.remove(&case);
        self.totals.unwritten += 1;
        self.unwritten_in_a_row += 1;
        effects.push(self.progress());
        if self.unwritten_in_a_row >= UNWRITTEN_CASES_MAX {
            self.stop(now_ms, EvalEnd::WritesFailed, effects);
        }
    }

    /// Stops a running run. The first reason counts.
    fn stop(&mut self, now_ms: u64, end: EvalEnd, effects: &mut Vec<EvalEffect>) {
        if !matches!(self.phase, RunPhase::New | RunPhase::Running) || self.has_no_more_calls() {
            return;
        }
        self.phase = RunPhase::Stopping(end);
        if self.under_way.values().any(CaseRun::has_calls) {
            effects.push(EvalEffect::StopCalls);
        }
        let reason = self.stop_reason(end);
        let cases: Vec<CaseIndex> = self.under_way.keys().copied().collect();
        for case in cases {
            let Some(run) = self.under_way.get_mut(&case).filter(|run| run.has_calls()) else { continue };
            if end == EvalEnd::WritesFailed {
                // A further write would fail as well.
                self.under_way.remove(&case);
                self.totals.unwritten += 1;
            } else {
                effects.push(run.end_early(&self.plan, now_ms, &reason));
                self.totals.omitted_spans += run.take_omitted_spans();
            }
        }
    }

    fn stop_reason(&self, end: EvalEnd) -> String {
        match (end, self.limits.timeout_ms) {
            (EvalEnd::TimedOut, Some(limit)) => format!("the eval exceeded its time limit of {limit} ms"),
            (EvalEnd::TimedOut, None) => "the eval exceeded its time limit".to_owned(),
            (EvalEnd::WritesFailed, _) => "the eval ended because rows could not be written".to_owned(),
            (EvalEnd::Cancelled | EvalEnd::Completed, _) => "the eval was cancelled".to_owned(),
        }
    }

    fn progress(&self) -> EvalEffect {
        let EvalTotals { cases, errors, .. } = self.totals;
        EvalEffect::Progress(EvalProgress { cases, done: self.totals.done(), errors })
    }

    fn finish(&mut self, effects: &mut Vec<EvalEffect>) {
        let end = match self.phase {
            RunPhase::Running => EvalEnd::Completed,
            RunPhase::Stopping(end) => end,
            RunPhase::New | RunPhase::Ended => return,
        };
        // Cases that may start are under way by now.
        if self.under_way.is_empty() {
            self.phase = RunPhase::Ended;
            effects.push(EvalEffect::Finished { totals: self.totals.clone(), end });
        }
    }
}
