//! Points: proofs that everything that was acknowledged before a time is in the store.
//!
//! ```text
//! asker              time t ─> all nodes ─────────────────────> all groups answered? ─> point t
//! node, each group   leads? ─> fence: index i ─> wait until the store has i ─> i
//! ```
//! A write that was acknowledged before `t` has an index at or below the one of the fence, since the fence begins later.
//! The same message tells every node how far the logs are stored, so that replicas which do not lead keep the entries
//! behind that for the next leader.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{NoAnswer, Service};
use assay_storage_model::{GroupId, NodeId, ShardId};
use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::archiver::Archiver;
use crate::error::BackupError;
use crate::layout::{self, BaseName, Millis, group_name, parse_group};
use crate::manifest::PointManifest;
use crate::repository::now;

/// Interval between two points. With the pause between parts, it bounds what a disaster can lose.
pub const POINT_EVERY: Duration = Duration::from_secs(4);
/// Time limit of one point. An overdue one is given up, and the next one begins.
const POINT_MAX: Duration = Duration::from_secs(60);
/// Upper bound of the attempts at a requested point.
const POINT_ATTEMPTS_MAX: u32 = 120;
const SECOND_MILLIS: u64 = 1_000;
const REACHED: &str = "backups.reached";
/// Upper bound of the groups that are fenced at the same time on one node.
const FENCES_AT_ONCE: usize = 16;
/// Interval between two looks at the bases that were asked for.
const BASES_LOOK: Duration = Duration::from_millis(500);

/// Request to a node about the groups that it leads.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReachedRequest {
    /// Indices up to which the logs are in the store, by the name of the group.
    #[serde(default)]
    stored: BTreeMap<String, u64>,
    /// Whether to wait until the store has everything that was applied.
    #[serde(default)]
    wait: bool,
    /// Whether to begin a base of each group.
    #[serde(default)]
    want_bases: bool,
}

/// State of the groups that a node leads.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReachedResponse {
    groups: BTreeMap<String, ReachedGroup>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ReachedGroup {
    index: u64,
    /// Newest base of the group.
    #[serde(default)]
    base: Option<BaseName>,
    /// Whether a base was asked for and is not stored yet.
    is_base_wanted: bool,
}

/// Progress of a requested backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// Groups whose base is in the store.
    pub groups_done: usize,
    pub groups: usize,
}

/// Maker of points on one node. Clones share everything.
#[derive(Clone, Debug)]
pub struct Points {
    archiver: Archiver,
    newest: Arc<Mutex<Option<PointManifest>>>,
    /// Time in the name of the newest master keys in the store.
    master_keys: Arc<Mutex<Option<Millis>>>,
}

impl Points {
    /// Serves the requests of other nodes.
    pub fn start(archiver: Archiver) -> Points {
        let points = Points { archiver: archiver.clone(), newest: Arc::default(), master_keys: Arc::default() };
        let service = ReachedService { archiver: archiver.clone(), runtime: Handle::current() };
        archiver.cluster().serve(REACHED, Arc::new(service));
        points
    }

    /// Names master keys in the points from now on.
    pub fn set_master_keys(&self, at: Option<Millis>) {
        *self.master_keys.lock() = at;
    }

    /// Returns the newest point that this node has made.
    pub fn newest(&self) -> Option<PointManifest> {
        self.newest.lock().clone()
    }

    /// Makes points while this node leads the catalog, and never returns.
    pub async fn run(self) {
        loop {
            let began = Instant::now();
            let leads = self.archiver.led_groups().contains(&GroupId::CATALOG);
            if leads && let Err(why) = self.make(false).await {
                tracing::debug!(error = %why, "no point could be made; it is tried again");
            }
            sleep(POINT_EVERY.saturating_sub(began.elapsed()).max(Duration::from_millis(100))).await;
        }
    }

