//! The chain of what was done to access in an organization, kept as rows of an object of its own. See `auth::chain`.
//!
//! An entry's number is its row's id and the key of its request, so of two nodes that add one at the same moment one is told
//! that the number is taken, reads what is there and goes on behind it. Request ids are forgotten after a while, far longer than
//! what is remembered here of the last entry.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::chain::{FIRST_HASH, HASH, Ledger, SEQUENCE, linked};
use assay_storage_model::command::RequestId;
use assay_storage_model::event::{Sent, format_micros};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{FetchRequest, ObjectWrite, Objects, RowHome, WriteError};

/// Others who add an entry at the same moment; each of them gets one in.
const ATTEMPTS_MAX: usize = 64;
/// How long the last entry is remembered without a look at what others have added since.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Digits of an entry's id, so that ids are in the order of their numbers.
const DIGITS: usize = 12;

/// Adds entries, one after the other in each organization.
#[derive(Clone, Debug)]
pub struct AuditLog {
    objects: Objects,
    heads: Arc<Mutex<HashMap<OrgId, Place>>>,
}

/// Where the next entry of an organization goes: one adds at a time.
type Place = Arc<tokio::sync::Mutex<Option<Head>>>;

/// The last entry, as it was seen.
#[derive(Clone, Debug)]
struct Head {
    sequence: u64,
    hash: String,
    seen: Instant,
}

impl AuditLog {
    pub fn new(objects: Objects) -> AuditLog {
        AuditLog { objects, heads: Arc::default() }
    }

    /// Where the entries of an organization are.
    pub fn home(org: OrgId) -> RowHome {
        RowHome { object: ObjectKey::new(org, ObjectKind::AuditLog, org.0), org, project_id: org.0 }
    }

    async fn add(&self, org: OrgId, mut entry: Map<String, Value>) -> Result<(), String> {
        let place = Arc::clone(self.heads.lock().entry(org).or_default());
        let mut head = place.lock().await;
        entry.insert("created".into(), format_micros((self.objects.shared.office.clock)()).into());
        for _ in 0..ATTEMPTS_MAX {
            let last = match head.take().filter(|head| head.seen.elapsed() < REMEMBERED) {
                Some(last) => last,
                None => self.last(org).await?,
            };
            let sequence = last.sequence + 1;
            let mut linked = linked(entry.clone(), sequence, &last.hash);
            let hash = linked.get(HASH).and_then(Value::as_str).unwrap_or_default().to_owned();
            let request = request(org, sequence, &hash);
            linked.insert("id".into(), format!("{sequence:0DIGITS$}").into());
            let row = Sent::from(Value::Object(linked));
            let write = ObjectWrite { object: Self::home(org).object, rows: vec![row], request: Some(request) };
            match self.objects.write(vec![write]).await {
                Ok(_) => {
                    *head = Some(Head { sequence, hash, seen: Instant::now() });
                    return Ok(());
                }
                Err(WriteError::KeyReused { .. }) => {}
                Err(why) => return Err(why.to_string()),
            }
        }
        Err("others keep adding entries: try again".into())
    }

    /// By what every node has acknowledged.
    async fn last(&self, org: OrgId) -> Result<Head, String> {
        let seen = Instant::now();
        let request = FetchRequest { limit: Some(1), ..FetchRequest::default() };
        let page = self.objects.fetch(&Self::home(org), request).await.map_err(|why| why.to_string())?;
        let Some(newest) = page.events.first() else {
            return Ok(Head { sequence: 0, hash: FIRST_HASH.into(), seen });
        };
        let unreadable = || "the last entry does not read".to_owned();
        let newest: Value = serde_json::from_slice(newest).map_err(|_| unreadable())?;
        let sequence = newest.get(SEQUENCE).and_then(Value::as_u64).ok_or_else(unreadable)?;
        let hash = newest.get(HASH).and_then(Value::as_str).ok_or_else(unreadable)?.to_owned();
        Ok(Head { sequence, hash, seen })
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

/// One for each number, whoever asks for it; its content is the entry.
fn request(org: OrgId, sequence: u64, hash: &str) -> RequestId {
    let key = (org.0.as_u128() ^ 0x6173_7361_7920_6175_6469_7420_6c6f_6731).wrapping_add(u128::from(sequence));
    let mut content = [0; 16];
    for (byte, pair) in content.iter_mut().zip(hash.as_bytes().chunks(2)) {
        *byte = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or_default();
    }
    RequestId { key: key.to_be_bytes(), content }
}
