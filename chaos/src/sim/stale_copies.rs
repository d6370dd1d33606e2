//! Machines that are restored from an older copy of their disk, and the protection from their votes: the product's own
//! comparison of starts, with the writes and calls of a simulation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::starts::{self, Consequence, Introduction, Name, StartId, Stop, Verdict};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use tokio::time::{Instant, sleep};

use super::crash_disk::{Cut, MachineDisk};
use super::faults::is_whole;
use super::process::SimProcess;
use super::randomness::Dice;
use super::world::SimWorld;

/// Between two looks of a process at nodes that it has yet to be compared with.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for a later start to be seen by all others, before an old copy is restored.
const SEEN_WITHIN: Duration = Duration::from_secs(8);
/// Time for which the later start is in use.
const IN_USE: std::ops::Range<u64> = 200_000..2_000_000;

/// A disk as it was.
#[derive(Debug)]
pub struct OldCopy {
    pub kept: MachineDisk,
    pub starts: starts::KeptStarts,
    pub replicas: BTreeMap<GroupId, ReplicaId>,
}

/// Ids of starts need not be random, only different.
pub fn start_of(node: NodeId, number: u32) -> StartId {
    StartId((u128::from(node.0) << 32) | u128::from(number))
}

/// Restores a machine to the state before a start that every other node has seen, if all is well until then.
pub async fn put_back(world: Arc<SimWorld>, dice: Dice, node: NodeId, hot: bool) {
    // Other faults may have come before this task ran.
    let Some(copy) = is_whole(&world).then(|| world.copy(node, hot)).flatten() else { return };
    let until = Instant::now() + SEEN_WITHIN;
    while !(is_whole(&world) && world.last_start_is_seen(node, &copy)) {
        if Instant::now() >= until {
            return;
        }
        sleep(LOOK).await;
    }
    sleep(dice.micros(&IN_USE)).await;
    // One at a time: what is put back is lost to the cluster.
    if is_whole(&world) && world.last_start_is_seen(node, &copy) && world.replicas_of(node) == copy.replicas {
        world.trace.say(format_args!("node {node} is put back"));
        world.crash(node, Cut::Kill);
        world.restore(node, copy);
    }
}

/// Compares a process with all others, until it has.
pub async fn introduce_all(world: std::sync::Weak<SimWorld>, life: Arc<SimProcess>) {
    let began = Instant::now();
    while !life.is_dead() {
        let Some(world) = world.upgrade() else { return };
        if began.elapsed() >= starts::COMPARED_WITHIN {
            life.starts.lock().waited();
        }
        let due = |node: &NodeId| *node != life.node && life.starts.lock().is_due(*node);
        for node in world.nodes().into_iter().filter(due) {
            introduce(&world, &life, node).await;
        }
        drop(world);
        sleep(LOOK).await;
    }
}

/// One exchange, as far as it gets.
pub async fn introduce(world: &Arc<SimWorld>, from: &Arc<SimProcess>, to: NodeId) {
    let Some(there) = world.pass(from, to).await else { return };
    let on_from = judge(world, &there, from.node, &introduction(from));
    let Some(back) = world.pass(&there, from.node).await.filter(|back| back.number == from.number) else { return };
    let on_there = judge(world, &back, there.node, &introduction(&there));
    hear(world, &back, there.node, &on_from);
    hear(world, &there, back.node, &on_there);
}

/// Returns the introduction. Only one process of a node runs at a time here, so it responds itself. Gaps in logs are
/// left to other tests.
fn introduction(life: &SimProcess) -> Introduction {
    let starts = life.starts.lock();
    Introduction { start: starts.own(), history: starts.kept().history.clone(), replicas: Vec::new() }
}

fn judge(world: &SimWorld, by: &SimProcess, node: NodeId, said: &Introduction) -> Verdict {
    let mut starts = by.starts.lock();
    let verdict = starts.judge(node, said, Some(said.start), |_, _| None);
    if let Some(kept) = starts.to_keep(node, &verdict) {
        world.keep_starts(by, kept);
    }
    starts.judged(node, verdict.clone());
    verdict
}

fn hear(world: &Arc<SimWorld>, life: &Arc<SimProcess>, by: NodeId, verdict: &Verdict) {
    let consequences = life.starts.lock().heard(by, verdict);
    for consequence in consequences {
        let Consequence::CloseAll { missing, .. } = consequence else {
            world.facts.find(format!("node {}: {consequence:?}, and no two processes of it ever ran", life.node));
            continue;
        };
        world.trace.say(format_args!("node {} closes all that it has", life.node));
        let closed: Vec<Name> = world.replicas_of(life.node).into_iter().collect();
        // One of no start: the process goes on under it.
        let fresh = StartId(life.starts.lock().own().0 + (1 << 100));
        let kept = life.starts.lock().kept().as_old_copy(missing, fresh, closed);
        world.keep_starts(life, kept.clone());
        life.starts.lock().keep(kept);
        let (world, life) = (Arc::clone(world), Arc::clone(life));
        tokio::spawn(async move { rebuild_closed(&world, &life).await });
    }
}

/// Makes each replica of a process anew that it has closed. A crash before the end has it done at the next start.
pub async fn rebuild_closed(world: &Arc<SimWorld>, life: &Arc<SimProcess>) {
    for (group, replica) in world.replicas_of(life.node) {
        let is_closed = life.starts.lock().is_closed((group, replica));
        if is_closed && !life.is_dead() {
            world.rebuild(life.node, group, replica).await;
        }
    }
}

impl SimProcess {
    /// Returns whether a message may be sent to another node, and for which of its processes.
    pub fn way_out(&self, to: NodeId, own: Name, theirs: Name) -> Result<Option<StartId>, Stop> {
        self.starts.lock().outgoing(to, own, theirs)
    }

    /// Returns whether a message of that process may be accepted.
    pub fn way_in(&self, from: &SimProcess, meant: Option<StartId>, (own, theirs): (Name, Name)) -> Result<(), Stop> {
        let start = from.starts.lock().own();
        self.starts.lock().incoming(from.node, Some((start, meant)), own, theirs)
    }
}
