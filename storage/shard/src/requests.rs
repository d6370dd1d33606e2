//! Applied keyed requests, kept so that a repeated request changes nothing.
//!
//! Every keyed request gets an ordinal, one above the last. A request is known under two conditions: it is among the
//! last `REQUESTS_MAX` of this shard, and its id is at most `REQUEST_AGE_SECONDS_MAX` of applied time old. The rule
//! uses only applied state, so replicas that seal at different times decide alike. Older requests may stay in memory
//! and on disk for a while, but they count as unknown.
//!
//! In memory, requests since the last seal are in a map, and the others are in sorted runs. The stored state splits
//! each run into pages `r/<run>/<page>` that fit into a value.

use std::collections::HashMap;
use std::sync::Arc;

use assay_storage_kv::{Batch, VALUE_BYTES_MAX};
use assay_storage_model::Xact;
use assay_storage_model::command::RequestId;

use crate::error::ShardError;

/// Upper bound of known requests of one shard. Sixteen shards have a million per node.
pub const REQUESTS_MAX: u64 = 65_536;
/// Applied time for which a request is known: 25 h, which is one hour more than promised.
pub const REQUEST_AGE_SECONDS_MAX: u32 = 25 * 3600;
/// Number of runs from which the next seal merges them into one.
const RUNS_MAX: usize = 8;

const ITEM_BYTES: usize = 48;
const ITEMS_PER_PAGE: usize = (VALUE_BYTES_MAX - 1) / ITEM_BYTES;
const PAGE_VERSION: u8 = 1;
pub(crate) const PREFIX: &[u8] = b"r/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AppliedRequest {
    key: [u8; 16],
    content: [u8; 16],
    xact: Xact,
    ordinal: u64,
}

/// Sorted run with its number in the stored state.
#[derive(Clone, Debug)]
struct RequestRun {
    number: u64,
    items: Arc<[AppliedRequest]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorRequest {
    /// Request that was applied before with this id.
    Same(Xact),
    /// Different request that used the same key.
    Other(Xact),
}

#[derive(Debug, Default)]
pub struct Requests {
    /// Number of keyed requests that this shard has ever applied.
    count: u64,
    fresh: HashMap<[u8; 16], AppliedRequest>,
    /// Requests of an unfinished seal, with the count at its rotation.
    sealing: Option<(u64, Arc<[AppliedRequest]>)>,
    runs: Vec<RequestRun>,
    next_run: u64,
}

impl Requests {
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn find(&self, request: &RequestId, last: Xact) -> Option<PriorRequest> {
        let sealing = self.sealing.iter().flat_map(|(_, items)| search(items, &request.key));
        let sealed = self.runs.iter().flat_map(|run| search(&run.items, &request.key));
        // A key may be used again after it left the window, so its newest use counts.
        let newest =
            self.fresh.get(&request.key).into_iter().chain(sealing).chain(sealed).max_by_key(|item| item.ordinal)?;
        if !in_window(newest, self.count, last) {
            return None;
        }
        Some(if newest.content == request.content {
            PriorRequest::Same(newest.xact)
        } else {
            PriorRequest::Other(newest.xact)
        })
    }

    pub fn remember(&mut self, request: &RequestId, xact: Xact) {
        self.count += 1;
        let item = AppliedRequest { key: request.key, content: request.content, xact, ordinal: self.count };
        self.fresh.insert(request.key, item);
    }

    /// Moves the requests since the last seal into a sorted list. It is called between two applies.
    pub fn rotate(&mut self) {
        debug_assert!(self.sealing.is_none(), "one seal at a time");
        let mut items: Vec<AppliedRequest> = std::mem::take(&mut self.fresh).into_values().collect();
        items.sort_unstable_by_key(|item| (item.key, item.ordinal));
        self.sealing = Some((self.count, items.into()));
    }

