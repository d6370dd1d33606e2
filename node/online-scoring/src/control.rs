//! Control of online scoring in a write: `_async_scoring_control`, and who may send which kind (G-40).

use serde_json::{Map, Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::fields::{Fields, RuleError};
use crate::function_key::OnlineFunction;
use crate::input_digest::InputDigest;
use crate::scope::TriggerScope;
use crate::state::{KEY_BYTES_MAX, ROW_TRIGGERS_MAX, ScoringState, TriggerSource, required_xact, rules, xact_text};

/// Field of a write with the control. It is never stored.
pub const CONTROL_FIELD: &str = "_async_scoring_control";
/// Field of a write that no rule applies to. It is never stored.
pub const SKIP_FIELD: &str = "_skip_async_scoring";
/// Member of a trigger with what only the executor knows.
const SELECTION: &str = "selection";
/// Member of a score update that completes the trigger of the result.
const COMPLETES: &str = "completes";

/// Reason to run a function again on an input that it has already scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForcedRun {
    #[default]
    No,
    /// Runs failed triggers again, and those with another input.
    Failed,
    Always,
}

const FORCED: [(&str, ForcedRun); 3] =
    [("no", ForcedRun::No), ("failed", ForcedRun::Failed), ("always", ForcedRun::Always)];

/// Selection of a function by rules, which the executor made.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSelection {
    /// Version at which the run reads its input.
    pub triggered_xact: u64,
    /// Write that caused the selection.
    pub cause_xact: u64,
    pub forced: ForcedRun,
    pub digest: InputDigest,
    pub rules: Vec<Uuid>,
    pub skips_logging: bool,
    pub source: TriggerSource,
}

/// Request to run a function on a row.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerRequest {
    pub function: OnlineFunction,
    pub scope: TriggerScope,
    pub run_key: Option<String>,
    /// User of the client that demands the run, which the write path sets.
    pub requested_by: Option<Uuid>,
    /// Absent in requests of clients.
    pub selection: Option<RuleSelection>,
}

/// Completion of triggers.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerCompletion {
    pub functions: Vec<OnlineFunction>,
    pub triggered_xact: u64,
    /// Run that is complete, where only one trigger of the function is meant.
    pub run_key: Option<String>,
    pub digest: Option<InputDigest>,
}

/// Failed attempt of triggers.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFailure {
    pub functions: Vec<OnlineFunction>,
    pub run_key: Option<String>,
    /// Number of failed attempts with this one, so that a repeated write does not count twice.
    pub attempts: Option<u32>,
    /// Time of the next attempt, in milliseconds since the epoch.
    pub retry_at_ms: Option<u64>,
    pub is_final: bool,
}

/// Control of online scoring in a write.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoringControl {
    ScoreUpdate {
        token: Option<String>,
        completes: Option<TriggerCompletion>,
    },
    StateOverride(ScoringState),
    ForceReselect,
    EnabledForceRescore,
    TriggerFunctions(Vec<TriggerRequest>),
    CompleteTriggers(TriggerCompletion),
    MarkAttemptFailed(AttemptFailure),
    /// Takes rules out of the open triggers. Triggers that no rule wants any more are removed.
    CancelTriggers {
        rules: Vec<Uuid>,
    },
}

#[derive(Clone, Copy)]
enum ControlKind {
    ScoreUpdate,
    StateOverride,
    ForceReselect,
    EnabledForceRescore,
    TriggerFunctions,
    CompleteTriggers,
    MarkAttemptFailed,
    CancelTriggers,
}

const KINDS: [(&str, ControlKind); 8] = [
    ("score_update", ControlKind::ScoreUpdate),
    ("state_override", ControlKind::StateOverride),
    ("state_force_reselect", ControlKind::ForceReselect),
    ("state_enabled_force_rescore", ControlKind::EnabledForceRescore),
    ("trigger_functions", ControlKind::TriggerFunctions),
    ("complete_triggered_functions", ControlKind::CompleteTriggers),
    ("mark_attempt_failed", ControlKind::MarkAttemptFailed),
    ("cancel_triggered_functions", ControlKind::CancelTriggers),
];

impl ScoringControl {
    /// Reads the control of a write, if it has one.
    pub fn of_write(write: &Map<String, Value>) -> Result<Option<ScoringControl>, RuleError> {
        let value = write.get(CONTROL_FIELD).filter(|value| !value.is_null());
        value.map(ScoringControl::read).transpose()
    }

