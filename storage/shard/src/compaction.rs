//! Compaction, which merges a run of neighbouring segments of one tier into one segment of the next.
//!
//! The merge folds in the marks of the segments. Seals and the first merges write documents whole. The last merge
//! writes columns, for queries. After some time without a seal, whole documents are settled: converted to columns ahead
//! of the last merge.
//!
//! The segments of a run are neighbours in age, and the result takes their place. So a later segment never holds an
//! older version of a row than an earlier one. The merge runs concurrently with seals and applies; only its last step
//! excludes a seal. Marks that became durable during the merge are moved to the new rows and written with them. Marks
//! that are not yet durable move in memory. One durable batch switches the manifest. A crash before it leaves a segment
//! that the manifest does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_storage_kv::Batch;
use assay_storage_model::command::Action;
use assay_storage_model::segment::{SegmentMeta, WHOLE_FORMAT};
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::merge::{Rules, merge_rows};
use assay_storage_segments::{Columns, Mark, MergeInput, OwnedRow, RowHeader, Segment, WriterOptions};
use parking_lot::MutexGuard;

use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::{self, ObjectRecord};
use crate::seal::Upkeep;
use crate::{Core, Shard};

/// Number of segments of one tier that are merged into one of the next.
///
/// A shard has about twenty segments at most. A smaller number would merge sooner and write more. Each merge writes
/// about 0.4 bytes per accepted byte.
pub const SEGMENTS_PER_TIER: usize = 7;
/// Tier that is not merged further, because another merge would cost more than it saves.
pub const TIER_MAX: u8 = 3;
/// Lowest tier of columnar segments.
///
/// The conversion costs about as much as accepting the rows did, and twenty times as much as a merge of whole
/// documents. During heavy writes, only the last merge of a row pays for it.
pub const COLUMNAR_TIER: u8 = TIER_MAX;
/// Upper bound of neighbours below the last tier, reached if every tier is one segment short of a run.
pub const NEIGHBOURS_MAX: usize = TIER_MAX as usize * (SEGMENTS_PER_TIER - 1);
/// Upper bound of the size of segments that are settled together.
const SETTLED_BYTES_MAX: u64 = 1 << 30;

/// Neighbouring segments that are merged into one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MergeRun {
    segments: Range<usize>,
    tier: u8,
    columnar: bool,
}

impl Shard {
    /// Runs one step of compaction, and returns `false` if there is nothing to do.
    ///
    /// This blocks, and may run concurrently with a seal. It calls `pace` every few milliseconds of work, without a
    /// lock that others wait for, so `pace` may block.
    pub fn compact(&self, pace: &dyn Fn()) -> Result<bool, ShardError> {
        self.merge_run(&self.compacting.lock(), pace, pick)
    }

    /// Converts some whole documents to columns, and returns `false` if none are left.
    ///
    /// It behaves like [`compact`](Self::compact) otherwise. It pays off only in a shard that takes few writes.
    pub fn settle(&self, pace: &dyn Fn()) -> Result<bool, ShardError> {
        self.merge_run(&self.compacting.lock(), pace, pick_whole)
    }

    /// Returns whether files of this shard or the log may hold rows of a dropped object, or history below a floor.
    ///
    /// This resets the flag. The caller erases such rows, or reports a failure with [`remains`](Self::remains).
    pub fn take_remains(&self) -> bool {
        std::mem::take(&mut self.core.lock().has_remains)
    }

    pub fn remains(&self) {
        self.core.lock().has_remains = true;
    }

    pub fn has_remains(&self) -> bool {
        self.core.lock().has_remains
    }

    /// Rewrites one segment without rows of dropped objects and history below floors, and returns `false` if there is
    /// none.
    ///
    /// Rows dropped since the last seal stay. `looked` collects the segments without such rows, for the next call.
    pub fn erase(&self, looked: &mut BTreeSet<u64>, pace: &dyn Fn()) -> Result<bool, ShardError> {
        let one = self.compacting.lock();
        let (segments, objects, sealed) = {
            let upkeep = self.upkeep.lock();
            let segments = self.core.lock().segments.clone();
            (segments, manifest::load_objects(upkeep.kv.as_ref())?, upkeep.sealed.last)
        };
        for live in &*segments {
            let meta = live.meta();
            if looked.contains(&meta.seq) {
                continue;
            }
            if has_remains(live, &objects, sealed, pace)? {
                return self.merge_run(&one, pace, |metas| {
                    let at = metas.iter().position(|listed| listed.seq == meta.seq)?;
                    Some(MergeRun { segments: at..at + 1, tier: meta.tier, columnar: meta.format != WHOLE_FORMAT })
                });
            }
            looked.insert(meta.seq);
        }
        Ok(false)
    }

