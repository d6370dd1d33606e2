//! One question to all nodes that have something of it. Each shard is asked where it is led; where that node gives no
//! answer, whoever leads by then is asked once more, or the replica here. A shard that nobody answers for is named, and
//! there is no answer without it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{AskError as NoNode, Cluster, ROUTE_WAIT_MAX, Route};
use assay_node_btql::ast::Amount;
use assay_node_engine::{Hash, Position, innermost, last_of};
use assay_node_limits::Holder;
use assay_storage_model::{GroupId, NodeId, ObjectKey, ShardId, Xact};
use bytes::Bytes;
use futures::future::try_join_all;

use crate::AskError;
use crate::leaf::{FORMAT, FORMAT_OF_WRITES, LEAF, LeafAnswer, LeafObject, LeafPart, LeafQuestion, What, unpack};
use crate::office::Office;
use crate::plan::Place;
use crate::request::Bounded;

/// How often a part is asked for where waiting does not help: its place may have changed once.
const TRIES: usize = 3;
/// Between two times that a shard is asked for while its lead moves.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(25);
/// Beside its own time, what an answer takes on its way.
const ON_THE_WAY: Duration = Duration::from_secs(2);
/// Beside its own time, what a part of this node takes to end.
const HERE_LATE: Duration = Duration::from_secs(1);

/// A question on its way through the cluster.
pub(crate) struct Errand<'e> {
    pub office: &'e Arc<Office>,
    pub asker: &'e Bytes,
    pub asked: &'e Bounded,
    pub objects: &'e [LeafObject],
    pub until: Instant,
    pub who: Holder,
    pub seed: u64,
    /// At which each shard is read from now on.
    pub versions: BTreeMap<ShardId, Xact>,
}

/// Who is asked for some objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whom {
    Here,
    There(NodeId),
}

