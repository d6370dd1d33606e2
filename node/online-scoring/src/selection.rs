//! Selection of functions by rules: which triggers a version of a row, or a silent trace or group, causes.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::candidates::{RowVersion, check_candidate, is_finished, root_span_id_of, text};
use crate::control::{CONTROL_FIELD, ForcedRun, RuleSelection, ScoringControl, TriggerRequest};
use crate::control_effects::SelectionEffect;
use crate::function_key::OnlineFunction;
use crate::identity::run_key;
use crate::input_digest::InputDigest;
use crate::rule::OnlineRule;
use crate::scope::{RuleScope, TriggerScope};
use crate::state::{ScoringState, TriggerSource};

/// Rule with the transaction from which it judges rows. It never judges older ones by itself.
#[derive(Clone, Copy, Debug)]
pub struct RuleInForce<'a> {
    pub rule: &'a OnlineRule,
    /// Creation of the rule, or its last activation.
    pub since_xact: u64,
}

/// Returns the triggers of scope `span` that a version of a row causes.
///
/// `passes` evaluates the filter of a rule on the row. It is called only for rules that select the row otherwise.
pub fn select_span(
    rules: &[RuleInForce<'_>],
    version: &RowVersion<'_>,
    state: &ScoringState,
    mut passes: impl FnMut(&OnlineRule) -> bool,
) -> Vec<TriggerRequest> {
    let Some((cause_xact, forced)) = cause_of(version, state) else { return Vec::new() };
    let Some(trace) = root_span_id_of(version.row) else { return Vec::new() };
    if check_candidate(version.row, state).is_err() {
        return Vec::new();
    }
    let selects = |in_force: &&RuleInForce<'_>| {
        let RuleScope::Span(spans) = &in_force.rule.config.scope else { return false };
        is_in_force(in_force, cause_xact, trace) && spans.matches(version.row) && passes(in_force.rule)
    };
    let selected: Vec<&OnlineRule> = rules.iter().filter(selects).map(|in_force| in_force.rule).collect();
    if selected.is_empty() {
        return Vec::new();
    }
    let selection = RuleSelection {
        triggered_xact: version.xact,
        cause_xact,
        forced,
        digest: InputDigest::of_row(version.row),
        rules: Vec::new(),
        skips_logging: true,
        source: TriggerSource::Online,
    };
    requests(&selected, &TriggerScope::Span, &selection, state)
}

/// Returns the write that counts for a version, and what it forces.
fn cause_of(version: &RowVersion<'_>, state: &ScoringState) -> Option<(u64, ForcedRun)> {
    let enabled = state.enabled();
    let skipped = enabled.and_then(|enabled| enabled.skipped_xact).unwrap_or_default();
    let finish = version.finish_xact.filter(|finish| *finish > skipped);
    let reselect = enabled.and_then(|enabled| enabled.reselect_xact);
    match (finish, reselect) {
        (Some(finish), reselect) if reselect.is_none_or(|reselect| finish > reselect) => Some((finish, ForcedRun::No)),
        // the row may have come whole, which it does not tell
        (_, Some(reselect)) => is_finished(version.row, true).then_some((reselect, ForcedRun::Failed)),
        (_, None) => None,
    }
}

/// Trace or group without writes for the idle time of a rule.
#[derive(Clone, Debug)]
pub struct SilentInput<'a> {
    /// Row that keeps the state: the root of the trace, or of the first trace of the group.
    pub root: &'a Map<String, Value>,
    /// Scope of the trigger: a trace or a group.
    pub scope: TriggerScope,
    /// Newest write to the trace or group that counts as a change.
    pub changed_xact: u64,
    /// Version at which the input was read.
    pub version_xact: u64,
    pub digest: InputDigest,
}

