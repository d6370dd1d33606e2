//! Runs that caps refused although their results exist: those of rows that were written again.
//!
//! A row that replaces another loses its scores. The result of the same function on the same input is still in the
//! scorer's span, and is written to the row again without a run, which no cap counts.

use assay_node_online_scoring::{EffectIdentity, TriggerRequest, run_key, trigger_row};
use assay_storage_model::Xact;
use serde_json::{Map, Value};

use crate::follower::{FollowError, Follower, RESERVATIONS_MAX};
use crate::inputs::read_row;
use crate::run::is_reusable;

/// Request for a run that the caps of all its rules refused.
#[derive(Clone, Debug)]
pub(crate) struct RefusedRun {
    pub row_id: String,
    /// Request of the rules whose caps refused the run.
    pub request: TriggerRequest,
    /// Write that causes the run.
    pub caused_by: Option<u64>,
}

impl RefusedRun {
    /// Returns the id of the scorer's row, unless the run has to happen even if there is one.
    fn scorer_row(&self) -> Option<String> {
        let TriggerRequest { function, scope, run_key: key, selection, .. } = &self.request;
        let digest = selection.as_ref()?.digest;
        let is_forced = key.as_deref() != Some(&run_key(function, scope, Some(digest), None));
        let identity = EffectIdentity::new(&self.row_id, scope, function, digest);
        (!is_forced).then(|| identity.row_id.to_string())
    }
}

impl Follower {
    /// Admits refused runs whose results exist, and counts the others as skipped. Returns the writes of the admitted ones.
    pub(crate) async fn admit_refused(&mut self) -> Result<Vec<Value>, FollowError> {
        let refused = std::mem::take(&mut self.refused);
        if refused.is_empty() {
            return Ok(Vec::new());
        }
        let object = self.object;
        let scorer_rows: Vec<Option<String>> = refused.iter().map(RefusedRun::scorer_row).collect();
        let read = self.executor.read(object, move |view| {
            let has_result = |id: Option<String>| match id {
                Some(id) => Ok(read_row(view, &object, &id, Xact::MAX)?.is_some_and(|row| is_reusable(&row.members))),
                None => Ok(false),
            };
            scorer_rows.into_iter().map(has_result).collect::<Result<Vec<bool>, _>>()
        });
        let mut rows = Vec::new();
        for (run, has_result) in refused.into_iter().zip(read.await?) {
            if !has_result {
                let rules = run.request.selection.into_iter().flat_map(|selection| selection.rules);
                rules.for_each(|rule| self.skip(rule, run.caused_by));
                continue;
            }
            if self.repeated.len() >= RESERVATIONS_MAX {
                // Those runs wait for a place under their caps.
                self.repeated.clear();
            }
            self.repeated.insert((run.row_id.clone(), run.request.run_key.clone()));
            let row = Map::from_iter([("id".to_owned(), run.row_id.into())]);
            rows.extend(trigger_row(&row, vec![run.request]));
        }
        Ok(rows)
    }
}