    /// Makes a point of this moment.
    pub async fn make(&self, is_requested: bool) -> Result<PointManifest, BackupError> {
        let cluster = self.archiver.cluster();
        if is_requested {
            // A restore leaves out the second of its time, and the caller expects what was acknowledged until now.
            sleep(until_next_second(now())).await;
        }
        let at = now();
        let stored = self.newest.lock().as_ref().map(|point| point.groups.clone()).unwrap_or_default();
        let stored = stored.into_iter().map(|(group, index)| (group_name(group), index)).collect();
        let groups = self.ask_all(&ReachedRequest { stored, wait: true, want_bases: false }, POINT_MAX).await?;
        let bases = groups.iter().filter_map(|(group, reached)| Some((*group, reached.base?))).collect();
        let groups = groups.into_iter().map(|(group, reached)| (group, reached.index)).collect();
        let (cluster, program) = (cluster.id(), env!("CARGO_PKG_VERSION").to_owned());
        let master_keys = *self.master_keys.lock();
        let point = PointManifest { at, cluster, program, groups, bases, master_keys, is_requested };
        self.archiver.repository().put_json(&layout::point(at), &point).await?;
        *self.newest.lock() = Some(point.clone());
        Ok(point)
    }

    /// Stores a new base of every group, and then makes a point.
    pub async fn make_backup(&self, mut tell: impl FnMut(BackupProgress)) -> Result<PointManifest, BackupError> {
        let count = usize::from(self.archiver.cluster().shards()) + 1;
        let mut request = ReachedRequest { want_bases: true, ..ReachedRequest::default() };
        loop {
            let groups = self.ask_all(&request, POINT_MAX).await;
            // A group without a base at all does not answer yet.
            let done = match &groups {
                Ok(groups) => groups.values().filter(|group| !group.is_base_wanted).count(),
                Err(BackupError::NotThere(_)) => 0,
                Err(_) => groups?.len(),
            };
            tell(BackupProgress { groups_done: done, groups: count });
            if done == count {
                return self.make_requested().await;
            }
            // A group that moves to another leader meanwhile keeps its earlier base, which serves as well.
            request.want_bases = false;
            sleep(BASES_LOOK).await;
        }
    }

    /// Makes a point, and repeats that while leaders move. A new leader first has to look at the store.
    async fn make_requested(&self) -> Result<PointManifest, BackupError> {
        let mut attempt = 1;
        loop {
            match self.make(true).await {
                Err(BackupError::NotThere(why)) if attempt < POINT_ATTEMPTS_MAX => {
                    tracing::debug!(why, attempt, "a requested point is tried again");
                    attempt += 1;
                    sleep(BASES_LOOK).await;
                }
                made => return made,
            }
        }
    }

    /// Asks all nodes, and returns the answer about each group.
    async fn ask_all(
        &self,
        request: &ReachedRequest,
        within: Duration,
    ) -> Result<BTreeMap<GroupId, ReachedGroup>, BackupError> {
        let cluster = self.archiver.cluster();
        let body = serde_json::to_vec(request).map_err(|why| BackupError::Internal(why.to_string()))?;
        let body = Bytes::from(body);
        let others = cluster.present_nodes().into_iter().filter(|node| *node != cluster.node());
        let asked = others.map(|node| {
            let body = body.clone();
            async move { cluster.ask_repeatable(node, REACHED, body, within).await.map_err(|why| why.to_string()) }
        });
        let (own, others) = tokio::join!(reached(&self.archiver, request, within), join_all(asked));
        let mut groups = BTreeMap::new();
        let mut silent = Vec::new();
        for answer in others.into_iter().map(|answer| answer.and_then(decoded)).chain([Ok(own)]) {
            match answer {
                Ok(answer) => groups.extend(named(answer)),
                // Its groups may have other leaders by now.
                Err(why) => silent.push(why),
            }
        }
        let all = (0..cluster.shards()).map(|shard| GroupId::of_shard(ShardId(shard))).chain([GroupId::CATALOG]);
        match all.into_iter().find(|group| !groups.contains_key(group)) {
            None => Ok(groups),
            Some(group) => {
                let why = silent.first().map_or_else(String::new, |why| format!(" ({why})"));
                Err(BackupError::NotThere(format!("group {} is not stored yet{why}", group_name(group))))
            }
        }
    }
}

