//! Executor of the model: reads versions from its position, stores triggers, and runs them.

use serde_json::json;
use uuid::Uuid;

use super::ModelRule;
use super::log::{ModelEffect, ModelLog};
use crate::candidates::{ExcludedSpans, RowVersion, finish_after_write};
use crate::control::ScoringControl;
use crate::control_effects::control_effect;
use crate::input_digest::InputDigest;
use crate::open_triggers::{OpenTrigger, OpenTriggers};
use crate::run_effects::{FinishedRun, OnlineResultForm, OnlineRunError, RunEffects, ScoringTarget, scorer_input};
use crate::selection::{RuleInForce, select_span, trigger_row};
use crate::trigger_progress::{RunFailureCause, TriggerEvent};

#[derive(Debug, Default)]
pub(super) struct ModelExecutor {
    /// Position that survives a crash.
    stored_xact: u64,
    read_xact: u64,
    pub(super) open: OpenTriggers,
    excluded: ExcludedSpans,
}

impl ModelExecutor {
    /// Reads the newest version of each row that changed, in the order of the log.
    pub(super) fn poll(&mut self, log: &mut ModelLog, rules: &[ModelRule]) {
        let changed = log.rows.iter().filter(|(_, row)| row.xact > self.read_xact);
        let mut changed: Vec<(u64, String)> = changed.map(|(id, row)| (row.xact, id.clone())).collect();
        changed.sort();
        let from_xact = self.read_xact;
        for (xact, id) in changed {
            self.observe(log, rules, &id, from_xact);
            self.read_xact = xact;
        }
    }

    fn observe(&mut self, log: &mut ModelLog, rules: &[ModelRule], id: &str, from_xact: u64) {
        let known = log.rows[id].clone();
        let row = known.doc.as_object().expect("an object");
        let later = known.writes.iter().filter(|write| write.xact > from_xact);
        let finish_xact = later.fold(None, |earlier, write| {
            finish_after_write(earlier, write.xact, write.is_whole, write.before.as_ref(), &write.after)
        });
        self.open.observe(id, &known.state, known.xact).expect("there is room");
        let is_inactive = |id: &Uuid| rules.iter().any(|rule| rule.rule.id == *id && !rule.rule.is_active());
        let inactive: Vec<Uuid> = known.state.waiting_rules().into_iter().filter(is_inactive).collect();
        if !inactive.is_empty() {
            let control = ScoringControl::CancelTriggers { rules: inactive }.to_json();
            log.write(json!({"id": id, "_is_merge": true, "_async_scoring_control": control}));
        }
        if self.excluded.observe(row, &known.state).is_err() {
            return;
        }
        let in_force: Vec<_> =
            rules.iter().map(|rule| RuleInForce { rule: &rule.rule, since_xact: rule.since_xact }).collect();
        let version = RowVersion { row, xact: known.xact, finish_xact };
        let requests = select_span(&in_force, &version, &known.state, |_| true);
        if let Some(write) = trigger_row(row, requests) {
            log.write(write);
        }
    }

    /// Runs the next trigger. Returns whether there was one.
    pub(super) fn run_one(&mut self, log: &mut ModelLog, now_ms: u64, fails: bool) -> bool {
        let Some(trigger) = self.open.next_ready(now_ms).cloned() else { return false };
        let apply = |open: &mut OpenTriggers, event| {
            open.apply(&trigger.place, trigger.run_key.as_deref(), event, now_ms).expect("the run is open")
        };
        apply(&mut self.open, TriggerEvent::Start);
        let effects = effects(log, &trigger, now_ms, fails);
        commit(log, &trigger, &effects);
        apply(&mut self.open, effects.event);
        true
    }

    pub(super) fn store(&mut self) {
        self.stored_xact = self.open.safe_position(self.read_xact);
    }

    /// Loses everything after the stored position.
    pub(super) fn crash(&mut self) {
        self.open = OpenTriggers::default();
        self.excluded = ExcludedSpans::default();
        self.read_xact = self.stored_xact;
    }
}

fn effects(log: &ModelLog, trigger: &OpenTrigger, now_ms: u64, fails: bool) -> RunEffects {
    let row = log.row_at(&trigger.place.row_id, trigger.triggered_xact).expect("a version that was written");
    let digest = InputDigest::of_row(row);
    assert!(trigger.digest.is_none_or(|selected| selected == digest), "the run reads what was selected");
    let failure = OnlineRunError { cause: RunFailureCause::Transient, message: "no answer".to_owned() };
    let token = log.rows[&trigger.place.row_id].state.enabled().and_then(|enabled| enabled.token.clone());
    let run = FinishedRun {
        trigger,
        digest,
        function_name: &trigger.function.key()["function_id:".len()..],
        form: OnlineResultForm::Scores,
        input: &scorer_input(row),
        target: &ScoringTarget::of_row(row).expect("a row with an id"),
        other_targets: &[],
        token: token.as_deref(),
        started_ms: now_ms,
        ended_ms: now_ms,
        result: if fails { Err(failure) } else { Ok(json!(1)) },
    };
    run.effects()
}

/// Writes the rows of a run in one transaction, unless its result is stale.
fn commit(log: &mut ModelLog, trigger: &OpenTrigger, effects: &RunEffects) {
    let id = &trigger.place.row_id;
    let own = &effects.merges[0];
    let control = ScoringControl::read(&own["_async_scoring_control"]).expect("a valid control");
    let effect = control_effect(&log.rows[id].state, id, log.xact + 1, &control).expect("a place");
    if !effect.applies {
        return;
    }
    if let ScoringControl::ScoreUpdate { completes: Some(completion), .. } = &control {
        log.effects.push(ModelEffect {
            row_id: id.clone(),
            life: log.rows[id].life,
            function: trigger.function.clone(),
            digest: completion.digest.expect("a completion of a run"),
        });
    }
    effects.span.iter().chain(&effects.merges).for_each(|row| log.write(row.clone()));
}
