//! Rows of the cases as documents, each with the next merge as patch and rules.

use assay_test_api::case::Step;
use serde_json::{Map, Value, json};

const CONTROL: [&str; 3] = ["_is_merge", "_merge_paths", "_array_delete"];

pub fn texts(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut base = json!({});
    for row in steps.iter().filter_map(|step| step.body.as_ref()?["events"].as_array()).flatten() {
        let Some(sent) = row.as_object() else { continue };
        let mut patch = sent.clone();
        patch.retain(|name, _| !CONTROL.contains(&name.as_str()));
        let patch = Value::Object(patch);
        if sent.get("_is_merge") == Some(&Value::Bool(true)) {
            seeds.push(format!("{base}\0{patch}\0{}", rules(sent)).into_bytes());
        } else {
            base = patch;
        }
    }
    seeds
}

/// Returns the rules as stored: under names of their own, and empty if there is none.
fn rules(sent: &Map<String, Value>) -> String {
    let mut rules = Map::new();
    for (name, stored) in [("_merge_paths", "merge_paths"), ("_array_delete", "array_delete")] {
        if let Some(value) = sent.get(name) {
            rules.insert(stored.to_owned(), value.clone());
        }
    }
    if rules.is_empty() { String::new() } else { Value::Object(rules).to_string() }
}
