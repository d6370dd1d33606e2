//! Scenario of three nodes that are far apart: every byte between them takes 300 ms, and clients at each node read and
//! write all the time.
//!
//! Nodes reach each other by addresses of the [relay](crate::cluster::environment::relay). If rules can be made,
//! packets that bypass it are dropped. The nodes have the timing settings that the guide gives for such a round trip.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::request_outcomes;
use super::request_outcomes::Requests;
use super::{Opening, Scenario};
use crate::cluster::environment::relay::{Relay, RelayPort};
use crate::cluster::environment::world::{Plan, World};
use crate::cluster::faults::conductor::Conductor;
use crate::cluster::recording::events::Phase;
use crate::cluster::under_load;
use crate::cluster::workload::shared::Patience;
use crate::cluster::workload::workloads;
use crate::report::Report;

const NODES: u8 = 3;
const SHARDS: u16 = 4;
const MEMORY_BUDGET_BYTES: u64 = 16 << 20;
/// Every step of a replica that moves takes a round trip or more.
const SETTLE_MAX: Duration = Duration::from_secs(240);
/// A node looks for a leader for 25 s; an answer that is late is a figure, and not a failure.
const PATIENCE: Patience = Patience { wait: Duration::from_secs(30), tries: 1 };
/// Half of the writes take less than this.
const P50_MAX_MS: f64 = 2000.0;
/// Clients read less often than they write.
const SECONDS_PER_READ: u64 = 10;
const REACHED: &str = "nodes reached through the relay";

/// Settings of the times in consensus, with their defaults in milliseconds. Their defaults serve short round trips.
const TIMES: [(&str, u64); 3] =
    [("cluster.heartbeat_ms", 120), ("cluster.election_min_ms", 400), ("cluster.election_max_ms", 700)];
/// Factors of the guide for a round trip, in thirds.
const THIRDS: [u64; 3] = [4, 12, 20];

/// Options of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct FarApartOptions {
    pub seed: u64,
    pub seconds: u64,
    /// Delay from one node to another.
    pub delay_ms: u64,
}

/// Nodes with their relay addresses.
type RelayPorts = Vec<(u8, RelayPort)>;

/// Runs it; what is to be looked at afterwards.
pub fn run(options: FarApartOptions, interrupted: &AtomicBool, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let FarApartOptions { seed, seconds, delay_ms } = options;
    let plan = Plan { nodes: NODES, shards: SHARDS, memory_budget_bytes: MEMORY_BUDGET_BYTES };
    // Before the nodes, so that it goes after them.
    let relay = Relay::new(Duration::from_millis(delay_ms))?;
    let opening = Opening { seed, seconds, plan, need: None, patience: PATIENCE };
    let Some(mut story) = Scenario::open(opening, interrupted, report)? else { return Ok(Vec::new()) };
    report.coverage.want("writes acknowledged", seconds);
    report.coverage.want("reads", seconds / SECONDS_PER_READ);
    report.coverage.want(REACHED, u64::from(NODES));
    let times = times(2 * delay_ms);
    let doors = behind_doors(&mut story.conductor.world, &relay, &times)?;
    let parted = part(&story.conductor.world)?;
    let play = |conductor: &mut Conductor<'_>| play(conductor, seed, seconds);
    let further = |dir: &Path, report: &mut Report| {
        let setup = Setup { delay_ms, times, parted, doors: &doors };
        setup.judge(dir, report)
    };
    Ok(story.tell(report, play, further))
}

fn play(conductor: &mut Conductor<'_>, seed: u64, seconds: u64) -> anyhow::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    conductor.world.found_within(SETTLE_MAX).context("founding the cluster")?;
    for number in conductor.world.members() {
        // Fails where the cluster knows the node by another address than that of its door.
        conductor.world.id_of(number)?;
    }
    under_load(conductor, &workloads::FEW, &mut rng, |conductor| {
        conductor.stage.enter(Phase::Storm);
        conductor.sample();
        conductor.hold(Duration::from_secs(seconds))
    })
}

