//! Rules of online scoring: their author, the position of the log from which they apply, and demands of clients.

use assay_node_auth::Principal;
use assay_node_online_scoring::{DEMAND_NOTED_MS, ExecutorRecord, is_online_rule, sign_rule};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, UniqueKey};
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use bytes::Bytes;
use uuid::Uuid;

use crate::audit::By;
use crate::commit::unexpected;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::PROJECT_SCORE;
use crate::{Records, edge};

/// Upper bound of the attempts at a record that an executor writes too.
const ATTEMPTS_MAX: usize = 8;
const EXECUTOR_SCOPE: &str = "online_scoring.executor";

/// Returns the write of the record of an executor.
pub fn executor_put(org: OrgId, project: Uuid, expect: Expect, record: &ExecutorRecord) -> PutRecord {
    PutRecord {
        kind: RecordKind::ONLINE_SCORING,
        id: project,
        org: Some(org),
        expect,
        keys: vec![UniqueKey::new(EXECUTOR_SCOPE, project.to_string())],
        body: record.encode(),
        at: edge::now_micros(),
    }
}

impl Records {
    /// Sets the hidden members of a rule before it is written. Other records are not changed.
    pub(crate) async fn sign_rule(
        &self,
        kind: &Kind,
        who: &Principal,
        before: Option<&Body>,
        body: &mut Body,
    ) -> Result<(), RecordsError> {
        if kind.record != PROJECT_SCORE.record {
            return Ok(());
        }
        let project = draft::id_in(body, "project_id").filter(|_| is_online_rule(body));
        let last = match project {
            Some(project) => self.last_write(ObjectKey::new(who.org, ObjectKind::ProjectLogs, project)).await?,
            None => Xact::ZERO,
        };
        sign_rule(who.user, before, last.0, body);
        Ok(())
    }

    /// Notes that a client demands runs on a project's log, so that an executor follows it even without rules.
    pub async fn note_scoring_demand(&self, object: ObjectKey) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let now_ms = u64::try_from(edge::now_micros()).unwrap_or(0) / 1000;
            let known = self.catalog.peek(|view| view.get(RecordKind::ONLINE_SCORING, object.id).cloned());
            let (mut record, expect) = match &known {
                Some(known) => {
                    let record = ExecutorRecord::decode(&known.body).map_err(RecordsError::Internal)?;
                    (record, Expect::Revision(known.revision))
                }
                None => {
                    let position = self.last_write(object).await?.0;
                    (ExecutorRecord { position, ..ExecutorRecord::default() }, Expect::Absent)
                }
            };
            if record.demanded_ms.saturating_add(DEMAND_NOTED_MS) > now_ms {
                return Ok(());
            }
            record.demanded_ms = now_ms;
            let put = executor_put(object.org, object.id, expect, &record);
            match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(()),
                CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("the record of online scoring keeps changing: try again".into()))
    }

    /// Returns the last write of the shard of an object. Writes that begin after the call get later ids.
    async fn last_write(&self, object: ObjectKey) -> Result<Xact, RecordsError> {
        let cluster = &self.catalog.cluster;
        let command = Bytes::from(Command::Advance { to: Xact::ZERO }.encode());
        match cluster.write(cluster.locate(&object), command).await? {
            Outcome::Done { last } => Ok(last),
            other => Err(RecordsError::Internal(format!("unexpected outcome of a read of the last write: {other:?}"))),
        }
    }
}
