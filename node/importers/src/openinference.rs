//! Spans of OpenInference as JSON, in the form of OTLP.

use serde_json::{Map, Value, json};

use crate::fields::{list, object, seconds, text};

/// Upper bound of the nesting that is flattened.
const DEPTH_MAX: usize = 16;
const NANOS: f64 = 1e9;
/// Attributes that are JSON texts of objects.
const OBJECTS: [&str; 2] = ["metadata", "llm.prompt_template.variables"];

/// Converts a span to one of OTLP in JSON.
pub(crate) fn otlp_span(span: &Value) -> Value {
    let context = span.get("context").unwrap_or(&Value::Null);
    let mut attributes = Map::new();
    if let Some(given) = object(span, "attributes") {
        flatten("", given, DEPTH_MAX, &mut attributes);
    }
    OBJECTS.iter().for_each(|name| gather(&mut attributes, name));
    if let Some(kind) = text(span, "span_kind") {
        attributes.entry("openinference.span.kind").or_insert_with(|| Value::from(kind));
    }
    let code = match text(span, "status_code") {
        Some("OK") => 1,
        Some("ERROR") => 2,
        _ => 0,
    };
    let events: Vec<Value> = list(span, "events").iter().map(event).collect();
    json!({
        "traceId": text(context, "trace_id").unwrap_or_default(),
        "spanId": text(context, "span_id").unwrap_or_default(),
        "parentSpanId": text(span, "parent_id").unwrap_or_default(),
        "name": text(span, "name").unwrap_or_default(),
        "startTimeUnixNano": nanos(span, "start_time"),
        "endTimeUnixNano": nanos(span, "end_time"),
        "attributes": key_values(attributes),
        "status": {"code": code, "message": text(span, "status_message").unwrap_or_default()},
        "events": events,
    })
}

fn event(event: &Value) -> Value {
    let mut attributes = Map::new();
    if let Some(given) = object(event, "attributes") {
        flatten("", given, DEPTH_MAX, &mut attributes);
    }
    json!({
        "name": text(event, "name").unwrap_or_default(),
        "timeUnixNano": nanos(event, "timestamp"),
        "attributes": key_values(attributes),
    })
}

fn nanos(of: &Value, key: &str) -> String {
    let seconds = text(of, key).and_then(seconds).unwrap_or_default();
    // Times have microseconds, which a double holds exactly in this century. Nanoseconds follow from them.
    let micros = (seconds * 1e6).round() as u64;
    (micros * (NANOS / 1e6) as u64).to_string()
}

/// Joins nested keys with dots, as attributes of spans are named. Lists of objects get a number for each object.
fn flatten(prefix: &str, map: &Map<String, Value>, depth: usize, into: &mut Map<String, Value>) {
    for (key, value) in map {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        flatten_value(name, value, depth, into);
    }
}

fn flatten_value(name: String, value: &Value, depth: usize, into: &mut Map<String, Value>) {
    match value {
        Value::Object(inner) if depth > 0 && !inner.is_empty() => flatten(&name, inner, depth - 1, into),
        Value::Array(items) if depth > 0 && items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                flatten_value(format!("{name}.{index}"), item, depth - 1, into);
            }
        }
        Value::Null => {}
        other => drop(into.insert(name, other.clone())),
    }
}

/// Puts the members of an object that was flattened together again, as the JSON text that it is in spans.
fn gather(attributes: &mut Map<String, Value>, name: &str) {
    let prefix = format!("{name}.");
    let members =
        attributes.iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())));
    let members: Map<String, Value> = members.collect();
    if !members.is_empty() {
        attributes.retain(|key, _| !key.starts_with(&prefix));
        attributes.insert(name.to_owned(), Value::from(Value::Object(members).to_string()));
    }
}

fn key_values(attributes: Map<String, Value>) -> Vec<Value> {
    attributes.into_iter().map(|(key, value)| json!({"key": key, "value": any_value(value)})).collect()
}

/// Converts a JSON value to a value of OTLP.
fn any_value(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_i64() => json!({"intValue": number.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => {
            let values: Vec<Value> = items.into_iter().map(any_value).collect();
            json!({"arrayValue": {"values": values}})
        }
        Value::Object(map) => json!({"kvlistValue": {"values": key_values(map)}}),
    }
}