    /// Plans the batch that a seal writes for the rotated requests, and the runs that follow it.
    ///
    /// `last` is the shard's last id at the rotation. A request dropped here must be unknown to a replay that starts
    /// there.
    pub fn plan(&self, last: Xact) -> RequestSeal {
        let (count, new) = self.sealing.clone().unwrap_or_else(|| (self.count, Arc::from([])));
        let merge = self.runs.len() >= RUNS_MAX;
        let mut batch = Batch::default();
        let mut runs = self.runs.clone();
        let mut items: Vec<AppliedRequest> = new.to_vec();
        if merge {
            items.extend(runs.iter().flat_map(|run| run.items.iter().copied()));
            items.retain(|item| in_window(item, count, last));
            items.sort_unstable_by_key(|item| (item.key, item.ordinal));
            for run in runs.drain(..) {
                (0..pages_of(run.items.len())).for_each(|page| batch.delete(page_key(run.number, page)));
            }
        }
        let mut next_run = self.next_run;
        if !items.is_empty() {
            for (page, chunk) in (0_u32..).zip(items.chunks(ITEMS_PER_PAGE)) {
                batch.put(page_key(next_run, page), encode_page(chunk));
            }
            runs.push(RequestRun { number: next_run, items: items.into() });
            next_run += 1;
        }
        RequestSeal { batch, runs, next_run }
    }

    /// Adopts the runs of a durable seal.
    pub fn sealed(&mut self, seal: RequestSeal) {
        self.sealing = None;
        self.runs = seal.runs;
        self.next_run = seal.next_run;
    }

    /// Loads the stored pages. `count` is the counter stored with them.
    pub fn load(pages: &[(Vec<u8>, Vec<u8>)], count: u64) -> Result<Requests, ShardError> {
        let mut runs: Vec<RequestRun> = Vec::new();
        let mut open: Option<(u64, Vec<AppliedRequest>)> = None;
        for (key, value) in pages {
            let number = run_number(key)
                .ok_or_else(|| ShardError::Damaged(format!("a request page with the key {key:02x?}")))?;
            if let Some(newer) = value.first().filter(|version| **version > PAGE_VERSION) {
                return Err(ShardError::Newer(format!(
                    "request page {key:02x?} has version {newer}, this program supports {PAGE_VERSION}: upgrade the program"
                )));
            }
            let items = decode_page(value)
                .ok_or_else(|| ShardError::Damaged(format!("request page {key:02x?} cannot be decoded")))?;
            match &mut open {
                Some((open_number, collected)) if *open_number == number => collected.extend(items),
                _ => {
                    if let Some((number, items)) = open.take() {
                        runs.push(RequestRun { number, items: items.into() });
                    }
                    open = Some((number, items));
                }
            }
        }
        if let Some((number, items)) = open {
            runs.push(RequestRun { number, items: items.into() });
        }
        let next_run = runs.last().map_or(0, |run| run.number + 1);
        Ok(Requests { count, fresh: HashMap::new(), sealing: None, runs, next_run })
    }
}

/// Change of the requests by a seal.
#[derive(Debug)]
pub struct RequestSeal {
    pub batch: Batch,
    runs: Vec<RequestRun>,
    next_run: u64,
}

fn in_window(item: &AppliedRequest, count: u64, last: Xact) -> bool {
    count - item.ordinal < REQUESTS_MAX && last.seconds().saturating_sub(item.xact.seconds()) <= REQUEST_AGE_SECONDS_MAX
}

fn search<'a>(items: &'a [AppliedRequest], key: &[u8; 16]) -> Option<&'a AppliedRequest> {
    let end = items.partition_point(|item| item.key <= *key);
    items[..end].last().filter(|item| item.key == *key)
}

fn pages_of(items: usize) -> u32 {
    u32::try_from(items.div_ceil(ITEMS_PER_PAGE)).expect("a run has at most a few thousand pages")
}

fn page_key(run: u64, page: u32) -> Vec<u8> {
    let mut key = PREFIX.to_vec();
    key.extend_from_slice(&run.to_be_bytes());
    key.extend_from_slice(&page.to_be_bytes());
    key
}

fn run_number(key: &[u8]) -> Option<u64> {
    let rest = key.strip_prefix(PREFIX)?;
    (rest.len() == 12).then(|| u64::from_be_bytes(rest[..8].try_into().expect("8 bytes")))
}

