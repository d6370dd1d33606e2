//! The chain of what was done to access in an organization, kept as rows of an object of its own. See `auth::chain`.
//!
//! Entries that wait for each other go together: the first to come writes what has come until then, as rows of one write, which
//! are there together or not at all. The number of the first of them is the key of its request, so of two nodes that write at the
//! same moment one is told that the number is taken, reads what is there and goes on behind it. Request ids are forgotten after
//! a while, far longer than what is remembered here of the last entry.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::chain::{FIRST_HASH, HASH, Ledger, SEQUENCE, linked};
use assay_node_auth::{Asker, Job};
use assay_storage_model::command::RequestId;
use assay_storage_model::event::{Sent, format_micros};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::{Instant, sleep};

use crate::{FetchRequest, ObjectWrite, Objects, Patience, RowHome, WriteError};

/// Others who add entries at the same moment; each of them gets its own in.
const ATTEMPTS_MAX: usize = 64;
/// Entries of one write, and bytes of them. A larger one goes alone.
const TOGETHER_MAX: usize = 256;
const TOGETHER_BYTES_MAX: usize = 256 << 10;
/// Who has written and has more to write leaves others a turn, as long as the write took but no longer than this: they have to
/// read first, and would come too late each time.
const TURN_MAX: Duration = Duration::from_millis(50);
/// How long the last entry is remembered without a look at what others have added since.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Digits of an entry's id, so that ids are in the order of their numbers.
const DIGITS: usize = 12;

/// Adds entries, one after the other in each organization.
#[derive(Clone, Debug)]
pub struct AuditLog {
    objects: Objects,
    places: Arc<Mutex<HashMap<OrgId, Arc<Place>>>>,
}

/// Where the next entries of an organization go. One adds at a time, for all who wait.
#[derive(Debug, Default)]
struct Place {
    waiting: Mutex<VecDeque<Waiting>>,
    head: Arc<tokio::sync::Mutex<Option<Head>>>,
}

/// An entry, and who wants to know what became of it.
#[derive(Debug)]
struct Waiting {
    entry: Map<String, Value>,
    bytes: usize,
    added: Asking,
}

#[derive(Debug)]
struct Asking(oneshot::Sender<Result<(), String>>);

#[derive(Clone, Debug)]
enum NotAdded {
    /// By what an entry says.
    Refused(String),
    Failed(String),
}

/// The last entry, as it was seen.
#[derive(Clone, Debug)]
struct Head {
    sequence: u64,
    hash: String,
    seen: Instant,
}

impl AuditLog {
    pub fn new(objects: Objects) -> AuditLog {
        AuditLog { objects: objects.on_behalf_of(&Asker::Job(Job::Audit)), places: Arc::default() }
    }

    /// Where the entries of an organization are.
    pub fn home(org: OrgId) -> RowHome {
        RowHome { object: ObjectKey::new(org, ObjectKind::AuditLog, org.0), org, project_id: org.0 }
    }

    async fn add(&self, org: OrgId, entry: Map<String, Value>) -> Result<(), String> {
        let place = Arc::clone(self.places.lock().entry(org).or_default());
        let (asking, mut answer) = oneshot::channel();
        let bytes = bytes_about(&entry);
        place.waiting.lock().push_back(Waiting { entry, bytes, added: Asking(asking) });
        let head = Arc::clone(&place.head).lock_owned();
        let head = tokio::select! {
            biased;
            answer = &mut answer => return answer.map_err(cut_short)?,
            head = head => head,
        };
        // On its own: who waits may go, and the others' entries must not go with it.
        tokio::spawn(self.clone().add_waiting(org, place, head));
        answer.await.map_err(cut_short)?
    }

