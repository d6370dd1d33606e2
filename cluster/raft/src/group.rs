//! Replica of a group on this node: its start, and its shared handle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_storage_log::GroupLog;
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::{ENTRY_BYTES_MAX, EntryBuilder};
use assay_storage_model::{Applied, GroupId, NotWritten, ReplicaId, WriteFailure, WriteOutcome};
use bytes::Bytes;
use openraft::error::Fatal;
use openraft::{Config, ServerState, SnapshotPolicy, Vote};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, RwLock, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::apply::apply_thread::{AppliedNext, Applier, ApplyParts, ApplyThread};
use crate::apply::backlog::Lag;
use crate::apply::machine::Machine;
use crate::apply::seal::SealThreads;
use crate::apply::state_machine::{SealsEnded, StateMachine};
use crate::counters::Counters;
use crate::error::{FenceError, SealError};
use crate::fatal::OnFatal;
use crate::leadership::elections::{Candidate, Elections, guard_elections};
use crate::leadership::higher_vote::{HigherVotes, step_down};
use crate::log::entry_cache::CacheBudget;
use crate::log::journal::Journal;
use crate::log::log_store::LogStore;
use crate::log::purge_retention::{LogRetention, Nearer};
use crate::membership::bootstrap::{Bootstrap, StartError, check_log, elect_alone, initialize};
use crate::network::append_limit::Appends;
use crate::network::blob_prefetch::Ahead;
use crate::network::inbound::{Inbound, ReceiveError};
use crate::network::outbound::Network;
use crate::network::peers::{Chunks, FileWanted, MessageKind, PeerError, Peers, Way};
use crate::reads::fence::Fences;
use crate::reads::read_index::ReadIndex;
use crate::runtime::beat_every;
use crate::snapshot_transfer::exports::Exports;
use crate::snapshot_transfer::imports::{Incoming, IncomingDir};
use crate::snapshot_transfer::throttle::Throttle;
use crate::timing::Timing;
use crate::types::{LogIdOf, RaftOf, Replica};
use crate::work::Work;
use crate::write_path::admission::{Admission, WRITE_WAIT_MAX};
use crate::write_path::committer::{Committer, Pending};
use crate::write_path::large_writes::LargeWrites;
use crate::write_path::proposer::Proposer;

/// Time limit for sending a snapshot to a follower.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of entries in one message to a follower. Their bytes are limited separately.
const ENTRIES_PER_MESSAGE_MAX: u64 = 64;
/// Maximum number of concurrent proposals of one group that bypass its committer.
pub const PROPOSALS_IN_FLIGHT_MAX: usize = 8;

/// Number of sealed entries that a group of several members keeps in its log. A member with a small lag or a short
/// absence then needs no snapshot.
pub const ENTRIES_KEPT: u64 = 64;
/// Time limit for answering accepted work when a replica stops.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);
/// Time limit for consensus to notice a finished seal.
const SEAL_NOTICED_WITHIN: Duration = Duration::from_secs(2);
/// Time after which an unfinished seal is requested again.
const SEAL_ASKED_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Parts shared by all groups of a node.
#[derive(Clone, Debug)]
pub struct NodeParts {
    pub cluster_name: String,
    pub timing: Timing,
    /// Runtime of consensus, whose threads are named after it.
    pub runtime: Handle,
    pub cache: CacheBudget,
    pub seals: SealThreads,
    pub admission: Arc<Admission>,
    pub counters: Arc<Counters>,
    pub fatal: OnFatal,
    pub peers: Arc<dyn Peers>,
    /// Directory of incoming snapshots.
    pub throttle: Arc<Throttle>,
    /// Executor of blocking work.
    pub work: Work,
}

#[derive(Clone, Debug)]
pub struct GroupConfig {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub founding: Bootstrap,
    pub log: GroupLog,
    pub machine: Arc<dyn Machine>,
    pub large: Arc<dyn LargeWrites>,
    pub incoming: IncomingDir,
}

/// Running replica. Dropping it without [`Group::shutdown`] is as safe as a crash.
#[derive(Clone)]
pub struct Group {
    shared: Arc<GroupInner>,
}