    pub fn read(value: &Value) -> Result<ScoringControl, RuleError> {
        let fields = Fields::new(CONTROL_FIELD, Some(value))?;
        match fields.required("kind", fields.word("kind", &KINDS)?, "the kind of a control")? {
            ControlKind::ScoreUpdate => {
                let read = |value: &Value| completion(&Fields::new(&fields.path(COMPLETES), Some(value))?);
                Ok(ScoringControl::ScoreUpdate {
                    token: fields.text("token", KEY_BYTES_MAX)?.map(str::to_owned),
                    completes: fields.value(COMPLETES).map(read).transpose()?,
                })
            }
            ControlKind::StateOverride => ScoringState::read(fields.value("state")).map(ScoringControl::StateOverride),
            ControlKind::ForceReselect => Ok(ScoringControl::ForceReselect),
            ControlKind::EnabledForceRescore => Ok(ScoringControl::EnabledForceRescore),
            ControlKind::TriggerFunctions => requests(&fields).map(ScoringControl::TriggerFunctions),
            ControlKind::CompleteTriggers => completion(&fields).map(ScoringControl::CompleteTriggers),
            ControlKind::MarkAttemptFailed => failure(&fields).map(ScoringControl::MarkAttemptFailed),
            ControlKind::CancelTriggers => Ok(ScoringControl::CancelTriggers { rules: rules(&fields, "rules")? }),
        }
    }

    /// Sets the user that demands runs. Functions run with the rights of this user unless a rule wants the result.
    #[must_use]
    pub fn demanded_by(self, user: Option<Uuid>) -> ScoringControl {
        match self {
            ScoringControl::TriggerFunctions(requests) => {
                let each = requests.into_iter().map(|request| TriggerRequest { requested_by: user, ..request });
                ScoringControl::TriggerFunctions(each.collect())
            }
            other => other,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            ScoringControl::ScoreUpdate { .. } => "score_update",
            ScoringControl::StateOverride(_) => "state_override",
            ScoringControl::ForceReselect => "state_force_reselect",
            ScoringControl::EnabledForceRescore => "state_enabled_force_rescore",
            ScoringControl::TriggerFunctions(_) => "trigger_functions",
            ScoringControl::CompleteTriggers(_) => "complete_triggered_functions",
            ScoringControl::MarkAttemptFailed(_) => "mark_attempt_failed",
            ScoringControl::CancelTriggers { .. } => "cancel_triggered_functions",
        }
    }

    pub fn to_json(&self) -> Value {
        let mut value = match self {
            ScoringControl::ScoreUpdate { token, completes } => {
                let mut update = json!({"token": token});
                if let Some(completes) = completes {
                    update[COMPLETES] = completes.to_json();
                }
                update
            }
            ScoringControl::StateOverride(state) => json!({"state": state.to_json()}),
            ScoringControl::ForceReselect | ScoringControl::EnabledForceRescore => json!({}),
            ScoringControl::TriggerFunctions(requests) => {
                json!({"triggered_functions": requests.iter().map(TriggerRequest::to_json).collect::<Vec<_>>()})
            }
            ScoringControl::CompleteTriggers(completion) => completion.to_json(),
            ScoringControl::MarkAttemptFailed(failure) => json!({
                "function_ids": ids(&failure.functions), "idempotency_key": failure.run_key,
                "attempts": failure.attempts, "retry_at_ms": failure.retry_at_ms, "final": failure.is_final,
            }),
            ScoringControl::CancelTriggers { rules } => json!({"rules": rules}),
        };
        value["kind"] = self.kind().into();
        value
    }
}

fn ids(functions: &[OnlineFunction]) -> Vec<Value> {
    functions.iter().map(OnlineFunction::to_json).collect()
}

fn functions(fields: &Fields<'_>) -> Result<Vec<OnlineFunction>, RuleError> {
    let listed = fields.list("function_ids", ROW_TRIGGERS_MAX)?;
    let listed = fields.required("function_ids", listed, "an array of functions")?.iter().enumerate();
    let path = fields.path("function_ids");
    listed.map(|(index, function)| OnlineFunction::read(&format!("{path}.{index}"), function)).collect()
}

fn digest(fields: &Fields<'_>) -> Result<Option<InputDigest>, RuleError> {
    fields.read("input_digest", "32 hexadecimal digits", |value| InputDigest::parse(value.as_str()?))
}

fn run_key(fields: &Fields<'_>) -> Result<Option<String>, RuleError> {
    Ok(fields.text("idempotency_key", KEY_BYTES_MAX)?.map(str::to_owned))
}

fn completion(fields: &Fields<'_>) -> Result<TriggerCompletion, RuleError> {
    Ok(TriggerCompletion {
        functions: functions(fields)?,
        triggered_xact: required_xact(fields, "triggered_xact_id")?,
        run_key: run_key(fields)?,
        digest: digest(fields)?,
    })
}

