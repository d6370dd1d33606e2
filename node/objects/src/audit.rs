//! Audit log of an organization: a hash chain of changes to access, stored as rows of its own object. See
//! `auth::chain`.
//!
//! Entries that wait at the same time are written together, as rows of one write. The number of the first entry is the
//! idempotency key of the write. If two nodes write concurrently, one of them learns that the key was used. It then
//! reads the new last entry and appends after it. Idempotency keys live much longer than the cached last entry.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::chain::{FIRST_HASH, HASH, Ledger, SEQUENCE, linked};
use assay_node_auth::{Asker, Job};
use assay_storage_model::command::RequestId;
use assay_storage_model::event::{SentItem, format_micros};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::{Instant, sleep};

use crate::{FetchRequest, ObjectWrite, Objects, Patience, RowHome, WriteError};

/// Upper bound of the attempts against concurrent writers. Each failed attempt means that another writer succeeded.
const ATTEMPTS_MAX: usize = 64;
/// Upper bound of the entries of one write, and of their bytes. A larger entry is written alone.
const TOGETHER_MAX: usize = 256;
const TOGETHER_BYTES_MAX: usize = 256 << 10;
/// Upper bound of the pause between two writes of one node, which lets other nodes write. The pause is as long as the
/// previous write.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Time for which the last entry is cached.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Number of digits in an entry's id, so that ids sort by their numbers.
const DIGITS: usize = 12;

/// Handle of the audit logs of all organizations.
#[derive(Clone, Debug)]
pub struct AuditLog {
    objects: Objects,
    queues: Arc<Mutex<HashMap<OrgId, Arc<AuditQueue>>>>,
}

/// Waiting entries of one organization. One task at a time writes them for all callers.
#[derive(Debug, Default)]
struct AuditQueue {
    waiting: Mutex<VecDeque<PendingEntry>>,
    head: Arc<tokio::sync::Mutex<Option<LastEntry>>>,
}

/// Waiting entry with the reply to its caller.
#[derive(Debug)]
struct PendingEntry {
    entry: Map<String, Value>,
    bytes: usize,
    added: EntryReply,
}

#[derive(Debug)]
struct EntryReply(oneshot::Sender<Result<(), String>>);

#[derive(Clone, Debug)]
enum NotAdded {
    /// The content of an entry was refused.
    Refused(String),
    Failed(String),
}

/// Last entry of a log.
#[derive(Clone, Debug)]
struct LastEntry {
    sequence: u64,
    hash: String,
    seen: Instant,
}

impl AuditLog {
    pub fn new(objects: Objects) -> AuditLog {
        AuditLog { objects: objects.on_behalf_of(&Asker::Job(Job::Audit)), queues: Arc::default() }
    }

    /// Returns the object with the entries of an organization.
    pub fn home(org: OrgId) -> RowHome {
        RowHome { object: ObjectKey::new(org, ObjectKind::AuditLog, org.0), org, project_id: org.0 }
    }

    async fn add(&self, org: OrgId, entry: Map<String, Value>) -> Result<(), String> {
        let queue = Arc::clone(self.queues.lock().entry(org).or_default());
        let (reply, mut answer) = oneshot::channel();
        let bytes = bytes_about(&entry);
        queue.waiting.lock().push_back(PendingEntry { entry, bytes, added: EntryReply(reply) });
        let head = Arc::clone(&queue.head).lock_owned();
        let head = tokio::select! {
            biased;
            answer = &mut answer => return answer.map_err(cut_short)?,
            head = head => head,
        };
        // A separate task writes the entries, because this caller may be dropped while others wait.
        tokio::spawn(self.clone().add_waiting(org, queue, head));
        answer.await.map_err(cut_short)?
    }

    /// Writes waiting entries until none is left.
    async fn add_waiting(self, org: OrgId, queue: Arc<AuditQueue>, mut head: OwnedMutexGuard<Option<LastEntry>>) {
        loop {
            let batch = queue.next();
            if batch.is_empty() {
                return;
            }
            let (entries, waiting): (Vec<_>, Vec<_>) = batch.into_iter().map(|one| (one.entry, one.added)).unzip();
            let began = Instant::now();
            match self.add_together(org, &entries, &mut head).await {
                // One entry is invalid. The others are written without it.
                Err(NotAdded::Refused(_)) if entries.len() > 1 => {
                    for (entry, one) in entries.iter().zip(waiting) {
                        one.tell(self.add_together(org, std::slice::from_ref(entry), &mut head).await);
                    }
                }
                added => waiting.into_iter().for_each(|one| one.tell(added.clone())),
            }
            let took = began.elapsed();
            if !queue.waiting.lock().is_empty() {
                sleep(took.min(TURN_MAX)).await;
            }
        }
    }

