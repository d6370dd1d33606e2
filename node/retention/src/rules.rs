//! Retention rules in the catalog, and records of the objects whose old rows are being deleted.
//!
//! | rule | objects |
//! |---|---|
//! | automation of a project | the logs, all experiments or all datasets of the project |
//! | automation of an organization | the same in its projects that have no own rule for this kind of object |
//!
//! If a project or an organization has several rules for a kind of object, the shortest one applies.
//!
//! Old rows are deleted like rows that a client deletes. The history below the deletes is then discarded, which removes
//! the rows from the disk. A crash between these two steps would leave invisible rows on the disk forever. A record
//! therefore marks the object before its first delete, and a later round continues.

use std::collections::HashMap;

use assay_cluster::Cluster;
use assay_node_records::kinds::{DATASET, EXPERIMENT, ORG_AUTOMATION, PROJECT, PROJECT_AUTOMATION};
use assay_node_records::mechanism::{self, Body, By, CatalogView, unexpected};
use assay_node_records::{Kind, Records, RecordsError};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind, UniqueKey};
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

const EXPIRY_SCOPE: &str = "expiry.object";
/// Kinds of objects to which rules can apply.
const RULED: [(ObjectKind, &Kind); 3] =
    [(ObjectKind::ProjectLogs, &PROJECT), (ObjectKind::Experiment, &EXPERIMENT), (ObjectKind::Dataset, &DATASET)];

/// Object to which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetainedObject {
    pub object: ObjectKey,
    pub project: Uuid,
    /// Number of days for which its rows are kept.
    pub days: f64,
}

/// Number of days by the project or organization of the rule and the kind of object.
type Rules = HashMap<(Uuid, ObjectKind), f64>;

/// Returns every object to which a rule applies, according to this node's copy of the catalog.
pub fn retained_objects(records: &Records) -> Result<Vec<RetainedObject>, RecordsError> {
    records.catalog().peek(|state| {
        let rules = rules(state)?;
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for (object, kind) in RULED {
            for record in state.all(kind.record).filter(|record| kind.lives(state, record)) {
                let (Some(org), Some(project)) = (record.org, kind.project_of(record)) else { continue };
                if let Some(days) = rules.get(&(project, object)).or_else(|| rules.get(&(org.0, object))) {
                    all.push(RetainedObject { object: ObjectKey::new(org, object, record.id), project, days: *days });
                }
            }
        }
        Ok(all)
    })
}

/// Returns the objects that are marked for the deletion of old rows.
pub fn expiring_objects(records: &Records) -> Vec<ObjectKey> {
    records.catalog().peek(|state| state.all(RecordKind::EXPIRY).filter_map(|record| expiring(record)).collect())
}

/// Marks an object before the deletion of its old rows.
pub async fn begin_expiry(records: &Records, object: &ObjectKey) -> Result<(), RecordsError> {
    let put = PutRecord {
        kind: RecordKind::EXPIRY,
        id: object.id,
        org: Some(object.org),
        expect: Expect::Absent,
        keys: vec![UniqueKey::new(EXPIRY_SCOPE, object.id.to_string())],
        body: json!({"object": object.kind.name()}).to_string().into_bytes(),
        at: mechanism::now_micros(),
    };
    match records.catalog().propose_one(By::System, CatalogCommand::Put(put)).await? {
        // Another round has already marked the object, and has not finished it.
        CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Discards the history of an object together with its deleted rows, and removes the mark of the object.
pub async fn end_expiry(records: &Records, cluster: &Cluster, object: &ObjectKey) -> Result<(), RecordsError> {
    if let Some(last) = raise_floor(cluster, object, Xact::ZERO).await? {
        raise_floor(cluster, object, last).await?;
    }
    records.catalog().delete_record(By::System, RecordKind::EXPIRY, object.id).await
}

/// Raises the history floor of an object.
///
/// Returns the last write of its shard, or `None` if the object was dropped together with its rows.
async fn raise_floor(cluster: &Cluster, object: &ObjectKey, floor: Xact) -> Result<Option<Xact>, RecordsError> {
    let command = Bytes::from(Command::RaiseFloor { object: *object, floor }.encode());
    match cluster.write(cluster.locate(object), command).await? {
        Outcome::Done { last } => Ok(Some(last)),
        Outcome::ObjectGone => Ok(None),
        other => {
            Err(RecordsError::Internal(format!("cannot discard history of {object}: unexpected outcome {other:?}")))
        }
    }
}

fn expiring(record: &Record) -> Option<ObjectKey> {
    let body = mechanism::read_body(record).ok()?;
    let kind = RULED.iter().find(|(kind, _)| body.get("object").and_then(Value::as_str) == Some(kind.name()))?.0;
    Some(ObjectKey::new(record.org?, kind, record.id))
}

fn rules(state: &CatalogView<'_>) -> Result<Rules, RecordsError> {
    let mut rules = Rules::new();
    let projects = state.all(RecordKind::AUTOMATION).filter(|record| PROJECT_AUTOMATION.lives(state, record));
    for record in projects {
        if let Some(project) = PROJECT_AUTOMATION.project_of(record) {
            note(&mut rules, project, &mechanism::read_body(record)?);
        }
    }
    for record in state.all(RecordKind::ORG_AUTOMATION).filter(|record| ORG_AUTOMATION.lives(state, record)) {
        if let Some(OrgId(org)) = record.org {
            note(&mut rules, org, &mechanism::read_body(record)?);
        }
    }
    Ok(rules)
}

fn note(rules: &mut Rules, on: Uuid, body: &Body) {
    let Some((object, days)) = body.get("config").and_then(rule) else { return };
    let known = rules.entry((on, object)).or_insert(days);
    *known = known.min(days);
}

/// Returns the rule in the configuration of an automation, or `None` if it is not a retention rule.
fn rule(config: &Value) -> Option<(ObjectKind, f64)> {
    let said = |name: &str| config.get(name)?.as_str();
    let named = said("object_type").filter(|_| said("event_type") == Some("retention"))?;
    let object = RULED.iter().find(|(kind, _)| kind.name() == named)?.0;
    Some((object, config.get("retention_days")?.as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_rule_counts_and_other_automations_are_none() {
        let (project, mut rules) = (Uuid::from_u128(1), Rules::new());
        let said = |event: &str, object: &str, days: f64| {
            let config = json!({"event_type": event, "object_type": object, "retention_days": days});
            Body::from_iter([("config".to_owned(), config)])
        };
        for body in [
            said("retention", "project_logs", 30.0),
            said("retention", "project_logs", 7.5),
            said("retention", "project_logs", 90.0),
            said("retention", "dataset", 1.0),
            said("logs", "experiment", 1.0),
            said("retention", "playground_logs", 1.0),
        ] {
            note(&mut rules, project, &body);
        }
        let expected = [((project, ObjectKind::ProjectLogs), 7.5), ((project, ObjectKind::Dataset), 1.0)];
        assert_eq!(rules, Rules::from(expected));
    }
}
