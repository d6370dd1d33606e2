//! Large writes as blobs, and which of them are still needed: those that an entry of some group's log names, and those
//! that are on their way there. The others go, from the upkeep's thread.
//!
//! Nothing of this is on disk: a start learns the names from the log, then sweeps what none of them is.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_cluster_raft::{LargeError, LargeWrite, LargeWrites};
use assay_storage_blobs::{BlobError, BlobName, Blobs};
use assay_storage_model::GroupId;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

#[derive(Debug)]
pub(crate) struct BlobWrites {
    blobs: Arc<Blobs>,
    needed: Mutex<Needed>,
    /// Putting takes it shared, removing alone: a blob must not go while the same content is put again.
    gate: RwLock<()>,
}

#[derive(Debug, Default)]
struct Needed {
    by_entry: BTreeMap<(GroupId, u64), BlobName>,
    /// By how many entries and holds.
    uses: HashMap<BlobName, usize>,
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

impl Drop for Hold {
    fn drop(&mut self) {
        self.writes.needed.lock().give_back(self.name);
    }
}

/// What consensus is given; the count of uses is shared.
#[derive(Clone, Debug)]
pub(crate) struct LargeDoor(pub Arc<BlobWrites>);

impl BlobWrites {
    pub fn new(blobs: Arc<Blobs>) -> Arc<BlobWrites> {
        Arc::new(BlobWrites { blobs, needed: Mutex::default(), gate: RwLock::default() })
    }

    /// After a start: blobs that no entry names are left over from before.
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

impl LargeWrites for LargeDoor {
    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError> {
        let _shared = self.0.gate.read();
        let name = BlobName::of(framed);
        self.0.needed.lock().take(name);
        let hold: Box<dyn Any + Send> = Box::new(Hold { writes: Arc::clone(&self.0), name });
        self.0.blobs.put(framed).map_err(|error| match &error {
            BlobError::TooLarge { .. } => LargeError::TooLarge(self.command_bytes_max()),
            BlobError::Io(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                LargeError::NoSpace(error.to_string())
            }
            _ => LargeError::Failed(error.to_string()),
        })?;
        Ok(LargeWrite { hash: name.0, length: framed.len() as u64, hold })
    }

    fn named(&self, group: GroupId, index: u64, hash: [u8; 32]) {
        let mut needed = self.0.needed.lock();
        needed.take(BlobName(hash));
        if let Some(before) = needed.by_entry.insert((group, index), BlobName(hash)) {
            needed.give_back(before);
        }
    }

    fn purged(&self, group: GroupId, index: u64) {
        self.0.needed.lock().forget(group, ..=index);
    }

    fn truncated(&self, group: GroupId, index: u64) {
        self.0.needed.lock().forget(group, index..);
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
        let door = LargeDoor(Arc::clone(&writes));
        let written = door.put(&Bytes::from_static(b"large")).expect("puts");
        let name = BlobName(written.hash);
        door.named(GROUP, 3, written.hash);
        drop(written.hold);
        writes.sweep().expect("sweeps");
        assert_eq!(writes.collect().expect("collects"), 0);
        door.named(GROUP, 3, name.0);
        door.purged(GROUP, 2);
        assert_eq!(writes.collect().expect("collects"), 0);
        door.purged(GROUP, 3);
        assert_eq!(writes.collect().expect("collects"), 1);
        assert!(!writes.blobs.contains(name).expect("looks"));
    }

    #[test]
    fn what_nobody_names_after_a_start_goes() {
        let writes = writes();
        writes.blobs.put(b"left over").expect("puts");
        writes.sweep().expect("sweeps");
        assert_eq!(writes.collect().expect("collects"), 1);
    }
}
