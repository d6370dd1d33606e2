//! Resource faults: open files, disk speed, contents of segments.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cluster::environment::status::Status;
use crate::cluster::environment::tracer::Tracer;
use crate::cluster::faults::conductor::{Conductor, Injected};
use crate::cluster::faults::fault::Planned;

/// Files that a starved node may open beyond those it has.
const FILES_LEFT: std::ops::Range<usize> = 0..6;
/// Delay of each call that waits for the disk. A write is slow from a quarter of a second on.
const DELAY_MICROS: u32 = 600_000;
/// Time limit for a node with a slow disk to lead nothing.
const LEADS_NOTHING_AFTER: Duration = Duration::from_secs(10);
/// Log line of a node that has noticed the slow disk.
const NOTICED: &str = "the disk is slow";
/// Time for the tracer to hold all threads, and for a status to come.
const GRACE: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(250);
/// Segments that get a flipped byte: the newest, which are merged next.
const SEGMENTS_FLIPPED: usize = 3;

impl Conductor<'_> {
    pub(super) fn files(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let number = self.choose(fault.who, rng)?;
        let left = rng.random_range(FILES_LEFT);
        let node = self.world.node(number)?;
        let pid = node.pid().context("it does not run")?;
        let open = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        let before = node.limit_files(&(open + left).to_string())?;
        self.world.starved.insert(number, before);
        self.stage.set_deaf(Some(number));
        let what = format!("node {number} ({:?}) may open {left} more files than {open}", fault.who);
        Ok(Injected::Deafened(number, what))
    }

    /// Installed once the node leads nothing, which it has to within ten seconds, and has noticed that its disk is slow: one
    /// that has not may lead again at any time.
    pub(super) fn slow_disk(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        self.world.settle()?;
        let number = self.choose(fault.who, rng)?;
        let id = self.world.id_of(number)?;
        let pid = self.world.node(number)?.pid().context("it does not run")?;
        self.world.tracers.insert(number, Tracer::slow_down(pid, DELAY_MICROS)?);
        let since = Instant::now();
        loop {
            self.hold(POLL)?;
            let others: Vec<u8> = self.world.up().into_iter().filter(|other| *other != number).collect();
            let status = others.into_iter().find_map(|other| self.world.status_of(other).ok());
            let leads = status.and_then(|status| Status::of(&status)).map(|status| status.leads());
            let leads = leads.and_then(|leads| leads.get(&id).copied());
            let has_noticed = self.world.node(number)?.logged(NOTICED)?;
            if leads == Some(0) && has_noticed {
                break;
            }
            if since.elapsed() > LEADS_NOTHING_AFTER + GRACE {
                let after = since.elapsed();
                let what = format!(
                    "the disk of node {number} ({:?}) is slow; after {after:?} it leads {leads:?}{}",
                    fault.who,
                    if has_noticed { "" } else { " and has not noticed" }
                );
                self.broken(fault, what.clone());
                return Ok(Injected::Installed(what));
            }
        }
        let took = since.elapsed().as_secs_f64();
        Ok(Injected::Installed(format!(
            "the disk of node {number} ({:?}) is slow; it led nothing after {took:.1} s",
            fault.who
        )))
    }

    /// Changes a byte of each of the newest segments while their node runs. A compaction or a read finds it.
    pub(super) fn flipped_segment(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        self.world.settle()?;
        let number = self.choose(fault.who, rng)?;
        let node = self.world.node(number)?;
        node.excuse("a segment of it was damaged")?;
        let mut found = segments(&node.data_dir())?;
        found.sort();
        let newest: Vec<PathBuf> = found.into_iter().rev().take(SEGMENTS_FLIPPED).map(|(_, path)| path).collect();
        if newest.is_empty() {
            return Ok(Injected::Skipped("the node has no segment".into()));
        }
        let mut flipped = 0;
        for path in newest {
            node.record_damage(&path)?;
            // It may have been merged meanwhile.
            flipped += usize::from(flip(&path, rng).is_ok());
        }
        Ok(Injected::Installed(format!("{flipped} segments of node {number} ({:?}) are damaged", fault.who)))
    }
}

/// All segments below a directory, with the time they were made.
fn segments(dir: &Path) -> anyhow::Result<Vec<(SystemTime, PathBuf)>> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = left.pop() {
        // What a merge replaces goes while this looks.
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                left.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "parquet") {
                found.push((about.modified()?, entry.path()));
            }
        }
    }
    Ok(found)
}

fn flip(path: &Path, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let at = rng.random_range(0..file.metadata()?.len().max(1));
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    byte[0] ^= 1 << rng.random_range(0..8);
    file.write_all_at(&byte, at).context("writing the changed byte")
}
