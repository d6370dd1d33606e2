//! Coordination of a query over all nodes with its shards. Each shard is read at its leader; if that fails, once more
//! at the current leader or the replica here. A shard without an answer is an error that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{
    Attempt, Attempts, Cluster, LeaderCall, LeaderRequest, Prefer, ROUTE_WAIT_MAX, RetryUntil, Round, Route, Unserved,
};
use assay_node_btql::ast::Amount;
use assay_node_engine::{Hash, Position, innermost, last_of};
use assay_node_limits::Holder;
use assay_storage_model::{GroupId, NodeId, ObjectKey, ShardId, Xact};
use bytes::Bytes;
use futures::future::try_join_all;

use crate::AskError;
use crate::context::QueryContext;
use crate::leaf::{FORMAT, FORMAT_OF_WRITES, LeafObject, LeafPart, LeafRequest, LeafResponse, What};
use crate::plan::NodeShards;
use crate::request::Bounded;

/// Attempts for one part without a wait, enough for one change of its leader.
const TRIES: usize = 3;
/// Additional time for the transfer of a response.
const ON_THE_WAY: Duration = Duration::from_secs(2);
/// Additional time for the end of a part on this node.
const HERE_LATE: Duration = Duration::from_secs(1);

/// A question on its way through the cluster.
pub(crate) struct DistributedQuery<'e> {
    pub context: &'e Arc<QueryContext>,
    pub asker: &'e Bytes,
    pub asked: &'e Bounded,
    pub objects: &'e [LeafObject],
    pub until: Instant,
    pub who: Holder,
    pub seed: u64,
    /// Version at which each shard is read from now on.
    pub versions: BTreeMap<ShardId, Xact>,
}

/// Objects of a query in one shard.
struct ShardObjects {
    shard: ShardId,
    objects: Vec<LeafObject>,
    /// Number of failed attempts.
    tries: usize,
    /// Error of the last attempt.
    last: Option<AskError>,
}

