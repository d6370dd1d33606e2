//! Backup jobs of a node: the archive, points, and the deletion of what is older than wanted.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster::Cluster;
use assay_node_secrets::Secret;
use assay_storage_model::GroupId;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::sleep;

use crate::archiver::{ArchiveCounts, Archiver};
use crate::error::BackupError;
use crate::layout::Millis;
use crate::manifest::PointManifest;
use crate::points::{BackupProgress, Points};
use crate::prune::prune;
use crate::repository::{Repository, now};
use crate::settings::BackupSettings;

/// Pause before the store is opened again.
const OPEN_AGAIN: Duration = Duration::from_secs(10);
/// Interval between two deletions.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Backup of a cluster, as one node does its part of it. Clones share everything.
#[derive(Clone, Debug)]
pub struct Backups {
    archiver: Archiver,
    points: Points,
    keep: Duration,
    problem: Arc<Mutex<Option<String>>>,
}

/// State of the backup on this node.
#[derive(Clone, Debug, Serialize)]
pub struct BackupStatus {
    pub location: String,
    /// Time of the newest point, where this node leads the catalog and so makes them.
    pub newest_point: Option<Millis>,
    pub problem: Option<String>,
    pub stored_bytes: u64,
    pub failures: u64,
}

impl Backups {
    /// Opens the store, and serves the requests of other nodes about the backup.
    pub fn start(cluster: &Arc<Cluster>, settings: &BackupSettings) -> Result<Backups, BackupError> {
        let archiver = Archiver::new(Arc::clone(cluster), settings.open()?, settings.base_every);
        let points = Points::start(archiver.clone());
        Ok(Backups { archiver, points, keep: settings.keep, problem: Arc::default() })
    }

    pub fn repository(&self) -> &Repository {
        self.archiver.repository()
    }

    pub fn counts(&self) -> ArchiveCounts {
        self.archiver.counts()
    }

    pub fn status(&self) -> BackupStatus {
        let counts = self.counts();
        let leads = self.archiver.cluster().log_status(GroupId::CATALOG).is_some_and(|status| status.leads);
        let problem = self.problem.lock().clone().or_else(|| self.archiver.last_error());
        BackupStatus {
            location: self.repository().store().location(),
            newest_point: self.points.newest().filter(|_| leads).map(|point| point.at),
            problem,
            stored_bytes: counts.stored_bytes,
            failures: counts.failures,
        }
    }

    /// Stores new states of all groups and makes a point.
    pub async fn make_backup(&self, tell: impl FnMut(BackupProgress)) -> Result<PointManifest, BackupError> {
        if let Some(problem) = self.problem.lock().clone() {
            return Err(BackupError::NotThere(problem));
        }
        self.points.make_backup(tell).await
    }

    /// Backs up the cluster, and never returns. `keys` are the cluster's master keys, the current one first.
    pub async fn run(self, keys: Vec<Secret>) {
        while let Err(why) = self.open(&keys).await {
            tracing::warn!(error = %why, "the backup cannot begin; it is tried again");
            *self.problem.lock() = Some(why.to_string());
            sleep(OPEN_AGAIN).await;
        }
        *self.problem.lock() = None;
        tracing::info!(location = self.repository().store().location(), "the backup runs");
        tokio::join!(self.archiver.clone().run(), self.points.clone().run(), self.keep_pruning());
    }

    async fn open(&self, keys: &[Secret]) -> Result<(), BackupError> {
        let cluster = self.archiver.cluster();
        self.repository().found(cluster.id(), cluster.shards()).await?;
        self.points.set_master_keys(self.repository().keep_master_keys(keys).await?);
        Ok(())
    }

    async fn keep_pruning(&self) {
        loop {
            sleep(PRUNE_EVERY).await;
            if !self.archiver.led_groups().contains(&GroupId::CATALOG) {
                continue;
            }
            let keep = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
            match prune(self.repository(), Millis(now().0.saturating_sub(keep))).await {
                Ok(pruned) if pruned.objects == 0 => {}
                Ok(pruned) => tracing::info!(objects = pruned.objects, "outdated objects of the backup were deleted"),
                Err(why) => tracing::warn!(error = %why, "the backup could not be pruned; it is tried again later"),
            }
        }
    }
}
