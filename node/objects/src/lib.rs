//! Objects that own rows: ordered writes (`write_path`), reads (`read_path`), audit entries and the history of writes.
//!
//! One actor per object orders its writes. Decisions are pure code, separate from actors and I/O; see [`pure`]. The
//! crate depends on no HTTP library and does not authenticate callers.

mod audit;
mod clock;
mod error;
pub mod feedback;
pub mod ingest;
mod read_path;
mod replay;
pub mod restore;
mod write_path;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::Cluster;
use assay_node_auth::Asker;
use assay_node_limits::memory_share;
use assay_node_online_scoring::ControlSender;
use assay_node_usage::UsageMeter;
use assay_storage_model::command::{Command, Outcome, RequestId};
use assay_storage_model::event::SentItem;
use assay_storage_model::{NotWritten, ObjectKey, OrgId, WriteOutcome, Xact};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

pub use crate::audit::AuditLog;
pub use crate::clock::{Clock, node_clock};
pub use crate::error::{ReadError, WriteError};
pub use crate::read_path::page::{PAGE_BYTES_MAX, TRACES_PER_PAGE_MAX};
pub use crate::replay::{HistoryOp, HistoryPage, HistoryPosition};
pub use crate::write_path::actor_threads::OBJECTS_THREAD;

use crate::read_path::fetch;
use crate::read_path::fetch::{FETCH, PAST, ROWS, ReadService, Reading};
use crate::read_path::readers::Readers;
use crate::write_path::actor_threads::ActorThreads;
use crate::write_path::controlled::ControlledWrite;
use crate::write_path::deliver::{OutcomeForm, WriteService, deliver};
use crate::write_path::outcomes::{Acknowledged, as_sent, combine};
use crate::write_path::parents;
use crate::write_path::prepare::prepare_all;
use crate::write_path::registry::{Counters, ObjectRegistry};
use crate::write_path::reservations::{self, Capacity, ReservationLimits};
use crate::write_path::scoring::{RowControl, take_controls};
use crate::write_path::work::Work;

/// Pure steps of a write and of a page, for fuzz tests and simulations.
pub mod pure {
    pub use crate::read_path::fetch::{PageQuery, Start, page, page_query};
    pub use crate::read_path::page::Cursor;
    pub use crate::write_path::prepare::{Prepared, prepare_all};
    pub use crate::write_path::reservation_queue::{Granted, ReservationQueue};
    pub use crate::write_path::reservations::{
        Capacity, ReservationLimits, ReservationRequest, Reservations, Reserved,
    };
    pub use crate::write_path::write_queue::{Enqueued, WriteQueue};
}

/// Upper bound of the bytes of rows that one request by ids returns.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// Default time that a write waits for its reservation: about half of a client's timeout.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// Time that a shutdown waits for the outcomes of writes that have a reservation.
const SHUTDOWN_WAIT_MAX: Duration = Duration::from_secs(40);

/// Limits of the writes that actors hold at once. Further writes wait in the reservation queue.
///
/// A write with a reservation uses about twice its size in memory: its rows, then its command.
#[derive(Clone, Debug)]
pub struct ObjectLimits {
    /// Number of actor threads. One thread orders some ten thousand writes per second.
    pub threads: usize,
    /// Upper bound of the unanswered writes of one object, and of their bytes. It is below the limit of a shard, so
    /// that one object cannot block others.
    pub object_writes: usize,
    pub object_bytes: usize,
    /// Upper bound of the unanswered writes of one shard, and of their bytes. It exceeds two log entries, so that a
    /// shard is never idle while writes wait. It is below the capacity of the committer.
    pub shard_writes: usize,
    pub shard_bytes: usize,
    /// Upper bound of the unanswered writes of the node, and of their bytes.
    pub node_writes: usize,
    pub node_bytes: usize,
    /// Upper bound of the writes on the way to one other node, and of their bytes. Half of a connection's capacity
    /// remains for consensus messages.
    pub peer_writes: usize,
    pub peer_bytes: usize,
    /// Upper bound of the objects with an actor. An actor takes a few kilobytes.
    pub objects: usize,
    /// Time without a write after which an actor is stopped.
    pub idle: Duration,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        ObjectLimits {
            threads: 1,
            object_writes: 1024,
            object_bytes: 4 << 20,
            shard_writes: 4096,
            shard_bytes: 8 << 20,
            node_writes: 16_384,
            node_bytes: node_bytes_of_memory(),
            peer_writes: 224,
            peer_bytes: 48 << 20,
            objects: 16_384,
            idle: Duration::from_secs(60),
        }
    }
}