impl DistributedQuery<'_> {
    /// The last of the sample, of queries that have one of so many.
    pub async fn sampled(&mut self) -> Result<Option<Hash>, AskError> {
        let Some((Amount::Count(count), _)) = innermost(&self.asked.bound).sample else { return Ok(None) };
        let mut hashes = Vec::new();
        for answer in self.ask(What::Lowest).await? {
            if let LeafPart::Lowest(lowest) = answer {
                hashes.extend(lowest);
            }
        }
        Ok(last_of(hashes, count))
    }

    pub async fn parts(
        &mut self,
        limit: Option<u64>,
        bytes: Option<usize>,
        after: Option<Position>,
        until: Option<Hash>,
    ) -> Result<Vec<LeafPart>, AskError> {
        self.ask(What::part(limit, bytes, after, until, self.seed)).await
    }

    async fn ask(&mut self, what: What) -> Result<Vec<LeafPart>, AskError> {
        let cluster = &self.context.cluster;
        let mut by_shard: BTreeMap<ShardId, Vec<LeafObject>> = BTreeMap::new();
        for object in self.objects {
            by_shard.entry(cluster.locate(&object.key)).or_default().push(object.clone());
        }
        // Apart by node, so that a slow one does not hold up what is asked for again of another.
        let mut by_node: BTreeMap<Option<NodeId>, Vec<(GroupId, ShardObjects)>> = BTreeMap::new();
        for (shard, objects) in by_shard {
            let request = (GroupId::of_shard(shard), ShardObjects { shard, objects, tries: 0, last: None });
            by_node.entry(node_of(cluster, shard)).or_default().push(request);
        }
        let answers = try_join_all(by_node.into_values().map(|requests| self.of(requests, what))).await?;
        let mut parts = Vec::new();
        for LeafResponse { versions, part } in answers.into_iter().flatten() {
            self.versions.extend(versions);
            parts.push(part);
        }
        Ok(parts)
    }

    /// Returns whether other nodes have some of the objects.
    pub fn asks_others(&self) -> bool {
        let cluster = &self.context.cluster;
        let mut shards = self.objects.iter().map(|object| cluster.locate(&object.key));
        shards.any(|shard| node_of(cluster, shard).is_some_and(|node| node != cluster.node()))
    }

    /// Requests shards from their presumed leader, and after a failure from others, shard by shard.
    async fn of(&self, requests: Vec<(GroupId, ShardObjects)>, what: What) -> Result<Vec<LeafResponse>, AskError> {
        let cluster = &self.context.cluster;
        let until = RetryUntil::both(self.until.min(Instant::now() + ROUTE_WAIT_MAX).into());
        let answers = cluster.ask_leaders(&mut ShardCall { query: self, what }, requests, until).await?;
        let mut found = Vec::new();
        for answer in answers {
            match answer {
                Ok(answer) => found.extend(answer),
                Err(Unserved::NoLeader(unserved) | Unserved::Busy(unserved)) => {
                    let why = unserved.last.map_or_else(|| "no leader is known".to_owned(), |why| why.to_string());
                    return Err(AskError::Unavailable(missing(unserved.shard, why)));
                }
                Err(Unserved::Lost) => return Err(AskError::Internal("a shard was not asked".into())),
            }
        }
        Ok(found)
    }

    async fn attempt_at(
        &self,
        node: Option<NodeId>,
        shards: Vec<LeaderRequest<ShardObjects>>,
        what: What,
    ) -> Result<Vec<(usize, ShardAttempt)>, AskError> {
        let why = match self.once(node, &shards, what).await {
            Ok(answer) => {
                let mut answer = Some(answer);
                return Ok(shards.into_iter().map(|one| (one.place, Attempt::Done(answer.take()))).collect());
            }
            // The time went by while others were waited for.
            Err(AskError::TooLate(why)) => {
                let earlier = shards.iter().find_map(|one| Some((one.request.shard, one.request.last.as_ref()?)));
                return Err(AskError::TooLate(match earlier {
                    Some((shard, earlier)) => missing(shard, format!("{why} ({earlier})")),
                    None => why,
                }));
            }
            Err(why) if !is_of_the_place(&why) => return Err(why),
            Err(why) => why,
        };
        tracing::debug!(%why, "a part of a query is asked for elsewhere");
        let mut attempts = Vec::with_capacity(shards.len());
        for one in shards {
            let ShardObjects { shard, objects, tries, .. } = one.request;
            let tries = tries + 1;
            // What is damaged, or not served by an earlier version, does not pass by waiting.
            if tries >= TRIES && !matches!(why, AskError::Unavailable(_)) {
                return Err(AskError::Unavailable(missing(shard, why.to_string())));
            }
            let request = ShardObjects { shard, objects, tries, last: Some(why.clone()) };
            attempts.push((one.place, Attempt::Elsewhere(request)));
        }
        Ok(attempts)
    }

    async fn once(
        &self,
        node: Option<NodeId>,
        shards: &[LeaderRequest<ShardObjects>],
        what: What,
    ) -> Result<LeafResponse, AskError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::TooLate("the query took longer than it may".into()));
        }
        let question = self.question(shards, what, left);
        let Some(node) = node else {
            // What is late is ended by the query's watch; what never begins, such as a view of a replica that has no
            // leader, is asked for elsewhere.
            let answer =
                tokio::time::timeout_at((self.until + HERE_LATE).into(), question.answer_here(self.context)).await;
            let silent = || Err(AskError::Unavailable("the replica of this node gave no answer in time".into()));
            return answer.unwrap_or_else(|_| silent());
        };
        let groups: Vec<GroupId> = shards.iter().map(|one| one.group).collect();
        let cluster = &self.context.cluster;
        let answer = cluster.send_about(node, &groups, self.asker, &question, left + ON_THE_WAY).await;
        let answer = answer.map_err(|why| AskError::Unavailable(why.to_string()))?;
        if matches!(&answer, Err(why) if is_of_the_place(why)) {
            groups.iter().for_each(|group| cluster.note_leader(*group, node, None));
        }
        answer
    }

    fn question(&self, shards: &[LeaderRequest<ShardObjects>], what: What, left: Duration) -> LeafRequest {
        let Bounded { inner, question, .. } = self.asked;
        let version = |shard: &ShardId| self.versions.get(shard).copied().or(question.version);
        LeafRequest {
            format: if question.audit_log { FORMAT_OF_WRITES } else { FORMAT },
            query: inner.clone(),
            now: question.now,
            tz_offset: question.tz_offset,
            audit_log: question.audit_log,
            inference_depth: question.inference_depth,
            objects: shards.iter().flat_map(|one| &one.request.objects).cloned().collect(),
            versions: shards
                .iter()
                .map(|one| one.request.shard)
                .filter_map(|shard| Some((shard, version(&shard)?)))
                .collect(),
            what,
            millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            bytes_max: self.context.limits.query_bytes_max,
            who: Some((self.who.organization, self.who.credential)),
        }
    }
}

