//! Conductor of a run: executes the scheduled faults one after the other and watches every process. In the calm phase
//! after them the cluster has to serve.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::fault::{Also, Kind, Planned, Who};
use crate::cluster::environment::node::Node;
use crate::cluster::environment::status::Status;
use crate::cluster::environment::world::{NotReady, World};
use crate::cluster::recording::events::{Outcome, Phase, RunEvent};
use crate::cluster::workload::shared::ClientContext;
use crate::http_client::HttpClient as Connection;

/// Operations in a row on every object that show that it is served again.
pub const STREAK: u32 = 100;
/// Time limit for recovery after the last fault.
pub const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// A fault that would end later than the storm, by more than this, ends the storm.
const LATE_MAX: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(50);
/// Interval at which nodes are sampled.
const SAMPLE_EVERY: Duration = Duration::from_secs(2);
const SAMPLE_WAIT: Duration = Duration::from_secs(1);
/// Time for a lead to move from one node to another.
const LEAD_MOVES_WITHIN: Duration = Duration::from_secs(2);
const READY_POLL: Duration = Duration::from_millis(100);
/// A node that ends while it starts is started again so often.
const STARTS_MAX: u32 = 3;
/// Time limit for seals while a node is away, besides the time of the fault.
const SEALED_WITHIN: Duration = Duration::from_secs(20);
/// Seals of a shard by two nodes, twice each: what is needed behind the first seal goes with the second.
const SEALS_A_SHARD: u16 = 4;
const SEALS_POLL: Duration = Duration::from_millis(250);
const SEALS_METRIC: &str = "assay_seals_total";
/// Metrics that are kept begin so.
const OUR_METRICS: &str = "assay_";

#[derive(Debug)]
pub struct Conductor<'a> {
    pub world: World,
    pub stage: Arc<ClientContext>,
    pub interrupted: &'a AtomicBool,
    next_sample: Instant,
    /// Number of the fault that was begun last.
    number: u32,
    /// Whether it runs without a second concurrent one.
    alone: bool,
}

/// Result of an attempt to install a fault.
#[derive(Debug)]
pub enum Injected {
    Installed(String),
    /// Installed at a node that may accept no connections while it lasts.
    Deafened(u8, String),
    /// It cannot be done now, and nothing was.
    Skipped(String),
}

