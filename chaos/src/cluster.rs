//! Chaos test of a whole cluster: real processes with a network and disks of their own, clients at every node,
//! scheduled faults, and checkers that compare the history with the final state.
//!
//! ```text
//! environment  nodes with namespaces and disks, founded and joined as an operator would
//! workload     clients, what they share, and what each of them does
//! scenario     scenarios: old_leader, far_apart (through a relay), upgrade, scoring
//! faults       a schedule of faults, their injection, and the conductor that runs them one after the other
//! recording    history.jsonl, reads.jsonl, logs/: everything that the checkers know, and the final reads
//! check        the checkers; figures: the numbers of a run
//! ```
//!
//! One seed determines topology, timings, faults and workload, but not the times of a real run; the history is the
//! evidence. A failure of the harness is `unknown`, never a pass.

pub mod check;
mod environment;
mod faults;
pub mod figures;
mod recording;
mod scenario;
mod workload;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, json};

use crate::report::{Report, Verdict};
use check::{Evidence, Findings};
use environment::fault_support::FaultSupport;
use environment::world::{API_KEY, Plan, World};
use faults::conductor::Conductor;
use faults::fault::{CALM_SECONDS, Planned, WARM_MS, promised};
use recording::event_log::Journal;
use recording::events::{Outcome, Phase, RunEvent};
use recording::indexed_history::{End, Went, WriteRecord};
use workload::shared::ClientContext;

pub use faults::fault::Kind;
pub use scenario::{far_apart, old_leader, scoring, upgrade};

/// Shards and memory of a run are one of these.
const SHARDS: [u16; 2] = [4, 8];
const MEMORY_BUDGET_BYTES: std::ops::RangeInclusive<u64> = 1_000_000..=4_000_000;
/// Time limit for a node to stop at the end.
const STOP_MAX: Duration = Duration::from_secs(40);
/// A run of this length has at least so many kinds of faults.
const LONG_SECONDS: u64 = 90;
const KINDS_MIN: u64 = 6;
/// A second of a run has at least so many acknowledged writes, however slow the build.
const WRITES_PER_SECOND_MIN: u64 = 3;
/// Metric of the snapshots that a node took from another, in addition to its log.
const SNAPSHOTS_METRIC: &str = "assay_snapshots_installed_total";

/// Options of a run.
#[derive(Clone, Debug)]
pub struct ClusterRunOptions {
    pub seed: u64,
    pub seconds: u64,
    pub nodes: u8,
    /// Only these faults; all supported ones if empty.
    pub faults: Vec<Kind>,
    /// Everything is kept, also of a run that held.
    pub keep: bool,
}

impl ClusterRunOptions {
    /// Returns the arguments that repeat the run.
    pub fn words(&self) -> String {
        let mut words = format!("--seconds {} --nodes {}", self.seconds, self.nodes);
        if !self.faults.is_empty() {
            let names: Vec<&str> = self.faults.iter().map(|kind| kind.name()).collect();
            words += &format!(" --faults {}", names.join(","));
        }
        words
    }
}

/// Runs the storm; what is to be looked at afterwards. `interrupted` ends it early, with everything torn down.
pub fn run(options: &ClusterRunOptions, interrupted: &AtomicBool, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let dir = tempfile::Builder::new().prefix("assay-chaos-run-").tempdir().context("making a directory")?;
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let (mut conductor, planned) = prepare(options, dir.path(), &mut rng, interrupted, report)?;
    let played = play(&mut conductor, options, &planned, &mut rng).and_then(|()| judge(dir.path(), report));
    if let Err(why) = played {
        report.troubles.push(format!("{why:#}"));
    }
    let keep = options.keep || matches!(report.verdict(), Verdict::Invalid | Verdict::Unknown);
    if !keep {
        return Ok(Vec::new());
    }
    conductor.world.keep();
    drop(conductor);
    Ok(vec![dir.keep()])
}

/// Holds a run that was kept against the checkers once more.
pub fn check_again(dir: &Path, report: &mut Report) -> anyhow::Result<()> {
    judge(dir, report)
}

