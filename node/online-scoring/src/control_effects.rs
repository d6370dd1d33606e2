//! Effects of writes on the state of a row. The write path applies them to the current state, in the order of the writes.
//!
//! All effects are idempotent: executors may repeat a write, and two executors may send the same one.

use thiserror::Error;
use uuid::Uuid;

use crate::control::{AttemptFailure, ForcedRun, RuleSelection, ScoringControl, TriggerCompletion, TriggerRequest};
use crate::identity::{run_key, state_token};
use crate::scope::TriggerScope;
use crate::state::{EnabledScoring, ROW_TRIGGERS_MAX, RowTrigger, ScoringState, TriggerSource, TriggerStatus};

/// Refusal of a control because of the state of the row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlEffectError {
    #[error("row `{row_id}` has {ROW_TRIGGERS_MAX} functions in `_async_scoring_state`, which is the maximum")]
    TooManyTriggers { row_id: String },
}

/// Effect of a control on a row.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlEffect {
    pub state: ScoringState,
    /// Whether the other members of the write apply. False for results that are stale or already applied.
    pub applies: bool,
    /// Whether the write counts as a change of the row.
    pub is_change: bool,
}

/// Returns the effect of a control in a write with this transaction id.
///
/// A write that replaces the row starts from [`ScoringState::Absent`], because the scores of the old row go with it.
pub fn control_effect(
    state: &ScoringState,
    row_id: &str,
    xact: u64,
    control: &ScoringControl,
) -> Result<ControlEffect, ControlEffectError> {
    let mut state = state.clone();
    let mut applies = true;
    match control {
        ScoringControl::ScoreUpdate { token, completes } => {
            applies = is_current(&state, token.as_deref())
                && completes.as_ref().is_none_or(|completion| is_awaited(&state, completion));
            if let (true, Some(completion)) = (applies, completes) {
                complete(&mut state, completion);
            }
        }
        ScoringControl::StateOverride(new) => state = new.clone(),
        ScoringControl::ForceReselect => {
            if let Some(enabled) = enable(&mut state, row_id, xact) {
                enabled.reselect_xact = Some(xact);
            }
        }
        ScoringControl::EnabledForceRescore => rescore(&mut state, xact),
        ScoringControl::TriggerFunctions(requests) => {
            if let Some(enabled) = enable(&mut state, row_id, xact) {
                for request in requests {
                    trigger(enabled, xact, request, row_id)?;
                }
            } else {
                applies = false;
            }
        }
        ScoringControl::CompleteTriggers(completion) => complete(&mut state, completion),
        ScoringControl::MarkAttemptFailed(failure) => applies = mark_failed(&mut state, failure),
        ScoringControl::CancelTriggers { rules } => cancel(&mut state, rules),
    }
    let is_change = !matches!(
        control,
        ScoringControl::ScoreUpdate { .. }
            | ScoringControl::CompleteTriggers(_)
            | ScoringControl::MarkAttemptFailed(_)
            | ScoringControl::CancelTriggers { .. }
            | ScoringControl::TriggerFunctions(_)
            | ScoringControl::StateOverride(_)
    );
    Ok(ControlEffect { state, applies, is_change })
}

/// Returns the state after a write with `_skip_async_scoring`.
///
/// `finishes` tells whether the write finished the span. Other skipped writes leave the judgement of earlier ones.
pub fn skip_effect(state: &ScoringState, row_id: &str, xact: u64, finishes: bool) -> ScoringState {
    let mut state = state.clone();
    if finishes && let Some(enabled) = enable(&mut state, row_id, xact) {
        enabled.skipped_xact = Some(xact);
    }
    state
}

/// Returns the state as an enabled one, unless scoring of the row is disabled.
fn enable<'a>(state: &'a mut ScoringState, row_id: &str, xact: u64) -> Option<&'a mut EnabledScoring> {
    if *state == ScoringState::Absent {
        *state = ScoringState::Enabled(Box::new(EnabledScoring::new(state_token(row_id, xact))));
    }
    match state {
        ScoringState::Enabled(enabled) => Some(enabled),
        ScoringState::Absent | ScoringState::Disabled(_) => None,
    }
}

