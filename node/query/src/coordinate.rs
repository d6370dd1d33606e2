//! Coordination of a query over all nodes that hold its shards.
//!
//! Each shard is read at its leader. After a failure it is read again at the current leader or at the local replica. A
//! shard without a response is an error that names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{
    Attempt, Attempts, Cluster, Feature, LeaderCall, LeaderMessage, LeaderRequest, Prefer, ROUTE_WAIT_MAX, RetryUntil,
    Round, Route, Unserved,
};
use assay_node_btql::ast::Amount;
use assay_node_engine::{EngineError, Hash, Position, innermost, last_of};
use assay_node_limits::Holder;
use assay_node_running_queries::QueryProgress;
use assay_storage_model::{GroupId, NodeId, ObjectKey, ShardId, Xact};
use bytes::Bytes;
use futures::future::try_join_all;
use tokio::sync::OwnedSemaphorePermit;

use crate::context::QueryContext;
use crate::leaf::run::{LeafRun, PartForm};
use crate::leaf::stream::{ChunkReader, LeafChunk, RESULT_STREAM, format_of_stream};
use crate::leaf::{LeafObject, LeafPart, LeafRequest, LeafResponse, What, format_of};
use crate::plan::NodeShards;
use crate::request::Bounded;
use crate::{AskError, BYTES_SENT_AT_ONCE};

/// Number of attempts at one part without a wait, enough for one change of its leader.
const TRIES: usize = 3;
/// Number of rows in a page from a node without a stream.
const PAGE_ROWS: u64 = 4_000;
/// Additional time for the transfer of a response.
const ON_THE_WAY: Duration = Duration::from_secs(2);
/// Additional time for the end of a part on this node.
const HERE_LATE: Duration = Duration::from_secs(1);

/// Query that is distributed over the cluster.
pub(crate) struct DistributedQuery<'e> {
    pub context: &'e Arc<QueryContext>,
    pub asker: &'e Bytes,
    pub asked: &'e Bounded,
    pub objects: &'e [LeafObject],
    pub until: Instant,
    pub who: Holder,
    pub progress: &'e Arc<QueryProgress>,
    pub seed: u64,
    /// Version at which each shard is read once it is known.
    pub versions: BTreeMap<ShardId, Xact>,
}

/// Rows to request from leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsWanted {
    pub limit: Option<u64>,
    /// Upper bound of the bytes of texts in a part, or `None` for a result without pages.
    pub bytes: Option<usize>,
    pub after: Option<Position>,
    /// Highest hash in the sample.
    pub until: Option<Hash>,
}

/// Input of rows of some shards from one node, which returns them part by part.
#[derive(Debug)]
pub(crate) struct LeafInput {
    shards: Vec<ShardObjects>,
    source: LeafSource,
    /// First part, received when the input was opened.
    first: Option<InputPart>,
}

/// Source of the parts of an input.
#[derive(Debug)]
enum LeafSource {
    /// Local replicas.
    Own(Box<LeafRun>),
    Stream(NodeId, ChunkReader),
    /// Pages from a node without streams, or while too many streams are open.
    Pages(NodeId),
}

/// Part of an input.
#[derive(Debug)]
pub(crate) struct InputPart {
    pub part: LeafPart,
    /// Whether the part is the last one of its input. `None` if its node does not tell, as nodes up to 0.6.
    pub is_last: Option<bool>,
}

/// Failure of an input.
#[derive(Debug)]
pub(crate) enum InputError {
    /// The rows after the last part must be requested again, possibly from another node.
    OpenAgain,
    Failed(AskError),
}

/// Objects of a query in one shard.
#[derive(Debug)]
struct ShardObjects {
    shard: ShardId,
    objects: Vec<LeafObject>,
    /// Number of failed attempts.
    tries: usize,
    /// Error of the last attempt.
    last: Option<AskError>,
}

/// Response to a request for some shards.
#[derive(Debug)]
enum Opened {
    Lowest(Vec<Hash>),
    Rows(Box<LeafInput>),
}