struct GroupInner {
    group: GroupId,
    replica: ReplicaId,
    raft: RaftOf,
    machine: Arc<dyn Machine>,
    proposer: Proposer,
    committer: Committer,
    fences: Fences,
    /// Fences for other replicas, which consider this one the leader.
    asked: Fences,
    log: LogStore,
    inbound: Inbound,
    read_index: Arc<ReadIndex>,
    apply_thread: ApplyThread,
    seals_ended: watch::Receiver<SealsEnded>,
    /// Lock that allows one seal at a time, so that the awaited seal began after the request.
    sealing: Mutex<()>,
    in_flight: Arc<Semaphore>,
    nearer: parking_lot::Mutex<Nearer>,
}

impl GroupInner {
    fn candidate(&self) -> Candidate<'_> {
        let GroupInner { group, replica, raft, log, inbound, .. } = self;
        let (peers, elections) = (&inbound.peers, &inbound.elections);
        Candidate { group: *group, replica: *replica, raft, log, peers, elections }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").field("group", &self.shared.group).finish_non_exhaustive()
    }
}

impl Group {
    /// Reapplies the entries committed since the last seal, and returns when consensus runs.
    pub async fn start(config: GroupConfig, node: NodeParts) -> Result<Group, StartError> {
        let group = config.group;
        beat_every(node.timing.tick());
        let started = start_on_its_runtime(config, node).await;
        started.unwrap_or_else(|error| Err(StartError::Consensus { group, why: error.to_string() }))
    }

    /// Starts the tasks that report higher votes and run elections. They end with this replica.
    fn watch(&self, votes: watch::Receiver<Option<Vote<Replica>>>) {
        let runtime = &self.shared.proposer.runtime;
        runtime.spawn(step_down(Arc::downgrade(&self.shared), |shared| &shared.raft, votes));
        runtime.spawn(guard_elections(Arc::downgrade(&self.shared), GroupInner::candidate));
    }

    pub fn id(&self) -> GroupId {
        self.shared.group
    }

    pub fn replica(&self) -> ReplicaId {
        self.shared.replica
    }

    pub(crate) fn raft(&self) -> &RaftOf {
        &self.shared.raft
    }

    pub(crate) fn log(&self) -> &LogStore {
        &self.shared.log
    }

    pub(crate) fn nearer(&self) -> &parking_lot::Mutex<Nearer> {
        &self.shared.nearer
    }

    pub(crate) fn gate(&self) -> &RwLock<()> {
        &self.shared.proposer.gate
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.proposer.counters
    }

    pub(crate) fn timing(&self) -> Timing {
        self.shared.inbound.timing
    }

    pub(crate) fn elections(&self) -> &Elections {
        &self.shared.inbound.elections
    }

    pub(crate) fn peers(&self) -> &Arc<dyn Peers> {
        &self.shared.inbound.peers
    }

    /// Handles a message of another replica of the group. Must run on the runtime of consensus.
    pub async fn receive(&self, way: Way, kind: MessageKind, body: Bytes) -> Result<Bytes, ReceiveError> {
        let GroupInner { raft, asked, read_index, inbound, .. } = &*self.shared;
        inbound.receive(raft, (asked, read_index), way, kind, body).await
    }

