//! State of online scoring on a row: `_async_scoring_state`, read and written with its unknown members.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fields::{Fields, RuleError};
use crate::function_key::OnlineFunction;
use crate::input_digest::InputDigest;
use crate::scope::TriggerScope;

/// Field of a row with the state.
pub const STATE_FIELD: &str = "_async_scoring_state";
/// Upper bound of the triggers in the state of one row.
pub const ROW_TRIGGERS_MAX: usize = 1_000;
/// Bytes of an idempotency key or a token.
pub(crate) const KEY_BYTES_MAX: usize = 1_024;
/// Upper bound of the rules that wait for one trigger.
pub(crate) const TRIGGER_RULES_MAX: usize = 1_000;
/// Part of a key that tells a second trigger of one function from the first by its scope.
const SCOPE_MARK: &str = "#scope:";
const VALID_XACT: &str = "a transaction id: a text of decimal digits";

/// Origin of a trigger, which the scorer's span repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriggerSource {
    /// A rule, for a row that arrived.
    #[default]
    Online,
    /// A request of a client for certain rows.
    Manual,
    /// A rule, for older rows.
    Backfill,
}

const SOURCES: [(&str, TriggerSource); 3] =
    [("online", TriggerSource::Online), ("manual", TriggerSource::Manual), ("backfill", TriggerSource::Backfill)];

impl TriggerSource {
    pub fn name(self) -> &'static str {
        match self {
            TriggerSource::Online => "online",
            TriggerSource::Manual => "manual",
            TriggerSource::Backfill => "backfill",
        }
    }

    pub(crate) fn read(fields: &Fields<'_>, name: &str) -> Result<TriggerSource, RuleError> {
        Ok(fields.word(name, &SOURCES)?.unwrap_or_default())
    }
}

/// Status of a trigger as the state of the row tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerStatus {
    InFlight,
    Done,
    /// Given up until a client forces another run.
    Failed,
}

/// Trigger of one function on one row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowTrigger {
    pub function: OnlineFunction,
    pub scope: TriggerScope,
    /// Version at which the run reads its input.
    pub triggered_xact: u64,
    pub completed_xact: Option<u64>,
    pub run_key: Option<String>,
    pub attempts: u32,
    /// Digest of the input; unknown until the first run of a trigger by a client.
    pub digest: Option<InputDigest>,
    /// Rules that want the result. Empty if no rule has selected the function yet.
    pub rules: Vec<Uuid>,
    pub source: TriggerSource,
    /// User of the client that demanded the run.
    pub requested_by: Option<Uuid>,
    pub skips_logging: bool,
    /// Time of the next attempt, in milliseconds since the epoch.
    pub retry_at_ms: Option<u64>,
    pub has_failed: bool,
    /// Members of other versions of the program.
    pub more: Map<String, Value>,
}

impl RowTrigger {
    pub fn new(function: OnlineFunction, scope: TriggerScope, triggered_xact: u64) -> RowTrigger {
        RowTrigger {
            function,
            scope,
            triggered_xact,
            completed_xact: None,
            run_key: None,
            attempts: 0,
            digest: None,
            rules: Vec::new(),
            source: TriggerSource::Online,
            requested_by: None,
            skips_logging: false,
            retry_at_ms: None,
            has_failed: false,
            more: Map::new(),
        }
    }

    pub fn status(&self) -> TriggerStatus {
        if self.completed_xact.is_some_and(|completed| completed >= self.triggered_xact) {
            TriggerStatus::Done
        } else if self.has_failed {
            TriggerStatus::Failed
        } else {
            TriggerStatus::InFlight
        }
    }

    /// Returns whether the trigger is open, and ends when no rule wants its result any more.
    pub fn is_for_rules(&self) -> bool {
        self.status() == TriggerStatus::InFlight && self.source != TriggerSource::Manual && !self.rules.is_empty()
    }

