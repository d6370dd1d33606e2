//! Execution of a query's part over the objects of one node, for a local or remote coordinator.
//!
//! The request contains the text of the query, which each node binds itself. So nodes need to agree only on the
//! language.

pub(crate) mod run;
pub(crate) mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{Cluster, DelegatedService, LeaderMessage, NoAnswer, ObjectAccess, ServiceNames};
use assay_node_btql::bound::Bound;
use assay_node_btql::{Env, bind, deep, parse};
use assay_node_engine::{Ask, Hash, Partial, PartialFormat, Position, Shared, Source, Watch, lowest, run};
use assay_node_limits::Holder;
use assay_node_reviews::Blindness;
use assay_node_running_queries::{QueryProgress, QueryUsage};
use assay_storage_model::{GroupId, NodeId, ObjectKey, ShardId, Xact};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::context::QueryContext;
use crate::{AskError, packed};

pub(crate) const LEAF: ServiceNames = ServiceNames { plain: "query.leaf", on_behalf: "query.leaf.for" };
/// Format of parts with rows as values, for nodes of releases before 0.6. A node requests the format that it can read.
const FORMAT: u16 = 1;
/// Format of requests about writes (`audit_log`), which nodes with only the first format would misread.
const FORMAT_OF_WRITES: u16 = 2;
/// Format of requests with masked objects. Older nodes, which would not apply the masks, refuse it.
const FORMAT_OF_MASKS: u16 = 4;

/// Columns with the same value in all rows of an object.
const CONSTANTS: [&str; 6] = ["org_id", "project_id", "log_id", "experiment_id", "dataset_id", "prompt_session_id"];

/// Object of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeafObject {
    pub key: ObjectKey,
    /// Index among all objects of the query.
    pub number: u32,
    /// Constant columns: indexes in `CONSTANTS`, with values.
    pub constants: Vec<(usize, String)>,
    /// Review mask of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blind: Option<Arc<Blindness>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeafRequest {
    pub format: u16,
    pub query: Value,
    pub now: i64,
    pub tz_offset: i32,
    pub audit_log: bool,
    pub inference_depth: Option<u64>,
    pub objects: Vec<LeafObject>,
    /// Requested versions of shards, or those of earlier reads.
    pub versions: Vec<(ShardId, Xact)>,
    pub what: What,
    pub millis: u64,
    pub bytes_max: usize,
    /// Organization and credential of the caller. Nodes before 0.5 do not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<(Uuid, Uuid)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Lowest hashes of the sample.
    Lowest,
    Part {
        limit: Option<u64>,
        after: Option<(u64, u64, Option<u32>)>,
        /// Write of `after` in an `audit_log` query. Older nodes do not get such queries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<u64>,
        until: Option<Hash>,
        seed: u64,
        /// Bytes of texts after which the part may end. Nodes before 0.5 ignore it and send all rows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<usize>,
    },
}

/// Part from one node, and the versions at which it was read.
#[derive(Debug)]
pub(crate) struct LeafResponse {
    pub versions: Vec<(ShardId, Xact)>,
    pub part: LeafPart,
    /// Whether no rows follow the part. Nodes up to 0.6 do not tell.
    pub is_last: Option<bool>,
    /// Resources used on another node.
    pub usage: QueryUsage,
}

#[derive(Debug)]
pub(crate) enum LeafPart {
    Lowest(Vec<Hash>),
    /// Encoded part from another node.
    Part(Bytes),
    /// Part of this node.
    Own(Partial),
}

#[derive(Serialize, Deserialize)]
struct LeafHead {
    versions: Vec<(ShardId, Xact)>,
    lowest: Option<Vec<Hash>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_last: Option<bool>,
    /// Resources used for the part. Nodes up to 0.6 do not tell.
    #[serde(default, skip_serializing_if = "QueryUsage::is_nothing")]
    usage: QueryUsage,
}

impl LeafPart {
    fn encoded(self) -> Result<LeafPart, AskError> {
        Ok(match self {
            LeafPart::Own(part) => LeafPart::Part(part.encode(PartialFormat::Values)?.into()),
            other => other,
        })
    }

    /// Returns the part, decoded if it came from another node. `inner` is the query that it belongs to.
    pub fn decoded(self, inner: &Bound, seed: u64) -> Result<Partial, AskError> {
        match self {
            LeafPart::Own(part) => Ok(part),
            LeafPart::Part(bytes) => Ok(Partial::decode(inner, seed, &bytes)?),
            LeafPart::Lowest(_) => Err(AskError::Internal("hashes where a part was asked for".into())),
        }
    }
}

