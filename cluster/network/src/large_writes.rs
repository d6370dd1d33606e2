//! Large writes between nodes. A large write is on a majority of its group's nodes before its entry is proposed. The
//! leader sends it ahead, and a receiver keeps it until the entry comes, or for a minute. A node that lacks the blob when
//! the entry comes fetches it before the entry goes into the log. So a node with the entry has the blob until the entry
//! is purged, and provides it to others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_raft::{LargeError, LargeWrite, LargeWrites};
use assay_cluster_replicas::BlobWrites;
use assay_cluster_transport::{Call, CallError, RefusalCode};
use assay_storage_blobs::{BlobError, BlobName};
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::network::Network;
use crate::service::{NoAnswer, Service};

pub const PUT: &str = "blob.put";
pub const GET: &str = "blob.get";
/// One blob to or from another node.
const SPREAD_MAX: Duration = Duration::from_secs(15);
const FETCH_MAX: Duration = Duration::from_secs(30);
/// Interval after which a blob is sent again to a node without space for it.
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(50);
const FETCHED_AGAIN_AFTER: Duration = Duration::from_millis(200);
const TRIES_PER_WARNING: u32 = 50;
/// Attempts after which a node without known peers counts as alone; the addresses of others are known shortly after its
/// start.
const ALONE_TRIES_MAX: u32 = 25;

/// Large writes as consensus sees them; the count of uses is shared. Blobs of others come and go over the network.
#[derive(Clone, Debug)]
pub struct ClusterLargeWrites {
    pub writes: Arc<BlobWrites>,
    pub net: Network,
}

impl LargeWrites for ClusterLargeWrites {
    fn put(&self, framed: &Bytes) -> Result<LargeWrite, LargeError> {
        self.writes.put(framed).map_err(|error| match &error {
            BlobError::TooLarge { .. } => LargeError::TooLarge(self.command_bytes_max()),
            BlobError::Io(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                LargeError::NoSpace(error.to_string())
            }
            _ => LargeError::Failed(error.to_string()),
        })
    }

    fn spread(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        spread(Arc::clone(&self.writes), self.net.clone(), BlobName(hash), length, others).boxed()
    }

    fn ensure(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        ensure(Arc::clone(&self.writes), self.net.clone(), BlobName(hash), length, others).boxed()
    }

    fn expect(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
        let (writes, net) = (Arc::clone(&self.writes), self.net.clone());
        async move {
            loop {
                ensure(Arc::clone(&writes), net.clone(), BlobName(hash), length, others.clone()).await?;
                let here = Arc::clone(&writes);
                if blocking(move || here.expect_here(BlobName(hash))).await? {
                    return Ok(());
                }
            }
        }
        .boxed()
    }

    fn named(&self, group: GroupId, index: u64, hash: [u8; 32]) {
        self.writes.named(group, index, BlobName(hash));
    }

    fn purged(&self, group: GroupId, index: u64) {
        self.writes.purged(group, index);
    }

    fn truncated(&self, group: GroupId, index: u64) {
        self.writes.truncated(group, index);
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, LargeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(LargeError::Failed(error.to_string())),
        Err(error) => Err(LargeError::Failed(error.to_string())),
    }
}

async fn spread(
    writes: Arc<BlobWrites>,
    net: Network,
    name: BlobName,
    length: u64,
    others: Vec<NodeId>,
) -> Result<(), LargeError> {
    let missing = || LargeError::Failed("a blob that was just stored is missing".into());
    let body = blocking(move || writes.read(name, length)).await?.ok_or_else(missing)?;
    // This node has it: of the n + 1 voters as many others are needed as half of n, rounded up.
    let wanted = others.len().div_ceil(2);
    let mut sending: FuturesUnordered<_> = others
        .into_iter()
        .map(|node| {
            let net = net.clone();
            let body = body.clone();
            async move { put_to(net, node, body).await.map_err(|error| format!("node {node}: {error}")) }
        })
        .collect();
    let (mut taken, mut refusals) = (0, Vec::new());
    while taken < wanted {
        match sending.next().await {
            Some(Ok(_)) => taken += 1,
            Some(Err(why)) => refusals.push(why),
            None => return Err(LargeError::NoQuorum(refusals.join("; "))),
        }
    }
    Ok(())
}

/// Sends a blob to one other node. If that has no space for it now, it is sent again, within the time of one call.
async fn put_to(net: Network, node: NodeId, body: Bytes) -> Result<Bytes, CallError> {
    let began = Instant::now();
    loop {
        let within = SPREAD_MAX.saturating_sub(began.elapsed());
        let call = Call::new(PUT, body.clone(), within).in_bulk().repeatable();
        match net.call(node, call).await {
            Err(CallError::Refused(refusal))
                if refusal.code == RefusalCode::Busy && began.elapsed() + SENT_AGAIN_AFTER < SPREAD_MAX =>
            {
                tokio::time::sleep(SENT_AGAIN_AFTER).await;
            }
            answer => return answer,
        }
    }
}

fn wanted(name: BlobName, length: u64) -> Bytes {
    Bytes::from([&name.0[..], &length.to_le_bytes()].concat())
}