    fn read(path: &str, function: OnlineFunction, value: &Value) -> Result<RowTrigger, RuleError> {
        let fields = Fields::new(path, Some(value))?;
        let read_digest = |value: &Value| InputDigest::parse(value.as_str()?);
        Ok(RowTrigger {
            function,
            scope: TriggerScope::read(&fields.path("scope"), fields.value("scope"))?,
            triggered_xact: fields.required("triggered_xact_id", xact(&fields, "triggered_xact_id")?, VALID_XACT)?,
            completed_xact: xact(&fields, "completed_xact_id")?,
            run_key: fields.text("idempotency_key", KEY_BYTES_MAX)?.map(str::to_owned),
            attempts: fields.whole("attempts", 0, u64::from(u32::MAX))?.unwrap_or(0) as u32,
            digest: fields.read("input_digest", "32 hexadecimal digits", read_digest)?,
            rules: rules(&fields, "rules")?,
            source: TriggerSource::read(&fields, "source")?,
            requested_by: fields.read("requested_by", "a UUID", |value| Uuid::parse_str(value.as_str()?).ok())?,
            skips_logging: fields.flag("skip_logging")?,
            retry_at_ms: fields.whole("retry_at_ms", 0, u64::MAX)?,
            has_failed: fields.flag("failed")?,
            more: others(value, &TRIGGER_MEMBERS),
        })
    }

    fn to_json(&self) -> Value {
        let mut members = json!({
            "triggered_xact_id": xact_text(self.triggered_xact), "completed_xact_id": self.completed_xact.map(xact_text),
            "idempotency_key": self.run_key, "attempts": self.attempts, "scope": self.scope.to_json(),
            "rules": self.rules, "source": self.source.name(), "skip_logging": self.skips_logging,
        });
        if let Some(digest) = self.digest {
            members["input_digest"] = digest.to_string().into();
        }
        if let Some(user) = self.requested_by {
            members["requested_by"] = user.to_string().into();
        }
        if let Some(retry_at_ms) = self.retry_at_ms {
            members["retry_at_ms"] = retry_at_ms.into();
        }
        if self.has_failed {
            members["failed"] = true.into();
        }
        with(members, &self.more)
    }
}

const TRIGGER_MEMBERS: [&str; 12] = [
    "triggered_xact_id",
    "completed_xact_id",
    "idempotency_key",
    "attempts",
    "scope",
    "rules",
    "source",
    "requested_by",
    "skip_logging",
    "input_digest",
    "retry_at_ms",
    "failed",
];

/// State of a row with triggers, or with marks for the selection of rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnabledScoring {
    /// Token that score updates of this state carry.
    pub token: Option<String>,
    pub skips_logging: bool,
    /// Last change that was no score merge.
    pub last_triggered_xact: Option<u64>,
    /// Write by which a client demanded a new selection of rules.
    pub reselect_xact: Option<u64>,
    /// Write that finished the span and asked for no rules.
    pub skipped_xact: Option<u64>,
    triggers: BTreeMap<String, RowTrigger>,
    /// Triggers under keys of other versions of the program.
    other_triggers: Map<String, Value>,
    more: Map<String, Value>,
}

const STATE_MEMBERS: [&str; 8] = [
    "status",
    "token",
    "function_ids",
    "skip_logging",
    "last_triggered_xact_id",
    "triggered_functions",
    "reselect_xact_id",
    "skipped_xact_id",
];

impl EnabledScoring {
    pub(crate) fn new(token: String) -> EnabledScoring {
        EnabledScoring { token: Some(token), ..EnabledScoring::default() }
    }

    /// Returns the trigger of a function in a scope, with its key.
    pub fn trigger(&self, function: &OnlineFunction, scope: &TriggerScope) -> Option<(&str, &RowTrigger)> {
        self.triggers().find(|(_, trigger)| trigger.function == *function && trigger.scope == *scope)
    }

