//! Online scoring: rules of a project that run scorers, classifiers, facets and tag functions on rows as they arrive.
//!
//! This crate makes the decisions and performs no I/O. On the leader of each shard, an executor reads the versions of a
//! project's log in order. It runs the functions, and writes what the crate returns. It may read versions again. Triggers
//! and ids depend only on what a run reads, so a repeated run overwrites itself.
//!
//! ```text
//! version --select_span--> trigger_functions --write path: control_effect--> _async_scoring_state
//! version --IdleTraces--> silent trace --select_silent--^                            |
//! rows of a result <--FinishedRun-- run <--RunCaps-- OpenTriggers <--observe---------+
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `rule`, `scope`, `function_key` | checked rules, their scopes, and their functions with the keys in states |
//! | `rule::rule_record`, `rule::filter` | records of rules with their authors, and filters of the query language |
//! | `requests` | bodies of the backfill and test operations |
//! | `candidates`, `sampling`, `idle_traces` | which rows, traces and groups are scored, and when |
//! | `input_digest`, `identity` | digests of inputs, and the ids derived from them |
//! | `selection` | triggers that a version, a silent trace or a backfill causes |
//! | `state`, `control`, `control_effects` | the state of a row, controls in writes, and their effects on the state |
//! | `executor_record` | what an executor stores, so that another node continues |
//! | `open_triggers`, `trigger_progress` | triggers that are to run, and the times of their attempts |
//! | `run_caps`, `status_counts` | caps on runs and costs, and counts for the status operation |
//! | `run_effects` | rows that a run writes |

mod candidates;
mod control;
mod control_effects;
mod executor_record;
mod fields;
mod function_key;
mod identity;
mod idle_traces;
mod input_digest;
#[cfg(test)]
mod model;
mod open_triggers;
mod requests;
mod rule;
mod run_caps;
mod run_effects;
mod sampling;
mod scope;
mod selection;
mod state;
mod status_counts;
mod timestamps;
mod trigger_progress;

pub use candidates::{
    CandidateExclusion, EXCLUDED_SPAN_TYPES, EXCLUDED_SPANS_MAX, ExcludedSpans, RowVersion, SCORER_PURPOSE,
    check_candidate, finish_after_write, is_candidate, is_finished, is_scoring_span, root_span_id_of,
    scored_rows_of_trace, span_id_of,
};
pub use control::{
    AttemptFailure, CONTROL_FIELD, ControlRefusal, ControlSender, ForcedRun, RuleSelection, SKIP_FIELD, ScoringControl,
    TriggerCompletion, TriggerRequest, check_control_sender,
};
pub use control_effects::{ControlEffect, ControlEffectError, control_effect, skip_effect};
pub use executor_record::{DEMAND_NOTED_MS, DEMANDED_MS_MAX, ExecutorRecord, RuleTotals};
pub use fields::RuleError;
pub use function_key::{OnlineFunction, OnlineFunctionType};
pub use identity::{EffectIdentity, run_key, state_token};
pub use idle_traces::{IDLE_TRACES_MAX, IdleTraces, IdleTracesFull, SILENT_TRACES_MAX, SilentTrace};
pub use input_digest::{DIGESTED_FIELDS, InputDigest};
pub use open_triggers::{
    OPEN_TRIGGERS_MAX, OpenTrigger, OpenTriggerError, OpenTriggers, OpenTriggersFull, TriggerPlace,
};
pub use requests::{BACKFILL_ROWS_DEFAULT, BACKFILL_ROWS_MAX, BackfillRequest, RULE_TEST_ROWS_MAX, RuleTestRequest};
pub use rule::{
    COST_PER_DAY_MAX, FILTER_BYTES_MAX, FilterError, OnlineConfig, OnlineRule, OnlineRuleStatus, RULE_FUNCTIONS_MAX,
    RUNS_PER_MINUTE_MAX, RuleFilter, changes_rule, check_rule, is_active_rule, is_online_rule, sign_rule,
};
pub use run_caps::{CAPPED_RULES_MAX, CapLimits, CapRefusal, ReachedCap, RunCaps, RunReservation};
pub use run_effects::{
    FinishedRun, OnlineResultForm, OnlineRunError, RUN_ERROR_BYTES_MAX, RunEffects, ScoringTarget, scorer_input,
};
pub use sampling::{SamplingRate, sampling_point};
pub use scope::{
    GROUP_TRACES_MAX, GROUP_VALUE_BYTES_MAX, GroupPath, GroupPlacement, GroupRule, IDLE_SECONDS_DEFAULT,
    IDLE_SECONDS_MAX, INTERVAL_SECONDS_MAX, RuleScope, SPAN_NAMES_MAX, SpanFilter, TriggerScope, is_root,
};
pub use selection::{RuleInForce, SilentInput, select_backfill, select_silent, select_span, trigger_row};
pub use state::{
    EnabledScoring, ROW_TRIGGERS_MAX, RowTrigger, STATE_FIELD, ScoringState, TriggerSource, TriggerStatus, xact_text,
};
pub use status_counts::RuleCounts;
pub use timestamps::{parse_timestamp, timestamp_text};
pub use trigger_progress::{
    RETRY_DELAYS_MS, RunFailureCause, TriggerEvent, TriggerEventError, TriggerPhase, TriggerProgress,
    USER_CODE_RETRIES_MAX,
};