impl<'a> Conductor<'a> {
    pub fn new(world: World, stage: Arc<ClientContext>, interrupted: &'a AtomicBool) -> Conductor<'a> {
        Conductor { world, stage, interrupted, next_sample: Instant::now(), number: 0, alone: true }
    }

    pub fn say(&self, said: RunEvent) {
        self.stage.journal.say(said);
    }

    /// One fault after the other, until there is no time for the next.
    pub fn storm(&mut self, planned: &[Planned], until: Instant) -> anyhow::Result<()> {
        for fault in planned {
            let takes = Duration::from_millis(fault.gap_ms + fault.kind.takes_ms());
            if Instant::now() + takes > until + LATE_MAX {
                break;
            }
            self.hold(Duration::from_millis(fault.gap_ms))?;
            self.alone = fault.also.is_none();
            self.world.nodes.values_mut().for_each(Node::answer_for_itself);
            self.one(fault)?;
        }
        self.hold(until.saturating_duration_since(Instant::now()))
    }

    fn one(&mut self, fault: &Planned) -> anyhow::Result<()> {
        let started = Instant::now();
        let hold = Duration::from_millis(fault.hold_ms);
        let mut begun = vec![self.begin(fault)];
        if let (Some(Also { kind, who, salt }), [(_, true)]) = (fault.also, &begun[..]) {
            self.hold(hold / 2)?;
            let second = Planned { kind, who, salt, also: None, ..*fault };
            begun.push(self.begin(&second));
            self.hold(hold / 2)?;
        } else if begun[0].1 {
            self.hold(hold)?;
        }
        if fault.kind == Kind::Snapshot {
            self.until_sealed()?;
        }
        if self.alone {
            self.look_before_heal(fault)?;
        }
        let launched = self.world.heal()?;
        self.stage.set_deaf(None);
        for (number, _) in begun {
            self.say_fault((number, fault), "", None, Outcome::Healed);
        }
        self.await_ready(launched)?;
        if matches!(fault.kind, Kind::OldCopy | Kind::HotOldCopy) {
            // Until what was closed is replaced, the next start closes it again, and that one has no excuse.
            self.must_settle(fault);
        }
        self.stage.set_nodes(self.world.nodes_at());
        eprintln!("storm: {} took {:.1} s", fault.kind.name(), started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Records states that nodes must not have reached under this fault, just before it is healed.
    fn look_before_heal(&mut self, fault: &Planned) -> anyhow::Result<()> {
        match fault.kind {
            Kind::Ring | Kind::LongOneWay => self.all_are_ready(fault)?,
            Kind::Files => self.none_ended(fault, "it may open no more files"),
            Kind::FlippedSegment => self.none_ended(fault, "one of its segments is damaged"),
            _ => {}
        }
        Ok(())
    }

    /// Waits until the nodes that run have sealed each shard twice, up to a limit. On a slow machine, the time of the fault
    /// is too short for them to throw away what an absent node lacks of the log.
    fn until_sealed(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + SEALED_WITHIN;
        let wanted = self.seals() + f64::from(SEALS_A_SHARD) * f64::from(self.world.shards());
        while self.seals() < wanted && Instant::now() < until {
            self.hold(SEALS_POLL)?;
        }
        Ok(())
    }

    /// Seals of all nodes that run, since their start.
    fn seals(&self) -> f64 {
        self.world.up().into_iter().filter_map(|number| self.gauges_of(number)?.remove(SEALS_METRIC)).sum()
    }

    fn must_settle(&mut self, fault: &Planned) {
        if let Err(why) = self.world.settle() {
            self.broken(fault, format!("after it was healed: {why:#}"));
        }
    }

    /// Records a finding if a node ended for this reason.
    fn none_ended(&self, fault: &Planned, reason: &str) {
        let up = self.world.up();
        for number in self.world.members().into_iter().filter(|number| !up.contains(number)) {
            self.broken(fault, format!("node {number} ended because {reason}"));
        }
    }

    /// Every node has to be ready, although some do not reach each other. A lead may move at that moment.
    fn all_are_ready(&mut self, fault: &Planned) -> anyhow::Result<()> {
        let until = Instant::now() + LEAD_MOVES_WITHIN;
        for number in self.world.up() {
            while let Some(why) = self.not_ready(number)? {
                if Instant::now() >= until {
                    self.broken(fault, why);
                    break;
                }
                self.hold(READY_POLL)?;
            }
        }
        Ok(())
    }

    /// Queries the node's `/readyz`. Returns why the node is not ready, or nothing if it is.
    pub fn not_ready(&mut self, number: u8) -> anyhow::Result<Option<String>> {
        let address = self.world.node(number)?.http;
        let answer = Connection::connect(address, "", SAMPLE_WAIT)
            .and_then(|mut connection| connection.send("GET", "/readyz", &[], b""));
        Ok(match answer {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => Some(format!("node {number} is not ready: {} {}", answer.status, answer.body)),
            Err(why) => Some(format!("node {number} does not say whether it is ready: {why:#}")),
        })
    }

    /// Its number, and whether it is installed.
    fn begin(&mut self, fault: &Planned) -> (u32, bool) {
        self.number += 1;
        let number = self.number;
        eprintln!("storm: {} ...", fault.kind.name());
        self.say_fault((number, fault), "", None, Outcome::Begun);
        let installed = match self.world.up().is_empty() {
            true => Ok(Injected::Skipped("no node runs".into())),
            false => self.install(fault),
        };
        let (what, deaf, outcome) = match installed {
            Ok(Injected::Installed(what)) => (what, None, Outcome::Installed),
            Ok(Injected::Deafened(node, what)) => (what, Some(node), Outcome::Installed),
            Ok(Injected::Skipped(why)) => (why, None, Outcome::Skipped),
            Err(why) => (format!("{why:#}"), None, Outcome::Indeterminate),
        };
        if outcome != Outcome::Installed {
            eprintln!("storm: {}: {what}", fault.kind.name());
        }
        self.say_fault((number, fault), &what, deaf, outcome);
        (number, outcome == Outcome::Installed)
    }

    /// Records a violated guarantee of this fault.
    pub fn broken(&self, fault: &Planned, why: String) {
        let fault = fault.kind.name().to_owned();
        eprintln!("storm: {fault}: {why}");
        self.say(RunEvent::Broken { fault, why });
    }

    fn say_fault(&self, (number, fault): (u32, &Planned), what: &str, deaf: Option<u8>, outcome: Outcome) {
        let members = u8::try_from(self.world.members().len()).unwrap_or(u8::MAX);
        self.say(RunEvent::Fault {
            number,
            kind: fault.kind.name().to_owned(),
            what: what.to_owned(),
            // Two at once may well be too many.
            majority: fault.kind.leaves_majority(members) && self.alone,
            deaf,
            outcome,
        });
    }

    /// Waits until they are ready. Nodes that are not are findings, and are started again.
    pub fn await_ready(&mut self, mut launched: Vec<u8>) -> anyhow::Result<()> {
        for _ in 0..STARTS_MAX {
            let not_ready = self.world.await_ready(&launched)?;
            if not_ready.is_empty() {
                return Ok(());
            }
            launched = not_ready.iter().map(|one| one.node).collect();
            for NotReady { node, excuse, why } in not_ready {
                self.say(RunEvent::Exit { node, explained: excuse, why: format!("it did not start: {why}") });
                self.world.node(node)?.launch()?;
            }
        }
        // The findings are said; what is checked later says what else follows.
        Ok(())
    }

    /// Time passes; processes are watched meanwhile.
    pub fn hold(&mut self, time: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + time;
        loop {
            ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
            self.watch()?;
            if Instant::now() >= self.next_sample {
                self.sample();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// Records processes that ended by themselves.
    fn watch(&mut self) -> anyhow::Result<()> {
        for number in self.world.members() {
            let node = self.world.node(number)?;
            if let Some(why) = node.exited()? {
                let explained = node.excused();
                eprintln!("storm: node {number} ended by itself: {why}");
                self.say(RunEvent::Exit { node: number, explained, why });
            }
        }
        Ok(())
    }

    /// Samples all nodes; one that does not respond is sampled again next time.
    pub fn sample(&mut self) {
        self.next_sample = Instant::now() + SAMPLE_EVERY;
        if let Some((node, status)) = self.world.any_status() {
            self.say(RunEvent::Status { node, status });
        }
        for number in self.world.up() {
            let Some(gauges) = self.gauges_of(number) else { continue };
            self.say(RunEvent::Gauges { node: number, gauges });
        }
    }

    /// Returns the figures of a node's process, and its metrics if it answers.
    fn gauges_of(&self, number: u8) -> Option<BTreeMap<String, f64>> {
        let node = self.world.nodes.get(&number)?;
        let mut gauges: BTreeMap<String, f64> = node.gauges().into_iter().collect();
        let answer =
            Connection::connect(node.metrics, "", SAMPLE_WAIT).and_then(|mut connection| connection.text("/metrics"));
        gauges.extend(answer.iter().flat_map(|text| text.lines()).filter_map(gauge));
        Some(gauges)
    }

    /// Runs the calm phase, without faults. Returns when every object was served often enough, and not before
    /// `at_least`.
    pub fn calm(&mut self, at_least: Duration) -> anyhow::Result<()> {
        let launched = self.world.heal()?;
        self.stage.enter(Phase::Calm);
        let begun = Instant::now();
        self.await_ready(launched)?;
        self.stage.set_nodes(self.world.nodes_at());
        while begun.elapsed() < at_least || (self.stage.lowest_streak() < STREAK && begun.elapsed() < RECOVERY_MAX) {
            self.hold(TICK)?;
            // Whoever ends now is a finding, and is started as a supervisor would.
            let ended = self.world.members().len() > self.world.up().len();
            if ended {
                let launched = self.world.heal()?;
                self.await_ready(launched)?;
            }
        }
        self.sample();
        Ok(())
    }

    /// Stops every node.
    pub fn end(&mut self, wait: Duration) -> anyhow::Result<()> {
        self.world.up().into_iter().try_for_each(|number| self.stop(number, wait))
    }

    /// Sends the node SIGTERM and waits for its end. Any end but a clean one within `wait` is a finding.
    pub fn stop(&mut self, number: u8, wait: Duration) -> anyhow::Result<()> {
        let why = match self.world.node(number)?.terminate(wait)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => format!("asked to stop it ended with {status}"),
            None => format!("asked to stop it still ran after {wait:?}"),
        };
        self.say(RunEvent::Exit { node: number, explained: None, why });
        Ok(())
    }

    /// One of the nodes that run.
    pub fn choose(&mut self, who: Who, rng: &mut ChaCha8Rng) -> anyhow::Result<u8> {
        let up = self.world.up();
        ensure!(!up.is_empty(), "no node runs");
        let any = up[rng.random_range(0..up.len())];
        if who == Who::Any {
            return Ok(any);
        }
        let Some(status) = self.world.any_status().and_then(|(_, status)| Status::of(&status)) else { return Ok(any) };
        let leads = status.leads().into_iter();
        let numbered = leads.filter_map(|(id, count)| Some((count, self.world.number_of(&status, id)?)));
        let numbered = numbered.filter(|(_, number)| up.contains(number));
        let found = if who == Who::Leader { numbered.max() } else { numbered.min() };
        Ok(found.map_or(any, |(_, number)| number))
    }

    /// Waits until every group has a leader, up to the limit.
    pub fn until_led(&mut self, at_most: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + at_most;
        while self.world.clustered() && Instant::now() < until {
            let status = self.world.any_status().and_then(|(_, status)| Status::of(&status));
            if status.is_some_and(|status| status.groups.iter().all(|group| group.leader.is_some())) {
                break;
            }
            self.hold(TICK)?;
        }
        Ok(())
    }
}

/// A line of metrics without labels.
fn gauge(line: &str) -> Option<(String, f64)> {
    let (name, value) = line.split_once(' ')?;
    (name.starts_with(OUR_METRICS) && !name.contains('{')).then_some(())?;
    Some((name.to_owned(), value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_a_name_and_a_number() {
        assert_eq!(gauge("assay_seals_total 4"), Some(("assay_seals_total".into(), 4.0)));
        for other in ["# HELP assay_x y", "process_x 1", "assay_x{a=\"b\"} 1", "assay_x y", ""] {
            assert_eq!(gauge(other), None, "{other}");
        }
    }
}
