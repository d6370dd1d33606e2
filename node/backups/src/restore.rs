//! Restore of a cluster from a backup into an empty data directory.
//!
//! Groups are restored one after the other: the base is fetched and verified, and the log behind it is applied up to
//! the wanted time. Nothing is written outside of the data directory. An interrupted restore leaves a directory that no
//! node starts from. It is repeated into the same directory, and begins anew.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_cluster::{ClusterConfig, RestoredGroup, RestoredIdentity, RestoredNode};
use assay_node_secrets::{MASTER_KEY_FILE, Secret, keep_secret_file};
use assay_storage_model::catalog::CatalogCommand;
use assay_storage_model::command::Command;
use assay_storage_model::entry::{Entry, EntryBuilder};
use assay_storage_model::{GroupId, LogPosition, Xact};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::error::BackupError;
use crate::layout::{self, LogPartName, Millis, group_name};
use crate::log_part::{self, ArchivedContent, ArchivedEntry};
use crate::manifest::StoredFile;
use crate::repository::{Inventory, Repository};
use crate::restore_plan::{GroupPlan, RestorePlan, plan};

/// Bytes in memory after which the state of a group is sealed during the replay.
const SEAL_BYTES: usize = 64 << 20;
const MICROS_PER_MILLI: u64 = 1_000;

/// Progress of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreProgress {
    pub group: GroupId,
    pub groups_done: usize,
    pub groups: usize,
    pub bytes: u64,
}

/// Target of a restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreTarget<'t> {
    /// Node whose data directory is filled.
    pub node: &'t ClusterConfig,
    /// Whether the master keys of the cluster are written into the directory, where a node looks for them.
    pub keeps_master_keys: bool,
    /// Time to restore, or `None` for the newest state.
    pub at: Option<Millis>,
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub at: Millis,
    pub identity: RestoredIdentity,
    pub bytes: u64,
    /// Entries of logs that were applied.
    pub entries: u64,
    /// Written files with master keys, that of the current one first.
    pub master_key_files: Vec<PathBuf>,
}

/// Plans the restore of a time, or of the newest state.
pub async fn plan_restore(
    repository: &Repository,
    inventory: &Inventory,
    wanted: Option<Millis>,
) -> Result<RestorePlan, BackupError> {
    // The first point behind the wanted time proves it; the newest one tells how far the backup reaches.
    let first = inventory.points.iter().find(|at| wanted.is_none_or(|wanted| **at >= wanted));
    let first = if wanted.is_none() { inventory.points.last() } else { first };
    let mut points = Vec::new();
    for at in first.into_iter().chain(inventory.points.last()) {
        let point = repository.point(*at).await?;
        points.push((*at, point.groups));
    }
    points.dedup_by_key(|(at, _)| *at);
    plan(wanted, &points, &inventory.groups).map_err(|why| BackupError::NotThere(why.to_string()))
}

/// Restores the state at a time into an empty data directory.
pub async fn restore(
    repository: &Repository,
    RestoreTarget { node: config, keeps_master_keys, at: wanted }: RestoreTarget<'_>,
    mut tell: impl FnMut(RestoreProgress) + Send,
) -> Result<Restored, BackupError> {
    let descriptor = repository.opened().await?;
    let inventory = repository.inventory(descriptor.shards).await?;
    let plan = plan_restore(repository, &inventory, wanted).await?;
    let node = |why: String| BackupError::Node(why);
    let target = RestoredNode::create(config, descriptor.shards).map_err(|why| node(why.to_string()))?;
    let groups = target.groups();
    let (mut bytes, mut entries) = (0, 0);
    for (groups_done, group) in groups.iter().enumerate() {
        tell(RestoreProgress { group: *group, groups_done, groups: groups.len(), bytes });
        let objects = plan
            .groups
            .get(group)
            .ok_or_else(|| BackupError::NotThere(format!("the backup has no group {}", group_name(*group))))?;
        let opened = target.group(*group).map_err(|why| node(why.to_string()))?;
        let filling = GroupFilling { repository, config, group: Arc::new(opened), at: plan.at };
        let filled = filling.fill(objects).await?;
        bytes += filled.0;
        entries += filled.1;
    }
    let keys = if keeps_master_keys { repository.master_keys().await? } else { Vec::new() };
    let master_key_files = keep_master_keys(&config.data_dir, &keys)?;
    let identity = target.finish().await.map_err(|why| node(why.to_string()))?;
    Ok(Restored { at: plan.at, identity, bytes, entries, master_key_files })
}

