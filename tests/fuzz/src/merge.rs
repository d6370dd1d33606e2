//! Histories of two rows, made from choices: requests of several rows each, folded like on a node, and compared with
//! the naive model after every request.

use arbitrary::{Result, Unstructured};
use assay_storage_model::ObjectKind;
use assay_storage_model::command::Action;
use assay_storage_model::event::{DEPTH_MAX, PrepareContext, PreparedRow, prepare, values_within};
use assay_storage_model::merge::{fold, fold_batch};
use serde_json::{Map, Value, json};

use crate::{NOW_MICROS, naive};

const IDS: [&str; 2] = ["r", "s"];
const REQUESTS_MAX: usize = 4;
const ROWS_MAX: usize = 5;
/// Few keys, so that writes meet; some that a careless merge takes for something else.
const KEYS: [&str; 9] = ["a", "b", "tags", "id", "created", "__proto__", "q\"\\é", "", "\u{1}\u{2028}"];
const TAGS: [&str; 6] = ["x", "y", "é\n", "", "x\\", "\u{1F600}"];
const FIELDS: [&str; 6] = ["input", "output", "metadata", "tags", "expected", "unknown"];

pub fn run(input: &[u8]) {
    // Running out of choices ends a history; what was made until then has been looked at.
    let _ = history(&mut Unstructured::new(input));
}

fn history(choices: &mut Unstructured<'_>) -> Result<()> {
    let kind = *choices.choose(&[ObjectKind::ProjectLogs, ObjectKind::Experiment])?;
    let mut ours: [Option<Vec<u8>>; 2] = [None, None];
    let mut theirs: [Option<Value>; 2] = [None, None];
    for _ in 0..choices.int_in_range(1..=REQUESTS_MAX)? {
        let mut rows = Vec::new();
        for _ in 0..choices.int_in_range(1..=ROWS_MAX)? {
            let which = usize::from(choices.arbitrary::<bool>()?);
            let sent = sent(choices, IDS[which])?;
            rows.push(prepared(kind, rows.len(), &sent));
            theirs[which] = naive::next(theirs[which].take(), &sent);
        }
        let said = rows.clone();
        let folded = fold_batch(rows).expect("small rows");
        for (at, id) in IDS.iter().enumerate() {
            let before = ours[at].take();
            ours[at] = after(before.clone(), id, &folded);
            let found = ours[at].as_deref().map(|doc| std::str::from_utf8(doc).expect("text"));
            assert_eq!(found, theirs[at].as_ref().map(Value::to_string).as_deref(), "{said:#?}\non {before:?}");
            assert!(found.is_none_or(|doc| values_within(doc.as_bytes(), DEPTH_MAX).is_ok()));
        }
    }
    Ok(())
}

fn prepared(kind: ObjectKind, index: usize, sent: &Value) -> PreparedRow {
    let context = &mut PrepareContext { now_micros: NOW_MICROS, new_id: &mut || panic!("it has an id") };
    prepare(kind, index, sent.clone(), context).unwrap_or_else(|refused| panic!("{refused}: {sent}"))
}

fn after(base: Option<Vec<u8>>, id: &str, rows: &[PreparedRow]) -> Option<Vec<u8>> {
    let mut doc = base;
    for row in rows.iter().filter(|row| row.id == id) {
        let next = |doc: &Option<Vec<u8>>| fold(doc.as_deref(), &row.as_op()).expect("what was prepared folds");
        doc = (row.action != Action::Delete).then(|| next(&doc));
        assert!(doc.is_none() || next(&doc) == *doc.as_ref().expect("there"), "sent twice: {row:?}");
    }
    doc
}

