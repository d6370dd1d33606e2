//! Writes with controls of online scoring. Each is conditional on the versions of the rows whose states it changes, and
//! is prepared again if one of them has changed meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use assay_cluster::Feature;
use assay_node_online_scoring::{ControlSender, ScoringState};
use assay_storage_model::command::{ExpectedRow, Outcome};
use assay_storage_model::event::SCORING_STATE;
use assay_storage_model::merge::doc_field;
use assay_storage_model::{NotWritten, ObjectKey, WriteOutcome, Xact};
use bytes::Bytes;
use uuid::Uuid;

use crate::read_path::fetch::{self, Reading};
use crate::write_path::deliver::deliver;
use crate::write_path::outcomes::{Acknowledged, as_sent};
use crate::write_path::prepare::{Prepared, prepare_all};
use crate::write_path::scoring::{
    Controlled, EffectTime, ExpectedVersions, RowControl, StoredState, apply_controls, needed_states,
};
use crate::write_path::work::Work;
use crate::{ObjectWrite, Objects, Patience, ReadError, RowHome, RowsRequest, WriteError, Written, together};

/// Upper bound of the attempts at a write whose rows keep changing.
const ATTEMPTS_MAX: usize = 32;
/// Pause before a further attempt, which grows with the attempts.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(2);
/// Ids in one second.
const IDS_PER_SECOND: u64 = 1 << 16;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// Write with its controls, in the order of the call.
#[derive(Debug)]
pub(crate) struct ControlledWrite {
    pub write: ObjectWrite,
    pub controls: Vec<RowControl>,
}

/// Write that is done, with the ids of its rows and their indexes in the call.
type DoneWrite = (WriteOutcome, Vec<String>, Vec<usize>);

/// Result of an attempt at all writes of a call.
struct Attempted {
    outcomes: Vec<WriteOutcome>,
    /// Ids of the rows of each write.
    row_ids: Vec<Vec<String>>,
    /// Indexes of the prepared rows of each write in the call.
    indexes: Vec<Vec<usize>>,
}

impl Objects {
    /// Writes rows with controls. Returns `None` if a result of the executor is stale.
    pub(crate) async fn write_controlled(
        &self,
        writes: Vec<ControlledWrite>,
        sender: ControlSender,
        patience: Patience,
    ) -> Result<Option<Vec<Written>>, WriteError> {
        let objects: Vec<ObjectKey> = writes.iter().map(|write| write.write.object).collect();
        let mut done: Vec<Option<DoneWrite>> = objects.iter().map(|_| None).collect();
        for attempt in 0..ATTEMPTS_MAX {
            let open: Vec<usize> = (0..done.len()).filter(|place| done[*place].is_none()).collect();
            let mut ready = Vec::with_capacity(open.len());
            for place in &open {
                let Some(prepared) = self.with_states(*place, &writes[*place], sender).await? else { return Ok(None) };
                ready.push(prepared);
            }
            let Attempted { outcomes, row_ids, indexes } = self.attempt(ready, patience).await?;
            let found = outcomes.into_iter().zip(row_ids).zip(indexes);
            for (place, ((outcome, row_ids), indexes)) in open.into_iter().zip(found) {
                if !matches!(outcome, Ok(Outcome::Conflict { .. })) {
                    done[place] = Some((outcome, row_ids, indexes));
                }
            }
            if done.iter().all(Option::is_some) {
                break;
            }
            tokio::time::sleep(ATTEMPT_PAUSE.saturating_mul(u32::try_from(attempt).unwrap_or(u32::MAX))).await;
        }
        let busy = || (Err(NotWritten::busy("a row of the write keeps changing").into()), Vec::new(), Vec::new());
        let mut all = Vec::with_capacity(done.len());
        let (mut outcomes, mut indexes) = (Vec::new(), Vec::new());
        for one in done {
            let (outcome, row_ids, rows) = one.unwrap_or_else(busy);
            outcomes.push(as_sent(outcome, &rows));
            all.push(row_ids);
            indexes.push(rows);
        }
        let org = objects.first().map(|object| object.org);
        let sent_to = objects.into_iter().enumerate().collect();
        let acknowledged = together(sent_to, outcomes, &indexes).map_err(|why| self.late(org, why))?;
        let written = all.into_iter().zip(acknowledged);
        Ok(Some(
            written.map(|(row_ids, Acknowledged { xact, duplicate })| Written { row_ids, xact, duplicate }).collect(),
        ))
    }

    /// Returns a write with the states after it, and its conditions; `None` if it is stale.
    async fn with_states(
        &self,
        place: usize,
        ControlledWrite { write, controls }: &ControlledWrite,
        sender: ControlSender,
    ) -> Result<Option<(ObjectWrite, ExpectedVersions)>, WriteError> {
        let mut write = write.clone();
        let needed = needed_states(&write.rows, controls);
        let (stored, read_at) = self.stored_states(write.object, needed).await?;
        let time = effect_time((self.shared.registry.clock)(), read_at);
        let found = apply_controls(&mut write.rows, controls, &stored, (time, sender));
        let Controlled { mut expected, dropped, is_stale } =
            found.map_err(|error| WriteError::Row { write: place, error })?;
        if is_stale {
            return Ok(None);
        }
        if !expected.is_empty() {
            self.check_conditional_writes()?;
        }
        for index in dropped.iter().rev() {
            write.rows.remove(*index);
            expected.iter_mut().filter(|(row, _)| row > index).for_each(|(row, _)| *row -= 1);
        }
        Ok(Some((write, expected)))
    }