/// Everything that a run is made of. No process runs yet.
fn prepare<'a>(
    options: &ClusterRunOptions,
    dir: &Path,
    rng: &mut ChaCha8Rng,
    interrupted: &'a AtomicBool,
    report: &mut Report,
) -> anyhow::Result<(Conductor<'a>, Vec<Planned>)> {
    let wanted: BTreeSet<Kind> = if options.faults.is_empty() {
        Kind::all().filter(|kind| kind.nodes_min() <= options.nodes && kind.fits(options.seconds)).collect()
    } else {
        options.faults.iter().copied().collect()
    };
    let plan = Plan {
        nodes: options.nodes,
        shards: SHARDS[rng.random_range(0..SHARDS.len())],
        memory_budget_bytes: rng.random_range(MEMORY_BUDGET_BYTES),
    };
    let journal = Journal::create(dir)?;
    journal.say(RunEvent::Run { seed: options.seed, seconds: options.seconds, nodes: plan.nodes, shards: plan.shards });
    journal.say(RunEvent::Phase { phase: Phase::Setup });
    let mut world = World::create(dir, plan, FaultSupport::probe())?;
    let kinds = possible(&wanted, options.nodes, &world.means, report);
    let planned = faults::fault::schedule(rng.random(), options.seconds, &kinds);
    if planned.iter().any(|one| one.kind == Kind::Clock) {
        world.show_clocks()?;
    }
    wanted_coverage(options, promised(&planned, options.seconds), report);
    let stage = Arc::new(ClientContext::new(journal, API_KEY.to_owned(), world.nodes_at()));
    Ok((Conductor::new(world, stage, interrupted), planned))
}

/// Wanted faults that can be injected here; the others are reported.
fn possible(wanted: &BTreeSet<Kind>, nodes: u8, means: &FaultSupport, report: &mut Report) -> BTreeSet<Kind> {
    let mut possible = BTreeSet::new();
    for kind in wanted {
        let lacks = kind.need().and_then(|need| means.lacks(need));
        if kind.nodes_min() > nodes {
            report.not_covered.push(format!("fault {}: it needs {} nodes", kind.name(), kind.nodes_min()));
        } else if let Some(lacks) = lacks {
            report.not_covered.push(format!("fault {}: {lacks}", kind.name()));
        } else {
            possible.insert(*kind);
        }
    }
    possible
}

/// Sets the coverage that the run must reach to prove anything.
fn wanted_coverage(options: &ClusterRunOptions, planned: &[Planned], report: &mut Report) {
    let coverage = &mut report.coverage;
    coverage.want("writes acknowledged", options.seconds * WRITES_PER_SECOND_MIN);
    for (what, at_least) in [("reads", 2), ("reads at a version", 4), ("asks answered", 2)] {
        coverage.want(what, options.seconds / at_least);
    }
    coverage.want("retries that were one write", 1);
    let kinds: BTreeSet<Kind> = planned.iter().map(|one| one.kind).collect();
    for kind in &kinds {
        coverage.want(&format!("fault {}", kind.name()), 1);
    }
    if !kinds.is_empty() {
        coverage.want("operations of unknown outcome", 1);
    }
    if options.nodes >= 3 && options.seconds >= LONG_SECONDS && options.faults.is_empty() {
        coverage.want("kinds of faults", KINDS_MIN);
    }
    let moves_leaders = |kind: &Kind| matches!(kind, Kind::Kill | Kind::KillAll | Kind::Isolate | Kind::Rolling);
    if options.nodes >= 2 && kinds.iter().any(moves_leaders) {
        coverage.want("leader changes", 1);
    }
    if kinds.contains(&Kind::Snapshot) {
        coverage.want("snapshots installed", 1);
    }
}

