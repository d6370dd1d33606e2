//! Large writes of a simulated node: blobs on its disk, spread and fetched over the simulated wires. None is taken away:
//! when they may be is another test's business.

use std::sync::Weak;
use std::time::Duration;

use assay_cluster_raft::{LargeError, LargeWrite, LargeWrites};
use assay_storage_blobs::BlobName;
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::sleep;

use super::life::Life;
use super::world::World;

/// Low, so that small simulations have some.
pub const INLINE_BYTES_MAX: usize = 3 << 10;
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Large {
    pub world: Weak<World>,
    pub life: Weak<Life>,
}

fn failed(error: impl ToString) -> LargeError {
    LargeError::Failed(error.to_string())
}

impl Large {
    fn both(&self) -> Result<(std::sync::Arc<World>, std::sync::Arc<Life>), LargeError> {
        let both = self.world.upgrade().zip(self.life.upgrade());
        both.ok_or_else(|| failed("the simulation has ended"))
    }
}

impl LargeWrites for Large {
    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }

    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError> {
        let name = self.both()?.1.blobs.put(framed).map_err(failed)?;
        Ok(LargeWrite { hash: name.0, length: framed.len() as u64, hold: Box::new(()) })
    }

    fn spread(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        let both = self.both();
        async move {
            let (world, life) = both?;
            let framed = life.blobs.get(BlobName(hash), length).map_err(failed)?;
            let mut have = 1;
            for node in &others {
                let Some(there) = world.pass(&life, *node).await else { continue };
                let kept = there.blobs.put(&framed).is_ok();
                if kept && world.pass(&there, life.node).await.is_some() {
                    have += 1;
                }
            }
            let voters = others.len() + 1;
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

    fn named(&self, _group: GroupId, _index: u64, _hash: [u8; 32]) {}

    fn purged(&self, _group: GroupId, _index: u64) {}

    fn truncated(&self, _group: GroupId, _index: u64) {}
}
