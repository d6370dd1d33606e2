//! Controls of online scoring in writes, and their effects on the states of rows. Pure.
//!
//! `_async_scoring_control` and `_skip_async_scoring` are taken out of rows. They become a new `_async_scoring_state`,
//! which no client can write. A row that replaces another starts without a state. A merge with a control needs the
//! state that the row has before the write, so the write is conditional on the version that was read.

use std::collections::{HashMap, HashSet};

use assay_node_online_scoring::{
    CONTROL_FIELD, ControlEffect, ControlSender, SKIP_FIELD, ScoringControl, ScoringState, check_control_sender,
    control_effect, is_finished, skip_effect,
};
use assay_storage_model::event::{RowError, SCORING_STATE, SentItem, SentRow};
use assay_storage_model::{ObjectKind, Xact};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{ObjectWrite, WriteError};

/// Control of one row of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowControl {
    /// Index of the row in the write.
    pub index: usize,
    control: Option<ScoringControl>,
    skips: bool,
}

/// State of a stored row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StoredState {
    pub state: ScoringState,
    /// Version of the row, or [`Xact::ZERO`] if there is none.
    pub version: Xact,
}

/// Time of a write's effects on states, which precedes the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectTime {
    /// Version at which states were read, or the present time as an id.
    pub xact: Xact,
    /// Id that is certainly before the write.
    pub before: Xact,
}

/// Conditions on the versions of rows, by the indexes of the rows in the write.
pub(crate) type ExpectedVersions = Vec<(usize, Xact)>;

/// Effects of the controls of a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Controlled {
    pub expected: ExpectedVersions,
    /// Indexes of rows that do not apply, in ascending order.
    pub dropped: Vec<usize>,
    /// Whether the write is a result that the row does not wait for. Nothing of it applies.
    pub is_stale: bool,
}

/// Takes the controls out of a write, and refuses those that the sender may not send.
///
/// `user` returns the user that demands the runs of clients.
pub(crate) fn take_controls(
    place: usize,
    write: &mut ObjectWrite,
    (sender, user): (ControlSender, &dyn Fn() -> Option<Uuid>),
) -> Result<Vec<RowControl>, WriteError> {
    let mut controls = Vec::new();
    if write.object.kind != ObjectKind::ProjectLogs {
        return Ok(controls); // rows of other objects are never scored, and lose these fields when they are prepared
    }
    for (index, item) in write.rows.iter_mut().enumerate() {
        let SentItem::Row(row) = item else { continue };
        row.take(SCORING_STATE);
        let taken = [row.take(CONTROL_FIELD), row.take(SKIP_FIELD)];
        let [control, skips] = taken.map(|value| value.filter(|value| !value.is_null()));
        if control.is_none() && skips.is_none() {
            continue;
        }
        let defect = |path: &str, problem: String| RowError { row: index, path: path.to_owned(), problem };
        let refuse = |path: &str, problem: String| WriteError::Row { write: place, error: defect(path, problem) };
        let read = |value: Value| {
            ScoringControl::read(&value)
                .map_err(|why| refuse(&why.path, format!("is {}; it must be {}", why.found, why.valid)))
        };
        let control = control.map(read).transpose()?;
        let skips = match skips {
            None => false,
            Some(Value::Bool(skips)) => skips,
            Some(_) => return Err(refuse(SKIP_FIELD, "is neither true, false nor null".to_owned())),
        };
        if let Some(control) = &control {
            let forbidden = |why: String| WriteError::Forbidden { write: place, error: defect(CONTROL_FIELD, why) };
            check_control_sender(control, sender).map_err(|why| forbidden(why.to_string()))?;
        }
        let control = control.map(|control| control.demanded_by(user()));
        controls.push(RowControl { index, control, skips });
    }
    Ok(controls)
}

/// Form of a row in a write, as far as states depend on it.
struct RowForm<'r> {
    id: Option<&'r str>,
    is_merge: bool,
    deletes: bool,
    finishes: bool,
}

impl RowForm<'_> {
    fn of(row: &SentRow) -> RowForm<'_> {
        let is = |name: &str| row.get(name) == Some(&Value::Bool(true));
        let is_merge = is("_is_merge");
        let mut found = Map::new();
        if let Some(metrics) = row.get("metrics") {
            found.insert("metrics".to_owned(), metrics.clone());
        }
        // Results may be large, and only their presence counts.
        for name in ["output", "error"] {
            if row.has_text(name) || row.get(name).is_some_and(|value| !value.is_null()) {
                found.insert(name.to_owned(), Value::Bool(true));
            }
        }
        RowForm {
            id: row.get("id").and_then(Value::as_str),
            is_merge,
            deletes: is("_object_delete"),
            finishes: is_finished(&found, !is_merge),
        }
    }

    /// Returns whether the effect of a control depends on the state of the stored row.
    fn needs_state(&self, control: &RowControl) -> bool {
        self.is_merge && !self.deletes && (control.control.is_some() || (control.skips && self.finishes))
    }
}

