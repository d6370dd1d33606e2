//! Open triggers of one shard in memory, rebuilt from the states of rows.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use uuid::Uuid;

use crate::function_key::OnlineFunction;
use crate::input_digest::InputDigest;
use crate::scope::TriggerScope;
use crate::state::{RowTrigger, ScoringState, TriggerSource};
use crate::trigger_progress::{TriggerEvent, TriggerEventError, TriggerPhase, TriggerProgress};

/// Upper bound of the open triggers of one shard. At the limit the executor reads no further versions.
pub const OPEN_TRIGGERS_MAX: usize = 20_000;

/// Place of a trigger: a row and a key in its state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerPlace {
    pub row_id: String,
    pub key: String,
}

/// Trigger that is to run, or runs.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTrigger {
    pub place: TriggerPlace,
    pub function: OnlineFunction,
    pub scope: TriggerScope,
    pub run_key: Option<String>,
    /// Version at which the run reads its input.
    pub triggered_xact: u64,
    /// Digest of the input. A trigger by a client has none before its first run.
    pub digest: Option<InputDigest>,
    /// Rules that want the result. The first one pays and is named in the span.
    pub rules: Vec<Uuid>,
    pub source: TriggerSource,
    /// User of the client that demanded the run.
    pub requested_by: Option<Uuid>,
    pub skips_logging: bool,
    pub progress: TriggerProgress,
    /// Version of the row whose state has the trigger.
    pub seen_xact: u64,
}

impl OpenTrigger {
    fn new(place: TriggerPlace, trigger: &RowTrigger, seen_xact: u64) -> OpenTrigger {
        OpenTrigger {
            place,
            function: trigger.function.clone(),
            scope: trigger.scope.clone(),
            run_key: trigger.run_key.clone(),
            triggered_xact: trigger.triggered_xact,
            digest: trigger.digest,
            rules: trigger.rules.clone(),
            source: trigger.source,
            requested_by: trigger.requested_by,
            skips_logging: trigger.skips_logging,
            progress: TriggerProgress::pending(trigger.retry_at_ms.unwrap_or_default(), trigger.attempts),
            seen_xact,
        }
    }

    /// Returns the rule that pays for the run. Triggers by clients have none.
    pub fn payer(&self) -> Option<Uuid> {
        self.rules.first().copied().filter(|_| self.source != TriggerSource::Manual)
    }
}

/// Refusal of triggers because too many are open.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{OPEN_TRIGGERS_MAX} triggers of online scoring are open, which is the maximum; read the row again later")]
pub struct OpenTriggersFull;

/// Event for a trigger that is not open.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenTriggerError {
    #[error("row `{}` has no open trigger `{}` of this run", .0.row_id, .0.key)]
    NotOpen(TriggerPlace),
    #[error(transparent)]
    Event(#[from] TriggerEventError),
}

/// Open triggers, ordered by the time from which they may run.
#[derive(Clone, Debug, Default)]
pub struct OpenTriggers {
    triggers: BTreeMap<TriggerPlace, OpenTrigger>,
    ready: BTreeSet<(u64, TriggerPlace)>,
}

