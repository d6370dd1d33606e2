//! The reading process: time until it is ready, then lookups of rows that must be there. Each result is compared with
//! the regenerated row, outside the measured time.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_bench::generate::dice::Dice;
use assay_bench::generate::words::Vocabulary;
use assay_bench::generate::{Part, Profile, Row, SPANS_PER_TRACE, Workload};
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_shard::Shard;
use serde_json::Value;

use super::{Answers, ScaleTask};
use crate::client_threads::shard_of;
use crate::process::Process;
use crate::store::single_node::StoreNode;

const LOOKUPS_COLD: usize = 500;
const LOOKUPS: usize = 5000;
const PAGES: usize = 200;
const TRACES_PER_PAGE: usize = 100;
/// One in this many of the rows looked up is compared with what was written.
const CHECK_EVERY: usize = 10;

struct RowReader<'a> {
    workload: Workload,
    objects: &'a [(u64, u64)],
    node: StoreNode,
    dice: Dice,
}

/// A row that must be there.
struct KnownRow {
    row: Row,
    object: ObjectKey,
    shard: Arc<Shard>,
}

pub fn run(task: &ScaleTask) -> anyhow::Result<Answers> {
    let began = Instant::now();
    let node = StoreNode::open(&task.dir)?;
    node.fence_all()?;
    let ready_seconds = began.elapsed().as_secs_f64();
    let me = Process::myself();
    let memory_ready = me.memory()?;
    let workload = Workload::new(task.seed, Profile::Even, task.merges);
    let mut reader = RowReader { workload, objects: &task.objects, node, dice: Dice::new(task.seed ^ 1) };
    // Segments are written around the page cache: until someone reads them, they are on the disk alone.
    let get_cold_ms = reader.lookups(LOOKUPS_COLD)?;
    let any_page_cold_ms = reader.pages(PAGES, false)?;
    reader.node.compacted()?;
    read_all_below(&task.dir.join("shards"))?;
    let get_warm_ms = reader.lookups(LOOKUPS)?;
    let answers = Answers {
        ready_seconds,
        memory_ready,
        get_cold_ms,
        any_page_cold_ms,
        get_warm_ms,
        absent_ms: reader.absent(LOOKUPS / 5)?,
        newest_page_ms: reader.pages(PAGES, true)?,
        any_page_ms: reader.pages(PAGES, false)?,
        trace_ms: reader.traces(LOOKUPS / 5)?,
        segments: reader.node.backlog(began)?.segments,
        memory_after: me.memory()?,
    };
    reader.node.shutdown()?;
    Ok(answers)
}

impl RowReader<'_> {
    fn any(&mut self) -> anyhow::Result<KnownRow> {
        let (n, rows) = self.objects[self.dice.below(self.objects.len() as u64) as usize];
        ensure!(rows > 0, "object {n} has no rows");
        let row = self.workload.row(n, self.dice.below(rows));
        Ok(KnownRow { row, object: self.workload.object(n), shard: self.node.shard(shard_of(n))? })
    }

    fn lookups(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::with_capacity(count);
        for at in 0..count {
            let KnownRow { row, object, shard } = self.any()?;
            let began = Instant::now();
            let view = shard.view();
            let found = view.get(&object, row.id(), view.version())?;
            times.push(milliseconds(began));
            let found = found.with_context(|| format!("row {} of {object} is lost", row.id()))?;
            if at % CHECK_EVERY == 0 {
                check(&row, &found.doc)?;
            }
        }
        Ok(times)
    }

    fn absent(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let KnownRow { row, object, shard } = self.any()?;
            // A span id is as random as a row id, and is none.
            let began = Instant::now();
            let view = shard.view();
            let found = view.get(&object, row.span_id(), view.version())?;
            times.push(milliseconds(began));
            ensure!(found.is_none(), "{} of {object} was never written", row.span_id());
        }
        Ok(times)
    }

    /// Pages of whole traces, the newest of an object or from anywhere in it.
    fn pages(&mut self, count: usize, newest: bool) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let KnownRow { row, object, shard } = self.any()?;
            // Transaction ids follow the rows' times, so a row's time leads near its place.
            let near = PaginationKey::new(Xact::at_micros(u64::try_from(row.created)?), u16::MAX);
            let began = Instant::now();
            let view = shard.view();
            let page = view.traces(&object, view.version(), (!newest).then_some(near), TRACES_PER_PAGE)?;
            times.push(milliseconds(began));
            ensure!(!newest || page.traces.len() == TRACES_PER_PAGE, "a page of {} traces", page.traces.len());
            let short = page.traces.iter().filter(|trace| trace.rows.len() as u64 != SPANS_PER_TRACE).count();
            // The newest trace of an object may still be being written; no other lacks a span.
            ensure!(short <= 1, "{short} traces of a page lack spans");
        }
        Ok(times)
    }

    fn traces(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let KnownRow { row, object, shard } = self.any()?;
            let began = Instant::now();
            let view = shard.view();
            let rows = view.trace(&object, row.root_span_id(), view.version())?;
            times.push(milliseconds(began));
            ensure!(rows.iter().any(|found| found.id.as_str() == row.id()), "row {} is not in its trace", row.id());
        }
        Ok(times)
    }
}

/// Brings every file into the page cache, as far as memory goes.
fn read_all_below(dir: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            read_all_below(&entry.path())?;
            continue;
        }
        match std::fs::File::open(entry.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => {} // compacted meanwhile
            file => drop(std::io::copy(&mut file?, &mut std::io::sink())?),
        }
    }
    Ok(())
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// The document is the row's whole, or, where its merge may not have been written, its start.
fn check(row: &Row, found: &[u8]) -> anyhow::Result<()> {
    let found: Value = serde_json::from_slice(found)?;
    let written = |part| -> anyhow::Result<Value> {
        let mut doc = Vec::new();
        row.render(part, Vocabulary::shared(), &mut doc);
        Ok(serde_json::from_slice(&doc)?)
    };
    let right = found == written(Part::Whole)? || row.two_steps && found == written(Part::Start)?;
    ensure!(right, "row {} says something else than was written", row.id());
    Ok(())
}
