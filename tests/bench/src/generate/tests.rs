//! Tests of properties of every stream.

use std::collections::{BTreeMap, BTreeSet};

use assay_storage_model::command::{Action, Command, Write};
use assay_storage_model::entry::{ENTRY_BYTES_MAX, Entry};
use bytes::Bytes;
use serde_json::Value;

use super::*;

fn writes(workload: &Workload, n: u64, count: usize) -> (Vec<GeneratedWrite>, ObjectStream) {
    let mut stream = workload.stream(n);
    ((0..count).map(|_| stream.next_write()).collect(), stream)
}

fn decoded(command: &Bytes) -> Write<'_> {
    match Command::decode(command) {
        Ok(Command::Write(write)) => write,
        other => panic!("a write, not {other:?}"),
    }
}

fn json(doc: &[u8]) -> Value {
    serde_json::from_slice(doc).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(doc)))
}

/// Mean bytes of the whole documents of the first `rows` rows, and the largest.
fn sizes(profile: Profile, rows: u64) -> (f64, usize) {
    let workload = Workload::new(11, profile, 0.0);
    let (mut total, mut largest, mut doc) = (0, 0, Vec::new());
    for number in 0..rows {
        doc.clear();
        let row = workload.row(3, number);
        row.render(Part::Whole, words::Vocabulary::shared(), &mut doc);
        assert!(doc.len() <= row.bytes_max(Part::Whole), "{} of {row:?}", doc.len());
        total += doc.len();
        largest = largest.max(doc.len());
    }
    (total as f64 / rows as f64, largest)
}

fn deep_merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                deep_merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let workload = Workload::new(5, Profile::Mixed, 0.5);
    let (first, _) = writes(&workload, 2, 20);
    assert_eq!(first, writes(&workload, 2, 20).0);
    assert_ne!(first[0], writes(&Workload::new(6, Profile::Mixed, 0.5), 2, 1).0[0]);
    assert_ne!(first[0], writes(&workload, 3, 1).0[0]);
}

#[test]
fn even_rows_have_two_kilobytes() {
    let (mean, largest) = sizes(Profile::Even, 20_000);
    assert!((2048.0 * 0.95..2048.0 * 1.05).contains(&mean), "{mean}");
    assert!(largest < 2600, "{largest}");
}

#[test]
fn mixed_rows_have_two_kilobytes_on_average_and_some_are_large() {
    let (mean, largest) = sizes(Profile::Mixed, 60_000);
    assert!((2048.0 * 0.85..2048.0 * 1.15).contains(&mean), "{mean}");
    assert!((100_000..1_000_512).contains(&largest), "{largest}");
}

#[test]
fn every_document_is_json_with_the_fields_of_an_event() {
    let workload = Workload::new(1, Profile::Mixed, 0.5);
    for number in 0..3000 {
        let row = workload.row(number % 5, number);
        for part in [Part::Whole, Part::Start, Part::Finish] {
            let mut doc = Vec::new();
            row.render(part, words::Vocabulary::shared(), &mut doc);
            assert!(doc.len() <= row.bytes_max(part), "{part:?} {} of {row:?}", doc.len());
            let doc = json(&doc);
            let has = |name: &str| doc.get(name).is_some();
            assert_eq!(has("input") && has("metadata") && has("span_attributes"), part != Part::Finish);
            assert_eq!(has("output") && has("scores"), part != Part::Start);
            assert_eq!(doc["metrics"].get("start").is_some(), part != Part::Finish);
            assert_eq!(doc["metrics"].get("end").is_some(), part != Part::Start);
        }
    }
}

#[test]
fn a_start_and_its_finish_fold_into_the_whole() {
    let workload = Workload::new(2, Profile::Even, 0.5);
    for number in 0..200 {
        let row = workload.row(0, number);
        let [mut start, finish, whole] = [Part::Start, Part::Finish, Part::Whole].map(|part| {
            let mut doc = Vec::new();
            row.render(part, words::Vocabulary::shared(), &mut doc);
            json(&doc)
        });
        deep_merge(&mut start, finish);
        assert_eq!(start, whole);
    }
}

