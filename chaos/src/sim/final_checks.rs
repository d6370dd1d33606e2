//! Final checks of a simulation: everything is repaired, and the cluster has to converge, serve, and have everything
//! acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, Xact};
use assay_storage_shard::View;
use tokio::time::{Instant, sleep};

use super::checked_machine::MachineState;
use super::clients::SimClients;
use super::object_access::{OBJECTS, SimWrite, group_of, key_of};
use super::world::{SimWorld, groups};
use crate::single_node::documents::RowSpec;
use crate::single_node::dump::{Dump, digest, print_end, print_object};
use crate::single_node::store::StoreReply;
use crate::single_node::store_checks;
use crate::single_node::worker_history::{WorkerEvent, WorkerHistory};

/// Promise P12: after the last mending everything is served within this.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// Versions of one object that are read in the end, besides the newest.
const VERSIONS_READ: usize = 4;

pub async fn check(world: &Arc<SimWorld>, shared: &SimClients) {
    if !come_together(world).await || !serve(world).await || !come_together(world).await {
        return;
    }
    let versions: Vec<Vec<u64>> = (0..OBJECTS).map(|object| some_versions(world, shared, object)).collect();
    let mut read: BTreeMap<NodeId, Vec<String>> = BTreeMap::new();
    for life in world.lives() {
        match digests(world, life.node, &versions) {
            Ok(digests) => drop(read.insert(life.node, digests)),
            Err(error) => world.facts.find(format!("reading all of node {}: {error:#}", life.node)),
        }
        if let Some(MachineState::Catalog(catalog)) = life.running(GroupId::CATALOG).map(|running| running.state) {
            shared.registers.check(&catalog).into_iter().for_each(|finding| world.facts.find(finding));
        }
    }
    let nodes: Vec<NodeId> = read.keys().copied().collect();
    let Some(one) = world.dice.pick(&nodes) else { return };
    if let Some((other, _)) = read.iter().find(|(_, digests)| **digests != read[&one]) {
        world.facts.find(format!("nodes {one} and {other} do not read the same"));
    }
    let dumped = dump(world, one, &versions).and_then(|text| Dump::parse(&text));
    match dumped {
        Ok(dump) => {
            let history = WorkerHistory::of(&world.history.lock());
            store_checks::all(&history, &dump).into_iter().for_each(|finding| world.facts.find(finding));
        }
        Err(error) => world.facts.find(format!("what node {one} reads does not fit together: {error:#}")),
    }
}

/// A few of the versions that clients saw: all of them would take most of the time.
fn some_versions(world: &SimWorld, shared: &SimClients, object: u8) -> Vec<u64> {
    let all = shared.versions_of(object);
    let mut some: Vec<u64> = (0..VERSIONS_READ).filter_map(|_| world.dice.pick(&all)).collect();
    some.sort_unstable();
    some.dedup();
    some
}

/// Waits until every node runs and every group's replicas have all that its leader has.
async fn come_together(world: &Arc<SimWorld>) -> bool {
    let until = Instant::now() + SERVED_WITHIN;
    loop {
        let why = match apart(world) {
            None => return true,
            Some(why) => why,
        };
        if Instant::now() >= until {
            world.facts.find(format!("{} s after all was mended: {why}", SERVED_WITHIN.as_secs()));
            return false;
        }
        sleep(LOOK).await;
    }
}

fn apart(world: &SimWorld) -> Option<String> {
    let (lives, nodes) = (world.lives(), world.nodes());
    if lives.len() < nodes.len() {
        return Some(format!("{} of {} nodes run", lives.len(), nodes.len()));
    }
    for group in groups() {
        let Some(leader) = world.leader(group).and_then(|life| life.running(group)) else {
            return Some(format!("nobody leads group {group}"));
        };
        let status = leader.group.status();
        let wanted = world.wanted(group);
        let voters =
            status.members.iter().filter(|member| member.voter && wanted.contains_key(&member.replica)).count();
        if status.changing || voters != wanted.len() || status.members.len() != wanted.len() {
            return Some(format!("group {group} has the members {:?} and is to have {wanted:?}", status.members));
        }
        for life in &lives {
            let Some(running) = life.running(group) else {
                return Some(format!("group {group} does not run on node {}", life.node));
            };
            let applied = running.group.status().applied;
            if applied < status.last {
                let node = life.node;
                return Some(format!(
                    "group {group} is at {applied:?} on node {node} and at {:?} on its leader",
                    status.last
                ));
            }
        }
    }
    None
}

