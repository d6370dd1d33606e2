//! Physical limits of the disk: appends of 1 MiB to a bare file, each synced, and single synced pages while others use
//! the disk.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use assay_bench::generate::dice::Dice;
use serde::{Deserialize, Serialize};

use crate::report::percentile;

const APPEND_BYTES: usize = 1 << 20;
/// Pages that a [`SyncProbe`] writes in turn, and the pause after each.
const PROBE_PAGES: u64 = 1024;
const PROBE_PAGE_BYTES: usize = 4096;
const PROBE_EVERY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DiskLimit {
    pub mb_per_second: f64,
    pub append_ms_p50: f64,
    pub append_ms_p99: f64,
}

/// Appends `bytes` to a new file in `dir`, with an fdatasync after each MiB; removes the file.
pub fn measure(dir: &Path, bytes: u64) -> anyhow::Result<DiskLimit> {
    let path = dir.join("bare-file");
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("creating {}", path.display()))?;
    // Random bytes, so that nothing below compresses or shares them.
    let mut dice = Dice::new(1);
    let block: Vec<u8> = (0..APPEND_BYTES / 8).flat_map(|_| dice.roll().to_le_bytes()).collect();
    let mut times = Vec::new();
    let start = Instant::now();
    for _ in 0..bytes.div_ceil(APPEND_BYTES as u64) {
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let seconds = start.elapsed().as_secs_f64();
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(DiskLimit {
        mb_per_second: (times.len() * APPEND_BYTES) as f64 / 1e6 / seconds,
        append_ms_p50: percentile(times.iter().copied(), 0.5),
        append_ms_p99: percentile(times, 0.99),
    })
}

/// A thread that writes and syncs a page of a bare file every few milliseconds, and keeps how long each took: what any
/// program waits at least for a durable write at that time.
#[derive(Debug)]
pub struct SyncProbe {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<f64>>>,
    path: PathBuf,
}

impl SyncProbe {
    /// The file is written whole before this returns, so that the probe changes nothing but its bytes.
    pub fn start(dir: &Path) -> anyhow::Result<SyncProbe> {
        let path = dir.join("bare-pages");
        let file = OpenOptions::new().create_new(true).write(true).open(&path);
        let file = file.with_context(|| format!("creating {}", path.display()))?;
        let page = [0x5a; PROBE_PAGE_BYTES];
        for number in 0..PROBE_PAGES {
            write_page(&file, number, &page)?;
        }
        file.sync_all()?;
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut times = Vec::new();
            for number in (0..PROBE_PAGES).cycle() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                thread::sleep(PROBE_EVERY);
                let began = Instant::now();
                write_page(&file, number, &page)?;
                file.sync_data()?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok(times)
        });
        Ok(SyncProbe { ends, thread, path })
    }

    /// Ends the thread, removes the file, and returns the times in milliseconds.
    pub fn end(self) -> anyhow::Result<Vec<f64>> {
        self.ends.store(true, Ordering::Relaxed);
        let times = self.thread.join().map_err(|_| anyhow!("the probe of the disk panicked"))??;
        std::fs::remove_file(&self.path)?;
        Ok(times)
    }
}

fn write_page(file: &File, number: u64, page: &[u8]) -> std::io::Result<()> {
    file.write_all_at(page, number * page.len() as u64)
}
