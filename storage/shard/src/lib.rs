//! Shard: a deterministic state machine over many objects, with its rows in memory and in segments.
//!
//! ```text
//! entries ──apply──> memory table ──rotate──> generation being sealed ──seal──> segment + stored state, durable
//!                        ^                          |                               |
//!                        └── readers hold a view ───┴───────────────────────────────┘        compaction: segments -> one
//! ```
//! In the shard's directory, the file `CURRENT` names the generation directory in use. That directory holds `kv/` and
//! `segments/`. The key-value store in `kv/` holds the manifest, counters, object records and request ids; see
//! `manifest`.
//!
//! A seal rotates the memory table between two applies, and writes and syncs the segment. It then commits the state as
//! of the rotation in one durable batch and switches readers over. Only then may the log be purged. A crash before the
//! commit leaves unnamed files, which the next open removes, and the log still has every entry. A crash after the
//! commit loses nothing. Besides seals, only compactions change the key-value store: they swap segments, which changes
//! no result. The store is therefore never ahead of the log.
//!
//! Locks are taken in the order `compacting`, `upkeep`, `core`, then the leaves: a generation, the ends of a segment,
//! `published`, `sealed`. Apply takes `core` alone. Readers hold a lock only while they copy references. `compacting`
//! and `upkeep` are held during disk work, so code that consensus waits for must not take them.

mod annotations;
mod apply;
mod bases;
mod compaction;
mod core;
mod error;
mod history;
mod live_segment;
mod manifest;
mod memory;
mod open;
mod read;
mod replay;
mod requests;
mod scan;
mod scrub;
mod seal;
mod snapshot;
mod text;
mod walk;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use assay_storage_blobs::{BlobName, Blobs};
use assay_storage_disk::SharedDisk;
use assay_storage_kv::{Kv, Kvs};
use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, LogPosition, ObjectKey, OrgId, Xact};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

pub use crate::annotations::Notes;
pub use crate::bases::BASES_BYTES_MAX;
pub use crate::compaction::{NEIGHBOURS_MAX, SEGMENTS_PER_TIER, TIER_MAX};
pub use crate::error::ShardError;
pub use crate::history::{PastWrite, Written};
pub use crate::manifest::ObjectRecord;
pub use crate::open::{CheckedShard, check_dir};
pub use crate::read::{Event, Row, Trace, TracePage, View};
pub use crate::replay::{PICKED_MAX, PastOp, WrittenOp};
pub use crate::requests::{REQUEST_AGE_SECONDS_MAX, REQUESTS_MAX};
pub use crate::scan::{ColumnCache, Sought, Unit};
pub use crate::scrub::ShardDigest;
pub use crate::snapshot::{Export, ExportFile, SnapshotError};
pub use crate::text::Text;

use crate::core::Core;
use crate::seal::Upkeep;

/// Directory and limits of a shard.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    pub disk: SharedDisk,
    pub dir: PathBuf,
    pub blobs: Arc<Blobs>,
    pub kv: KvKind,
}

/// Key-value store that a shard opens.
#[derive(Clone, Debug)]
pub enum KvKind {
    /// Sled store in the generation's directory, with a cache of this size.
    Sled { cache_bytes: u64 },
    /// Existing store, independent of the directory, for tests.
    Given(Arc<dyn Kv>),
    /// Stores selected by directory, for simulations.
    GivenByDir(Arc<dyn Kvs>),
}

/// Size of the memory that a seal would free, and of the segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSize {
    pub memory_bytes: usize,
    pub memory_rows: usize,
    pub segments: usize,
    /// Number of segments whose documents are stored whole, without columns.
    pub whole_segments: usize,
    pub segment_rows: u64,
    pub segment_bytes: u64,
    pub marks: usize,
}

/// Amount of stored data of an organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredAmount {
    pub rows: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct Shard {
    config: ShardConfig,
    core: Mutex<Core>,
    published: RwLock<View>,
    /// Held by a seal from rotation to switch, and by a compaction while it switches.
    upkeep: Mutex<Upkeep>,
    /// Lock that allows one compaction at a time.
    compacting: Mutex<()>,
    next_segment: AtomicU64,
    /// Durable position. It duplicates the one in `upkeep`, because consensus reads it at any time.
    sealed: Mutex<Applied>,
}

impl Shard {
    /// Returns the applied position in memory.
    pub fn applied(&self) -> Applied {
        self.core.lock().applied.clone()
    }

    /// Returns the durable position, behind which replay starts.
    ///
    /// This never waits for a seal, an install or a compaction.
    pub fn sealed(&self) -> Applied {
        self.sealed.lock().clone()
    }

