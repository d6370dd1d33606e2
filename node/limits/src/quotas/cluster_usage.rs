//! Storage usage of organizations on all nodes. The leader of each shard measures it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, NoAnswer, Service};
use assay_storage_model::{GroupId, NodeId, ObjectKey, OrgId, ShardId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{MeasuredUsage, QuotaRule, StorageUsage, UsageSource};

const HELD: &str = "limits.held";
const HELD_OBJECTS: &str = "limits.held.objects";
const LOOK_EVERY: Duration = Duration::from_secs(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Storage that an organization uses in one shard.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ShardUsage {
    org: OrgId,
    rows: u64,
    bytes: u64,
}

/// Usage in the shards that a node leads.
type ShardUsages = Vec<(ShardId, Vec<ShardUsage>)>;

/// Storage that an object uses in one shard.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ObjectUsage {
    object: ObjectKey,
    rows: u64,
    bytes: u64,
}

/// Usage by the objects of an organization in the shards that a node leads.
type ShardObjectUsages = Vec<(ShardId, Vec<ObjectUsage>)>;

/// Storage usage by each object of an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectUsages {
    /// Whether all shards were measured. A shard without a leader is missing.
    pub is_complete: bool,
    pub objects: Vec<(ObjectKey, StorageUsage)>,
}

/// Storage usage in the shards of a [`Cluster`], as last reported.
pub struct ClusterUsage {
    cluster: Arc<Cluster>,
    seen: Mutex<UsageByShard>,
}

#[derive(Debug, Default)]
struct UsageByShard {
    shards: BTreeMap<ShardId, Vec<ShardUsage>>,
    look: u64,
    /// Number of the measurement that began last.
    begun: u64,
    totals: HashMap<OrgId, StorageUsage>,
}

impl fmt::Debug for ClusterUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterUsage").field("look", &self.seen.lock().look).finish_non_exhaustive()
    }
}

impl ClusterUsage {
    /// Starts serving the requests of other nodes. If there are rules, it also starts periodic measurements.
    pub fn start(cluster: &Arc<Cluster>, rules: &[QuotaRule]) -> Arc<ClusterUsage> {
        let usage = Arc::new(ClusterUsage { cluster: Arc::clone(cluster), seen: Mutex::default() });
        cluster.serve(HELD_OBJECTS, Arc::new(ObjectUsageService(Arc::clone(cluster))));
        if !rules.is_empty() {
            cluster.serve(HELD, Arc::new(UsageService(Arc::clone(cluster))));
            tokio::spawn(Arc::clone(&usage).keep_looking());
        }
        usage
    }

    /// Measures the usage by each object of an organization on all nodes.
    pub async fn measure_objects(cluster: &Arc<Cluster>, org: OrgId) -> ObjectUsages {
        let own = cluster.node();
        let others = cluster.peer_counts().into_keys().filter(|node| *node != own);
        let body = Bytes::copy_from_slice(org.0.as_bytes());
        let asks = others.map(|node| {
            let (cluster, body) = (Arc::clone(cluster), body.clone());
            async move { cluster.ask(node, HELD_OBJECTS, body, ANSWER_WITHIN).await }
        });
        let answers = join_all(asks).await.into_iter().flatten();
        let mut shards: BTreeMap<ShardId, Vec<ObjectUsage>> = BTreeMap::new();
        for parts in answers.filter_map(|body| serde_json::from_slice::<ShardObjectUsages>(&body).ok()) {
            shards.extend(parts);
        }
        shards.extend(objects_led_here(cluster, org).await);
        let is_complete = shards.len() >= usize::from(cluster.shards());
        let object = |object: ObjectUsage| (object.object, StorageUsage { rows: object.rows, bytes: object.bytes });
        ObjectUsages { is_complete, objects: shards.into_values().flatten().map(object).collect() }
    }

