//! The physical limit: appending to a bare file and syncing it, 1 MiB at a time.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use assay_bench::generate::dice::Dice;
use serde::{Deserialize, Serialize};

use crate::report::percentile;

const APPEND_BYTES: usize = 1 << 20;

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