/// Writes the master keys of the cluster into the restored directory, the current one where a node looks for it.
fn keep_master_keys(dir: &Path, keys: &[Secret]) -> Result<Vec<PathBuf>, BackupError> {
    let written = keys.iter().enumerate().map(|(number, key)| {
        let file = match number {
            0 => dir.join(MASTER_KEY_FILE),
            old => dir.join(format!("{MASTER_KEY_FILE}.old-{old}")),
        };
        let kept = keep_secret_file(&file, key);
        kept.map_err(|why| BackupError::Node(format!("writing {}: {why:#}", file.display())))?;
        Ok(file)
    });
    written.collect()
}

/// Group that is being restored.
struct GroupFilling<'r> {
    repository: &'r Repository,
    config: &'r ClusterConfig,
    group: Arc<RestoredGroup>,
    at: Millis,
}

impl GroupFilling<'_> {
    /// Fills the group, and returns the fetched bytes and the applied entries.
    async fn fill(&self, plan: &GroupPlan) -> Result<(u64, u64), BackupError> {
        let group = self.group.id();
        let base = self.repository.base(group, plan.base).await?;
        let mut bytes = 0;
        if !base.files.is_empty() {
            let incoming = self.blocking(|group, config| group.incoming(config).map(Path::to_owned)).await?;
            for file in &base.files {
                bytes += self.fetch(file, &incoming.join(&file.name)).await?;
            }
        }
        let compressed = self.verified(&base.kept).await?;
        bytes += compressed.len() as u64;
        let has_files = !base.files.is_empty();
        let name = plan.base.of(group);
        self.blocking(move |group, _| {
            let kept = zstd::stream::decode_all(&compressed[..]);
            let kept = kept.map_err(|why| BackupError::Damaged { name, what: why.to_string() })?;
            group.install(&kept, has_files).map_err(|why| BackupError::Node(why.to_string()))
        })
        .await?;
        let mut applied = base.position.index;
        let mut entries = 0;
        for part in &plan.parts {
            let (read, reached, is_over) = self.replay(*part, applied).await?;
            entries += reached.saturating_sub(applied);
            applied = reached;
            bytes += read;
            if is_over {
                break;
            }
        }
        self.blocking(|group, _| group.seal()).await?;
        Ok((bytes, entries))
    }

    /// Runs a blocking step on the group.
    async fn blocking<T: Send + 'static, E: Into<FillError>>(
        &self,
        step: impl FnOnce(&RestoredGroup, &ClusterConfig) -> Result<T, E> + Send + 'static,
    ) -> Result<T, BackupError> {
        let (group, config) = (Arc::clone(&self.group), self.config.clone());
        let done = spawn_blocking(move || step(&group, &config).map_err(Into::into)).await;
        let done: Result<T, FillError> = done.map_err(|why| BackupError::Internal(why.to_string()))?;
        done.map_err(|error| error.0)
    }

    /// Fetches a file of a segment, and checks its content.
    async fn fetch(&self, file: &StoredFile, path: &Path) -> Result<u64, BackupError> {
        let failed = |why: std::io::Error| BackupError::Node(format!("writing {}: {why}", path.display()));
        let mut written = File::create(path).map_err(failed)?;
        let mut hasher = self.repository.key().hasher();
        let name = layout::content(&file.content);
        let bytes = self
            .repository
            .read_to(&name, |plain| {
                hasher.update(plain);
                written.write_all(plain).map_err(failed)
            })
            .await?;
        written.sync_all().map_err(failed)?;
        if hasher.finish() != file.content || bytes != file.bytes {
            return Err(BackupError::Damaged { name, what: "its content does not match its name".into() });
        }
        Ok(bytes)
    }

    /// Reads an object with content into memory, and checks the content.
    async fn verified(&self, file: &StoredFile) -> Result<Bytes, BackupError> {
        let name = layout::content(&file.content);
        let plain = self.repository.read(&name).await?;
        let mut hasher = self.repository.key().hasher();
        hasher.update(&plain);
        if hasher.finish() != file.content {
            return Err(BackupError::Damaged { name, what: "its content does not match its name".into() });
        }
        Ok(plain)
    }

    /// Applies the entries of a part that are behind an index. Returns the fetched bytes, the last applied index, and
    /// whether the wanted time is reached.
    async fn replay(&self, part: LogPartName, behind: u64) -> Result<(u64, u64, bool), BackupError> {
        let group = self.group.id();
        let name = part.of(group);
        let encoded = self.repository.read(&name).await?;
        let bytes = encoded.len() as u64;
        let damaged = |what: String| BackupError::Damaged { name: name.clone(), what };
        let entries = log_part::decode(&encoded).map_err(damaged)?;
        part.check(&entries).map_err(damaged)?;
        let (repository, at, runtime) = (self.repository.clone(), self.at, Handle::current());
        let (reached, is_over) = self
            .blocking(move |group, _| {
                let replay = Replay { group, repository: &repository, at, runtime: &runtime };
                replay.all(&entries, behind)
            })
            .await?;
        Ok((bytes, reached, is_over))
    }
}

