//! Fixed scenario of half a minute: state and knowledge that only an old leader has.
//!
//! 1. The node that leads most is cut off from its peers, and clients go on to talk to it. What is written there cannot be
//!    acknowledged, and what the others write meanwhile must not be missing from what is read there.
//! 2. All nodes are killed right after everything was written to, and the one that led most comes back when the others
//!    have continued without it. Everything acknowledged is on one of those as well.
//!
//! The storm does this too, at random: here no luck is needed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::{Opening, Scenario};
use crate::cluster::conclude;
use crate::cluster::environment::fault_support::Need;
use crate::cluster::environment::world::Plan;
use crate::cluster::faults::conductor::Conductor;
use crate::cluster::faults::fault::Who;
use crate::cluster::recording::events::{Outcome, Phase, RunEvent, Workload};
use crate::cluster::workload::client::{Client, Ended, Sending};
use crate::cluster::workload::rows::own;
use crate::cluster::workload::shared::{ClientContext, NodeAt, Object, Patience, Slot};
use crate::cluster::workload::workloads;
use crate::report::Report;

const NODES: u8 = 3;
/// Together with the catalog's group, each node leads some.
const SHARDS: u16 = 8;
/// Number of objects, so large that every node leads the shards of some.
const OBJECTS: u32 = 16;
/// Seals by age, not by size: the newest entries are in the log alone.
const MEMORY_BUDGET_BYTES: u64 = 16 << 20;
/// Time of the isolation. A node without contact to the others for five seconds stops responding.
const CUT_OFF: Duration = Duration::from_millis(4600);
/// Time after which the others begin to find new leaders.
const LED_AFTER: Duration = Duration::from_millis(1300);
const LED_MAX: Duration = Duration::from_secs(20);
/// Time limit for a write in a cluster with a majority.
const WRITTEN_MAX: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Runs it; what is to be looked at afterwards.
pub fn run(seed: u64, interrupted: &AtomicBool, report: &mut Report) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let plan = Plan { nodes: NODES, shards: SHARDS, memory_budget_bytes: MEMORY_BUDGET_BYTES };
    let opening = Opening { seed, seconds: 0, plan, need: Some(Need::Rules), patience: Patience::default() };
    let Some(story) = Scenario::open(opening, interrupted, report)? else { return Ok(Vec::new()) };
    for what in ["fault cut-off", "fault last-back"] {
        report.coverage.want(what, 1);
    }
    report.coverage.want("writes acknowledged", 3 * u64::from(OBJECTS));
    report.coverage.want("reads", u64::from(OBJECTS));
    Ok(story.tell(report, |conductor| play(conductor, seed), |_, _| Ok(())))
}

fn play(conductor: &mut Conductor<'_>, seed: u64) -> anyhow::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    conductor.world.found().context("founding the cluster")?;
    let mut teller = Teller::new(&conductor.stage, &mut rng)?;
    conductor.stage.enter(Phase::Storm);
    conductor.hold(Duration::ZERO)?;
    teller.write_all(&conductor.stage.nodes())?;

    let old = conductor.choose(Who::Leader, &mut rng)?;
    cut_off(conductor, &mut teller, old)?;
    conductor.until_led(LED_MAX)?;
    teller.write_all(&conductor.stage.nodes())?;

    let old = conductor.choose(Who::Leader, &mut rng)?;
    last_back(conductor, &mut teller, old)?;
    conductor.until_led(LED_MAX)?;
    teller.write_all(&conductor.stage.nodes())?;
    conductor.world.settle()?;
    conclude(conductor)
}

/// Isolates the node, and reads from it what the others have changed.
fn cut_off(conductor: &mut Conductor<'_>, teller: &mut Teller, old: u8) -> anyhow::Result<()> {
    let fault = |conductor: &Conductor<'_>, outcome| {
        conductor.say(RunEvent::Fault {
            number: 1,
            kind: "cut-off".into(),
            what: format!("node {old} is cut off from its peers"),
            majority: true,
            deaf: None,
            outcome,
        });
    };
    fault(conductor, Outcome::Begun);
    let network = conductor.world.network.as_ref().context("there is no network of our own")?;
    let others: Vec<u8> = conductor.world.members().into_iter().filter(|other| *other != old).collect();
    others.iter().try_for_each(|other| network.cut_both(old, *other))?;
    fault(conductor, Outcome::Installed);
    let (until, nodes) = (Instant::now() + CUT_OFF, conductor.stage.nodes());
    let (old, others): (Vec<NodeAt>, Vec<NodeAt>) = nodes.into_iter().partition(|at| at.node == old);
    std::thread::scope(|scope| {
        // It is healed in time, whoever still waits for an answer.
        let asking = scope.spawn(|| teller.ask_the_old(old[0], &others, until));
        // Not held by the conductor: it would ask the node how it is, and wait for that.
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        conductor.world.heal()?;
        fault(conductor, Outcome::Healed);
        asking.join().map_err(|_| anyhow!("a client panicked"))?
    })
}