/// The settings for a round trip, by the guide's rule and never below the defaults.
fn times(round_trip_ms: u64) -> [(&'static str, u64); 3] {
    std::array::from_fn(|place| {
        let (name, default) = TIMES[place];
        (name, default.max(round_trip_ms * THIRDS[place] / 3))
    })
}

/// Gives every node a relay port as its address for the others.
fn behind_doors(world: &mut World, relay: &Relay, times: &[(&str, u64)]) -> anyhow::Result<RelayPorts> {
    let own = IpAddr::V4(world.own_address());
    let mut doors = Vec::new();
    for node in world.nodes.values_mut() {
        let listen = node.peer;
        let door = relay.open(own, listen)?;
        node.peer = door.address;
        node.set([format!("cluster.peer_address={}", node.peer), format!("cluster.peer_listen={listen}")]);
        node.set(times.iter().map(|(name, millis)| format!("{name}={millis}")));
        doors.push((node.number, door));
    }
    Ok(doors)
}

/// Drops every packet from one node to another, where rules can be made. Returns whether they can.
fn part(world: &World) -> anyhow::Result<bool> {
    let Some(network) = world.network.as_ref().filter(|_| world.means.rules.is_none()) else { return Ok(false) };
    let members = world.members();
    for (place, one) in members.iter().enumerate() {
        for other in &members[place + 1..] {
            network.cut_both(*one, *other)?;
        }
    }
    Ok(true)
}

/// Setup of the run; the verdict needs it besides the history.
struct Setup<'a> {
    delay_ms: u64,
    times: [(&'static str, u64); 3],
    /// Whether rules prevent direct connections between nodes.
    parted: bool,
    doors: &'a RelayPorts,
}

impl Setup<'_> {
    fn judge(&self, dir: &Path, report: &mut Report) -> anyhow::Result<()> {
        let requests = Requests::of(&request_outcomes::events(dir)?, &[]);
        let failed = || requests.failures.iter().filter(|failure| failure.kind == "write");
        report.findings.extend(request_outcomes::findings("a write failed", failed()));
        let writes = writes(&report.details, failed().count());
        report.findings.extend(slow(&writes));
        let reached = self.doors.iter().filter(|(_, door)| door.carried.to() > 0 && door.carried.from() > 0);
        report.coverage.add(REACHED, reached.count() as u64);
        let way = if self.parted { "by rules that drop all else" } else { "by the addresses that they know" };
        report.notes.push(format!("{} ms each way; nodes reach each other through the relay, {way}", self.delay_ms));
        report.notes.push(format!(
            "writes: {} acknowledged, {} failed, p50 {} ms, p99 {} ms",
            writes["acknowledged"], writes["failed"], writes["p50_ms"], writes["p99_ms"]
        ));
        let doors: Vec<Value> = self.doors.iter().map(|(node, door)| figures_of(*node, door)).collect();
        let door_line = |door: &Value| {
            format!(
                "through the door of node {}: {} connections, {} bytes to it",
                door["node"], door["connections"], door["to"]
            )
        };
        report.notes.extend(doors.iter().map(door_line));
        let settings: Map<String, Value> =
            self.times.iter().map(|(name, millis)| ((*name).to_owned(), json!(millis))).collect();
        let figures = json!({
            "delay_ms": self.delay_ms,
            "settings": settings,
            "parted_by_rules": self.parted,
            "writes": writes,
            "requests": requests.figures(),
            "doors": doors,
        });
        report.details.insert("far_apart".into(), figures);
        Ok(())
    }
}

fn figures_of(node: u8, door: &RelayPort) -> Value {
    let carried = &door.carried;
    json!({ "node": node, "connections": carried.connections(), "to": carried.to(), "from": carried.from() })
}

/// Writes of the storm, from the figures that every run has.
fn writes(details: &Map<String, Value>, failed: usize) -> Value {
    let times = details.get("latency_ms").map_or(&Value::Null, |times| &times["write in the storm"]);
    json!({ "acknowledged": times["count"], "failed": failed, "p50_ms": times["p50"], "p99_ms": times["p99"] })
}

/// Returns a finding about the times of writes, if any. A lack of writes is left to the coverage.
fn slow(writes: &Value) -> Option<String> {
    let p50 = writes["p50_ms"].as_f64().filter(|p50| *p50 >= P50_MAX_MS)?;
    Some(format!("p50 of writes is {p50} ms, not below {P50_MAX_MS} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_readme_and_never_below_the_defaults() {
        let millis = |round_trip_ms| times(round_trip_ms).map(|(_, millis)| millis);
        assert_eq!(millis(600), [800, 2400, 4000]);
        assert_eq!(millis(20), [120, 400, 700]);
        for [heartbeat, min, max] in (0..1500).map(millis) {
            assert!(min >= 3 * heartbeat && 2 * max >= 3 * min && max <= 10_000, "{heartbeat} {min} {max}");
        }
    }

    #[test]
    fn slow_writes_are_a_finding() {
        let of = |p50: f64| {
            let times = json!({ "write in the storm": { "count": 7, "p50": p50, "p99": 2500.0 } });
            writes(&Map::from_iter([("latency_ms".to_owned(), times)]), 2)
        };
        assert_eq!(of(1200.0), json!({"acknowledged": 7, "failed": 2, "p50_ms": 1200.0, "p99_ms": 2500.0}));
        assert_eq!(slow(&of(1999.9)), None);
        assert_eq!(slow(&of(2000.0)), Some("p50 of writes is 2000 ms, not below 2000 ms".into()));
        assert_eq!(slow(&writes(&Map::new(), 0)), None);
    }
}