    /// Returns the bytes of a file of a snapshot that this replica is sending.
    pub async fn read_export(&self, wanted: FileWanted) -> Result<Chunks, PeerError> {
        self.shared.inbound.read_export(wanted).await
    }

    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.shared.machine
    }

    /// Returns whether this replica leads, according to its own state.
    pub fn leads(&self) -> bool {
        self.shared.proposer.leading.borrow().state == ServerState::Leader
    }

    /// Returns when this replica leads and has applied everything that was committed.
    pub async fn lead(&self) -> Result<(), FenceError> {
        let mut leading = self.shared.proposer.leading.clone();
        let stopped = || FenceError::Stopped("it was shut down meanwhile".into());
        leading.wait_for(|metrics| metrics.state == ServerState::Leader).await.map_err(|_| stopped())?;
        self.fence().await.map(|_| ())
    }

    /// Submits a command for the next entry. Entries keep the order of these calls.
    ///
    /// A command that still waits for memory at its deadline is refused.
    pub fn submit(&self, command: Bytes, until: Instant) -> Result<Pending, NotWritten> {
        self.shared.committer.submit(command, until)
    }

    /// Waits for room, submits a command as [`Group::submit`] does, and returns its outcome.
    ///
    /// Reports busy only after [`WRITE_WAIT_MAX`].
    pub async fn write(&self, command: Bytes) -> WriteOutcome {
        self.shared.committer.write(command, Instant::now() + WRITE_WAIT_MAX).await
    }

    /// Proposes one entry of these commands, bypassing the committer. Continues if the caller no longer waits.
    pub async fn propose(&self, commands: Vec<Bytes>) -> Result<Vec<Outcome>, WriteFailure> {
        let proposer = self.shared.proposer.clone();
        if commands.is_empty() {
            return Err(NotWritten::Empty.into());
        }
        proposer.check()?;
        let until = Instant::now() + WRITE_WAIT_MAX;
        let permit = timeout_at(until, Arc::clone(&self.shared.in_flight).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            Counters::add(&proposer.counters.busy, 1);
            return Err(NotWritten::busy("too many proposals are in flight").into());
        };
        let proposed = proposer.runtime.clone().spawn(async move {
            let _permit = permit;
            propose(&proposer, commands, until).await
        });
        let lost = |error: tokio::task::JoinError| WriteFailure::Unknown { why: error.to_string() };
        proposed.await.unwrap_or_else(|error| Err(lost(error)))
    }

    /// Waits until this replica has applied everything acknowledged before the call, and returns that index.
    pub async fn fence(&self) -> Result<u64, FenceError> {
        self.shared.fences.wait(&self.shared.read_index).await
    }

    /// Returns the index of the last entry that this replica has applied.
    pub fn applied_index(&self) -> Option<u64> {
        self.shared.machine.applied().position.map(|position| position.index)
    }

    /// Waits until this replica has applied the entry at `index`, without requests to other replicas.
    pub async fn wait_applied(&self, index: u64) -> Result<(), FenceError> {
        self.shared.fences.wait_applied(index).await.map(drop)
    }

    /// Returns a receiver for the applied index plus one.
    pub fn applied_changes(&self) -> watch::Receiver<u64> {
        self.shared.fences.applied_changes()
    }

    /// Makes everything applied before the call durable without the log, and purges the log up to that position.
    pub async fn seal(&self) -> Result<Applied, SealError> {
        let _one = self.shared.sealing.lock().await;
        let mut ended = self.shared.seals_ended.clone();
        let before = ended.borrow_and_update().count;
        let stopped = |why: String| SealError::Stopped(why);
        let gone = || stopped("it was shut down meanwhile".into());
        // Consensus ignores a trigger during this seal, or while it still finishes the previous one. A repeated trigger
        // is therefore sometimes needed, and always harmless.
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
                self.wait_noticed(&applied).await;
                self.purge(LogRetention::Some).await?;
                Ok(applied)
            }
            Some(Err(why)) => Err(why),
            None => Err(gone()),
        }
    }

    /// Waits until consensus has noticed a seal. It learns of the seal after the report, and purges nothing before.
    async fn wait_noticed(&self, applied: &Applied) {
        let index = applied.position.map(|position| position.index);
        let mut metrics = self.shared.raft.metrics();
        let noticed = metrics.wait_for(|metrics| metrics.snapshot.map(|id| id.index) >= index);
        // Entries that are not purged now are purged after the next seal.
        let _ = timeout(SEAL_NOTICED_WITHIN, noticed).await;
    }

    /// Purges sealed entries from the log.
    pub async fn purge(&self, keep: LogRetention) -> Result<(), SealError> {
        let Some(sealed) = self.shared.machine.sealed().position else { return Ok(()) };
        let few = if keep == LogRetention::Some && !self.is_alone() { ENTRIES_KEPT } else { 0 };
        // Released before the members are asked, which take the same lock.
        let archived = self.nearer().lock().archived();
        let needed = keep.needed(|| self.needed_behind(), archived);
        let Some(up_to) = sealed.index.checked_sub(few) else { return Ok(()) };
        let up_to = needed.map_or(up_to, |needed| needed.min(up_to));
        let purged = self.shared.raft.trigger().purge_log(up_to).await;
        purged.map_err(|fatal| SealError::Stopped(fatal.to_string()))
    }

    /// Returns the last entry that no other member will request, as far as known, or `None` if no member needs any.
    fn needed_behind(&self) -> Option<u64> {
        let matched: Vec<_> = {
            let receiver = self.shared.raft.metrics();
            let metrics = receiver.borrow();
            let of = |(replica, id): (&Replica, &Option<LogIdOf>)| Some((*replica, id.as_ref()?.index));
            let others = metrics.replication.iter().flatten().filter_map(of);
            others.filter(|(replica, _)| *replica != self.shared.replica.0).collect()
        };
        let nearer = self.shared.nearer.lock().look(&matched, Instant::now());
        self.shared.inbound.exports.needed_behind().into_iter().chain(nearer).min()
    }

    /// Returns whether sealed entries are kept in the log for other members that need them.
    pub fn keeps_needed(&self) -> bool {
        let sealed = self.shared.machine.sealed().position.map_or(0, |position| position.index);
        self.sealed_in_log() > 0
            && self.needed_behind().into_iter().chain(self.nearer().lock().archived()).any(|needed| needed < sealed)
    }

    /// Returns the number of members in the group, or `None` if consensus has stopped. Asks consensus itself, because
    /// its last report may be outdated.
    pub async fn count_members(&self) -> Option<usize> {
        let count =
            self.shared.raft.with_raft_state(|state| state.membership_state.effective().membership().nodes().count());
        count.await.ok()
    }

    /// Returns whether this replica has not received its membership yet.
    pub fn is_joining(&self) -> bool {
        let metrics = self.shared.raft.server_metrics();
        let metrics = metrics.borrow();
        metrics.membership_config.membership().nodes().next().is_none()
    }

    /// Returns whether this replica votes in its group. A learner may be far behind.
    pub fn votes(&self) -> bool {
        let metrics = self.shared.raft.server_metrics();
        let metrics = metrics.borrow();
        metrics.membership_config.membership().voter_ids().any(|voter| voter == self.shared.replica.0)
    }

    /// Returns whether this replica is the only member of its group.
    pub fn is_alone(&self) -> bool {
        let metrics = self.shared.raft.server_metrics();
        let metrics = metrics.borrow();
        metrics.membership_config.membership().nodes().count() <= 1
    }

    /// Returns the number of applied entries that are not sealed.
    pub fn unsealed_entries(&self) -> u64 {
        let next = |applied: Applied| applied.position.map_or(0, |position| position.index + 1);
        next(self.shared.machine.applied()).saturating_sub(next(self.shared.machine.sealed()))
    }

    /// Returns the number of sealed entries that are still in the log.
    pub fn sealed_in_log(&self) -> u64 {
        let sealed = self.shared.machine.sealed().position.map_or(0, |position| position.index + 1);
        sealed.saturating_sub(self.shared.log.first_index())
    }

    /// Returns the number of commands that wait to become an entry.
    pub fn waiting_commands(&self) -> usize {
        self.shared.committer.waiting()
    }

    /// Returns the bytes of entries that are in the log and not yet applied.
    pub fn unapplied_bytes(&self) -> u64 {
        self.shared.inbound.lag.bytes()
    }

    /// Stops accepting commands, answers the accepted ones, and then stops consensus.
    pub async fn shutdown(&self) {
        // An entry in flight may wait for a majority that stopped before this replica. Its writers get an unknown
        // outcome.
        let closed = timeout(CLOSED_WITHIN, self.shared.committer.close()).await;
        // Errors of consensus that stopped earlier are already logged.
        let _ = self.shared.raft.shutdown().await;
        self.shared.log.close().await;
        if closed.is_err() {
            self.shared.committer.close().await;
        }
    }

    /// Returns the apply thread, for use after [`Group::shutdown`] or the shutdown of its runtime.
    pub fn apply_thread(&self) -> ApplyThread {
        self.shared.apply_thread.clone()
    }
}