/// Returns the default bound of the bytes of all reserved writes, which is a share of the machine's memory.
fn node_bytes_of_memory() -> usize {
    usize::try_from(memory_share(64, 32 << 20, 256 << 20)).unwrap_or(32 << 20)
}

impl ObjectLimits {
    /// Returns the limits of the reservations on this node.
    pub fn reservation_limits(&self) -> ReservationLimits {
        let capacity = |writes, bytes| Capacity { writes, bytes };
        ReservationLimits {
            object: capacity(self.object_writes, self.object_bytes),
            lane: capacity(self.shard_writes, self.shard_bytes),
            node: capacity(self.node_writes, self.node_bytes),
            objects: self.objects,
        }
    }

    /// Returns the limits of the writes on the way to other nodes.
    fn outbound(&self) -> ReservationLimits {
        let peer = Capacity { writes: self.peer_writes, bytes: self.peer_bytes };
        let all = Capacity { writes: usize::MAX, bytes: usize::MAX };
        ReservationLimits { object: peer, lane: peer, node: all, objects: usize::MAX }
    }
}

/// Deadline for a reservation, and the credential that the wait is accounted to.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub until: Instant,
    /// Record id of the caller's credential. It is nil for writes of the node itself.
    pub credential: Uuid,
}

impl Patience {
    /// Returns the default patience for writes of the node itself.
    pub fn usual() -> Patience {
        Patience { until: Instant::now() + WAIT_MAX, credential: Uuid::nil() }
    }
}

/// Client request that writes to one object.
#[derive(Clone, Debug)]
pub struct ObjectWrite {
    pub object: ObjectKey,
    /// Rows as the client sent them.
    pub rows: Vec<SentItem>,
    /// Hashes of the idempotency key and of the content, if the client sent a key.
    pub request: Option<RequestId>,
}

/// Result of one [`ObjectWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Id of each row, in the order of the rows.
    pub row_ids: Vec<String>,
    pub xact: Xact,
    /// Whether the same request was written before, so that nothing changed.
    pub duplicate: bool,
}

/// Object with the ids of its organization and project, which its rows contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowHome {
    pub object: ObjectKey,
    pub org: OrgId,
    pub project_id: Uuid,
}

/// Request for a page of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Upper bound of the number of traces.
    pub limit: Option<u64>,
    /// Cursor of the previous page.
    pub cursor: Option<String>,
    pub version: Option<Xact>,
    /// Deprecated cursor, used together with `max_root_span_id`.
    pub max_xact_id: Option<Xact>,
    pub max_root_span_id: Option<String>,
    /// Whether the replica of the receiving node may serve the page without asking the leader. The page reports its
    /// version.
    pub stale: bool,
}

/// Request for rows by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsRequest {
    pub ids: Vec<String>,
    pub version: Option<Xact>,
}

/// Page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPage {
    /// Rows as JSON objects.
    pub events: Vec<Bytes>,
    /// Cursor of the next page. The last page has none.
    pub cursor: Option<String>,
    /// Version at which the page was read.
    pub version: Xact,
}

/// Counts for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectCounts {
    /// Number of running actors.
    pub active: u64,
    /// Number of unanswered writes with a reservation, and their bytes.
    pub waiting_writes: u64,
    pub waiting_bytes: u64,
    /// Number of calls that wait for their reservations, and the bytes of their writes.
    pub queued_calls: u64,
    pub queued_bytes: u64,
    /// Number of calls that had to wait since the start, and the sum of their waits.
    pub waits: u64,
    pub wait_seconds: f64,
    /// Counts since the start: writes, rows, repeated requests, busy refusals, unknown outcomes.
    pub writes: u64,
    pub rows: u64,
    pub duplicates: u64,
    pub busy: u64,
    pub unknown: u64,
    /// Counts since the start: actors started and stopped, pages and rows read.
    pub started: u64,
    pub put_away: u64,
    pub pages: u64,
    pub rows_read: u64,
}

