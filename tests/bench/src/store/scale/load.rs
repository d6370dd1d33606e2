//! The loading process: writes the rows, reports the rate, fills the log and waits to be killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use assay_bench::generate::{Profile, Workload};

use super::{LoadMessage, MARK_ROWS, ScaleLoaded, ScaleTask};
use crate::client_threads::{Lane, join, spawn};
use crate::process::{Process, bytes_below, say};
use crate::store::assay::Totals;
use crate::store::single_node::StoreNode;

/// The log counts as at its budget from this share on; seals keep it from staying any nearer.
const LOG_FULL: f64 = 0.9;
/// Upper bound of the bytes written to fill the log.
const FILL_BYTES_MAX: u64 = 3 << 30;

pub fn run(task: &ScaleTask) -> anyhow::Result<()> {
    let workload = Workload::new(task.seed, Profile::Even, task.merges);
    let node = Arc::new(StoreNode::open(&task.dir)?);
    let (began, started) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let (marks, told) = channel();
    let mut clients = Vec::new();
    for at in 0..task.lanes {
        let lane = Lane::new(&workload, 1, at, task.lanes);
        let (node, started, marks) = (Arc::clone(&node), Arc::clone(&started), marks.clone());
        let share = task.rows / task.lanes as u64 + u64::from((at as u64) < task.rows % task.lanes as u64);
        clients
            .push(spawn(&format!("bench-client-{at}"), move || client(lane, &node, share, &started, &marks, began))?);
    }
    drop(marks);
    let me = Process::myself();
    for (rows, seconds) in told {
        say(&LoadMessage::Mark { rows, seconds, memory: me.memory()? })?;
    }
    let (mut lanes, mut totals) = (Vec::new(), Totals::default());
    for client in clients {
        let (lane, of_client) = join(client)?;
        totals.join(&of_client);
        lanes.push(lane);
    }
    say(&LoadMessage::Loaded(ScaleLoaded {
        rows: totals.counts.rows(),
        operations: totals.counts.operations,
        late_merges: totals.counts.late_merges,
        seconds: began.elapsed().as_secs_f64(),
        entry_bytes: totals.entry_bytes,
        write_bytes: me.write_bytes()?,
        disk_bytes: bytes_below(&task.dir)?,
        memory: me.memory()?,
        backlog: node.backlog(began)?,
    }))?;
    let log_bytes = fill_log(&node, &mut lanes)?;
    let objects = lanes.iter().flat_map(Lane::objects).collect();
    say(&LoadMessage::ReadyToDie { log_bytes, log_budget_bytes: node.log_budget_bytes(), objects })?;
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Writes until `rows` rows are started, and reports each time that all clients together pass another mark.
fn client(
    mut lane: Lane,
    node: &StoreNode,
    rows: u64,
    started: &AtomicU64,
    marks: &Sender<(u64, f64)>,
    began: Instant,
) -> anyhow::Result<(Lane, Totals)> {
    let mut totals = Totals::default();
    while totals.counts.rows() < rows {
        let (shard, entry) = lane.next();
        totals.add(&entry);
        let new = entry.counts.rows();
        node.propose(shard, entry.commands, &entry.merged)?;
        let before = started.fetch_add(new, Ordering::Relaxed);
        if before / MARK_ROWS < (before + new) / MARK_ROWS {
            // The receiver is gone only when the process ends in an error that is told elsewhere.
            let _ = marks.send((before + new, began.elapsed().as_secs_f64()));
        }
    }
    Ok((lane, totals))
}

fn fill_log(node: &StoreNode, lanes: &mut [Lane]) -> anyhow::Result<u64> {
    let full = (node.log_budget_bytes() as f64 * LOG_FULL) as u64;
    let mut written = 0;
    while node.log_bytes() < full && written < FILL_BYTES_MAX {
        for lane in &mut *lanes {
            let (shard, entry) = lane.next();
            written += entry.bytes.len() as u64;
            node.propose(shard, entry.commands, &entry.merged)?;
        }
    }
    Ok(node.log_bytes())
}