/// Kills all, and starts the node when the others have written without it.
fn last_back(conductor: &mut Conductor<'_>, teller: &mut Teller, old: u8) -> anyhow::Result<()> {
    let fault = |conductor: &Conductor<'_>, outcome| {
        conductor.say(RunEvent::Fault {
            number: 2,
            kind: "last-back".into(),
            what: format!("all nodes are killed, and node {old} comes back last"),
            majority: false,
            deaf: None,
            outcome,
        });
    };
    teller.write_all(&conductor.stage.nodes())?;
    fault(conductor, Outcome::Begun);
    let all = conductor.world.up();
    all.iter().try_for_each(|node| conductor.world.node(*node)?.kill())?;
    fault(conductor, Outcome::Installed);
    let others: Vec<u8> = all.into_iter().filter(|node| *node != old).collect();
    others.iter().try_for_each(|node| conductor.world.node(*node)?.launch())?;
    conductor.await_ready(others.clone())?;
    conductor.until_led(LED_MAX)?;
    let at = conductor.stage.nodes().into_iter().filter(|at| others.contains(&at.node)).collect::<Vec<NodeAt>>();
    teller.write_all(&at)?;
    let launched = conductor.world.heal()?;
    fault(conductor, Outcome::Healed);
    conductor.await_ready(launched)
}

/// Clients of one object: three, so that one that waits delays no other.
struct Trio {
    object: Arc<Object>,
    writer: Client,
    /// Write and read at the old leader.
    stubborn: Client,
    reader: Client,
}

struct Teller(Vec<Trio>);

impl Teller {
    fn new(stage: &Arc<ClientContext>, rng: &mut ChaCha8Rng) -> anyhow::Result<Teller> {
        let mut maker = Client::new(0, Arc::clone(stage), rng.random());
        let project = workloads::made(&mut maker, "/v1/project", &json!({ "name": "story" }))?;
        let (mut trios, mut slots) = (Vec::new(), Vec::new());
        for number in 0..OBJECTS {
            let object = workloads::object(&mut maker, &project, Workload::Append, number, 0)?;
            slots.push(Slot::new(Workload::Append, number, Arc::clone(&object)));
            let mut client = |place: u32| Client::new(1 + number * 3 + place, Arc::clone(stage), rng.random());
            trios.push(Trio { object, writer: client(0), stubborn: client(1), reader: client(2) });
        }
        stage.set_slots(slots);
        Ok(Teller(trios))
    }

    /// One write to each object that is acknowledged, whichever of these nodes does it.
    fn write_all(&mut self, nodes: &[NodeAt]) -> anyhow::Result<()> {
        at_once(&mut self.0, |trio| {
            let until = Instant::now() + WRITTEN_MAX;
            ensure!(written(&mut trio.writer, &trio.object, nodes, until), "{} takes no writes", trio.object.name);
            Ok(())
        })
    }

    /// Writes through the old leader, and reads from it what has been written through the others since.
    fn ask_the_old(&mut self, old: NodeAt, others: &[NodeAt], until: Instant) -> anyhow::Result<()> {
        at_once(&mut self.0, |trio| {
            let Trio { object, writer, stubborn, reader } = trio;
            std::thread::scope(|scope| {
                scope.spawn(|| one_write(stubborn, object, old));
                std::thread::sleep(LED_AFTER);
                // Whether the others lead again by then is not asked here: it is asked when all is healed.
                if written(writer, object, others, until) {
                    while Instant::now() < until && reader.read_at(old, object, None).is_none() {
                        std::thread::sleep(AGAIN_AFTER);
                    }
                }
            });
            Ok(())
        })
    }
}

fn one_write(client: &mut Client, object: &Object, at: NodeAt) -> Ended {
    let write = client.stage.journal.operation();
    client.write_at(at, &Sending { object, write, key: None, rows: &[own(write, 0)] })
}

/// Returns whether one of these nodes acknowledged a write in time.
fn written(client: &mut Client, object: &Object, nodes: &[NodeAt], until: Instant) -> bool {
    let mut turns = nodes.iter().cycle().skip(client.number as usize % nodes.len().max(1));
    while let Some(at) = turns.next().filter(|_| Instant::now() < until) {
        if one_write(client, object, *at) == Ended::Ok {
            return true;
        }
        std::thread::sleep(AGAIN_AFTER);
    }
    false
}

/// Runs the work on all objects concurrently. Waits for all, even after a failure.
fn at_once(trios: &mut [Trio], work: impl Fn(&mut Trio) -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = trios.iter_mut().map(|trio| scope.spawn(|| work(trio))).collect();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ends.into_iter().try_for_each(|end| end.map_err(|_| anyhow!("a client panicked"))?)
    })
}
