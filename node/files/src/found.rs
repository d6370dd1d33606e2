//! References to attachments in rows: objects `{"type": "braintrust_attachment", "key": …}` at any depth.

use std::collections::BTreeSet;

use assay_storage_model::event::SentItem;
use memchr::memmem;
use serde_json::Value;

const TYPE: &str = "braintrust_attachment";
/// Attachments that one write may name; rows have a handful.
pub const NAMED_MAX: usize = 1000;

/// The keys, each once. Most rows name none, and of them only the bytes are looked at.
pub fn keys_in(rows: &[SentItem]) -> BTreeSet<String> {
    let finder = memmem::Finder::new(TYPE.as_bytes());
    let mut keys = BTreeSet::new();
    for row in rows {
        let SentItem::Row(row) = row else { continue };
        for text in row.each_text().filter(|text| finder.find(text).is_some()) {
            if let Ok(value) = serde_json::from_slice::<Value>(text) {
                walk(&value, &mut keys);
            }
        }
        row.each_value().for_each(|value| walk(value, &mut keys));
    }
    keys
}

/// Depth is bounded by that of bodies.
fn walk(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if fields.get("type").and_then(Value::as_str) == Some(TYPE)
                && let Some(key) = fields.get("key").and_then(Value::as_str)
            {
                keys.insert(key.to_owned());
            }
            fields.values().for_each(|value| walk(value, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(rows: &Value) -> Vec<String> {
        let rows: Vec<SentItem> = serde_json::from_value(rows.clone()).expect("rows");
        keys_in(&rows).into_iter().collect()
    }

    #[test]
    fn attachments_are_found_wherever_they_stand() {
        let named = |key: &str| json!({"type": TYPE, "filename": "f", "content_type": "c", "key": key});
        let rows = json!([
            {"id": "1", "input": [{"deep": named("a")}], "output": named("b"), "metadata": {"x": named("a")}},
            {"id": "2", "input": "no braintrust_attachment", "expected": {"type": TYPE, "key": 7}},
            {"id": "3", "odd": named("c"), "input": {"type": "external_attachment", "url": "s3://x", "key": "d"}},
            7,
        ]);
        assert_eq!(keys(&rows), ["a", "b", "c"]);
        assert!(keys(&json!([{"id": "1", "input": "x"}])).is_empty());
    }
}
