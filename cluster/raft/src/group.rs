//! One replica of one group on this node: what it takes to start it, and the handle that everyone holds.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_storage_log::GroupLog;
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::{ENTRY_BYTES_MAX, EntryBuilder};
use assay_storage_model::{Applied, GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use openraft::{Config, ServerState, SnapshotPolicy};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::timeout;

use crate::admission::Admission;
use crate::apply::{AppliedNext, Applier, ApplyThread};
use crate::cache::CacheBudget;
use crate::committer::{Committer, Pending};
use crate::counters::Counters;
use crate::error::{FenceError, NotWritten, ProposeError, SealError};
use crate::fatal::OnFatal;
use crate::fence::Fences;
use crate::journal::Journal;
use crate::large::LargeWrites;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::network::NoPeers;
use crate::proposer::Proposer;
use crate::seal::SealThreads;
use crate::state_machine::{SealsEnded, StateMachine};
use crate::types::{self, Home, LogIdOf, RaftOf};

/// Decision 1: apart enough from each other that a slow fsync makes no election.
pub const HEARTBEAT: Duration = Duration::from_millis(120);
pub const ELECTION_MIN: Duration = Duration::from_millis(400);
pub const ELECTION_MAX: Duration = Duration::from_millis(700);
/// How long a snapshot may take to reach a follower.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(600);
/// Entries one message to a follower carries at most; bytes are bounded apart from that.
const ENTRIES_PER_MESSAGE_MAX: u64 = 64;
/// Proposals of one group that do not go through its committer and are under way at once.
pub const PROPOSALS_IN_FLIGHT_MAX: usize = 8;

/// A seal that has not ended by then is asked for again.
const SEAL_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What all groups of a node share.
#[derive(Clone, Debug)]
pub struct NodeParts {
    pub cluster_name: String,
    /// Where consensus runs; its threads are named for it.
    pub runtime: Handle,
    pub cache: CacheBudget,
    pub seals: SealThreads,
    pub admission: Arc<Admission>,
    pub counters: Arc<Counters>,
    pub fatal: OnFatal,
}

/// Whether a group is made now or was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Founding {
    /// This is the group's first start; these are its first members.
    Now(Vec<(ReplicaId, NodeId)>),
    /// The group was there: an empty log would mean that it was lost.
    Before,
}

#[derive(Clone, Debug)]
pub struct GroupConfig {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub founding: Founding,
    pub log: GroupLog,
    pub machine: Arc<dyn Machine>,
    pub large: Arc<dyn LargeWrites>,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(
        "group {0}: its log is gone. Restore the data directory from a backup; on a cluster, let this node join anew"
    )]
    LogGone(GroupId),
    #[error(
        "group {group}: its log ends at {last} and its state is at {sealed}, so entries that were acknowledged are \
         missing. Restore the data directory from a backup; on a cluster, let this node join anew"
    )]
    LogBehind { group: GroupId, last: u64, sealed: u64 },
    #[error("group {group}: {source}")]
    Io { group: GroupId, source: io::Error },
    #[error("group {group}: {why}")]
    Consensus { group: GroupId, why: String },
}

/// A running replica. Dropping it without [`Group::shutdown`] is as safe as a crash.
#[derive(Clone)]
pub struct Group {
    shared: Arc<Shared>,
}

struct Shared {
    group: GroupId,
    raft: RaftOf,
    machine: Arc<dyn Machine>,
    proposer: Proposer,
    committer: Committer,
    fences: Fences,
    log: LogStore,
    apply_thread: ApplyThread,
    seals_ended: watch::Receiver<SealsEnded>,
    /// One seal of a group at a time, so that an answer is of a seal that began after the question.
    sealing: Mutex<()>,
    in_flight: Arc<Semaphore>,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").field("group", &self.shared.group).finish_non_exhaustive()
    }
}

impl Group {
    /// Applies again what was committed since the last seal, and returns when consensus runs.
    pub async fn start(config: GroupConfig, node: NodeParts) -> Result<Group, StartError> {
        let group = config.group;
        let runtime = node.runtime.clone();
        // Consensus spawns its tasks where it is started, so that must be its own runtime.
        let started = runtime.spawn(start(config, node)).await;
        started.unwrap_or_else(|error| Err(StartError::Consensus { group, why: error.to_string() }))
    }