    /// Runs one merge. The guard ensures that it is the only one.
    fn merge_run(
        &self,
        _one: &MutexGuard<'_, ()>,
        pace: &dyn Fn(),
        pick: impl Fn(&[&SegmentMeta]) -> Option<MergeRun>,
    ) -> Result<bool, ShardError> {
        let (inputs, run, folded_until, dir, objects) = {
            let upkeep = self.upkeep.lock();
            let core = self.core.lock();
            let metas: Vec<&SegmentMeta> = core.segments.iter().map(|live| live.meta()).collect();
            let objects = manifest::load_objects(upkeep.kv.as_ref())?;
            let Some(run) = pick(&metas) else { return Ok(false) };
            let inputs = core.segments[run.segments.clone()].to_vec();
            (inputs, run, upkeep.sealed.last, upkeep.segments_dir.clone(), objects)
        };
        let merge_inputs: Vec<MergeInput> = inputs
            .iter()
            .map(|live| MergeInput { segment: Arc::clone(&live.segment), ends: live.ends_until(folded_until) })
            .collect();
        // The drops and floors of the last seal apply, because a replay from there must find the rows that it merges
        // onto.
        let keep = |row: &RowHeader<'_>| match objects.get(&row.object) {
            Some(record) => !record.dropped && !history_below(row.action, row.xact, row.end, record.floor),
            None => true,
        };
        let seq = self.next_segment.fetch_add(1, Ordering::AcqRel);
        let options = WriterOptions { tier: run.tier, columnar: run.columnar, ..WriterOptions::default() };
        let merged =
            merge_rows(&merge_inputs, Rules { keep: &keep, pace }, self.config.disk.clone(), &dir, seq, options)?;