fn failure(fields: &Fields<'_>) -> Result<AttemptFailure, RuleError> {
    Ok(AttemptFailure {
        functions: functions(fields)?,
        run_key: run_key(fields)?,
        attempts: fields.whole("attempts", 1, u64::from(u32::MAX))?.map(|attempts| attempts as u32),
        retry_at_ms: fields.whole("retry_at_ms", 0, u64::MAX)?,
        is_final: fields.flag("final")?,
    })
}

fn requests(fields: &Fields<'_>) -> Result<Vec<TriggerRequest>, RuleError> {
    let listed = fields.list("triggered_functions", ROW_TRIGGERS_MAX)?;
    let listed = fields.required("triggered_functions", listed, "an array of triggers")?.iter().enumerate();
    let path = fields.path("triggered_functions");
    listed.map(|(index, request)| TriggerRequest::read(&format!("{path}.{index}"), request)).collect()
}

impl TriggerRequest {
    fn read(path: &str, value: &Value) -> Result<TriggerRequest, RuleError> {
        let fields = Fields::new(path, Some(value))?;
        let function = fields.required("function_id", fields.value("function_id"), "a function")?;
        let scope = match fields.value("scope") {
            // short form, which has no members
            Some(Value::String(name)) => TriggerScope::read(&fields.path("scope"), Some(&json!({"type": name})))?,
            scope => TriggerScope::read(&fields.path("scope"), scope)?,
        };
        let selection = fields.value(SELECTION);
        Ok(TriggerRequest {
            function: OnlineFunction::read(&fields.path("function_id"), function)?,
            scope,
            run_key: run_key(&fields)?,
            requested_by: None,
            selection: selection.map(|value| RuleSelection::read(&fields.path(SELECTION), value)).transpose()?,
        })
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "function_id": self.function.to_json(), "scope": self.scope.to_json(), "idempotency_key": self.run_key,
        });
        if let Some(selection) = &self.selection {
            value[SELECTION] = selection.to_json();
        }
        value
    }
}

impl RuleSelection {
    fn read(path: &str, value: &Value) -> Result<RuleSelection, RuleError> {
        let fields = Fields::new(path, Some(value))?;
        Ok(RuleSelection {
            triggered_xact: required_xact(&fields, "triggered_xact_id")?,
            cause_xact: required_xact(&fields, "cause_xact_id")?,
            forced: fields.word("forced", &FORCED)?.unwrap_or_default(),
            digest: fields.required("input_digest", digest(&fields)?, "32 hexadecimal digits")?,
            rules: rules(&fields, "rules")?,
            skips_logging: fields.flag("skip_logging")?,
            source: TriggerSource::read(&fields, "source")?,
        })
    }

    fn to_json(&self) -> Value {
        let forced = FORCED.iter().find(|(_, forced)| *forced == self.forced).map(|(word, _)| *word);
        json!({
            "triggered_xact_id": xact_text(self.triggered_xact), "cause_xact_id": xact_text(self.cause_xact),
            "forced": forced, "input_digest": self.digest.to_string(), "rules": self.rules,
            "skip_logging": self.skips_logging, "source": self.source.name(),
        })
    }
}

impl TriggerCompletion {
    fn to_json(&self) -> Value {
        json!({
            "function_ids": ids(&self.functions), "triggered_xact_id": xact_text(self.triggered_xact),
            "idempotency_key": self.run_key, "input_digest": self.digest.map(|digest| digest.to_string()),
        })
    }
}

/// Sender of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlSender {
    Client {
        /// Whether the sender has the right `update` on the object.
        may_update: bool,
    },
    /// Executor of online scoring, which its token proves.
    Executor,
}

/// Refusal of a control because of its sender: status 403.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlRefusal {
    #[error("is of the kind `{kind}`, which needs the permission `update` on the project's log")]
    NeedsUpdate { kind: &'static str },
    #[error(
        "is of the kind `{kind}`, which is reserved for the server; clients may send `trigger_functions`, \
          `state_force_reselect`, `state_enabled_force_rescore`, and `state_override` to `disabled`"
    )]
    Reserved { kind: &'static str },
}

