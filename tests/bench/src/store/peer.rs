//! The peer: raft-engine alone. Every thread writes its entries to a region of its own in one engine, each entry a
//! batch, synced before the next. Options are those of the store's own log; no space is given back meanwhile.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use anyhow::Context;
use assay_storage_log::LogConfig;
use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};

use super::{StoreMeasurement, StoreTask};
use crate::client_threads::{Lane, join, spawn};
use crate::process::{Process, bytes_below, cpu_between};

/// An entry as the engine keeps it: eight bytes of index, then the bytes.
#[derive(Debug)]
struct Indexed;

impl MessageExt for Indexed {
    type Entry = BytesValue;
    fn index(entry: &BytesValue) -> u64 {
        entry.value.first_chunk().map_or(0, |index| u64::from_le_bytes(*index))
    }
}

fn engine(dir: &Path) -> anyhow::Result<Engine> {
    let config = Config {
        dir: dir.to_str().context("a directory whose name is UTF-8")?.to_owned(),
        recovery_mode: RecoveryMode::TolerateTailCorruption,
        batch_compression_threshold: ReadableSize(0),
        target_file_size: ReadableSize(LogConfig::default().file_bytes),
        enable_log_recycle: false,
        ..Config::default()
    };
    Engine::open(config).context("opening raft-engine")
}

fn prepared(index: u64, entry: &[u8]) -> BytesValue {
    let mut value = Vec::with_capacity(8 + entry.len());
    value.extend_from_slice(&index.to_le_bytes());
    value.extend_from_slice(entry);
    let mut message = BytesValue::new();
    message.value = value;
    message
}

pub fn run(task: &StoreTask) -> anyhow::Result<StoreMeasurement> {
    let workload = task.workload()?;
    let engine = Arc::new(engine(&task.dir)?);
    let start = Arc::new(Barrier::new(task.lanes + 1));
    let mut threads = Vec::new();
    let mut totals = super::assay::Totals::default();
    for at in 0..task.lanes {
        let mut lane = Lane::new(&workload, 1, at, task.lanes);
        let mut entries = Vec::new();
        let mut bytes = 0;
        while bytes < task.bytes / task.lanes as u64 {
            let (_, entry) = lane.next();
            bytes += entry.bytes.len() as u64;
            totals.add(&entry);
            entries.push(prepared(entries.len() as u64 + 1, &entry.bytes));
        }
        let (engine, start) = (Arc::clone(&engine), Arc::clone(&start));
        threads.push(spawn(&format!("bench-client-{at}"), move || {
            start.wait();
            for entry in entries {
                let mut batch = LogBatch::with_capacity(1);
                batch.add_entries::<Indexed>(at as u64 + 1, &[entry])?;
                engine.write(&mut batch, true)?;
            }
            Ok(Instant::now())
        })?);
    }
    let me = Process::myself();
    let (memory_before, cpu_before, written_before) = (me.memory()?, me.cpu()?, me.write_bytes()?);
    start.wait();
    let began = Instant::now();
    let ends = threads.into_iter().map(join).collect::<anyhow::Result<Vec<Instant>>>()?;
    let ended = ends.into_iter().max().unwrap_or(began);
    let write_bytes = me.write_bytes()? - written_before;
    let cpu = cpu_between(&cpu_before, &me.cpu()?);
    Ok(StoreMeasurement {
        seconds: (ended - began).as_secs_f64(),
        operations: totals.counts.operations,
        rows: totals.counts.rows(),
        late_merges: totals.counts.late_merges,
        entry_bytes: totals.entry_bytes,
        doc_bytes: totals.counts.doc_bytes,
        cpu_settled: cpu.clone(),
        cpu,
        settle_seconds: 0.0,
        write_bytes,
        write_bytes_settled: write_bytes,
        disk_bytes: bytes_below(&task.dir)?,
        memory_before,
        memory_after: me.memory()?,
        backlog: Vec::new(),
    })
}
