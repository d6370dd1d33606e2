//! Deletion of organizations with everything that belongs to them: rows, files, records, and users of no other one.
//!
//! | step | after a crash |
//! |---|---|
//! | one write deletes the organization and leaves a mark | not deleted, or deleted for everyone and found by its mark |
//! | the shards drop all its objects, also those without a record | repeated, which is idempotent |
//! | its records and its users are deleted | repeated |
//! | objects that a write under way left are dropped, and the mark says so | repeated |
//! | each node rewrites its log of the catalog without the records; a day later the mark is deleted | repeated |
//!
//! The steps run on the node that leads the catalog. Two nodes may run them at the same time, without harm.

mod marks;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use assay_cluster::Cluster;
use assay_node_limits::ClusterUsage;
use assay_node_records::kinds::organization;
use assay_node_records::mechanism::{self, By, CatalogView};
use assay_node_records::{Records, RecordsError};
use assay_storage_model::catalog::{Record, RecordKind};
use assay_storage_model::command::{Command, Outcome};
use assay_storage_model::{GroupId, ObjectKey, OrgId};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use uuid::Uuid;

pub use marks::delete_organization;
use marks::{DeletionMark, deletion_marks, mark_done};

/// Interval at which the job looks for deleted organizations.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pause after a failure, such as a shard without a leader.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Time for which the mark of a complete deletion stays. Nodes that start meanwhile rewrite their log, too.
const MARK_KEPT: Duration = Duration::from_secs(86_400);
/// Upper bound of concurrent writes, which share flushes.
const WRITES_AT_ONCE_MAX: usize = 32;
/// Upper bound of the rounds in which objects are dropped. A later round finds only what a write under way left.
const DROP_ROUNDS_MAX: usize = 8;
/// Records of people, which belong to no organization. They are deleted with the last organization of their user.
const OF_USERS: [RecordKind; 4] =
    [RecordKind::API_KEY, RecordKind::LOGIN, RecordKind::TEMPORARY_CREDENTIAL, RecordKind::CONSOLE_SESSION];

/// Job that completes deletions of organizations.
#[derive(Clone, Debug)]
pub struct OrganizationDeletions {
    pub cluster: Arc<Cluster>,
    pub records: Records,
}

