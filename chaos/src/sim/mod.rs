//! Deterministic simulation: a whole cluster in one thread, on simulated time, network and disks, from one seed.
//!
//! ```text
//! plan (seed) ─> clients ─> object_access: the product's line of an object ─> Group: committer, openraft, log store
//!            └─> faults ─> world: machines ─> processes ─> replicas       │ wires (network)      │ apply, shard, catalog
//!                                          log in memory (crash_disk) <───┘ disk, keyed stores <─┘
//! ```
//! The simulated code is the product's own: objects' lines, consensus with its members, snapshots and handovers, the
//! shard and the catalog. The layers below are in memory: the log's file, the disk, the keyed store, the network, the
//! clock. A crash takes a copy of the durable state at that moment and lets the isolated process run to its end.
//!
//! `invariants` are checked while it runs. In the end, with everything repaired, the checkers of the other tests
//! compare the history with what every node reads. One seed gives one trace if tokio was built with a seedable random
//! source (`--cfg tokio_unstable`, as `chaos/simulate` builds it).

mod checked_machine;
mod clients;
mod crash_disk;
mod faults;
mod final_checks;
mod invariants;
mod large_writes;
mod network;
mod object_access;
mod plan;
mod process;
mod randomness;
mod registers;
mod seeds;
mod stale_copies;
mod trace;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

use clients::{SimClient, SimClients};
use plan::SimPlan;
use randomness::Dice;
use world::{SimWorld, groups};

pub use seeds::{SimOptions, run};

/// Outcome of one seed.
#[derive(Clone, Debug)]
pub struct SimOutcome {
    pub seed: u64,
    pub findings: Vec<String>,
    /// Digest of the trace.
    pub digest: u64,
    /// The trace, if requested.
    pub trace: String,
    /// Event counts, so that an empty run is noticed.
    pub entries: usize,
    pub elections: usize,
    pub acknowledged: usize,
    pub faults: usize,
}

/// A simulation that takes longer on its own clock hangs.
const SIMULATED_MAX: Duration = Duration::from_secs(300);
/// Interval between two checks of the replicas' reports.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a seed gives the same trace each time in this build.
pub const REPEATABLE: bool = cfg!(tokio_unstable);

fn runtime(seed: u64) -> std::io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    #[cfg(not(tokio_unstable))]
    let _ = seed; // tokio throws its own dice
    builder.build()
}

/// Runs one seed to its end on this thread.
pub fn simulate(seed: u64, keep_trace: bool) -> anyhow::Result<SimOutcome> {
    assay_cluster_raft::seed_elections(seed);
    let runtime = runtime(seed)?;
    let plan = SimPlan::of(seed);
    let faults = plan.faults.len();
    let outcome = runtime.block_on(async move {
        let world = SimWorld::new(plan, Dice::new(!seed), keep_trace);
        if timeout(SIMULATED_MAX, live(&world)).await.is_err() {
            world.facts.find(format!("it did not end within {} simulated seconds", SIMULATED_MAX.as_secs()));
        }
        let history = crate::single_node::worker_history::WorkerHistory::of(&world.history.lock());
        SimOutcome {
            seed,
            findings: world.facts.findings(),
            digest: world.trace.digest(),
            trace: world.trace.text(),
            entries: world.facts.entries(),
            elections: world.facts.elections(),
            acknowledged: history.acknowledged(),
            faults,
        }
    });
    runtime.shutdown_background();
    Ok(outcome)
}

async fn live(world: &Arc<SimWorld>) {
    let shared = Arc::new(SimClients::default());
    world.found().await;
    tokio::spawn(watch(Arc::clone(world)));
    for group in groups() {
        tokio::spawn(faults::keep_members(Arc::clone(world), group));
    }
    let until = Instant::now() + world.plan.faults_end;
    let mut clients = Vec::new();
    for number in 0..world.plan.clients {
        let client =
            SimClient { number, world: Arc::clone(world), shared: Arc::clone(&shared), dice: world.dice.apart() };
        clients.push(tokio::spawn(client.run(until)));
    }
    faults::run(Arc::clone(world), world.dice.apart()).await;
    for client in clients {
        if let Err(error) = client.await {
            world.facts.find(format!("a client's task: {error}"));
        }
    }
    world.mend();
    final_checks::check(world, &shared).await;
}

/// Checks the replicas' reports periodically.
async fn watch(world: Arc<SimWorld>) {
    loop {
        for life in world.lives() {
            for group in groups() {
                if let Some(running) = life.running(group) {
                    let status = running.group.status();
                    let replica = running.group.replica();
                    world.facts.status(life.node, life.number, group, replica, &status);
                    let sealed = running.group.machine().sealed().position.map(|position| position.index);
                    world.facts.purged(group, replica, life.kept.log.purged(group), sealed);
                }
            }
        }
        sleep(LOOK).await;
    }
}