    /// Returns all triggers with their keys.
    pub fn triggers(&self) -> impl Iterator<Item = (&str, &RowTrigger)> {
        self.triggers.iter().map(|(key, trigger)| (key.as_str(), trigger))
    }

    pub(crate) fn triggers_mut(&mut self) -> impl Iterator<Item = &mut RowTrigger> {
        self.triggers.values_mut()
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&RowTrigger) -> bool) {
        self.triggers.retain(|_, trigger| keep(trigger));
    }

    /// Sets the trigger of its function and scope. Returns whether the state has a place for it.
    #[must_use]
    pub(crate) fn set(&mut self, trigger: RowTrigger) -> bool {
        let plain = trigger.function.key();
        let known = self.trigger(&trigger.function, &trigger.scope).map(|(key, _)| key.to_owned());
        let key = match known {
            Some(key) => key,
            // clients look for the plain key, so only a second scope of the function has another one
            None if !self.triggers.contains_key(&plain) => plain,
            None => format!("{plain}{SCOPE_MARK}{}", trigger.scope.to_json()),
        };
        if self.triggers.len() >= ROW_TRIGGERS_MAX && !self.triggers.contains_key(&key) {
            return false;
        }
        self.triggers.insert(key, trigger);
        true
    }

    fn read(value: &Value) -> Result<EnabledScoring, RuleError> {
        let fields = Fields::new(STATE_FIELD, Some(value))?;
        let (mut triggers, mut other_triggers) = (BTreeMap::new(), Map::new());
        if let Some(members) = fields.read("triggered_functions", "an object", Value::as_object)? {
            if members.len() > ROW_TRIGGERS_MAX {
                let valid = format!("an object of at most {ROW_TRIGGERS_MAX} members");
                return Err(fields.error("triggered_functions", valid));
            }
            for (key, value) in members {
                let function = key.split_once(SCOPE_MARK).map_or(key.as_str(), |(plain, _)| plain);
                match OnlineFunction::of_key(function) {
                    Some(function) => {
                        let path = format!("{}.{key}", fields.path("triggered_functions"));
                        triggers.insert(key.clone(), RowTrigger::read(&path, function, value)?);
                    }
                    None => {
                        other_triggers.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        Ok(EnabledScoring {
            token: fields.text("token", KEY_BYTES_MAX)?.map(str::to_owned),
            skips_logging: fields.flag("skip_logging")?,
            last_triggered_xact: xact(&fields, "last_triggered_xact_id")?,
            reselect_xact: xact(&fields, "reselect_xact_id")?,
            skipped_xact: xact(&fields, "skipped_xact_id")?,
            triggers,
            other_triggers,
            more: others(value, &STATE_MEMBERS),
        })
    }

    fn to_json(&self) -> Value {
        let mut functions: Vec<&OnlineFunction> = Vec::new();
        for trigger in self.triggers.values() {
            if !functions.contains(&&trigger.function) {
                functions.push(&trigger.function);
            }
        }
        let triggers = self.triggers.iter().map(|(key, trigger)| (key.clone(), trigger.to_json()));
        let triggers: Map<_, _> = triggers.chain(self.other_triggers.clone()).collect();
        let mut members = json!({
            "status": "enabled", "token": self.token,
            "function_ids": functions.into_iter().map(OnlineFunction::to_json).collect::<Vec<_>>(),
            "skip_logging": self.skips_logging, "last_triggered_xact_id": self.last_triggered_xact.map(xact_text),
            "triggered_functions": triggers,
        });
        let marks = [("reselect_xact_id", self.reselect_xact), ("skipped_xact_id", self.skipped_xact)];
        for (name, xact) in marks.into_iter().filter_map(|(name, xact)| Some((name, xact?))) {
            members[name] = xact_text(xact).into();
        }
        with(members, &self.more)
    }
}

/// State of online scoring on a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ScoringState {
    #[default]
    Absent,
    /// No rule may score the row. Holds the members of other versions of the program.
    Disabled(Map<String, Value>),
    Enabled(Box<EnabledScoring>),
}

impl ScoringState {
    pub fn disabled() -> ScoringState {
        ScoringState::Disabled(Map::new())
    }

    /// Reads the state of a row.
    pub fn of_row(row: &Map<String, Value>) -> Result<ScoringState, RuleError> {
        ScoringState::read(row.get(STATE_FIELD))
    }

    pub fn read(value: Option<&Value>) -> Result<ScoringState, RuleError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(ScoringState::Absent) };
        let fields = Fields::new(STATE_FIELD, Some(value))?;
        let status = fields.word("status", &[("enabled", true), ("disabled", false)])?;
        match fields.required("status", status, "`enabled` or `disabled`")? {
            true => EnabledScoring::read(value).map(Box::new).map(ScoringState::Enabled),
            false => Ok(ScoringState::Disabled(others(value, &["status"]))),
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            ScoringState::Absent => Value::Null,
            ScoringState::Disabled(more) => with(json!({"status": "disabled"}), more),
            ScoringState::Enabled(enabled) => enabled.to_json(),
        }
    }

    pub fn enabled(&self) -> Option<&EnabledScoring> {
        match self {
            ScoringState::Enabled(enabled) => Some(enabled),
            ScoringState::Absent | ScoringState::Disabled(_) => None,
        }
    }

    /// Returns the triggers that still have to run, with their keys.
    pub fn open_triggers(&self) -> impl Iterator<Item = (&str, &RowTrigger)> {
        let all = self.enabled().into_iter().flat_map(EnabledScoring::triggers);
        all.filter(|(_, trigger)| trigger.status() == TriggerStatus::InFlight)
    }

    /// Returns the rules that open triggers wait for. The executor cancels those that are paused or deleted.
    pub fn waiting_rules(&self) -> BTreeSet<Uuid> {
        let waiting = self.open_triggers().filter(|(_, trigger)| trigger.is_for_rules());
        waiting.flat_map(|(_, trigger)| trigger.rules.iter().copied()).collect()
    }
}

