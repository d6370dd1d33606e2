//! Receipt of messages from the other replicas of a group.
//!
//! Each message is decoded and passed to consensus, and the response is encoded.
//!
//! A follower that applies more slowly than it receives entries delays its sender before it accepts more. This bounds
//! the bytes that wait for apply, and the memory that a seal has yet to free.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{NodeId, ReplicaId};
use bytes::Bytes;
use openraft::ServerState;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use crate::apply::backlog::Lag;
use crate::apply::machine::{BadSnapshot, Machine};
use crate::counters::Counters;
use crate::error::FenceError;
use crate::leadership::elections::Elections;
use crate::log::encoding::BadRecord;
use crate::log::log_store::LogStore;
use crate::membership::hard_state::LogPlace;
use crate::network::append_limit::Appends;
use crate::network::blob_prefetch::Ahead;
use crate::network::peers::{Chunks, FileWanted, MessageKind, PeerError, Peers, Way};
use crate::network::wire::{self, AppendOf};
use crate::reads::fence::Fences;
use crate::reads::read_index::ReadIndex;
use crate::snapshot_transfer::exports::Exports;
use crate::snapshot_transfer::imports::{FetchError, Incoming};
use crate::timing::Timing;
use crate::types::{EntryOf, LogIdOf, RaftOf, SnapshotFiles, SnapshotOf, snapshot_meta};
use crate::write_path::admission::Admission;
use crate::write_path::large_writes::blob_named;

/// Time that a message with entries waits for each resource. After a failure its sender pauses for a moment.
const SPACE_WAIT_MAX: Duration = Duration::from_millis(100);
/// Margin after the end of the previous leader's lease, so that no voter is bound to it any more.
const AFTER_LEASE: Duration = Duration::from_millis(20);
const ELECTIONS_MAX: u32 = 4;

/// Reason for the refusal of a message. The text is sent to the sender.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReceiveError {
    #[error("the message cannot be decoded: {0}")]
    Malformed(String),
    #[error("busy: {0}")]
    Busy(&'static str),
    #[error("this replica does not lead its group")]
    NotLeader { leader: Option<ReplicaId> },
    /// The snapshot differs from what the sender wrote, so the sender must check its replica.
    #[error("a damaged snapshot: {0}")]
    Damaged(String),
    /// The leader's log contradicts the entries committed here, so this replica must not continue.
    #[error("another history: {0}")]
    OtherHistory(String),
    #[error("{0}")]
    Failed(String),
    #[error("the group has stopped: {0}")]
    Stopped(String),
}

impl From<BadRecord> for ReceiveError {
    fn from(error: BadRecord) -> Self {
        ReceiveError::Malformed(error.to_string())
    }
}

