//! Blobs of large writes that this node holds, and their garbage collection. A blob is needed while an entry of a group's
//! log names it or it is in transit. Others are deleted by the upkeep thread.
//!
//! Nothing of this is on disk: a start learns the names from the log, then sweeps what none of them is.

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

/// Time for which a blob is kept that another node sent ahead of its entry. A proposal is answered long before, and
/// what is gone is fetched again. What was sent twice stays as long, so it is no longer than what was deleted may stay.
const EXPECTED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct BlobWrites {
    blobs: Arc<Blobs>,
    needed: Mutex<Needed>,
    /// Putting takes it shared, removing alone: a blob must not go while the same content is put again.
    gate: RwLock<()>,
}

#[derive(Debug, Default)]
struct Needed {
    by_entry: BTreeMap<(GroupId, u64), BlobName>,
    /// Number of entries and holds that use each blob.
    uses: HashMap<BlobName, usize>,
    /// Here ahead of the entries that will name them; each is a use.
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

/// Keeps a blob until its entry is in the log, or never will be.
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

    /// Reads a blob; none if it is not here. Blocking.
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

    /// Blocking: keeps what another node sends until its entry comes, or for a while.
    pub fn expect(&self, framed: &[u8]) -> Result<(), BlobError> {
        let _shared = self.gate.read();
        let name = self.blobs.put(framed)?;
        let mut needed = self.needed.lock();
        // Whose entry was faster: nothing is to come, and who lacks it for another entry fetches it.
        if !needed.uses.contains_key(&name) {
            needed.expect(name);
        }
        Ok(())
    }

    /// Blocking: whether it is here, and then kept until its entry comes.
    pub fn expect_here(&self, name: BlobName) -> Result<bool, BlobError> {
        let _shared = self.gate.read();
        let here = self.blobs.contains(name)?;
        if here {
            self.needed.lock().expect(name);
        }
        Ok(here)
    }

    /// Those whose entry never came.
    fn forget_expected(&self) {
        let mut needed = self.needed.lock();
        let old = needed.expected.iter().filter(|(_, since)| since.elapsed() > EXPECTED_FOR);
        let old: Vec<BlobName> = old.map(|(name, _)| *name).collect();
        old.into_iter().for_each(|name| needed.came(name));
    }

    /// Deletes blobs that no entry names, left over from before a start.
    pub fn sweep(&self) -> std::io::Result<()> {
        let _alone = self.gate.write();
        let listed = self.blobs.list()?;
        let mut needed = self.needed.lock();
        let left: Vec<_> =
            listed.into_iter().map(|(name, _)| name).filter(|name| !needed.uses.contains_key(name)).collect();
        needed.unused.extend(left);
        Ok(())
    }

    /// Removes what came out of use; answers how many.
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
        for name in &unused {
            self.blobs.remove(*name)?;
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