    pub fn id(&self) -> GroupId {
        self.shared.group
    }

    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.shared.machine
    }

    /// Whether this replica leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.shared.proposer.leading.borrow().state == ServerState::Leader
    }

    /// Returns when this replica leads and has applied everything that was committed.
    pub async fn lead(&self) -> Result<(), FenceError> {
        let mut leading = self.shared.proposer.leading.clone();
        let stopped = || FenceError::Stopped("it shut down meanwhile".into());
        leading.wait_for(|metrics| metrics.state == ServerState::Leader).await.map_err(|_| stopped())?;
        self.fence().await.map(|_| ())
    }

    /// Takes a command in for the next entry; entries keep the order of these calls.
    pub fn submit(&self, command: Bytes) -> Result<Pending, NotWritten> {
        self.shared.committer.submit(command)
    }

    /// [`Group::submit`], and its outcome.
    pub async fn write(&self, command: Bytes) -> Result<Outcome, ProposeError> {
        self.submit(command)?.outcome().await
    }

    /// One entry of these commands, beside what the committer does. Goes on when the caller no longer waits.
    pub async fn propose(&self, commands: Vec<Bytes>) -> Result<Vec<Outcome>, ProposeError> {
        let proposer = self.shared.proposer.clone();
        if commands.is_empty() {
            return Err(NotWritten::Empty.into());
        }
        proposer.check()?;
        let permit = Arc::clone(&self.shared.in_flight).try_acquire_owned();
        let permit = permit.map_err(|_| {
            Counters::add(&proposer.counters.busy, 1);
            NotWritten::Busy("too many proposals are under way")
        })?;
        let proposed = proposer.runtime.clone().spawn(async move {
            let _permit = permit;
            propose(&proposer, commands).await
        });
        let lost = |error: tokio::task::JoinError| ProposeError::Unknown { why: error.to_string() };
        proposed.await.unwrap_or_else(|error| Err(lost(error)))
    }

    /// Returns when this replica has applied everything that was acknowledged before the call; answers that index.
    pub async fn fence(&self) -> Result<u64, FenceError> {
        self.shared.fences.wait(&self.shared.raft).await
    }

    /// Makes everything applied before the call durable without the log, which is then purged up to there.
    pub async fn seal(&self) -> Result<Applied, SealError> {
        let _one = self.shared.sealing.lock().await;
        let mut ended = self.shared.seals_ended.clone();
        let before = ended.borrow_and_update().count;
        let stopped = |why: String| SealError::Stopped(why);
        let gone = || stopped("it shut down meanwhile".into());
        // Consensus ignores a trigger while it still tidies up after the seal before, which has been reported by then;
        // and one that comes during this seal. So asking again is needed sometimes and harmless always.
        let last = loop {
            self.shared.raft.trigger().snapshot().await.map_err(|fatal| stopped(fatal.to_string()))?;
            match timeout(SEAL_ASKED_AGAIN_AFTER, ended.wait_for(|ended| ended.count > before)).await {
                Ok(ended) => break ended.map_err(|_| gone())?.last.clone(),
                Err(_) => continue,
            }
        };
        match last {
            Some(Ok(applied)) => {
                Counters::add(&self.shared.proposer.counters.seals, 1);
                Ok(applied)
            }
            Some(Err(why)) if self.shared.proposer.fatal.was_reported() => Err(SealError::Stopped(why)),
            Some(Err(why)) => Err(SealError::NoSpace(why)),
            None => Err(gone()),
        }
    }

    /// Entries in the log that are not sealed yet.
    pub fn unsealed_entries(&self) -> u64 {
        let applied = self.shared.machine.applied().position.map_or(0, |position| position.index + 1);
        let kept = self.shared.log.first_index();
        applied.saturating_sub(kept)
    }

    /// Nothing more is taken in; what was taken in is answered; then consensus stops.
    pub async fn shutdown(&self) {
        self.shared.committer.close().await;
        // Errors of a core that stopped before are in the log already.
        let _ = self.shared.raft.shutdown().await;
    }

    /// For after [`Group::shutdown`], or after its runtime was shut down.
    pub fn apply_thread(&self) -> ApplyThread {
        self.shared.apply_thread.clone()
    }
}

async fn propose(proposer: &Proposer, commands: Vec<Bytes>) -> Result<Vec<Outcome>, ProposeError> {
    let bytes: usize = commands.iter().map(Bytes::len).sum();
    let inline_max = proposer.large.inline_bytes_max();
    let large = commands.iter().any(|command| command.len() > inline_max) || bytes > ENTRY_BYTES_MAX.max(inline_max);
    proposer.check_size(bytes)?;
    proposer.admission.pass(bytes).await?;
    if large {
        let count = commands.len();
        return proposer.propose_large(proposer.keep_large(commands), count).await;
    }
    let mut entry = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
    commands.iter().for_each(|command| entry.push(command));
    proposer.propose(entry.finish(), commands.len(), bytes).await
}