/// Returns the ids of the rows whose stored states the controls need.
pub(crate) fn needed_states(rows: &[SentItem], controls: &[RowControl]) -> Vec<String> {
    let (mut needed, mut known, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut controls = controls.iter().peekable();
    for (index, item) in rows.iter().enumerate() {
        let control = controls.next_if(|control| control.index == index);
        let SentItem::Row(row) = item else { continue };
        let form = RowForm::of(row);
        let Some(id) = form.id else { continue };
        if !form.is_merge || form.deletes {
            known.insert(id);
        } else if control.is_some_and(|control| form.needs_state(control)) && !known.contains(id) && seen.insert(id) {
            needed.push(id.to_owned());
        }
    }
    needed
}

/// Applies the controls of a write to its rows. `stored` has the states of [`needed_states`].
pub(crate) fn apply_controls(
    rows: &mut [SentItem],
    controls: &[RowControl],
    stored: &HashMap<String, StoredState>,
    (time, sender): (EffectTime, ControlSender),
) -> Result<Controlled, RowError> {
    let mut effects = Effects { stored, time, sender, written: HashMap::new(), found: Controlled::default() };
    let mut controls = controls.iter().peekable();
    for (index, item) in rows.iter_mut().enumerate() {
        let control = controls.next_if(|control| control.index == index);
        if let SentItem::Row(row) = item {
            effects.apply(row, control, index)?;
        }
    }
    Ok(effects.found)
}

/// Application of the controls of one write, row by row.
struct Effects<'s> {
    stored: &'s HashMap<String, StoredState>,
    time: EffectTime,
    sender: ControlSender,
    /// States after the rows of this write so far.
    written: HashMap<String, ScoringState>,
    found: Controlled,
}

impl Effects<'_> {
    fn apply(&mut self, row: &mut SentRow, control: Option<&RowControl>, index: usize) -> Result<(), RowError> {
        let form = RowForm::of(row);
        let id = form.id.unwrap_or_default().to_owned();
        if !form.is_merge || form.deletes {
            self.written.insert(id.clone(), ScoringState::Absent);
        }
        let Some(control) = control.filter(|_| !form.deletes) else { return Ok(()) };
        if control.control.is_none() && !form.finishes {
            return Ok(());
        }
        let stored = self.stored.get(&id).filter(|_| form.needs_state(control) && !self.written.contains_key(&id));
        let before = match (self.written.get(&id), stored) {
            (Some(state), _) => state.clone(),
            (None, Some(stored)) => stored.state.clone(),
            (None, None) => ScoringState::Absent,
        };
        let is_missing = stored.is_some_and(|stored| stored.version == Xact::ZERO);
        let effect = self.effect(&before, &id, control, form.finishes).map_err(|problem| RowError {
            row: index,
            path: CONTROL_FIELD.to_owned(),
            problem,
        })?;
        if self.sender == ControlSender::Executor && form.is_merge {
            let is_idle = !effect.applies || is_missing || (is_bookkeeping(control) && effect.state == before);
            if is_idle && is_own(control) {
                self.found.is_stale = true;
                return Ok(());
            }
            if is_idle {
                self.found.dropped.push(index);
                return Ok(());
            }
        }
        if let Some(stored) = stored {
            self.found.expected.push((index, stored.version));
        }
        if effect.state != before {
            row.set(SCORING_STATE, effect.state.to_json());
        }
        self.written.insert(id, effect.state);
        Ok(())
    }

    fn effect(
        &self,
        before: &ScoringState,
        id: &str,
        control: &RowControl,
        finishes: bool,
    ) -> Result<ControlEffect, String> {
        let EffectTime { xact, before: skipped } = self.time;
        let mut effect = match &control.control {
            Some(control) => control_effect(before, id, xact.0, control).map_err(|why| why.to_string())?,
            None => ControlEffect { state: before.clone(), applies: true, is_change: true },
        };
        if control.skips {
            effect.state = skip_effect(&effect.state, id, skipped.0, finishes);
        }
        Ok(effect)
    }
}