impl DistributedQuery<'_> {
    /// Returns the highest hash of a sample of fixed size, or `None` for other queries.
    pub async fn sampled(&mut self) -> Result<Option<Hash>, AskError> {
        let Some((Amount::Count(count), _)) = innermost(&self.asked.bound).sample else { return Ok(None) };
        let mut hashes = Vec::new();
        for opened in self.ask(self.objects.to_vec(), What::Lowest).await? {
            if let Opened::Lowest(lowest) = opened {
                hashes.extend(lowest);
            }
        }
        Ok(last_of(hashes, count))
    }

    /// Opens the rows of all objects.
    pub async fn open(&mut self, wanted: RowsWanted) -> Result<Vec<LeafInput>, AskError> {
        self.open_objects(self.objects.to_vec(), wanted).await
    }

    /// Opens the rows of a failed input again.
    pub async fn open_again(&mut self, input: LeafInput, wanted: RowsWanted) -> Result<Vec<LeafInput>, AskError> {
        let objects = input.shards.into_iter().flat_map(|shard| shard.objects).collect();
        self.open_objects(objects, wanted).await
    }

    async fn open_objects(&mut self, objects: Vec<LeafObject>, wanted: RowsWanted) -> Result<Vec<LeafInput>, AskError> {
        let RowsWanted { limit, bytes, after, until } = wanted;
        let opened = self.ask(objects, What::part(limit, bytes, after, until, self.seed)).await?;
        Ok(opened
            .into_iter()
            .filter_map(|opened| if let Opened::Rows(input) = opened { Some(*input) } else { None })
            .collect())
    }

    async fn ask(&mut self, objects: Vec<LeafObject>, what: What) -> Result<Vec<Opened>, AskError> {
        let cluster = &self.context.cluster;
        let mut by_shard: BTreeMap<ShardId, Vec<LeafObject>> = BTreeMap::new();
        for object in objects {
            by_shard.entry(cluster.locate(&object.key)).or_default().push(object);
        }
        // Each node has its own task, so that a slow node does not delay retries at another one.
        let mut by_node: BTreeMap<Option<NodeId>, Vec<(GroupId, ShardObjects)>> = BTreeMap::new();
        for (shard, objects) in by_shard {
            let request = (GroupId::of_shard(shard), ShardObjects { shard, objects, tries: 0, last: None });
            by_node.entry(node_of(cluster, shard)).or_default().push(request);
        }
        let answers = try_join_all(by_node.into_values().map(|requests| self.of(requests, what))).await?;
        let mut all = Vec::new();
        for (opened, versions) in answers.into_iter().flatten() {
            self.versions.extend(versions);
            all.push(opened);
        }
        Ok(all)
    }

    /// Returns the next part of an input. `wanted` describes the remaining rows.
    pub async fn next_part(&self, input: &mut LeafInput, wanted: RowsWanted) -> Result<InputPart, InputError> {
        if let Some(first) = input.first.take() {
            return Ok(first);
        }
        let part = match &mut input.source {
            LeafSource::Own(run) => {
                let next = run.next(self.until, PartForm::Own).await;
                next.map(|(part, is_last)| InputPart { part, is_last: Some(is_last) })
            }
            LeafSource::Stream(node, chunks) => {
                match tokio::time::timeout_at(self.latest().into(), chunks.next()).await {
                    Err(_) => return Err(InputError::Failed(too_late())),
                    // A stream also ends early if nobody reads it for a while.
                    Ok(None) => return Err(InputError::OpenAgain),
                    Ok(Some(chunk)) => {
                        if matches!(&chunk, Err(why) if is_of_the_place(why)) {
                            let groups = input.shards.iter().map(|one| GroupId::of_shard(one.shard));
                            groups.for_each(|group| self.context.cluster.note_leader(group, *node, None));
                        }
                        chunk.map(|LeafChunk { part, is_last, usage, .. }| {
                            self.progress.add(usage);
                            InputPart { part, is_last: Some(is_last) }
                        })
                    }
                }
            }
            LeafSource::Pages(node) => {
                let RowsWanted { limit, bytes, after, until } = wanted;
                let what = What::part(limit, bytes, after, until, self.seed).with_rows_max(PAGE_ROWS);
                self.page(Some(*node), &input.shards.iter().collect::<Vec<_>>(), what).await.map(|(part, _)| part)
            }
        };
        part.map_err(|why| if is_of_the_place(&why) { InputError::OpenAgain } else { InputError::Failed(why) })
    }

    /// Returns the latest time at which a part of this query may arrive.
    fn latest(&self) -> Instant {
        self.until + ON_THE_WAY
    }

    /// Returns whether other nodes hold some of the objects.
    pub fn asks_others(&self) -> bool {
        let cluster = &self.context.cluster;
        let mut shards = self.objects.iter().map(|object| cluster.locate(&object.key));
        shards.any(|shard| node_of(cluster, shard).is_some_and(|node| node != cluster.node()))
    }

    /// Requests shards from their presumed leader. After a failure, requests each shard separately from other nodes.
    async fn of(&self, requests: Vec<(GroupId, ShardObjects)>, what: What) -> Result<Vec<OpenedAt>, AskError> {
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
            // Earlier attempts may have used up the time, so the error includes their reason.
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
        tracing::debug!(%why, "the part of a query is requested from another node");
        let mut attempts = Vec::with_capacity(shards.len());
        for one in shards {
            let ShardObjects { shard, objects, tries, .. } = one.request;
            let tries = tries + 1;
            // Damage and missing support do not go away by waiting.
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
    ) -> Result<OpenedAt, AskError> {
        let objects: Vec<&ShardObjects> = shards.iter().map(|one| &one.request).collect();
        if what == What::Lowest {
            let (InputPart { part, .. }, versions) = self.page(node, &objects, what).await?;
            let LeafPart::Lowest(lowest) = part else {
                return Err(AskError::Internal("a part where hashes were asked for".into()));
            };
            return Ok((Opened::Lowest(lowest), versions));
        }
        let (source, first, versions) = match (node, self.stream_permit(node)) {
            (None, _) => self.own(&objects, what).await?,
            (Some(node), Some(permit)) => self.stream(node, &objects, what, permit).await?,
            (Some(node), None) => {
                let (part, versions) = self.page(Some(node), &objects, what.with_rows_max(PAGE_ROWS)).await?;
                (LeafSource::Pages(node), part, versions)
            }
        };
        let shards =
            objects.iter().map(|one| ShardObjects { tries: 0, last: None, objects: one.objects.clone(), ..**one });
        let input = LeafInput { shards: shards.collect(), source, first: Some(first) };
        Ok((Opened::Rows(Box::new(input)), versions))
    }

    /// Returns a permit for a stream, if the node supports streams and one is available.
    fn stream_permit(&self, node: Option<NodeId>) -> Option<OwnedSemaphorePermit> {
        let node = node.filter(|node| self.context.cluster.has_feature(*node, Feature::ResultStreams));
        node.and_then(|_| Arc::clone(&self.context.streams).try_acquire_owned().ok())
    }

    /// Returns the remaining time.
    fn left(&self) -> Result<Duration, AskError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(too_late()) } else { Ok(left) }
    }

    async fn own(&self, shards: &[&ShardObjects], what: What) -> Result<OpenedSource, AskError> {
        let request = self.question(shards, what, self.left()?);
        let first = async {
            let mut run = LeafRun::begin(self.context, request, Arc::clone(self.progress)).await?;
            let (part, is_last) = run.next(self.until, PartForm::Own).await?;
            let versions = run.versions.clone();
            Ok((LeafSource::Own(Box::new(run)), InputPart { part, is_last: Some(is_last) }, versions))
        };
        // The query's watch ends late work. A part that never starts, as on a replica without a leader, is requested
        // elsewhere.
        let first = tokio::time::timeout_at((self.until + HERE_LATE).into(), first).await;
        first.unwrap_or_else(|_| Err(no_answer_here()))
    }

    async fn stream(
        &self,
        node: NodeId,
        shards: &[&ShardObjects],
        what: What,
        permit: OwnedSemaphorePermit,
    ) -> Result<OpenedSource, AskError> {
        let left = self.left()?;
        let what = what.in_parts(BYTES_SENT_AT_ONCE);
        let mut request = self.question(shards, what, left);
        request.format = format_of_stream(&request.objects);
        let groups = groups_of(shards);
        let (cluster, body) = (&self.context.cluster, request.encode());
        let opened = cluster.stream_about(node, &groups, RESULT_STREAM, (self.asker, &body), left + ON_THE_WAY).await;
        let mut chunks = ChunkReader::start(opened.map_err(|why| AskError::Unavailable(why.to_string()))?, permit);
        let first = tokio::time::timeout_at(self.latest().into(), chunks.next()).await.map_err(|_| too_late())?;
        let ended = || Err(AskError::Unavailable(format!("node {node} ended a stream before its first part")));
        let first = first.unwrap_or_else(ended);
        if matches!(&first, Err(why) if is_of_the_place(why)) {
            groups.iter().for_each(|group| cluster.note_leader(*group, node, None));
        }
        let LeafChunk { versions, part, is_last, usage } = first?;
        self.progress.add(usage);
        Ok((LeafSource::Stream(node, chunks), InputPart { part, is_last: Some(is_last) }, versions))
    }

    /// Requests one part of some shards.
    async fn page(
        &self,
        node: Option<NodeId>,
        shards: &[&ShardObjects],
        what: What,
    ) -> Result<(InputPart, Vec<(ShardId, Xact)>), AskError> {
        let left = self.left()?;
        let question = self.question(shards, what, left);
        let answer = match node {
            None => {
                let answer = question.answer_here(self.context, Arc::clone(self.progress));
                let answer = tokio::time::timeout_at((self.until + HERE_LATE).into(), answer).await;
                answer.unwrap_or_else(|_| Err(no_answer_here()))
            }
            Some(node) => {
                let (groups, cluster) = (groups_of(shards), &self.context.cluster);
                let answer = cluster.send_about(node, &groups, self.asker, &question, left + ON_THE_WAY).await;
                let answer = answer.map_err(|why| AskError::Unavailable(why.to_string()))?;
                if matches!(&answer, Err(why) if is_of_the_place(why)) {
                    groups.iter().for_each(|group| cluster.note_leader(*group, node, None));
                }
                answer
            }
        };
        answer.map(|LeafResponse { versions, part, is_last, usage }| {
            self.progress.add(usage);
            let is_last = match what {
                What::Part { bytes: Some(_), .. } => is_last,
                // A result without pages comes in one part.
                _ => Some(true),
            };
            (InputPart { part, is_last }, versions)
        })
    }

    fn question(&self, shards: &[&ShardObjects], what: What, left: Duration) -> LeafRequest {
        let Bounded { inner, question, .. } = self.asked;
        let version = |shard: &ShardId| self.versions.get(shard).copied().or(question.version);
        let objects: Vec<LeafObject> = shards.iter().flat_map(|one| &one.objects).cloned().collect();
        LeafRequest {
            format: format_of(&objects, question.audit_log),
            query: inner.clone(),
            now: question.now,
            tz_offset: question.tz_offset,
            audit_log: question.audit_log,
            inference_depth: question.inference_depth,
            objects,
            versions: shards.iter().map(|one| one.shard).filter_map(|shard| Some((shard, version(&shard)?))).collect(),
            what,
            millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            bytes_max: self.context.limits.query_bytes_max,
            who: Some((self.who.organization, self.who.credential)),
        }
    }
}

