//! Background job that deletes rows older than a rule allows, and removes them from the disk.
//!
//! The leader of the catalog periodically visits all objects with rules. Two nodes may do so concurrently, for example
//! while the leader changes, without harm.
//!
//! The age of a row counts from its `created` time, which clients set. Versions before the deletes become unreadable
//! (410), because they would show deleted rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use assay_cluster::Cluster;
use assay_node_objects::{ObjectWrite, Objects, Patience, WriteError};
use assay_node_query::{Home, Queries, Question, Who};
use assay_node_records::Records;
use assay_storage_model::event::{SentItem, format_micros};
use assay_storage_model::{GroupId, ObjectKey, ObjectKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rules::{RetainedObject, begin_expiry, end_expiry, expiring_objects, retained_objects};

/// Settings of retention.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Interval between two rounds of retention, in seconds.
    pub every_seconds: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        RetentionConfig { every_seconds: 3600 }
    }
}

impl RetentionConfig {
    /// Returns the interval between two rounds.
    pub fn every(&self) -> Duration {
        Duration::from_secs(self.every_seconds.max(1))
    }
}

const MICROS_PER_DAY: f64 = 86_400e6;
/// Upper bound of the number of objects that one query searches.
const OBJECTS_AT_ONCE: usize = 200;
/// Upper bound of the number of rows that one query finds.
const ROWS_AT_ONCE: u64 = 5_000;
/// Upper bound of the number of rows in one write.
const DELETED_AT_ONCE: usize = 1_000;
/// Pause before the next attempt at a failed write.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// Upper bound of the number of attempts at one write, after which the round fails.
const TRIES_MAX: usize = 30;

/// Retention job of a node.
#[derive(Clone, Debug)]
pub struct Retention {
    pub cluster: Arc<Cluster>,
    pub records: Records,
    pub objects: Objects,
    pub queries: Queries,
    pub every: Duration,
}

