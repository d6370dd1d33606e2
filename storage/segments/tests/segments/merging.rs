//! Test of a merge against the sorted rows of all its inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_storage_model::Xact;
use assay_storage_model::segment::{COLUMNAR_FORMAT, SegmentMeta, WHOLE_FORMAT};
use assay_storage_segments::merge::{DROPPED, MergeInput, merge};
use assay_storage_segments::{
    Codec, Columns, Mark, OwnedRow, RowHeader, SegmentError, SoughtId, WriterOptions, verify,
};
use rand::Rng;

use crate::rows::*;

const TIER_ONE: WriterOptions = WriterOptions { tier: 1, codec: Codec::Lz4, columnar: false };

/// Keeps all rows except some ids and some superseded versions.
fn keep(row: &RowHeader<'_>) -> bool {
    row.id.len() != 1 && row.end.is_none_or(|end| end.0 % 3 != 0)
}

#[test]
fn a_merge_is_the_sorted_rows_of_its_inputs_with_marks_folded_in() {
    for seed in 0..12 {
        let mut random = random(seed);
        let disk = shared(&disk());
        let mut inputs = Vec::new();
        // Expected result of the merge, row by row: the input, and the row with its end.
        let mut all: Vec<(usize, OwnedRow)> = Vec::new();
        for input in 0..random.random_range(1..6) {
            let (count, doc_bytes) = ([0, 10, 1500, 4000][random.random_range(0..4)], [50, 2500][seed as usize % 2]);
            let rows = random_rows(&mut random, count, doc_bytes);
            let format = [WHOLE_FORMAT, COLUMNAR_FORMAT][random.random_range(0..2)];
            let meta = write_as(&disk, input as u64 + 1, &rows, &[], format).unwrap();
            let mut ends = Vec::new();
            for row in &rows {
                let mut row = row.clone();
                if random.random_bool(0.2) {
                    let end = Xact(random.random());
                    ends.push((row.row, end));
                    row.end = Some(row.end.map_or(end, |known| known.min(end)));
                }
                all.push((input, row));
            }
            inputs.push(MergeInput { segment: open(&disk, &meta).unwrap(), ends });
        }
        let marks = [Mark { segment: 99, row: 4, end: Xact(5) }];
        let codec = [Codec::Plain, Codec::Lz4][seed as usize / 4 % 2];
        let options = WriterOptions { tier: 1, codec, columnar: seed % 2 == 1 };
        let merged = merge(&inputs, &keep, Arc::clone(&disk), &dir(), 50, options, &marks).unwrap();

        all.sort_by_key(|(input, row)| (row.object, std::cmp::Reverse((row.key, row.xact)), *input, row.row));
        let mut moved: BTreeMap<(usize, u32), u32> = BTreeMap::new();
        let mut expected = Vec::new();
        for (input, mut row) in all {
            let header = RowHeader {
                object: row.object,
                key: row.key,
                xact: row.xact,
                end: row.end,
                action: row.action,
                id: &row.id,
                is_root: row.is_root,
                created: row.created,
            };
            let new = if keep(&header) { expected.len() as u32 } else { DROPPED };
            moved.insert((input, row.row), new);
            if new != DROPPED {
                row.row = new;
                expected.push(row);
            }
        }
        for (input, numbers) in merged.moved.iter().enumerate() {
            assert_eq!(numbers.len(), inputs[input].segment.meta().rows as usize);
            assert!((0..).zip(numbers).all(|(row, new)| moved[&(input, row)] == *new), "seed {seed}");
        }
        let segment = open(&disk, &merged.meta).unwrap();
        let found = segment.scan(0..merged.meta.rows, Columns::All).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert!(found.concat() == expected, "seed {seed}");
        crate::round_trip::check(&mut random, &segment, &expected).unwrap();
        assert_eq!(verify(&disk, &dir(), &merged.meta), [] as [&str; 0]);
        assert_eq!((merged.meta.tier, segment.marks().unwrap()), (1, marks.to_vec()));
    }
}

#[test]
fn a_merge_that_keeps_nothing_is_an_empty_segment() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(1), 100, 10);
    let input = MergeInput { segment: open(&disk, &write(&disk, 1, &rows, &[]).unwrap()).unwrap(), ends: vec![] };
    let merged = merge(&[input], &|_| false, Arc::clone(&disk), &dir(), 2, TIER_ONE, &[]).unwrap();
    assert_eq!((merged.meta.rows, merged.meta.first_object), (0, SegmentMeta::NO_OBJECT));
    assert!(merged.moved[0].iter().all(|row| *row == DROPPED));
    assert_eq!(open(&disk, &merged.meta).unwrap().find(&SoughtId::new(object(0), "1")).unwrap(), []);
}

#[test]
fn marks_that_are_unsorted_or_name_no_row_are_refused() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(1), 10, 10);
    let segment = open(&disk, &write(&disk, 1, &rows, &[]).unwrap()).unwrap();
    for ends in [vec![(5, Xact(1)), (4, Xact(1))], vec![(10, Xact(1))]] {
        let input = MergeInput { segment: Arc::clone(&segment), ends };
        let failed = merge(&[input], &|_| true, Arc::clone(&disk), &dir(), 2, TIER_ONE, &[]);
        assert!(matches!(failed, Err(SegmentError::NoSuchRows { rows: 10 })));
    }
    assert_eq!(disk.list(&dir()).unwrap().len(), 2, "only the input's files");
}