/// Decides whether a sender may send a control.
pub fn check_control_sender(control: &ScoringControl, sender: ControlSender) -> Result<(), ControlRefusal> {
    let ControlSender::Client { may_update } = sender else { return Ok(()) };
    let kind = control.kind();
    let is_open = match control {
        ScoringControl::ForceReselect | ScoringControl::EnabledForceRescore => true,
        ScoringControl::TriggerFunctions(requests) => requests.iter().all(|request| request.selection.is_none()),
        ScoringControl::StateOverride(state) => matches!(state, ScoringState::Disabled(_)),
        ScoringControl::ScoreUpdate { .. }
        | ScoringControl::CompleteTriggers(_)
        | ScoringControl::MarkAttemptFailed(_)
        | ScoringControl::CancelTriggers { .. } => false,
    };
    match (is_open, may_update) {
        (false, _) => Err(ControlRefusal::Reserved { kind }),
        (true, false) => Err(ControlRefusal::NeedsUpdate { kind }),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Value {
        json!({"type": "function", "id": "7b6c"})
    }

    fn read(value: Value) -> ScoringControl {
        ScoringControl::read(&value).unwrap_or_else(|error| panic!("{value}: {error}"))
    }

    /// Controls of the contract, and whether clients may send them.
    fn contract() -> Vec<(Value, bool)> {
        vec![
            (json!({"kind": "score_update"}), false),
            (json!({"kind": "score_update", "token": "t"}), false),
            (json!({"kind": "state_override", "state": {"status": "disabled"}}), true),
            (json!({"kind": "state_override", "state": {"status": "enabled"}}), false),
            (json!({"kind": "state_override", "state": null}), false),
            (json!({"kind": "state_force_reselect"}), true),
            (json!({"kind": "state_enabled_force_rescore"}), true),
            (
                json!({"kind": "trigger_functions", "triggered_functions": [
                    {"function_id": function(), "scope": {"type": "trace"}, "idempotency_key": "k"}, {"function_id": function()}]}),
                true,
            ),
            (
                json!({"kind": "complete_triggered_functions", "function_ids": [function()], "triggered_xact_id": "7"}),
                false,
            ),
            (json!({"kind": "mark_attempt_failed", "function_ids": [function()]}), false),
            (json!({"kind": "cancel_triggered_functions", "rules": [Uuid::nil()]}), false),
        ]
    }

    #[test]
    fn only_the_executor_may_keep_the_books() {
        for (value, is_open) in contract() {
            let control = read(value.clone());
            assert_eq!(check_control_sender(&control, ControlSender::Executor), Ok(()));
            let found = check_control_sender(&control, ControlSender::Client { may_update: true });
            assert_eq!(found.is_ok(), is_open, "{value}");
            let kind = control.kind();
            let found = check_control_sender(&control, ControlSender::Client { may_update: false });
            let expected =
                if is_open { ControlRefusal::NeedsUpdate { kind } } else { ControlRefusal::Reserved { kind } };
            assert_eq!(found, Err(expected), "{value}");
        }
    }

    #[test]
    fn clients_cannot_select_for_rules() {
        let selection = RuleSelection {
            triggered_xact: 7,
            cause_xact: 6,
            forced: ForcedRun::Failed,
            digest: InputDigest::of_row(&Map::new()),
            rules: vec![Uuid::nil()],
            skips_logging: true,
            source: TriggerSource::Backfill,
        };
        let function = OnlineFunction::of_key("function_id:7b6c").expect("a key");
        let scope = TriggerScope::Trace;
        let request = TriggerRequest {
            function,
            scope,
            run_key: Some("k".to_owned()),
            requested_by: None,
            selection: Some(selection),
        };
        let control = ScoringControl::TriggerFunctions(vec![request]);
        assert_eq!(read(control.to_json()), control);
        let found = check_control_sender(&control, ControlSender::Client { may_update: true });
        assert_eq!(found, Err(ControlRefusal::Reserved { kind: "trigger_functions" }));
    }

    #[test]
    fn controls_survive_a_round_trip() {
        for (value, _) in contract() {
            let control = read(value);
            assert_eq!(read(control.to_json()), control);
        }
        let short = json!({"kind": "trigger_functions", "triggered_functions": [{"function_id": function(), "scope": "trace"}]});
        let ScoringControl::TriggerFunctions(requests) = read(short) else { panic!("another kind") };
        assert_eq!(requests[0].scope, TriggerScope::Trace);
    }

    #[test]
    fn controls_that_are_not_valid_are_refused_with_their_path() {
        let cases = [
            (json!([]), "`_async_scoring_control` is an array of 0 elements; it must be an object"),
            (
                json!({"kind": "x"}),
                "`_async_scoring_control.kind` is \"x\"; it must be `score_update` or `state_override`",
            ),
            (
                json!({"kind": "trigger_functions"}),
                "`_async_scoring_control.triggered_functions` is missing; it must be",
            ),
            (
                json!({"kind": "trigger_functions", "triggered_functions": [{"function_id": {}}]}),
                "`_async_scoring_control.triggered_functions.0.function_id.type` is missing; it must be",
            ),
            (
                json!({"kind": "complete_triggered_functions", "function_ids": []}),
                "`_async_scoring_control.triggered_xact_id` is missing; it must be a transaction id",
            ),
        ];
        for (value, begin) in cases {
            let error = ScoringControl::read(&value).expect_err("not valid").to_string();
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
