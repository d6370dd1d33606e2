//! Power cut: the file system is shut down without flushing its journal, so unsynced data is lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::capabilities;
use crate::directory_copies::copy;
use crate::loop_image::LoopImage;
use crate::report::Report;
use crate::single_node::crash::{count, live};
use crate::single_node::harness::{Orders, StoreHarness, WorkerLife};
use crate::single_node::worker_history::WorkerEvent;

const IMAGE_BYTES: u64 = 1 << 30;
/// A disk suffers so many cuts before a fresh one is taken.
const CUTS_PER_DISK: u32 = 6;
const LIFE_MS: std::ops::RangeInclusive<u64> = 100..=1500;
/// Maximum time that the process may still run on the dead disk.
const AFTERLIFE_MS_MAX: u64 = 30;

pub fn run(seed: u64, cuts: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    report.not_covered = capabilities::missing(true, &["xfs_io", "mkfs.ext4", "mount", "umount", "losetup"]);
    if !report.not_covered.is_empty() {
        return Ok(Vec::new());
    }
    report.coverage.want("power cuts", u64::from(cuts));
    report.coverage.want("writes acknowledged", u64::from(cuts) * 5);
    if cuts >= 3 {
        report.coverage.want("power cuts during upkeep", u64::from(cuts / 3));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut done = 0;
    while done < cuts {
        let mut disk = LoopImage::create(IMAGE_BYTES)?;
        let mut scene = StoreHarness::new(rng.random(), Some(&disk.path().join("data")))?;
        let here = CUTS_PER_DISK.min(cuts - done);
        for _ in 0..here {
            let good = one(&mut scene, &mut disk, done % 3 == 2, &mut rng, report)?;
            done += 1;
            eprintln!("power cut: {done} of {cuts} done");
            if !good {
                count(&scene, report);
                copy(&disk.path().join("data"), &scene.work().join("data"))?;
                return Ok(vec![scene.keep()]);
            }
        }
        count(&scene, report);
    }
    Ok(Vec::new())
}

fn one(
    scene: &mut StoreHarness,
    disk: &mut LoopImage,
    upkeep: bool,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> anyhow::Result<bool> {
    let life = Duration::from_millis(rng.random_range(LIFE_MS));
    let orders = Orders { upkeep_after: upkeep.then_some(life), ..Orders::default() };
    let mut worker = scene.start_worker(&orders)?;
    if !scene.ready(&mut worker, report)? {
        return Ok(false);
    }
    if live(scene, &mut worker, life, upkeep, rng)? == WorkerLife::Ended {
        worker.wait(Instant::now() + Duration::from_secs(5))?;
        report.findings.push(format!("the worker ended by itself: {}", worker.last_words()));
        return Ok(false);
    }
    disk.cut_power()?;
    scene.record(WorkerEvent::Fault { what: "power cut".into(), outcome: "installed".into() })?;
    let afterlife = Duration::from_millis(rng.random_range(0..=AFTERLIFE_MS_MAX));
    scene.follow(&mut worker, Instant::now() + afterlife, |_| false)?;
    scene.kill(&mut worker, "after the power cut")?;
    drop(worker);
    disk.unmount()?;
    disk.mount()?;
    report.coverage.add("power cuts", 1);
    if upkeep {
        report.coverage.add("power cuts during upkeep", 1);
    }
    scene.check(rng, report)
}
