//! Prefetch of blobs. An entry is written to this replica's log only once the blob that it names is here.
//!
//! H1: a replica with an entry has its blob until the entry is purged. The receiver of an entry can therefore fetch the
//!     blob from the sender. No replica ever has to apply an entry whose blob is unavailable.
//!
//! The sender of a message with entries gives up after a moment and sends it again. Fetching continues meanwhile.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::NodeId;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use crate::write_path::large_writes::LargeWrites;

/// Time limit of one fetch of a blob. If the blob is still needed, fetching starts again.
const FETCH_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Ahead {
    large: Arc<dyn LargeWrites>,
    coming: Arc<Coming>,
}

#[derive(Debug, Default)]
struct Coming {
    hashes: Mutex<HashSet<[u8; 32]>>,
    ended: Notify,
}

impl Ahead {
    pub fn new(large: Arc<dyn LargeWrites>) -> Ahead {
        Ahead { large, coming: Arc::default() }
    }

    /// Returns whether the blob arrives within this time. Otherwise fetching continues.
    pub async fn is_here(&self, hash: [u8; 32], length: u64, others: &[NodeId], within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let ended = self.coming.ended.notified();
            let left = until.saturating_duration_since(Instant::now());
            if self.coming.hashes.lock().insert(hash) {
                let fetched = self.fetch(hash, length, others.to_vec());
                return matches!(timeout(left, fetched).await, Ok(Ok(true)));
            }
            if timeout(left, ended).await.is_err() {
                return false;
            }
        }
    }

    /// Fetches the blob. Continues without a waiting caller.
    fn fetch(&self, hash: [u8; 32], length: u64, others: Vec<NodeId>) -> oneshot::Receiver<bool> {
        let (sender, fetched) = oneshot::channel();
        let expected = self.large.expect(hash, length, others);
        let coming = Arc::clone(&self.coming);
        tokio::spawn(async move {
            let here = match timeout(FETCH_MAX, expected).await {
                Ok(Ok(())) => true,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a large write ahead of its entry");
                    false
                }
                Err(_) => false,
            };
            coming.hashes.lock().remove(&hash);
            coming.ended.notify_waiters();
            // Possibly nobody waits any more.
            let _ = sender.send(here);
        });
        fetched
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use assay_storage_model::GroupId;
    use bytes::Bytes;
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;
    use crate::write_path::large_writes::{LargeError, LargeWrite};

    /// Store without blobs until it is released.
    #[derive(Debug, Default)]
    struct Slow {
        asked: AtomicU32,
        arrives: Arc<Notify>,
    }

    impl LargeWrites for Slow {
        fn put(&self, _: &Bytes) -> Result<LargeWrite, LargeError> {
            panic!("nothing is written here")
        }

        fn spread(&self, _: [u8; 32], _: u64, _: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
            panic!("nothing is written here")
        }

        fn ensure(&self, _: [u8; 32], _: u64, _: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
            panic!("nothing is applied here")
        }

        fn expect(&self, _: [u8; 32], _: u64, from: Vec<NodeId>) -> BoxFuture<'static, Result<(), LargeError>> {
            assert_eq!(from, [NodeId(1)]);
            self.asked.fetch_add(1, Ordering::Relaxed);
            let arrives = Arc::clone(&self.arrives);
            async move {
                arrives.notified().await;
                Ok(())
            }
            .boxed()
        }

        fn named(&self, _: GroupId, _: u64, _: [u8; 32]) {}

        fn purged(&self, _: GroupId, _: u64) {}

        fn truncated(&self, _: GroupId, _: u64) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_blob_is_fetched_once_however_often_its_entry_is_sent() {
        let slow = Arc::new(Slow::default());
        let ahead = Arc::new(Ahead::new(Arc::clone(&slow) as Arc<dyn LargeWrites>));
        let within = Duration::from_millis(100);
        for _ in 0..3 {
            assert!(!ahead.is_here([1; 32], 9, &[NodeId(1)], within).await);
        }
        assert_eq!(slow.asked.load(Ordering::Relaxed), 1, "it goes on when nobody waits");
        slow.arrives.notify_one();
        tokio::task::yield_now().await;
        slow.arrives.notify_one(); // the next check finds it at once
        assert!(ahead.is_here([1; 32], 9, &[NodeId(1)], within).await);
        assert_eq!(slow.asked.load(Ordering::Relaxed), 2);
        assert!(ahead.coming.hashes.lock().is_empty());
    }
}