/// Handle of the objects of a node.
#[derive(Clone)]
pub struct Objects {
    shared: Arc<Shared>,
    /// Encoded [`Asker`] of requests to other nodes, which check its rights. It is empty for a handle without a
    /// principal.
    asker: Bytes,
}

struct Shared {
    registry: Arc<ObjectRegistry>,
    threads: Arc<ActorThreads>,
    readers: Arc<Readers>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Objects {
    /// Starts the actor threads and the services for other nodes. It may be called inside or outside of a runtime.
    pub fn start(cluster: Arc<Cluster>, limits: ObjectLimits, clock: Clock) -> Objects {
        let threads = Arc::new(ActorThreads::start(limits.threads));
        let registry = Arc::new(ObjectRegistry::new(Arc::clone(&cluster), &limits, clock, threads.spawner()));
        let readers = Arc::new(Readers::start());
        for form in OutcomeForm::ALL {
            let service = WriteService { registry: Arc::clone(&registry), form };
            cluster.serve_on_behalf(form.service(), Arc::new(service));
        }
        for service in [FETCH, ROWS, PAST] {
            let service = ReadService { service, registry: Arc::clone(&registry), readers: Arc::clone(&readers) };
            cluster.serve_on_behalf(service.service, Arc::new(service));
        }
        Objects { shared: Arc::new(Shared { registry, threads, readers }), asker: Bytes::new() }
    }

    /// Returns a handle whose requests to other nodes name this principal. The nodes that hold the rows check its
    /// rights again.
    pub fn on_behalf_of(&self, asker: &Asker) -> Objects {
        Objects { shared: Arc::clone(&self.shared), asker: asker.to_bytes().into() }
    }

    /// Writes rows to objects.
    ///
    /// Prepares every row and reserves capacity for every write before it sends the first one. It waits for the
    /// reservations until the deadline, and only then fails as busy.
    ///
    /// Dropping the future while it waits leaves the queue, and nothing is written.
    pub async fn write(&self, writes: Vec<ObjectWrite>, patience: Patience) -> Result<Vec<Written>, WriteError> {
        let began = Instant::now();
        let organization = writes.first().map_or(Uuid::nil(), |write| write.object.org.0);
        let bytes = writes.iter().flat_map(|write| &write.rows).map(|row| row.bytes_about() as u64).sum();
        let written = self.write_all(writes, patience).await?;
        let rows = written.iter().filter(|one| !one.duplicate).map(|one| one.row_ids.len() as u64).sum();
        let who = (organization, patience.credential);
        self.shared.registry.meters.acknowledged(began.elapsed(), who, (rows, bytes));
        Ok(written)
    }

    async fn write_all(&self, mut writes: Vec<ObjectWrite>, patience: Patience) -> Result<Vec<Written>, WriteError> {
        let registry = &self.shared.registry;
        let org = writes.first().map(|write| write.object.org);
        let gone = writes.iter().find(|write| is_gone(registry, &write.object));
        if let Some(ObjectWrite { object, .. }) = gone {
            return Err(WriteError::Gone { object: *object });
        }
        for write in &mut writes {
            self.adopt(write).await?;
        }
        let client = ControlSender::Client { may_update: true };
        let user = || match Asker::from_bytes(&self.asker) {
            Some(Asker::User { user, .. }) => Some(user),
            Some(Asker::Job(_)) | None => None,
        };
        let controls = take_all_controls(&mut writes, (client, &user))?;
        if controls.iter().any(|controls| !controls.is_empty()) {
            let each = writes.into_iter().zip(controls);
            let controlled = each.map(|(write, controls)| ControlledWrite { write, controls }).collect();
            let stale = || WriteError::unavailable("a write of a client counts as a result of scoring".into());
            return self.write_controlled(controlled, client, patience).await?.ok_or_else(stale);
        }
        let prepared = prepare_all(writes, (registry.clock)()).await?;
        let (mut works, mut sent_to, mut indexes, mut row_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (place, (write, ids)) in prepared.into_iter().enumerate() {
            sent_to.push((place, write.object));
            indexes.push(write.rows.iter().map(|row| row.index).collect::<Vec<_>>());
            row_ids.push(ids);
            works.push(Work::Prepared(write));
        }
        let delivered = deliver(registry, works, patience, &self.asker).await;
        let outcomes = delivered.map_err(|why| self.late(org, why.into()))?;
        let outcomes = outcomes.into_iter().zip(&indexes).map(|(outcome, indexes)| as_sent(outcome, indexes));
        let done = together(sent_to, outcomes.collect(), &indexes).map_err(|why| self.late(org, why))?;
        let all = row_ids.into_iter().zip(done);
        Ok(all.map(|(row_ids, Acknowledged { xact, duplicate })| Written { row_ids, xact, duplicate }).collect())
    }

    /// Writes rows of online scoring, whose controls need not be those of clients.
    ///
    /// Returns `None` if the row that the write is about does not wait for it. Then nothing is written.
    pub async fn write_scoring(
        &self,
        mut write: ObjectWrite,
        patience: Patience,
    ) -> Result<Option<Written>, WriteError> {
        let controls = take_controls(0, &mut write, (ControlSender::Executor, &|| None))?;
        let writes = vec![ControlledWrite { write, controls }];
        let written = self.write_controlled(writes, ControlSender::Executor, patience).await?;
        Ok(written.and_then(|mut written| written.pop()))
    }

    /// Resolves `_parent_id` of rows to the span and trace of the parent.
    async fn adopt(&self, write: &mut ObjectWrite) -> Result<(), WriteError> {
        let ids = parents::unknown_parents(&write.rows);
        let stored = if ids.is_empty() {
            Vec::new()
        } else {
            // Only the ids of these rows are used, so the project does not matter.
            let home = RowHome { object: write.object, org: write.object.org, project_id: Uuid::nil() };
            self.rows(&home, ids, None).await.map_err(|why| WriteError::rows_unread(write.object, why))?
        };
        parents::adopt(&mut write.rows, &stored);
        Ok(())
    }

    /// Returns one page of whole traces, newest first. The page includes every write acknowledged before the call.
    pub async fn fetch(&self, home: &RowHome, request: FetchRequest) -> Result<FetchPage, ReadError> {
        let Shared { registry, readers, .. } = &*self.shared;
        let page = fetch::fetch(registry, readers, *home, Reading::Page(request), &self.asker).await?;
        Counters::add(&registry.counters.pages, 1);
        Counters::add(&registry.counters.rows_read, page.events.len());
        Ok(page)
    }

    /// Returns the existing rows of these ids, in the order of the ids. Every write acknowledged before the call is
    /// visible.
    pub async fn rows(&self, home: &RowHome, ids: Vec<String>, version: Option<Xact>) -> Result<Vec<Bytes>, ReadError> {
        let Shared { registry, readers, .. } = &*self.shared;
        let (mut rows, mut bytes, mut request) = (Vec::new(), 0, RowsRequest { ids, version });
        loop {
            let page = fetch::fetch(registry, readers, *home, Reading::Rows(request.clone()), &self.asker).await?;
            bytes += page.events.iter().map(Bytes::len).sum::<usize>();
            Counters::add(&registry.counters.rows_read, page.events.len());
            rows.extend(page.events);
            let Some(next) = page.cursor.and_then(|place| place.parse().ok()) else { return Ok(rows) };
            if bytes > ROWS_BYTES_MAX {
                let why = format!("the rows have more than {ROWS_BYTES_MAX} bytes: request fewer of them");
                return Err(ReadError::BadRequest(why));
            }
            // All pages are read at one version, as if in a single read.
            request = RowsRequest { ids: request.ids.split_off(next), version: Some(page.version) };
        }
    }

    /// Deletes an object and all of its rows permanently. Later writes to it are refused.
    pub async fn drop_object(&self, object: ObjectKey) -> Result<(), WriteError> {
        let cluster = &self.shared.registry.cluster;
        let command = Bytes::from(Command::DropObject { object }.encode());
        match cluster.write(cluster.locate(&object), command).await {
            Ok(Outcome::Done { .. }) => Ok(()),
            Ok(other) => Err(WriteError::unavailable(format!("cannot drop {object}: unexpected outcome {other:?}"))),
            Err(why) => Err(WriteError::unavailable(format!("cannot drop {object}: {why}"))),
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        self.shared.registry.counts()
    }

    /// Counts the rows of later writes as usage of their credentials.
    pub fn count_usage(&self, usage: Arc<UsageMeter>) {
        // The program sets it once at its start.
        drop(self.shared.registry.meters.usage.set(usage));
    }

    /// Returns the metrics of writes in the text format of Prometheus.
    pub fn metrics_text(&self) -> String {
        self.shared.registry.meters.text()
    }

    /// Refuses new writes, waits for the outcomes of reserved writes, and stops the threads.
    pub async fn shutdown(&self) {
        self.shared.registry.close();
        if tokio::time::timeout(SHUTDOWN_WAIT_MAX, self.shared.registry.emptied()).await.is_err() {
            tracing::warn!(counts = ?self.counts(), "writes had no outcome in time; their writers do not know it");
        }
        self.shared.readers.close();
        let threads = Arc::clone(&self.shared.threads);
        let ended = tokio::task::spawn_blocking(move || {
            threads.stop();
            threads.join();
        });
        if let Err(why) = ended.await {
            tracing::error!(%why, "the actors' threads ended with an error");
        }
    }

    /// Counts a busy refusal, and sets the time after which a retry is worthwhile.
    fn late(&self, org: Option<OrgId>, error: WriteError) -> WriteError {
        let WriteError::NotWritten { why: NotWritten::Busy(why), .. } = error else { return error };
        let registry = &self.shared.registry;
        Counters::add(&registry.counters.busy, 1);
        let org = org.map_or(Uuid::nil(), |org| org.0);
        registry.meters.refused(org);
        registry.refusals.note(setting_of(&why), org);
        WriteError::NotWritten { why: NotWritten::Busy(why), retry_after: registry.retry_after() }
    }
}

/// Returns the setting that caused a refusal, for the log and metrics.
fn setting_of(why: &str) -> &'static str {
    match why {
        reservations::OBJECT_FULL => "objects.object_bytes_max",
        reservations::NODE_FULL => "objects.node_bytes_max",
        reservations::OBJECTS_FULL => "objects.active_max",
        _ => "objects of one shard",
    }
}

/// Combines the outcomes of a call in the order of its writes. A write without rows does not count as written if
/// another one is refused.
fn together(
    sent_to: Vec<(usize, ObjectKey)>,
    outcomes: Vec<WriteOutcome>,
    indexes: &[Vec<usize>],
) -> Result<Vec<Acknowledged>, WriteError> {
    let has_rows = |place: usize| indexes.get(place).is_some_and(|rows| !rows.is_empty());
    let each = sent_to.into_iter().zip(outcomes);
    let (with_rows, empty): (Vec<_>, Vec<_>) = each.partition(|((place, _), _)| has_rows(*place));
    let combined = |each: Vec<((usize, ObjectKey), WriteOutcome)>| {
        let (sent_to, outcomes): (Vec<_>, Vec<_>) = each.into_iter().unzip();
        let done = combine(&sent_to, outcomes)?;
        let each = sent_to.into_iter().zip(done).map(|((place, _), done)| (place, done));
        Ok::<Vec<_>, WriteError>(each.collect())
    };
    let mut done = combined(with_rows)?;
    done.extend(combined(empty)?);
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

/// Takes the controls of online scoring out of the writes of a call.
fn take_all_controls(
    writes: &mut [ObjectWrite],
    sender: (ControlSender, &dyn Fn() -> Option<Uuid>),
) -> Result<Vec<Vec<RowControl>>, WriteError> {
    writes.iter_mut().enumerate().map(|(place, write)| take_controls(place, write, sender)).collect()
}

/// Returns whether the local replica knows that the object is deleted. The leader of the shard makes the final
/// decision.
fn is_gone(registry: &ObjectRegistry, object: &ObjectKey) -> bool {
    let shard = registry.cluster.shard(registry.cluster.locate(object));
    shard.is_some_and(|shard| shard.object(object).is_some_and(|record| record.dropped))
}
