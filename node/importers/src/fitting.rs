//! Fits of rows to what the target accepts. One row that it refuses would cost the whole request.

use std::collections::HashSet;

use assay_storage_model::event::parse_created;
use serde_json::{Map, Value, json};

use crate::ids::digits;
use crate::planner::ROW_BYTES_MAX;

/// Upper bound of the nesting of a field. A row has 64 levels.
const DEPTH_MAX: usize = 60;
/// Upper bound of an id, in bytes.
const ID_BYTES_MAX: usize = 1024;
/// Key of `metadata` with everything about imported scores.
pub(crate) const SCORES_KEY: &str = "imported_scores";
const METRICS_KEY: &str = "imported_metrics";
pub(crate) const OUT_OF_RANGE: &str = "scores outside of 0 to 1, which are in metadata";

/// Changes a row so that the target accepts it. Returns a note for each thing that is moved or left out.
pub(crate) fn fit(row: &mut Map<String, Value>) -> Vec<&'static str> {
    let mut notes = Vec::new();
    for field in ["metadata", "context", "span_attributes"] {
        if let Some(value) = row.get_mut(field).filter(|value| !value.is_object() && !value.is_null()) {
            *value = json!({"value": value.take()});
        }
    }
    if row.get("created").is_some_and(|created| created.as_str().and_then(parse_created).is_none()) {
        row.remove("created");
        notes.push("times of creation that are no times");
    }
    attributes(row);
    tags(row);
    scores(row, &mut notes);
    metrics(row, &mut notes);
    for (_, value) in row.iter_mut().filter(|(_, value)| depth(value, DEPTH_MAX) > DEPTH_MAX) {
        *value = json!({"nested_too_deep": value.to_string()});
        notes.push("values that are nested too deep, which are texts");
    }
    shorten(row, &mut notes);
    notes
}

/// Returns an id that the target accepts, in the place of one that is empty or too long.
pub(crate) fn fitting_id(id: String, otherwise: &str) -> String {
    match id.len() {
        0 => otherwise.to_owned(),
        length if length > ID_BYTES_MAX => digits(&[&id]),
        _ => id,
    }
}

fn attributes(row: &mut Map<String, Value>) {
    let Some(Value::Object(attributes)) = row.get_mut("span_attributes") else { return };
    for name in ["name", "type", "purpose", "log_level"] {
        if let Some(value) = attributes.get_mut(name).filter(|value| !value.is_string() && !value.is_null()) {
            *value = Value::from(value.to_string());
        }
    }
}

fn tags(row: &mut Map<String, Value>) {
    let Some(tags) = row.get_mut("tags") else { return };
    let mut seen = HashSet::new();
    let texts = tags.as_array().into_iter().flatten().filter_map(Value::as_str);
    let unique: Vec<Value> = texts.filter(|tag| seen.insert(*tag)).map(Value::from).collect();
    *tags = Value::Array(unique);
}

/// Moves scores that are no number from 0 to 1 to the metadata.
fn scores(row: &mut Map<String, Value>, notes: &mut Vec<&'static str>) {
    let Some(scores) = row.remove("scores") else { return };
    let Value::Object(scores) = scores else { return };
    let mut fit = Map::new();
    for (name, score) in scores {
        let number = score.as_bool().map(|truth| f64::from(u8::from(truth))).or_else(|| score.as_f64());
        if number.is_some_and(|number| (0.0..=1.0).contains(&number)) {
            fit.insert(name, if score.is_boolean() { json!(u8::from(score == true)) } else { score });
        } else if !score.is_null() {
            notes.push(OUT_OF_RANGE);
            keep(row, SCORES_KEY, &name, json!({"name": name, "value": score}));
        }
    }
    if !fit.is_empty() {
        row.insert("scores".to_owned(), Value::Object(fit));
    }
}

