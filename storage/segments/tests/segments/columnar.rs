//! Columnar segments: documents come back to the byte, and typed columns say what the documents say.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float64Type, Int64Type};
use assay_storage_model::segment::COLUMNAR_FORMAT;
use assay_storage_segments::{Columns, Kind, Typed, verify};
use serde_json::Value;

use crate::rows::*;

#[test]
fn all_that_is_asked_of_a_columnar_segment_is_as_it_was_written() {
    for (seed, count, doc_bytes) in [(1, 0, 10), (2, 1, 100), (3, 3000, 300), (4, 500, 20_000)] {
        let disk = shared(&disk());
        let mut random = random(seed);
        let rows = random_rows(&mut random, count, doc_bytes);
        let meta = write_as(&disk, 1, &rows, &[], COLUMNAR_FORMAT).unwrap();
        assert_eq!((meta.format, meta.rows as usize), (COLUMNAR_FORMAT, count));
        let segment = open(&disk, &meta).unwrap();
        crate::round_trip::check(&mut random, &segment, &rows).unwrap();
        assert_eq!(verify(&disk, &dir(), &meta), [] as [&str; 0]);
    }
}

#[test]
fn documents_are_kept_as_parts_unless_they_could_not_come_back_to_the_byte() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(5), 2000, 300);
    let meta = write_as(&disk, 1, &rows, &[], COLUMNAR_FORMAT).unwrap();
    let segment = open(&disk, &meta).unwrap();
    let doc_column = segment.projection(Columns::Docs)[10];
    let mut in_parts = 0;
    for batch in segment.batches(0..meta.rows, &[doc_column]).unwrap() {
        let (first, batch) = batch.unwrap();
        for index in (0..batch.num_rows()).filter(|index| batch.column(0).is_null(*index)) {
            let doc = &rows[first as usize + index].doc;
            let compact = serde_json::from_slice::<Value>(doc).is_ok_and(|value| value.to_string().as_bytes() == doc);
            assert!(compact, "{doc:?}");
            in_parts += 1;
        }
    }
    assert!(in_parts > 1000, "{in_parts}");
}

/// The value at a path, as a typed column has it: none also where it is of another kind.
fn naive(doc: &[u8], typed: &Typed) -> Option<Value> {
    let doc: Value = serde_json::from_slice(doc).ok()?;
    let value = typed.path.iter().try_fold(&doc, |value, key| value.as_object()?.get(key))?;
    let same = match typed.kind {
        Kind::Bool => value.is_boolean(),
        Kind::Text => value.is_string(),
        Kind::Int => value.as_i64().is_some(),
        Kind::Float => value.as_i64().map_or(value.is_number(), |int| int.unsigned_abs() <= 1 << 53),
    };
    same.then(|| value.clone())
}

#[test]
fn typed_columns_say_what_documents_say_and_list_what_they_do_not_hold() {
    let disk = shared(&disk());
    let rows = random_rows(&mut random(6), 2000, 100);
    let meta = write_as(&disk, 1, &rows, &[], COLUMNAR_FORMAT).unwrap();
    let segment = open(&disk, &meta).unwrap();
    let places = segment.typed_places();
    let mut odd = vec![Vec::new(); places.len()];
    for (which, (typed, place)) in segment.typed().iter().zip(places).enumerate() {
        for batch in segment.batches(0..meta.rows, &[place]).unwrap() {
            let (first, batch) = batch.unwrap();
            let column = batch.column(0);
            for index in 0..batch.num_rows() {
                let row = &rows[first as usize + index];
                let found = column.is_valid(index).then(|| match typed.kind {
                    Kind::Bool => Value::from(column.as_boolean().value(index)),
                    Kind::Int => Value::from(column.as_primitive::<Int64Type>().value(index)),
                    Kind::Float => Value::from(column.as_primitive::<Float64Type>().value(index)),
                    Kind::Text => Value::from(column.as_string::<i32>().value(index)),
                });
                let expected = naive(&row.doc, typed);
                let same = match (&found, &expected) {
                    (Some(found), Some(expected)) if found.is_number() => found.as_f64() == expected.as_f64(),
                    (found, expected) => found == expected,
                };
                assert!(same, "{typed:?} of row {}: {found:?} for {expected:?}", row.row);
                let there = serde_json::from_slice::<Value>(&row.doc).ok();
                let there = there.and_then(|doc| {
                    typed.path.iter().try_fold(&doc, |value, key| value.as_object()?.get(key)).cloned()
                });
                if expected.is_none() && there.is_some_and(|value| !value.is_null()) {
                    odd[which].push(row.row);
                }
            }
        }
    }
    let listed: Vec<Vec<u32>> = segment.typed().iter().map(|typed| typed.odd.clone()).collect();
    assert_eq!(listed, odd);
    assert!(segment.typed().iter().all(|typed| !typed.useless));
    assert!(odd[1].len() > 100 && odd[2].len() > 100 && odd[3].is_empty());
}