impl Retention {
    /// Deletes old rows in rounds, and never returns.
    pub async fn keep(self) {
        loop {
            tokio::time::sleep(self.every).await;
            if !self.cluster.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
                continue;
            }
            match self.round().await {
                Ok(0) => {}
                Ok(rows) => {
                    tracing::info!(rows, "deleted rows that were older than the retention rules allow")
                }
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "retention did not complete; it is retried later");
                }
            }
        }
    }

    /// Runs one round, and returns the number of deleted rows.
    ///
    /// A failure for some objects does not stop the round for the others.
    async fn round(&self) -> anyhow::Result<u64> {
        let (mut rows, mut failures) = (0, Vec::new());
        for objects in alike(retained_objects(&self.records)?) {
            match self.expire(&objects).await.with_context(|| format!("{}", objects[0].object)) {
                Ok(deleted) => rows += deleted,
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
        // These include the objects of an earlier, interrupted round.
        for object in expiring_objects(&self.records) {
            if let Err(error) = end_expiry(&self.records, &self.cluster, &object).await {
                failures.push(format!("{object}: {error}"));
            }
        }
        match failures.first() {
            None => Ok(rows),
            Some(first) => bail!("{rows} rows were deleted, and {} steps failed, first: {first}", failures.len()),
        }
    }

    async fn expire(&self, objects: &[RetainedObject]) -> anyhow::Result<u64> {
        let days = objects[0].days;
        let before = self.queries.now().saturating_sub((days * MICROS_PER_DAY) as i64);
        let mut begun = BTreeSet::new();
        let mut rows = 0;
        loop {
            let old = self.older(objects, before).await?;
            if old.is_empty() {
                return Ok(rows);
            }
            for (object, ids) in old {
                if begun.insert(object) {
                    begin_expiry(&self.records, &object).await?;
                }
                for ids in ids.chunks(DELETED_AT_ONCE) {
                    self.delete(object, ids).await?;
                    rows += ids.len() as u64;
                }
            }
        }
    }

    /// Returns the ids of some of the rows created before a time, by object.
    async fn older(&self, objects: &[RetainedObject], before: i64) -> anyhow::Result<BTreeMap<ObjectKey, Vec<String>>> {
        let first = objects[0].object;
        let queries = &self.queries;
        let query = question(first.kind, objects, before);
        let question = Question { query, now: queries.now(), ..Question::default() };
        let homes = objects.iter().map(|one| Home { object: one.object, org: one.object.org, project_id: one.project });
        let homes: Vec<_> = homes.collect();
        let mut answer = queries.ask(Who::organization(first.org), question.read()?, &homes, None, None);
        let mut found: BTreeMap<ObjectKey, Vec<String>> = BTreeMap::new();
        while let Some(table) = answer.next().await? {
            for row in table.rows() {
                let text = |place: usize| row.get(place).and_then(|cell| cell.to_text());
                let of = text(1).and_then(|of| Uuid::parse_str(&of).ok());
                let (Some(id), Some(of)) = (text(0), of) else { bail!("a row has no id") };
                let object = ObjectKey::new(first.org, first.kind, of);
                found.entry(object).or_default().push(id.into_owned());
            }
        }
        Ok(found)
    }

    async fn delete(&self, object: ObjectKey, ids: &[String]) -> anyhow::Result<()> {
        for _ in 0..TRIES_MAX {
            let rows = ids.iter().map(|id| SentItem::from(json!({"id": id, "_object_delete": true}))).collect();
            match self.objects.write(vec![ObjectWrite { object, rows, request: None }], Patience::usual()).await {
                // If the object was deleted concurrently, so were its rows.
                Ok(_) | Err(WriteError::Gone { .. }) => return Ok(()),
                Err(why) if why.may_pass() => {
                    tokio::time::sleep(BUSY_WAIT).await;
                }
                Err(why) => return Err(why.into()),
            }
        }
        bail!("{} rows could not be deleted in {TRIES_MAX} attempts", ids.len())
    }
}

/// Groups the objects that one query can search, which share their organization, kind and age limit.
fn alike(mut objects: Vec<RetainedObject>) -> Vec<Vec<RetainedObject>> {
    let key = |one: &RetainedObject| (one.object.org, one.object.kind as u8, one.days.to_bits(), one.object.id);
    objects.sort_by_key(key);
    let same = |a: &RetainedObject, b: &RetainedObject| {
        (a.object.org, a.object.kind, a.days.to_bits()) == (b.object.org, b.object.kind, b.days.to_bits())
    };
    let runs = objects.chunk_by(same).flat_map(|run| run.chunks(OBJECTS_AT_ONCE));
    runs.map(<[RetainedObject]>::to_vec).collect()
}

fn question(kind: ObjectKind, objects: &[RetainedObject], before: i64) -> Value {
    let (source, of) = match kind {
        ObjectKind::Experiment => ("experiment", "experiment_id"),
        ObjectKind::Dataset => ("dataset", "dataset_id"),
        _ => ("project_logs", "project_id"),
    };
    let ident = |name: &str| json!({"op": "ident", "name": [name]});
    let column = |name: &str| json!({"alias": name, "expr": ident(name)});
    let ids: Vec<_> = objects.iter().map(|one| json!({"op": "literal", "value": one.object.id.to_string()})).collect();
    json!({
        "select": [column("id"), column(of)],
        "from": {"op": "function", "name": ident(source), "args": ids},
        "filter": {"op": "lt", "left": ident("created"), "right": {"op": "literal", "value": format_micros(before)}},
        "limit": ROWS_AT_ONCE,
    })
}

#[cfg(test)]
mod tests {
    use assay_storage_model::OrgId;

    use super::*;

    #[test]
    fn one_query_is_about_objects_that_are_alike() {
        let one = |org: u128, kind, id: u128, days| {
            let object = ObjectKey::new(OrgId(Uuid::from_u128(org)), kind, Uuid::from_u128(id));
            RetainedObject { object, project: Uuid::nil(), days }
        };
        let (logs, dataset) = (ObjectKind::ProjectLogs, ObjectKind::Dataset);
        let many = (0..OBJECTS_AT_ONCE as u128 + 1).map(|id| one(9, dataset, id, 1.0));
        let few = [
            one(1, logs, 1, 7.0),
            one(1, dataset, 2, 7.0),
            one(1, logs, 3, 7.0),
            one(2, logs, 4, 7.0),
            one(1, logs, 5, 8.0),
        ];
        let sizes: Vec<usize> = alike(many.chain(few).collect()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1, 1, OBJECTS_AT_ONCE, 1]);
    }

    #[test]
    fn what_is_asked_is_a_question() {
        let id = Uuid::from_u128(5);
        let object = ObjectKey::new(OrgId(Uuid::nil()), ObjectKind::Dataset, id);
        let query = question(ObjectKind::Dataset, &[RetainedObject { object, project: id, days: 1.0 }], 0);
        let read = Question { query, ..Question::default() }.read().expect("it reads");
        assert_eq!(read.sources().names, [id.to_string()]);
    }
}
