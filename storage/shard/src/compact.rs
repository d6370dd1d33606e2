//! Compaction: a run of neighbouring segments of one tier becomes one of the next, with their marks folded in.
//!
//! Runs are neighbours in age, and the result takes their place, so that a later segment never holds an older version
//! of a row than an earlier one. The merge itself runs beside seals and applies; only its last step excludes a seal:
//! marks that became durable meanwhile are carried over to the new rows and written with it, marks that are not durable
//! yet move in memory, and the manifest is switched in one durable batch. A crash before it leaves a segment that
//! nothing names.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_storage_kv::Batch;
use assay_storage_model::Xact;
use assay_storage_model::command::Action;
use assay_storage_segments::merge::{Rules, merge_rows};
use assay_storage_segments::{Mark, MergeInput, RowHeader, Segment, WriterOptions};

use crate::error::ShardError;
use crate::kept;
use crate::live::LiveSegment;
use crate::seal::Upkeep;
use crate::{Core, Shard};

/// Segments of one tier that are merged into one of the next. A shard has about twenty at most. Fewer would merge sooner
/// and write more: each merge writes about 0.4 bytes per byte accepted.
pub const SEGMENTS_PER_TIER: usize = 7;
/// Segments of this tier are left alone: merging them again would cost more than it saves.
pub const TIER_MAX: u8 = 3;

impl Shard {
    /// One step of compaction; false when there is nothing to do. Blocks; safe beside a seal. `pace` is called every few
    /// milliseconds of work, with nothing locked that anyone waits for: it may take its time.
    pub fn compact(&self, pace: &dyn Fn()) -> Result<bool, ShardError> {
        let _one = self.compacting.lock();
        let (inputs, tier, folded_until, dir, objects) = {
            let upkeep = self.upkeep.lock();
            let core = self.core.lock();
            let tiers: Vec<u8> = core.segments.iter().map(|live| live.meta().tier).collect();
            let Some(run) = pick(&tiers) else { return Ok(false) };
            let tier = tiers[run.start] + 1;
            let objects = kept::load_objects(upkeep.kv.as_ref())?;
            (core.segments[run].to_vec(), tier, upkeep.sealed.last, upkeep.segments_dir.clone(), objects)
        };
        let merge_inputs: Vec<MergeInput> = inputs
            .iter()
            .map(|live| MergeInput { segment: Arc::clone(&live.segment), ends: live.ends_until(folded_until) })
            .collect();
        // Drops and floors as of the last seal: a replay from there must still find what it merges onto.
        let keep = |row: &RowHeader<'_>| match objects.get(&row.object) {
            Some(record) => !record.dropped && !history_below(row, record.floor),
            None => true,
        };
        let seq = self.next_segment.fetch_add(1, Ordering::AcqRel);
        let options = WriterOptions { tier, ..WriterOptions::default() };
        let merged =
            merge_rows(&merge_inputs, Rules { keep: &keep, pace }, self.config.disk.clone(), &dir, seq, options)?;

