//! Large writes of a simulated node: blobs on its disk, spread and fetched over the simulated network. As in the
//! product they are deleted when no entry of its log names them, and unreferenced ones at a start.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::RangeBounds;
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_cluster_raft::{LargeError, LargeWrite, LargeWrites};
use assay_storage_blobs::BlobName;
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::sleep;

use super::process::SimProcess;
use super::world::SimWorld;

/// Low, so that small simulations have some.
pub const INLINE_BYTES_MAX: usize = 3 << 10;
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Large {
    pub world: Weak<SimWorld>,
    pub life: Weak<SimProcess>,
}

/// A process's records of the blobs on its disk.
#[derive(Debug, Default)]
pub struct BlobNames {
    by_entry: BTreeMap<(GroupId, u64), [u8; 32]>,
    held: HashMap<[u8; 32], usize>,
    /// Here ahead of their entries.
    expected: HashSet<[u8; 32]>,
}

impl BlobNames {
    fn needs(&self, hash: &[u8; 32]) -> bool {
        self.held.contains_key(hash)
            || self.expected.contains(hash)
            || self.by_entry.values().any(|named| named == hash)
    }

    /// Those that nothing needs any more.
    fn forget(&mut self, group: GroupId, indices: impl RangeBounds<u64>) -> Vec<[u8; 32]> {
        let gone = |(of, index): &(GroupId, u64)| *of == group && indices.contains(index);
        let places: Vec<_> = self.by_entry.keys().filter(|place| gone(place)).copied().collect();
        let hashes: Vec<_> = places.iter().filter_map(|place| self.by_entry.remove(place)).collect();
        hashes.into_iter().filter(|hash| !self.needs(hash)).collect()
    }
}

impl SimProcess {
    /// Deletes unreferenced blobs after a start, when all logs have reported their names.
    pub fn sweep_blobs(&self) {
        let Ok(listed) = self.blobs.list() else { return };
        let names = self.names.lock();
        let unnamed = listed.into_iter().map(|(name, _)| name).filter(|name| !names.needs(&name.0));
        self.remove_blobs(unnamed.map(|name| name.0).collect());
    }

    fn remove_blobs(&self, hashes: Vec<[u8; 32]>) {
        for hash in hashes {
            // A process that has just ended cannot; the next one sweeps.
            drop(self.blobs.remove(BlobName(hash)));
        }
    }
}

/// Keeps a blob until its entry names it.
struct Hold {
    life: Weak<SimProcess>,
    hash: [u8; 32],
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").finish_non_exhaustive()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(life) = self.life.upgrade() else { return };
        let mut names = life.names.lock();
        let held = names.held.entry(self.hash).or_default();
        *held = held.saturating_sub(1);
        if *held == 0 {
            names.held.remove(&self.hash);
        }
        if !names.needs(&self.hash) {
            drop(names);
            life.remove_blobs(vec![self.hash]);
        }
    }
}

fn failed(error: impl ToString) -> LargeError {
    LargeError::Failed(error.to_string())
}

impl Large {
    fn both(&self) -> Result<(std::sync::Arc<SimWorld>, std::sync::Arc<SimProcess>), LargeError> {
        let both = self.world.upgrade().zip(self.life.upgrade());
        both.ok_or_else(|| failed("the simulation has ended"))
    }
}

impl LargeWrites for Large {
    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }

    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError> {
        let life = self.both()?.1;
        let hash = BlobName::of(framed).0;
        *life.names.lock().held.entry(hash).or_default() += 1;
        let hold: Box<dyn Any + Send> = Box::new(Hold { life: Arc::downgrade(&life), hash });
        life.blobs.put(framed).map_err(failed)?;
        Ok(LargeWrite { hash, length: framed.len() as u64, hold })
    }

    fn spread(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        let both = self.both();
        async move {
            let (world, life) = both?;
            let framed = life.blobs.get(BlobName(hash), length).map_err(failed)?;
            let voters = others.len() + 1;
            let mut have = 1;
            let first = usize::try_from(world.dice.below(others.len() as u64)).unwrap_or(0);
            for node in others.iter().cycle().skip(first).take(others.len()) {
                if have > voters / 2 {
                    break; // as the product, which waits for no more; who lacks it then has to fetch it
                }
                let Some(there) = world.pass(&life, *node).await else { continue };
                there.names.lock().expected.insert(hash);
                let kept = there.blobs.put(&framed).is_ok();
                if kept && world.pass(&there, life.node).await.is_some() {
                    have += 1;
                }
            }
            if have > voters / 2 { Ok(()) } else { Err(LargeError::NoQuorum(format!("{have} of {voters} took it"))) }
        }
        .boxed()
    }

    fn ensure(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        let both = self.both();
        async move {
            let (world, life) = both?;
            while !life.is_dead() {
                if life.blobs.contains(BlobName(hash)).map_err(failed)? {
                    return Ok(());
                }
                // As the product: first those it is told of, then all that are known. A new replica is told of nobody.
                let known = world.nodes().into_iter().filter(|node| *node != life.node && !others.contains(node));
                for node in others.iter().copied().chain(known).collect::<Vec<_>>() {
                    let Some(there) = world.pass(&life, node).await else { continue };
                    let Ok(framed) = there.blobs.get(BlobName(hash), length) else { continue };
                    if world.pass(&there, life.node).await.is_some() {
                        life.blobs.put(&framed).map_err(failed)?;
                        return Ok(());
                    }
                }
                sleep(ASKED_AGAIN_AFTER).await;
            }
            Err(failed("the process has ended"))
        }
        .boxed()
    }

    fn expect(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        if let Some(life) = self.life.upgrade() {
            life.names.lock().expected.insert(hash);
        }
        self.ensure(hash, length, others)
    }

    fn named(&self, group: GroupId, index: u64, hash: [u8; 32]) {
        let Some(life) = self.life.upgrade() else { return };
        let mut names = life.names.lock();
        names.by_entry.insert((group, index), hash);
        names.expected.remove(&hash);
    }

    fn purged(&self, group: GroupId, index: u64) {
        let Some(life) = self.life.upgrade() else { return };
        let gone = life.names.lock().forget(group, ..=index);
        life.remove_blobs(gone);
    }

    fn truncated(&self, group: GroupId, index: u64) {
        let Some(life) = self.life.upgrade() else { return };
        let gone = life.names.lock().forget(group, index..);
        life.remove_blobs(gone);
    }
}
