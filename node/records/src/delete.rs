//! Deletes of records, which take effect with one write and remove the rows afterwards.
//!
//! | step | after a crash |
//! |---|---|
//! | the record loses its unique keys | not deleted, or deleted for everyone and found by `sweep` |
//! | the shards drop its rows and those of contained records | repeated, which is idempotent |
//! | the record is removed | complete; list cursors at the record stay valid |
//!
//! An experiment created during the delete of its project is invisible with it, and `sweep` removes it.

use std::time::Duration;

use assay_node_auth::{Permission, Principal};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record};
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::{ObjectKey, OrgId};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::authz::guard::is_gone;
use crate::commit::unexpected;
use crate::draft::{self, Frame};
use crate::environments::has_no_environment;
use crate::error::RecordsError;
use crate::kind::{Home, Kind};
use crate::kinds::{self, ENV_VAR, PROJECT, acl};
use crate::list::Walk;
use crate::read::{VisibleRecord, visible};
use crate::{Records, edge};

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of concurrent removals of objects or records, whose writes share flushes.
const DROPS_AT_ONCE_MAX: usize = 32;
/// Time that a response waits for the rest of a delete, which continues in the background.
const FINISH_WAIT_MAX: Duration = Duration::from_secs(5);

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub records: u64,
}