        let mut upkeep = self.upkeep.lock();
        if upkeep.seal_failed() {
            // Its marks name the inputs: they stay until it went through. The merged file is swept or overwritten later.
            return Ok(false);
        }
        let (own, carried) = self.durable_marks(&inputs, &merged.moved, seq, folded_until, upkeep.sealed.last)?;
        let marks: Vec<Mark> = own.iter().chain(&carried).copied().collect();
        let moved = merged.moved.clone();
        let meta = merged.finish(&marks)?;
        let segment = Segment::open(self.config.disk.clone(), &dir, &meta)?;
        let output = LiveSegment::new(segment, self.config.disk.clone(), dir);
        own.iter().for_each(|mark| output.load_mark(mark.row, mark.end));
        self.switch(&mut upkeep, &inputs, output, &moved)?;
        Ok(true)
    }

    /// Marks that must be written with the merged segment: on its own rows, those that became durable while it was
    /// made; on other segments, those that the inputs' files held.
    fn durable_marks(
        &self,
        inputs: &[Arc<LiveSegment>],
        moved: &[Vec<u32>],
        seq: u64,
        folded_until: Xact,
        durable_until: Xact,
    ) -> Result<(Vec<Mark>, Vec<Mark>), ShardError> {
        let mut own = Vec::new();
        for (live, moved) in inputs.iter().zip(moved) {
            for (row, end) in live.ends_after(folded_until).into_iter().filter(|(_, end)| *end <= durable_until) {
                if let Some(row) = place(moved, row) {
                    own.push(Mark { segment: seq, row, end });
                }
            }
        }
        let gone: BTreeSet<u64> = inputs.iter().map(|live| live.meta().seq).collect();
        let listed: BTreeSet<u64> = self.core.lock().segments.iter().map(|live| live.meta().seq).collect();
        let mut carried = Vec::new();
        for live in inputs {
            let marks = live.segment.marks()?;
            carried.extend(
                marks.into_iter().filter(|mark| listed.contains(&mark.segment) && !gone.contains(&mark.segment)),
            );
        }
        Ok((own, carried))
    }

    fn switch(
        &self,
        upkeep: &mut Upkeep,
        inputs: &[Arc<LiveSegment>],
        output: LiveSegment,
        moved: &[Vec<u32>],
    ) -> Result<(), ShardError> {
        let first = inputs[0].meta().seq;
        let gone: BTreeSet<u64> = inputs.iter().map(|live| live.meta().seq).collect();
        let seq = output.meta().seq;
        let order: Vec<u64> = self.core.lock().segments.iter().map(|live| live.meta().seq).collect();
        let replaced = |at: u64| if at == first { Some(seq) } else { (!gone.contains(&at)).then_some(at) };
        let mut counters = upkeep.sealed.clone();
        counters.next_segment = self.next_segment.load(Ordering::Acquire);
        let mut batch = Batch::default();
        kept::put_counters(&mut batch, &counters);
        kept::put_segment(&mut batch, output.meta());
        gone.iter().for_each(|seq| kept::delete_segment(&mut batch, *seq));
        kept::put_order(&mut batch, order.into_iter().filter_map(replaced));
        upkeep.kv.commit(&batch)?;
        upkeep.sealed = counters;

        let mut core = self.core.lock();
        for (live, moved) in inputs.iter().zip(moved) {
            // Not durable yet: the next seal writes them against the new rows.
            for (row, end) in live.ends_after(upkeep.sealed.last) {
                if let Some(row) = place(moved, row) {
                    output.mark(row, end);
                }
            }
        }
        replace(&mut core, first, &gone, Arc::new(output));
        *self.published.write() = core.view();
        drop(core);
        inputs.iter().for_each(|live| live.supersede());
        Ok(())
    }
}

fn replace(core: &mut Core, first: u64, gone: &BTreeSet<u64>, output: Arc<LiveSegment>) {
    let next = core.segments.iter().filter_map(|live| match live.meta().seq {
        seq if seq == first => Some(Arc::clone(&output)),
        seq => (!gone.contains(&seq)).then(|| Arc::clone(live)),
    });
    core.segments = next.collect();
}

fn place(moved: &[u32], row: u32) -> Option<u32> {
    moved.get(row as usize).copied().filter(|row| *row != u32::MAX)
}

/// History that nobody may read any more: it ended at or below the floor.
fn history_below(row: &RowHeader<'_>, floor: Xact) -> bool {
    let ended = match row.action {
        Action::Delete => Some(row.xact),
        _ => row.end,
    };
    ended.is_some_and(|end| end <= floor)
}

/// The oldest run of the lowest tier that has enough neighbours.
fn pick(tiers: &[u8]) -> Option<Range<usize>> {
    let mut best: Option<(u8, usize)> = None;
    let mut start = 0;
    for (at, tier) in tiers.iter().enumerate() {
        if *tier != tiers[start] {
            start = at;
        }
        let full = at + 1 - start == SEGMENTS_PER_TIER && *tier < TIER_MAX;
        if full && best.is_none_or(|(lowest, _)| *tier < lowest) {
            best = Some((*tier, start));
        }
    }
    best.map(|(_, start)| start..start + SEGMENTS_PER_TIER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_full_tier_goes_first_and_its_oldest_run() {
        let tiers = |runs: &[(u8, usize)]| -> Vec<u8> {
            runs.iter().flat_map(|(tier, count)| std::iter::repeat_n(*tier, *count)).collect()
        };
        let full = SEGMENTS_PER_TIER;
        assert_eq!(pick(&[]), None);
        assert_eq!(pick(&tiers(&[(0, full - 1)])), None);
        assert_eq!(pick(&tiers(&[(0, full)])), Some(0..full));
        assert_eq!(pick(&tiers(&[(0, full * 2)])), Some(0..full));
        assert_eq!(pick(&tiers(&[(2, 1), (1, 2), (0, full)])), Some(3..full + 3));
        assert_eq!(pick(&tiers(&[(1, full), (0, 2)])), Some(0..full));
        assert_eq!(pick(&tiers(&[(1, full), (0, full)])), Some(full..full * 2));
        assert_eq!(pick(&tiers(&[(TIER_MAX, full)])), None);
    }
}
