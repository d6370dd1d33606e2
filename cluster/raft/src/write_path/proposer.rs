//! Proposer, which submits entries to consensus and reports their outcomes.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::command::Outcome;
use assay_storage_model::entry::{EntryBuilder, blob_entry};
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{NodeId, NotWritten, WriteFailure};
use bytes::Bytes;
use openraft::metrics::RaftServerMetrics;
use openraft::{LeaderId, ServerState};
use tokio::runtime::Handle;
use tokio::sync::{RwLock, oneshot, watch};
use tokio::time::sleep;

use crate::counters::Counters;
use crate::fatal::OnFatal;
use crate::sabotaged;
use crate::types::{EntryBytes, Home, RaftOf, Replica};
use crate::work::Work;
use crate::write_path::admission::Admission;
use crate::write_path::large_writes::{LargeError, LargeWrite, LargeWrites};

/// Time after the loss of the lead in which the next leader may still commit an entry in flight.
const ANSWERED_AFTER_LEAD: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct Proposer {
    pub raft: RaftOf,
    pub leading: watch::Receiver<RaftServerMetrics<Replica, Home>>,
    pub admission: Arc<Admission>,
    pub large: Arc<dyn LargeWrites>,
    pub counters: Arc<Counters>,
    pub runtime: Handle,
    pub work: Work,
    pub fatal: OnFatal,
    /// Gate that is held while an entry is in flight. A handover takes it exclusively.
    pub gate: Arc<RwLock<()>>,
}

impl std::fmt::Debug for Proposer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proposer").field("fatal", &self.fatal).finish_non_exhaustive()
    }
}

impl Proposer {
    /// Refuses a command that certainly cannot be written, before it is submitted.
    pub fn check(&self) -> Result<(), NotWritten> {
        if self.leading.borrow().state != ServerState::Leader {
            return Err(NotWritten::NotLeader);
        }
        self.admission.refusal().map_or(Ok(()), Err)
    }

    pub fn check_size(&self, bytes: usize) -> Result<(), NotWritten> {
        let limit = self.large.command_bytes_max();
        if bytes > limit { Err(NotWritten::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    /// Proposes an entry and returns the outcomes of its commands.
    ///
    /// After submission, any failure is an unknown outcome. An entry that this replica had to drop may still exist on
    /// another one and be committed there.
    pub async fn propose(&self, entry: Bytes, commands: usize, bytes: usize) -> Result<Vec<Outcome>, WriteFailure> {
        let _pass = self.gate.read().await;
        self.check()?; // behind the gate, so that writes held back by a handover are refused unwritten
        Counters::add(&self.counters.entries, 1);
        Counters::add(&self.counters.bytes, bytes as u64);
        let early = sabotage::is(Sabotage::AckBeforeQuorum).then(|| entry.clone());
        let leader = *self.leading.borrow().vote.leader_id();
        let written = tokio::select! {
            biased;
            written = sabotaged::written(early, self.raft.client_write(EntryBytes(entry))) => written,
            () = self.forgotten(leader) => {
                Counters::add(&self.counters.unknown, 1);
                return Err(WriteFailure::Unknown { why: "this replica lost the lead before the outcome was known".into() });
            }
        };
        let written = match written {
            Ok(written) => written,
            Err(hoped_for) => return Ok(hoped_for),
        };
        let why = match written {
            Ok(written) if written.data.len() == commands => {
                Counters::add(&self.counters.commands, commands as u64);
                return Ok(written.data);
            }
            Ok(written) => {
                let why = format!("{commands} commands returned {} outcomes", written.data.len());
                self.fatal.report(&why);
                why
            }
            Err(error) => error.to_string(),
        };
        Counters::add(&self.counters.unknown, 1);
        Err(WriteFailure::Unknown { why })
    }

    /// Returns some time after this replica ceased to lead in this term.
    ///
    /// openraft does not report an entry that was replaced by a snapshot, so its caller would wait forever.
    async fn forgotten(&self, leader: LeaderId<Replica>) {
        let mut leading = self.leading.clone();
        let is_over = |metrics: &RaftServerMetrics<Replica, Home>| {
            metrics.state != ServerState::Leader || *metrics.vote.leader_id() != leader
        };
        if leading.wait_for(is_over).await.map(drop).is_err() {
            // Consensus has stopped, and answers its own proposals.
            return std::future::pending().await;
        }
        sleep(ANSWERED_AFTER_LEAD).await;
    }

    /// Waits for the blob and proposes the entry that names it.
    pub async fn propose_large(
        &self,
        blob: oneshot::Receiver<Result<LargeWrite, LargeError>>,
        commands: usize,
    ) -> Result<Vec<Outcome>, WriteFailure> {
        let kept = blob.await.unwrap_or_else(|_| Err(LargeError::Failed("its thread has ended".into())));
        let LargeWrite { hash, length, hold } = kept.map_err(|error| self.not_kept(error))?;
        Counters::add(&self.counters.large, 1);
        let others = self.other_voters();
        if !others.is_empty() {
            // A majority must have the blob before the acknowledgement, because the entry only names it.
            self.large.spread(hash, length, others).await.map_err(|error| self.not_kept(error))?;
        }
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let result = self.propose(blob_entry(hash, length), commands, bytes).await;
        drop(hold); // from here on an entry names the blob, or none ever will
        result
    }

    fn other_voters(&self) -> Vec<NodeId> {
        let metrics = self.leading.borrow();
        let membership = metrics.membership_config.membership();
        let voters = membership.voter_ids().filter(|voter| *voter != metrics.id);
        let home = |voter: Replica| Some(NodeId(membership.get_node(&voter)?.node));
        voters.filter_map(home).collect()
    }

    fn not_kept(&self, error: LargeError) -> NotWritten {
        match error {
            LargeError::NoSpace(why) => NotWritten::NoSpace(why),
            LargeError::TooLarge(limit) => NotWritten::TooLarge { bytes: limit + 1, limit },
            LargeError::NoQuorum(why) => NotWritten::NoQuorum(why),
            LargeError::Failed(why) => {
                self.fatal.report(&why);
                NotWritten::Failed(why)
            }
        }
    }

    /// Starts to store commands as a blob, on a blocking thread of the runtime.
    pub fn keep_large(&self, commands: Vec<Bytes>) -> oneshot::Receiver<Result<LargeWrite, LargeError>> {
        let (sender, receiver) = oneshot::channel();
        let large = Arc::clone(&self.large);
        let keeping = move || {
            let mut framed = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
            commands.iter().for_each(|command| framed.push(command));
            drop(commands);
            large.put(&framed.finish())
        };
        let work = self.work.clone();
        self.runtime.spawn(async move {
            if let Ok(kept) = work.run(keeping).await {
                // At shutdown nobody may wait any more. The dropped hold then releases the blob.
                let _ = sender.send(kept);
            }
        });
        receiver
    }
}
