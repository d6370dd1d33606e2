//! Control fields of a row. None of them is stored in a document.

use serde_json::{Map, Value};

use super::fields::{flag, id_in};
use super::{ARRAY_DELETES_MAX, MERGE_PATHS_MAX, Problem, SCORING_STATE};
use crate::merge::{ArrayDelete, Rules};

#[derive(Debug)]
pub(super) struct Control {
    pub merge: bool,
    pub delete: bool,
    /// Merge rules. The paths take effect only in a merge. Clients that fold a merge into the start of its span send
    /// them with a replacing row as well; there they are read and ignored, except `array_delete`.
    pub rules: Rules,
    /// JSON text of `{"source", "metadata"}`, or empty.
    pub audit: Vec<u8>,
    /// The deprecated way to name the parent.
    pub parent: Option<String>,
}

impl Control {
    pub fn of(sent: &Map<String, Value>) -> Result<Control, Problem> {
        Ok(Control {
            merge: flag(sent, "_is_merge")?,
            delete: flag(sent, "_object_delete")?,
            rules: Rules { merge_paths: merge_paths(sent)?, array_delete: array_delete(sent)? },
            audit: audit(sent)?,
            parent: id_in(sent.get("_parent_id"), "_parent_id")?,
        })
    }
}

fn merge_paths(sent: &Map<String, Value>) -> Result<Vec<Vec<String>>, Problem> {
    let paths = list(sent, "_merge_paths", MERGE_PATHS_MAX, "an array of paths, each an array of field names")?;
    let each = paths.iter().enumerate().map(|(at, path)| field_names(path, &format!("_merge_paths.{at}")));
    each.collect()
}

fn array_delete(sent: &Map<String, Value>) -> Result<Vec<ArrayDelete>, Problem> {
    const RIGHT: &str = "an item is an object of `path` (field names) and `delete` (the values to take away)";
    let items = list(sent, "_array_delete", ARRAY_DELETES_MAX, "an array of objects of `path` and `delete`")?;
    let each = items.iter().enumerate().map(|(at, item)| {
        let here = format!("_array_delete.{at}");
        let (Some(path), Some(delete)) = (item.get("path"), item.get("delete")) else {
            return Err(Problem::new(here, format!("lacks a member; {RIGHT}")));
        };
        let Value::Array(delete) = delete else {
            return Err(Problem::unlike(format!("{here}.delete"), delete, "it is an array of values"));
        };
        Ok(ArrayDelete { path: field_names(path, &format!("{here}.path"))?, delete: delete.clone() })
    });
    // Only the write path changes the state of online scoring.
    let of_clients = |item: &Result<ArrayDelete, Problem>| {
        item.as_ref().is_err()
            || item.as_ref().is_ok_and(|item| item.path.first().is_none_or(|name| name != SCORING_STATE))
    };
    each.filter(of_clients).collect()
}

fn list<'a>(sent: &'a Map<String, Value>, name: &str, max: usize, right: &str) -> Result<&'a [Value], Problem> {
    match sent.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= max => Ok(items),
        Some(Value::Array(items)) => Err(Problem::new(name, format!("has {} items; at most {max} fit", items.len()))),
        Some(other) => Err(Problem::unlike(name, other, &format!("it is {right}"))),
    }
}

fn field_names(path: &Value, here: &str) -> Result<Vec<String>, Problem> {
    let names = path.as_array().map(Vec::as_slice).unwrap_or_default();
    match names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>() {
        Some(names) if !names.is_empty() => Ok(names),
        _ => Err(Problem::new(here, "is no path; a path is an array of at least one field name")),
    }
}

fn audit(sent: &Map<String, Value>) -> Result<Vec<u8>, Problem> {
    let source = sent.get("_audit_source").unwrap_or(&Value::Null);
    let metadata = sent.get("_audit_metadata").unwrap_or(&Value::Null);
    if !(source.is_null() || source.is_string()) {
        return Err(Problem::unlike("_audit_source", source, "it is a string such as \"external\", or null"));
    }
    if !(metadata.is_null() || metadata.is_object()) {
        return Err(Problem::unlike("_audit_metadata", metadata, "it is an object or null"));
    }
    if source.is_null() && metadata.is_null() {
        return Ok(Vec::new());
    }
    let mut record = Map::new();
    record.insert("source".to_owned(), source.clone());
    record.insert("metadata".to_owned(), metadata.clone());
    Ok(Value::Object(record).to_string().into_bytes())
}