/// Error of a blocking step.
struct FillError(BackupError);

impl From<BackupError> for FillError {
    fn from(error: BackupError) -> FillError {
        FillError(error)
    }
}

impl From<assay_cluster::OpenError> for FillError {
    fn from(error: assay_cluster::OpenError) -> FillError {
        FillError(BackupError::Node(error.to_string()))
    }
}

/// Replay of a part on the thread of a blocking step.
struct Replay<'r> {
    group: &'r RestoredGroup,
    repository: &'r Repository,
    at: Millis,
    runtime: &'r Handle,
}

impl Replay<'_> {
    fn all(&self, entries: &[ArchivedEntry], behind: u64) -> Result<(u64, bool), FillError> {
        let mut reached = behind;
        for entry in entries.iter().filter(|entry| entry.position.index > behind) {
            let is_over = self.one(entry)?;
            reached = entry.position.index;
            if is_over {
                return Ok((reached, true));
            }
            if self.group.memory_bytes() > SEAL_BYTES {
                self.group.seal()?;
            }
        }
        Ok((reached, false))
    }

    /// Applies one entry, and returns whether the wanted time is reached.
    fn one(&self, entry: &ArchivedEntry) -> Result<bool, FillError> {
        let group = self.group;
        let (named, framed) = match &entry.content {
            ArchivedContent::Nothing => {
                group.skip(entry.position)?;
                return Ok(false);
            }
            ArchivedContent::Commands(framed) => (None, framed.clone()),
            ArchivedContent::Large(named) => {
                let name = layout::large_write(group.id(), entry.position.index);
                let content = self.runtime.block_on(self.repository.read(&name))?;
                (Some(named), content)
            }
        };
        match cut(group.id(), &framed, self.at).map_err(|what| self.undecodable(entry.position, &what))? {
            Cut::Whole => {
                if let Some(named) = named {
                    self.keep_large(entry.position, named, &framed)?;
                }
                group.apply(entry.position, named.unwrap_or(&framed))?;
                Ok(false)
            }
            // The rest is of a later time. What is left of a large write fits into an entry of its own.
            Cut::Part(Some(part)) => {
                group.apply(entry.position, &part)?;
                Ok(true)
            }
            Cut::Part(None) => Ok(true),
        }
    }

    fn keep_large(&self, position: LogPosition, named: &Bytes, content: &[u8]) -> Result<(), FillError> {
        let kept = self.group.keep_large_write(content)?;
        match Entry::decode(named) {
            Ok(Entry::Blob { hash, .. }) if hash == kept => Ok(()),
            _ => Err(self.undecodable(position, "its large write has other content")),
        }
    }

    fn undecodable(&self, position: LogPosition, what: &str) -> FillError {
        let group = group_name(self.group.id());
        FillError(BackupError::Internal(format!("entry {} of group {group}: {what}", position.index)))
    }
}

