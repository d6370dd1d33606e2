//! Hands entries to consensus and says honestly what became of them.

use std::sync::Arc;

use assay_storage_model::ReplicaId;
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::{EntryBuilder, blob_entry};
use bytes::Bytes;
use openraft::ServerState;
use openraft::metrics::RaftServerMetrics;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::admission::Admission;
use crate::counters::Counters;
use crate::error::{NotWritten, ProposeError};
use crate::fatal::OnFatal;
use crate::large::{LargeError, LargeWrite, LargeWrites};
use crate::types::{EntryBytes, Home, RaftOf, Replica};

#[derive(Clone)]
pub(crate) struct Proposer {
    pub raft: RaftOf,
    pub leading: watch::Receiver<RaftServerMetrics<Replica, Home>>,
    pub admission: Arc<Admission>,
    pub large: Arc<dyn LargeWrites>,
    pub counters: Arc<Counters>,
    pub runtime: Handle,
    pub fatal: OnFatal,
}

impl std::fmt::Debug for Proposer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proposer").field("fatal", &self.fatal).finish_non_exhaustive()
    }
}

impl Proposer {
    /// Refuses what would surely not be written, before it is handed over.
    pub fn check(&self) -> Result<(), NotWritten> {
        let (leads, leader) = {
            let metrics = self.leading.borrow();
            (metrics.state == ServerState::Leader, metrics.current_leader)
        };
        if !leads {
            return Err(NotWritten::NotLeader { leader: leader.map(ReplicaId) });
        }
        self.admission.refusal().map_or(Ok(()), Err)
    }

    pub fn check_size(&self, bytes: usize) -> Result<(), NotWritten> {
        let limit = self.large.command_bytes_max();
        if bytes > limit { Err(NotWritten::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    /// The outcomes of an entry's commands. Once handed over, everything but success is unknown: also an entry that
    /// this replica was told to drop may live on at another and be committed there.
    pub async fn propose(&self, entry: Bytes, commands: usize, bytes: usize) -> Result<Vec<Outcome>, ProposeError> {
        self.check()?;
        Counters::add(&self.counters.entries, 1);
        Counters::add(&self.counters.bytes, bytes as u64);
        let why = match self.raft.client_write(EntryBytes(entry)).await {
            Ok(written) if written.data.len() == commands => {
                Counters::add(&self.counters.commands, commands as u64);
                return Ok(written.data);
            }
            Ok(written) => {
                let why = format!("{} outcomes came for {commands} commands", written.data.len());
                self.fatal.report(&why);
                why
            }
            Err(error) => error.to_string(),
        };
        Counters::add(&self.counters.unknown, 1);
        Err(ProposeError::Unknown { why })
    }

    /// Waits for the blob and proposes the entry that names it.
    pub async fn propose_large(
        &self,
        blob: oneshot::Receiver<Result<LargeWrite, LargeError>>,
        commands: usize,
    ) -> Result<Vec<Outcome>, ProposeError> {
        let kept = blob.await.unwrap_or_else(|_| Err(LargeError::Failed("its thread is gone".into())));
        let LargeWrite { hash, length, hold } = kept.map_err(|error| self.not_kept(error))?;
        Counters::add(&self.counters.large, 1);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let result = self.propose(blob_entry(hash, length), commands, bytes).await;
        drop(hold); // by now an entry names the blob, or none ever will
        result
    }

    fn not_kept(&self, error: LargeError) -> NotWritten {
        match error {
            LargeError::NoSpace(why) => NotWritten::NoSpace(why),
            LargeError::TooLarge(limit) => NotWritten::TooLarge { bytes: limit + 1, limit },
            LargeError::Failed(why) => {
                self.fatal.report(&why);
                NotWritten::Failed(why)
            }
        }
    }

    /// Starts to keep commands as a blob, on a blocking thread of the runtime.
    pub fn keep_large(&self, commands: Vec<Bytes>) -> oneshot::Receiver<Result<LargeWrite, LargeError>> {
        let (sender, receiver) = oneshot::channel();
        let large = Arc::clone(&self.large);
        self.runtime.spawn_blocking(move || {
            let mut framed = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
            commands.iter().for_each(|command| framed.push(command));
            drop(commands);
            // Whoever waited may be gone at shutdown; the hold in the answer then lets the blob go.
            let _ = sender.send(large.put(&framed.finish()));
        });
        receiver
    }
}