/// A row as a client may send it.
fn sent(choices: &mut Unstructured<'_>, id: &str) -> Result<Value> {
    let mut row = Map::from_iter([("id".to_owned(), json!(id))]);
    if choices.ratio(1, 12)? {
        row.insert("_object_delete".to_owned(), json!(true));
        return Ok(Value::Object(row));
    }
    row.insert("_is_merge".to_owned(), json!(choices.ratio(3, 4)?));
    for field in FIELDS {
        if choices.ratio(1, 3)? {
            let value = match field {
                _ if choices.ratio(1, 8)? => Value::Null,
                "metadata" => Value::Object(object(choices, 2)?),
                "tags" => tags(choices)?,
                _ => value(choices, 3)?,
            };
            row.insert(field.to_owned(), value);
        }
    }
    if choices.ratio(1, 4)? {
        let parents = choices.choose(&[json!([]), json!(["p"]), Value::Null])?.clone();
        row.insert("span_parents".to_owned(), parents);
        row.insert("span_id".to_owned(), json!(format!("s{}", choices.int_in_range(0..=2)?)));
    }
    if choices.ratio(1, 6)? {
        row.insert("_parent_id".to_owned(), json!("parent"));
        row.insert("created".to_owned(), json!(format!("2026-01-0{}T00:00:00.000Z", choices.int_in_range(1..=3)?)));
    }
    if choices.ratio(1, 3)? {
        row.insert("_merge_paths".to_owned(), list(choices, 3, path)?);
    }
    if choices.ratio(1, 3)? {
        let item = |choices: &mut Unstructured<'_>| {
            Ok(json!({"path": path(choices)?, "delete": list(choices, 3, |choices| value(choices, 1))?}))
        };
        row.insert("_array_delete".to_owned(), list(choices, 3, item)?);
    }
    Ok(Value::Object(row))
}

fn list<'c>(
    choices: &mut Unstructured<'c>,
    most: usize,
    mut item: impl FnMut(&mut Unstructured<'c>) -> Result<Value>,
) -> Result<Value> {
    let count = choices.int_in_range(0..=most)?;
    (0..count).map(|_| item(choices)).collect::<Result<_>>().map(Value::Array)
}

fn value(choices: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    Ok(match choices.int_in_range(0..=if depth == 0 { 5 } else { 9 })? {
        0 => Value::Null,
        1 => json!(choices.arbitrary::<bool>()?),
        2 => json!(choices.int_in_range(0..=2)?),
        3 => choices
            .choose(&[json!(0.5), json!(1.0), json!(-0.0), json!(1e300), json!(u64::MAX), json!(i64::MIN)])?
            .clone(),
        4 | 5 => json!(choices.choose(&TAGS)?),
        6 | 7 => list(choices, 3, |choices| value(choices, depth - 1))?,
        _ => Value::Object(object(choices, depth - 1)?),
    })
}

fn object(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let mut members = Map::new();
    // Now and then so many keys that they are no longer searched one by one.
    if choices.ratio(1, 32)? {
        for at in choices.int_in_range(0..=3)?..20 {
            members.insert(format!("k{at}"), json!(at));
        }
    }
    for _ in 0..choices.int_in_range(0..=3)? {
        let key = choices.choose(&KEYS)?;
        members.insert((*key).to_owned(), value(choices, depth)?);
    }
    Ok(members)
}

/// Unlike each other, as tags are.
fn tags(choices: &mut Unstructured<'_>) -> Result<Value> {
    let (some, turn) = (choices.arbitrary::<u8>()?, choices.int_in_range(0..=TAGS.len() - 1)?);
    let taken = (0..TAGS.len()).filter(|at| some & (1 << at) != 0);
    Ok(taken.map(|at| json!(TAGS[(at + turn) % TAGS.len()])).collect())
}

fn path(choices: &mut Unstructured<'_>) -> Result<Value> {
    let first = choices.choose(&["tags", "input", "metadata", "span_parents", "id"])?;
    let mut path = vec![json!(first)];
    for _ in 0..choices.int_in_range(0..=2)? {
        path.push(json!(choices.choose(&KEYS)?));
    }
    Ok(Value::Array(path))
}
