//! Objects that own rows: writing to them in order, reading them back.
//!
//! One actor per object makes order; see `actor`. What decides is plain code: `line` (order, ids, request ids),
//! `book` (places), `waiting` (who gets the next place), `prepare`, `ingest`, `feedback`, `page`, `render`. Knows no HTTP
//! and does not ask who is calling.

mod actor;
mod audit;
mod book;
mod clock;
mod deliver;
mod error;
pub mod feedback;
mod fetch;
pub mod ingest;
mod line;
mod office;
mod outcomes;
mod page;
mod parents;
mod prepare;
mod readers;
mod render;
mod replay;
pub mod restore;
mod threads;
mod waiting;
mod work;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::Cluster;
use assay_node_auth::Asker;
use assay_node_limits::memory_share;
use assay_storage_model::command::{Command, Outcome, RequestId};
use assay_storage_model::event::Sent;
use assay_storage_model::{NotWritten, ObjectKey, OrgId, WriteOutcome, Xact};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

pub use crate::audit::AuditLog;
pub use crate::clock::{Clock, node_clock};
pub use crate::error::{ReadError, WriteError};
pub use crate::page::{PAGE_BYTES_MAX, TRACES_PER_PAGE_MAX};
pub use crate::replay::{PastOp, PastPage, PastPlace};
pub use crate::threads::OBJECTS_THREAD;

use crate::book::{BookLimits, Room};
use crate::deliver::{OutcomeForm, WriteService, deliver};
use crate::fetch::{FETCH, FetchDoor, PAST, ROWS, Reading};
use crate::office::{Counters, Office};
use crate::outcomes::{Acknowledged, as_sent, combine};
use crate::prepare::prepare_all;
use crate::readers::Readers;
use crate::threads::ActorThreads;
use crate::work::Work;

/// The pure steps of a write and of a page: for `tests/fuzz`, which throws at them what a client can send, and for
/// simulations, which are another shell around them.
pub mod pure {
    pub use crate::book::{Book, BookLimits, Held, Room, Wanted};
    pub use crate::fetch::{Asked, Start, asked, page};
    pub use crate::line::{Entered, Line};
    pub use crate::page::Cursor;
    pub use crate::prepare::{Prepared, prepare_all};
    pub use crate::waiting::{Granted, WriteQueue};
}

/// Rows that are asked for by their ids, all that one call gives.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// How long a write waits for its place where nobody says otherwise: about half of the time for which clients wait.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// A shutdown waits this long for the answers of writes that have their places.
const SHUTDOWN_WAIT_MAX: Duration = Duration::from_secs(40);

/// What the actors may hold at once; what finds no room waits in a queue (`waiting`). Memory for a write that has its place
/// is about twice its bytes: its rows, then its command.
#[derive(Clone, Debug)]
pub struct ObjectLimits {
    /// Threads that actors run on. One orders some ten thousand writes a second.
    pub threads: usize,
    /// Writes of one object that were taken in and not answered, and their bytes. Half of its shard's, so that one object
    /// cannot keep the others of its shard out.
    pub object_writes: usize,
    pub object_bytes: usize,
    /// Writes of one shard and their bytes: what stands before a write that comes new. It is more than two entries, so
    /// that a shard is never idle while writes wait, and less than its committer takes.
    pub shard_writes: usize,
    pub shard_bytes: usize,
    /// Writes of the node and their bytes.
    pub node_writes: usize,
    pub node_bytes: usize,
    /// Writes on the way to one other node and their bytes: half of what a connection to it carries at once, so that
    /// writes that wait there leave room for what consensus sends.
    pub peer_writes: usize,
    pub peer_bytes: usize,
    /// Objects with an actor: a few kilobytes each.
    pub objects: usize,
    /// An actor that nothing came to for this long is put away.
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

/// Bytes of all writes that have a place: a share of the machine's memory.
fn node_bytes_of_memory() -> usize {
    usize::try_from(memory_share(64, 32 << 20, 256 << 20)).unwrap_or(32 << 20)
}

impl ObjectLimits {
    /// What may have a place on this node.
    pub fn book(&self) -> BookLimits {
        let room = |writes, bytes| Room { writes, bytes };
        BookLimits {
            object: room(self.object_writes, self.object_bytes),
            lane: room(self.shard_writes, self.shard_bytes),
            node: room(self.node_writes, self.node_bytes),
            objects: self.objects,
        }
    }