/// Fetches a blob from another node, for as long as it takes. Members of the group are tried first, then all other
/// nodes, since a replica that is new to its group does not have its membership yet.
///
/// One that is here and damaged is fetched like one that is not, and replaced: an entry that names it could not be applied,
/// which would end this node at each of its starts. Where there is no other node at all, that is how it has to be.
async fn ensure(
    writes: Arc<BlobWrites>,
    net: Network,
    name: BlobName,
    length: u64,
    others: Vec<NodeId>,
) -> Result<(), LargeError> {
    let (mut tries, mut alone) = (0_u32, 0_u32);
    loop {
        let here = Arc::clone(&writes);
        if blocking(move || here.is_sound(name)).await? {
            return Ok(());
        }
        let everybody = others.iter().copied().chain(net.peers().into_iter().filter(|node| !others.contains(node)));
        let everybody: Vec<NodeId> = everybody.collect();
        alone = if everybody.is_empty() { alone + 1 } else { 0 };
        if alone > ALONE_TRIES_MAX {
            let what = format!("the blob {name} is missing or damaged, and there is no other node that could have it");
            return Err(LargeError::Failed(what));
        }
        for node in everybody {
            let body = wanted(name, length);
            let call = Call::new(GET, body, FETCH_MAX).in_bulk().repeatable();
            let Ok(framed) = net.call(node, call).await else { continue };
            if framed.len() as u64 == length && BlobName::of(&framed) == name {
                let here = Arc::clone(&writes);
                blocking(move || here.replace(&framed)).await?;
                return Ok(());
            }
            tracing::warn!(%node, bytes = framed.len(), "another node sent a large write that does not match its name");
        }
        if tries.is_multiple_of(TRIES_PER_WARNING) {
            tracing::warn!(
                tries,
                nodes = net.peers().len(),
                "a large write is missing here, and no other node has provided it"
            );
        }
        tries = tries.saturating_add(1);
        tokio::time::sleep(FETCHED_AGAIN_AFTER).await;
    }
}

/// Answers for the blobs of this node, and takes those that other nodes send ahead.
#[derive(Debug)]
pub enum BlobService {
    Put(Arc<BlobWrites>),
    Get(Arc<BlobWrites>),
}

impl Service for BlobService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let refused = |error: LargeError| NoAnswer::Refused(error.to_string());
        match self {
            BlobService::Put(writes) => {
                let writes = Arc::clone(writes);
                async move { blocking(move || writes.expect(&body)).await.map(|()| Bytes::new()).map_err(refused) }
                    .boxed()
            }
            BlobService::Get(writes) => {
                let writes = Arc::clone(writes);
                async move {
                    let bad = || NoAnswer::Refused("the name of a blob has 32 bytes, its length 8".into());
                    let (name, length) = body.split_first_chunk::<32>().ok_or_else(bad)?;
                    let (name, length) = (BlobName(*name), length.try_into().map_err(|_| bad())?);
                    let found = blocking(move || writes.read(name, u64::from_le_bytes(length))).await;
                    found.map_err(refused)?.ok_or_else(|| NoAnswer::Refused("it is not here".into()))
                }
                .boxed()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    use assay_cluster_transport::{Handlers, Received, Refusal};
    use assay_storage_blobs::Blobs;
    use assay_storage_disk::SimulatedDisk;

    use super::*;
    use crate::network::tests::{OTHER, with_other};

    fn writes() -> Arc<BlobWrites> {
        let blobs = Blobs::open(Arc::new(SimulatedDisk::new()), Path::new("/blobs")).expect("opens");
        BlobWrites::new(Arc::new(blobs))
    }

    /// Its entry could not be applied, which ended the node at every start, although others had it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_damaged_blob_is_fetched_again_from_another_node() {
        const CONTENT: &[u8] = b"large enough";
        let disk = SimulatedDisk::new();
        let open = || Blobs::open(Arc::new(disk.clone()), Path::new("/blobs")).expect("opens");
        let name = open().put(CONTENT).expect("puts");
        let path = Path::new("/blobs").join(&name.to_string()[..2]).join(name.to_string());
        disk.flip_bit(&path, 9).expect("flips");
        let asked = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&asked);
        let answer = move |_: Received| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Refusal>(Bytes::from_static(CONTENT)) }
        };
        let (net, _other) = with_other(Handlers::new().call(GET, Arc::new(answer)));
        let length = CONTENT.len() as u64;
        let large_writes = ClusterLargeWrites { writes: BlobWrites::new(Arc::new(open())), net };
        assert!(large_writes.writes.read(name, length).is_err());
        for _ in 0..2 {
            large_writes.ensure(name.0, length, vec![OTHER]).await.expect("fetches");
            assert_eq!(large_writes.writes.read(name, length).expect("is whole").as_deref(), Some(CONTENT));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(open().get(name, length).expect("stays whole"), CONTENT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_alone_says_that_a_blob_is_damaged_and_does_not_wait() {
        let writes = writes();
        let name = BlobName::of(b"nowhere");
        let large_writes = ClusterLargeWrites { writes, net: Network::default() };
        let Err(LargeError::Failed(why)) = large_writes.ensure(name.0, 7, Vec::new()).await else {
            panic!("it is not there")
        };
        assert!(why.contains("no other node"), "{why}");
    }
}