fn consensus_config(cluster_name: &str) -> Config {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).expect("short");
    Config {
        cluster_name: cluster_name.to_owned(),
        heartbeat_interval: millis(HEARTBEAT),
        election_timeout_min: millis(ELECTION_MIN),
        election_timeout_max: millis(ELECTION_MAX),
        install_snapshot_timeout: millis(SNAPSHOT_TIMEOUT),
        max_payload_entries: ENTRIES_PER_MESSAGE_MAX,
        // The upkeep says when: it knows bytes, age and what pins the log, consensus counts entries only.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 0,
        ..Config::default()
    }
}

async fn start(config: GroupConfig, node: NodeParts) -> Result<Group, StartError> {
    let GroupConfig { group, replica, founding, log, machine, large } = config;
    let io_failed = |source| StartError::Io { group, source };
    let stopped = |why: String| StartError::Consensus { group, why };
    let journal = Journal::new(log, node.fatal.clone());
    let log = LogStore::open(group, journal, Arc::clone(&large), node.cache.clone()).await.map_err(io_failed)?;
    check_log(group, replica, &founding, &log, &*machine)?;

    let next = machine.applied().position.map_or(0, |position| position.index + 1);
    let applied: Arc<AppliedNext> = Arc::new(watch::Sender::new(next));
    let (applier, apply_thread) =
        Applier::start(group, Arc::clone(&machine), Arc::clone(&applied), node.fatal.clone()).map_err(io_failed)?;
    let seals_ended = Arc::new(watch::Sender::new(SealsEnded::default()));
    let serving = Arc::new(AtomicBool::new(false));
    let state_machine = StateMachine {
        group,
        machine: Arc::clone(&machine),
        applier,
        applied: Arc::clone(&applied),
        seals: node.seals.clone(),
        seals_ended: Arc::clone(&seals_ended),
        serving: Arc::clone(&serving),
        fatal: node.fatal.clone(),
    };
    let consensus =
        Arc::new(consensus_config(&node.cluster_name).validate().map_err(|error| stopped(error.to_string()))?);
    let raft = RaftOf::new(replica.0, consensus, NoPeers, log.clone(), state_machine).await;
    let raft = raft.map_err(|fatal| stopped(fatal.to_string()))?;
    if let Founding::Now(members) = founding
        && !raft.is_initialized().await.map_err(|fatal| stopped(fatal.to_string()))?
    {
        let members: BTreeMap<_, _> = members.iter().map(|(id, node)| (id.0, Home { node: node.0 })).collect();
        raft.initialize(members).await.map_err(|error| stopped(error.to_string()))?;
    }
    serving.store(true, Ordering::Release);

    let leading = raft.server_metrics();
    let NodeParts { runtime, admission, counters, fatal, .. } = node;
    let fences = Fences::new(applied.subscribe(), runtime.clone(), Arc::clone(&counters));
    let proposer = Proposer { raft: raft.clone(), leading, admission, large, counters, runtime, fatal };
    let committer = Committer::start(proposer.clone());
    let (seals_ended, in_flight) = (seals_ended.subscribe(), Arc::new(Semaphore::new(PROPOSALS_IN_FLIGHT_MAX)));
    let sealing = Mutex::default();
    let shared = Shared {
        group,
        raft,
        machine,
        proposer,
        committer,
        fences,
        log,
        apply_thread,
        seals_ended,
        sealing,
        in_flight,
    };
    Ok(Group { shared: Arc::new(shared) })
}

/// openraft takes a log that is behind the state for one that a snapshot went ahead of, and goes on. In a group of
/// one nobody sends snapshots, so there it means that the log was lost.
fn check_log(
    group: GroupId,
    replica: ReplicaId,
    founding: &Founding,
    log: &LogStore,
    machine: &dyn Machine,
) -> Result<(), StartError> {
    if *founding == Founding::Before && log.is_new() {
        return Err(StartError::LogGone(group));
    }
    let applied = machine.applied();
    let (sealed, membership) =
        types::applied_state(&applied).map_err(|error| StartError::Consensus { group, why: error.to_string() })?;
    let alone = membership.voter_ids().eq([replica.0]);
    let index = |id: Option<LogIdOf>| id.map_or(0, |id| id.index);
    if alone && log.last() < sealed {
        return Err(StartError::LogBehind { group, last: index(log.last()), sealed: index(sealed) });
    }
    Ok(())
}