impl From<FetchError> for ReceiveError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Peer(error) => ReceiveError::Failed(format!("cannot fetch a snapshot: {error}")),
            FetchError::Bad(BadSnapshot::Damaged(what)) => ReceiveError::Damaged(what),
            other => ReceiveError::Failed(other.to_string()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Inbound {
    pub log: LogStore,
    pub lag: Arc<Lag>,
    pub appends: Appends,
    pub exports: Exports,
    pub peers: Arc<dyn Peers>,
    pub admission: Arc<Admission>,
    pub ahead: Ahead,
    pub machine: Arc<dyn Machine>,
    pub counters: Arc<Counters>,
    /// Lock that allows one snapshot at a time.
    pub incoming: Arc<Mutex<Incoming>>,
    pub timing: Timing,
    pub elections: Arc<Elections>,
}

impl Inbound {
    pub async fn receive(
        &self,
        raft: &RaftOf,
        (asked, read_index): (&Fences, &Arc<ReadIndex>),
        way: Way,
        kind: MessageKind,
        body: Bytes,
    ) -> Result<Bytes, ReceiveError> {
        let stopped = |why: String| ReceiveError::Stopped(why);
        match kind {
            MessageKind::Append => {
                let append = wire::decode_append(&body)?;
                if self.log.vote().is_none_or(|vote| vote <= append.vote) {
                    self.elections.note_leader();
                }
                self.check_history(&append).await?;
                self.make_room(!append.entries.is_empty()).await?;
                self.have_blobs(raft, way, &append.entries).await?;
                self.appends.pass(raft, append).await.map(|answer| wire::encode_appended(&answer))
            }
            MessageKind::Vote => {
                let request = wire::decode_vote_request(&body)?;
                let answer = raft.vote(request).await.map_err(|error| stopped(error.to_string()))?;
                Ok(wire::encode_voted(&answer))
            }
            MessageKind::Snapshot => self.snapshot(raft, way, &body).await,
            MessageKind::ReadIndex => {
                let metrics = raft.server_metrics().borrow().clone();
                if metrics.state != ServerState::Leader {
                    return Err(ReceiveError::NotLeader {
                        leader: self.elections.leader(metrics.id, metrics.current_leader),
                    });
                }
                drop(metrics);
                match asked.wait_as_leader(read_index).await {
                    Ok(index) => Ok(wire::encode_read_index(Some(index))),
                    Err(FenceError::NotLeader { leader }) => Err(ReceiveError::NotLeader { leader }),
                    Err(error) => Err(ReceiveError::Failed(error.to_string())),
                }
            }
            MessageKind::TakeOver => take_over(raft, self.timing).await,
            MessageKind::PreVote => {
                let candidate_last = wire::decode_pre_vote(&body)?;
                Ok(wire::encode_pre_voted(self.elections.pre_vote(candidate_last, raft, &self.log)))
            }
        }
    }

    pub async fn read_export(&self, wanted: FileWanted) -> Result<Chunks, PeerError> {
        self.exports.read(wanted).await
    }

    /// Refuses an append of a leader that lacks entries committed here.
    ///
    /// Consensus assumes that every entry below its committed position is equal. It stops the process when the leader
    /// then commits less than this replica has applied.
    async fn check_history(&self, append: &AppendOf) -> Result<(), ReceiveError> {
        let last = self.log.last();
        let follows =
            append.prev_log_id.is_some_and(|prev| last.is_none_or(|last| prev == last || prev.index > last.index));
        if follows || last.is_none() || self.log.vote().is_some_and(|vote| append.vote < vote) {
            return Ok(());
        }
        let applied = self.machine.applied().position.map(crate::types::log_id_of);
        let Some(committed) = self.log.committed().max(applied) else { return Ok(()) };
        let mut named = append.entries.iter().rev().map(|entry| entry.log_id).chain(append.prev_log_id);
        // Two logs that agree on one entry agree on all before it, so the last one suffices. Reading each of them takes
        // longer than the leader waits.
        let Some(id) = named.find(|id| id.index <= committed.index) else { return Ok(()) };
        let here = match id.index == committed.index {
            true => Some(committed),
            false => {
                let read = self.log.id_at(id.index).await;
                read.map_err(|error: std::io::Error| ReceiveError::Failed(error.to_string()))?
            }
        };
        if here.is_some_and(|here| here != id) || id.leader_id.term > committed.leader_id.term {
            return Err(other_history(committed, id));
        }
        Ok(())
    }

    async fn make_room(&self, has_entries: bool) -> Result<(), ReceiveError> {
        if !has_entries {
            return Ok(()); // heartbeats pass, because otherwise a slow follower would begin elections
        }
        if !self.lag.wait_for_space(SPACE_WAIT_MAX).await {
            return Err(ReceiveError::Busy("this replica has too many entries that are not applied yet"));
        }
        if !self.admission.memory_is_open(SPACE_WAIT_MAX).await {
            return Err(ReceiveError::Busy("this node is out of memory for writes"));
        }
        Ok(())
    }

    async fn have_blobs(&self, raft: &RaftOf, way: Way, entries: &[EntryOf]) -> Result<(), ReceiveError> {
        for (hash, length) in entries.iter().filter_map(|entry| blob_named(&entry.payload)) {
            let others = others_of(raft, way);
            if !self.ahead.is_here(hash, length, &others, SPACE_WAIT_MAX).await {
                return Err(ReceiveError::Busy("a large write has not arrived yet"));
            }
        }
        Ok(())
    }

    async fn snapshot(&self, raft: &RaftOf, way: Way, body: &[u8]) -> Result<Bytes, ReceiveError> {
        let stopped = |why: String| ReceiveError::Stopped(why);
        let offer = wire::decode_offer(body)?;
        let mut incoming = Arc::clone(&self.incoming).lock_owned().await;
        let vote = raft.with_raft_state(|state| *state.vote_ref()).await.map_err(|error| stopped(error.to_string()))?;
        let applied = self.machine.applied().position.map(crate::types::log_id_of);
        let offered = offer.applied.position.map(crate::types::log_id_of);
        if let (Some(applied), Some(offered)) = (applied, offered)
            && offer.vote >= vote
            && offered > applied
            && offered.index <= applied.index
        {
            return Err(other_history(applied, offered));
        }
        if offer.vote < vote || offered <= applied {
            let newer = if offer.vote < vote { vote } else { offer.vote };
            return Ok(wire::encode_installed(&newer)); // nothing to fetch
        }
        if incoming.refused_lately(way.to) {
            return Err(ReceiveError::Busy("the last snapshot of this replica was unusable; retry later"));
        }
        tracing::info!(group = %way.group, from = %way.to, files = offer.files.len(), "fetching a snapshot");
        let fetched = incoming.fetch(&*self.peers, way, &offer).await?;
        let meta = snapshot_meta(&offer.applied)?;
        // A separate task keeps the files until it ends, because the sender may stop waiting and send another snapshot.
        let (raft, vote, machine) = (raft.clone(), offer.vote, Arc::clone(&self.machine));
        let installing = tokio::spawn(async move {
            incoming.check(machine, way, &fetched).await?;
            let files = SnapshotFiles::Fetched { applied: offer.applied, kept: fetched.kept, incoming: fetched.dir };
            let snapshot = SnapshotOf { meta, snapshot: Box::new(files) };
            let answer =
                raft.install_full_snapshot(vote, snapshot).await.map_err(|error| stopped(error.to_string()))?;
            // The files were moved into place, or are not needed. If consensus stopped, they may still be moved, and
            // the next start sweeps the remains.
            incoming.sweep().await.map_err(|error| ReceiveError::Failed(error.to_string()))?;
            Ok::<_, ReceiveError>(answer)
        });
        let answer = installing.await.map_err(|error| stopped(error.to_string()))??;
        Counters::add(&self.counters.snapshots, 1);
        Ok(wire::encode_installed(&answer.vote))
    }
}

fn other_history(committed: LogIdOf, leaders: LogIdOf) -> ReceiveError {
    let [committed, leaders] = [committed, leaders].map(|id| LogPlace::of(crate::types::position_of(&id)));
    ReceiveError::OtherHistory(format!("{committed} is committed here, but the leader has {leaders}"))
}

/// Makes this replica lead, and responds with its term once it leads.
///
/// The previous leader has stopped its heartbeats and holds new writes back.
async fn take_over(raft: &RaftOf, timing: Timing) -> Result<Bytes, ReceiveError> {
    let stopped = |why: String| ReceiveError::Stopped(why);
    sleep(timing.election_max + AFTER_LEASE).await;
    let mut metrics = raft.server_metrics();
    for _ in 0..ELECTIONS_MAX {
        raft.trigger().elect().await.map_err(|error| stopped(error.to_string()))?;
        let leads = metrics.wait_for(|metrics| metrics.state == ServerState::Leader);
        let leads = timeout(timing.election_wait(), leads).await;
        if let Ok(Ok(leads)) = leads {
            return Ok(wire::encode_taken_over(leads.vote.leader_id.term));
        }
    }
    Err(ReceiveError::Failed("this replica was not elected by a majority".into()))
}

/// Returns the sender's node, then the nodes of the other known members.
fn others_of(raft: &RaftOf, way: Way) -> Vec<NodeId> {
    let metrics = raft.server_metrics();
    let metrics = metrics.borrow();
    let homes = metrics.membership_config.membership().nodes();
    let others = homes.filter(|(replica, _)| **replica != metrics.id).map(|(_, home)| NodeId(home.node));
    std::iter::once(way.node).chain(others.filter(|node| *node != way.node)).collect()
}

/// Returns the node of a replica, if it is a known member of the group.
pub(crate) fn node_of(raft: &RaftOf, replica: ReplicaId) -> Option<NodeId> {
    let metrics = raft.server_metrics();
    let metrics = metrics.borrow();
    metrics.membership_config.membership().get_node(&replica.0).map(|home| NodeId(home.node))
}
