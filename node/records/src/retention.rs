//! Retention, as far as the catalog knows of it: which objects have rows that are kept for so many days and no longer, and
//! which of them are on their way out of the history.
//!
//! | rule | is about |
//! |---|---|
//! | a project's automation | the logs, all experiments or all datasets of the project |
//! | an organization's | those of all its projects that have no rule of their own for this kind of object |
//!
//! Where several say something the shortest counts. Old rows are deleted as a client would, and then the history below the
//! deletes is given up, so that they leave the disk. Between the two a crash would leave rows that nobody sees and that
//! stay for good; so that an object is being expired is written down first, and whoever finds it so goes on.

use std::collections::HashMap;

use assay_storage_catalog::State;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind, UniqueKey,
};
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{DATASET, EXPERIMENT, ORG_AUTOMATION, PROJECT, PROJECT_AUTOMATION};
use crate::{Records, edge};

const EXPIRY_SCOPE: &str = "expiry.object";
/// What rules can be about.
const RULED: [(ObjectKind, &Kind); 3] =
    [(ObjectKind::ProjectLogs, &PROJECT), (ObjectKind::Experiment, &EXPERIMENT), (ObjectKind::Dataset, &DATASET)];

/// Rows of an object that are kept so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keeping {
    pub object: ObjectKey,
    pub project: Uuid,
    pub days: f64,
}

/// The days by what a rule is on, a project or an organization, and the kind of object.
type Rules = HashMap<(Uuid, ObjectKind), f64>;

impl Records {
    /// Everything that a rule is about, as this node's copy of the catalog has it.
    pub fn keepings(&self) -> Result<Vec<Keeping>, RecordsError> {
        self.peek(|state| {
            let rules = rules(state)?;
            if rules.is_empty() {
                return Ok(Vec::new());
            }
            let mut all = Vec::new();
            for (object, kind) in RULED {
                for record in state.all(kind.record).filter(|record| kind.lives(state, record)) {
                    let (Some(org), Some(project)) = (record.org, kind.project_of(record)) else { continue };
                    if let Some(days) = rules.get(&(project, object)).or_else(|| rules.get(&(org.0, object))) {
                        all.push(Keeping { object: ObjectKey::new(org, object, record.id), project, days: *days });
                    }
                }
            }
            Ok(all)
        })
    }

    /// Objects whose old rows were being deleted.
    pub fn expiring(&self) -> Vec<ObjectKey> {
        self.peek(|state| state.all(RecordKind::EXPIRY).filter_map(|record| expiring(record)).collect())
    }

    /// Before the first of its rows is deleted.
    pub async fn begin_expiry(&self, object: &ObjectKey) -> Result<(), RecordsError> {
        let put = PutRecord {
            kind: RecordKind::EXPIRY,
            id: object.id,
            org: Some(object.org),
            expect: Expect::Absent,
            keys: vec![UniqueKey::new(EXPIRY_SCOPE, object.id.to_string())],
            body: json!({"object": object.kind.name()}).to_string().into_bytes(),
            at: edge::now_micros(),
        };
        match self.propose_one(By::System, CatalogCommand::Put(put)).await? {
            // Somebody has begun, and not ended.
            CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives up the history of an object up to now, with the rows that were deleted, and says that it is done.
    pub async fn end_expiry(&self, object: &ObjectKey) -> Result<(), RecordsError> {
        if let Some(last) = self.raise_floor(object, Xact::ZERO).await? {
            self.raise_floor(object, last).await?;
        }
        let delete = DeleteRecord { kind: RecordKind::EXPIRY, id: object.id, expect: Expect::Any };
        match self.propose_one(By::System, CatalogCommand::Delete(delete)).await? {
            CatalogOutcome::Deleted { .. } | CatalogOutcome::Stale { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// The last write of its shard; none where the object was dropped, and its rows with it.
    async fn raise_floor(&self, object: &ObjectKey, floor: Xact) -> Result<Option<Xact>, RecordsError> {
        let command = Bytes::from(Command::RaiseFloor { object: *object, floor }.encode());
        match self.cluster.write(self.cluster.locate(object), command).await? {
            Outcome::Done { last } => Ok(Some(last)),
            Outcome::ObjectGone => Ok(None),
            other => {
                Err(RecordsError::Internal(format!("giving up history of {object}: the shard answered {other:?}")))
            }
        }
    }
}

fn expiring(record: &Record) -> Option<ObjectKey> {
    let body = draft::read(record).ok()?;
    let kind = RULED.iter().find(|(kind, _)| body.get("object").and_then(Value::as_str) == Some(kind.name()))?.0;
    Some(ObjectKey::new(record.org?, kind, record.id))
}

fn rules(state: &State) -> Result<Rules, RecordsError> {
    let mut rules = Rules::new();
    let projects = state.all(RecordKind::AUTOMATION).filter(|record| PROJECT_AUTOMATION.lives(state, record));
    for record in projects {
        if let Some(project) = PROJECT_AUTOMATION.project_of(record) {
            note(&mut rules, project, &draft::read(record)?);
        }
    }
    for record in state.all(RecordKind::ORG_AUTOMATION).filter(|record| ORG_AUTOMATION.lives(state, record)) {
        if let Some(OrgId(org)) = record.org {
            note(&mut rules, org, &draft::read(record)?);
        }
    }
    Ok(rules)
}

fn note(rules: &mut Rules, on: Uuid, body: &Body) {
    let Some((object, days)) = body.get("config").and_then(rule) else { return };
    let known = rules.entry((on, object)).or_insert(days);
    *known = known.min(days);
}

/// None of a configuration that is about something else.
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