/// Moves metrics that are no numbers to the metadata.
fn metrics(row: &mut Map<String, Value>, notes: &mut Vec<&'static str>) {
    let Some(metrics) = row.remove("metrics") else { return };
    let Value::Object(metrics) = metrics else { return };
    let (fit, other): (Map<_, _>, Map<_, _>) = metrics.into_iter().partition(|(_, value)| value.is_number());
    if !fit.is_empty() {
        row.insert("metrics".to_owned(), Value::Object(fit));
    }
    for (name, value) in other.into_iter().filter(|(_, value)| !value.is_null()) {
        notes.push("metrics that are no numbers, which are in metadata");
        keep(row, METRICS_KEY, &name, value);
    }
}

/// Keeps a value under a key of the metadata.
fn keep(row: &mut Map<String, Value>, key: &str, name: &str, value: Value) {
    let metadata = row.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    if let Value::Object(metadata) = metadata
        && let Value::Object(kept) = metadata.entry(key).or_insert_with(|| json!({}))
    {
        kept.insert(name.to_owned(), value);
    }
}

/// Returns the nesting of a value, as far as a bound.
fn depth(value: &Value, most: usize) -> usize {
    let inner = |values: &mut dyn Iterator<Item = &Value>| {
        if most == 0 { 1 } else { 1 + values.map(|value| depth(value, most - 1)).max().unwrap_or_default() }
    };
    match value {
        Value::Array(items) => inner(&mut items.iter()),
        Value::Object(map) => inner(&mut map.values()),
        _ => 0,
    }
}

/// Leaves out large fields of a row that is too large.
fn shorten(row: &mut Map<String, Value>, notes: &mut Vec<&'static str>) {
    if bytes_of(row) <= ROW_BYTES_MAX {
        return;
    }
    for field in ["input", "output", "expected", "metadata", "error", "context"] {
        let bytes = row.get(field).map_or(0, |value| value.to_string().len());
        if bytes > ROW_BYTES_MAX / 16 {
            row.insert(field.to_owned(), json!({"left_out_by_import": format!("{bytes} bytes")}));
            notes.push("inputs and outputs that are too large for a row");
        }
    }
}

pub(crate) fn bytes_of(row: &Map<String, Value>) -> usize {
    // A row is a map of JSON values, which always has a text.
    serde_json::to_vec(row).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(row: Value) -> (Value, Vec<&'static str>) {
        let Value::Object(mut row) = row else { panic!("a row") };
        let notes = fit(&mut row);
        (Value::Object(row), notes)
    }

    #[test]
    fn what_the_target_would_refuse_is_moved() {
        let (row, notes) = fitted(json!({"metadata": "text", "tags": ["a", "a", 1], "created": "yesterday",
            "scores": {"ok": true, "half": 0.5, "stars": 4, "none": null}, "metrics": {"start": 1, "unit": "s"},
            "span_attributes": {"name": 7}}));
        assert_eq!(
            row,
            json!({"metadata": {"value": "text", "imported_scores": {"stars": {"name": "stars", "value": 4}},
                    "imported_metrics": {"unit": "s"}},
                "tags": ["a"], "span_attributes": {"name": "7"}, "scores": {"ok": 1, "half": 0.5},
                "metrics": {"start": 1}})
        );
        assert_eq!(notes.len(), 3, "{notes:?}");
    }

    #[test]
    fn large_and_deep_values_leave_a_mark() {
        let (row, notes) = fitted(json!({"id": "a", "input": "x".repeat(ROW_BYTES_MAX), "output": "y"}));
        assert!(row["input"]["left_out_by_import"].is_string() && row["output"] == "y" && notes.len() == 1);
        let deep = (0..DEPTH_MAX + 5).fold(json!(1), |inner, _| json!([inner]));
        let (row, notes) = fitted(json!({"input": deep, "output": [[1]]}));
        assert!(row["input"]["nested_too_deep"].is_string() && row["output"] == json!([[1]]) && notes.len() == 1);
        assert_eq!(fitting_id("x".repeat(ID_BYTES_MAX + 1), "o").len(), 32);
        assert_eq!(fitting_id(String::new(), "o"), "o");
    }
}