/// Returns whether the whole write depends on the row of this control: the end of a run.
fn is_own(control: &RowControl) -> bool {
    match &control.control {
        Some(ScoringControl::ScoreUpdate { completes, .. }) => completes.is_some(),
        Some(ScoringControl::MarkAttemptFailed(_)) => true,
        _ => false,
    }
}

/// Returns whether a control has no effect besides that on the state.
fn is_bookkeeping(control: &RowControl) -> bool {
    matches!(&control.control, Some(ScoringControl::TriggerFunctions(_) | ScoringControl::CancelTriggers { .. }))
}

#[cfg(test)]
mod tests {
    use assay_storage_model::{ObjectKey, OrgId};
    use serde_json::json;

    use super::*;

    const CLIENT: ControlSender = ControlSender::Client { may_update: true };
    const TIME: EffectTime = EffectTime { xact: Xact(90), before: Xact(80) };

    fn write(rows: Vec<Value>) -> ObjectWrite {
        let object = ObjectKey::new(OrgId(Uuid::nil()), ObjectKind::ProjectLogs, Uuid::nil());
        ObjectWrite { object, rows: rows.into_iter().map(SentItem::from).collect(), request: None }
    }

    fn trigger() -> Value {
        json!({"kind": "trigger_functions",
            "triggered_functions": [{"function_id": {"type": "function", "id": "f"}, "scope": "span"}]})
    }

    fn controlled(
        rows: Vec<Value>,
        sender: ControlSender,
        stored: &[(&str, ScoringState, u64)],
    ) -> (Controlled, Vec<Value>, Vec<String>) {
        let mut write = write(rows);
        let controls = take_controls(0, &mut write, (sender, &|| None)).expect("valid controls");
        let needed = needed_states(&write.rows, &controls);
        let state = |(id, state, version): &(&str, ScoringState, u64)| {
            ((*id).to_owned(), StoredState { state: state.clone(), version: Xact(*version) })
        };
        let mut known: HashMap<String, StoredState> =
            needed.iter().cloned().map(|id| (id, StoredState::default())).collect();
        known.extend(stored.iter().map(state));
        let found = apply_controls(&mut write.rows, &controls, &known, (TIME, sender)).expect("effects");
        let state_of = |item: &SentItem| match item {
            SentItem::Row(row) => row.get(SCORING_STATE).cloned().unwrap_or_default(),
            SentItem::Other(_) => Value::Null,
        };
        let states = write.rows.iter().map(state_of).collect();
        (found, states, needed)
    }

    #[test]
    fn clients_write_no_states_and_controls_are_not_stored() {
        let mut write = write(vec![
            json!({"id": "a", "_async_scoring_state": {"status": "disabled"}, "input": 1}),
            json!({"id": "b", "_async_scoring_control": trigger(), "_skip_async_scoring": null}),
        ]);
        let controls = take_controls(0, &mut write, (CLIENT, &|| None)).expect("valid");
        assert_eq!(controls.iter().map(|control| control.index).collect::<Vec<_>>(), [1]);
        for item in &write.rows {
            let SentItem::Row(row) = item else { panic!("a row") };
            assert!([SCORING_STATE, CONTROL_FIELD, SKIP_FIELD].iter().all(|name| row.get(name).is_none()));
        }
        let mut other = ObjectWrite {
            object: ObjectKey::new(OrgId(Uuid::nil()), ObjectKind::Experiment, Uuid::nil()),
            rows: vec![json!({"_async_scoring_control": 3, "_skip_async_scoring": 3}).into()],
            request: None,
        };
        assert_eq!(take_controls(0, &mut other, (CLIENT, &|| None)), Ok(vec![]));
    }

    #[test]
    fn controls_that_are_not_valid_are_refused_with_their_place() {
        let cases = [
            (
                json!({"_async_scoring_control": {"kind": "x"}}),
                "row 0: `_async_scoring_control.kind` is \"x\"; it must be",
            ),
            (json!({"_async_scoring_control": 3}), "row 0: `_async_scoring_control` is 3; it must be an object"),
            (json!({"_skip_async_scoring": 1}), "row 0: `_skip_async_scoring` is neither true, false nor null"),
            (
                json!({"_async_scoring_control": {"kind": "score_update"}}),
                "row 0: `_async_scoring_control` is of the kind `score_update`, which is reserved for the server",
            ),
        ];
        for (row, begin) in cases {
            let error = take_controls(0, &mut write(vec![row]), (CLIENT, &|| None)).expect_err("refused").to_string();
            assert!(error.starts_with(begin), "{error}");
        }
    }