async fn propose(proposer: &Proposer, commands: Vec<Bytes>, until: Instant) -> Result<Vec<Outcome>, WriteFailure> {
    let bytes: usize = commands.iter().map(Bytes::len).sum();
    let inline_max = proposer.large.inline_bytes_max();
    let large = commands.iter().any(|command| command.len() > inline_max) || bytes > ENTRY_BYTES_MAX.max(inline_max);
    proposer.check_size(bytes)?;
    proposer.admission.pass(bytes, until).await?;
    if large {
        let count = commands.len();
        return proposer.propose_large(proposer.keep_large(commands), count).await;
    }
    let mut entry = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
    commands.iter().for_each(|command| entry.push(command));
    proposer.propose(entry.finish(), commands.len(), bytes).await
}

/// Returns the settings of openraft, or the reason why they are inconsistent.
fn consensus_config(cluster_name: &str, timing: Timing) -> Result<Arc<Config>, String> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).expect("short");
    let config = Config {
        cluster_name: cluster_name.to_owned(),
        heartbeat_interval: millis(timing.heartbeat),
        election_timeout_min: millis(timing.election_min),
        election_timeout_max: millis(timing.election_max),
        install_snapshot_timeout: millis(SNAPSHOT_TIMEOUT),
        // `guard_elections` turns elections on while a majority has no contact with a leader.
        enable_elect: false,
        max_payload_entries: ENTRIES_PER_MESSAGE_MAX,
        // The upkeep triggers snapshots: it knows bytes, age and pinned log files, while consensus only counts entries.
        snapshot_policy: SnapshotPolicy::Never,
        // `Group::purge` decides how far the log is purged.
        max_in_snapshot_log_to_keep: u64::MAX,
        ..Config::default()
    };
    config.validate().map(Arc::new).map_err(|error| error.to_string())
}