        let mut upkeep = self.upkeep.lock();
        if upkeep.seal_failed() {
            // The marks of the failed seal name the inputs, which must stay until a retry succeeds. The output is swept
            // or overwritten later.
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

    /// Returns the marks to write with the merged segment.
    ///
    /// These are the marks on its own rows that became durable during the merge, and the marks on other segments that
    /// the files of the inputs held.
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
        manifest::put_counters(&mut batch, &counters);
        manifest::put_segment(&mut batch, output.meta());
        gone.iter().for_each(|seq| manifest::delete_segment(&mut batch, *seq));
        manifest::put_order(&mut batch, order.into_iter().filter_map(replaced));
        upkeep.kv.commit(&batch)?;
        upkeep.sealed = counters;

        let mut core = self.core.lock();
        for (live, moved) in inputs.iter().zip(moved) {
            // These marks are not durable yet; the next seal writes them for the new rows.
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

/// Returns whether a version is history that ended at or below the floor, so that no reader may see it.
fn history_below(action: Action, xact: Xact, end: Option<Xact>, floor: Xact) -> bool {
    let ended = match action {
        Action::Delete => Some(xact),
        _ => end,
    };
    ended.is_some_and(|end| end <= floor)
}

/// Returns whether a merge as of this seal would drop rows.
fn has_remains(
    live: &LiveSegment,
    objects: &BTreeMap<ObjectKey, ObjectRecord>,
    sealed: Xact,
    pace: &dyn Fn(),
) -> Result<bool, ShardError> {
    for object in live.segment.objects() {
        let Some(record) = objects.get(&object) else { continue };
        if record.dropped {
            return Ok(true);
        }
        if record.floor == Xact::ZERO {
            continue;
        }
        for rows in live.segment.scan(live.segment.rows_of(object), Columns::Keys)? {
            pace();
            let is_below = |row: &OwnedRow| {
                let end = Some(live.end(row.row, row.end)).filter(|end| *end <= sealed);
                history_below(row.action, row.xact, end, record.floor)
            };
            if rows?.iter().any(is_below) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Selects the oldest run of the lowest tier that has one.
fn pick(metas: &[&SegmentMeta]) -> Option<MergeRun> {
    let run_of = |tier| alike(metas, tier).or_else(|| crowded(metas, tier)).map(|segments| (segments, tier + 1));
    let (segments, tier) = (0..TIER_MAX).find_map(run_of)?;
    // Settled documents stay columnar.
    let columnar = tier >= COLUMNAR_TIER || metas[segments.clone()].iter().any(|meta| meta.format != WHOLE_FORMAT);
    Some(MergeRun { segments, tier, columnar })
}

/// Finds neighbours of one tier. Runs exclude settled segments, because one of them would make the output columnar too
/// early.
fn alike(metas: &[&SegmentMeta], tier: u8) -> Option<Range<usize>> {
    let kind = |meta: &SegmentMeta| (meta.tier, tier + 1 < COLUMNAR_TIER && meta.format == WHOLE_FORMAT);
    let runs = metas.chunk_by(|one, next| kind(one) == kind(next)).scan(0, |start, run| {
        let first = *start;
        *start += run.len();
        Some((first, run))
    });
    let mut full = runs.filter(|(_, run)| run[0].tier == tier && run.len() >= SEGMENTS_PER_TIER);
    full.next().map(|(start, _)| start..start + SEGMENTS_PER_TIER)
}

/// Finds neighbours up to this tier that [`alike`] will not take soon, such as those settled between bursts of writes.
fn crowded(metas: &[&SegmentMeta], tier: u8) -> Option<Range<usize>> {
    let mut start = 0;
    for (at, meta) in metas.iter().enumerate() {
        if meta.tier > tier {
            start = at + 1;
        } else if at - start == NEIGHBOURS_MAX {
            return Some(start..at + 1);
        }
    }
    None
}

/// Selects the oldest whole segment and the whole neighbours behind it.
fn pick_whole(metas: &[&SegmentMeta]) -> Option<MergeRun> {
    let start = metas.iter().position(|meta| meta.format == WHOLE_FORMAT)?;
    let mut bytes = 0;
    let more = metas[start..].iter().take_while(|meta| {
        bytes += meta.raw_bytes;
        meta.format == WHOLE_FORMAT && bytes <= SETTLED_BYTES_MAX
    });
    let segments = start..start + more.count().max(1);
    let tier = metas[segments.clone()].iter().map(|meta| meta.tier).max()?;
    Some(MergeRun { segments, tier, columnar: true })
}

#[cfg(test)]
mod tests {
    use assay_storage_model::PaginationKey;
    use assay_storage_model::segment::COLUMNAR_FORMAT;

    use super::*;

    fn ran(metas: &[SegmentMeta]) -> Option<(Range<usize>, u8, bool)> {
        pick(&metas.iter().collect::<Vec<_>>()).map(|run| (run.segments, run.tier, run.columnar))
    }

    #[test]
    fn the_lowest_full_tier_goes_first_and_its_oldest_run() {
        let picked = |runs: &[(u8, usize)]| {
            let whole = runs.iter().flat_map(|(tier, count)| vec![meta(*tier, WHOLE_FORMAT, 1); *count]);
            ran(&whole.collect::<Vec<_>>()).map(|(segments, ..)| segments)
        };
        let full = SEGMENTS_PER_TIER;
        assert_eq!(picked(&[]), None);
        assert_eq!(picked(&[(0, full - 1)]), None);
        assert_eq!(picked(&[(0, full)]), Some(0..full));
        assert_eq!(picked(&[(0, full * 2)]), Some(0..full));
        assert_eq!(picked(&[(2, 1), (1, 2), (0, full)]), Some(3..full + 3));
        assert_eq!(picked(&[(1, full), (0, 2)]), Some(0..full));
        assert_eq!(picked(&[(1, full), (0, full)]), Some(full..full * 2));
        assert_eq!(picked(&[(2, full - 1), (1, full - 1), (0, full - 1)]), None);
        assert_eq!(picked(&[(TIER_MAX, full * 3)]), None);
    }

    fn meta(tier: u8, format: u16, raw_bytes: u64) -> SegmentMeta {
        SegmentMeta {
            seq: 1,
            format,
            tier,
            rows: 1,
            raw_bytes,
            first_object: SegmentMeta::NO_OBJECT,
            last_object: SegmentMeta::NO_OBJECT,
            key_min: PaginationKey(0),
            key_max: PaginationKey(0),
            xact_min: Xact(0),
            xact_max: Xact(0),
            files: Vec::new(),
        }
    }

    #[test]
    fn the_last_tier_is_columnar_and_what_was_settled_drags_nothing_along_before() {
        let of = |tier, format| vec![meta(tier, format, 1); SEGMENTS_PER_TIER];
        let picked = |metas: &[SegmentMeta]| ran(metas).map(|(_, tier, columnar)| (tier, columnar));
        assert_eq!(picked(&of(0, WHOLE_FORMAT)), Some((1, false)));
        assert_eq!(picked(&of(1, WHOLE_FORMAT)), Some((2, false)));
        assert_eq!(picked(&of(0, COLUMNAR_FORMAT)), Some((1, true)));
        for (tier, expected) in [(0, None), (1, None), (2, Some((3, true)))] {
            let mut metas = of(tier, WHOLE_FORMAT);
            metas[0].format = COLUMNAR_FORMAT;
            assert_eq!(picked(&metas), expected);
        }
    }

    /// Simulates seals and settling until there is nothing to merge, and returns how often a row became columnar.
    fn written(bursts: &[usize]) -> (Vec<SegmentMeta>, f64) {
        let (mut metas, mut columnar): (Vec<SegmentMeta>, u64) = (Vec::new(), 0);
        let merge = |metas: &mut Vec<SegmentMeta>, run: MergeRun| {
            let raw_bytes = metas[run.segments.clone()].iter().map(|meta| meta.raw_bytes).sum();
            let format = if run.columnar { COLUMNAR_FORMAT } else { WHOLE_FORMAT };
            metas.splice(run.segments, [meta(run.tier, format, raw_bytes)]);
            if run.columnar { raw_bytes } else { 0 }
        };
        for seals in bursts {
            for _ in 0..*seals {
                metas.push(meta(0, WHOLE_FORMAT, 1));
                while let Some(run) = pick(&metas.iter().collect::<Vec<_>>()) {
                    columnar += merge(&mut metas, run);
                }
            }
            while let Some(run) = pick_whole(&metas.iter().collect::<Vec<_>>()) {
                columnar += merge(&mut metas, run);
            }
        }
        (metas, columnar as f64 / bursts.iter().sum::<usize>() as f64)
    }

    #[test]
    fn bursts_of_any_length_leave_few_segments_and_few_rows_become_columnar_more_than_thrice() {
        for bursts in [[1].repeat(2000), [8, 1].repeat(300), [60, 9, 1, 1].repeat(100), [1000, 3].repeat(9)] {
            let (metas, columnar) = written(&bursts);
            let kept_apart = metas.chunk_by(|one, next| (one.tier < TIER_MAX) == (next.tier < TIER_MAX));
            let most = kept_apart.filter(|run| run[0].tier < TIER_MAX).map(<[_]>::len).max();
            let last = metas.iter().filter(|meta| meta.tier == TIER_MAX);
            let (last, seals) = (last.count(), bursts.iter().sum::<usize>());
            assert!(most <= Some(NEIGHBOURS_MAX), "{most:?} neighbours");
            assert!(last <= seals / SEGMENTS_PER_TIER.pow(2) + 1, "{last} of the last tier, of {seals} seals");
            assert!(columnar < 4.0, "{columnar} times");
        }
        let busy = written(&[8, 7 * 7 * 7]).1;
        assert!(busy < 1.1, "what was settled before is written once more at most: {busy}");
    }

    #[test]
    fn what_is_whole_is_settled_from_the_oldest_on_as_far_as_one_segment_goes() {
        let run = |metas: &[SegmentMeta]| pick_whole(&metas.iter().collect::<Vec<_>>());
        let settled = |segments, tier| Some(MergeRun { segments, tier, columnar: true });
        let (whole, columnar) = (meta(1, WHOLE_FORMAT, SETTLED_BYTES_MAX / 3), meta(2, COLUMNAR_FORMAT, 1));
        assert_eq!(run(&[]), None);
        assert_eq!(run(&[columnar.clone(), columnar.clone()]), None);
        assert_eq!(run(&[columnar.clone(), whole.clone(), meta(0, WHOLE_FORMAT, 1)]), settled(1..3, 1));
        assert_eq!(run(&[whole.clone(), columnar, whole.clone()]), settled(0..1, 1));
        assert_eq!(run(&vec![whole; 5]), settled(0..3, 1));
        assert_eq!(run(&[meta(0, WHOLE_FORMAT, SETTLED_BYTES_MAX + 1), meta(0, WHOLE_FORMAT, 1)]), settled(0..1, 0));
    }
}
