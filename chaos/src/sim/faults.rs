//! Injection of the planned faults, each into a randomly drawn machine.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_raft::LogRetention;
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use tokio::time::{Instant, sleep, sleep_until};

use super::crash_disk::Cut;
use super::network::NetworkFaults;
use super::plan::Fault;
use super::randomness::Dice;
use super::stale_copies;
use super::world::{SimWorld, groups};

/// Duration of a cut link or a slow disk, before everything is repaired at once.
const LASTS: std::ops::Range<u64> = 100_000..3_000_000;
/// Steps on a disk before a process ends within one.
const STEPS_MAX: u64 = 120;
/// Maximum clock jump, either way: two hours.
const CLOCK_MICROS: u64 = 7_200_000_000;

/// Returns when the last fault of the plan has happened; some may still last.
pub async fn run(world: Arc<SimWorld>, dice: Dice) {
    let began = Instant::now();
    for (at, fault) in world.plan.faults.clone() {
        sleep_until(began + at).await;
        happen(&world, fault, &dice).await;
    }
    sleep_until(began + world.plan.faults_end).await;
    world.mend();
}

/// Leaders are where most is at stake: every other fault is theirs.
fn victim(world: &SimWorld, dice: &Dice) -> NodeId {
    let group = dice.pick(&groups()).unwrap_or(GroupId::CATALOG);
    match world.leader(group) {
        Some(life) if dice.one_in(2) => life.node,
        _ => dice.pick(&world.nodes()).unwrap_or(NodeId(1)),
    }
}

async fn happen(world: &Arc<SimWorld>, fault: Fault, dice: &Dice) {
    let node = victim(world, dice);
    world.trace.say(format_args!("fault {fault:?}, node {node}"));
    let others: Vec<NodeId> = world.nodes().into_iter().filter(|other| *other != node).collect();
    match fault {
        Fault::Kill => world.crash(node, Cut::Kill),
        Fault::PowerCut => world.crash(node, Cut::Power),
        Fault::PowerCutAll => world.nodes().into_iter().for_each(|node| world.crash(node, Cut::Power)),
        Fault::CrashWithin => world.crash_within(node, dice.below(STEPS_MAX)),
        Fault::Isolate => {
            world.wires.cut(others.iter().flat_map(|other| [(node, *other), (*other, node)]));
            mended_later(world, dice);
        }
        Fault::OneWay => {
            let hears = dice.one_in(2);
            world.wires.cut(others.iter().map(|other| if hears { (node, *other) } else { (*other, node) }));
            mended_later(world, dice);
        }
        Fault::Bridge => {
            let other = dice.pick(&others).unwrap_or(node);
            world.wires.cut([(node, other), (other, node)]);
            mended_later(world, dice);
        }
        Fault::Weather => {
            let (lost, twice, late) = (dice.below(200), dice.below(200), dice.below(300));
            world.wires.set_faults(NetworkFaults { lost, twice, late, late_by: 1_000..dice.below(500_000) + 2_000 });
            mended_later(world, dice);
        }
        Fault::SlowDisk => {
            world.slow_down(node);
            mended_later(world, dice);
        }
        Fault::Clock => {
            let micros = i64::try_from(dice.below(2 * CLOCK_MICROS)).unwrap_or(0);
            world.jump_clock(node, micros - CLOCK_MICROS as i64);
        }
        Fault::HandOver => hand_over(world, dice),
        Fault::PurgeAll => purge_all(world),
        Fault::Replace if is_whole(world) => world.replace(node).await,
        Fault::Rebuild if is_whole(world) => {
            let group = dice.pick(&groups()).unwrap_or(GroupId::CATALOG);
            if let Some(replica) = world.replicas_of(node).get(&group).copied() {
                world.rebuild(node, group, replica).await;
            }
        }
        Fault::OldCopy | Fault::HotOldCopy if is_whole(world) => {
            let hot = fault == Fault::HotOldCopy;
            tokio::spawn(stale_copies::put_back(Arc::clone(world), dice.apart(), node, hot));
        }
        // One at a time: the cluster promises to live with the loss of a minority.
        Fault::Replace | Fault::Rebuild | Fault::OldCopy | Fault::HotOldCopy => {}
    }
}

