//! The store's side: the same entries, proposed to their shards, acknowledged when durable and applied.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use assay_bench::generate::{Counts, GeneratedEntry};

use super::{StoreMeasurement, StoreTask};
use crate::client_threads::{Lane, join, spawn};
use crate::process::{Process, bytes_below, cpu_between};
use crate::store::single_node::{Backlog, StoreNode};

const SAMPLE_EVERY: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub counts: Counts,
    pub entry_bytes: u64,
}

impl Totals {
    pub fn add(&mut self, entry: &GeneratedEntry) {
        self.counts.join(&entry.counts);
        self.entry_bytes += entry.bytes.len() as u64;
    }

    pub fn join(&mut self, other: &Totals) {
        self.counts.join(&other.counts);
        self.entry_bytes += other.entry_bytes;
    }
}

pub fn run(task: &StoreTask) -> anyhow::Result<StoreMeasurement> {
    let workload = task.workload()?;
    let node = Arc::new(StoreNode::open(&task.dir)?);
    let start = Arc::new(Barrier::new(task.lanes + 1));
    let mut threads = Vec::new();
    let mut totals = Totals::default();
    for at in 0..task.lanes {
        let mut lane = Lane::new(&workload, 1, at, task.lanes);
        let mut entries = Vec::new();
        let mut bytes = 0;
        while bytes < task.bytes / task.lanes as u64 {
            let (shard, entry) = lane.next();
            bytes += entry.bytes.len() as u64;
            totals.add(&entry);
            entries.push((shard, entry.commands, entry.merged));
        }
        let (node, start) = (Arc::clone(&node), Arc::clone(&start));
        threads.push(spawn(&format!("bench-client-{at}"), move || {
            start.wait();
            for (shard, commands, merged) in entries {
                node.propose(shard, commands, &merged)?;
            }
            Ok(Instant::now())
        })?);
    }
    let me = Process::myself();
    let (memory_before, cpu_before, written_before) = (me.memory()?, me.cpu()?, me.write_bytes()?);
    start.wait();
    let began = Instant::now();
    let done = Arc::new(AtomicBool::new(false));
    let sampler = sample(Arc::clone(&node), began, Arc::clone(&done))?;
    let ends = threads.into_iter().map(join).collect::<anyhow::Result<Vec<Instant>>>()?;
    let ended = ends.into_iter().max().unwrap_or(began);
    let (cpu, write_bytes) = (cpu_between(&cpu_before, &me.cpu()?), me.write_bytes()? - written_before);
    let settling = Instant::now();
    node.settle()?;
    let settle_seconds = settling.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    let backlog = join(sampler)?;
    let measured = StoreMeasurement {
        seconds: (ended - began).as_secs_f64(),
        operations: totals.counts.operations,
        rows: totals.counts.rows(),
        late_merges: totals.counts.late_merges,
        entry_bytes: totals.entry_bytes,
        doc_bytes: totals.counts.doc_bytes,
        cpu,
        cpu_settled: cpu_between(&cpu_before, &me.cpu()?),
        settle_seconds,
        write_bytes,
        write_bytes_settled: me.write_bytes()? - written_before,
        disk_bytes: bytes_below(&task.dir)?,
        memory_before,
        memory_after: me.memory()?,
        backlog,
    };
    node.shutdown()?;
    Ok(measured)
}

fn sample(
    node: Arc<StoreNode>,
    began: Instant,
    done: Arc<AtomicBool>,
) -> anyhow::Result<std::thread::JoinHandle<anyhow::Result<Vec<Backlog>>>> {
    spawn("bench-sampler", move || {
        let mut samples = Vec::new();
        while !done.load(Ordering::Relaxed) {
            samples.push(node.backlog(began)?);
            std::thread::sleep(SAMPLE_EVERY);
        }
        samples.push(node.backlog(began)?);
        Ok(samples)
    })
}