/// Returns the time until the next second begins.
fn until_next_second(now: Millis) -> Duration {
    Duration::from_millis(SECOND_MILLIS - now.0 % SECOND_MILLIS)
}

fn decoded(answer: Bytes) -> Result<ReachedResponse, String> {
    serde_json::from_slice(&answer).map_err(|why| why.to_string())
}

fn named(answer: ReachedResponse) -> impl Iterator<Item = (GroupId, ReachedGroup)> {
    answer.groups.into_iter().filter_map(|(group, reached)| Some((parse_group(&group)?, reached)))
}

/// Returns the state of the groups that this node leads.
async fn reached(archiver: &Archiver, request: &ReachedRequest, within: Duration) -> ReachedResponse {
    let until = Instant::now() + within;
    let led = archiver.led_groups();
    for (name, index) in &request.stored {
        if let Some(group) = parse_group(name).filter(|group| !led.contains(group)) {
            archiver.cluster().keep_log_behind(group, Some(*index));
        }
    }
    if request.want_bases {
        archiver.want_bases();
    }
    let groups = stream::iter(led)
        .map(|group| async move {
            let reached =
                if request.wait { wait_stored(archiver, group, until).await } else { stored(archiver, group) };
            reached.map(|reached| (group_name(group), reached))
        })
        .buffer_unordered(FENCES_AT_ONCE);
    ReachedResponse { groups: groups.filter_map(|group| async { group }).collect().await }
}

/// Returns what the store has of a group, or `None` if it has no base.
fn stored(archiver: &Archiver, group: GroupId) -> Option<ReachedGroup> {
    let (index, base, is_base_wanted) = archiver.reached(group)?;
    Some(ReachedGroup { index, base: Some(base), is_base_wanted })
}

/// Waits until the store has everything of a group that was acknowledged before the call.
async fn wait_stored(archiver: &Archiver, group: GroupId, until: Instant) -> Option<ReachedGroup> {
    let fence = timeout_at(until, archiver.cluster().fence(group)).await;
    let index = fence.ok()?.ok()?;
    let mut progress = archiver.progress();
    loop {
        if let Some(reached) = stored(archiver, group).filter(|reached| reached.index >= index) {
            return Some(reached);
        }
        // The archiver lives as long as the process.
        timeout_at(until, progress.changed()).await.ok()?.ok()?;
    }
}

/// Service that other nodes ask about the groups led here.
struct ReachedService {
    archiver: Archiver,
    runtime: Handle,
}

impl fmt::Debug for ReachedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReachedService").finish_non_exhaustive()
    }
}

impl Service for ReachedService {
    fn answer(&self, _from: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let archiver = self.archiver.clone();
        let refused = |why: String| NoAnswer::Refused(why);
        // Waiting for the store takes long, and this runs on the threads of consensus.
        let answering = self.runtime.spawn(async move {
            let request: ReachedRequest = serde_json::from_slice(&body).map_err(|why| refused(why.to_string()))?;
            // The answer has to arrive in time.
            let answer = reached(&archiver, &request, within.mul_f64(0.9)).await;
            serde_json::to_vec(&answer).map(Bytes::from).map_err(|why| refused(why.to_string()))
        });
        async move { answering.await.unwrap_or_else(|why| Err(NoAnswer::Refused(why.to_string()))) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_point_is_of_a_later_second_than_what_was_written_before() {
        for before in [5_000, 5_001, 5_999] {
            let at = before + until_next_second(Millis(before)).as_millis() as u64;
            assert_eq!(at, 6_000, "asked at {before}");
        }
    }
}
