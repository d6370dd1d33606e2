//! `kill -9` at random moments: during writes, seals and compactions, and during the recovery from the last one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::report::Report;
use crate::single_node::harness::{Orders, StoreHarness, WorkerLife};
use crate::single_node::worker_history::WorkerEvent;

/// A directory is killed so often before a fresh one is taken.
const RUNS_PER_DIRECTORY: u32 = 8;
const LIFE_MS: std::ops::RangeInclusive<u64> = 50..=1500;
/// A kill during recovery comes within this time of the start.
const RECOVERY_MS_MAX: u64 = 150;
/// Maximum time from the start of an upkeep to the kill.
const UPKEEP_MS_MAX: u64 = 60;
const UPKEEP_WAIT: Duration = Duration::from_secs(5);

pub fn run(seed: u64, runs: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kept = Vec::new();
    report.coverage.want("kills", u64::from(runs));
    report.coverage.want("writes acknowledged", u64::from(runs) * 5);
    report.coverage.want("keyed writes sent again", u64::from(runs / 4));
    if runs >= RUNS_PER_DIRECTORY {
        report.coverage.want("kills during upkeep", 1);
        report.coverage.want("kills during recovery", 1);
    }
    let mut left = runs;
    while left > 0 {
        let here = left.min(RUNS_PER_DIRECTORY);
        left -= here;
        let mut scene = StoreHarness::new(rng.random(), None)?;
        let mut good = true;
        for run in 0..here {
            good = one(&mut scene, run, &mut rng, report)?;
            eprintln!("crash: {} of {runs} done", runs - left - here + run + 1);
            if !good {
                break;
            }
        }
        count(&scene, report);
        if !good {
            kept.push(scene.keep());
            break;
        }
    }
    Ok(kept)
}

/// One life and what it leaves; false where something is wrong.
fn one(scene: &mut StoreHarness, run: u32, rng: &mut ChaCha8Rng, report: &mut Report) -> anyhow::Result<bool> {
    if run > 0 {
        for _ in 0..rng.random_range(0..3_u32).saturating_sub(1) + u32::from(run == 1) {
            let mut worker = scene.start_worker(&Orders::default())?;
            let until = Instant::now() + Duration::from_millis(rng.random_range(1..=RECOVERY_MS_MAX));
            scene.follow(&mut worker, until, |_| false)?;
            scene.kill(&mut worker, "during recovery")?;
            report.coverage.add("kills during recovery", 1);
        }
    }
    let life = Duration::from_millis(rng.random_range(LIFE_MS));
    let upkeep = run % 3 == 2;
    let orders = Orders { upkeep_after: upkeep.then_some(life), ..Orders::default() };
    let mut worker = scene.start_worker(&orders)?;
    if !scene.ready(&mut worker, report)? {
        return Ok(false);
    }
    let alive = live(scene, &mut worker, life, upkeep, rng)?;
    if alive == WorkerLife::Ended {
        worker.wait(Instant::now() + UPKEEP_WAIT)?;
        report.findings.push(format!("the worker ended by itself: {}", worker.last_words()));
        return Ok(false);
    }
    let why = if upkeep { "during upkeep" } else { "while writing" };
    scene.kill(&mut worker, why)?;
    report.coverage.add("kills", 1);
    if upkeep {
        report.coverage.add("kills during upkeep", 1);
    }
    scene.check(rng, report)
}

/// Lets the worker live until the moment of its death.
pub fn live(
    scene: &mut StoreHarness,
    worker: &mut crate::child_process::Child,
    life: Duration,
    upkeep: bool,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<WorkerLife> {
    if !upkeep {
        return Ok(scene.follow(worker, Instant::now() + life, |_| false)?.0);
    }
    let began = |said: &WorkerEvent| matches!(said, WorkerEvent::Upkeep { .. });
    let (alive, _) = scene.follow(worker, Instant::now() + life + UPKEEP_WAIT, began)?;
    if alive == WorkerLife::Ended {
        return Ok(alive);
    }
    let moment = Duration::from_millis(rng.random_range(0..=UPKEEP_MS_MAX));
    Ok(scene.follow(worker, Instant::now() + moment, |_| false)?.0)
}

/// Counts the events of a scene for the report's coverage.
pub fn count(scene: &StoreHarness, report: &mut Report) {
    let history = scene.history();
    let writes = history.writes.values();
    let again = |kind: &crate::single_node::worker_history::AnswerKind| {
        matches!(kind, crate::single_node::worker_history::AnswerKind::Written { again: true, .. })
    };
    let resent: usize =
        writes.clone().map(|write| write.answers.iter().filter(|answer| again(&answer.kind)).count()).sum();
    let refused = writes.clone().filter(|write| write.refused()).count();
    report.coverage.add("writes acknowledged", history.acknowledged() as u64);
    report.coverage.add("writes unknown", writes.filter(|write| write.open > 0).count() as u64);
    report.coverage.add("writes refused", refused as u64);
    report.coverage.add("keyed writes sent again", resent as u64);
    report.coverage.add("keys reused with other content", history.reused.len() as u64);
    report.coverage.add("reads", history.reads.len() as u64);
}
