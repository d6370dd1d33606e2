//! World of a simulation: its machines and their events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::starts::{self, Registry};
use assay_storage_model::{GroupId, LogPosition, NodeId, ReplicaId, ShardId};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::crash_disk::{Cut, MachineDisk};
use super::invariants::Facts;
use super::network::Wires;
use super::plan::SimPlan;
use super::process::SimProcess;
use super::randomness::Dice;
use super::stale_copies::{OldCopy, rebuild_closed, start_of};
use super::trace::Trace;
use crate::single_node::worker_history::{Event, WorkerEvent};

/// Two shards: one is too few to see that groups do not disturb each other.
pub const SHARDS: u16 = 2;
/// The clock of a simulation begins here.
const BEGINS_AT_MICROS: i64 = 1_767_225_600_000_000;
/// Time for which a machine is off.
const OFF_FOR: std::ops::Range<u64> = 20_000..2_500_000;
/// A slow disk is slower by this.
const SLOW: u32 = 20;

#[derive(Debug)]
pub struct SimWorld {
    pub plan: SimPlan,
    pub dice: Dice,
    pub trace: Trace,
    pub facts: Facts,
    pub wires: Wires,
    pub history: Mutex<Vec<Event>>,
    machines: Mutex<BTreeMap<NodeId, Machine>>,
}

/// One replica's place on a node.
#[derive(Clone, Debug)]
pub struct ReplicaPlacement {
    pub replica: ReplicaId,
    /// First members, on the replica that founds the group.
    pub founders: Option<Vec<(ReplicaId, NodeId)>>,
}

#[derive(Debug, Default)]
struct Machine {
    kept: MachineDisk,
    /// Durable as soon as they are changed.
    starts: starts::KeptStarts,
    places: BTreeMap<GroupId, ReplicaPlacement>,
    life: Option<Arc<SimProcess>>,
    lives: u32,
    /// Off for good.
    gone: bool,
    clock_off_micros: i64,
    slow: bool,
    /// Crashes at this step of its disk, once it runs again.
    crashes_at: Option<u64>,
    /// Groups whose log here belongs to this discarded replica.
    to_clear: BTreeMap<GroupId, ReplicaId>,
    /// Replicas whose disk was put back from an older copy. They are lost until they are made anew.
    put_back: BTreeMap<GroupId, ReplicaId>,
    /// Data of discarded replicas; for one that is still ending, its current data.
    given_up: BTreeMap<ReplicaId, MachineDisk>,
}

impl Machine {
    /// Notes what a replica had. Of one that was put back, what it had before counts.
    fn give_up(&mut self, group: GroupId, replica: ReplicaId, had: MachineDisk) {
        if self.put_back.get(&group) != Some(&replica) {
            self.given_up.insert(replica, had);
        }
    }
}

pub fn groups() -> Vec<GroupId> {
    let shards = (0..SHARDS).map(|shard| GroupId::of_shard(ShardId(shard)));
    std::iter::once(GroupId::CATALOG).chain(shards).collect()
}

impl SimWorld {
    pub fn new(plan: SimPlan, dice: Dice, keep_trace: bool) -> Arc<SimWorld> {
        Arc::new(SimWorld {
            plan,
            dice,
            trace: Trace::new(keep_trace),
            facts: Facts::default(),
            wires: Wires::default(),
            history: Mutex::default(),
            machines: Mutex::default(),
        })
    }

    pub fn say(&self, said: WorkerEvent) {
        self.history.lock().push(Event { t: self.trace.micros(), said });
    }

    /// Makes the first machines, with a replica of every group on each.
    pub async fn found(self: &Arc<Self>) {
        let nodes: Vec<NodeId> = (1..=self.plan.nodes).map(NodeId).collect();
        for group in groups() {
            let ids = (self.next_replica().0..).map(ReplicaId);
            let members: Vec<(ReplicaId, NodeId)> = ids.zip(nodes.iter().copied()).collect();
            for (replica, node) in &members {
                let founders = (*node == nodes[0]).then(|| members.clone());
                let mut machines = self.machines.lock();
                let machine = machines.entry(*node).or_default();
                machine.places.insert(group, ReplicaPlacement { replica: *replica, founders });
            }
        }
        for node in nodes {
            self.start(node).await;
        }
    }

    fn next_replica(&self) -> ReplicaId {
        let machines = self.machines.lock();
        let used = machines.values().flat_map(|machine| machine.places.values().map(|place| place.replica));
        let given_up = machines.values().flat_map(|machine| machine.given_up.keys().copied());
        ReplicaId(used.chain(given_up).map(|replica| replica.0).max().unwrap_or(0) + 1)
    }