/// Returns a transaction id as clients compare it: 19 digits.
pub fn xact_text(xact: u64) -> String {
    format!("{xact:019}")
}

pub(crate) fn xact(fields: &Fields<'_>, name: &str) -> Result<Option<u64>, RuleError> {
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    fields.read(name, VALID_XACT, |value| value.as_str().filter(is_number)?.parse().ok())
}

pub(crate) fn required_xact(fields: &Fields<'_>, name: &str) -> Result<u64, RuleError> {
    fields.required(name, xact(fields, name)?, VALID_XACT)
}

pub(crate) fn rules(fields: &Fields<'_>, name: &str) -> Result<Vec<Uuid>, RuleError> {
    let listed = fields.list(name, TRIGGER_RULES_MAX)?.unwrap_or_default();
    let ids: Option<Vec<Uuid>> = listed.iter().map(|id| Uuid::parse_str(id.as_str()?).ok()).collect();
    ids.ok_or_else(|| fields.error(name, "an array of UUIDs"))
}

/// Returns the members of an object beside the known ones.
fn others(value: &Value, known: &[&str]) -> Map<String, Value> {
    let members = value.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn with(mut value: Value, more: &Map<String, Value>) -> Value {
    if let Value::Object(members) = &mut value {
        members.extend(more.clone());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Value {
        json!({
            "status": "enabled", "token": "t", "function_ids": [{"type": "function", "id": "7b6c"}],
            "skip_logging": false, "last_triggered_xact_id": "1000192656880881099",
            "triggered_functions": {"function_id:7b6c": {
                "triggered_xact_id": "1000192656880881099", "completed_xact_id": null, "idempotency_key": "k",
                "attempts": 0, "scope": {"type": "span"},
            }},
        })
    }

    #[test]
    fn the_state_of_the_contract_is_read_and_written() {
        let state = ScoringState::read(Some(&contract())).expect("valid");
        let open: Vec<_> = state.open_triggers().collect();
        assert_eq!((open.len(), open[0].0, open[0].1.attempts), (1, "function_id:7b6c", 0));
        let written = state.to_json();
        for name in ["status", "token", "function_ids", "skip_logging", "last_triggered_xact_id"] {
            assert_eq!(written[name], contract()[name], "{name}");
        }
        let trigger = &contract()["triggered_functions"]["function_id:7b6c"];
        for (name, value) in trigger.as_object().expect("an object") {
            assert_eq!(written["triggered_functions"]["function_id:7b6c"][name], *value, "{name}");
        }
        assert_eq!(ScoringState::read(Some(&written)), Ok(state));
    }

    #[test]
    fn members_of_other_versions_are_kept() {
        let mut value = contract();
        value["later"] = json!({"a": 1});
        value["triggered_functions"]["function_id:7b6c"]["later"] = json!([2]);
        value["triggered_functions"]["slug:x"] = json!("any");
        let written = ScoringState::read(Some(&value)).expect("valid").to_json();
        assert_eq!(written["later"], json!({"a": 1}));
        assert_eq!(written["triggered_functions"]["function_id:7b6c"]["later"], json!([2]));
        assert_eq!(written["triggered_functions"]["slug:x"], "any");
        let disabled = json!({"status": "disabled", "later": 1});
        assert_eq!(ScoringState::read(Some(&disabled)).expect("valid").to_json(), disabled);
        assert_eq!(ScoringState::read(None).expect("valid").to_json(), Value::Null);
    }

    #[test]
    fn the_status_compares_transactions() {
        let mut trigger =
            RowTrigger::new(OnlineFunction::of_key("function_id:f").expect("a key"), TriggerScope::Span, 10);
        assert_eq!(trigger.status(), TriggerStatus::InFlight);
        trigger.completed_xact = Some(9);
        assert_eq!(trigger.status(), TriggerStatus::InFlight);
        trigger.has_failed = true;
        assert_eq!(trigger.status(), TriggerStatus::Failed);
        trigger.completed_xact = Some(10);
        assert_eq!(trigger.status(), TriggerStatus::Done);
    }

    #[test]
    fn a_function_has_a_trigger_for_each_scope() {
        let function = || OnlineFunction::of_key("function_id:f").expect("a key");
        let mut state = EnabledScoring::default();
        assert!(state.set(RowTrigger::new(function(), TriggerScope::Trace, 1)));
        assert!(state.set(RowTrigger::new(function(), TriggerScope::Span, 2)));
        assert!(state.set(RowTrigger::new(function(), TriggerScope::Trace, 3)));
        let keys: Vec<_> = state.triggers().map(|(key, trigger)| (key.to_owned(), trigger.triggered_xact)).collect();
        let second = "function_id:f#scope:{\"type\":\"span\"}".to_owned();
        assert_eq!(keys, [("function_id:f".to_owned(), 3), (second, 2)]);
        let state = ScoringState::Enabled(Box::new(state));
        assert_eq!(ScoringState::read(Some(&state.to_json())), Ok(state));
    }

    #[test]
    fn states_that_are_not_valid_are_refused_with_their_path() {
        let mut wrong_xact = contract();
        wrong_xact["triggered_functions"]["function_id:7b6c"]["triggered_xact_id"] = json!("x");
        let cases = [
            (json!("enabled"), "`_async_scoring_state` is \"enabled\"; it must be an object"),
            (json!({}), "`_async_scoring_state.status` is missing; it must be `enabled` or `disabled`"),
            (
                wrong_xact,
                "`_async_scoring_state.triggered_functions.function_id:7b6c.triggered_xact_id` is \"x\"; it must be",
            ),
        ];
        for (value, begin) in cases {
            let error = ScoringState::read(Some(&value)).expect_err("not valid").to_string();
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
