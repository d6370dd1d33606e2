//! Place of an application's metadata in `metadata`, and of fields without an equivalent in `metadata.langfuse`.
//!
//! Keys of the application are at the top, where filters and columns find them. Keys that the server uses itself, and
//! metadata that is no object, are in `metadata.langfuse`, so that they read back as they were sent.

use serde_json::{Map, Value};

/// Object in `metadata` with the fields of Langfuse that rows lack.
pub(crate) const OWN: &str = "langfuse";
/// Keys at the top of `metadata` that the server writes.
const RESERVED: [&str; 7] = [OWN, "otel", "model", "provider", "tools", "user_id", "session_id"];
/// Keys in [`OWN`] of metadata with reserved keys, and of metadata that is no object.
const HIDDEN: &str = "metadata";
const WHOLE: &str = "metadata_value";
const PARAMETERS: &str = "model_parameters";

fn is_reserved(key: &str, parameters: &Map<String, Value>) -> bool {
    RESERVED.contains(&key) || key.starts_with("langfuse.") || parameters.contains_key(key)
}

/// Adds the application's metadata to `metadata`, which has the server's keys, and to its own object.
pub(crate) fn put(metadata: &mut Map<String, Value>, own: &mut Map<String, Value>, sent: Value) {
    let parameters = own.get(PARAMETERS).and_then(Value::as_object).cloned().unwrap_or_default();
    let sent = match sent {
        Value::Null => return,
        Value::Object(sent) => sent,
        other => return drop(own.insert(WHOLE.into(), other)),
    };
    let mut hidden = Map::new();
    for (key, value) in sent {
        match is_reserved(&key, &parameters) {
            true => hidden.insert(key, value),
            false => metadata.insert(key, value),
        };
    }
    if !hidden.is_empty() {
        own.insert(HIDDEN.into(), Value::Object(hidden));
    }
}

/// Returns the fields of Langfuse in a row.
pub(crate) fn own(row: &Value) -> Option<&Map<String, Value>> {
    row.get("metadata")?.get(OWN)?.as_object()
}

/// Returns the application's metadata in a row.
pub(crate) fn read(row: &Value) -> Value {
    let own = own(row);
    if let Some(whole) = own.and_then(|own| own.get(WHOLE)) {
        return whole.clone();
    }
    let parameters = own.and_then(|own| own.get(PARAMETERS)?.as_object()).cloned().unwrap_or_default();
    let all = row.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut read: Map<String, Value> = all.into_iter().filter(|(key, _)| !is_reserved(key, &parameters)).collect();
    if let Some(hidden) = own.and_then(|own| own.get(HIDDEN)?.as_object()) {
        read.extend(hidden.clone());
    }
    Value::Object(read)
}

/// Returns metadata as an object, as answers need it.
pub(crate) fn read_object(row: &Value) -> Value {
    match read(row) {
        Value::Object(read) => Value::Object(read),
        other => Value::Object(Map::from_iter([("metadata".to_owned(), other)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn round(sent: Value) -> Value {
        let mut own = Map::from_iter([(PARAMETERS.to_owned(), json!({"temperature": 1}))]);
        let mut metadata = Map::from_iter([("model".to_owned(), json!("m")), ("temperature".to_owned(), json!(1))]);
        put(&mut metadata, &mut own, sent);
        metadata.insert(OWN.into(), Value::Object(own));
        read(&json!({"metadata": metadata}))
    }

    #[test]
    fn metadata_reads_back_as_it_was_sent() {
        for sent in [
            json!({"a": 1, "b": {"c": [null]}}),
            json!({"model": "mine", "temperature": "warm", "langfuse": {"x": 1}, "langfuse.y": 2}),
            json!("text"),
            json!([1, 2]),
            json!({}),
        ] {
            assert_eq!(round(sent.clone()), sent);
        }
        assert_eq!(round(Value::Null), json!({}));
    }

    #[test]
    fn rows_of_other_sources_have_metadata_too() {
        assert_eq!(read(&json!({"metadata": {"a": 1, "otel": {}, "model": "m"}})), json!({"a": 1}));
        assert_eq!(read(&json!({})), json!({}));
    }
}