    /// Starts a machine's process, unless it runs or is gone.
    pub async fn start(self: &Arc<Self>, node: NodeId) {
        let (kept, number) = {
            let mut machines = self.machines.lock();
            let Some(machine) = machines.get_mut(&node) else { return };
            if machine.gone || machine.life.is_some() {
                return;
            }
            machine.lives += 1;
            machine.starts = machine.starts.begun(start_of(node, machine.lives));
            let (number, starts) = (machine.lives, machine.starts.clone());
            let kept = machine.kept.clone();
            let others = machines.iter().filter(|(other, machine)| **other != node && !machine.gone);
            ((kept, Registry::new(starts, others.map(|(other, _)| *other))), number)
        };
        self.trace.say(format_args!("node {node} starts"));
        let life = match SimProcess::begin(self, node, number, kept) {
            Ok(life) => life,
            Err(why) => return self.facts.find(format!("node {node} does not start: {why}")),
        };
        let (groups, to_clear) = {
            let mut machines = self.machines.lock();
            let Some(machine) = machines.get_mut(&node) else { return };
            machine.life = Some(Arc::clone(&life));
            if let Some(steps) = machine.crashes_at.take() {
                life.point.choose(steps);
            }
            (machine.places.keys().copied().collect::<Vec<_>>(), machine.to_clear.clone())
        };
        for (group, old) in to_clear {
            let _replacing = life.replacing.lock().await;
            self.clear(&life, group, old).await;
        }
        for group in groups {
            let _replacing = life.replacing.lock().await;
            // While the ones before it started, a replica may have been given up for another, which runs by now.
            let place = self.machines.lock().get(&node).and_then(|machine| machine.places.get(&group).cloned());
            let Some(place) = place.filter(|_| life.running(group).is_none()) else { continue };
            if life.starts.lock().is_closed((group, place.replica)) {
                continue;
            }
            let started = life.start_replica(self, group, &place).await;
            match started {
                _ if life.is_dead() => return,
                Ok(()) => {}
                Err(why) => self.facts.find(format!("node {node} does not start: {why}")),
            }
        }
        rebuild_closed(self, &life).await;
        life.sweep_blobs();
    }

    /// Ends a machine's process; it comes back after a while unless it is gone.
    pub fn crash(self: &Arc<Self>, node: NodeId, cut: Cut) {
        let (life, gone) = {
            let mut machines = self.machines.lock();
            let Some(machine) = machines.get_mut(&node) else { return };
            let Some(life) = machine.life.take() else { return };
            machine.kept = life.kept.after(cut, &self.dice);
            (life, machine.gone)
        };
        self.trace.say(format_args!("node {node} ends: {cut:?}"));
        life.die();
        if !gone {
            let (world, off) = (Arc::clone(self), self.dice.micros(&OFF_FOR));
            tokio::spawn(async move {
                sleep(off).await;
                world.start(node).await;
            });
        }
    }

    /// The chosen step on the disk is reached, or the process ended itself.
    pub fn crash_life(self: &Arc<Self>, node: NodeId, number: u32) {
        if self.life(node).is_some_and(|life| life.number == number) {
            let cut = if self.dice.one_in(2) { Cut::Kill } else { Cut::Power };
            self.crash(node, cut);
        }
    }

    /// Returns the content of a machine's disk: while it runs, or after a stop, in which case it is restarted later.
    pub fn copy(self: &Arc<Self>, node: NodeId, hot: bool) -> Option<OldCopy> {
        let life = self.life(node)?;
        // A replica that is being cleared is noted beside the disk, where a copy would not have it.
        if !self.machines.lock().get(&node)?.to_clear.is_empty() {
            return None;
        }
        let replicas = self.replicas_of(node);
        let starts = self.machines.lock().get(&node)?.starts.clone();
        let kept = life.kept.after(Cut::Kill, &self.dice);
        self.trace.say(format_args!("node {node} is copied, hot: {hot}"));
        self.crash(node, Cut::Kill);
        let stopped = self.machines.lock().get(&node)?.kept.after(Cut::Kill, &self.dice);
        Some(OldCopy { kept: if hot { kept } else { stopped }, starts, replicas })
    }

    /// Returns whether every other node has seen a start after the copy.
    pub fn last_start_is_seen(&self, node: NodeId, copy: &OldCopy) -> bool {
        let machines = self.machines.lock();
        let Some(last) = machines.get(&node).and_then(|machine| machine.starts.history.last().copied()) else {
            return false;
        };
        let mut others = machines.iter().filter(|(other, machine)| **other != node && !machine.gone);
        !copy.starts.history.contains(&last) && others.all(|(_, machine)| machine.starts.seen.get(&node) == Some(&last))
    }

