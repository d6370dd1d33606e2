//! A document, a patch and rules as any bytes. Damaged ones give an error and never a panic; valid ones the result of
//! the naive model, and nothing that a merge cannot produce.

use assay_storage_model::command::{Action, RowOp};
use assay_storage_model::event::{DEPTH_MAX, values_within};
use assay_storage_model::merge::{doc_field, doc_fields, fold};
use serde_json::{Map, Value, json};

use crate::json::read;
use crate::{NOW_MICROS, naive, parsed};

/// Control fields of the naive model that are data for the model.
const SAID_ASIDE: [&str; 6] = ["_is_merge", "_merge_paths", "_array_delete", "_object_delete", "_parent_id", "unknown"];

pub fn run(input: &[u8]) {
    let mut texts = input.splitn(3, |byte| *byte == 0);
    let [base, patch, rules] = [(); 3].map(|()| texts.next().unwrap_or_default());
    let op = RowOp {
        id: "r",
        action: Action::Merge,
        span_id: "s",
        root_span_id: "t",
        is_root: true,
        created: NOW_MICROS,
        doc: patch,
        rules,
        audit: b"",
    };
    let folded = fold(Some(base), &op);
    let made = fold(None, &op);
    for text in [base, patch] {
        let fields = doc_fields(text);
        let first = fields.iter().flatten().next();
        if let Some((name, value)) = first {
            assert_eq!(doc_field(text, name).as_ref(), Ok(&Some(*value)), "the first of its name");
        }
    }
    let (Some(base_doc), Some(patch_doc), Some(said)) = (document(base), document(patch), said(rules)) else { return };
    let folded = folded.expect("documents fold");
    assert!(folded.len() <= base.len() + patch.len(), "merging makes no text");
    assert!(values_within(&folded, DEPTH_MAX).is_ok());
    let again = |doc: &[u8]| parsed(&fold(Some(doc), &op).expect("folds again")).to_string();
    assert_eq!(again(&folded), parsed(&folded).to_string(), "sent twice");

    let written = [&base_doc, &patch_doc].map(|doc| Value::Object(doc.clone()).to_string());
    let of_written = fold(Some(written[0].as_bytes()), &RowOp { doc: written[1].as_bytes(), ..op.clone() });
    let of_written = of_written.expect("documents fold");
    assert_eq!(parsed(&folded).to_string(), parsed(&of_written).to_string(), "texts fold as their values do");

    let made = made.expect("a patch makes a row");
    assert_eq!(again(&made), parsed(&made).to_string(), "sent twice, the first time without a row");
    if patch_doc.keys().all(|name| !SAID_ASIDE.contains(&name.as_str())) {
        let mut sent = patch_doc;
        sent.extend(said);
        let theirs = naive::next(Some(Value::Object(base_doc)), &Value::Object(sent));
        assert_eq!(Some(parsed(&folded).to_string()), theirs.map(|row| row.to_string()));
    }
}

/// Returns a storable document: an object without duplicate keys, not too deep, with distinct tags that are texts.
fn document(text: &[u8]) -> Option<Map<String, Value>> {
    values_within(text, DEPTH_MAX).ok()?;
    let read = read(text).filter(|read| !read.key_twice)?;
    let doc = read.value.as_object()?;
    let tags = doc.get("tags").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let unlike = |(at, tag): (usize, &Value)| tag.is_string() && !tags[..at].contains(tag);
    tags.iter().enumerate().all(unlike).then(|| doc.clone())
}

/// Returns stored rules in a client's form. None for others.
fn said(rules: &[u8]) -> Option<Map<String, Value>> {
    let mut said = Map::from_iter([("_is_merge".to_owned(), json!(true))]);
    if rules.is_empty() {
        return Some(said);
    }
    let rules = document(rules)?;
    let list = |name: &str| rules.get(name).map_or(Some(&[][..]), |list| list.as_array().map(Vec::as_slice));
    let (paths, items) = (list("merge_paths")?, list("array_delete")?);
    let item_is_good = |item: &Value| {
        let path = item.get("path").filter(|path| path[0] != "_parent_id");
        item.is_object() && path.is_some_and(is_path) && item.get("delete").is_some_and(Value::is_array)
    };
    if !paths.iter().all(is_path) || !items.iter().all(item_is_good) {
        return None;
    }
    said.insert("_merge_paths".to_owned(), json!(paths));
    said.insert("_array_delete".to_owned(), json!(items));
    Some(said)
}

fn is_path(path: &Value) -> bool {
    path.as_array().is_some_and(|names| !names.is_empty() && names.iter().all(Value::is_string))
}