    async fn add_together(
        &self,
        org: OrgId,
        entries: &[Map<String, Value>],
        head: &mut Option<LastEntry>,
    ) -> Result<(), NotAdded> {
        let created = format_micros((self.objects.shared.registry.clock)());
        for _ in 0..ATTEMPTS_MAX {
            let last = match head.take().filter(|head| head.seen.elapsed() < REMEMBERED) {
                Some(last) => last,
                None => self.last(org).await.map_err(NotAdded::Failed)?,
            };
            let first = last.sequence + 1;
            let (rows, (sequence, hash)) = rows_behind(&last, &created, entries);
            let request = Some(request(org, first, &hash));
            let write = ObjectWrite { object: Self::home(org).object, rows, request };
            match self.objects.write(vec![write], Patience::usual()).await {
                Ok(_) => {
                    *head = Some(LastEntry { sequence, hash, seen: Instant::now() });
                    return Ok(());
                }
                Err(WriteError::KeyReused { .. }) => {}
                Err(why @ (WriteError::Row { .. } | WriteError::TooLarge { .. })) => {
                    return Err(NotAdded::Refused(why.to_string()));
                }
                Err(why) => return Err(NotAdded::Failed(why.to_string())),
            }
        }
        Err(NotAdded::Failed("concurrent entries prevented this entry: try again".into()))
    }

    /// Reads the last entry that any node has acknowledged.
    async fn last(&self, org: OrgId) -> Result<LastEntry, String> {
        let seen = Instant::now();
        let request = FetchRequest { limit: Some(1), ..FetchRequest::default() };
        let page = self.objects.fetch(&Self::home(org), request).await.map_err(|why| why.to_string())?;
        let Some(newest) = page.events.first() else {
            return Ok(LastEntry { sequence: 0, hash: FIRST_HASH.into(), seen });
        };
        let unreadable = || "the last entry cannot be decoded".to_owned();
        let newest: Value = serde_json::from_slice(newest).map_err(|_| unreadable())?;
        let sequence = newest.get(SEQUENCE).and_then(Value::as_u64).ok_or_else(unreadable)?;
        let hash = newest.get(HASH).and_then(Value::as_str).ok_or_else(unreadable)?.to_owned();
        Ok(LastEntry { sequence, hash, seen })
    }
}

impl EntryReply {
    fn tell(self, added: Result<(), NotAdded>) {
        // The caller may have been dropped.
        let _ = self.0.send(added.map_err(|why| match why {
            NotAdded::Refused(why) | NotAdded::Failed(why) => why,
        }));
    }
}

impl AuditQueue {
    /// Removes the next batch from the queue.
    fn next(&self) -> Vec<PendingEntry> {
        let mut waiting = self.waiting.lock();
        // Entries of dropped callers are not written.
        waiting.retain(|one| !one.added.0.is_closed());
        let mut bytes = 0;
        let fit = waiting.iter().take(TOGETHER_MAX).take_while(|one| {
            bytes += one.bytes;
            bytes <= TOGETHER_BYTES_MAX
        });
        let together = fit.count().max(1).min(waiting.len());
        waiting.drain(..together).collect()
    }
}

impl Ledger for AuditLog {
    fn append<'l>(
        &'l self,
        org: OrgId,
        entry: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'l>> {
        Box::pin(self.add(org, entry))
    }
}

/// Returns the entries as rows after the last one, and the number and hash of the new last entry.
fn rows_behind(last: &LastEntry, created: &str, entries: &[Map<String, Value>]) -> (Vec<SentItem>, (u64, String)) {
    let mut end = (last.sequence, last.hash.clone());
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let sequence = end.0 + 1;
        let mut entry = entry.clone();
        entry.insert("created".into(), created.into());
        let mut linked = linked(entry, sequence, &end.1);
        end = (sequence, linked.get(HASH).and_then(Value::as_str).unwrap_or_default().to_owned());
        linked.insert("id".into(), format!("{sequence:0DIGITS$}").into());
        rows.push(SentItem::from(Value::Object(linked)));
    }
    (rows, end)
}

fn bytes_about(entry: &Map<String, Value>) -> usize {
    serde_json::to_vec(entry).map_or(TOGETHER_BYTES_MAX, |text| text.len())
}

fn cut_short(_: oneshot::error::RecvError) -> String {
    "the node is stopping".into()
}

/// Returns the idempotency key of a write. The key is derived from the number of the first entry, and the content from
/// the last hash.
fn request(org: OrgId, sequence: u64, hash: &str) -> RequestId {
    let key = (org.0.as_u128() ^ 0x6173_7361_7920_6175_6469_7420_6c6f_6731).wrapping_add(u128::from(sequence));
    let mut content = [0; 16];
    for (byte, pair) in content.iter_mut().zip(hash.as_bytes().chunks(2)) {
        *byte = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or_default();
    }
    RequestId { key: key.to_be_bytes(), content }
}