impl OrganizationDeletions {
    /// Completes deletions as they come, and never returns.
    pub async fn keep(self) {
        let mut erased = BTreeSet::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let marks = deletion_marks(&self.records);
            erased.retain(|org| marks.iter().any(|mark| mark.org == *org));
            for mark in marks.iter().filter(|mark| mark.done.is_some()) {
                if erased.insert(mark.org) {
                    // The log of the catalog here still has the records.
                    self.cluster.erase_catalog_log();
                }
            }
            if !self.cluster.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
                continue;
            }
            for DeletionMark { org, done } in marks {
                let step = match done {
                    None => self.finish(org).await,
                    Some(done) => self.forget(org, done).await,
                };
                match step {
                    Ok(()) => {}
                    Err(error) => {
                        let error = format!("{error:#}");
                        tracing::warn!(organization = %org, error, "a deleted organization has remains; it is retried");
                        tokio::time::sleep(RETRY_AFTER).await;
                    }
                }
            }
        }
    }

    /// Deletes the mark once every node that runs has seen it.
    async fn forget(&self, org: OrgId, done: i64) -> anyhow::Result<()> {
        let age = mechanism::now_micros().saturating_sub(done);
        if u128::try_from(age).unwrap_or_default() >= MARK_KEPT.as_micros() {
            self.delete(RecordKind::ORGANIZATION_DELETION, org.0).await.context("deleting the mark")?;
        }
        Ok(())
    }

    async fn finish(&self, org: OrgId) -> anyhow::Result<()> {
        self.drop_objects(org).await.context("dropping rows")?;
        self.delete_records(org).await.context("deleting records")?;
        self.drop_objects(org).await.context("dropping rows that were being written")?;
        mark_done(&self.records, org).await.context("marking the end")?;
        tracing::info!(organization = %org, "the deletion of an organization is complete");
        Ok(())
    }

    /// Drops the objects of an organization on all shards until none is left.
    async fn drop_objects(&self, org: OrgId) -> anyhow::Result<()> {
        for _ in 0..DROP_ROUNDS_MAX {
            let held = ClusterUsage::measure_objects(&self.cluster, org).await;
            let drops = held.objects.iter().map(|(object, _)| self.drop_object(*object));
            all(drops.map(|drop| Box::pin(drop) as BoxFuture<'_, _>).collect()).await?;
            ensure!(held.is_complete, "some shards have no leader");
            if held.objects.is_empty() {
                return Ok(());
            }
        }
        bail!("objects are still being written after {DROP_ROUNDS_MAX} rounds")
    }

    async fn drop_object(&self, object: ObjectKey) -> anyhow::Result<()> {
        let command = Bytes::from(Command::DropObject { object }.encode());
        match self.cluster.write(self.cluster.locate(&object), command).await? {
            Outcome::Done { .. } => Ok(()),
            other => bail!("cannot drop {object}: unexpected outcome {other:?}"),
        }
    }

    /// Deletes the records of an organization, then its users of no other one, then its memberships, which name them.
    async fn delete_records(&self, org: OrgId) -> anyhow::Result<()> {
        self.records.catalog().fence().await?;
        let Remains { records, users, members } = self.records.catalog().peek(|view| remains(view, org))?;
        for found in [records, users, members] {
            let deletes = found.into_iter().map(|(kind, id)| async move { anyhow::Ok(self.delete(kind, id).await?) });
            all(deletes.map(|delete| Box::pin(delete) as BoxFuture<'_, _>).collect()).await?;
        }
        Ok(())
    }

    async fn delete(&self, kind: RecordKind, id: Uuid) -> Result<(), RecordsError> {
        self.records.catalog().delete_record(By::System, kind, id).await
    }
}

/// Runs all writes, a limited number at a time.
async fn all(writes: Vec<BoxFuture<'_, anyhow::Result<()>>>) -> anyhow::Result<()> {
    let mut writes = futures::stream::iter(writes).buffer_unordered(WRITES_AT_ONCE_MAX);
    while let Some(written) = writes.next().await {
        written?;
    }
    Ok(())
}

type FoundRecord = (RecordKind, Uuid);

/// Records that a deleted organization left.
struct Remains {
    records: Vec<FoundRecord>,
    /// Records of users that are in no other organization.
    users: Vec<FoundRecord>,
    members: Vec<FoundRecord>,
}

fn remains(view: &CatalogView<'_>, org: OrgId) -> Result<Remains, RecordsError> {
    let belongs = |record: &&Arc<Record>| record.org == Some(org);
    let named = |kind: RecordKind| view.all(kind).filter(belongs).map(move |record| (kind, record.id));
    let kinds = RecordKind::ALL.iter().copied().filter(|kind| *kind != RecordKind::ORG_MEMBER);
    let records = kinds.flat_map(named).collect();
    let mut leaving = HashSet::new();
    for user in organization::members(view, org)? {
        if !is_elsewhere(view, user, org) {
            leaving.insert(user);
        }
    }
    let owned = |record: &&Arc<Record>| {
        let body = mechanism::read_body(record).unwrap_or_default();
        let user = body.get("user_id").and_then(|user| user.as_str()).and_then(|user| Uuid::parse_str(user).ok());
        record.org.is_none() && user.is_some_and(|user| leaving.contains(&user))
    };
    let credentials = OF_USERS.iter().flat_map(|kind| view.all(*kind).filter(owned).map(|record| (*kind, record.id)));
    let users = credentials.chain(leaving.iter().map(|user| (RecordKind::USER, *user))).collect();
    Ok(Remains { records, users, members: named(RecordKind::ORG_MEMBER).collect() })
}

/// Returns whether a user is a member of another organization, or is invited to one.
fn is_elsewhere(view: &CatalogView<'_>, user: Uuid, org: OrgId) -> bool {
    let mut others = view.all(RecordKind::ORGANIZATION).map(|other| OrgId(other.id)).filter(|other| *other != org);
    others.any(|other| view.find(&organization::member_key(other, user)).is_some())
}
