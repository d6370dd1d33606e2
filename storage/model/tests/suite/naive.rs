//! A second, naive implementation of the merge rules: from a client's input, over parsed values, without regard to
//! speed. Shares no code with the model.

use serde_json::{Map, Number, Value, json};

use crate::NOW_TEXT;

const CONTROL: [&str; 6] = ["_is_merge", "_merge_paths", "_array_delete", "_object_delete", "_parent_id", "unknown"];
const FIRST: [&str; 6] = ["id", "created", "span_id", "root_span_id", "span_parents", "is_root"];

/// The row after what was sent; the row before, if there was one.
pub fn next(row: Option<Value>, sent: &Value) -> Option<Value> {
    if sent["_object_delete"] == true {
        return None;
    }
    let mut next = match row {
        Some(row) if sent["_is_merge"] == true => onto(row, &fields(sent), &[], &sent["_merge_paths"]),
        _ => whole(sent),
    };
    for item in list(&sent["_array_delete"]) {
        delete(&mut next, &item["path"], &item["delete"]);
    }
    Some(next)
}

fn fields(sent: &Value) -> Value {
    let mut fields = sent.as_object().expect("a row").clone();
    fields.retain(|name, _| !CONTROL.contains(&name.as_str()) && !FIRST.contains(&name.as_str()));
    Value::Object(fields)
}

fn whole(sent: &Value) -> Value {
    let given = |name: &str, default: Value| if sent[name].is_null() { default } else { sent[name].clone() };
    let parents = match &sent["span_parents"] {
        Value::Array(parents) if !parents.is_empty() => sent["span_parents"].clone(),
        _ if !sent["_parent_id"].is_null() => json!([sent["_parent_id"]]),
        _ => Value::Null,
    };
    let mut row = json!({
        "id": sent["id"],
        "created": given("created", json!(NOW_TEXT)),
        "span_id": given("span_id", sent["id"].clone()),
        "root_span_id": given("root_span_id", sent["id"].clone()),
        "span_parents": parents,
        "is_root": parents.is_null(),
    });
    for (name, value) in fields(sent).as_object().expect("fields") {
        row[name] = value.clone();
    }
    row
}

fn onto(base: Value, patch: &Value, path: &[String], merge_paths: &Value) -> Value {
    let path_is_listed = list(merge_paths).contains(&json!(path));
    match (base, patch) {
        (Value::Object(mut base), Value::Object(patch)) if !path_is_listed => {
            for (name, value) in patch {
                let below = [path, std::slice::from_ref(name)].concat();
                let value = match base.get(name) {
                    Some(old) => onto(old.clone(), value, &below, merge_paths),
                    None => value.clone(),
                };
                base.insert(name.clone(), value);
            }
            Value::Object(base)
        }
        (Value::Array(base), Value::Array(patch)) if path == ["tags"] && !path_is_listed => {
            let mut union: Vec<Value> = Vec::new();
            for tag in base.iter().chain(patch) {
                if !union.contains(tag) {
                    union.push(tag.clone());
                }
            }
            Value::Array(union)
        }
        (_, patch) => patch.clone(),
    }
}

fn delete(row: &mut Value, path: &Value, values: &Value) {
    if list(path).first().is_some_and(|first| FIRST.iter().any(|name| first == name)) {
        return;
    }
    let mut place = row;
    for name in list(path) {
        match place.get_mut(name.as_str().expect("a field name")) {
            Some(below) => place = below,
            None => return,
        }
    }
    if let Value::Array(items) = place {
        items.retain(|item| !list(values).iter().any(|value| same(item, value)));
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i128(), b.as_i128()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => a.as_f64() == b.as_f64(),
            (Some(whole), None) => is_whole(b, whole),
            (None, Some(whole)) => is_whole(a, whole),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && (0..a.len()).all(|at| same(&a[at], &b[at])),
        (Value::Object(a), Value::Object(b)) => keys(a) == keys(b) && a.keys().all(|key| same(&a[key], &b[key])),
        _ => a == b,
    }
}

/// Returns whether the float equals the integer. Not computed in floats, which cannot distinguish large integers.
fn is_whole(float: &Number, whole: i128) -> bool {
    float.as_f64().is_some_and(|float| float.fract() == 0.0 && float as i128 == whole)
}

fn keys(object: &Map<String, Value>) -> Vec<&String> {
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort();
    keys
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