    /// Refuses a conditional write while a node of the cluster would not understand it.
    fn check_conditional_writes(&self) -> Result<(), WriteError> {
        let lacking = self.shared.registry.cluster.nodes_lacking(Feature::ConditionalWrites);
        if lacking.is_empty() {
            return Ok(());
        }
        let why = format!("`_async_scoring_control` is not available: {}", lacking.join(", "));
        Err(WriteError::unavailable(why))
    }

    /// Reads the states of rows, all at one version.
    async fn stored_states(
        &self,
        object: ObjectKey,
        ids: Vec<String>,
    ) -> Result<(HashMap<String, StoredState>, Option<Xact>), WriteError> {
        let mut found: HashMap<String, StoredState> =
            ids.iter().map(|id| (id.clone(), StoredState::default())).collect();
        let (mut ids, mut version) = (ids, None);
        // Only the ids of these rows and their states are used, so the project does not matter.
        let home = RowHome { object, org: object.org, project_id: Uuid::nil() };
        while !ids.is_empty() {
            let reading = Reading::Rows(RowsRequest { ids: ids.clone(), version });
            let shared = &self.shared;
            let page = fetch::fetch(&shared.registry, &shared.readers, home, reading, &self.asker).await;
            let page = page.map_err(|why| WriteError::rows_unread(object, why))?;
            for row in &page.events {
                let (id, stored) = stored_state(row).map_err(|why| WriteError::rows_unread(object, why))?;
                found.insert(id, stored);
            }
            version = Some(page.version);
            let next = page.cursor.and_then(|next| next.parse().ok());
            ids = next.map(|next| ids.split_off(next)).unwrap_or_default();
        }
        Ok((found, version))
    }

    async fn attempt(
        &self,
        ready: Vec<(ObjectWrite, ExpectedVersions)>,
        patience: Patience,
    ) -> Result<Attempted, WriteError> {
        let registry = &self.shared.registry;
        let org = ready.first().map(|(write, _)| write.object.org);
        let (writes, expected): (Vec<ObjectWrite>, Vec<ExpectedVersions>) = ready.into_iter().unzip();
        let prepared = prepare_all(writes, (registry.clock)()).await?;
        let (mut works, mut row_ids, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
        for ((mut write, ids), expected) in prepared.into_iter().zip(expected) {
            write.expected = expected_rows(&write, &expected);
            indexes.push(write.rows.iter().map(|row| row.index).collect());
            row_ids.push(ids);
            works.push(Work::Prepared(write));
        }
        let delivered = deliver(registry, works, patience, &self.asker).await;
        let outcomes = delivered.map_err(|why| self.late(org, why.into()))?;
        Ok(Attempted { outcomes, row_ids, indexes })
    }
}

/// Returns the conditions by the places of the prepared rows. Rows that a later row of the request undoes have none.
fn expected_rows(write: &Prepared, expected: &ExpectedVersions) -> Vec<ExpectedRow> {
    let place = |index: usize| write.rows.iter().position(|row| row.index == index);
    let each = expected.iter().filter_map(|(index, version)| {
        let row = u32::try_from(place(*index)?).ok()?;
        Some(ExpectedRow { row, version: *version })
    });
    each.collect()
}

/// Returns the time of effects on states, which is that of the read if there was one.
fn effect_time(now_micros: i64, read_at: Option<Xact>) -> EffectTime {
    let now = u64::try_from(now_micros).unwrap_or(0);
    let second = Xact::at_micros(now);
    // Two writes within a second have different times, so that their states have different tokens.
    let within = now % MICROS_PER_SECOND * IDS_PER_SECOND / MICROS_PER_SECOND;
    let xact = read_at.unwrap_or(Xact(second.0 | within));
    EffectTime { xact, before: read_at.unwrap_or(second) }
}

/// Returns the id of a row, and its state with its version.
fn stored_state(row: &Bytes) -> Result<(String, StoredState), ReadError> {
    let broken = |why: String| ReadError::Internal(format!("a row for online scoring cannot be read: {why}"));
    let text = |name: &str| {
        let found = doc_field(row, name).map_err(|why| broken(why.to_string()))?;
        let found = found.ok_or_else(|| broken(format!("it has no `{name}`")))?;
        serde_json::from_slice::<String>(found).map_err(|why| broken(why.to_string()))
    };
    let version = Xact::parse(&text("_xact_id")?).map_err(|why| broken(why.to_string()))?;
    let state = doc_field(row, SCORING_STATE).map_err(|why| broken(why.to_string()))?;
    let state = state.map(serde_json::from_slice).transpose().map_err(|why| broken(why.to_string()))?;
    let state = ScoringState::read(state.as_ref()).map_err(|why| broken(why.to_string()))?;
    Ok((text("id")?, StoredState { state, version }))
}
