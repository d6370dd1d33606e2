//! Events and effects of a run.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::datum::EvalDatum;
use crate::plan::{CaseIndex, EvalCaseIds, WrittenCase};
use crate::rows::{EvalCallOutcome, SpanRow};
use crate::totals::EvalTotals;

/// Event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalEvent {
    /// An earlier process wrote these cases. The event comes before [`EvalEvent::Started`].
    Restored { cases: Vec<WrittenCase> },
    /// The run starts. `started_ms` is the time of its first start, also after a restart.
    Started { started_ms: u64 },
    /// The task of a case ended, after all attempts.
    TaskEnded { case: CaseIndex, outcome: EvalCallOutcome },
    /// A scorer of a case ended, after all attempts.
    ScorerEnded { case: CaseIndex, scorer: usize, outcome: EvalCallOutcome },
    /// The last write of a case is durable and visible.
    Written { case: CaseIndex },
    /// The last write of a case is refused, or failed in all attempts.
    WriteFailed { case: CaseIndex, reason: String },
    /// The caller gave up, for example by closing the connection.
    Cancelled,
    /// The time limit of the run passed.
    TimedOut,
}

/// Effect of a run, which the driver executes.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalEffect {
    RunTask {
        case: CaseIndex,
        datum: Arc<EvalDatum>,
        ids: Arc<EvalCaseIds>,
    },
    RunScorer {
        case: CaseIndex,
        /// Index of the scorer in the plan.
        scorer: usize,
        /// Arguments, including `trace`.
        input: Arc<Map<String, Value>>,
        ids: Arc<EvalCaseIds>,
    },
    /// Writes spans for scorers that read them. The root row has no end yet.
    WriteTrace {
        case: CaseIndex,
        rows: Vec<SpanRow>,
    },
    /// Writes a complete case, in one atomic write.
    WriteCase {
        case: CaseIndex,
        rows: Vec<SpanRow>,
    },
    /// Stops all calls of tasks and scorers. Their results are not used.
    StopCalls,
    Progress(EvalProgress),
    /// The last effect of a run.
    Finished {
        totals: EvalTotals,
        end: EvalEnd,
    },
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EvalProgress {
    pub cases: u64,
    pub done: u64,
    pub errors: u64,
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalEnd {
    /// All cases have ended.
    Completed,
    TimedOut,
    Cancelled,
    /// The rows of several cases in a row could not be written.
    WritesFailed,
}