/// Part of an entry that is not later than the wanted time.
#[derive(Debug, PartialEq, Eq)]
enum Cut {
    Whole,
    Part(Option<Bytes>),
}

/// Leaves out the commands of an entry from the first one that is later than a time.
fn cut(group: GroupId, framed: &Bytes, at: Millis) -> Result<Cut, String> {
    let Entry::Commands(commands) = Entry::decode(framed).map_err(|why| why.to_string())? else {
        return Err("it names a large write within a large write".into());
    };
    let mut kept = Vec::with_capacity(commands.len());
    for command in &commands {
        if is_later(group, command, at)? {
            let lengths = || kept.iter().map(|command: &&Bytes| command.len());
            let mut builder = EntryBuilder::for_lengths(lengths());
            kept.iter().for_each(|command| builder.push(command));
            return Ok(Cut::Part((!kept.is_empty()).then(|| builder.finish())));
        }
        kept.push(command);
    }
    Ok(Cut::Whole)
}

/// Returns whether a command was given after a time. Commands without a time follow those before them.
fn is_later(group: GroupId, command: &Bytes, at: Millis) -> Result<bool, String> {
    let micros = at.0.saturating_mul(MICROS_PER_MILLI);
    if group == GroupId::CATALOG {
        let command = CatalogCommand::decode(command).map_err(|why| why.to_string())?;
        return Ok(command.at().is_some_and(|given| given > i64::try_from(micros).unwrap_or(i64::MAX)));
    }
    let command = Command::decode(command).map_err(|why| why.to_string())?;
    // A transaction id counts seconds. Of the second of the wanted time, nothing is restored.
    Ok(command.into_write().is_some_and(|(write, _)| write.assigned >= Xact::at_micros(micros)))
}

#[cfg(test)]
mod tests {
    use assay_storage_model::ShardId;
    use assay_storage_model::command::{Command, Write};
    use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_entry_is_cut_at_the_wanted_second() {
        let shard = GroupId::of_shard(ShardId(0));
        let object = ObjectKey::new(OrgId(Uuid::nil()), ObjectKind::Dataset, Uuid::nil());
        let write = |seconds| {
            let assigned = Xact::new(seconds, 7);
            Bytes::from(Command::Write(Write { object, assigned, request: None, rows: Vec::new() }).encode())
        };
        let drop = || Bytes::from(Command::DropObject { object }.encode());
        let entry = |commands: &[Bytes]| {
            let mut builder = EntryBuilder::default();
            commands.iter().for_each(|command| builder.push(command));
            builder.finish()
        };
        let at = Millis(10_000);
        assert_eq!(cut(shard, &entry(&[write(8), drop(), write(9)]), at), Ok(Cut::Whole));
        let part = Cut::Part(Some(entry(&[write(9), drop()])));
        assert_eq!(cut(shard, &entry(&[write(9), drop(), write(10), write(9)]), at), Ok(part));
        assert_eq!(cut(shard, &entry(&[write(10)]), at), Ok(Cut::Part(None)));
    }
}
