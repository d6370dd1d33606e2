//! Erasure of deleted objects, of history below a floor, and of deleted organizations, from the disk.
//!
//! Some time after a delete, segments and log are rewritten without the deleted rows, for all deletes of that time at
//! once. The catalog has no segments, so only its log is rewritten.
//!
//! The steps are: 1. Seal the shard, so that the delete is in its stored state and the rows are in no memory table. 2.
//! Purge its log, even if lagging members need it, which then receive files. 3. Copy the live part of the log to new
//! files. 4. Rewrite the segments with deleted rows. If a step is interrupted, the next start begins again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_raft::LogRetention;
use assay_storage_model::GroupId;
use parking_lot::Mutex;

use crate::registry::Replicas;

/// Time limit for consensus to purge a group's log.
const PURGED_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Progress of a round of erasure.
#[derive(Debug, Default)]
pub(super) struct Erasing {
    step: Mutex<Step>,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    /// Something was deleted at this time.
    Due(Instant),
    /// Shards are being sealed and their logs purged.
    Purging,
    /// The log may be copied.
    Purged(BTreeSet<GroupId>),
    /// Segments may be rewritten.
    Renewed(BTreeSet<GroupId>),
}

impl Erasing {
    /// Returns the shards of a round, if one begins now.
    pub fn look(&self, replicas: &Replicas, after: Duration, now: Instant) -> Option<BTreeSet<GroupId>> {
        let mut step = self.step.lock();
        match *step {
            Step::Idle if has_remains(replicas) => *step = Step::Due(now),
            Step::Due(since) if now.duration_since(since) >= after => {
                let with = |id: &GroupId| match id.shard() {
                    Some(shard) => replicas.shard(shard).is_some_and(|shard| shard.take_remains()),
                    None => replicas.take_catalog_remains(),
                };
                let shards: BTreeSet<_> = replicas.ids().into_iter().filter(with).collect();
                *step = Step::Purging;
                return Some(shards);
            }
            _ => {}
        }
        None
    }

    /// Copies the log with `renew` once the logs are purged, and advances the round.
    pub fn take_purged(&self, renew: impl FnOnce()) {
        let mut step = self.step.lock();
        if let Step::Purged(shards) = &mut *step {
            let shards = std::mem::take(shards);
            renew();
            *step = Step::Renewed(shards);
        }
    }

    /// Takes the shards whose segments must be rewritten, and ends the round.
    pub fn take_renewed(&self) -> BTreeSet<GroupId> {
        let mut step = self.step.lock();
        match &mut *step {
            Step::Renewed(shards) => {
                let shards = std::mem::take(shards);
                *step = Step::Idle;
                shards
            }
            _ => BTreeSet::new(),
        }
    }

    /// Seals the shards and purges their logs.
    pub async fn purge(self: Arc<Self>, replicas: Replicas, shards: BTreeSet<GroupId>) {
        let mut purged = BTreeSet::new();
        for id in shards {
            match purge(&replicas, id).await {
                Ok(()) => drop(purged.insert(id)),
                Err(why) => {
                    tracing::warn!(group = %id, why, "rows of deleted objects stay in files for now; the erasure will be retried");
                    remains(&replicas, id);
                }
            }
        }
        *self.step.lock() = Step::Purged(purged);
    }
}

/// Marks the group for the next round.
pub(super) fn remains(replicas: &Replicas, id: GroupId) {
    match id.shard() {
        Some(shard) => replicas.shard(shard).into_iter().for_each(|shard| shard.remains()),
        None => replicas.mark_catalog_remains(),
    }
}

fn has_remains(replicas: &Replicas) -> bool {
    replicas.has_catalog_remains() || replicas.shards().iter().any(|shard| shard.has_remains())
}

async fn purge(replicas: &Replicas, id: GroupId) -> Result<(), String> {
    // A replica that left also removed its files.
    let Some(group) = replicas.group(id) else { return Ok(()) };
    group.seal().await.map_err(|why| why.to_string())?;
    let until = Instant::now() + PURGED_WITHIN;
    // An archive stores the rest within seconds, and would have a gap otherwise.
    let archived_until = Instant::now() + PURGED_WITHIN / 2;
    loop {
        let waits = Instant::now() < archived_until;
        let keep = if waits { LogRetention::Archive } else { LogRetention::Nothing };
        group.purge(keep).await.map_err(|why| why.to_string())?;
        if group.sealed_in_log() == 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(format!("{} sealed entries stay in its log", group.sealed_in_log()));
        }
        tokio::time::sleep(POLL).await;
    }
}
