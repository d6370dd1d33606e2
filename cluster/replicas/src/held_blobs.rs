//! Blobs of large writes that this node holds, and their garbage collection.
//!
//! A blob is needed while an entry of a group's log names it, or while it is in transit. The upkeep thread deletes
//! other blobs.
//!
//! None of this is stored on disk. A start learns the names from the log, and then sweeps the unnamed blobs.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_raft::LargeWrite;
use assay_storage_blobs::{BlobError, BlobName, Blobs};
use assay_storage_model::GroupId;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

/// Time for which a blob that another node sent ahead of its entry is kept.
///
/// A proposal is answered long before, and a deleted blob is fetched again. A blob that was sent twice is kept as long,
/// so the time must not exceed the permitted life of deleted data.
const EXPECTED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct BlobWrites {
    blobs: Arc<Blobs>,
    needed: Mutex<Needed>,
    /// Lock that writers share and removal takes exclusively, so that a blob is not removed while the same content is
    /// stored.
    gate: RwLock<()>,
}

#[derive(Debug, Default)]
struct Needed {
    by_entry: BTreeMap<(GroupId, u64), BlobName>,
    /// Number of entries and holds that use each blob.
    uses: HashMap<BlobName, usize>,
    /// Blobs that arrived ahead of their entries, with the time. Each counts as one use.
    expected: HashMap<BlobName, Instant>,
    unused: Vec<BlobName>,
}

impl Needed {
    fn take(&mut self, name: BlobName) {
        *self.uses.entry(name).or_default() += 1;
    }

    fn give_back(&mut self, name: BlobName) {
        let uses = self.uses.get_mut(&name).expect("given back what was taken");
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(&name);
            self.unused.push(name);
        }
    }

    fn expect(&mut self, name: BlobName) {
        if self.expected.insert(name, Instant::now()).is_none() {
            self.take(name);
        }
    }

    fn came(&mut self, name: BlobName) {
        if self.expected.remove(&name).is_some() {
            self.give_back(name);
        }
    }

    fn forget(&mut self, group: GroupId, indices: impl std::ops::RangeBounds<u64>) {
        let gone: Vec<_> =
            self.by_entry.keys().filter(|(of, index)| *of == group && indices.contains(index)).copied().collect();
        for place in gone {
            let name = self.by_entry.remove(&place).expect("just listed");
            self.give_back(name);
        }
    }
}

/// Guard that keeps a blob until its entry is in the log, or never will be.
struct Hold {
    writes: Arc<BlobWrites>,
    name: BlobName,
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.writes.needed.lock().give_back(self.name);
    }
}

impl BlobWrites {
    pub fn new(blobs: Arc<Blobs>) -> Arc<BlobWrites> {
        Arc::new(BlobWrites { blobs, needed: Mutex::default(), gate: RwLock::default() })
    }

    /// Stores the blob of a large write and holds it until its entry is in the log, or never will be. Blocking.
    pub fn put(self: &Arc<Self>, framed: &Bytes) -> Result<LargeWrite, BlobError> {
        let _shared = self.gate.read();
        let name = BlobName::of(framed);
        self.needed.lock().take(name);
        let hold: Box<dyn Any + Send> = Box::new(Hold { writes: Arc::clone(self), name });
        self.blobs.put(framed)?;
        Ok(LargeWrite { hash: name.0, length: framed.len() as u64, hold })
    }

    /// Stores a blob that an entry here names. Blocking.
    pub fn replace(&self, framed: &Bytes) -> Result<(), BlobError> {
        self.blobs.put(framed).map(drop)
    }

    /// Reads a blob, or returns `None` if it is not here. Blocking.
    pub fn read(&self, name: BlobName, length: u64) -> Result<Option<Bytes>, BlobError> {
        if self.blobs.contains(name)? { self.blobs.get(name, length).map(Some) } else { Ok(None) }
    }

    /// Returns whether the blob is here and undamaged. Blocking.
    pub fn is_sound(&self, name: BlobName) -> Result<bool, BlobError> {
        Ok(self.blobs.is_sound(name)?)
    }

    /// Records that an entry of a group's log names the blob.
    pub fn named(&self, group: GroupId, index: u64, name: BlobName) {
        let mut needed = self.needed.lock();
        needed.take(name);
        if let Some(before) = needed.by_entry.insert((group, index), name) {
            needed.give_back(before);
        }
        needed.came(name);
    }

    /// Forgets the blobs of entries up to this index.
    pub fn purged(&self, group: GroupId, index: u64) {
        self.needed.lock().forget(group, ..=index);
    }