/// Returns the triggers that a silent trace or group causes for a rule that its root passes.
pub fn select_silent(
    in_force: &RuleInForce<'_>,
    input: &SilentInput<'_>,
    state: &ScoringState,
    passes: impl FnOnce(&OnlineRule) -> bool,
) -> Vec<TriggerRequest> {
    let sampled = match &input.scope {
        TriggerScope::Group { value, .. } => Some(value.as_str()),
        TriggerScope::Trace | TriggerScope::Span => root_span_id_of(input.root),
    };
    let is_of_scope = match (&in_force.rule.config.scope, &input.scope) {
        (RuleScope::Trace { .. }, TriggerScope::Trace) => true,
        (RuleScope::Group(group), TriggerScope::Group { key, .. }) => group.group_by.text() == key,
        _ => false,
    };
    let reselect = state.enabled().and_then(|enabled| enabled.reselect_xact).unwrap_or_default();
    let cause_xact = input.changed_xact.max(reselect);
    let Some(sampled) = sampled.filter(|_| is_of_scope) else { return Vec::new() };
    let is_candidate = check_candidate(input.root, state).is_ok();
    if !is_candidate || !is_in_force(in_force, cause_xact, sampled) || !passes(in_force.rule) {
        return Vec::new();
    }
    let forced = if reselect >= input.changed_xact { ForcedRun::Failed } else { ForcedRun::No };
    let selection = RuleSelection {
        triggered_xact: input.version_xact,
        cause_xact,
        forced,
        digest: input.digest,
        rules: Vec::new(),
        skips_logging: true,
        source: TriggerSource::Online,
    };
    requests(&[in_force.rule], &input.scope, &selection, state)
}

/// Returns the triggers of a rule for an older row, at the request of a client.
///
/// `now_xact` is the newest transaction of the log. Sampling does not apply, as the request names the rows.
pub fn select_backfill(
    rule: &OnlineRule,
    input: &SilentInput<'_>,
    now_xact: u64,
    is_forced: bool,
    state: &ScoringState,
) -> Vec<TriggerRequest> {
    if check_candidate(input.root, state).is_err() {
        return Vec::new();
    }
    let selection = RuleSelection {
        triggered_xact: now_xact,
        cause_xact: now_xact,
        forced: if is_forced { ForcedRun::Always } else { ForcedRun::Failed },
        digest: input.digest,
        rules: Vec::new(),
        skips_logging: true,
        source: TriggerSource::Backfill,
    };
    requests(&[rule], &input.scope, &selection, state)
}

fn is_in_force(in_force: &RuleInForce<'_>, cause_xact: u64, sampled: &str) -> bool {
    let rule = in_force.rule;
    rule.is_active() && cause_xact > in_force.since_xact && rule.config.sampling_rate.selects(rule.id, sampled)
}