/// Starts a group on the runtime of consensus, because consensus spawns its tasks where it is started. Not async and
/// not inlined, so that consensus is compiled once, in this crate.
#[inline(never)]
fn start_on_its_runtime(config: GroupConfig, node: NodeParts) -> JoinHandle<Result<Group, StartError>> {
    node.runtime.clone().spawn(start(config, node))
}

/// Returns a function that yields the index of the next entry for the state machine.
fn applied_next(machine: &dyn Machine) -> Arc<AppliedNext> {
    let next = machine.applied().position.map_or(0, |position| position.index + 1);
    Arc::new(watch::Sender::new(next))
}

async fn start(config: GroupConfig, node: NodeParts) -> Result<Group, StartError> {
    let GroupConfig { group, replica, founding, log, machine, large, incoming } = config;
    let io_failed = |source| StartError::Io { group, source };
    let stopped = |why: String| StartError::Consensus { group, why };
    let journal = Journal::new(log, node.work.clone(), node.fatal.clone());
    let lag = Arc::new(Lag::default());
    let sealed = Some(Arc::clone(&machine));
    let opened =
        LogStore::open((group, replica), journal, Arc::clone(&large), sealed, node.cache.clone(), Arc::clone(&lag));
    let log = opened.await.map_err(io_failed)?;
    check_log(group, replica, &founding, &log, &*machine)?;
    let applied = applied_next(&*machine);
    log.note_blobs().await.map_err(io_failed)?;
    let (applier, apply_thread) = Applier::start(ApplyParts {
        group,
        replica,
        machine: Arc::clone(&machine),
        large: Arc::clone(&large),
        applied: Arc::clone(&applied),
        lag: Arc::clone(&lag),
        runtime: node.runtime.clone(),
        work: node.work.clone(),
        fatal: node.fatal.clone(),
    })
    .map_err(io_failed)?;
    let seals_ended = Arc::new(watch::Sender::new(SealsEnded::default()));
    let serving = Arc::new(AtomicBool::new(false));
    let state_machine = StateMachine {
        group,
        replica,
        machine: Arc::clone(&machine),
        applier,
        applied: Arc::clone(&applied),
        seals: node.seals.clone(),
        seals_ended: Arc::clone(&seals_ended),
        work: node.work.clone(),
        serving: Arc::clone(&serving),
        fatal: node.fatal.clone(),
    };
    let consensus = consensus_config(&node.cluster_name, node.timing).map_err(stopped)?;
    let exports = Exports::new(incoming.disk.clone(), node.work.clone());
    let incoming = Incoming::new(incoming, Arc::clone(&node.throttle), node.work.clone()).await.map_err(io_failed)?;
    let deposed = HigherVotes::default();
    let told = deposed.subscribe();
    let network = Network { group, replica, peers: Arc::clone(&node.peers), exports: exports.clone(), deposed };
    let raft = RaftOf::new(replica.0, consensus, network, log.clone(), state_machine).await;
    let raft = raft.map_err(|fatal| stopped(fatal.to_string()))?;
    initialize(&raft, founding).await.map_err(stopped)?;
    elect_alone(&raft, replica).await.map_err(stopped)?;
    serving.store(true, Ordering::Release);
    let inbound = Inbound {
        log: log.clone(),
        lag,
        appends: Appends::default(),
        exports,
        peers: Arc::clone(&node.peers),
        admission: Arc::clone(&node.admission),
        ahead: Ahead::new(Arc::clone(&large)),
        machine: Arc::clone(&machine),
        counters: Arc::clone(&node.counters),
        incoming: Arc::new(Mutex::new(incoming)),
        timing: node.timing,
        elections: Arc::new(Elections::new(node.timing)),
    };
    let (applied, seals_ended) = (applied.subscribe(), seals_ended.subscribe());
    let group =
        Started { group, replica, raft, machine, large, log, inbound, apply_thread, applied, seals_ended }.serve(node);
    group.watch(told);
    Ok(group)
}