/// Every object is written and read through every node. A leader may still change meanwhile, and with it an answer fail:
/// what is promised is that it is served in the end.
async fn serve(world: &Arc<SimWorld>) -> bool {
    let until = Instant::now() + SERVED_WITHIN;
    for node in world.nodes() {
        for object in 0..OBJECTS {
            let mut tries = 0;
            while let Err(why) = serve_once(world, node, object, tries).await {
                if Instant::now() >= until {
                    world.facts.find(format!("object {object} is not served through node {node}: {why}"));
                    return false;
                }
                tries += 1;
                sleep(LOOK).await;
            }
        }
    }
    true
}

async fn serve_once(world: &Arc<SimWorld>, node: NodeId, object: u8, tries: u32) -> Result<(), String> {
    let op = format!("end.{node}.{object}.{tries}");
    let id = format!("end-{node}");
    let rows = vec![RowSpec {
        id: id.clone(),
        action: assay_storage_model::command::Action::Upsert,
        own: id,
        root: "end".into(),
        field: 0,
        value: 1,
        pad: 0,
        rule: 0,
    }];
    let wanted = SimWrite { object, request: None, name: op.clone(), rows: rows.clone() };
    world.say(WorkerEvent::Invoke { op: op.clone(), client: u32::MAX, object, request: None, other: false, rows });
    match world.write(node, &wanted).await {
        StoreReply::Written { xact, again } => world.say(WorkerEvent::Ok { op, xact: xact.0, again }),
        StoreReply::Refused { why } => {
            world.say(WorkerEvent::Refused { op, why: why.clone() });
            return Err(format!("a write is refused: {why}"));
        }
        told => {
            let why = format!("{told:?}");
            world.say(WorkerEvent::Unknown { op, why: why.clone() });
            return Err(format!("a write is answered with {why}"));
        }
    }
    world.view(node, object).await.map(drop).map_err(|why| format!("a read is refused: {why}"))
}

fn view_of(world: &SimWorld, node: NodeId, object: u8) -> anyhow::Result<View> {
    let running = world.life(node).and_then(|life| life.running(group_of(object)));
    match running.map(|running| running.state) {
        Some(MachineState::Shard(shard)) => Ok(shard.view()),
        _ => anyhow::bail!("object {object}: no shard"),
    }
}

/// Digests of every object, at its newest version and at these.
fn digests(world: &SimWorld, node: NodeId, versions: &[Vec<u64>]) -> anyhow::Result<Vec<String>> {
    let mut digests = Vec::new();
    for (object, versions) in (0..OBJECTS).zip(versions) {
        let view = view_of(world, node, object)?;
        for version in versions.iter().copied().map(Xact).chain([view.version()]) {
            digests.push(format!("{version} {}", digest(&view.all(&key_of(object), version)?)));
        }
    }
    Ok(digests)
}

fn dump(world: &SimWorld, node: NodeId, versions: &[Vec<u64>]) -> anyhow::Result<String> {
    let mut out = Vec::new();
    let others: Vec<String> = world.nodes().iter().map(|node| format!("end-{node}")).collect();
    for (object, versions) in (0..OBJECTS).zip(versions) {
        print_object(&view_of(world, node, object)?, &key_of(object), object, versions, &others, &mut out)?;
    }
    print_end(OBJECTS, &mut out)?;
    Ok(String::from_utf8(out)?)
}