    async fn keep_looking(self: Arc<Self>) {
        loop {
            self.seen.lock().begin();
            let own = self.cluster.node();
            let others = self.cluster.peer_counts().into_keys().filter(|node| *node != own);
            let asks = others.map(|node| {
                let cluster = Arc::clone(&self.cluster);
                async move { cluster.ask(node, HELD, Bytes::new(), ANSWER_WITHIN).await }
            });
            let answers = join_all(asks).await;
            let led = led_here(&self.cluster).await;
            {
                let mut seen = self.seen.lock();
                // The last report of a silent node stays valid until another node leads the shard.
                for parts in
                    answers.into_iter().flatten().filter_map(|body| serde_json::from_slice::<ShardUsages>(&body).ok())
                {
                    seen.shards.extend(parts);
                }
                seen.shards.extend(led);
                seen.sum(usize::from(self.cluster.shards()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl UsageByShard {
    /// Begins a measurement. One that did not hear of all shards is repeated under its number.
    fn begin(&mut self) {
        self.begun = self.look + 1;
    }

    /// Computes the totals once all shards have reported.
    fn sum(&mut self, shards: usize) {
        if self.shards.len() < shards {
            return;
        }
        self.totals.clear();
        for part in self.shards.values().flatten() {
            let total = self.totals.entry(part.org).or_default();
            total.rows = total.rows.saturating_add(part.rows);
            total.bytes = total.bytes.saturating_add(part.bytes);
        }
        self.look += 1;
    }
}

impl UsageSource for ClusterUsage {
    fn of(&self, org: OrgId) -> Option<MeasuredUsage> {
        let seen = self.seen.lock();
        let usage = || seen.totals.get(&org).copied().unwrap_or_default();
        (seen.look > 0).then(|| MeasuredUsage { number: seen.look, begun: seen.begun, usage: usage() })
    }
}

/// Measures the shards led by this node, on a blocking thread because it reads much memory.
async fn led_here(cluster: &Arc<Cluster>) -> ShardUsages {
    let cluster = Arc::clone(cluster);
    let look = move || {
        let led = (0..cluster.shards()).map(ShardId).filter_map(|id| {
            cluster.group(GroupId::of_shard(id)).filter(|group| group.leads())?;
            let part = |(org, held): (OrgId, assay_cluster::StoredAmount)| ShardUsage {
                org,
                rows: held.rows,
                bytes: held.bytes,
            };
            Some((id, cluster.shard(id)?.held().into_iter().map(part).collect()))
        });
        led.collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Measures an organization's objects in the shards led by this node, on a blocking thread.
async fn objects_led_here(cluster: &Arc<Cluster>, org: OrgId) -> ShardObjectUsages {
    let cluster = Arc::clone(cluster);
    let look = move || {
        let led = (0..cluster.shards()).map(ShardId).filter_map(|id| {
            cluster.group(GroupId::of_shard(id)).filter(|group| group.leads())?;
            let held = cluster.shard(id)?.held_objects(org).into_iter();
            let usage = |(object, held): (ObjectKey, assay_cluster::StoredAmount)| ObjectUsage {
                object,
                rows: held.rows,
                bytes: held.bytes,
            };
            Some((id, held.map(usage).collect()))
        });
        led.collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

#[derive(Debug)]
struct ObjectUsageService(Arc<Cluster>);

impl Service for ObjectUsageService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let cluster = Arc::clone(&self.0);
        async move {
            let org = uuid::Uuid::from_slice(&body).map_err(|why| NoAnswer::Refused(why.to_string()))?;
            let parts = objects_led_here(&cluster, OrgId(org)).await;
            let text = serde_json::to_vec(&parts).map_err(|why| NoAnswer::Refused(why.to_string()))?;
            Ok(Bytes::from(text))
        }
        .boxed()
    }
}

#[derive(Debug)]
struct UsageService(Arc<Cluster>);

impl Service for UsageService {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let cluster = Arc::clone(&self.0);
        async move {
            let parts = led_here(&cluster).await;
            let text = serde_json::to_vec(&parts).map_err(|why| NoAnswer::Refused(why.to_string()))?;
            Ok(Bytes::from(text))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn totals_are_over_all_shards_and_none_before_all_were_heard() {
        let org = OrgId(Uuid::from_u128(1));
        let part = |rows| vec![ShardUsage { org, rows, bytes: rows * 10 }];
        let mut seen = UsageByShard::default();
        seen.begin();
        seen.shards.insert(ShardId(0), part(3));
        seen.sum(2);
        assert_eq!((seen.look, seen.begun), (0, 1));
        seen.begin();
        seen.shards.insert(ShardId(1), part(4));
        seen.sum(2);
        assert_eq!((seen.look, seen.totals[&org]), (1, StorageUsage { rows: 7, bytes: 70 }));
        assert_eq!(seen.begun, 1, "no measurement is in progress");
        seen.shards.insert(ShardId(1), Vec::new());
        seen.sum(2);
        assert_eq!((seen.look, seen.totals[&org]), (2, StorageUsage { rows: 3, bytes: 30 }));
    }
}