    /// Returns the shard's last id. The result of a read at or below it never changes.
    pub fn last(&self) -> Xact {
        self.published.read().version()
    }

    pub fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, ShardError> {
        let commands = self.commands(entry)?;
        let mut core = self.core.lock();
        let mut outcomes = Vec::with_capacity(commands.len());
        for command in &commands {
            outcomes.push(apply::apply(&mut core, command)?);
        }
        core.applied.position = Some(position);
        // Publishing under the `core` lock keeps the versions in order.
        self.published.write().advance(core.last);
        Ok(outcomes)
    }

    pub fn apply_blank(&self, position: LogPosition) {
        self.core.lock().applied.position = Some(position);
    }

    pub fn apply_membership(&self, position: LogPosition, membership: &[u8]) {
        let mut core = self.core.lock();
        core.applied.position = Some(position);
        core.applied.membership = membership.to_vec();
    }

    /// Returns a consistent view of everything that has been applied at the time of the call.
    pub fn view(&self) -> View {
        self.published.read().clone()
    }

    pub fn memory_bytes(&self) -> usize {
        self.published.read().memory_bytes()
    }

    /// Returns the size of the cached generation that was sealed last.
    pub fn cached_bytes(&self) -> usize {
        self.core.lock().cached.as_ref().map_or(0, |generation| generation.bytes())
    }

    pub fn release_cached(&self) {
        let released = self.core.lock().cached.take();
        drop(released); // outside the lock: it may be large
    }

    pub fn size(&self) -> ShardSize {
        self.published.read().size()
    }

    pub fn object(&self, object: &ObjectKey) -> Option<ObjectRecord> {
        self.published.read().object(object)
    }

    pub fn objects(&self) -> Vec<(ObjectKey, ObjectRecord)> {
        self.published.read().objects()
    }

    /// Returns the stored amount of each organization.
    ///
    /// Rows are live rows. Bytes are those of sealed data before compression, including history. Each object gets a
    /// share of a segment in proportion to its rows.
    pub fn held(&self) -> BTreeMap<OrgId, StoredAmount> {
        self.held_by(|object| Some(object.org))
    }

    /// Returns the stored amount of each object of an organization, measured as by [`Shard::held`].
    pub fn held_objects(&self, org: OrgId) -> BTreeMap<ObjectKey, StoredAmount> {
        self.held_by(|object| (object.org == org).then_some(*object))
    }

    fn held_by<K: Ord>(&self, key: impl Fn(&ObjectKey) -> Option<K>) -> BTreeMap<K, StoredAmount> {
        let segments = self.core.lock().segments.clone();
        let objects: BTreeMap<_, _> = self.objects().into_iter().filter(|(_, record)| !record.dropped).collect();
        let mut held: BTreeMap<K, StoredAmount> = BTreeMap::new();
        for (object, record) in &objects {
            if let Some(key) = key(object) {
                held.entry(key).or_default().rows += record.rows;
            }
        }
        for live in &*segments {
            let meta = live.meta();
            for object in live.segment.objects().filter(|object| objects.contains_key(object)) {
                let Some(key) = key(&object) else { continue };
                let rows = u64::from(live.segment.rows_of(object).len() as u32);
                let bytes = u128::from(meta.raw_bytes) * u128::from(rows) / u128::from(meta.rows.max(1));
                held.entry(key).or_default().bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
            }
        }
        held
    }

    /// Prefetches the documents that merges onto sealed rows need, so that apply does not wait for the disk.
    pub fn fetch_bases(&self, object: &ObjectKey, ids: &[&str]) -> Result<(), ShardError> {
        let view = self.view();
        for id in ids {
            if let Some((xact, base)) = view.sealed_base(object, id)? {
                self.core.lock().bases.put(object, id, xact, base);
            }
        }
        Ok(())
    }

    /// Decodes the commands of an entry, which may name the blob that holds them.
    fn commands(&self, entry: &Bytes) -> Result<Vec<Bytes>, ShardError> {
        use assay_storage_model::entry::Entry;
        match Entry::decode(entry)? {
            Entry::Commands(commands) => Ok(commands),
            Entry::Blob { hash, length } => {
                let whole = self.config.blobs.get(BlobName(hash), length)?;
                match Entry::decode(&whole)? {
                    Entry::Commands(commands) => Ok(commands),
                    Entry::Blob { .. } => Err(ShardError::Damaged("a blob names another blob".into())),
                }
            }
        }
    }
}
