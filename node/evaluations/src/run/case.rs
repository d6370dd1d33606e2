//! State of one case under way.

use std::sync::Arc;

use serde_json::Value;

use super::messages::EvalEffect;
use crate::datum::EvalDatum;
use crate::plan::{CaseIndex, EvalCaseIds, EvalPlan};
use crate::rows::{CallRecord, CaseFrame, CaseRecord, EvalCallOutcome, EvalCaseNotes, SpanRow, scorer_arguments};
use crate::totals::CaseTally;

/// Case under way.
#[derive(Debug)]
pub(super) struct CaseRun {
    pub case: CaseIndex,
    pub datum: Arc<EvalDatum>,
    pub ids: Arc<EvalCaseIds>,
    stage: CaseStage,
    start_ms: u64,
    omitted_spans: u64,
}

/// Stage of a case.
#[derive(Debug)]
enum CaseStage {
    /// Nothing has started.
    Waiting,
    /// The task runs.
    Task,
    /// The spans that scorers read are being written.
    Trace { task: CallRecord },
    /// Scorers run. Each has a place, which is empty until it ends.
    Scoring { task: CallRecord, start_ms: u64, scorers: Vec<Option<CallRecord>> },
    /// The complete case is being written. A reduced case has only its root row.
    Writing { record: CaseRecord, tally: CaseTally, is_reduced: bool },
}

/// Next step after a write.
#[derive(Debug)]
pub(super) enum CaseStep {
    None,
    Effects(Vec<EvalEffect>),
    /// The case has ended.
    Written(CaseTally),
}

impl CaseRun {
    /// Returns the case in its first stage, or `None` if the plan has no such case.
    pub fn new(plan: &EvalPlan, case: CaseIndex, now_ms: u64) -> Option<CaseRun> {
        let (datum, ids) = (Arc::clone(plan.datum(case)?), Arc::new(plan.ids(case)?));
        Some(CaseRun { case, datum, ids, stage: CaseStage::Waiting, start_ms: now_ms, omitted_spans: 0 })
    }

    /// Starts the task.
    pub fn start_task(&mut self) -> EvalEffect {
        self.stage = CaseStage::Task;
        EvalEffect::RunTask { case: self.case, datum: Arc::clone(&self.datum), ids: Arc::clone(&self.ids) }
    }

    /// Returns whether only the write of the complete case is missing.
    pub fn is_writing(&self) -> bool {
        matches!(self.stage, CaseStage::Writing { .. })
    }

    /// Returns whether the task or a scorer runs.
    pub fn has_calls(&self) -> bool {
        matches!(self.stage, CaseStage::Task | CaseStage::Scoring { .. })
    }

    pub fn take_omitted_spans(&mut self) -> u64 {
        std::mem::take(&mut self.omitted_spans)
    }

    pub fn end_task(&mut self, plan: &EvalPlan, now_ms: u64, mut outcome: EvalCallOutcome) -> Vec<EvalEffect> {
        if !matches!(self.stage, CaseStage::Task) {
            return Vec::new();
        }
        if let Some(EvalCaseNotes { metadata, tags }) = outcome.notes.take() {
            self.datum = Arc::new(EvalDatum { metadata, tags, ..EvalDatum::clone(&self.datum) });
        }
        let task = CallRecord { start_ms: self.start_ms, end_ms: now_ms, outcome };
        if task.outcome.result.is_err() || plan.scorers().is_empty() {
            return vec![self.write(plan, self.record(Some(now_ms), Some(task)))];
        }
        if plan.reads_traces() {
            let mut record = self.record(None, Some(task));
            let rows = self.frame(plan).rows(&mut record);
            self.omitted_spans += rows.omitted_spans;
            if let Some(task) = record.task {
                self.stage = CaseStage::Trace { task };
            }
            return vec![EvalEffect::WriteTrace { case: self.case, rows: rows.rows }];
        }
        self.start_scorers(plan, now_ms, task)
    }

    fn start_scorers(&mut self, plan: &EvalPlan, now_ms: u64, task: CallRecord) -> Vec<EvalEffect> {
        let output = task.outcome.result.as_ref().unwrap_or(&Value::Null);
        let mut input = scorer_arguments(&self.datum, output);
        input.insert("trace".to_owned(), plan.target().trace_reference(&self.ids.root_span_id));
        let input = Arc::new(input);
        let count = plan.scorers().len();
        self.stage = CaseStage::Scoring { task, start_ms: now_ms, scorers: vec![None; count] };
        let scorer = |scorer| {
            let (input, ids) = (Arc::clone(&input), Arc::clone(&self.ids));
            EvalEffect::RunScorer { case: self.case, scorer, input, ids }
        };
        (0..count).map(scorer).collect()
    }

