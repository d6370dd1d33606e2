//! Adapter of a group's machine to openraft. It applies on the group's thread, and its snapshot is a seal.
//!
//! openraft purges the log up to the position of a built snapshot, and M2 guarantees that this state is durable without
//! the log. A seal that lacked space, or that a shutdown cancelled, changes nothing. It returns the previously sealed
//! position, so that nothing is purged, and is retried later.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, GroupId, ReplicaId};
use openraft::storage::RaftStateMachine;
use openraft::{ErrorSubject, ErrorVerb, OptionalSend, RaftSnapshotBuilder};
use tokio::sync::watch;

use crate::apply::apply_thread::{AppliedNext, Applier};
use crate::apply::machine::{Machine, MachineError};
use crate::apply::seal::{NotSealed, SealThreads};
use crate::error::SealError;
use crate::fatal::OnFatal;
use crate::types::{
    self, Consensus, EntryOf, LogIdOf, SnapshotFiles, SnapshotMetaOf, SnapshotOf, StorageErrorOf, StoredMembershipOf,
};
use crate::work::Work;

/// Outcomes of a group's seals: the number of finished ones, and the last outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealsEnded {
    pub count: u64,
    pub last: Option<Result<Applied, SealError>>,
}

#[derive(Debug)]
pub(crate) struct StateMachine {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub machine: Arc<dyn Machine>,
    pub applier: Applier,
    pub applied: Arc<AppliedNext>,
    pub seals: SealThreads,
    pub seals_ended: Arc<watch::Sender<SealsEnded>>,
    pub work: Work,
    /// Whether the group has started. Before that, openraft needs only the position of the current snapshot, and
    /// listing the files of every group would slow the start.
    pub serving: Arc<AtomicBool>,
    pub fatal: OnFatal,
}

impl StateMachine {
    /// Runs a blocking call of the machine outside the workers of the runtime.
    async fn blocking<T: Send + 'static>(
        &self,
        doing: &str,
        call: impl FnOnce(&dyn Machine) -> Result<T, MachineError> + Send + 'static,
    ) -> Result<T, StorageErrorOf> {
        let machine = Arc::clone(&self.machine);
        let result = self.work.run(move || call(&*machine)).await;
        result.unwrap_or_else(|error| Err(MachineError::fatal(error))).map_err(|error| {
            self.fatal.report(format_args!("group {}, {doing}: {error}", self.group));
            snapshot_failed(error)
        })
    }
}

fn snapshot_failed(error: impl std::fmt::Display) -> StorageErrorOf {
    let error = io::Error::other(error.to_string());
    StorageErrorOf::from_io_error(ErrorSubject::Snapshot(None), ErrorVerb::Write, error)
}

fn machine_failed(verb: ErrorVerb, error: impl std::fmt::Display) -> StorageErrorOf {
    StorageErrorOf::from_io_error(ErrorSubject::StateMachine, verb, io::Error::other(error.to_string()))
}

impl RaftStateMachine<Consensus> for StateMachine {
    type SnapshotBuilder = SealBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogIdOf>, StoredMembershipOf), StorageErrorOf> {
        types::applied_state(&self.machine.applied()).map_err(|error| {
            self.fatal.report(format_args!("group {}, its membership: {error}", self.group));
            machine_failed(ErrorVerb::Read, error)
        })
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Outcome>>, StorageErrorOf>
    where
        I: IntoIterator<Item = EntryOf> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries = entries.into_iter().collect();
        self.applier.apply(entries).await.map_err(|error| machine_failed(ErrorVerb::Write, error))
    }

    async fn get_snapshot_builder(&mut self) -> SealBuilder {
        SealBuilder {
            group: self.group,
            replica: self.replica,
            machine: Arc::clone(&self.machine),
            seals: self.seals.clone(),
            ended: Arc::clone(&self.seals_ended),
            fatal: self.fatal.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<SnapshotFiles>, StorageErrorOf> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf,
        snapshot: Box<SnapshotFiles>,
    ) -> Result<(), StorageErrorOf> {
        let (applied, kept, incoming) = match *snapshot {
            SnapshotFiles::Fetched { applied, kept, incoming } => (applied, kept, incoming),
            SnapshotFiles::Exported(export) if export.files.is_empty() => (export.applied, export.kept, None),
            SnapshotFiles::Exported(_) => return Err(snapshot_failed("the files of a snapshot were not fetched")),
            SnapshotFiles::PositionOnly => return Err(snapshot_failed("the snapshot has no content")),
        };
        let (position, membership) = types::applied_state(&applied).map_err(snapshot_failed)?;
        if position != meta.last_log_id || membership != meta.last_membership {
            return Err(snapshot_failed(format_args!("{meta} came with the content of {position:?}")));
        }
        // The state was verified on receipt, so a failure here is a fault of this node.
        self.blocking("installing a snapshot", move |machine| machine.install(&kept, incoming.as_deref())).await?;
        self.applied.send_replace(position.map_or(0, |id| id.index + 1));
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf>, StorageErrorOf> {
        let serving = self.serving.load(Ordering::Acquire);
        let current = self.blocking("exporting", move |machine| {
            let sealed = machine.sealed();
            match (sealed.position, serving) {
                (None, _) => Ok(None),
                (Some(_), false) => Ok(Some((sealed, SnapshotFiles::PositionOnly))),
                (Some(_), true) => {
                    let export = machine.export()?;
                    Ok(Some((export.applied.clone(), SnapshotFiles::Exported(export))))
                }
            }
        });
        let Some((applied, files)) = current.await? else { return Ok(None) };
        let meta = types::snapshot_meta(&applied).map_err(snapshot_failed)?;
        Ok(Some(SnapshotOf { meta, snapshot: Box::new(files) }))
    }
}

/// Seals a group once.
#[derive(Debug)]
pub(crate) struct SealBuilder {
    group: GroupId,
    replica: ReplicaId,
    machine: Arc<dyn Machine>,
    seals: SealThreads,
    ended: Arc<watch::Sender<SealsEnded>>,
    fatal: OnFatal,
}

impl RaftSnapshotBuilder<Consensus> for SealBuilder {
    async fn build_snapshot(&mut self) -> Result<SnapshotOf, StorageErrorOf> {
        let sealed = self.seals.seal(Arc::clone(&self.machine)).await;
        let (applied, report) = match sealed {
            Ok(applied) => (applied.clone(), Ok(applied)),
            Err(stopped @ NotSealed::Stopped) => (Applied::default(), Err(SealError::Stopped(stopped.to_string()))),
            Err(NotSealed::Machine(error)) if error.is_no_space() => {
                (Applied::default(), Err(SealError::NoSpace(error.to_string())))
            }
            Err(NotSealed::Machine(error)) => {
                self.fatal.report_failure((self.group, self.replica), &*self.machine, "sealing", &error);
                self.report(Err(SealError::Stopped(error.to_string())));
                return Err(snapshot_failed(error));
            }
        };
        let meta = types::snapshot_meta(&applied).map_err(snapshot_failed)?;
        self.report(report);
        Ok(SnapshotOf { meta, snapshot: Box::default() })
    }
}

impl SealBuilder {
    fn report(&self, result: Result<Applied, SealError>) {
        self.ended.send_modify(|ended| {
            ended.count += 1;
            ended.last = Some(result);
        });
    }
}