/// Returns whether the caller has a mask for some of the objects.
pub(crate) fn has_masks(objects: &[LeafObject]) -> bool {
    objects.iter().any(|object| object.blind.is_some())
}

/// Returns the format of a request about these objects, or about writes to them.
pub(crate) fn format_of(objects: &[LeafObject], audit_log: bool) -> u16 {
    match (has_masks(objects), audit_log) {
        (true, _) => FORMAT_OF_MASKS,
        (false, true) => FORMAT_OF_WRITES,
        (false, false) => FORMAT,
    }
}

impl LeafObject {
    pub fn with(key: ObjectKey, number: u32, constants: &[(&str, String)]) -> LeafObject {
        let place = |name: &str| CONSTANTS.iter().position(|known| *known == name);
        let constants = constants.iter().filter_map(|(name, value)| Some((place(name)?, value.clone())));
        LeafObject { key, number, constants: constants.collect(), blind: None }
    }
}

impl What {
    pub fn part(
        limit: Option<u64>,
        bytes: Option<usize>,
        after: Option<Position>,
        until: Option<Hash>,
        seed: u64,
    ) -> What {
        let write = after.and_then(|after| after.write);
        let after = after.map(|after| (after.place, after.xact, after.object));
        What::Part { limit, after, write, until, seed, bytes }
    }
}

impl What {
    /// Returns a request for at most this number of rows, if the result has pages.
    pub fn with_rows_max(self, most: u64) -> What {
        match self {
            What::Part { limit, after, write, until, seed, bytes: Some(bytes) } => {
                let limit = Some(limit.map_or(most, |limit| limit.min(most)));
                What::Part { limit, after, write, until, seed, bytes: Some(bytes) }
            }
            other => other,
        }
    }

    /// Returns a request for parts of about this size. A stream also splits results without pages into parts.
    pub fn in_parts(self, most: usize) -> What {
        match self {
            What::Part { limit, after, write, until, seed, bytes } => {
                What::Part { limit, after, write, until, seed, bytes: bytes.or(Some(most)) }
            }
            What::Lowest => What::Lowest,
        }
    }
}

/// Guard that stops a query when its caller is gone.
pub(crate) struct StopOnDrop(pub Watch);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl LeafRequest {
    /// Reads the part from the replicas of this node, and notes the used resources in `progress`.
    pub async fn answer_here(
        self,
        context: &Arc<QueryContext>,
        progress: Arc<QueryProgress>,
    ) -> Result<LeafResponse, AskError> {
        self.answer(context, progress, Ok).await
    }

    /// Runs the part for another node. The result is encoded on the thread that computed it.
    async fn answer_there(self, context: &Arc<QueryContext>) -> Result<LeafResponse, AskError> {
        let progress = Arc::new(QueryProgress::default());
        let answer = self.answer(context, Arc::clone(&progress), LeafPart::encoded).await?;
        Ok(LeafResponse { usage: progress.usage(), ..answer })
    }

    async fn answer(
        self,
        context: &Arc<QueryContext>,
        progress: Arc<QueryProgress>,
        then: impl FnOnce(LeafPart) -> Result<LeafPart, AskError> + Send + 'static,
    ) -> Result<LeafResponse, AskError> {
        let known = format_of(&self.objects, self.audit_log);
        if self.format != known {
            let why =
                format!("this node reads such questions of format {known}, and this one has format {}", self.format);
            return Err(AskError::NotServed(why));
        }
        let until = Instant::now() + Duration::from_millis(self.millis);
        let (sources, versions) = self.sources(context).await?;
        let watch = Watch::counting(until, self.bytes_max, &context.memory, progress);
        let stop = StopOnDrop(watch.clone());
        let who = self.who();
        let shared = context.shared_by(who);
        let shards: Vec<ShardId> = versions.iter().map(|(shard, _)| *shard).collect();
        let workers = shared.workers.clone();
        // The query is bound on the same thread, because patterns take time to compile.
        let made = move |watch: &Watch| {
            deep(|| {
                let (part, is_last) = part(&self.bind()?, &sources, &shared, watch, self.what)?;
                Ok((then(part)?, is_last))
            })
        };
        let part = context.threads.run(who, until, move || workers.work(&watch, || made(&watch))).await;
        drop(stop);
        let part = part?.unwrap_or_else(|why| Err(why.into()));
        if let Err(AskError::Damaged(why)) = &part {
            tracing::error!(why, "a query met damage");
            shards.into_iter().for_each(|shard| context.cluster.suspect(shard));
        }
        let (part, is_last) = part?;
        Ok(LeafResponse { versions, part, is_last: Some(is_last), usage: QueryUsage::default() })
    }