    /// What may be on the way to other nodes.
    fn outbound(&self) -> BookLimits {
        let peer = Room { writes: self.peer_writes, bytes: self.peer_bytes };
        let all = Room { writes: usize::MAX, bytes: usize::MAX };
        BookLimits { object: peer, lane: peer, node: all, objects: usize::MAX }
    }
}

/// On whose behalf writes are made, and until when they wait for their places.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub until: Instant,
    /// The record of the credential that was shown; nil for what the node writes by itself.
    pub credential: Uuid,
}

impl Patience {
    /// For what the node writes by itself.
    pub fn usual() -> Patience {
        Patience { until: Instant::now() + WAIT_MAX, credential: Uuid::nil() }
    }
}

/// One client request to one object.
#[derive(Clone, Debug)]
pub struct ObjectWrite {
    pub object: ObjectKey,
    /// As the client sent them.
    pub rows: Vec<Sent>,
    /// The request's key and content as hashes, where the client sent an idempotency key.
    pub request: Option<RequestId>,
}

/// What became of one [`ObjectWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// One per row sent, in their order.
    pub row_ids: Vec<String>,
    pub xact: Xact,
    /// The same request was written before; nothing changed.
    pub duplicate: bool,
}

/// An object and the ids that its rows are shown with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowHome {
    pub object: ObjectKey,
    pub org: OrgId,
    pub project_id: Uuid,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Traces.
    pub limit: Option<u64>,
    /// From the page before.
    pub cursor: Option<String>,
    pub version: Option<Xact>,
    /// With `max_root_span_id` the deprecated cursor.
    pub max_xact_id: Option<Xact>,
    pub max_root_span_id: Option<String>,
    /// What is on the node that was asked will do, without asking who leads: the answer names its version.
    pub stale: bool,
}

/// Rows by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsRequest {
    pub ids: Vec<String>,
    pub version: Option<Xact>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPage {
    /// One JSON object each.
    pub events: Vec<Bytes>,
    /// For the next page; none at the end.
    pub cursor: Option<String>,
    /// What was read at.
    pub version: Xact,
}

/// For metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectCounts {
    /// Actors there are.
    pub active: u64,
    /// Writes taken in and not yet answered, and their bytes.
    pub waiting_writes: u64,
    pub waiting_bytes: u64,
    /// Calls that wait for the places of their writes, and the bytes of these.
    pub queued_calls: u64,
    pub queued_bytes: u64,
    /// Since the start: calls that had to wait, and for how long in all.
    pub waits: u64,
    pub wait_seconds: f64,
    /// Since the start: writes and rows written, requests known before, refusals for want of a place, unknown outcomes.
    pub writes: u64,
    pub rows: u64,
    pub duplicates: u64,
    pub busy: u64,
    pub unknown: u64,
    /// Since the start: actors made and put away, pages and rows read.
    pub started: u64,
    pub put_away: u64,
    pub pages: u64,
    pub rows_read: u64,
}

/// The handle that everyone holds.
#[derive(Clone)]
pub struct Objects {
    shared: Arc<Shared>,
    /// On whose behalf other nodes are asked, as [`Asker`] writes it; they refuse nobody's questions.
    asker: Bytes,
}