fn encode_page(items: &[AppliedRequest]) -> Vec<u8> {
    let mut page = Vec::with_capacity(1 + items.len() * ITEM_BYTES);
    page.push(PAGE_VERSION);
    for item in items {
        page.extend_from_slice(&item.key);
        page.extend_from_slice(&item.content);
        page.extend_from_slice(&item.xact.0.to_le_bytes());
        page.extend_from_slice(&item.ordinal.to_le_bytes());
    }
    page
}

fn decode_page(page: &[u8]) -> Option<Vec<AppliedRequest>> {
    let (&version, items) = page.split_first()?;
    if version != PAGE_VERSION || items.len() % ITEM_BYTES != 0 {
        return None;
    }
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let decode = |item: &[u8]| AppliedRequest {
        key: item[..16].try_into().expect("16 bytes"),
        content: item[16..32].try_into().expect("16 bytes"),
        xact: Xact(number(&item[32..40])),
        ordinal: number(&item[40..48]),
    };
    Some(items.chunks_exact(ITEM_BYTES).map(decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(n: u64, content: u8) -> RequestId {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.to_be_bytes());
        RequestId { key, content: [content; 16] }
    }

    fn seal(requests: &mut Requests, kept: &mut std::collections::BTreeMap<Vec<u8>, Vec<u8>>, last: Xact) {
        requests.rotate();
        let plan = requests.plan(last);
        for (key, value) in plan.batch.iter() {
            match value {
                Some(value) => kept.insert(key.to_vec(), value.to_vec()),
                None => kept.remove(key),
            };
        }
        requests.sealed(plan);
    }

    #[test]
    fn a_request_is_known_through_seals_and_a_reload() {
        let (mut requests, mut kept) = (Requests::default(), Default::default());
        let last = Xact::new(1000, 0);
        for n in 0..2_000 {
            requests.remember(&request(n, 1), Xact::new(1000, n as u16));
            if n % 100 == 0 {
                seal(&mut requests, &mut kept, last);
            }
        }
        seal(&mut requests, &mut kept, last);
        let pages: Vec<_> = kept.into_iter().collect();
        let again = Requests::load(&pages, requests.count()).expect("loads");
        for n in 0..2_000 {
            assert_eq!(again.find(&request(n, 1), last), Some(PriorRequest::Same(Xact::new(1000, n as u16))), "{n}");
            assert_eq!(again.find(&request(n, 2), last), Some(PriorRequest::Other(Xact::new(1000, n as u16))));
        }
        assert_eq!(again.find(&request(2_000, 1), last), None);
        assert!(again.runs.len() <= RUNS_MAX + 1, "runs are merged");
    }

    #[test]
    fn what_is_too_old_or_too_far_back_is_not_known_wherever_it_lies() {
        let mut requests = Requests::default();
        requests.remember(&request(0, 1), Xact::new(0, 0));
        let in_time = Xact::new(REQUEST_AGE_SECONDS_MAX, 0);
        assert!(requests.find(&request(0, 1), in_time).is_some());
        assert!(requests.find(&request(0, 1), Xact::new(REQUEST_AGE_SECONDS_MAX + 1, 0)).is_none());
        for n in 1..=REQUESTS_MAX {
            requests.remember(&request(n, 1), Xact::new(0, 0));
        }
        assert!(requests.find(&request(1, 1), in_time).is_some());
        requests.remember(&request(REQUESTS_MAX + 1, 1), Xact::new(0, 0));
        assert!(requests.find(&request(1, 1), in_time).is_none());
    }

    #[test]
    fn a_page_cut_short_is_refused() {
        let page = encode_page(&[AppliedRequest { key: [1; 16], content: [2; 16], xact: Xact(3), ordinal: 4 }]);
        assert_eq!(decode_page(&page).map(|items| items.len()), Some(1));
        assert!(decode_page(&page[..20]).is_none());
        assert!(decode_page(&[]).is_none());
    }
}