impl Records {
    /// Deletes a record and returns its last state with `deleted_at`.
    pub async fn delete(&self, who: &Principal, kind: &'static Kind, id: Uuid) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        for _ in 0..ATTEMPTS_MAX {
            let VisibleRecord { record, who } =
                self.catalog.look(|state| visible(state, who, kind, id, Permission::Delete)).await?;
            if let Some(object) = self.delete_seen(By::Caller(&who), kind, &record).await? {
                return Ok(object);
            }
            self.catalog.fence().await?;
        }
        Err(RecordsError::Busy(format!("concurrent changes to this {} prevented the request: try again", kind.name)))
    }

    /// Deletes a record at the revision that was read. Returns `None` if it changed meanwhile.
    pub async fn delete_seen(
        &self,
        by: By<'_>,
        kind: &'static Kind,
        record: &Record,
    ) -> Result<Option<Value>, RecordsError> {
        let now = edge::now_micros();
        let (id, expect) = (record.id, Expect::Revision(record.revision));
        let leaves_rows = !kind.rows.is_empty();
        let command = if leaves_rows {
            let (kind, org) = (record.kind, record.org);
            CatalogCommand::Put(PutRecord { kind, id, org, expect, keys: Vec::new(), body: b"{}".to_vec(), at: now })
        } else {
            CatalogCommand::Delete(DeleteRecord { kind: record.kind, id, expect })
        };
        match self.catalog.propose_one(by, command).await? {
            CatalogOutcome::Put { .. } | CatalogOutcome::Deleted { .. } => {}
            CatalogOutcome::Stale { .. } => return Ok(None),
            other => return Err(unexpected(&other)),
        }
        if let Some(org) = record.org.filter(|_| leaves_rows) {
            self.finish_behind(kind, org, id).await;
        }
        let frame = Frame { deleted: Some(now), ..Frame::of(record) };
        Ok(Some(self.joined(kind, draft::shown(kind, &frame, draft::read(record)?))))
    }

    /// Completes a delete in the background, and waits for a limited time.
    async fn finish_behind(&self, kind: &'static Kind, org: OrgId, id: Uuid) {
        let records = self.clone();
        let finishing = tokio::spawn(async move {
            if let Err(error) = records.finish(kind, org, id).await {
                tracing::warn!(kind = kind.name, %id, %error, "a deleted object still has rows; a later sweep removes them");
            }
        });
        match tokio::time::timeout(FINISH_WAIT_MAX, finishing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(kind = kind.name, %id, %error, "could not remove the remains of a delete")
            }
            Err(_) => tracing::info!(kind = kind.name, %id, "deleted; its rows are still being removed"),
        }
    }

    /// Finishes interrupted deletes. It runs after every start and then at intervals.
    ///
    /// A failure for one record does not stop the sweep for the others.
    pub async fn sweep(&self) -> Result<Swept, RecordsError> {
        let (mut swept, mut failure) = (Swept::default(), None);
        for kind in std::iter::once(&PROJECT).chain(kinds::within(Home::Project)) {
            let left: Vec<_> = self.catalog.peek(|state| {
                let gone = state.all(kind.record).filter(|record| !kind.lives(state, record));
                gone.filter_map(|record| Some((record.org?, record.id))).collect()
            });
            for (org, id) in left {
                let outcome = self.finish(kind, org, id).await;
                swept.records += u64::from(outcome.is_ok());
                failure = failure.or(outcome.err());
            }
        }
        for kind in kinds::within(Home::Object) {
            let left: Vec<Uuid> = self.catalog.peek(|view| {
                let orphans = view.all(kind.record).filter(|record| is_orphan(view, record));
                orphans.map(|record| record.id).collect()
            });
            for id in left {
                let outcome = self.take_record(kind, id).await;
                swept.records += u64::from(outcome.is_ok());
                failure = failure.or(outcome.err());
            }
        }
        failure.map_or(Ok(swept), Err)
    }

    async fn finish(&self, kind: &'static Kind, org: OrgId, id: Uuid) -> Result<(), RecordsError> {
        if kind.record == PROJECT.record {
            for within in kinds::within(Home::Project) {
                let mut walk = Walk::from_newest(within, org);
                while !walk.is_over() {
                    let batch =
                        self.catalog.peek(|state| walk.step(state, |record| within.project_of(record) == Some(id)))?;
                    let ids: Vec<_> = batch.iter().map(|record| record.id).collect();
                    self.take_away(within, org, &ids).await?;
                }
            }
            self.take_variables(org).await?;
        }
        self.take_away(kind, org, &[id]).await
    }

    /// Deletes environment variables of deleted objects, because their values are secrets.
    async fn take_variables(&self, org: OrgId) -> Result<(), RecordsError> {
        let mut walk = Walk::from_newest(&ENV_VAR, org);
        while !walk.is_over() {
            let batch = self.catalog.peek(|view| walk.step(view, |record| is_orphan(view, record)))?;
            let ids: Vec<_> = batch.iter().map(|record| record.id).collect();
            self.take_away(&ENV_VAR, org, &ids).await?;
        }
        Ok(())
    }

    /// Removes rows and then records.
    async fn take_away(&self, kind: &'static Kind, org: OrgId, ids: &[Uuid]) -> Result<(), RecordsError> {
        let objects = ids.iter().flat_map(|id| kind.rows.iter().map(|rows| ObjectKey::new(org, *rows, *id)));
        let drops: Vec<_> = objects.map(|object| self.drop_rows(object)).collect();
        let mut drops = futures::stream::iter(drops).buffer_unordered(DROPS_AT_ONCE_MAX);
        while let Some(dropped) = drops.next().await {
            dropped?;
        }
        let deletes: Vec<_> = ids.iter().map(|id| self.take_record(kind, *id)).collect();
        let mut deletes = futures::stream::iter(deletes).buffer_unordered(DROPS_AT_ONCE_MAX);
        while let Some(deleted) = deletes.next().await {
            deleted?;
        }
        Ok(())
    }

    async fn take_record(&self, kind: &'static Kind, id: Uuid) -> Result<(), RecordsError> {
        self.catalog.delete_record(By::System, kind.record, id).await
    }

    async fn drop_rows(&self, object: ObjectKey) -> Result<(), RecordsError> {
        let command = Bytes::from(Command::DropObject { object }.encode());
        match self.catalog.cluster.write(self.catalog.cluster.locate(&object), command).await? {
            Outcome::Done { .. } => Ok(()),
            other => Err(RecordsError::Internal(format!("cannot drop {object}: unexpected outcome {other:?}"))),
        }
    }
}

/// Returns whether a record names a deleted object or environment.
fn is_orphan(view: &CatalogView<'_>, record: &Record) -> bool {
    let on = draft::read(record).ok().as_ref().and_then(acl::object);
    match (record.org, on) {
        (Some(org), Some((object, id))) => is_gone(view, org, object, id) || has_no_environment(view, record),
        _ => false,
    }
}
