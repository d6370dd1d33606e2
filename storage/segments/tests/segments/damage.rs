//! Tests of flipped bits. Each is detected or harmless, and never causes a wrong row or a panic.

use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use assay_storage_disk::{Disk, SimulatedDisk};
use assay_storage_model::PaginationKey;
use assay_storage_model::Xact;
use assay_storage_model::segment::{COLUMNAR_FORMAT, FileKind, SEGMENT_FORMAT, SegmentMeta, WHOLE_FORMAT};
use assay_storage_segments::merge::{MergeInput, merge};
use assay_storage_segments::{Columns, Mark, OwnedRow, Segment, SegmentError, SoughtId, file_name, verify};
use rand::Rng;

use crate::rows::*;

const FLIPS: u32 = 300;

fn sample() -> (SimulatedDisk, SegmentMeta, Vec<OwnedRow>, Vec<Mark>) {
    sample_as(WHOLE_FORMAT)
}

fn sample_as(format: u16) -> (SimulatedDisk, SegmentMeta, Vec<OwnedRow>, Vec<Mark>) {
    let disk = disk();
    let rows = random_rows(&mut random(1), 400, 400);
    let marks: Vec<Mark> = (0..50).map(|row| Mark { segment: 3, row, end: Xact(9) }).collect();
    let meta = write_as(&shared(&disk), 7, &rows, &marks, format).unwrap();
    (disk, meta, rows, marks)
}

/// Checks that each result is right or reports the damage. Returns the number of reports.
fn all_answers_right_or_refused(segment: &Arc<Segment>, rows: &[OwnedRow], marks: &[Mark]) -> usize {
    let mut refused = 0;
    let mut expect = |answer: Result<bool, SegmentError>| match answer {
        Ok(right) => assert!(right, "a wrong answer"),
        Err(SegmentError::Damaged { .. }) => refused += 1,
        Err(other) => panic!("damage came out as {other}"),
    };
    for row in rows.iter().step_by(5) {
        expect(
            segment.find(&SoughtId::new(row.object, &row.id)).map(|hits| hits == naive_find(rows, row.object, &row.id)),
        );
        let trace = naive_trace(rows, row.object, &row.root_span_id);
        expect(segment.trace(row.object, &row.root_span_id).map(|found| found == trace));
        let key = PaginationKey(row.key.0);
        expect(segment.first_row_below(row.object, key).map(|found| found == naive_below(rows, row.object, key)));
    }
    for row in rows.iter().step_by(40) {
        expect(segment.read(&[row.row], Columns::All).map(|found| found == [row.clone()]));
    }
    for what in [Columns::Keys, Columns::All] {
        let expected: Vec<OwnedRow> = rows.iter().map(|row| cut(row, what)).collect();
        let scan = segment.scan(0..rows.len() as u32, what).unwrap();
        expect(scan.collect::<Result<Vec<_>, _>>().map(|found| found.concat() == expected));
    }
    for group in 0..segment.groups() {
        let sought = segment.rows_with_words(group, &["plain"]);
        let some = |bits: Option<BooleanBuffer>| bits.is_none_or(|bits| bits.count_set_bits() > 0);
        expect(sought.map(some));
    }
    expect(segment.marks().map(|found| found == marks));
    refused
}

#[test]
fn a_flipped_bit_is_found_or_does_no_harm() {
    a_flipped_bit_does_no_harm(WHOLE_FORMAT);
}

#[test]
fn a_flipped_bit_of_a_columnar_segment_is_found_or_does_no_harm() {
    a_flipped_bit_does_no_harm(COLUMNAR_FORMAT);
}