/// Question to the nodes that lead some shards.
struct ShardCall<'c, 'e> {
    query: &'c DistributedQuery<'e>,
    what: What,
}

impl LeaderCall for ShardCall<'_, '_> {
    type Request = ShardObjects;
    /// Response of a batch of shards, stored at the first of them.
    type Response = Option<LeafResponse>;
    type Error = AskError;

    /// Prefers the replica of this node to a node that failed.
    fn prefer(&self, round: usize) -> Prefer {
        if round == 0 { Prefer::LeaderElseOwn } else { Prefer::Own }
    }

    /// Requests the shards of one node together at first, then one by one.
    async fn attempt(&mut self, round: Round<ShardObjects>) -> Attempts<Self> {
        let mut messages: Vec<(Option<NodeId>, Vec<LeaderRequest<ShardObjects>>)> = Vec::new();
        let there = round.there.into_iter().map(|(node, shards)| (Some(node), shards));
        for (node, shards) in std::iter::once((None, round.here)).chain(there) {
            let (first, again): (Vec<_>, Vec<_>) = shards.into_iter().partition(|one| one.request.tries == 0);
            messages.extend((!first.is_empty()).then_some((node, first)));
            messages.extend(again.into_iter().map(|one| (node, vec![one])));
        }
        let attempts = messages.into_iter().map(|(node, shards)| self.query.attempt_at(node, shards, self.what));
        Ok(try_join_all(attempts).await?.into_iter().flatten().collect())
    }
}

type ShardAttempt = Attempt<ShardObjects, Option<LeafResponse>>;

fn missing(shard: ShardId, why: String) -> String {
    format!("shard {shard} gave no answer, and this query needs it: {why}")
}

/// Returns the node to ask first for a shard.
fn node_of(cluster: &Cluster, shard: ShardId) -> Option<NodeId> {
    match cluster.route(GroupId::of_shard(shard), Prefer::LeaderElseOwn) {
        Route::Here => Some(cluster.node()),
        Route::There(node) => Some(node),
        Route::Nobody => None,
    }
}

/// Returns the nodes to ask first for these objects.
pub(crate) fn places(cluster: &Cluster, objects: impl Iterator<Item = ObjectKey>) -> Vec<NodeShards> {
    let mut found: BTreeMap<Option<NodeId>, NodeShards> = BTreeMap::new();
    for object in objects {
        let shard = cluster.locate(&object);
        let node = node_of(cluster, shard);
        let place = found.entry(node).or_insert_with(|| NodeShards { node, shards: BTreeSet::new(), objects: 0 });
        place.shards.insert(shard);
        place.objects += 1;
    }
    found.into_values().collect()
}

/// Returns whether another node may succeed after this error.
fn is_of_the_place(why: &AskError) -> bool {
    matches!(why, AskError::Unavailable(_) | AskError::Damaged(_) | AskError::NotServed(_))
}
