//! Round trips: written rows are read back by every access path.

use std::sync::Arc;

use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_model::command::Action;
use assay_storage_model::segment::{FileKind, SegmentMeta};
use assay_storage_model::{PaginationKey, Xact};
use assay_storage_segments::{
    Columns, Mark, OwnedRow, Segment, SegmentError, SegmentWriter, SoughtId, VersionRow, remove, verify,
};
use bytes::Bytes;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::rows::*;

/// Runs every lookup on a segment and compares the results with the list.
pub fn check(random: &mut ChaCha8Rng, segment: &Arc<Segment>, rows: &[OwnedRow]) -> Result<(), SegmentError> {
    for _ in 0..30.min(rows.len()) {
        let row = &rows[random.random_range(0..rows.len())];
        assert!(segment.may_contain(&SoughtId::new(row.object, &row.id)));
        assert_eq!(segment.find(&SoughtId::new(row.object, &row.id))?, naive_find(rows, row.object, &row.id));
        assert_eq!(segment.trace(row.object, &row.root_span_id)?, naive_trace(rows, row.object, &row.root_span_id));
        for key in [row.key.0 - 1, row.key.0, row.key.0 + 1, 0, u64::MAX].map(PaginationKey) {
            assert_eq!(segment.first_row_below(row.object, key)?, naive_below(rows, row.object, key));
        }
    }
    for number in 0..6 {
        let of_object = rows.iter().filter(|row| row.object == object(number));
        let range = segment.rows_of(object(number));
        assert_eq!(range.len(), of_object.clone().count());
        assert!(of_object.clone().all(|row| range.contains(&row.row)));
        assert_eq!(segment.find(&SoughtId::new(object(number), "no such id"))?, []);
        assert_eq!(segment.trace(object(number), "no such trace")?, [] as [u32; 0]);
    }
    for what in [Columns::Keys, Columns::Docs, Columns::All] {
        let some: Vec<u32> = (0..rows.len() as u32).filter(|_| random.random_bool(0.02)).collect();
        let expected: Vec<OwnedRow> = some.iter().map(|&row| cut(&rows[row as usize], what)).collect();
        assert_eq!(segment.read(&some, what)?, expected);
        let mut ends = [0, 0].map(|_| random.random_range(0..=rows.len() as u32));
        ends.sort_unstable();
        for range in [0..rows.len() as u32, ends[0]..ends[1]] {
            let expected = rows[range.start as usize..range.end as usize].iter().map(|row| cut(row, what));
            let found = segment.scan(range, what)?.collect::<Result<Vec<_>, _>>()?;
            assert!(found.concat().into_iter().eq(expected));
        }
    }
    Ok(())
}

#[test]
fn random_rows_come_back_by_every_way_of_asking() {
    for seed in 0..12 {
        let mut random = random(seed);
        let disk = shared(&disk());
        let count = [0, 1, 2, 700, 2500, 5000][seed as usize % 6];
        let rows = random_rows(&mut random, count, if seed < 6 { 200 } else { 3000 });
        let meta = write(&disk, seed, &rows, &[]).unwrap();
        assert_eq!(SegmentMeta::decode(&meta.encode()).as_ref(), Ok(&meta));
        let segment = open(&disk, &meta).unwrap();
        check(&mut random, &segment, &rows).unwrap();
        assert_eq!(verify(&disk, &dir(), &meta), [] as [&str; 0], "seed {seed}");
        assert_eq!(segment.marks().unwrap(), []);
    }
}

#[test]
fn the_description_says_what_is_inside() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(3), 500, 100);
    let meta = write(&disk, 5, &rows, &[]).unwrap();
    assert_eq!((meta.seq, meta.format, meta.tier, meta.rows), (5, 1, 0, 500));
    assert_eq!((meta.first_object, meta.last_object), (rows[0].object, rows[499].object));
    assert_eq!(Some(meta.key_min), rows.iter().map(|row| row.key).min());
    assert_eq!(Some(meta.key_max), rows.iter().map(|row| row.key).max());
    assert_eq!(Some(meta.xact_min), rows.iter().map(|row| row.xact).min());
    assert_eq!(Some(meta.xact_max), rows.iter().map(|row| row.xact).max());
    assert_eq!(meta.raw_bytes, rows.iter().map(|row| version(row).raw_bytes()).sum::<u64>());
}

#[test]
fn documents_of_many_megabytes_among_small_ones_come_back() {
    let disk = shared(&disk());
    let mut rows = random_rows(&mut random(4), 60, 100);
    for (row, length) in [(3, 5 << 20), (4, 12 << 20), (40, 5 << 20), (59, 1 << 20)] {
        rows[row].doc = Bytes::from(vec![row as u8; length]);
    }
    let meta = write(&disk, 1, &rows, &[]).unwrap();
    let segment = open(&disk, &meta).unwrap();
    assert_eq!(segment.read(&[2, 3, 4, 59], Columns::All).unwrap(), [2, 3, 4, 59].map(|row: usize| rows[row].clone()));
    let mut found = Vec::new();
    for batch in segment.scan(0..60, Columns::All).unwrap() {
        let batch = batch.unwrap();
        let bytes: usize = batch.iter().map(|row| row.doc.len()).sum();
        assert!(bytes <= (5 << 20) + (12 << 20) + (1 << 20), "{bytes} at once");
        found.extend(batch);
    }
    assert_eq!(found, rows);
}