struct Shared {
    office: Arc<Office>,
    threads: Arc<ActorThreads>,
    readers: Arc<Readers>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Objects {
    /// Starts the threads of the actors. May be called from any runtime or from none.
    pub fn start(cluster: Arc<Cluster>, limits: ObjectLimits, clock: Clock) -> Objects {
        let threads = Arc::new(ActorThreads::start(limits.threads));
        let office = Arc::new(Office::new(Arc::clone(&cluster), &limits, clock, threads.spawner()));
        let readers = Arc::new(Readers::start());
        for form in OutcomeForm::ALL {
            let service = WriteService { office: Arc::clone(&office), form };
            cluster.serve_on_behalf(form.service(), Arc::new(service));
        }
        for door in [FETCH, ROWS, PAST] {
            let door = FetchDoor { door, office: Arc::clone(&office), readers: Arc::clone(&readers) };
            cluster.serve_on_behalf(door.door, Arc::new(door));
        }
        Objects { shared: Arc::new(Shared { office, threads, readers }), asker: Bytes::new() }
    }

    /// The same objects, asked on somebody's behalf: other nodes check rights once more where the rows are.
    pub fn on_behalf_of(&self, asker: &Asker) -> Objects {
        Objects { shared: Arc::clone(&self.shared), asker: asker.to_bytes().into() }
    }

    /// All or nothing before the first send: every row of every write is prepared, and every write has its place on this
    /// node first. It waits for these until the deadline; then, and only then, it is busy.
    ///
    /// A caller that goes away while its writes wait gives their turn up, and nothing of them is written.
    pub async fn write(&self, mut writes: Vec<ObjectWrite>, patience: Patience) -> Result<Vec<Written>, WriteError> {
        let office = &self.shared.office;
        let org = writes.first().map(|write| write.object.org);
        let gone = writes.iter().find(|write| is_gone(office, &write.object));
        if let Some(ObjectWrite { object, .. }) = gone {
            return Err(WriteError::Gone { object: *object });
        }
        for write in &mut writes {
            self.adopt(write).await?;
        }
        let prepared = prepare_all(writes, (office.clock)()).await?;
        let (mut works, mut sent_to, mut indexes, mut row_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (place, (write, ids)) in prepared.into_iter().enumerate() {
            sent_to.push((place, write.object));
            indexes.push(write.rows.iter().map(|row| row.index).collect::<Vec<_>>());
            row_ids.push(ids);
            works.push(Work::Prepared(write));
        }
        let delivered = deliver(office, works, patience, &self.asker).await;
        let outcomes = delivered.map_err(|why| self.late(org, why.into()))?;
        let outcomes = outcomes.into_iter().zip(&indexes).map(|(outcome, indexes)| as_sent(outcome, indexes));
        let done = together(sent_to, outcomes.collect(), &indexes).map_err(|why| self.late(org, why))?;
        let all = row_ids.into_iter().zip(done);
        Ok(all.map(|(row_ids, Acknowledged { xact, duplicate })| Written { row_ids, xact, duplicate }).collect())
    }

    /// Gives rows that name their parent in the deprecated way the place that this parent has in its trace.
    async fn adopt(&self, write: &mut ObjectWrite) -> Result<(), WriteError> {
        let ids = parents::unknown_parents(&write.rows);
        let stored = if ids.is_empty() {
            Vec::new()
        } else {
            // Only ids are read of these rows, whatever project they are in.
            let home = RowHome { object: write.object, org: write.object.org, project_id: Uuid::nil() };
            self.rows(&home, ids, None).await.map_err(|why| WriteError::parents_unread(write.object, why))?
        };
        parents::adopt(&mut write.rows, &stored);
        Ok(())
    }

    /// One page of whole traces, newest first; sees everything acknowledged before the call.
    pub async fn fetch(&self, home: &RowHome, request: FetchRequest) -> Result<FetchPage, ReadError> {
        let Shared { office, readers, .. } = &*self.shared;
        let page = fetch::fetch(office, readers, *home, Reading::Page(request), &self.asker).await?;
        Counters::add(&office.counters.pages, 1);
        Counters::add(&office.counters.rows_read, page.events.len());
        Ok(page)
    }

    /// The rows of these ids, those that there are, in the order of the ids; sees everything acknowledged before the call.
    pub async fn rows(&self, home: &RowHome, ids: Vec<String>, version: Option<Xact>) -> Result<Vec<Bytes>, ReadError> {
        let Shared { office, readers, .. } = &*self.shared;
        let (mut rows, mut bytes, mut request) = (Vec::new(), 0, RowsRequest { ids, version });
        loop {
            let page = fetch::fetch(office, readers, *home, Reading::Rows(request.clone()), &self.asker).await?;
            bytes += page.events.iter().map(Bytes::len).sum::<usize>();
            Counters::add(&office.counters.rows_read, page.events.len());
            rows.extend(page.events);
            let Some(next) = page.cursor.and_then(|place| place.parse().ok()) else { return Ok(rows) };
            if bytes > ROWS_BYTES_MAX {
                let why = format!("the rows have more than {ROWS_BYTES_MAX} bytes: ask for fewer of them");
                return Err(ReadError::BadRequest(why));
            }
            // What comes later is of the same version, as if all had been read at once.
            request = RowsRequest { ids: request.ids.split_off(next), version: Some(page.version) };
        }
    }

    /// All of its rows go, for good, and their bytes leave the disk; nothing is written to it any more.
    pub async fn drop_object(&self, object: ObjectKey) -> Result<(), WriteError> {
        let cluster = &self.shared.office.cluster;
        let command = Bytes::from(Command::DropObject { object }.encode());
        match cluster.write(cluster.locate(&object), command).await {
            Ok(Outcome::Done { .. }) => Ok(()),
            Ok(other) => Err(WriteError::unavailable(format!("dropping {object}: the shard answered {other:?}"))),
            Err(why) => Err(WriteError::unavailable(format!("dropping {object}: {why}"))),
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        self.shared.office.counts()
    }

    /// Takes nothing more, answers what was taken, ends the threads.
    pub async fn shutdown(&self) {
        self.shared.office.close();
        if tokio::time::timeout(SHUTDOWN_WAIT_MAX, self.shared.office.emptied()).await.is_err() {
            tracing::warn!(counts = ?self.counts(), "writes were not answered in time; they are unknown to their writers");
        }
        self.shared.readers.close();
        let threads = Arc::clone(&self.shared.threads);
        let ended = tokio::task::spawn_blocking(move || {
            threads.stop();
            threads.join();
        });
        if let Err(why) = ended.await {
            tracing::error!(%why, "the threads of the actors did not end well");
        }
    }

    /// Counts a refusal whose wait is over, and says when to come again.
    fn late(&self, org: Option<OrgId>, error: WriteError) -> WriteError {
        let WriteError::NotWritten { why: NotWritten::Busy(why), .. } = error else { return error };
        let office = &self.shared.office;
        Counters::add(&office.counters.busy, 1);
        office.refusals.note(setting_of(&why), org.map_or(Uuid::nil(), |org| org.0));
        WriteError::NotWritten { why: NotWritten::Busy(why), retry_after: office.retry_after() }
    }
}

/// The setting that a refusal is about, as the log and metrics name it.
fn setting_of(why: &str) -> &'static str {
    match why {
        book::OBJECT_FULL => "objects.object_bytes_max",
        book::NODE_FULL => "objects.node_bytes_max",
        book::OBJECTS_FULL => "objects.active_max",
        _ => "objects of one shard",
    }
}

/// What all came to, in their order. Where one is refused, a write without rows was not written either: it says only
/// what is there.
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

/// Whether this node knows that the object was deleted; a replica that lags has the shard's leader say so later.
fn is_gone(office: &Office, object: &ObjectKey) -> bool {
    let shard = office.cluster.shard(office.cluster.locate(object));
    shard.is_some_and(|shard| shard.object(object).is_some_and(|record| record.dropped))
}
