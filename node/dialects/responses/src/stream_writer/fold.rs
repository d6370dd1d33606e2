//! Addition of deltas to parts.

use serde_json::{Value, json};

use super::super::fields::{Fields, put};
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ContentPart, Extra, PartDelta};

/// Adds a delta to a part. Extra fields replace those of their name.
pub(crate) fn apply_delta(part: &mut ContentPart, delta: &PartDelta) {
    match (part, delta) {
        (ContentPart::Text(part) | ContentPart::Refusal(part), delta) => match delta {
            PartDelta::Text(text) => part.text.push_str(text),
            PartDelta::Signature(signature) => append(&mut part.signature, signature),
            PartDelta::Foreign(extra) => merge(&mut part.extra, extra),
            PartDelta::Arguments(_) | PartDelta::Encrypted(_) => {}
        },
        (ContentPart::Reasoning(part), delta) => match delta {
            PartDelta::Text(text) => part.text.push_str(text),
            PartDelta::Signature(signature) => append(&mut part.signature, signature),
            PartDelta::Encrypted(encrypted) => append(&mut part.encrypted, encrypted),
            PartDelta::Foreign(extra) => merge(&mut part.extra, extra),
            PartDelta::Arguments(_) => {}
        },
        (ContentPart::ToolCall(part), delta) => match delta {
            PartDelta::Arguments(arguments) => part.arguments.push_str(arguments),
            PartDelta::Signature(signature) => append(&mut part.signature, signature),
            PartDelta::Foreign(extra) => merge(&mut part.extra, extra),
            PartDelta::Text(_) | PartDelta::Encrypted(_) => {}
        },
        _ => {}
    }
}

fn append(text: &mut Option<String>, addition: &str) {
    text.get_or_insert_default().push_str(addition);
}

fn merge(extra: &mut Extra, addition: &Extra) {
    let Some(added) = addition.for_dialect(Dialect::Responses) else { return };
    let mut fields: Fields = extra.for_dialect(Dialect::Responses).cloned().unwrap_or_default();
    for (name, value) in added {
        put(&mut fields, name, value.clone());
    }
    *extra = Extra::of(Dialect::Responses, fields);
}

/// Adds log probabilities of further tokens.
pub(crate) fn add_logprobs(logprobs: &mut Option<Value>, addition: &Value) {
    let Some(added) = addition.get("content").and_then(Value::as_array) else { return };
    let all = logprobs.get_or_insert_with(|| json!({"content": [], "refusal": null}));
    if let Some(content) = all.get_mut("content").and_then(Value::as_array_mut) {
        content.extend(added.iter().cloned());
    }
}
