//! Selection of rows: from the changed rows of a part of the log to the triggers in the states of rows.

use assay_node_online_scoring::{
    CONTROL_FIELD, OPEN_TRIGGERS_MAX, RowVersion, ScoringControl, ScoringState, TriggerRequest, select_span,
    trigger_row,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::follower::{FollowError, Follower};
use crate::log_reading::{ChangedRow, RowChange, read_part};
use crate::refused::RefusedRun;

/// Open triggers up to which the log is read on.
const READ_UP_TO: usize = OPEN_TRIGGERS_MAX / 2;

/// Refusal of a part because too much waits already. It is read again later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom;

impl Follower {
    /// Reads the next part of the log. Returns whether there is more.
    pub(crate) async fn read_log(&mut self) -> Result<bool, FollowError> {
        let cluster = &self.executor.cluster;
        let shard = cluster.shard(cluster.locate(&self.object)).ok_or(FollowError::Lost)?;
        let last = shard.object(&self.object).map_or(0, |record| record.last.0);
        if last <= self.read_xact || self.open.len() > READ_UP_TO {
            return Ok(false);
        }
        let (object, from) = (self.object, self.read_xact);
        let part = self.executor.read(object, move |view| read_part(view, &object, from)).await?;
        self.skipped.clear();
        self.refused.clear();
        let mut rows = Vec::new();
        for change in &part.changes {
            if self.observe(change, part.version.0).is_err() {
                return Ok(false);
            }
            rows.extend(change.row.as_ref().map(|row| self.select(&change.id, row)).unwrap_or_default());
            if self.note_activity(change).is_err() {
                return Ok(false);
            }
        }
        self.resolve_groups().await?;
        rows.extend(self.admit_refused().await?);
        self.write_rows(rows).await?;
        self.read_xact = part.read_xact;
        self.count_part(part.read_xact);
        Ok(!part.is_last)
    }

    /// Takes over the open triggers of a row.
    fn observe(&mut self, change: &RowChange, version: u64) -> Result<(), NoRoom> {
        let observed = match &change.row {
            Some(row) => self.open.observe(&change.id, &row.state, row.stored.xact.0),
            None => self.open.observe(&change.id, &ScoringState::Absent, version),
        };
        observed.map_err(|_| NoRoom)
    }

    /// Returns the writes that a row causes: the end of triggers of rules that do not run, and new triggers.
    fn select(&mut self, id: &str, row: &ChangedRow) -> Vec<Value> {
        let control = |control: ScoringControl| json!({"id": id, "_is_merge": true, CONTROL_FIELD: control.to_json()});
        if row.was_disabled {
            return vec![control(ScoringControl::StateOverride(ScoringState::disabled()))];
        }
        let mut rows = Vec::new();
        let waiting = row.state.waiting_rules().into_iter();
        let ended: Vec<Uuid> = waiting.filter(|rule| !self.is_active(*rule)).collect();
        if !ended.is_empty() {
            rows.push(control(ScoringControl::CancelTriggers { rules: ended }));
        }
        if self.excluded.observe(&row.members, &row.state).is_err() {
            return rows;
        }
        let version = RowVersion { row: &row.members, xact: row.stored.xact.0, finish_xact: row.finish_xact };
        let requests = select_span(&self.in_force(), &version, &row.state, |rule| self.passes(rule, &row.stored));
        rows.extend(trigger_row(&row.members, self.admit(requests, &row.state, (id, Some(version.xact)))));
        rows
    }

    /// Takes the rules that have reached their caps out of requests for runs. `caused_by` is the write that causes them.
    ///
    /// Requests without any other rule are kept until [`Follower::admit_refused`] has looked for their results.
    pub(crate) fn admit(
        &mut self,
        requests: Vec<TriggerRequest>,
        state: &ScoringState,
        (row_id, caused_by): (&str, Option<u64>),
    ) -> Vec<TriggerRequest> {
        let mut admitted = Vec::with_capacity(requests.len());
        for mut request in requests {
            let mut rules = Vec::new();
            let mut is_wanted = true;
            while is_wanted && request.causes_run(state) {
                let payer = request.selection.as_ref().and_then(|selection| selection.rules.first().copied());
                let Some(payer) = payer else { break };
                if self.reserve(payer, (row_id.to_owned(), request.run_key.clone())).is_ok() {
                    break;
                }
                rules.push(payer);
                is_wanted = request.drop_rule(payer);
            }
            if is_wanted {
                rules.into_iter().for_each(|rule| self.skip(rule, caused_by));
                admitted.push(request);
            } else if let Some(selection) = &mut request.selection {
                selection.rules = rules;
                self.refused.push(RefusedRun { row_id: row_id.to_owned(), request, caused_by });
            }
        }
        admitted
    }
}