impl OpenTriggers {
    pub fn len(&self) -> usize {
        self.triggers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.triggers.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &OpenTrigger> {
        self.triggers.values()
    }

    /// Takes over the open triggers of a row from its state at a version. Runs of unchanged triggers go on.
    pub fn observe(&mut self, row_id: &str, state: &ScoringState, seen_xact: u64) -> Result<(), OpenTriggersFull> {
        let place = |key: &str| TriggerPlace { row_id: row_id.to_owned(), key: key.to_owned() };
        let open: Vec<_> = state.open_triggers().map(|(key, trigger)| (place(key), trigger)).collect();
        let known: Vec<TriggerPlace> = self.places_of_row(row_id);
        let added = open.iter().filter(|(place, _)| !self.triggers.contains_key(place)).count();
        let removed = known.iter().filter(|place| open.iter().all(|(other, _)| other != *place)).count();
        if self.triggers.len() + added - removed > OPEN_TRIGGERS_MAX {
            return Err(OpenTriggersFull);
        }
        for place in known.into_iter().filter(|place| open.iter().all(|(other, _)| other != place)) {
            self.remove(&place);
        }
        for (place, trigger) in open {
            let mut new = OpenTrigger::new(place.clone(), trigger, seen_xact);
            let known = self.triggers.get(&place).filter(|known| known.run_key == new.run_key);
            if let Some(known) = known {
                let is_running = matches!(known.progress.phase, TriggerPhase::Running { .. });
                if is_running || known.progress.attempts > new.progress.attempts {
                    new.progress = known.progress;
                }
                new.seen_xact = known.seen_xact.max(seen_xact);
            }
            self.set(new);
        }
        Ok(())
    }

    fn places_of_row(&self, row_id: &str) -> Vec<TriggerPlace> {
        let first = TriggerPlace { row_id: row_id.to_owned(), key: String::new() };
        let range = self.triggers.range(first..).map(|(place, _)| place);
        range.take_while(|place| place.row_id == row_id).cloned().collect()
    }

    fn set(&mut self, trigger: OpenTrigger) {
        let place = trigger.place.clone();
        self.remove(&place);
        if let TriggerPhase::Pending { ready_at_ms } = trigger.progress.phase {
            self.ready.insert((ready_at_ms, place.clone()));
        }
        self.triggers.insert(place, trigger);
    }

    fn remove(&mut self, place: &TriggerPlace) -> Option<OpenTrigger> {
        let removed = self.triggers.remove(place)?;
        if let TriggerPhase::Pending { ready_at_ms } = removed.progress.phase {
            self.ready.remove(&(ready_at_ms, place.clone()));
        }
        Some(removed)
    }

    /// Returns the trigger that has waited longest of those that may run.
    pub fn next_ready(&self, now_ms: u64) -> Option<&OpenTrigger> {
        let (ready_at_ms, place) = self.ready.first()?;
        self.triggers.get(place).filter(|_| *ready_at_ms <= now_ms)
    }

    /// Returns the time from which another trigger may run.
    pub fn next_ready_at_ms(&self) -> Option<u64> {
        self.ready.first().map(|(ready_at_ms, _)| *ready_at_ms)
    }

    /// Applies an event to the run of a trigger, and returns its progress. Closed triggers are forgotten.
    pub fn apply(
        &mut self,
        place: &TriggerPlace,
        run_key: Option<&str>,
        event: TriggerEvent,
        now_ms: u64,
    ) -> Result<TriggerProgress, OpenTriggerError> {
        let known = self.triggers.get(place).filter(|trigger| trigger.run_key.as_deref() == run_key);
        let mut trigger = known.cloned().ok_or_else(|| OpenTriggerError::NotOpen(place.clone()))?;
        trigger.progress = trigger.progress.after(event, now_ms)?;
        let progress = trigger.progress;
        match progress.phase {
            TriggerPhase::Pending { .. } | TriggerPhase::Running { .. } => self.set(trigger),
            TriggerPhase::Done | TriggerPhase::Failed | TriggerPhase::Cancelled => {
                self.remove(place);
            }
        }
        Ok(progress)
    }

    /// Takes a paused or deleted rule out of all triggers. Returns the rows whose states have to follow.
    pub fn cancel_rule(&mut self, rule: Uuid) -> BTreeSet<String> {
        let wanting =
            self.triggers.values().filter(|trigger| trigger.payer().is_some() && trigger.rules.contains(&rule));
        let wanting: Vec<OpenTrigger> = wanting.cloned().collect();
        let mut rows = BTreeSet::new();
        for mut trigger in wanting {
            rows.insert(trigger.place.row_id.clone());
            trigger.rules.retain(|wanting| *wanting != rule);
            if trigger.rules.is_empty() {
                self.remove(&trigger.place);
            } else {
                self.set(trigger);
            }
        }
        rows
    }

    /// Returns the position that the executor may store: later than it, all open triggers are found again.
    ///
    /// `read_xact` is the newest version that the executor has observed.
    pub fn safe_position(&self, read_xact: u64) -> u64 {
        let earliest = self.triggers.values().map(|trigger| trigger.seen_xact.saturating_sub(1)).min();
        earliest.map_or(read_xact, |earliest| earliest.min(read_xact))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trigger_progress::RunFailureCause;

    const FIRST: Uuid = Uuid::from_u128(1);
    const SECOND: Uuid = Uuid::from_u128(2);

    fn state(triggers: &[(&str, &str, &[Uuid])]) -> ScoringState {
        let members = triggers.iter().map(|(function, run_key, rules)| {
            let trigger = json!({"triggered_xact_id": "1", "idempotency_key": run_key, "rules": rules});
            (format!("function_id:{function}"), trigger)
        });
        let members: serde_json::Map<_, _> = members.collect();
        ScoringState::read(Some(&json!({"status": "enabled", "triggered_functions": members}))).expect("valid")
    }

    fn place(function: &str) -> TriggerPlace {
        TriggerPlace { row_id: "r".to_owned(), key: format!("function_id:{function}") }
    }

    #[test]
    fn triggers_run_in_the_order_of_their_times() {
        let mut open = OpenTriggers::default();
        open.observe("r", &state(&[("a", "k", &[]), ("b", "l", &[])]), 10).expect("there is room");
        assert_eq!(open.next_ready(0).expect("ready").place, place("a"));
        open.apply(&place("a"), Some("k"), TriggerEvent::Start, 0).expect("it is pending");
        assert_eq!(open.next_ready(0).expect("ready").place, place("b"));
        open.apply(&place("a"), Some("k"), TriggerEvent::Fail(RunFailureCause::Transient), 5).expect("it runs");
        open.apply(&place("b"), Some("l"), TriggerEvent::Start, 5).expect("it is pending");
        assert_eq!((open.next_ready(10_004), open.next_ready_at_ms()), (None, Some(10_005)));
        assert_eq!(open.next_ready(10_005).expect("ready").place, place("a"));
        let error = open.apply(&place("b"), Some("old"), TriggerEvent::Succeed, 6).expect_err("another run");
        assert_eq!(error.to_string(), "row `r` has no open trigger `function_id:b` of this run");
        open.apply(&place("b"), Some("l"), TriggerEvent::Succeed, 6).expect("it runs");
        assert_eq!(open.len(), 1);
    }

    #[test]
    fn a_state_replaces_the_triggers_of_its_row() {
        let mut open = OpenTriggers::default();
        open.observe("r", &state(&[("a", "k", &[]), ("b", "l", &[])]), 10).expect("there is room");
        open.observe("s", &state(&[("a", "k", &[])]), 11).expect("there is room");
        open.apply(&place("a"), Some("k"), TriggerEvent::Start, 3).expect("it is pending");
        open.observe("r", &state(&[("a", "k", &[FIRST])]), 12).expect("there is room");
        let phases: Vec<_> = open.iter().map(|trigger| (trigger.progress.phase, trigger.rules.len())).collect();
        let pending = TriggerPhase::Pending { ready_at_ms: 0 };
        assert_eq!(phases, [(TriggerPhase::Running { since_ms: 3 }, 1), (pending, 0)]);
        open.observe("r", &state(&[("a", "other input", &[])]), 13).expect("there is room");
        assert_eq!(open.next_ready(0).expect("ready").run_key.as_deref(), Some("other input"));
        open.observe("r", &ScoringState::Absent, 14).expect("there is room");
        assert_eq!(open.len(), 1);
    }

    #[test]
    fn the_stored_position_stays_before_open_triggers() {
        let mut open = OpenTriggers::default();
        assert_eq!(open.safe_position(40), 40);
        open.observe("r", &state(&[("a", "k", &[])]), 10).expect("there is room");
        open.observe("s", &state(&[("a", "k", &[])]), 30).expect("there is room");
        assert_eq!(open.safe_position(40), 9);
        open.observe("r", &state(&[("a", "k", &[])]), 35).expect("there is room");
        assert_eq!(open.safe_position(40), 29);
    }

    #[test]
    fn a_paused_rule_loses_its_triggers_and_leaves_those_of_others() {
        let mut open = OpenTriggers::default();
        let state = state(&[("a", "k", &[FIRST]), ("b", "l", &[FIRST, SECOND]), ("c", "m", &[])]);
        open.observe("r", &state, 10).expect("there is room");
        assert_eq!(open.cancel_rule(FIRST), BTreeSet::from(["r".to_owned()]));
        let left: Vec<_> = open.iter().map(|trigger| (trigger.place.clone(), trigger.payer())).collect();
        assert_eq!(left, [(place("b"), Some(SECOND)), (place("c"), None)]);
        assert!(open.cancel_rule(FIRST).is_empty());
    }

    #[test]
    fn triggers_above_the_limit_are_refused() {
        let mut open = OpenTriggers::default();
        for row in 0..OPEN_TRIGGERS_MAX {
            open.observe(&row.to_string(), &state(&[("a", "k", &[])]), 1).expect("there is room");
        }
        assert_eq!(open.observe("one more", &state(&[("a", "k", &[])]), 2), Err(OpenTriggersFull));
        assert_eq!(open.observe("0", &state(&[("b", "k", &[])]), 2), Ok(()));
        assert_eq!(open.len(), OPEN_TRIGGERS_MAX);
    }
}