/// Returns one request for each function of the rules, without those that would change nothing.
fn requests(
    rules: &[&OnlineRule],
    scope: &TriggerScope,
    selection: &RuleSelection,
    state: &ScoringState,
) -> Vec<TriggerRequest> {
    let mut functions: Vec<&OnlineFunction> = Vec::new();
    for function in rules.iter().flat_map(|rule| &rule.config.functions) {
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let request = |function: &OnlineFunction| {
        let wanting: Vec<&OnlineRule> =
            rules.iter().copied().filter(|rule| rule.config.functions.contains(function)).collect();
        let selection = RuleSelection {
            rules: wanting.iter().map(|rule| rule.id).collect(),
            skips_logging: wanting.iter().all(|rule| rule.config.skips_logging),
            ..selection.clone()
        };
        let known = state.enabled().and_then(|enabled| enabled.trigger(function, scope)).map(|(_, trigger)| trigger);
        let changes = SelectionEffect::of(known, scope, &selection) != SelectionEffect::Nothing;
        let forced = (selection.forced != ForcedRun::No).then_some(selection.cause_xact);
        let key = run_key(function, scope, Some(selection.digest), forced);
        changes.then(|| TriggerRequest {
            function: function.clone(),
            scope: scope.clone(),
            run_key: Some(key),
            requested_by: None,
            selection: Some(selection),
        })
    };
    functions.into_iter().filter_map(request).collect()
}

impl TriggerRequest {
    /// Returns whether the request causes a run, and not only adds rules to one.
    pub fn causes_run(&self, state: &ScoringState) -> bool {
        let known = state.enabled().and_then(|enabled| enabled.trigger(&self.function, &self.scope));
        self.selection.as_ref().is_none_or(|selection| {
            SelectionEffect::of(known.map(|(_, trigger)| trigger), &self.scope, selection) == SelectionEffect::Run
        })
    }

    /// Takes a rule out of the request, such as one at its cap. Returns whether another rule still wants the result.
    pub fn drop_rule(&mut self, rule: Uuid) -> bool {
        let Some(selection) = &mut self.selection else { return true };
        selection.rules.retain(|wanting| *wanting != rule);
        !selection.rules.is_empty()
    }
}

/// Returns the write that stores triggers in the state of a row.
pub fn trigger_row(row: &Map<String, Value>, requests: Vec<TriggerRequest>) -> Option<Value> {
    let id = text(row, "id").filter(|_| !requests.is_empty())?;
    let control = ScoringControl::TriggerFunctions(requests).to_json();
    Some(json!({"id": id, "_is_merge": true, CONTROL_FIELD: control}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_effects::{control_effect, skip_effect};

    const RULE: &str = "00000000-0000-0000-0000-0000000000a1";

    fn rule(id: &str, online: Value) -> OnlineRule {
        let mut config = json!({"sampling_rate": 1, "scorers": [{"type": "function", "id": "f"}]});
        for (name, value) in online.as_object().expect("an object") {
            config[name] = value.clone();
        }
        let record = json!({
            "id": id, "project_id": RULE, "name": "n", "score_type": "online", "config": {"online": config},
        });
        OnlineRule::read(record.as_object().expect("an object")).expect("a valid rule")
    }

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    fn finished() -> Map<String, Value> {
        row(json!({"id": "r", "span_id": "s", "root_span_id": "t", "output": 1, "metrics": {"end": 1}}))
    }

    fn select(rules: &[&OnlineRule], row: &Map<String, Value>, state: &ScoringState) -> Vec<TriggerRequest> {
        let rules: Vec<_> = rules.iter().map(|rule| RuleInForce { rule, since_xact: 5 }).collect();
        select_span(&rules, &RowVersion { row, xact: 12, finish_xact: Some(10) }, state, |rule| {
            rule.config.filter.is_none()
        })
    }

    #[test]
    fn a_finished_candidate_triggers_each_function_once() {
        let first = rule(RULE, json!({}));
        let scorers = json!([{"type": "function", "id": "f"}, {"type": "global", "name": "Levenshtein"}]);
        let second = rule("00000000-0000-0000-0000-0000000000a2", json!({"scorers": scorers, "skip_logging": true}));
        let found = select(&[&first, &second], &finished(), &ScoringState::Absent);
        let found: Vec<_> = found
            .iter()
            .map(|request| {
                let selection = request.selection.as_ref().expect("of the executor");
                (request.function.key(), selection.rules.len(), selection.skips_logging, selection.triggered_xact)
            })
            .collect();
        let expected =
            [("function_id:f".to_owned(), 2, false, 12), ("global:scorer:Levenshtein".to_owned(), 1, true, 12)];
        assert_eq!(found, expected);
    }

    #[test]
    fn rules_leave_out_rows_that_are_not_theirs() {
        let plain = rule(RULE, json!({}));
        let cases = [
            ("paused", rule(RULE, json!({"status": "paused"})), finished()),
            ("not sampled", rule(RULE, json!({"sampling_rate": 0})), finished()),
            ("filtered", rule(RULE, json!({"btql_filter": "false"})), finished()),
            ("another scope", rule(RULE, json!({"scope": {"type": "trace"}})), finished()),
            ("another name", rule(RULE, json!({"apply_to_span_names": ["x"]})), finished()),
            ("of a scorer", plain.clone(), row(json!({"id": "r", "span_attributes": {"purpose": "scorer"}}))),
        ];
        for (why, rule, row) in cases {
            assert_eq!(select(&[&rule], &row, &ScoringState::Absent), [], "{why}");
        }
        assert_eq!(select(&[&plain], &finished(), &ScoringState::disabled()), []);
        let later = [RuleInForce { rule: &plain, since_xact: 10 }];
        let row = finished();
        let version = RowVersion { row: &row, xact: 12, finish_xact: Some(10) };
        assert_eq!(select_span(&later, &version, &ScoringState::Absent, |_| true), [], "older than the rule");
        let version = RowVersion { finish_xact: None, ..version };
        let earlier = [RuleInForce { rule: &plain, since_xact: 5 }];
        assert_eq!(select_span(&earlier, &version, &ScoringState::Absent, |_| true), [], "finished before");
    }

    #[test]
    fn a_version_that_comes_again_triggers_nothing() {
        let rule = rule(RULE, json!({}));
        let requests = select(&[&rule], &finished(), &ScoringState::Absent);
        let control = ScoringControl::TriggerFunctions(requests);
        let state = control_effect(&ScoringState::Absent, "r", 13, &control).expect("a place").state;
        assert_eq!(select(&[&rule], &finished(), &state), []);
    }

    #[test]
    fn a_skipped_write_triggers_nothing_until_the_row_comes_whole() {
        let rule = rule(RULE, json!({}));
        let state = skip_effect(&ScoringState::Absent, "r", 10, true);
        assert_eq!(select(&[&rule], &finished(), &state), []);
        let row = finished();
        let rules = [RuleInForce { rule: &rule, since_xact: 5 }];
        let version = RowVersion { row: &row, xact: 12, finish_xact: Some(11) };
        assert_eq!(select_span(&rules, &version, &state, |_| true).len(), 1);
    }

    #[test]
    fn a_forced_selection_triggers_what_a_rule_has_not_seen() {
        let rule = rule(RULE, json!({}));
        let state = control_effect(&ScoringState::Absent, "r", 11, &ScoringControl::ForceReselect);
        let state = state.expect("a possible control").state;
        let row = finished();
        let rules = [RuleInForce { rule: &rule, since_xact: 5 }];
        let version = RowVersion { row: &row, xact: 11, finish_xact: None };
        assert_eq!(select_span(&rules, &version, &state, |_| true).len(), 1);
        let open = self::row(json!({"id": "r"}));
        let version = RowVersion { row: &open, ..version };
        assert_eq!(select_span(&rules, &version, &state, |_| true), []);
    }

    #[test]
    fn silent_traces_and_groups_trigger_rules_of_their_scope() {
        let trace = rule(RULE, json!({"scope": {"type": "trace"}}));
        let scope = json!({"type": "group", "group_by": "metadata.s", "placement": "first"});
        let group = rule(RULE, json!({"scope": scope}));
        let root = finished();
        let of_group = TriggerScope::Group { key: "metadata.s".to_owned(), value: "v".to_owned() };
        let of_other = TriggerScope::Group { key: "metadata.x".to_owned(), value: "v".to_owned() };
        let count = |rule: &OnlineRule, scope: &TriggerScope, changed_xact| {
            let digest = InputDigest::of_trace(&[&root]);
            let input = SilentInput { root: &root, scope: scope.clone(), changed_xact, version_xact: 20, digest };
            let in_force = RuleInForce { rule, since_xact: 5 };
            select_silent(&in_force, &input, &ScoringState::Absent, |_| true).len()
        };
        assert_eq!((count(&trace, &TriggerScope::Trace, 10), count(&trace, &of_group, 10)), (1, 0));
        assert_eq!((count(&group, &of_group, 10), count(&group, &of_other, 10)), (1, 0));
        assert_eq!((count(&trace, &TriggerScope::Trace, 5), count(&trace, &TriggerScope::Span, 10)), (0, 0));
    }

    #[test]
    fn a_backfill_repeats_completed_functions_only_by_force() {
        let rule = rule(RULE, json!({"sampling_rate": 0}));
        let root = finished();
        let digest = InputDigest::of_row(&root);
        let input = SilentInput { root: &root, scope: TriggerScope::Span, changed_xact: 1, version_xact: 1, digest };
        let requests = select_backfill(&rule, &input, 30, false, &ScoringState::Absent);
        assert_eq!(requests.len(), 1);
        let write = trigger_row(&root, requests).expect("a write");
        let control = ScoringControl::read(&write[CONTROL_FIELD]).expect("valid");
        let mut state = control_effect(&ScoringState::Absent, "r", 31, &control).expect("a place").state;
        let function = OnlineFunction::of_key("function_id:f").expect("a key");
        let completion = crate::control::TriggerCompletion {
            functions: vec![function],
            triggered_xact: 30,
            run_key: None,
            digest: None,
        };
        let control = ScoringControl::CompleteTriggers(completion);
        state = control_effect(&state, "r", 32, &control).expect("a possible control").state;
        assert_eq!(select_backfill(&rule, &input, 40, false, &state), []);
        assert_eq!(select_backfill(&rule, &input, 40, true, &state).len(), 1);
    }

    #[test]
    fn a_request_without_rules_has_nobody_who_wants_it() {
        let rule = rule(RULE, json!({}));
        let mut requests = select(&[&rule], &finished(), &ScoringState::Absent);
        assert!(requests[0].drop_rule(Uuid::nil()));
        assert!(!requests[0].drop_rule(rule.id));
    }
}
