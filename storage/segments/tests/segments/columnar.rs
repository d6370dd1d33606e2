//! Tests of columnar segments: documents are restored to the byte, typed columns match the documents, and the word
//! index excludes only rows without the words.

use std::collections::BTreeSet;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_buffer::BooleanBuffer;
use assay_storage_model::merge::Step;
use assay_storage_model::segment::{COLUMNAR_FORMAT, WHOLE_FORMAT};
use assay_storage_model::tokens::words_of_json;
use assay_storage_segments::{
    BLOCK_ROWS, Columns, Form, INDEXED_FIELDS, Kind, Kinds, OwnedRow, Segment, Typed, Want, verify,
};
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

/// Returns the value at a path as its typed column should have it. Values of another kind are absent.
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

/// Fields that documents have, that none has, that only whole documents have, and that are stored in other columns.
const FIELDS: [&str; 9] = ["input", "output", "metadata", "metrics", "tags", "comment", "unknown", "id", "created"];

#[test]
fn fields_and_paths_are_read_alike_whatever_keeps_them() {
    for format in [WHOLE_FORMAT, COLUMNAR_FORMAT] {
        let disk = shared(&disk());
        let rows = random_rows(&mut random(11), 1500, 100);
        let segment = open(&disk, &write_as(&disk, 1, &rows, &[], format).unwrap()).unwrap();
        let path = |name: &str| vec![Step::Key(name.to_owned())];
        let mut wants: Vec<Want> = FIELDS.iter().map(|field| Want::Field((*field).to_owned())).collect();
        wants.extend(FIELDS.iter().map(|field| Want::Path(path(field), Form::Json)));
        wants.extend([Want::Doc, Want::Path(vec![Step::Index(0)], Form::Json)]);
        for group in 0..segment.groups() {
            let of_group = segment.group_rows(group);
            let columns = segment.read_columns(group, of_group.clone(), None, &wants).unwrap();
            for (row, nth) in of_group.zip(0..) {
                let Ok(doc) = serde_json::from_slice::<Value>(&rows[row as usize].doc) else { continue };
                for (column, field) in columns.iter().zip(FIELDS.iter().chain(&FIELDS)) {
                    let texts = column.as_string::<i32>();
                    let found = texts.is_valid(nth).then(|| serde_json::from_str(texts.value(nth)).expect("JSON"));
                    let found: Value = found.unwrap_or_default();
                    let expected = doc.get(field).cloned().unwrap_or_default();
                    // If a document has two ids, both are correct.
                    assert!(
                        found == expected || *field == "id",
                        "format {format}, {field} of row {row}: {found} for {expected}"
                    );
                }
                assert_eq!(columns[2 * FIELDS.len()].as_string::<i32>().value(nth).as_bytes(), rows[row as usize].doc);
                assert!(columns[2 * FIELDS.len() + 1].is_null(nth));
            }
        }
        for name in FIELDS {
            let kinds = (0..segment.groups()).map(|group| segment.path_kinds(group, &path(name)).unwrap());
            let some = kinds.fold(Kinds::NONE, Kinds::and) != Kinds::NONE;
            assert_eq!(some, name != "comment", "format {format}: {name}");
        }
    }
}

/// Returns the indexed words of a row.
fn words(row: &OwnedRow) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    if let Ok(Value::Object(members)) = serde_json::from_slice(&row.doc) {
        for (_, value) in members.iter().filter(|(name, _)| INDEXED_FIELDS.contains(&name.as_str())) {
            words_of_json(value.to_string().as_bytes(), |word| words.extend([word.to_owned()]));
        }
    }
    words
}

fn rows_in_blocks_with(segment: &Segment, rows: &[OwnedRow], has: &dyn Fn(&OwnedRow) -> bool) -> Vec<u32> {
    let groups = (0..segment.groups()).map(|group| segment.group_rows(group));
    let blocks = groups.flat_map(|group| {
        let ends = group.clone().step_by(BLOCK_ROWS);
        ends.map(move |start| start..group.end.min(start + BLOCK_ROWS as u32)).collect::<Vec<_>>()
    });
    blocks.filter(|block| block.clone().any(|row| has(&rows[row as usize]))).flatten().collect()
}

#[test]
fn a_search_reads_the_blocks_that_have_its_words_and_no_others() {
    let disk = shared(&disk());
    let mut rows = random_rows(&mut random(9), 2000, 200);
    let long = "é".repeat(100);
    for (nth, row) in rows.iter_mut().enumerate() {
        let words = format!("w{} x{} {}", nth / 100, nth % 700, if nth == 1234 { &long } else { "" });
        row.doc = format!(r#"{{"input":"{words} everywhere","scores":{{"unsaid":1}},"metadata":{{"key_{nth}":"V"}}}}"#)
            .into();
    }
    let meta = write_as(&disk, 1, &rows, &[], COLUMNAR_FORMAT).unwrap();
    assert_eq!(verify(&disk, &dir(), &meta), [] as [&str; 0]);
    let segment = open(&disk, &meta).unwrap();
    let all: Vec<BTreeSet<String>> = rows.iter().map(words).collect();
    let found = |bits: &dyn Fn(usize) -> BooleanBuffer| -> Vec<u32> {
        let of_group =
            |group| bits(group).set_indices().map(|row| row as u32 + segment.group_rows(group).start).collect();
        (0..segment.groups()).flat_map::<Vec<u32>, _>(of_group).collect()
    };
    let searches =
        [&["w7"][..], &["x5"], &["w3", "x3"], &["everywhere"], &["key", "1999"], &["v"], &["unsaid"], &[], &[&long]];
    for sought in searches {
        let has = |row: &OwnedRow| sought.iter().all(|word| all[row.row as usize].contains(*word));
        let with_each = |row: u32| {
            sought.iter().all(|word| {
                rows_in_blocks_with(&segment, &rows, &|row| all[row.row as usize].contains(*word)).contains(&row)
            })
        };
        let expected: Vec<u32> = (0..2000).filter(|row| with_each(*row)).collect();
        let found = found(&|group| segment.rows_with_words(group, sought).unwrap().expect("an index"));
        assert_eq!(found, expected, "{sought:?}");
        assert!(rows.iter().filter(|row| has(row)).all(|row| found.contains(&row.row)));
    }
    let part =
        found(&|group| segment.rows_with_a_word(group, &|word| word.ends_with(b"99")).unwrap().expect("an index"));
    let has = |row: &OwnedRow| all[row.row as usize].iter().any(|word| word.ends_with("99") || word.len() > 60);
    assert_eq!(part, rows_in_blocks_with(&segment, &rows, &has));
}
