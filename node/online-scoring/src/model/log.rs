//! Log of the model: rows with their versions, and a write path that applies controls.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::candidates::{finish_after_write, is_finished};
use crate::control::{CONTROL_FIELD, SKIP_FIELD, ScoringControl};
use crate::control_effects::{control_effect, skip_effect};
use crate::function_key::OnlineFunction;
use crate::input_digest::InputDigest;
use crate::state::ScoringState;

pub(super) fn name_of(row: u8) -> String {
    format!("r{row}")
}

/// Write as the executor folds it.
#[derive(Clone, Debug)]
pub(super) struct ModelWrite {
    pub(super) xact: u64,
    pub(super) is_whole: bool,
    pub(super) before: Option<Map<String, Value>>,
    pub(super) after: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelRow {
    pub(super) doc: Value,
    pub(super) state: ScoringState,
    pub(super) xact: u64,
    /// Number of the row's replacements.
    pub(super) life: u64,
    pub(super) writes: Vec<ModelWrite>,
    /// Writes of this life that finished the span and were not skipped.
    pub(super) finishes: Vec<u64>,
    /// Whether a skipped write of this life finished the span.
    pub(super) skipped: bool,
}

/// Result that reached a row.
#[derive(Clone, Debug)]
pub(super) struct ModelEffect {
    pub(super) row_id: String,
    pub(super) life: u64,
    pub(super) function: OnlineFunction,
    pub(super) digest: InputDigest,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ModelLog {
    pub(super) rows: BTreeMap<String, ModelRow>,
    pub(super) xact: u64,
    pub(super) effects: Vec<ModelEffect>,
    /// Controls of clients that demand runs, by row and life.
    pub(super) forced: BTreeMap<(String, u64), usize>,
}

impl ModelLog {
    /// Applies a write of a client or an executor.
    pub(super) fn write(&mut self, write: Value) {
        self.xact += 1;
        let xact = self.xact;
        let mut patch = write.as_object().cloned().expect("an object");
        let id = patch["id"].as_str().expect("an id").to_owned();
        let control = ScoringControl::of_write(&patch).expect("a valid control");
        let skips = patch.remove(SKIP_FIELD).is_some_and(|skips| skips == true);
        patch.remove(CONTROL_FIELD);
        let is_merge = patch.remove("_is_merge").is_some_and(|merges| merges == true);
        let before = self.rows.get(&id).cloned();
        let mut row = before.clone().filter(|_| is_merge).unwrap_or_else(|| ModelRow {
            doc: Value::Object(Map::new()),
            state: ScoringState::Absent,
            xact,
            life: before.as_ref().map_or(0, |before| before.life + 1),
            writes: before.as_ref().map(|before| before.writes.clone()).unwrap_or_default(),
            finishes: Vec::new(),
            skipped: false,
        });
        let effect = control.as_ref().map(|control| control_effect(&row.state, &id, xact, control).expect("a place"));
        if effect.as_ref().is_none_or(|effect| effect.applies) {
            merge(&mut row.doc, Value::Object(patch.clone()));
        }
        row.state = effect.map_or(row.state, |effect| effect.state);
        self.note_demand(&id, &row, control.as_ref());
        let before = before.and_then(|before| before.doc.as_object().cloned());
        let after = row.doc.as_object().cloned().expect("an object");
        let finishes = finish_after_write(None, xact, !is_merge, before.as_ref(), &after).is_some();
        match (finishes, skips) {
            (true, true) => row.skipped = true,
            (true, false) => row.finishes.push(xact),
            (false, _) => {}
        }
        if skips {
            row.state = skip_effect(&row.state, &id, xact, is_finished(&patch, !is_merge));
        }
        row.writes.push(ModelWrite { xact, is_whole: !is_merge, before, after });
        row.xact = xact;
        self.rows.insert(id, row);
    }

    fn note_demand(&mut self, id: &str, row: &ModelRow, control: Option<&ScoringControl>) {
        let is_demand = match control {
            Some(ScoringControl::ForceReselect | ScoringControl::EnabledForceRescore) => true,
            Some(ScoringControl::TriggerFunctions(requests)) => {
                requests.iter().all(|request| request.selection.is_none())
            }
            _ => false,
        };
        if is_demand {
            *self.forced.entry((id.to_owned(), row.life)).or_default() += 1;
        }
    }

    /// Returns a row as it was at a version.
    pub(super) fn row_at(&self, id: &str, xact: u64) -> Option<&Map<String, Value>> {
        let writes = &self.rows.get(id)?.writes;
        writes.iter().rev().find(|write| write.xact <= xact).map(|write| &write.after)
    }
}

/// Merges objects member by member.
fn merge(value: &mut Value, patch: Value) {
    match (value, patch) {
        (Value::Object(members), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(members.entry(name).or_insert(Value::Null), value);
            }
        }
        (value, patch) => *value = patch,
    }
}
