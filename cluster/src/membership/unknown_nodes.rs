//! Vouchers for nodes that are missing in a node's catalog.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::{NoAnswer, Removed, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use crate::Shared;

pub(crate) const VOUCH: &str = "cluster.vouch";
/// Time limit of a request for a voucher.
const ASK_MAX: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);

/// Asks known nodes to vouch for the numbers of callers.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        sleep(LOOK).await;
        for node in shared.net.strangers().wanted() {
            let vouched = is_known_elsewhere(&shared, node).await;
            if !vouched {
                tracing::warn!(%node, "an unknown node presents a certificate of this cluster; it is refused");
            }
            shared.net.strangers().answered(node, vouched, Instant::now());
        }
    }
}

async fn is_known_elsewhere(shared: &Shared, node: NodeId) -> bool {
    let body = Bytes::copy_from_slice(&node.0.to_le_bytes());
    let known = Removed::of(&shared.catalog.read());
    let peers = shared.net.peers().into_iter().filter(|peer| *peer != node && known.vouches_for(*peer));
    let asked = peers.map(|peer| shared.net.ask(peer, VOUCH, body.clone(), ASK_MAX));
    futures::future::join_all(asked).await.into_iter().flatten().any(|answer| answer[..] == [1])
}

/// Service that vouches for the numbers in this node's catalog.
#[derive(Debug)]
pub(crate) struct VoucherService(pub Arc<Shared>);

impl Service for VoucherService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let bad = || NoAnswer::Refused("the request about a node cannot be decoded".into());
        let node = <[u8; 8]>::try_from(&body[..]).map(u64::from_le_bytes).map(NodeId).map_err(|_| bad());
        let answer = node.map(|node| {
            let knows = Removed::of(&self.0.catalog.read()).vouches_for(node);
            Bytes::copy_from_slice(&[u8::from(knows)])
        });
        async move { answer }.boxed()
    }
}