/// Returns whether a score update belongs to this state. One without a token belongs to every state.
fn is_current(state: &ScoringState, token: Option<&str>) -> bool {
    match state {
        ScoringState::Absent => token.is_none(),
        ScoringState::Disabled(_) => false,
        ScoringState::Enabled(enabled) => token.is_none_or(|token| enabled.token.as_deref() == Some(token)),
    }
}

fn is_meant(trigger: &RowTrigger, completion: &TriggerCompletion) -> bool {
    completion.functions.contains(&trigger.function)
        && completion.run_key.as_ref().is_none_or(|key| trigger.run_key.as_ref() == Some(key))
}

/// Returns whether an open trigger waits for the result.
fn is_awaited(state: &ScoringState, completion: &TriggerCompletion) -> bool {
    state.open_triggers().any(|(_, trigger)| is_meant(trigger, completion))
}

fn complete(state: &mut ScoringState, completion: &TriggerCompletion) {
    let ScoringState::Enabled(enabled) = state else { return };
    for trigger in enabled.triggers_mut().filter(|trigger| is_meant(trigger, completion)) {
        // an equal key means an equal input, so the result also counts for a row that was replaced meanwhile
        let own_xact = completion.run_key.as_ref().map(|_| trigger.triggered_xact);
        trigger.completed_xact = trigger.completed_xact.max(own_xact).max(Some(completion.triggered_xact));
        if trigger.status() == TriggerStatus::Done {
            trigger.retry_at_ms = None;
            trigger.has_failed = false;
            trigger.digest = completion.digest.or(trigger.digest);
        }
    }
}

/// Counts a failed attempt. Returns whether an open trigger had it.
fn mark_failed(state: &mut ScoringState, failure: &AttemptFailure) -> bool {
    let ScoringState::Enabled(enabled) = state else { return false };
    let is_meant = |trigger: &RowTrigger| {
        trigger.status() == TriggerStatus::InFlight
            && failure.functions.contains(&trigger.function)
            && failure.run_key.as_ref().is_none_or(|key| trigger.run_key.as_ref() == Some(key))
            && failure.attempts.is_none_or(|attempts| trigger.attempts < attempts)
    };
    let mut is_counted = false;
    for trigger in enabled.triggers_mut().filter(|trigger| is_meant(trigger)) {
        trigger.attempts = failure.attempts.unwrap_or(trigger.attempts.saturating_add(1));
        trigger.retry_at_ms = failure.retry_at_ms;
        trigger.has_failed = failure.is_final;
        is_counted = true;
    }
    is_counted
}

/// Takes rules out of the open triggers, except those that a client demanded.
fn cancel(state: &mut ScoringState, rules: &[Uuid]) {
    let ScoringState::Enabled(enabled) = state else { return };
    let is_cancelled =
        |trigger: &RowTrigger| trigger.is_for_rules() && trigger.rules.iter().all(|rule| rules.contains(rule));
    enabled.retain(|trigger| !is_cancelled(trigger));
    for trigger in enabled.triggers_mut().filter(|trigger| trigger.is_for_rules()) {
        trigger.rules.retain(|rule| !rules.contains(rule));
    }
}

/// Runs all functions of an enabled state again, whatever their results were.
fn rescore(state: &mut ScoringState, xact: u64) {
    let ScoringState::Enabled(enabled) = state else { return };
    for trigger in enabled.triggers_mut() {
        restart(trigger, xact);
        trigger.run_key = Some(run_key(&trigger.function, &trigger.scope, None, Some(xact)));
    }
    enabled.last_triggered_xact = Some(xact);
}

/// Makes a trigger as if it were new, with an input that the next run reads.
fn restart(trigger: &mut RowTrigger, xact: u64) {
    trigger.triggered_xact = xact;
    trigger.completed_xact = None;
    trigger.attempts = 0;
    trigger.digest = None;
    trigger.retry_at_ms = None;
    trigger.has_failed = false;
}