fn a_flipped_bit_does_no_harm(format: u16) {
    let mut random = random(2);
    let (disk, meta, rows, marks) = sample_as(format);
    let mut found = 0;
    for _ in 0..FLIPS {
        let mut bit = random.random_range(0..meta.file_bytes() * 8);
        let file = meta.files.iter().find(|file| {
            let here = bit < file.length * 8;
            bit -= if here { 0 } else { file.length * 8 };
            here
        });
        let kind = file.expect("the bit is in one of the files").kind;
        let path = dir().join(file_name(meta.seq, kind));
        disk.flip_bit(&path, bit).unwrap();
        let refused = match open(&shared(&disk), &meta) {
            Ok(segment) => all_answers_right_or_refused(&segment, &rows, &marks),
            Err(SegmentError::Damaged { .. }) => 1,
            Err(other) => panic!("damage came out as {other}"),
        };
        found += usize::from(refused > 0);
        let told = verify(&shared(&disk), &dir(), &meta);
        assert!(!told.is_empty(), "{kind:?} bit {bit}: the doctor must find every flipped bit");
        assert!(told[0].contains(&file_name(meta.seq, kind)), "{kind:?}: {told:?}");
        disk.flip_bit(&path, bit).unwrap();
    }
    assert!(found > FLIPS as usize / 2, "{found} were seen in use");
    assert_eq!(verify(&shared(&disk), &dir(), &meta), [] as [&str; 0]);
}

#[test]
fn an_open_segment_notices_bits_that_flip_later() {
    let (disk, meta, rows, marks) = sample();
    let segment = open(&shared(&disk), &meta).unwrap();
    assert_eq!(all_answers_right_or_refused(&segment, &rows, &marks), 0);
    let length = meta.file(FileKind::Rows).unwrap().length;
    for block in 0..length.div_ceil(32 << 10) {
        disk.flip_bit(&dir().join(file_name(7, FileKind::Rows)), block * (32 << 13) + 77).unwrap();
    }
    assert!(all_answers_right_or_refused(&segment, &rows, &marks) > 10);
}

#[test]
fn a_merge_of_a_damaged_input_fails_and_leaves_no_file() {
    let (disk, meta, ..) = sample();
    disk.flip_bit(&dir().join(file_name(7, FileKind::Rows)), 5000).unwrap();
    let input = MergeInput { segment: open(&shared(&disk), &meta).unwrap(), ends: vec![] };
    let failed = merge(&[input], &|_| true, shared(&disk), &dir(), 8, Default::default(), &[]);
    assert!(matches!(failed, Err(SegmentError::Damaged { .. })), "{failed:?}");
    assert_eq!(disk.list(&dir()).unwrap().len(), 3);
}

#[test]
fn a_cut_an_extended_and_a_missing_file_are_damage() {
    for kind in FileKind::ALL {
        let path = dir().join(file_name(7, kind));
        for change in 0..3 {
            let (disk, meta, ..) = sample_as(COLUMNAR_FORMAT);
            let length = meta.file(kind).unwrap().length;
            match change {
                0 => disk.open(&path).unwrap().set_len(length - 1).unwrap(),
                1 => disk.open(&path).unwrap().set_len(length + 4096).unwrap(),
                _ => disk.remove(&path).unwrap(),
            }
            let told = open(&shared(&disk), &meta).and_then(|segment| segment.marks());
            assert!(matches!(told, Err(SegmentError::Damaged { .. })), "{kind:?} {change}: {told:?}");
            assert_eq!(verify(&shared(&disk), &dir(), &meta).len(), 1);
        }
    }
}

#[test]
fn files_of_another_segment_under_this_name_are_damage() {
    let (disk, meta, rows, _) = sample();
    let other = write(&shared(&disk), 8, &rows, &[]).unwrap();
    for kind in [FileKind::Rows, FileKind::Ids] {
        disk.rename(&dir().join(file_name(8, kind)), &dir().join(file_name(7, kind))).unwrap();
    }
    assert!(matches!(open(&shared(&disk), &meta), Err(SegmentError::Damaged { .. })));
    let renamed = SegmentMeta { seq: 7, ..other };
    assert!(matches!(open(&shared(&disk), &renamed), Err(SegmentError::Damaged { .. })));
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (disk, meta, ..) = sample();
    let newer = SegmentMeta { format: SEGMENT_FORMAT + 1, ..meta };
    let refused = open(&shared(&disk), &newer).unwrap_err();
    let next = SEGMENT_FORMAT + 1;
    assert!(matches!(refused, SegmentError::Newer { found, known: SEGMENT_FORMAT, .. } if found == next));
    assert!(refused.to_string().contains("upgrade"), "{refused}");
}