    pub fn end_scorer(
        &mut self,
        plan: &EvalPlan,
        now_ms: u64,
        scorer: usize,
        outcome: EvalCallOutcome,
    ) -> Option<EvalEffect> {
        let CaseStage::Scoring { start_ms, scorers, .. } = &mut self.stage else { return None };
        let place = scorers.get_mut(scorer).filter(|place| place.is_none())?;
        *place = Some(CallRecord { start_ms: *start_ms, end_ms: now_ms, outcome });
        if scorers.iter().any(Option::is_none) {
            return None;
        }
        let CaseStage::Scoring { task, scorers, .. } = std::mem::replace(&mut self.stage, CaseStage::Waiting) else {
            return None;
        };
        let mut record = self.record(Some(now_ms), Some(task));
        record.scorers = scorers.into_iter().flatten().collect();
        Some(self.write(plan, record))
    }

    /// Takes the end of a write. `stopped` is the reason of a stop during the write.
    pub fn end_write(&mut self, plan: &EvalPlan, now_ms: u64, stopped: Option<&str>) -> CaseStep {
        match std::mem::replace(&mut self.stage, CaseStage::Waiting) {
            CaseStage::Writing { tally, .. } => CaseStep::Written(tally),
            CaseStage::Trace { task } => CaseStep::Effects(match stopped {
                Some(reason) => {
                    self.stage = CaseStage::Trace { task };
                    vec![self.end_early(plan, now_ms, reason)]
                }
                None => self.start_scorers(plan, now_ms, task),
            }),
            other => {
                self.stage = other;
                CaseStep::None
            }
        }
    }

    /// Ends the case with an error, and returns its write. Calls under way end with the same error.
    pub fn end_early(&mut self, plan: &EvalPlan, now_ms: u64, reason: &str) -> EvalEffect {
        let failed =
            |start_ms| CallRecord { start_ms, end_ms: now_ms, outcome: EvalCallOutcome::new(Err(reason.to_owned())) };
        let mut record = self.record(Some(now_ms), None);
        record.error = Some(reason.to_owned());
        match std::mem::replace(&mut self.stage, CaseStage::Waiting) {
            CaseStage::Waiting => {}
            CaseStage::Task => record.task = Some(failed(self.start_ms)),
            CaseStage::Trace { task } => record.task = Some(task),
            CaseStage::Scoring { task, start_ms, scorers } => {
                record.task = Some(task);
                record.scorers = scorers.into_iter().map(|ended| ended.unwrap_or_else(|| failed(start_ms))).collect();
            }
            CaseStage::Writing { record: complete, .. } => record = complete,
        }
        self.write(plan, record)
    }

    /// Reduces a case whose rows were refused, and returns its write. A reduced case cannot be reduced again.
    pub fn reduce(&mut self, plan: &EvalPlan, now_ms: u64, reason: &str) -> Option<EvalEffect> {
        let mut record = match std::mem::replace(&mut self.stage, CaseStage::Waiting) {
            CaseStage::Writing { record, is_reduced: false, .. } => record,
            CaseStage::Trace { task } => self.record(Some(now_ms), Some(task)),
            other => {
                self.stage = other;
                return None;
            }
        };
        record.error = Some(format!("the rows of the case could not be written: {reason}"));
        let rows = self.frame(plan).reduced_rows(&record);
        Some(self.written_as(record, rows.rows, true))
    }

    fn record(&self, end_ms: Option<u64>, task: Option<CallRecord>) -> CaseRecord {
        CaseRecord { start_ms: self.start_ms, end_ms, task, scorers: Vec::new(), error: None }
    }

    fn write(&mut self, plan: &EvalPlan, mut record: CaseRecord) -> EvalEffect {
        let rows = self.frame(plan).rows(&mut record);
        self.omitted_spans += rows.omitted_spans;
        self.written_as(record, rows.rows, false)
    }

    fn written_as(&mut self, record: CaseRecord, rows: Vec<SpanRow>, is_reduced: bool) -> EvalEffect {
        let tally = rows.first().map(CaseTally::of_root).unwrap_or_default();
        self.stage = CaseStage::Writing { record, tally, is_reduced };
        EvalEffect::WriteCase { case: self.case, rows }
    }

    fn frame<'c>(&'c self, plan: &'c EvalPlan) -> CaseFrame<'c> {
        CaseFrame { plan, datum: &self.datum, ids: &self.ids }
    }
}
