//! The disk fills while writes continue, and empties again: nothing acknowledged is lost, and writes continue.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::capabilities;
use crate::child_process::Child;
use crate::loop_image::LoopImage;
use crate::report::Report;
use crate::single_node::crash::count;
use crate::single_node::harness::{Orders, StoreHarness, WorkerLife};
use crate::single_node::worker_history::WorkerEvent;

const IMAGE_BYTES: u64 = 512 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// Writing on the full disk goes on so long.
const FULL_FOR: Duration = Duration::from_secs(4);
/// Time limit for the next acknowledged write once there is space again.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
const EXIT_MAX: Duration = Duration::from_secs(20);

pub fn run(seed: u64, runs: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    report.not_covered = capabilities::missing(true, &["mkfs.ext4", "mount", "umount", "losetup"]);
    if !report.not_covered.is_empty() {
        return Ok(Vec::new());
    }
    report.coverage.want("full disks", u64::from(runs));
    report.coverage.want("writes after there was room again", u64::from(runs));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let disk = LoopImage::create(IMAGE_BYTES)?;
    let mut scene = StoreHarness::new(rng.random(), Some(&disk.path().join("data")))?;
    let ballast = disk.path().join("filler");
    for run in 0..runs {
        let good = one(&mut scene, &ballast, run, &mut rng, report)?;
        eprintln!("disk full: {} of {runs} done", run + 1);
        if !good {
            count(&scene, report);
            return Ok(vec![scene.keep()]);
        }
    }
    count(&scene, report);
    Ok(Vec::new())
}

fn one(
    scene: &mut StoreHarness,
    filler: &Path,
    run: u32,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> anyhow::Result<bool> {
    let mut worker = scene.start_worker(&Orders::default())?;
    if !scene.ready(&mut worker, report)? {
        return Ok(false);
    }
    let life = Duration::from_millis(rng.random_range(200..1000));
    if scene.follow(&mut worker, Instant::now() + life, |_| false)?.0 == WorkerLife::Ended {
        report.findings.push(format!("the worker ended before the disk was full: {}", worker.last_words()));
        return Ok(false);
    }
    // Every other time a little is left free, so that refusing and not failing is what is tried.
    let leave = if run.is_multiple_of(2) { rng.random_range(8..24) } else { 0 };
    fill(filler, leave)?;
    scene.record(WorkerEvent::Fault {
        what: format!("the disk is full but for {leave} MiB"),
        outcome: "installed".into(),
    })?;
    report.coverage.add("full disks", 1);
    let (mut life, _) = scene.follow(&mut worker, Instant::now() + FULL_FOR, |_| false)?;
    std::fs::remove_file(filler)?;
    scene.record(WorkerEvent::Fault { what: "there is room again".into(), outcome: "installed".into() })?;
    let acknowledged = |said: &WorkerEvent| matches!(said, WorkerEvent::Ok { again: false, .. });
    let mut met = false;
    if life == WorkerLife::Running {
        (life, met) = scene.follow(&mut worker, Instant::now() + RECOVERY_MAX, acknowledged)?;
        if life == WorkerLife::Running && !met {
            report.findings.push(format!("run {run}: no write was taken within {} s of room", RECOVERY_MAX.as_secs()));
        }
    }
    if life == WorkerLife::Ended {
        if !exited_clearly(&mut worker, report)? {
            return Ok(false);
        }
        worker = scene.start_worker(&Orders::default())?;
        if !scene.ready(&mut worker, report)? {
            return Ok(false);
        }
        met = scene.follow(&mut worker, Instant::now() + RECOVERY_MAX, acknowledged)?.1;
        if !met {
            report.findings.push(format!("run {run}: no write was taken after the restart: {}", worker.last_words()));
        }
    }
    report.coverage.add("writes after there was room again", u64::from(met));
    scene.kill(&mut worker, "after there was room again")?;
    Ok(scene.check(rng, report)? && met)
}

/// Checks that a process that ended by itself failed with an explanation.
pub fn exited_clearly(worker: &mut Child, report: &mut Report) -> anyhow::Result<bool> {
    let words = worker.last_words();
    match worker.wait(Instant::now() + EXIT_MAX)? {
        None => report.findings.push(format!("it closed its output but does not end: {words}")),
        Some(status) if status.success() => report.findings.push(format!("it ended as if all were well: {words}")),
        Some(status) if words.is_empty() => report.findings.push(format!("it ended without a word: {status}")),
        Some(_) => {
            report.coverage.add("ended by itself, with a reason", 1);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes a file until the disk is full, then shortens it so that `leave` MiB are free.
pub fn fill(path: &Path, leave: u64) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let chunk = vec![0x5a; CHUNK_BYTES];
    while file.write_all(&chunk).is_ok() {}
    // What was written last may still wait for its place.
    let _ = file.sync_all();
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(leave << 20))?;
    Ok(())
}