fn mended_later(world: &Arc<SimWorld>, dice: &Dice) {
    let (world, lasts) = (Arc::clone(world), dice.micros(&LASTS));
    tokio::spawn(async move {
        sleep(lasts).await;
        world.trace.say(format_args!("mended"));
        world.mend();
    });
}

fn hand_over(world: &Arc<SimWorld>, dice: &Dice) {
    let group = dice.pick(&groups()).unwrap_or(GroupId::CATALOG);
    let Some(running) = world.leader(group).and_then(|life| life.running(group)) else { return };
    let members: Vec<ReplicaId> = world.wanted(group).into_keys().collect();
    let Some(to) = dice.pick(&members) else { return };
    let world = Arc::clone(world);
    tokio::spawn(async move {
        let handed = running.group.hand_over(to).await;
        world.trace.say(format_args!("group {group} handed over to {to}: {handed:?}"));
    });
}

fn purge_all(world: &Arc<SimWorld>) {
    for life in world.lives() {
        for group in groups() {
            let Some(running) = life.running(group) else { continue };
            tokio::spawn(async move {
                // It may stop meanwhile.
                if running.group.seal().await.is_ok() {
                    drop(running.group.purge(LogRetention::Nothing).await);
                }
            });
        }
    }
}

/// Returns whether every group has its intended members, according to a majority, and each member has nearly all
/// entries. Otherwise the loss of one more would be the loss of a quorum, against which there is no guarantee.
pub fn is_whole(world: &SimWorld) -> bool {
    // Its leader still counts on what the replica had.
    if world.has_old_copy() {
        return false;
    }
    groups().into_iter().all(|group| {
        let Some(running) = world.leader(group).and_then(|life| life.running(group)) else { return false };
        let status = running.group.status();
        let wanted = world.wanted(group);
        let members = status.members.iter().filter(|member| member.voter && member.matched.is_some());
        !status.changing
            && status.leads_confirmed()
            && status.members.len() == wanted.len()
            && members.filter(|member| wanted.contains_key(&member.replica)).count() == wanted.len()
    })
}

/// Brings a group's members to what they are to be, one step at a time, as the product's reconciler does.
pub async fn keep_members(world: Arc<SimWorld>, group: GroupId) {
    const LOOK: Duration = Duration::from_millis(70);
    const CLOSE: u64 = 200;
    loop {
        sleep(LOOK).await;
        let Some(running) = world.leader(group).and_then(|life| life.running(group)) else { continue };
        let (group, status, wanted) = (&running.group, running.group.status(), world.wanted(group));
        let missing =
            wanted.iter().find(|(replica, _)| status.members.iter().all(|member| member.replica != **replica));
        let votes =
            |replica: &ReplicaId| status.members.iter().any(|member| member.replica == *replica && member.voter);
        let is_close = |replica: &ReplicaId| {
            let member = status.members.iter().find(|member| member.replica == *replica);
            member.and_then(|member| member.matched).is_some_and(|has| has + CLOSE >= status.last.unwrap_or(0))
        };
        let extra = status.members.iter().find(|member| !wanted.contains_key(&member.replica));
        let step = if let Some((replica, node)) = missing {
            group.add_learner(*replica, *node).await
        } else if status.joint || wanted.keys().any(|replica| !votes(replica)) {
            if !wanted.keys().all(|replica| votes(replica) || is_close(replica)) {
                continue;
            }
            group.set_voters(wanted.into_keys().collect()).await
        } else if let Some(extra) = extra {
            if extra.voter {
                group.set_voters(wanted.into_keys().collect()).await
            } else {
                group.remove_learner(extra.replica).await
            }
        } else {
            continue;
        };
        world.trace.say(format_args!("members of group {}: {step:?}", group.id()));
    }
}