    pub fn restore(&self, node: NodeId, copy: OldCopy) {
        if let Some(machine) = self.machines.lock().get_mut(&node).filter(|machine| machine.life.is_none()) {
            // What was acknowledged is on the disk that is taken out, and counts until then.
            let had = machine.kept.clone();
            machine.given_up.extend(copy.replicas.values().map(|replica| (*replica, had.clone())));
            (machine.kept, machine.starts, machine.put_back) = (copy.kept, copy.starts, copy.replicas);
        }
    }

    /// Returns whether a replica restored from an older copy has yet to be made anew.
    pub fn has_old_copy(&self) -> bool {
        let is_there = |machine: &Machine, group, replica: &ReplicaId| {
            machine.places.get(group).is_some_and(|place| place.replica == *replica)
        };
        let machines = self.machines.lock();
        machines
            .values()
            .any(|machine| machine.put_back.iter().any(|(group, replica)| is_there(machine, group, replica)))
    }

    pub fn replicas_of(&self, node: NodeId) -> BTreeMap<GroupId, ReplicaId> {
        let machines = self.machines.lock();
        let places = machines.get(&node).map(|machine| &machine.places).into_iter().flatten();
        places.map(|(group, place)| (*group, place.replica)).collect()
    }

    /// Stores the starts that a process writes.
    pub fn keep_starts(&self, life: &SimProcess, kept: starts::KeptStarts) {
        if let Some(machine) = self.machines.lock().get_mut(&life.node).filter(|_| !life.is_dead()) {
            machine.starts = kept;
        }
    }

    pub fn crash_within(&self, node: NodeId, steps: u64) {
        let mut machines = self.machines.lock();
        let Some(machine) = machines.get_mut(&node) else { return };
        match &machine.life {
            Some(life) => life.point.choose(steps),
            None => machine.crashes_at = Some(steps),
        }
    }

    /// A machine is gone for good, and a new one comes.
    pub async fn replace(self: &Arc<Self>, node: NodeId) {
        {
            let mut machines = self.machines.lock();
            let Some(machine) = machines.get_mut(&node) else { return };
            machine.gone = true;
            let lost: Vec<ReplicaId> = machine.places.values().map(|place| place.replica).collect();
            let kept = machine.life.as_ref().map_or(&machine.kept, |life| &life.kept).clone();
            machine.places.clear();
            machine.given_up.extend(lost.into_iter().map(|replica| (replica, kept.clone())));
        }
        self.crash(node, Cut::Kill);
        let new = NodeId(self.machines.lock().keys().map(|node| node.0).max().unwrap_or(0) + 1);
        self.trace.say(format_args!("node {new} takes the place of node {node}"));
        self.machines.lock().insert(new, Machine::default());
        for group in groups() {
            let place = ReplicaPlacement { replica: self.next_replica(), founders: None };
            if let Some(machine) = self.machines.lock().get_mut(&new) {
                machine.places.insert(group, place);
            }
        }
        self.start(new).await;
    }

    /// Discards a replica and makes it anew under another id, unless that was done already.
    pub async fn rebuild(self: &Arc<Self>, node: NodeId, group: GroupId, old: ReplicaId) {
        let Some(life) = self.life(node) else { return };
        let _replacing = life.replacing.lock().await;
        if life.is_dead() {
            return;
        }
        let replica = self.next_replica();
        let place = {
            let mut machines = self.machines.lock();
            let Some(machine) = machines.get_mut(&node) else { return };
            if machine.places.get(&group).is_none_or(|place| place.replica != old) {
                return;
            }
            machine.give_up(group, old, life.kept.clone());
            let place = ReplicaPlacement { replica, founders: None };
            machine.places.insert(group, place.clone());
            machine.to_clear.insert(group, old);
            place
        };
        self.trace.say(format_args!("node {node} gives its replica of group {group} up for replica {replica}"));
        self.clear(&life, group, old).await;
        if life.is_dead() {
            return;
        }
        if let Err(why) = life.start_replica(self, group, &place).await
            && !life.is_dead()
        {
            self.facts.find(format!("node {node}: a new replica does not start: {why}"));
        }
    }