#[test]
fn a_trace_is_ten_spans_under_one_root() {
    let workload = Workload::new(3, Profile::Even, 0.0);
    let (written, _) = writes(&workload, 0, 1);
    let write = decoded(&written[0].command);
    let ids: BTreeSet<&str> = write.rows.iter().map(|row| row.id).collect();
    assert_eq!((write.rows.len(), ids.len()), (ROWS_PER_WRITE, ROWS_PER_WRITE));
    for trace in write.rows.chunks(SPANS_PER_TRACE as usize) {
        assert!(trace.iter().all(|row| row.root_span_id == trace[0].root_span_id));
        assert!(trace[0].is_root && trace[1..].iter().all(|row| !row.is_root));
        let types: Vec<Value> = trace.iter().map(|row| json(row.doc)["span_attributes"]["type"].clone()).collect();
        assert_eq!(types, ["task", "llm", "tool", "llm", "tool", "llm", "tool", "llm", "score", "score"]);
        assert_eq!(json(trace[4].doc)["span_parents"], serde_json::json!([trace[0].span_id]));
    }
}

#[test]
fn half_of_the_spans_are_merged_and_one_merge_in_twenty_comes_late() {
    let mut workload = Workload::new(4, Profile::Even, 0.5);
    workload.late_writes = 40;
    let (written, stream) = writes(&workload, 1, 400);
    let merges: u32 = written.iter().map(|write| write.merges).sum();
    let late: u32 = written.iter().map(|write| write.late_merges).sum();
    let share = f64::from(merges) / stream.rows() as f64;
    assert!((0.47..0.51).contains(&share), "{share}");
    let late = f64::from(late) / f64::from(merges);
    assert!((0.035..0.055).contains(&late), "{late}");
}

#[test]
fn what_is_expected_is_what_the_writes_say_in_their_order() {
    let workload = Workload::new(7, Profile::Even, 0.5);
    let (written, stream) = writes(&workload, 1, 12);
    let mut rows: BTreeMap<String, Value> = BTreeMap::new();
    for write in &written {
        for op in decoded(&write.command).rows {
            match op.action {
                Action::Merge => deep_merge(rows.get_mut(op.id).expect("its start came before"), json(op.doc)),
                _ => assert!(rows.insert(op.id.to_owned(), json(op.doc)).is_none(), "each row starts once"),
            }
        }
    }
    let expected = stream.expected();
    assert_eq!((expected.rows(), expected.doc(expected.rows())), (rows.len() as u64, None));
    assert!(expected.unfinished() > 0);
    for number in 0..expected.rows() {
        let row = expected.row(number).expect("below the number of rows");
        assert_eq!(rows[row.id()], json(&expected.doc(number).expect("exists")));
    }
}

#[test]
fn transaction_ids_rise_and_lie_in_the_past() {
    let (written, _) = writes(&Workload::new(8, Profile::Even, 0.5), 0, 50);
    assert!(written.windows(2).all(|pair| pair[0].assigned < pair[1].assigned));
    assert!(written[49].assigned.seconds() < 1_790_812_800 + 86_400);
}

#[test]
fn entries_are_nearly_full_and_hold_their_commands() {
    for profile in [Profile::Even, Profile::Mixed] {
        let mut stream = EntryStream::new(&Workload::new(9, profile, 0.5), &[0, 16]);
        let mut total = 0;
        for _ in 0..40 {
            let entry = stream.next_entry();
            assert!(entry.bytes.len() <= ENTRY_BYTES_MAX);
            total += entry.bytes.len();
            assert_eq!(Entry::decode(&entry.bytes), Ok(Entry::Commands(entry.commands.clone())));
            let rows: u64 = entry.commands.iter().map(|command| decoded(command).rows.len() as u64).sum();
            assert_eq!(rows, entry.counts.operations);
        }
        assert!(total / 40 > ENTRY_BYTES_MAX * 9 / 10, "{} on average", total / 40);
    }
}
