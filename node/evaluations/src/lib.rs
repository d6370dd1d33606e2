//! Evals: requests, plans, runs, rows, statistics and reports (functions.md 7 and 8).
//!
//! This crate performs no I/O, and has neither a clock nor randomness. A driver executes the effects of a run and
//! reports their results as events.
//!
//! ```text
//! body ── EvalRequest ──▶ data and functions, which the caller resolves
//!                              │
//! EvalDatum, EvalScorer ── EvalPlan ──▶ cases with their ids
//!                              │
//! EvalEvent ────────────── EvalRun ──▶ EvalEffect: tasks, scorers, writes
//!                              │
//! rows of the experiment ── EvalStatistics, EvalSummary ──▶ EvalReport, EvalStreamEvent
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `request` | bodies of `POST /v1/eval`, checked |
//! | `datum` | data of a list, a dataset or an experiment |
//! | `plan` | cases, and the ids that a restarted run finds again |
//! | `run` | state machine of a run |
//! | `rows` | rows of a case, with checked results of scorers |
//! | `totals` | counts and means of a run |
//! | `statistics` | changes with intervals, and what would settle them |
//! | `summary`, `stream` | answers and server-sent events |
//! | `report` | Markdown for pull requests |

mod datum;
mod plan;
mod report;
mod request;
mod rows;
mod run;
mod statistics;
mod stream;
mod summary;
mod time;
mod totals;

pub use datum::{DatumKey, EvalDatum, EvalDatumError};
pub use plan::{
    CaseIndex, EVAL_CASES_MAX, EVAL_DATA_BYTES_MAX, EvalCaseIds, EvalPlan, EvalPlanError, EvalScorer, EvalScorerKind,
    EvalSpanIds, WrittenCase, WrittenCases,
};
pub use report::{EvalReport, EvalRowCounts, REPORT_LINES_MAX};
pub use request::{
    CONCURRENCY_DEFAULT, CONCURRENCY_MAX, EVAL_PARENT_BYTES_MAX, EVAL_SCORERS_MAX, EVAL_TAGS_MAX, EVAL_TEXT_BYTES_MAX,
    EXTRA_MESSAGES_MAX, EvalBase, EvalCallOptions, EvalData, EvalDataset, EvalDatasetName, EvalDatasetVersion,
    EvalExperiment, EvalExperimentName, EvalFunction, EvalFunctionForm, EvalLimits, EvalParent, EvalParentSpan,
    EvalRequest, EvalRequestError, EvalSourceExperiment, EvalTarget, EvalTargetType, ExtraMessagesError, MessagePath,
    TIMEOUT_MS_MAX, TRIALS_MAX,
};
pub use rows::{CASE_SPANS_MAX, EvalCallOutcome, EvalCaseNotes, SpanRow};
pub use run::{EvalEffect, EvalEnd, EvalEvent, EvalProgress, EvalRun, UNWRITTEN_CASES_MAX};
pub use statistics::{
    CHANGED_ROWS_MIN, DISAGREEMENTS_MAX, EvalChange, EvalStatistics, EvalVerdict, ROWS_TO_SETTLE_MAX, RowsToSettle,
    TrialDisagreement,
};
pub use stream::{EvalStreamEvent, EvalStreamStart, EvalTaskProgress};
pub use summary::{EvalMetricEntry, EvalScoreEntry, EvalSummary};
pub use totals::{CaseTally, EvalTotals, ScoreTotal, TOTAL_NAMES_MAX};