/// Runs everything from the first start to the final reads.
fn play(
    conductor: &mut Conductor<'_>,
    options: &ClusterRunOptions,
    planned: &[Planned],
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<()> {
    conductor.world.found().context("founding the cluster")?;
    under_load(conductor, &workload::workloads::ALL, rng, |conductor| storm_and_calm(conductor, options, planned))
}

/// Runs clients for as long as `attack` takes; then the last look.
fn under_load(
    conductor: &mut Conductor<'_>,
    mix: &workload::workloads::WorkloadMix,
    rng: &mut ChaCha8Rng,
    attack: impl FnOnce(&mut Conductor<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stage = Arc::clone(&conductor.stage);
    let clients = workload::workloads::start(&stage, mix, rng)?;
    let attacked = attack(conductor);
    stage.stop();
    let joined = join(clients);
    attacked.and(joined)?;
    conclude(conductor)
}

/// Reads everything back, stops the nodes and completes the history.
fn conclude(conductor: &mut Conductor<'_>) -> anyhow::Result<()> {
    conductor.look()?;
    conductor.end(STOP_MAX)?;
    let journal = &conductor.stage.journal;
    journal.flush();
    journal.trouble().map_or(Ok(()), |why| Err(anyhow!(why)))
}

/// The storm and the calm after it.
fn storm_and_calm(
    conductor: &mut Conductor<'_>,
    options: &ClusterRunOptions,
    planned: &[Planned],
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let calm = Duration::from_secs(CALM_SECONDS.min(options.seconds));
    conductor.stage.enter(Phase::Storm);
    conductor.sample();
    conductor.hold(Duration::from_millis(WARM_MS))?;
    let until = begun + Duration::from_secs(options.seconds) - calm;
    conductor.storm(planned, until)?;
    conductor.calm(calm)
}

fn join(clients: Vec<JoinHandle<anyhow::Result<()>>>) -> anyhow::Result<()> {
    let ends = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
    // All are waited for, whatever became of the first.
    let ends: Vec<anyhow::Result<()>> = ends.collect();
    ends.into_iter().collect::<anyhow::Result<()>>().context("a client")
}

/// Holds what was left behind against the checkers.
fn judge(dir: &Path, report: &mut Report) -> anyhow::Result<()> {
    let evidence = Evidence::load(dir)?;
    report.troubles.extend(evidence.history.broken.iter().take(check::TOLD_MAX).cloned());
    report.troubles.extend(check::unsure(&evidence));
    let mut told = Map::new();
    for Findings { checker, findings, found } in check::all(&evidence) {
        report.findings.extend(findings.iter().map(|finding| format!("{checker}: {finding}")));
        if found > findings.len() {
            report.findings.push(format!("{checker}: and {} more", found - findings.len()));
        }
        let verdict = if found == 0 { "valid" } else { "invalid" };
        told.insert(checker.to_owned(), json!({ "verdict": verdict, "found": found }));
    }
    report.details.insert("checkers".into(), told.into());
    report.details.extend(figures::of(&evidence));
    report.notes = figures::notes(&evidence);
    cover(&evidence, report);
    Ok(())
}

/// Counts the coverage from the history.
fn cover(evidence: &Evidence, report: &mut Report) {
    let history = &evidence.history;
    let coverage = &mut report.coverage;
    let ended = |kinds: &[&str], wanted: Went| {
        let of_kind = history.operations.values().filter(|one| kinds.is_empty() || kinds.contains(&one.kind));
        of_kind.filter(|one| one.ended.is_some_and(|(_, went)| went == wanted)).count() as u64
    };
    coverage.add("writes acknowledged", ended(&["write"], Went::Well));
    coverage.add("reads", ended(&["read"], Went::Well));
    coverage.add("reads at a version", ended(&["read at a version"], Went::Well));
    coverage.add("asks answered", ended(&["ask"], Went::Well));
    coverage.add("operations of unknown outcome", ended(&[], Went::Unknown));
    let once =
        |write: &&WriteRecord| write.sends.iter().filter(|sent| matches!(sent.ended, Some((_, End::Ok)))).count() > 1;
    coverage.add("retries that were one write", history.writes.values().filter(once).count() as u64);
    let mut kinds = BTreeSet::new();
    for fault in &history.faults {
        match fault.outcome {
            Outcome::Installed => {
                coverage.add(&format!("fault {}", fault.kind), 1);
                kinds.insert(&fault.kind);
            }
            Outcome::Skipped => coverage.add("faults left out", 1),
            _ => report.troubles.push(format!("fault {} {}: {}", fault.number, fault.kind, fault.what)),
        }
    }
    coverage.add("kinds of faults", kinds.len() as u64);
    coverage.add("leader changes", figures::leader_changes(evidence));
    let logged: usize = evidence.logs.iter().map(|log| log.snapshots).sum();
    coverage.add("snapshots installed", figures::highest(evidence, SNAPSHOTS_METRIC).max(logged as u64));
    let rows: usize = evidence.pictures.values().map(|picture| picture.rows.len()).sum();
    coverage.add("rows read back", rows as u64);
}