    /// A crash before its end has it done at the next start. What the replica had when it ended counts for what was
    /// acknowledged before.
    async fn clear(&self, life: &SimProcess, group: GroupId, old: ReplicaId) {
        life.end_replica(group).await;
        if life.is_dead() {
            return;
        }
        let had = life.kept.after(Cut::Kill, &self.dice);
        if let Some(machine) = self.machines.lock().get_mut(&life.node) {
            machine.give_up(group, old, had);
        }
        life.remove_log(group).await;
        if !life.is_dead()
            && let Some(machine) = self.machines.lock().get_mut(&life.node)
        {
            machine.to_clear.remove(&group);
        }
    }

    pub fn life(&self, node: NodeId) -> Option<Arc<SimProcess>> {
        self.machines.lock().get(&node)?.life.clone()
    }

    pub fn lives(&self) -> Vec<Arc<SimProcess>> {
        self.machines.lock().values().filter_map(|machine| machine.life.clone()).collect()
    }

    /// Machines that are not gone, whether they run or not.
    pub fn nodes(&self) -> Vec<NodeId> {
        let machines = self.machines.lock();
        machines.iter().filter(|(_, machine)| !machine.gone).map(|(node, _)| *node).collect()
    }

    /// Returns the intended members of a group.
    pub fn wanted(&self, group: GroupId) -> BTreeMap<ReplicaId, NodeId> {
        let machines = self.machines.lock();
        let places = machines.iter().filter_map(|(node, machine)| Some((machine.places.get(&group)?.replica, *node)));
        places.collect()
    }

    /// Returns the process that leads a group, according to its own state.
    pub fn leader(&self, group: GroupId) -> Option<Arc<SimProcess>> {
        self.lives().into_iter().find(|life| life.running(group).is_some_and(|running| running.group.leads()))
    }

    pub fn jump_clock(&self, node: NodeId, micros: i64) {
        if let Some(machine) = self.machines.lock().get_mut(&node) {
            machine.clock_off_micros = micros;
        }
    }

    /// Returns a node's clock, in microseconds since 1970.
    pub fn clock(&self, node: NodeId) -> i64 {
        let off = self.machines.lock().get(&node).map_or(0, |machine| machine.clock_off_micros);
        BEGINS_AT_MICROS + i64::try_from(self.trace.micros()).unwrap_or(0) + off
    }

    pub fn slow_down(&self, node: NodeId) {
        if let Some(machine) = self.machines.lock().get_mut(&node) {
            machine.slow = true;
        }
    }

    /// Returns the durations of a write to the log of a node, and of its sync.
    pub fn log_takes(&self, node: NodeId) -> (Duration, Duration) {
        let slow = self.machines.lock().get(&node).is_some_and(|machine| machine.slow);
        let times = if slow { SLOW } else { 1 };
        (self.dice.micros(&self.plan.write), self.dice.micros(&self.plan.sync) * times)
    }

    /// Ends all faults, running and planned ones.
    pub fn mend(&self) {
        self.wires.mend();
        for machine in self.machines.lock().values_mut() {
            (machine.slow, machine.crashes_at) = (false, None);
            if let Some(life) = &machine.life {
                life.point.forget();
            }
        }
    }

    /// Checks that applied entries are durable on a majority of the voters.
    pub fn check_quorum(&self, life: &SimProcess, group: GroupId, position: LogPosition) {
        let Some(running) = life.running(group) else { return };
        let status = running.group.status();
        if status.changing {
            return; // which majorities were asked is not known here
        }
        let voters: Vec<_> = status.members.iter().filter(|member| member.voter).collect();
        let holds = voters.iter().filter(|member| self.holds(group, member.replica, member.node, position)).count();
        if !voters.is_empty() && holds * 2 <= voters.len() {
            let who: Vec<ReplicaId> = voters.iter().map(|member| member.replica).collect();
            self.facts.find(format!(
                "group {group}: {position} is applied on node {} and durable on {holds} of {who:?}",
                life.node
            ));
        }
    }

    fn holds(&self, group: GroupId, replica: ReplicaId, node: NodeId, position: LogPosition) -> bool {
        let machines = self.machines.lock();
        let Some(machine) = machines.get(&node) else { return false };
        if let Some(kept) = machine.given_up.get(&replica) {
            return kept.log.holds(group, position.index, position.term);
        }
        let here = machine.places.get(&group).is_some_and(|place| place.replica == replica);
        let kept = machine.life.as_ref().map_or(&machine.kept, |life| &life.kept);
        let sealed = || {
            let running = machine.life.as_ref().and_then(|life| life.running(group));
            running.and_then(|running| running.group.machine().sealed().position)
        };
        here && (kept.log.holds(group, position.index, position.term)
            || sealed().is_some_and(|sealed| sealed.index >= position.index))
    }
}
