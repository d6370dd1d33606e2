//! Reconciliation of actual with wanted state.
//!
//! Each reconciler compares the two states and makes one step, without any other input. The comparison also finds work
//! that a crash interrupted.
//!
//! | reconciler | on | compares | does |
//! |---|---|---|---|
//! | planner | the catalog's leader | nodes, placement | changes the map: a group is to move |
//! | members | a group's leader | the map, the group's members | changes learners and voters, one at a time; moves the lead |
//! | replicas | every node | the map, this node's replicas | starts replicas, removes those that left |
//! | scrub | every node | the disk, the applied state of others | discards damaged replicas |
//! | refusals | every node | other nodes' verdicts on its starts | closes replicas, renews the catalog's |
//! | introductions | every node | the catalog, this node's files | updates addresses; keeps contact with the catalog |
//! | certificates | every node | the certificate in use, the files, the date | renews it in time, adopts another one |
//! | authorities | every node | the authority, features of nodes | opens its key; the catalog's leader wraps and rotates it |
//! | unknown nodes | every node | callers, the catalog | asks others to vouch for unknown nodes |
//! | health | every node | responses, disk speed, file descriptors | records which nodes may lead |
//! | clocks | every node | clocks of the other nodes | records them for the assignment of ids |

mod certificates;
mod clocks;
mod health;
mod introductions;
mod members;
mod planner;
mod refusals;
mod replicas;
mod scrub;

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_placement::catalog_voters;
use assay_storage_model::catalog::Replica;
use assay_storage_model::{GroupId, ReplicaId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::Shared;

pub use clocks::PeersTime;
pub(crate) use clocks::{CLOCK, ClockService, Clocks};
pub(crate) use health::{HEALTH, Health, HealthService};
pub(crate) use introductions::{INTRODUCE, IntroductionService};
pub(crate) use refusals::{PLACED, PlacementService};
pub(crate) use scrub::{DIGEST, DigestService, QUARANTINE, QuarantineService, SPARE, SpareService, Spared};

/// Longest pause between two checks of a reconciler.
const LOOK: Duration = Duration::from_millis(250);
/// Shortest pause between two checks, however often the catalog changes.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// Handle on the tasks.
#[derive(Debug)]
pub(crate) struct Reconcilers {
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Reconcilers {
    /// Starts one task for each reconciler. `damage` yields each running replica that met damage once.
    pub fn start(shared: Arc<Shared>, damage: mpsc::Receiver<(GroupId, ReplicaId)>, runtime: &Handle) -> Reconcilers {
        let tasks = vec![
            runtime.spawn(introductions::run(Arc::clone(&shared))),
            runtime.spawn(replicas::run(Arc::clone(&shared))),
            runtime.spawn(replicas::close_damaged(Arc::clone(&shared), damage)),
            runtime.spawn(refusals::act(Arc::clone(&shared))),
            runtime.spawn(refusals::compare_starts(Arc::clone(&shared))),
            runtime.spawn(refusals::renew_catalog(Arc::clone(&shared))),
            runtime.spawn(refusals::keep_acknowledged(Arc::clone(&shared))),
            runtime.spawn(members::run(Arc::clone(&shared))),
            runtime.spawn(scrub::run(Arc::clone(&shared))),
            runtime.spawn(certificates::run(Arc::clone(&shared))),
            runtime.spawn(clocks::run(Arc::clone(&shared))),
            runtime.spawn(crate::membership::unknown_nodes::run(Arc::clone(&shared))),
            runtime.spawn(health::run(Arc::clone(&shared))),
            runtime.spawn(health::probe_files(Arc::clone(&shared))),
            runtime.spawn(planner::run(shared)),
        ];
        Reconcilers { tasks: Mutex::new(tasks) }
    }

    /// Stops the reconcilers. The next start finds unfinished work again.
    pub async fn stop(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.iter().for_each(JoinHandle::abort);
        for task in tasks {
            let _ = task.await; // aborted
        }
    }
}

impl Drop for Reconcilers {
    fn drop(&mut self) {
        self.tasks.lock().iter().for_each(JoinHandle::abort);
    }
}

/// Changes of the catalog on this node since a point in time.
pub(crate) struct CatalogChanges(Option<watch::Receiver<u64>>);

impl CatalogChanges {
    /// Starts to watch for changes. A reconciler calls this before it reads the catalog.
    fn from_now(shared: &Shared) -> CatalogChanges {
        CatalogChanges(shared.replicas.group(GroupId::CATALOG).map(|catalog| catalog.applied_changes()))
    }

    /// Returns after the next change, but not before `least` and not after `most`.
    async fn wait(self, least: Duration, most: Duration) {
        let until = Instant::now() + most;
        sleep(least).await;
        match self.0 {
            // An error means that the replica was closed. Another may replace it, or the node is ending.
            Some(mut applied) => match timeout_at(until, applied.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(_)) => tokio::time::sleep_until(until).await,
            },
            None => tokio::time::sleep_until(until).await,
        }
    }
}

/// Returns the replicas of a group that should vote: all of a shard, but only the first few of the catalog.
pub(crate) fn voters_wanted(group: GroupId, replicas: &[Replica]) -> Vec<ReplicaId> {
    let count = if group == GroupId::CATALOG { catalog_voters(replicas.len()) } else { replicas.len() };
    replicas.iter().take(count).map(|replica| replica.id).collect()
}