    /// Returns the caller, or the organization of the first object if the request has none.
    pub(super) fn who(&self) -> Holder {
        let of_object = || self.objects.first().map_or(Holder::ANONYMOUS, |of| Holder::new(of.key.org.0, Uuid::nil()));
        self.who.map_or_else(of_object, |(organization, credential)| Holder::new(organization, credential))
    }

    pub(super) fn bind(&self) -> Result<Bound, AskError> {
        let env = Env {
            now: self.now,
            tz_offset: self.tz_offset,
            text: None,
            audit_log: self.audit_log,
            inference_depth: self.inference_depth,
        };
        deep(|| Ok(bind(&parse(&self.query)?.query, &env)?))
    }

    pub(super) async fn sources(
        &self,
        context: &QueryContext,
    ) -> Result<(Vec<Source>, Vec<(ShardId, Xact)>), AskError> {
        let cluster = &context.cluster;
        let mut shards: Vec<ShardId> = self.objects.iter().map(|object| cluster.locate(&object.key)).collect();
        shards.sort_unstable();
        shards.dedup();
        let now = (context.clock)();
        let views = shards.iter().map(|shard| {
            let at = self.versions.iter().find(|(of, _)| of == shard).map(|(_, at)| *at);
            async move { Ok::<_, AskError>((*shard, at, Arc::new(cluster.view(*shard, at, now, false).await?))) }
        });
        let views = futures::future::try_join_all(views).await?;
        let mut sources = Vec::new();
        for object in &self.objects {
            let shard = cluster.locate(&object.key);
            let found = views.iter().find(|(of, ..)| *of == shard);
            let Some((_, at, view)) = found else { return Err(AskError::Internal("a shard without a view".into())) };
            if view.object(&object.key).is_some_and(|record| record.dropped) {
                return Err(AskError::Gone { object: object.key });
            }
            let constant = |(place, value): &(usize, String)| Some((*CONSTANTS.get(*place)?, value.clone()));
            sources.push(Source {
                object: object.key,
                number: object.number,
                constants: Arc::new(object.constants.iter().filter_map(constant).collect()),
                view: Arc::clone(view),
                at: at.unwrap_or_else(|| view.version()),
                blind: object.blind.clone(),
            });
        }
        let versions = views.iter().map(|(shard, at, view)| (*shard, at.unwrap_or_else(|| view.version())));
        Ok((sources, versions.collect()))
    }
}

/// Computes a part. Also returns whether it is the last one.
fn part(
    bound: &Bound,
    sources: &[Source],
    shared: &Shared,
    watch: &Watch,
    what: What,
) -> Result<(LeafPart, bool), AskError> {
    Ok(match what {
        What::Lowest => (LeafPart::Lowest(lowest(bound, sources, shared, watch)?), true),
        What::Part { limit, after, write, until, seed, bytes } => {
            let after = after.map(|(place, xact, object)| Position { place, xact, object, write });
            let part = run(bound, sources, shared, watch, &Ask { limit, bytes, after, until, seed })?;
            // Decoded columns may have narrower types, so only this node knows whether the bytes ended the part.
            let is_last = part.is_last(bound, limit);
            (LeafPart::Own(part), is_last)
        }
    })
}

fn pack(answer: Result<LeafResponse, AskError>) -> Bytes {
    let (head, part) = match answer {
        Ok(LeafResponse { versions, part: LeafPart::Lowest(lowest), is_last, usage }) => {
            (Ok(LeafHead { versions, lowest: Some(lowest), is_last, usage }), Bytes::new())
        }
        Ok(LeafResponse { versions, part: LeafPart::Part(part), is_last, usage }) => {
            (Ok(LeafHead { versions, lowest: None, is_last, usage }), part)
        }
        Ok(LeafResponse { part: LeafPart::Own(_), .. }) => {
            (Err(AskError::Internal("a part is not encoded".into())), Bytes::new())
        }
        Err(why) => (Err(why), Bytes::new()),
    };
    packed::pack(&head, &part)
}