/// Request to the leaders of some shards.
struct ShardCall<'c, 'e> {
    query: &'c DistributedQuery<'e>,
    what: What,
}

impl LeaderCall for ShardCall<'_, '_> {
    type Request = ShardObjects;
    /// Response for a batch of shards, stored at the first of them.
    type Response = Option<OpenedAt>;
    type Error = AskError;

    /// Prefers the local replica to a node that failed.
    fn prefer(&self, round: usize) -> Prefer {
        if round == 0 { Prefer::LeaderElseOwn } else { Prefer::Own }
    }

    /// Requests the shards of one node together in the first attempt, and separately afterwards.
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

/// Response of one node with the versions at which it reads.
type OpenedAt = (Opened, Vec<(ShardId, Xact)>);
/// Source of rows with its first part and the versions at which it reads.
type OpenedSource = (LeafSource, InputPart, Vec<(ShardId, Xact)>);
type ShardAttempt = Attempt<ShardObjects, Option<OpenedAt>>;

fn groups_of(shards: &[&ShardObjects]) -> Vec<GroupId> {
    shards.iter().map(|one| GroupId::of_shard(one.shard)).collect()
}

fn too_late() -> AskError {
    AskError::TooLate(EngineError::TooLate.to_string())
}

fn no_answer_here() -> AskError {
    AskError::Unavailable("the replica of this node gave no answer in time".into())
}

fn missing(shard: ShardId, why: String) -> String {
    format!("shard {shard} gave no answer, and this query needs it: {why}")
}

/// Returns the node to request a shard from first.
fn node_of(cluster: &Cluster, shard: ShardId) -> Option<NodeId> {
    match cluster.route(GroupId::of_shard(shard), Prefer::LeaderElseOwn) {
        Route::Here => Some(cluster.node()),
        Route::There(node) => Some(node),
        Route::Nobody => None,
    }
}

/// Returns the nodes to request these objects from first.
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

/// Returns whether a request to another node may succeed after this error.
fn is_of_the_place(why: &AskError) -> bool {
    matches!(why, AskError::Unavailable(_) | AskError::Damaged(_) | AskError::NotServed(_))
}