fn trigger(
    enabled: &mut EnabledScoring,
    xact: u64,
    request: &TriggerRequest,
    row_id: &str,
) -> Result<(), ControlEffectError> {
    let known = enabled.trigger(&request.function, &request.scope).map(|(_, trigger)| trigger);
    let new = match &request.selection {
        Some(selection) => selected(known, request, selection),
        None => demanded(known, xact, request),
    };
    let Some(new) = new else { return Ok(()) };
    let (triggered, skips_logging) = (new.triggered_xact, new.skips_logging);
    if !enabled.set(new) {
        return Err(ControlEffectError::TooManyTriggers { row_id: row_id.to_owned() });
    }
    enabled.last_triggered_xact = enabled.last_triggered_xact.max(Some(triggered));
    enabled.skips_logging = skips_logging;
    Ok(())
}

/// Returns the trigger for a request of a client. One with a known idempotency key changes nothing, unless it failed.
fn demanded(known: Option<&RowTrigger>, xact: u64, request: &TriggerRequest) -> Option<RowTrigger> {
    let forced = || run_key(&request.function, &request.scope, None, Some(xact));
    let key = request.run_key.clone().unwrap_or_else(forced);
    if known.is_some_and(|known| known.run_key.as_ref() == Some(&key) && known.status() != TriggerStatus::Failed) {
        return None;
    }
    let fresh = || RowTrigger::new(request.function.clone(), request.scope.clone(), xact);
    let mut new = known.cloned().unwrap_or_else(fresh);
    restart(&mut new, xact);
    let requested_by = request.requested_by.or(new.requested_by);
    Some(RowTrigger { run_key: Some(key), source: TriggerSource::Manual, requested_by, ..new })
}

/// Returns the trigger for a selection by rules, if it changes anything.
fn selected(known: Option<&RowTrigger>, request: &TriggerRequest, selection: &RuleSelection) -> Option<RowTrigger> {
    match SelectionEffect::of(known, &request.scope, selection) {
        SelectionEffect::Nothing => None,
        SelectionEffect::MoreRules => {
            let mut trigger = known.cloned()?;
            trigger.rules.extend(selection.rules.iter().filter(|rule| !known.is_some_and(|k| k.rules.contains(rule))));
            trigger.skips_logging &= selection.skips_logging;
            Some(trigger)
        }
        SelectionEffect::Run => {
            let fresh = RowTrigger::new(request.function.clone(), request.scope.clone(), selection.triggered_xact);
            let more = known.map(|known| known.more.clone()).unwrap_or_default();
            Some(RowTrigger {
                run_key: request.run_key.clone(),
                digest: Some(selection.digest),
                rules: selection.rules.clone(),
                source: selection.source,
                skips_logging: selection.skips_logging,
                more,
                ..fresh
            })
        }
    }
}

/// Effect of a selection on the trigger of its function and scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectionEffect {
    Nothing,
    /// The trigger reads an input that satisfies more rules than have selected it.
    MoreRules,
    Run,
}

