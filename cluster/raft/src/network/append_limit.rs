//! Limit of the appends in flight in consensus.
//!
//! Consensus handles appends one after the other and drops none, even if the sender gave up long before. While its log
//! stalls they would accumulate in memory. Their number is therefore limited here until consensus has answered them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::network::inbound::ReceiveError;
use crate::network::wire::{AppendOf, AppendedOf};
use crate::types::RaftOf;

/// Maximum number of concurrent heartbeats. They are small. A leader sends the next after 180 ms, or after 120 ms
/// without a response.
const HEARTBEATS_MAX: usize = 8;
/// Time that a message with entries waits for the previous one, which may be the same message sent twice.
const TURN_WAIT_MAX: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Appends {
    /// Permit for messages with entries, one at a time. Their order does not matter: each names its predecessor.
    with_entries: Arc<Semaphore>,
    heartbeats: Arc<Semaphore>,
}

impl Default for Appends {
    fn default() -> Self {
        let of = |places| Arc::new(Semaphore::new(places));
        Appends { with_entries: of(1), heartbeats: of(HEARTBEATS_MAX) }
    }
}

impl Appends {
    /// Passes an append to consensus. Continues when the caller no longer waits.
    pub async fn pass(&self, raft: &RaftOf, append: AppendOf) -> Result<AppendedOf, ReceiveError> {
        let turn = self.turn(!append.entries.is_empty()).await?;
        let raft = raft.clone();
        let passing = tokio::spawn(async move {
            let _turn = turn;
            raft.append_entries(append).await
        });
        let answered = passing.await.map_err(|error| ReceiveError::Stopped(error.to_string()))?;
        answered.map_err(|error| ReceiveError::Stopped(error.to_string()))
    }

    async fn turn(&self, has_entries: bool) -> Result<OwnedSemaphorePermit, ReceiveError> {
        let busy = || ReceiveError::Busy("this replica has not responded to earlier messages yet");
        if !has_entries {
            return Arc::clone(&self.heartbeats).try_acquire_owned().map_err(|_| busy());
        }
        match timeout(TURN_WAIT_MAX, Arc::clone(&self.with_entries).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}