    /// Forgets the blobs of entries from this index on.
    pub fn truncated(&self, group: GroupId, index: u64) {
        self.needed.lock().forget(group, index..);
    }

    /// Stores a blob that another node sent, and keeps it until its entry comes or for a while. Blocking.
    pub fn expect(&self, framed: &[u8]) -> Result<(), BlobError> {
        let _shared = self.gate.read();
        let name = self.blobs.put(framed)?;
        let mut needed = self.needed.lock();
        // If an entry already names the blob, no later one is expected. A node that needs it for another entry fetches
        // it.
        if !needed.uses.contains_key(&name) {
            needed.expect(name);
        }
        Ok(())
    }

    /// Returns whether the blob is here, and then keeps it until its entry comes. Blocking.
    pub fn expect_here(&self, name: BlobName) -> Result<bool, BlobError> {
        let _shared = self.gate.read();
        let here = self.blobs.contains(name)?;
        if here {
            self.needed.lock().expect(name);
        }
        Ok(here)
    }

    /// Forgets the expected blobs whose entries never came.
    fn forget_expected(&self) {
        let mut needed = self.needed.lock();
        let old = needed.expected.iter().filter(|(_, since)| since.elapsed() > EXPECTED_FOR);
        let old: Vec<BlobName> = old.map(|(name, _)| *name).collect();
        old.into_iter().for_each(|name| needed.came(name));
    }

    /// Marks blobs that no entry names as unused. They are left over from before a start.
    pub fn sweep(&self) -> std::io::Result<()> {
        let _alone = self.gate.write();
        let listed = self.blobs.list()?;
        let mut needed = self.needed.lock();
        let left: Vec<_> =
            listed.into_iter().map(|(name, _)| name).filter(|name| !needed.uses.contains_key(name)).collect();
        needed.unused.extend(left);
        Ok(())
    }

    /// Deletes the unused blobs, and returns their number.
    pub fn collect(&self) -> Result<usize, BlobError> {
        self.forget_expected();
        if self.needed.lock().unused.is_empty() {
            return Ok(0);
        }
        let _alone = self.gate.write();
        let unused = {
            let mut needed = self.needed.lock();
            let mut unused = std::mem::take(&mut needed.unused);
            unused.sort_unstable();
            unused.dedup();
            unused.retain(|name| !needed.uses.contains_key(name));
            unused
        };
        for (place, name) in unused.iter().enumerate() {
            if let Err(why) = self.blobs.remove(*name) {
                self.needed.lock().unused.extend_from_slice(&unused[place..]);
                return Err(why);
            }
        }
        Ok(unused.len())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use assay_storage_disk::SimulatedDisk;

    use super::*;

    const GROUP: GroupId = GroupId(16);

    fn writes() -> Arc<BlobWrites> {
        let blobs = Blobs::open(Arc::new(SimulatedDisk::new()), Path::new("/blobs")).expect("opens");
        BlobWrites::new(Arc::new(blobs))
    }

    #[test]
    fn a_blob_lives_while_it_is_held_or_named() {
        let writes = writes();
        let written = writes.put(&Bytes::from_static(b"large")).expect("puts");
        let name = BlobName(written.hash);
        writes.named(GROUP, 3, name);
        drop(written.hold);
        writes.sweep().expect("sweeps");
        assert_eq!(writes.collect().expect("collects"), 0);
        writes.named(GROUP, 3, name);
        writes.purged(GROUP, 2);
        assert_eq!(writes.collect().expect("collects"), 0);
        writes.purged(GROUP, 3);
        assert_eq!(writes.collect().expect("collects"), 1);
        assert!(!writes.blobs.contains(name).expect("looks"));
    }

    #[test]
    fn what_others_sent_ahead_stays_until_its_entry_has_come_and_gone() {
        let writes = writes();
        let name = BlobName::of(b"ahead");
        assert!(!writes.expect_here(name).expect("looks"));
        writes.expect(b"ahead").expect("keeps");
        assert!(writes.expect_here(name).expect("looks"), "and once more, as a message that is sent again");
        assert_eq!(writes.collect().expect("collects"), 0);
        writes.named(GROUP, 7, name);
        assert_eq!(writes.collect().expect("collects"), 0);
        writes.purged(GROUP, 7);
        assert_eq!(writes.collect().expect("collects"), 1, "its entry came, and nothing else holds it");
    }

    #[test]
    fn what_nobody_names_after_a_start_goes() {
        let writes = writes();
        writes.blobs.put(b"left over").expect("puts");
        writes.sweep().expect("sweeps");
        assert_eq!(writes.collect().expect("collects"), 1);
    }
}