impl SelectionEffect {
    pub(crate) fn of(known: Option<&RowTrigger>, scope: &TriggerScope, selection: &RuleSelection) -> SelectionEffect {
        let Some(known) = known else { return SelectionEffect::Run };
        let is_same = known.digest == Some(selection.digest);
        let is_later = selection.cause_xact > known.triggered_xact;
        let has_failed = known.status() == TriggerStatus::Failed;
        let runs = is_later
            && match selection.forced {
                ForcedRun::Always => true,
                ForcedRun::Failed => has_failed || !is_same,
                // rules score a span once; a row that is replaced has no trigger any more
                ForcedRun::No => !is_same && (*scope != TriggerScope::Span || known.rules.is_empty()),
            };
        // the one run over a span satisfies all rules, also a run that a client demanded
        let has_more = selection.rules.iter().any(|rule| !known.rules.contains(rule));
        match (runs, has_more) {
            (true, _) => SelectionEffect::Run,
            (false, true) => SelectionEffect::MoreRules,
            (false, false) => SelectionEffect::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function_key::OnlineFunction;
    use crate::input_digest::InputDigest;
    use serde_json::{Map, json};

    fn function() -> OnlineFunction {
        OnlineFunction::of_key("function_id:f").expect("a key")
    }

    fn digest(output: u64) -> InputDigest {
        InputDigest::of_row(&Map::from_iter([("output".to_owned(), json!(output))]))
    }

    fn request(scope: TriggerScope, cause_xact: u64, output: u64, rule: u128) -> TriggerRequest {
        let selection = RuleSelection {
            triggered_xact: cause_xact,
            cause_xact,
            forced: ForcedRun::No,
            digest: digest(output),
            rules: vec![Uuid::from_u128(rule)],
            skips_logging: rule == 2,
            source: TriggerSource::Online,
        };
        let key = run_key(&function(), &scope, Some(digest(output)), None);
        TriggerRequest {
            function: function(),
            scope,
            run_key: Some(key),
            requested_by: None,
            selection: Some(selection),
        }
    }

    fn forced(mut request: TriggerRequest, forced: ForcedRun) -> TriggerRequest {
        request.selection.as_mut().expect("of the executor").forced = forced;
        request
    }

    fn apply(state: &ScoringState, xact: u64, control: &ScoringControl) -> ControlEffect {
        let effect = control_effect(state, "r", xact, control).expect("a possible control");
        let again = control_effect(&effect.state, "r", xact, control).expect("a possible control");
        assert_eq!(again.state, effect.state, "a repeated control changes nothing");
        effect
    }

    fn triggered(state: &ScoringState, request: TriggerRequest) -> ScoringState {
        apply(state, 99, &ScoringControl::TriggerFunctions(vec![request])).state
    }

    fn result(state: &ScoringState) -> ScoringControl {
        let (_, trigger) = state.enabled().and_then(|enabled| enabled.triggers().next()).expect("a trigger");
        let completes = TriggerCompletion {
            functions: vec![function()],
            triggered_xact: trigger.triggered_xact,
            run_key: trigger.run_key.clone(),
            digest: Some(trigger.digest.unwrap_or(digest(1))),
        };
        let token = state.enabled().and_then(|enabled| enabled.token.clone());
        ScoringControl::ScoreUpdate { token, completes: Some(completes) }
    }

    fn only(state: &ScoringState) -> &RowTrigger {
        let mut triggers = state.enabled().expect("enabled").triggers();
        let found = triggers.next().expect("a trigger").1;
        assert!(triggers.next().is_none());
        found
    }

    #[test]
    fn a_result_completes_its_trigger_once() {
        let state = triggered(&ScoringState::Absent, request(TriggerScope::Span, 10, 1, 1));
        assert_eq!(only(&state).status(), TriggerStatus::InFlight);
        let first = apply(&state, 11, &result(&state));
        assert!(first.applies && !first.is_change);
        assert_eq!(only(&first.state).status(), TriggerStatus::Done);
        let second = apply(&first.state, 12, &result(&state));
        assert_eq!((second.applies, &second.state), (false, &first.state));
    }

    #[test]
    fn a_result_of_an_older_input_or_state_is_stale() {
        let old = triggered(&ScoringState::Absent, request(TriggerScope::Trace, 10, 1, 1));
        let new = triggered(&old, request(TriggerScope::Trace, 20, 2, 1));
        let stale = apply(&new, 21, &result(&old));
        assert_eq!((stale.applies, stale.state), (false, new));
        for state in [ScoringState::Absent, ScoringState::disabled()] {
            let stale = apply(&state, 22, &result(&old));
            assert_eq!((stale.applies, stale.state), (false, state));
        }
        let plain = ScoringControl::ScoreUpdate { token: None, completes: None };
        assert!(apply(&ScoringState::Absent, 23, &plain).applies);
    }

    #[test]
    fn a_result_counts_for_a_replaced_row_with_the_same_input() {
        let old = triggered(&ScoringState::Absent, request(TriggerScope::Span, 10, 1, 1));
        let new = triggered(&ScoringState::Absent, request(TriggerScope::Span, 20, 1, 1));
        let found = apply(&new, 21, &result(&old));
        assert!(found.applies);
        assert_eq!(only(&found.state).completed_xact, Some(20));
        let other = triggered(&ScoringState::Absent, request(TriggerScope::Span, 20, 2, 1));
        assert!(!apply(&other, 21, &result(&old)).applies);
    }

    #[test]
    fn selections_run_a_function_again_only_for_another_input() {
        let span = |cause, output| request(TriggerScope::Span, cause, output, 1);
        let trace = |cause, output| request(TriggerScope::Trace, cause, output, 1);
        let cases = [
            (span(10, 1), span(10, 1), false),
            (span(10, 1), span(20, 2), false),
            (trace(10, 1), trace(20, 1), false),
            (trace(10, 1), trace(20, 2), true),
            (trace(20, 2), trace(10, 1), false),
            (span(10, 1), forced(span(20, 1), ForcedRun::Failed), false),
            (span(10, 1), forced(span(20, 2), ForcedRun::Failed), true),
            (span(10, 1), forced(span(20, 1), ForcedRun::Always), true),
        ];
        for (first, second, runs) in cases {
            let state = triggered(&ScoringState::Absent, first.clone());
            let state = apply(&state, 11, &result(&state)).state;
            let after = triggered(&state, second.clone());
            let is_open = only(&after).status() == TriggerStatus::InFlight;
            assert_eq!(is_open, runs, "{second:?} after {first:?}");
        }
    }

    #[test]
    fn rules_with_the_same_function_share_its_run() {
        let first = triggered(&ScoringState::Absent, request(TriggerScope::Span, 10, 1, 2));
        assert!(only(&first).skips_logging);
        let both = triggered(&first, request(TriggerScope::Span, 10, 1, 1));
        assert_eq!(only(&both).rules, [2, 1].map(Uuid::from_u128));
        assert!(!only(&both).skips_logging);
        let cancel = |rules: &[u128]| ScoringControl::CancelTriggers {
            rules: rules.iter().map(|rule| Uuid::from_u128(*rule)).collect(),
        };
        assert_eq!(only(&apply(&both, 12, &cancel(&[2])).state).rules, [Uuid::from_u128(1)]);
        let none = apply(&both, 12, &cancel(&[1, 2])).state;
        assert_eq!(none.enabled().expect("enabled").triggers().count(), 0);
        let done = apply(&both, 12, &result(&both)).state;
        assert_eq!(apply(&done, 13, &cancel(&[1, 2])).state, done);
    }

    #[test]
    fn failed_attempts_count_once_and_end_with_an_error() {
        let state = triggered(&ScoringState::Absent, request(TriggerScope::Span, 10, 1, 1));
        let failure = |attempts, retry_at_ms, is_final| {
            let run_key = only(&state).run_key.clone();
            let functions = vec![function()];
            ScoringControl::MarkAttemptFailed(AttemptFailure {
                functions,
                run_key,
                attempts: Some(attempts),
                retry_at_ms,
                is_final,
            })
        };
        let once = apply(&state, 11, &failure(1, Some(500), false)).state;
        assert_eq!((only(&once).attempts, only(&once).retry_at_ms), (1, Some(500)));
        let last = apply(&once, 12, &failure(2, None, true)).state;
        assert_eq!((only(&last).status(), only(&last).attempts), (TriggerStatus::Failed, 2));
        assert_eq!(triggered(&last, request(TriggerScope::Span, 20, 1, 1)), last);
        let again = triggered(&last, forced(request(TriggerScope::Span, 20, 1, 1), ForcedRun::Failed));
        assert_eq!((only(&again).status(), only(&again).attempts), (TriggerStatus::InFlight, 0));
    }

    #[test]
    fn clients_can_trigger_functions_without_a_rule() {
        let demand = |key: Option<&str>| {
            let run_key = key.map(str::to_owned);
            let requested_by = Some(Uuid::from_u128(5));
            let (function, scope) = (function(), TriggerScope::Span);
            let request = TriggerRequest { function, scope, run_key, requested_by, selection: None };
            ScoringControl::TriggerFunctions(vec![request])
        };
        let state = apply(&ScoringState::Absent, 10, &demand(Some("k"))).state;
        assert_eq!((only(&state).source, only(&state).triggered_xact), (TriggerSource::Manual, 10));
        assert_eq!(only(&state).requested_by, Some(Uuid::from_u128(5)));
        assert_eq!(ScoringState::read(Some(&state.to_json())), Ok(state.clone()));
        let done = apply(&state, 11, &result(&state)).state;
        assert_eq!(apply(&done, 12, &demand(Some("k"))).state, done);
        assert_eq!(only(&apply(&done, 12, &demand(Some("l"))).state).triggered_xact, 12);
        assert_eq!(only(&apply(&done, 12, &demand(None)).state).status(), TriggerStatus::InFlight);
        let disabled = apply(&ScoringState::disabled(), 12, &demand(None));
        assert_eq!((disabled.applies, disabled.state), (false, ScoringState::disabled()));
    }

    #[test]
    fn a_run_for_a_client_also_satisfies_rules() {
        let request_of_client = TriggerRequest {
            function: function(),
            scope: TriggerScope::Span,
            run_key: None,
            requested_by: None,
            selection: None,
        };
        let state = apply(&ScoringState::Absent, 10, &ScoringControl::TriggerFunctions(vec![request_of_client])).state;
        let adopted = triggered(&state, request(TriggerScope::Span, 9, 1, 1));
        assert_eq!((only(&adopted).rules.len(), only(&adopted).source), (1, TriggerSource::Manual));
        assert_eq!(only(&adopted).run_key, only(&state).run_key);
        let cancelled = ScoringControl::CancelTriggers { rules: vec![Uuid::from_u128(1)] };
        assert_eq!(apply(&adopted, 11, &cancelled).state, adopted);
        let done = apply(&adopted, 12, &result(&adopted)).state;
        assert_eq!(triggered(&done, request(TriggerScope::Span, 20, 2, 1)), done);
        let finished_later = triggered(&state, request(TriggerScope::Span, 20, 2, 1));
        assert_eq!((only(&finished_later).source, only(&finished_later).triggered_xact), (TriggerSource::Online, 20));
    }

    #[test]
    fn forced_kinds_mark_the_state_or_run_all_functions_again() {
        let state = triggered(&ScoringState::Absent, request(TriggerScope::Span, 10, 1, 1));
        let done = apply(&state, 11, &result(&state)).state;
        let again = apply(&done, 12, &ScoringControl::EnabledForceRescore);
        assert!(again.is_change);
        assert_eq!((only(&again.state).status(), only(&again.state).triggered_xact), (TriggerStatus::InFlight, 12));
        assert_ne!(only(&again.state).run_key, only(&done).run_key);
        for state in [ScoringState::Absent, ScoringState::disabled()] {
            assert_eq!(apply(&state, 12, &ScoringControl::EnabledForceRescore).state, state);
        }
        let marked = apply(&ScoringState::Absent, 12, &ScoringControl::ForceReselect).state;
        assert_eq!(marked.enabled().and_then(|enabled| enabled.reselect_xact), Some(12));
        let disabled = apply(&done, 13, &ScoringControl::StateOverride(ScoringState::disabled())).state;
        assert_eq!(apply(&disabled, 14, &ScoringControl::ForceReselect).state, disabled);
    }

    #[test]
    fn a_skipped_write_is_marked_only_if_it_finishes_the_span() {
        assert_eq!(skip_effect(&ScoringState::Absent, "r", 10, false), ScoringState::Absent);
        let marked = skip_effect(&ScoringState::Absent, "r", 10, true);
        assert_eq!(marked.enabled().and_then(|enabled| enabled.skipped_xact), Some(10));
        assert_eq!(skip_effect(&ScoringState::disabled(), "r", 10, true), ScoringState::disabled());
    }

    #[test]
    fn the_triggers_of_a_row_have_a_limit() {
        let mut state = ScoringState::Absent;
        for index in 0..ROW_TRIGGERS_MAX {
            let function = OnlineFunction::of_key(&format!("function_id:{index}")).expect("a key");
            let request = TriggerRequest { function, ..request(TriggerScope::Span, 10, 1, 1) };
            let control = ScoringControl::TriggerFunctions(vec![request]);
            state = control_effect(&state, "r", 11, &control).expect("a place").state;
        }
        let one_more = ScoringControl::TriggerFunctions(vec![request(TriggerScope::Span, 10, 1, 1)]);
        let error = control_effect(&state, "r", 12, &one_more).expect_err("no place").to_string();
        assert_eq!(error, "row `r` has 1000 functions in `_async_scoring_state`, which is the maximum");
    }
}
