//! Checks of every accepted row, and the meaning of a list of rows.

use std::collections::BTreeMap;

use assay_storage_model::ObjectKind;
use assay_storage_model::command::Action;
use assay_storage_model::event::{DEPTH_MAX, ID_BYTES_MAX, PreparedRow, ROW_BYTES_MAX, parse_created, values_within};
use assay_storage_model::merge::fold;
use serde_json::{Map, Value};

use crate::naive_row::{PLACE, stored};
use crate::parsed;

/// Facts of one row by itself.
pub fn check(row: &PreparedRow) {
    let ids = [&row.id, &row.span_id, &row.root_span_id];
    assert!(ids.iter().all(|id| id.len() <= ID_BYTES_MAX) && !row.id.is_empty());
    assert!(row.doc.len() + row.rules.len() + row.audit.len() <= ROW_BYTES_MAX);
    let doc = object(&row.doc);
    for optional in [&row.rules, &row.audit] {
        assert!(optional.is_empty() || !object(optional).is_empty());
    }
    let text = |name: &str| doc.get(name).and_then(Value::as_str);
    match row.action {
        Action::Upsert => {
            assert!(doc.keys().zip(PLACE).all(|(found, wanted)| found == wanted) && row.rules.is_empty());
            let ids = [text("id"), text("span_id"), text("root_span_id")];
            assert_eq!(ids, [&row.id, &row.span_id, &row.root_span_id].map(|id| Some(id.as_str())));
            assert_eq!(text("created").and_then(parse_created), Some(row.created));
            assert_eq!(doc["is_root"], Value::Bool(row.is_root));
            assert_eq!(doc["span_parents"].is_null(), row.is_root);
        }
        Action::Merge => {
            assert!(PLACE.iter().all(|name| *name == "span_parents" || !doc.contains_key(*name)));
            let alone = fold(None, &row.as_op()).expect("a merge without a row makes one");
            object(&alone);
            assert_eq!(fold(Some(&alone), &row.as_op()).as_deref(), Ok(&*alone), "sent twice");
        }
        Action::Delete => assert_eq!((&*row.doc, row.rules.len()), (&b"{}"[..], 0)),
        Action::Comment => {
            assert_eq!((text("id"), row.rules.len()), (Some(row.span_id.as_str()), 0));
            assert_eq!(text("created").and_then(parse_created), Some(row.created));
            assert!(doc["comment"]["text"].is_string() && doc["origin"]["id"] == row.id.as_str());
        }
    }
}

/// A stored text: an object that is written as it reads, no deeper than it may be.
fn object(text: &[u8]) -> Map<String, Value> {
    assert!(values_within(text, DEPTH_MAX).is_ok());
    let value = parsed(text);
    assert_eq!(value.to_string().as_bytes(), text, "it reads as it is written");
    match value {
        Value::Object(members) => members,
        other => panic!("no object: {other}"),
    }
}

/// Checks that a row's document has its sender's content.
pub fn check_sent(kind: ObjectKind, sent: &Value, row: &PreparedRow) {
    let takes_away = sent.get("_array_delete").is_some_and(|items| !items.is_null());
    if !matches!(row.action, Action::Upsert | Action::Merge) || (takes_away && row.action == Action::Upsert) {
        return;
    }
    let mut doc = object(&row.doc);
    doc.retain(|name, _| !PLACE.contains(&name.as_str()));
    let sent = stored(kind, sent.as_object().expect("a row that was let through"));
    assert_eq!(Value::Object(doc).to_string(), Value::Object(sent).to_string(), "stored as it was sent");
}

/// Each row after these writes; None where it is gone. Comments do not change their rows.
pub fn meaning<'r>(base: Option<&[u8]>, rows: &'r [PreparedRow]) -> BTreeMap<&'r str, Option<Vec<u8>>> {
    let mut state: BTreeMap<&str, Option<Vec<u8>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.action != Action::Comment) {
        let before = state.entry(&row.id).or_insert_with(|| base.map(<[u8]>::to_vec));
        *before = match row.action {
            Action::Delete => None,
            _ => Some(fold(before.as_deref(), &row.as_op()).expect("what was let through folds")),
        };
    }
    state
}

/// The comments of a list of rows with what they hang on, in their order.
pub fn comments(rows: &[PreparedRow]) -> Vec<(&str, &str, &[u8], &[u8])> {
    let comments = rows.iter().filter(|row| row.action == Action::Comment);
    comments.map(|row| (row.id.as_str(), row.span_id.as_str(), &*row.doc, &*row.audit)).collect()
}