/// Replica with running consensus that does not yet accept writes or reads.
struct Started {
    group: GroupId,
    replica: ReplicaId,
    raft: RaftOf,
    machine: Arc<dyn Machine>,
    large: Arc<dyn LargeWrites>,
    log: LogStore,
    inbound: Inbound,
    apply_thread: ApplyThread,
    applied: watch::Receiver<u64>,
    seals_ended: watch::Receiver<SealsEnded>,
}

impl Started {
    fn serve(self, node: NodeParts) -> Group {
        let Started { group, replica, raft, machine, large, log, inbound, apply_thread, applied, seals_ended } = self;
        let NodeParts { runtime, admission, counters, fatal, peers, work, timing, .. } = node;
        runtime.spawn(end_with_consensus((group, replica), raft.clone(), fatal.clone()));
        let (leading, gate) = (raft.server_metrics(), Arc::new(RwLock::new(())));
        let elections = Arc::clone(&inbound.elections);
        let read_index =
            ReadIndex { group, replica, raft: raft.clone(), peers, elections, gate: Arc::clone(&gate), timing };
        let read_index = Arc::new(read_index);
        let [fences, asked] = [(); 2].map(|()| Fences::new(applied.clone(), runtime.clone(), Arc::clone(&counters)));
        let proposer = Proposer { raft: raft.clone(), leading, admission, large, counters, runtime, work, fatal, gate };
        let committer = Committer::start(proposer.clone());
        let shared = GroupInner {
            group,
            replica,
            raft,
            machine,
            proposer,
            committer,
            fences,
            asked,
            log,
            inbound,
            read_index,
            apply_thread,
            seals_ended,
            sealing: Mutex::default(),
            in_flight: Arc::new(Semaphore::new(PROPOSALS_IN_FLIGHT_MAX)),
            nearer: parking_lot::Mutex::default(),
        };
        Group { shared: Arc::new(shared) }
    }
}

/// Ends the process when consensus stops on an error of its own, which nothing else reports. A replica without
/// consensus would refuse everything forever. A replica that was stopped, or closed because of damage, ends normally.
async fn end_with_consensus((group, replica): (GroupId, ReplicaId), raft: RaftOf, fatal: OnFatal) {
    let mut metrics = raft.metrics();
    drop(raft);
    let stopped = metrics.wait_for(|metrics| metrics.running_state.is_err()).await;
    let why = stopped.ok().and_then(|metrics| metrics.running_state.clone().err());
    let is_expected = |why: &Fatal<Replica>| matches!(why, Fatal::Stopped) || fatal.is_damaged(group, replica);
    if let Some(why) = why.filter(|why| !is_expected(why)) {
        fatal.report(format_args!("group {group}: consensus has stopped: {why}"));
    }
}