#[test]
fn long_ids_and_traces_of_many_rows_are_found_whole() {
    let disk = shared(&disk());
    let mut rows = random_rows(&mut random(5), 4000, 10);
    for row in &mut rows[..2000] {
        row.root_span_id = "one long trace".to_owned();
        row.id = "one row written often".to_owned();
    }
    rows[2500].id = "x".repeat(40_000);
    rows[2500].root_span_id = "y".repeat(40_000);
    let meta = write(&disk, 1, &rows, &[]).unwrap();
    let segment = open(&disk, &meta).unwrap();
    for row in [&rows[0], &rows[1999], &rows[2500]] {
        assert_eq!(segment.find(&SoughtId::new(row.object, &row.id)).unwrap(), naive_find(&rows, row.object, &row.id));
        let trace = naive_trace(&rows, row.object, &row.root_span_id);
        assert_eq!(segment.trace(row.object, &row.root_span_id).unwrap(), trace);
    }
    assert_eq!(verify(&disk, &dir(), &meta), [] as [&str; 0]);
}

#[test]
fn marks_come_back_sorted() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(6), 10, 10);
    let marks = [(2, 7), (1, 9), (1, 3)].map(|(segment, row)| Mark { segment, row, end: Xact(u64::from(row)) });
    let meta = write(&disk, 3, &rows, &marks).unwrap();
    assert!(meta.file(FileKind::Marks).is_some());
    let found = open(&disk, &meta).unwrap().marks().unwrap();
    assert_eq!(found, [marks[2], marks[1], marks[0]]);
}

#[test]
fn arrow_batches_carry_the_columns_asked_for_and_their_first_row() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(7), 3000, 2000);
    let meta = write(&disk, 1, &rows, &[]).unwrap();
    let segment = open(&disk, &meta).unwrap();
    let mut next = 17;
    for batch in segment.batches(17..2900, &segment.projection(Columns::Docs)[9..]).unwrap() {
        let (first, batch) = batch.unwrap();
        assert_eq!((first, batch.num_columns()), (next, 2));
        assert!(batch.get_array_memory_size() < 8 << 20);
        next += batch.num_rows() as u32;
    }
    assert_eq!(next, 2900);
}

#[test]
fn rows_that_do_not_ascend_or_do_not_exist_are_refused() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(8), 10, 10);
    let segment = open(&disk, &write(&disk, 1, &rows, &[]).unwrap()).unwrap();
    for wrong in [&[3, 3][..], &[4, 3], &[10]] {
        assert!(matches!(segment.read(wrong, Columns::Keys), Err(SegmentError::NoSuchRows { rows: 10 })));
    }
    assert!(segment.scan(3..11, Columns::Keys).is_err());
    assert_eq!(segment.read(&[], Columns::Keys).unwrap(), []);
}

#[test]
fn rows_out_of_order_are_refused_and_leave_no_file() {
    let disk = shared(&disk());
    let mut rows = random_rows(&mut random(9), 10, 10);
    rows.swap(2, 7);
    let failed = write(&disk, 1, &rows, &[]);
    assert!(matches!(failed, Err(SegmentError::OutOfOrder { seq: 1, row: 3..=8 })), "{failed:?}");
    assert_eq!(disk.list(&dir()).unwrap(), []);
}

#[test]
fn a_number_that_is_taken_is_refused_and_its_files_stay() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(10), 10, 10);
    let meta = write(&disk, 1, &rows, &[]).unwrap();
    assert!(write(&disk, 1, &rows, &[]).is_err());
    assert_eq!(verify(&disk, &dir(), &meta), [] as [&str; 0]);
    remove(&disk, &dir(), &meta).unwrap();
    assert_eq!(disk.list(&dir()).unwrap(), []);
}

#[test]
fn a_real_disk_keeps_a_segment() {
    let place = tempfile::tempdir().unwrap();
    let disk: SharedDisk = Arc::new(RealDisk);
    let rows = random_rows(&mut random(11), 300, 2000);
    let mut writer = SegmentWriter::create(Arc::clone(&disk), place.path(), 1, Default::default()).unwrap();
    for row in &rows {
        writer.push(&version(row)).unwrap();
    }
    let meta = writer.finish(&[]).unwrap();
    let segment = Segment::open(Arc::clone(&disk), place.path(), &meta).unwrap();
    remove(&disk, place.path(), &meta).unwrap();
    check(&mut random(11), &segment, &rows).expect("an open segment outlives its names");
    assert_eq!(verify(&disk, place.path(), &meta).len(), 1);
}

#[test]
fn an_open_segment_is_small_in_memory() {
    let disk = shared(&disk());
    let mut writer = SegmentWriter::create(Arc::clone(&disk), &dir(), 1, Default::default()).unwrap();
    let doc = vec![b'x'; 2000];
    for number in (0..20_000_u64).rev() {
        let id = format!("{number:08x}-1111-4222-8333-{number:012x}");
        let trace = format!("{:08x}-1111-4222-8333-{:012x}", number / 10, number / 10);
        let row = VersionRow {
            object: object(1),
            key: PaginationKey(number << 16),
            xact: Xact(number),
            end: None,
            action: Action::Upsert,
            id: &id,
            span_id: &id,
            root_span_id: &trace,
            is_root: number % 10 == 0,
            created: number as i64,
            doc: &doc,
            patch: None,
            rules: None,
            audit: None,
        };
        writer.push(&row).unwrap();
    }
    let segment = open(&disk, &writer.finish(&[]).unwrap()).unwrap();
    assert!(segment.memory_bytes() < 20_000 * 5, "{} bytes", segment.memory_bytes());
}
