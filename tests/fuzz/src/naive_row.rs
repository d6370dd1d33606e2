//! Stored fields of a row, in a second, plain implementation: a list for each kind, and the values as sent.

use assay_storage_model::ObjectKind;
use serde_json::{Map, Value, json};

/// Identity fields of a row; a merge never changes them.
pub const PLACE: [&str; 6] = ["id", "created", "span_id", "root_span_id", "span_parents", "is_root"];
const DATASET: [&str; 7] = ["input", "expected", "metadata", "tags", "origin", "facets", "classifications"];
const SPAN: [&str; 6] = ["output", "error", "scores", "metrics", "context", "span_attributes"];

/// The fields of a row as sent that its document has besides what places it.
pub fn stored(kind: ObjectKind, sent: &Map<String, Value>) -> Map<String, Value> {
    let known = |name: &str| DATASET.contains(&name) || (kind != ObjectKind::Dataset && SPAN.contains(&name));
    let kept = sent.iter().filter(|(name, _)| known(name));
    kept.map(|(name, value)| (name.clone(), if numbers(name) { counted(value) } else { value.clone() })).collect()
}

fn numbers(name: &str) -> bool {
    name == "scores" || name == "metrics"
}

/// Returns a metric: booleans count as 0 or 1. Caller fields in the metrics may have any value.
fn counted(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let count = |value: &Value| match value {
        Value::Bool(truth) => json!(u8::from(*truth)),
        other => other.clone(),
    };
    Value::Object(members.iter().map(|(name, value)| (name.clone(), count(value))).collect())
}