impl LeaderMessage for LeafRequest {
    type Response = Result<LeafResponse, AskError>;
    const REPEATABLE: bool = true;

    fn service(&self) -> ServiceNames {
        LEAF
    }

    fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).expect("plain data encodes"))
    }

    fn decode(&self, response: Bytes) -> Option<Self::Response> {
        unpack(response)
    }
}

/// Decodes a response. Returns `None` if it is invalid.
fn unpack(answer: Bytes) -> Option<Result<LeafResponse, AskError>> {
    let (head, part): (Result<LeafHead, AskError>, Bytes) = packed::unpack(answer)?;
    Some(head.map(|LeafHead { versions, lowest, is_last, usage }| LeafResponse {
        versions,
        part: lowest.map_or(LeafPart::Part(part), LeafPart::Lowest),
        is_last,
        usage,
    }))
}

/// Service that other nodes call.
#[derive(Debug)]
pub(crate) struct LeafService {
    pub context: Arc<QueryContext>,
}

impl DelegatedService for LeafService {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let context = Arc::clone(&self.context);
        async move {
            let bad = |why: serde_json::Error| NoAnswer::Refused(format!("the request cannot be decoded: {why}"));
            let question: LeafRequest = serde_json::from_slice(&body).map_err(bad)?;
            if let Some(group) = missing(&context.cluster, &question) {
                return Err(context.cluster.not_leader(group));
            }
            let objects = question.objects.iter().map(|object| object.key).collect();
            context.cluster.check(principal, ObjectAccess::Read, objects).await?;
            Ok(pack(question.answer_there(&context).await))
        }
        .boxed()
    }
}

/// Returns a group without data on this node, if any.
pub(super) fn missing(cluster: &Cluster, question: &LeafRequest) -> Option<GroupId> {
    let groups = question.objects.iter().map(|object| GroupId::of_shard(cluster.locate(&object.key)));
    groups.into_iter().find(|group| !cluster.has_data(*group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_page_is_told_and_an_older_node_does_not_tell_it() {
        for is_last in [true, false] {
            let response = LeafResponse {
                versions: vec![(ShardId(3), Xact(7))],
                part: LeafPart::Part(Bytes::from_static(b"rows")),
                is_last: Some(is_last),
                usage: QueryUsage { rows_scanned: 5, memory_bytes: 6 },
            };
            let read = unpack(pack(Ok(response))).expect("it is decoded").expect("a response");
            assert_eq!((read.versions, read.is_last), (vec![(ShardId(3), Xact(7))], Some(is_last)));
            assert_eq!(read.usage, QueryUsage { rows_scanned: 5, memory_bytes: 6 });
        }
        let before = serde_json::json!({"Ok": {"versions": [[3, 7]], "lowest": null}});
        let read = unpack(packed::pack(&before, b"rows")).expect("it is decoded").expect("a response");
        assert_eq!((read.is_last, read.usage), (None, QueryUsage::default()));
    }

    /// A node without a stream sends no more rows at once than a page has.
    #[test]
    fn every_page_of_a_result_has_a_limit() {
        let limit = |limit, bytes| match What::part(limit, bytes, None, None, 4).with_rows_max(100) {
            What::Part { limit, .. } => limit,
            What::Lowest => None,
        };
        assert_eq!(
            (limit(None, Some(8)), limit(Some(7), Some(8)), limit(Some(700), Some(8))),
            (Some(100), Some(7), Some(100))
        );
        assert_eq!((limit(None, None), limit(Some(700), None)), (None, Some(700)), "a result without pages is whole");
    }

    #[test]
    fn a_question_about_rows_is_what_it_was_before_there_were_others() {
        let before = r#"{"Part":{"limit":7,"after":[1,2,3],"until":null,"seed":4}}"#;
        let read: What = serde_json::from_str(before).expect("it reads");
        let after = Position { place: 1, xact: 2, object: Some(3), write: None };
        assert_eq!(read, What::part(Some(7), None, Some(after), None, 4));
        assert_eq!(serde_json::to_string(&read).expect("it is written"), before);
        let of_writes = What::part(None, Some(8), Some(Position { write: Some(u64::MAX), ..after }), None, 4);
        let text = serde_json::to_string(&of_writes).expect("it is written");
        assert_eq!(serde_json::from_str::<What>(&text).expect("it reads"), of_writes);
    }
}