    /// Until nobody waits.
    async fn add_waiting(self, org: OrgId, place: Arc<Place>, mut head: OwnedMutexGuard<Option<Head>>) {
        loop {
            let batch = place.next();
            if batch.is_empty() {
                return;
            }
            let (entries, waiting): (Vec<_>, Vec<_>) = batch.into_iter().map(|one| (one.entry, one.added)).unzip();
            let began = Instant::now();
            match self.add_together(org, &entries, &mut head).await {
                // One of them is no row; the others need not know.
                Err(NotAdded::Refused(_)) if entries.len() > 1 => {
                    for (entry, one) in entries.iter().zip(waiting) {
                        one.tell(self.add_together(org, std::slice::from_ref(entry), &mut head).await);
                    }
                }
                added => waiting.into_iter().for_each(|one| one.tell(added.clone())),
            }
            let took = began.elapsed();
            if !place.waiting.lock().is_empty() {
                sleep(took.min(TURN_MAX)).await;
            }
        }
    }

    async fn add_together(
        &self,
        org: OrgId,
        entries: &[Map<String, Value>],
        head: &mut Option<Head>,
    ) -> Result<(), NotAdded> {
        let created = format_micros((self.objects.shared.office.clock)());
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
                    *head = Some(Head { sequence, hash, seen: Instant::now() });
                    return Ok(());
                }
                Err(WriteError::KeyReused { .. }) => {}
                Err(why @ (WriteError::Row { .. } | WriteError::TooLarge { .. })) => {
                    return Err(NotAdded::Refused(why.to_string()));
                }
                Err(why) => return Err(NotAdded::Failed(why.to_string())),
            }
        }
        Err(NotAdded::Failed("others keep adding entries: try again".into()))
    }

    /// By what every node has acknowledged.
    async fn last(&self, org: OrgId) -> Result<Head, String> {
        let seen = Instant::now();
        let request = FetchRequest { limit: Some(1), ..FetchRequest::default() };
        let page = self.objects.fetch(&Self::home(org), request).await.map_err(|why| why.to_string())?;
        let Some(newest) = page.events.first() else {
            return Ok(Head { sequence: 0, hash: FIRST_HASH.into(), seen });
        };
        let unreadable = || "the last entry cannot be decoded".to_owned();
        let newest: Value = serde_json::from_slice(newest).map_err(|_| unreadable())?;
        let sequence = newest.get(SEQUENCE).and_then(Value::as_u64).ok_or_else(unreadable)?;
        let hash = newest.get(HASH).and_then(Value::as_str).ok_or_else(unreadable)?.to_owned();
        Ok(Head { sequence, hash, seen })
    }
}

impl Asking {
    fn tell(self, added: Result<(), NotAdded>) {
        // Who has gone does not want to know.
        let _ = self.0.send(added.map_err(|why| match why {
            NotAdded::Refused(why) | NotAdded::Failed(why) => why,
        }));
    }
}

impl Place {
    /// Who waits, up to what may go together.
    fn next(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock();
        // What who has gone wanted to do is not done.
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

/// The entries as rows behind the last one, and the number and hash of the last of them.
fn rows_behind(last: &Head, created: &str, entries: &[Map<String, Value>]) -> (Vec<Sent>, (u64, String)) {
    let mut end = (last.sequence, last.hash.clone());
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let sequence = end.0 + 1;
        let mut entry = entry.clone();
        entry.insert("created".into(), created.into());
        let mut linked = linked(entry, sequence, &end.1);
        end = (sequence, linked.get(HASH).and_then(Value::as_str).unwrap_or_default().to_owned());
        linked.insert("id".into(), format!("{sequence:0DIGITS$}").into());
        rows.push(Sent::from(Value::Object(linked)));
    }
    (rows, end)
}

fn bytes_about(entry: &Map<String, Value>) -> usize {
    serde_json::to_vec(entry).map_or(TOGETHER_BYTES_MAX, |text| text.len())
}

fn cut_short(_: oneshot::error::RecvError) -> String {
    "the node stops".into()
}

/// One for each number that a write begins with, whoever asks for it; its content is that of the write.
fn request(org: OrgId, sequence: u64, hash: &str) -> RequestId {
    let key = (org.0.as_u128() ^ 0x6173_7361_7920_6175_6469_7420_6c6f_6731).wrapping_add(u128::from(sequence));
    let mut content = [0; 16];
    for (byte, pair) in content.iter_mut().zip(hash.as_bytes().chunks(2)) {
        *byte = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or_default();
    }
    RequestId { key: key.to_be_bytes(), content }
}
