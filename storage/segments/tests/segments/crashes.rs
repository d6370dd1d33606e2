//! Tests that a segment is whole or absent, at any power cut or disk failure.

use std::sync::Arc;

use assay_storage_disk::{Disk, Fault, FaultPlan, FaultyDisk, SharedDisk};
use assay_storage_model::Xact;
use assay_storage_model::segment::SegmentMeta;
use assay_storage_segments::merge::{MergeInput, merge};
use assay_storage_segments::{Columns, Mark, OwnedRow, SegmentError, SegmentWriter, sweep, verify};

use crate::rows::*;

const MARKS: [Mark; 1] = [Mark { segment: 1, row: 2, end: Xact(3) }];

fn names(disk: &dyn Disk) -> Vec<String> {
    disk.list(&dir()).unwrap().into_iter().map(|entry| entry.name).collect()
}

fn read_all(disk: &SharedDisk, meta: &SegmentMeta) -> Result<Vec<OwnedRow>, SegmentError> {
    let scan = open(disk, meta)?.scan(0..meta.rows, Columns::All)?;
    scan.collect::<Result<Vec<_>, _>>().map(|found| found.concat())
}

#[test]
fn a_finished_segment_survives_every_power_cut() {
    let disk = disk();
    let rows = random_rows(&mut random(1), 600, 500);
    let meta = write(&shared(&disk), 4, &rows, &MARKS).unwrap();
    for seed in 0..20 {
        let after = shared(&disk.power_cut(seed));
        assert_eq!(read_all(&after, &meta).unwrap(), rows, "seed {seed}");
        assert_eq!(verify(&after, &dir(), &meta), [] as [&str; 0]);
    }
}

#[test]
fn what_a_power_cut_leaves_of_an_unfinished_segment_is_swept() {
    let disk = disk();
    let rows = random_rows(&mut random(1), 600, 500);
    let listed = write(&shared(&disk), 1, &rows, &MARKS).unwrap();
    let mut writer = SegmentWriter::create(shared(&disk), &dir(), 2, Default::default()).unwrap();
    for row in &rows {
        writer.push(&version(row)).unwrap();
    }
    let unlisted = write(&shared(&disk), 3, &rows, &[]).unwrap();
    disk.create(&dir().join("README")).unwrap();
    for seed in 0..20 {
        let after = shared(&disk.power_cut(seed));
        let live = [listed.clone()];
        let removed = sweep(&after, &dir(), &live).unwrap();
        assert!(
            removed.iter().all(|name| name.starts_with("00000002.") || name.starts_with("00000003.")),
            "{removed:?}"
        );
        let left = names(&*after).into_iter().filter(|name| name != "README");
        assert!(left.eq(["00000001.ids", "00000001.marks", "00000001.parquet"]));
        assert_eq!(verify(&after, &dir(), &listed), [] as [&str; 0]);
        assert_eq!(sweep(&after, &dir(), &live).unwrap(), [] as [&str; 0]);
        assert_eq!(write(&after, 2, &rows, &[]).unwrap().rows, unlisted.rows, "the number can be used");
    }
}

#[test]
fn any_failing_call_of_a_write_is_an_error_and_lists_nothing() {
    let rows = random_rows(&mut random(1), 300, 300);
    let counting = FaultyDisk::new(shared(&disk()), FaultPlan::none());
    write(&(Arc::new(counting.clone()) as SharedDisk), 1, &rows, &MARKS).unwrap();
    let calls = counting.calls_total();
    assert!(calls > 10);
    for nth in 1..=calls {
        for fault in [Fault::InputOutput, Fault::NoSpace, Fault::ShortWrite, Fault::DoneButReported] {
            let below = disk();
            let faulty: SharedDisk = Arc::new(FaultyDisk::new(shared(&below), FaultPlan::fail_any(nth, fault)));
            let failed = write(&faulty, 1, &rows, &MARKS);
            if fault == Fault::DoneButReported && failed.is_ok() {
                continue; // The call would have failed anyhow, and harmlessly: it removed what is not there.
            }
            assert!(matches!(failed, Err(SegmentError::Io { .. })), "call {nth}, {fault:?}: {failed:?}");
            // The next writer or the sweep removes a file that was made although the disk reported a failure.
            let left = names(&below);
            assert!(left.iter().all(|name| name.ends_with(".tmp")), "call {nth}, {fault:?}: {left:?}");
            assert!(left.is_empty() || fault == Fault::DoneButReported, "call {nth}, {fault:?}: {left:?}");
            let meta = write(&shared(&below), 1, &rows, &MARKS).unwrap();
            assert_eq!(read_all(&shared(&below), &meta).unwrap(), rows, "and it can be written again");
        }
    }
}

#[test]
fn a_disk_that_fails_for_good_leaves_only_what_a_sweep_removes() {
    let rows = random_rows(&mut random(1), 300, 300);
    for nth in 1..40 {
        let below = disk();
        let plan = FaultPlan::fail_any(nth, Fault::InputOutput).lasting();
        let faulty: SharedDisk = Arc::new(FaultyDisk::new(shared(&below), plan));
        if write(&faulty, 1, &rows, &MARKS).is_ok() {
            return;
        }
        for after in [below.clone(), below.power_cut(nth)] {
            sweep(&shared(&after), &dir(), &[]).unwrap();
            assert_eq!(names(&after), [] as [&str; 0]);
        }
    }
    panic!("a write takes fewer calls than this");
}

#[test]
fn any_failing_call_of_a_read_or_merge_is_an_error_and_no_wrong_row() {
    let rows = random_rows(&mut random(1), 300, 300);
    let below = disk();
    let meta = write(&shared(&below), 1, &rows, &MARKS).unwrap();
    for nth in 1..200 {
        let plan = FaultPlan::fail_any(nth, Fault::InputOutput);
        let faulty = FaultyDisk::new(shared(&below), plan);
        let disk: SharedDisk = Arc::new(faulty.clone());
        let merged = read_all(&disk, &meta).and_then(|found| {
            assert_eq!(found, rows);
            let input = MergeInput { segment: open(&disk, &meta)?, ends: vec![] };
            merge(&[input], &|_| true, Arc::clone(&disk), &dir(), 2, Default::default(), &[])
        });
        if faulty.injected() == 0 {
            return assert_eq!(read_all(&shared(&below), &merged.unwrap().meta).unwrap(), rows);
        }
        assert!(matches!(merged, Err(SegmentError::Io { .. })), "call {nth}: {merged:?}");
        assert_eq!(names(&below).len(), 3);
    }
    panic!("reading and merging takes fewer calls than this");
}