    #[test]
    fn only_merges_depend_on_the_stored_row() {
        let merge = json!({"id": "a", "_is_merge": true, "_async_scoring_control": trigger()});
        let whole = json!({"id": "a", "input": 1, "_async_scoring_control": trigger()});
        let (found, states, needed) = controlled(vec![merge.clone()], CLIENT, &[("a", ScoringState::Absent, 7)]);
        assert_eq!((found.expected, needed), (vec![(0, Xact(7))], vec!["a".to_owned()]));
        assert_eq!(states[0]["triggered_functions"]["function_id:f"]["triggered_xact_id"], "0000000000000000090");
        let (found, states, needed) = controlled(vec![whole, merge.clone()], CLIENT, &[]);
        assert_eq!((found.expected, needed), (vec![], Vec::<String>::new()));
        assert!(states.iter().all(|state| state["status"] == "enabled" || state.is_null()));
        let (found, states, _) = controlled(vec![merge], CLIENT, &[("a", ScoringState::disabled(), 7)]);
        assert_eq!(
            (found, &states[0]),
            (Controlled { expected: vec![(0, Xact(7))], ..Controlled::default() }, &Value::Null)
        );
    }

    #[test]
    fn a_skipped_write_is_marked_if_it_finishes_its_span() {
        let skipped = |row: Value| {
            let mut row = row;
            row["_skip_async_scoring"] = true.into();
            let (found, states, needed) = controlled(vec![row], CLIENT, &[("a", ScoringState::Absent, 7)]);
            (found.expected.len(), states[0]["skipped_xact_id"].clone(), needed.len())
        };
        assert_eq!(skipped(json!({"id": "a", "input": 1})), (0, Value::Null, 0));
        assert_eq!(skipped(json!({"id": "a", "output": 1})), (0, json!("0000000000000000080"), 0));
        assert_eq!(skipped(json!({"id": "a", "_is_merge": true, "output": 1})), (0, Value::Null, 0));
        let ended = json!({"id": "a", "_is_merge": true, "metrics": {"end": 1}});
        assert_eq!(skipped(ended), (1, json!("0000000000000000080"), 1));
        let text = r#"{"id": "a", "output": {"x": 1}, "_skip_async_scoring": true}"#;
        let mut write = write(vec![]);
        write.rows = vec![serde_json::from_str(text).expect("a row")];
        let controls = take_controls(0, &mut write, (CLIENT, &|| None)).expect("valid");
        apply_controls(&mut write.rows, &controls, &HashMap::new(), (TIME, CLIENT)).expect("effects");
        let SentItem::Row(row) = &write.rows[0] else { panic!("a row") };
        assert!(row.get(SCORING_STATE).is_some(), "an output that is kept as a text counts");
    }

    #[test]
    fn results_apply_to_rows_that_wait_for_them() {
        let result = |id: &str, control: Value| json!({"id": id, "_is_merge": true, "scores": {"s": 1}, "_async_scoring_control": control});
        let span = json!({"id": "span", "_async_scoring_control": {"kind": "state_override", "state": {"status": "disabled"}}});
        let own = json!({"kind": "score_update", "completes": {"function_ids": [{"type": "function", "id": "f"}],
            "triggered_xact_id": "90"}});
        let other = json!({"kind": "score_update"});
        let rows = vec![span, result("a", own), result("b", other)];
        let (found, ..) = controlled(rows.clone(), ControlSender::Executor, &[("a", ScoringState::Absent, 7)]);
        assert!(found.is_stale, "no trigger waits for it");
        let (_, states, _) = controlled(
            vec![json!({"id": "a", "_is_merge": true, "_async_scoring_control": trigger()})],
            CLIENT,
            &[("a", ScoringState::Absent, 7)],
        );
        let waiting = ScoringState::read(Some(&states[0])).expect("a state");
        let (found, states, _) = controlled(rows.clone(), ControlSender::Executor, &[("a", waiting.clone(), 8)]);
        assert_eq!(found, Controlled { expected: vec![(1, Xact(8))], dropped: vec![2], is_stale: false });
        assert_eq!((&states[0]["status"], states[1]["status"].as_str()), (&json!("disabled"), Some("enabled")));
        let (found, ..) = controlled(rows, ControlSender::Executor, &[("a", waiting, 0)]);
        assert!(found.is_stale, "the row was deleted");
    }
}