impl Errand<'_> {
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
        let mut by_shard: BTreeMap<ShardId, Vec<LeafObject>> = BTreeMap::new();
        for object in self.objects {
            by_shard.entry(self.office.cluster.locate(&object.key)).or_default().push(object.clone());
        }
        let mut by_whom: BTreeMap<Whom, Vec<(ShardId, Vec<LeafObject>)>> = BTreeMap::new();
        for (shard, objects) in by_shard {
            let whom = self.whom_soon(shard).await?;
            by_whom.entry(whom).or_default().push((shard, objects));
        }
        let asked = by_whom.into_iter().map(|(whom, shards)| self.of(whom, shards, what));
        let answers: Vec<LeafAnswer> = try_join_all(asked).await?.into_iter().flatten().collect();
        let mut parts = Vec::new();
        for LeafAnswer { versions, part } in answers {
            self.versions.extend(versions);
            parts.push(part);
        }
        Ok(parts)
    }

    /// Whether another node would be asked for some of the objects.
    pub fn asks_others(&self) -> bool {
        let cluster = &self.office.cluster;
        let mut shards = self.objects.iter().map(|object| cluster.locate(&object.key));
        shards.any(|shard| matches!(whom(cluster, shard, 0), Some(Whom::There(_))))
    }

    fn whom(&self, shard: ShardId, tries: usize) -> Result<Whom, AskError> {
        whom(&self.office.cluster, shard, tries).ok_or_else(|| {
            AskError::Unavailable(format!("nobody is known to lead shard {shard}, which this query needs"))
        })
    }

    /// Until when a shard is asked for again while its lead moves.
    fn asked_until(&self) -> Instant {
        self.until.min(Instant::now() + ROUTE_WAIT_MAX)
    }

    /// Who is asked for a shard; waits while nobody is known to lead it.
    async fn whom_soon(&self, shard: ShardId) -> Result<Whom, AskError> {
        let until = self.asked_until();
        loop {
            match self.whom(shard, 0) {
                Err(_) if Instant::now() < until && !self.office.cluster.is_closing() => {
                    tokio::time::sleep(ASKED_AGAIN_AFTER).await;
                }
                found => return found,
            }
        }
    }

    /// Of one node; where it gives no answer, shard by shard of others.
    async fn of(
        &self,
        whom: Whom,
        shards: Vec<(ShardId, Vec<LeafObject>)>,
        what: What,
    ) -> Result<Vec<LeafAnswer>, AskError> {
        match self.once(whom, &shards, what).await {
            Ok(answer) => Ok(vec![answer]),
            Err((_, why)) if !is_of_the_place(&why) => Err(why),
            Err((leader, why)) => {
                tracing::debug!(%why, "a part of a query is asked for elsewhere");
                self.note(whom, &shards, leader);
                try_join_all(shards.into_iter().map(|shard| self.again(shard, what, why.clone()))).await
            }
        }
    }

    /// `last` is why the first to be asked gave no answer.
    async fn again(
        &self,
        shard: (ShardId, Vec<LeafObject>),
        what: What,
        mut last: AskError,
    ) -> Result<LeafAnswer, AskError> {
        let missing = |why| format!("shard {} gave no answer, and this query needs it: {why}", shard.0);
        let until = self.asked_until();
        for tries in 1.. {
            // What is damaged, or not served by an earlier version, does not pass by waiting.
            let may_pass = matches!(last, AskError::Unavailable(_));
            if tries >= TRIES && (!may_pass || Instant::now() >= until || self.office.cluster.is_closing()) {
                break;
            }
            if tries > 1 {
                tokio::time::sleep(ASKED_AGAIN_AFTER).await;
            }
            let whom = match self.whom(shard.0, tries) {
                Ok(whom) => whom,
                Err(why) => {
                    last = why;
                    continue;
                }
            };
            let shards = [shard.clone()];
            match self.once(whom, &shards, what).await {
                Ok(answer) => return Ok(answer),
                Err((leader, why)) if is_of_the_place(&why) => {
                    self.note(whom, &shards, leader);
                    last = why;
                }
                // The time went by while others were waited for.
                Err((_, AskError::TooLate(why))) => return Err(AskError::TooLate(missing(format!("{why} ({last})")))),
                Err((_, why)) => return Err(why),
            }
        }
        Err(AskError::Unavailable(missing(last.to_string())))
    }

    fn note(&self, whom: Whom, shards: &[(ShardId, Vec<LeafObject>)], leader: Option<NodeId>) {
        if let Whom::There(node) = whom {
            for (shard, _) in shards {
                self.office.cluster.note_leader(GroupId::of_shard(*shard), node, leader);
            }
        }
    }

    async fn once(
        &self,
        whom: Whom,
        shards: &[(ShardId, Vec<LeafObject>)],
        what: What,
    ) -> Result<LeafAnswer, (Option<NodeId>, AskError)> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err((None, AskError::TooLate("the query took longer than it may".into())));
        }
        let question = self.question(shards, what, left);
        let node = match whom {
            Whom::Here => {
                // What is late is ended by the query's watch; what never begins, such as a view of a replica that has no
                // leader, is asked for elsewhere.
                let answer = question.answer_here(self.office);
                let answer = tokio::time::timeout_at((self.until + HERE_LATE).into(), answer).await;
                let silent = || Err(AskError::Unavailable("the replica of this node gave no answer in time".into()));
                return answer.unwrap_or_else(|_| silent()).map_err(|why| (None, why));
            }
            Whom::There(node) => node,
        };
        let body = Bytes::from(serde_json::to_vec(&question).expect("plain data encodes"));
        let (service, body) = self.office.cluster.addressed(node, LEAF, self.asker, body);
        match self.office.cluster.ask_repeatable(node, service, body, left + ON_THE_WAY).await {
            Ok(answer) => {
                let unread = || Err(AskError::Unavailable(format!("the answer of node {node} does not read")));
                unpack(answer).unwrap_or_else(unread).map_err(|why| (None, why))
            }
            Err(NoNode::NotLeader { leader, .. }) => {
                Err((leader, AskError::Unavailable(format!("node {node} does not have what it was asked for"))))
            }
            Err(why) => Err((None, AskError::Unavailable(why.to_string()))),
        }
    }

    fn question(&self, shards: &[(ShardId, Vec<LeafObject>)], what: What, left: Duration) -> LeafQuestion {
        let Bounded { inner, question, .. } = self.asked;
        let version = |shard: &ShardId| self.versions.get(shard).copied().or(question.version);
        LeafQuestion {
            format: if question.audit_log { FORMAT_OF_WRITES } else { FORMAT },
            query: inner.clone(),
            now: question.now,
            tz_offset: question.tz_offset,
            audit_log: question.audit_log,
            inference_depth: question.inference_depth,
            objects: shards.iter().flat_map(|(_, objects)| objects).cloned().collect(),
            versions: shards.iter().filter_map(|(shard, _)| Some((*shard, version(shard)?))).collect(),
            what,
            millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            bytes_max: self.office.limits.query_bytes_max,
            who: Some((self.who.organization, self.who.credential)),
        }
    }
}

/// Where a shard is led; where nobody is known to lead it, here if it is here.
fn whom(cluster: &Cluster, shard: ShardId, tries: usize) -> Option<Whom> {
    let group = GroupId::of_shard(shard);
    let is_here = cluster.shard(shard).is_some() && cluster.has_data(group);
    match cluster.route(group) {
        Route::There(node) if tries == 0 || !is_here => Some(Whom::There(node)),
        _ if is_here => Some(Whom::Here),
        Route::There(node) => Some(Whom::There(node)),
        Route::Here | Route::Nobody => None,
    }
}

/// Who would be asked for these objects first.
pub(crate) fn places(cluster: &Cluster, objects: impl Iterator<Item = ObjectKey>) -> Vec<Place> {
    let mut found: BTreeMap<Option<NodeId>, Place> = BTreeMap::new();
    for object in objects {
        let shard = cluster.locate(&object);
        let node = whom(cluster, shard, 0).map(|whom| match whom {
            Whom::Here => cluster.node(),
            Whom::There(node) => node,
        });
        let place = found.entry(node).or_insert_with(|| Place { node, shards: BTreeSet::new(), objects: 0 });
        place.shards.insert(shard);
        place.objects += 1;
    }
    found.into_values().collect()
}

/// Whether another place may answer what this one did not.
fn is_of_the_place(why: &AskError) -> bool {
    matches!(why, AskError::Unavailable(_) | AskError::Damaged(_) | AskError::NotServed(_))
}
