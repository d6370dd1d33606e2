//! Attributes made for these rows. Each becomes a field, mostly from a JSON text.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::attributes::Attributes;
use crate::draft::{Convention, Draft, SILENT, numbers, object, texts};
use crate::value;

pub(crate) const PARENT: &str = "braintrust.parent";
/// Attribute that keeps used attributes in `metadata`, too.
pub(crate) const PRESERVE: &str = "braintrust.otel.preserve_attributes";
/// Attributes of the destination, which are read earlier and do not become part of the row.
const ROUTING: [&str; 4] = [PARENT, PRESERVE, "braintrust.org", "braintrust.app_url"];

pub(super) const CONVENTION: Convention = Convention { signs: &["braintrust."], before: fields, ..SILENT };

/// Fills fields from attributes.
///
/// Invalid values stay in `metadata`, and the field stays empty. A span with an invalid score is better than no span.
fn fields(attributes: &mut Attributes, draft: &mut Draft) {
    draft.input = json(attributes, ["braintrust.input_json", "braintrust.input"]);
    draft.output = json(attributes, ["braintrust.output_json", "braintrust.output"]);
    draft.expected = json(attributes, ["braintrust.expected_json", "braintrust.expected"]);
    draft.origin = attributes.take_if("braintrust.origin", origin);
    draft.given = attributes.take_if("braintrust.span_attributes", span_attributes).unwrap_or_default();
    let map = |attributes: &mut Attributes, name| attributes.take_if(name, object).unwrap_or_default();
    draft.metadata = map(attributes, "braintrust.metadata");
    value::merge(&mut draft.context, map(attributes, "braintrust.context_json"));
    draft.scores.extend(attributes.take_if("braintrust.scores", scores).unwrap_or_default());
    draft.metrics.extend(attributes.take_if("braintrust.metrics", numbers).unwrap_or_default());
    draft.tag(attributes.take_if("braintrust.tags", texts).unwrap_or_default());
    for name in ROUTING {
        attributes.take(name);
    }
}

fn scores(value: &Value) -> Option<Map<String, Value>> {
    let is_score = |value: &Value| value.is_null() || value.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score));
    numbers(value).filter(|scores| scores.values().all(is_score))
}

fn span_attributes(value: &Value) -> Option<Map<String, Value>> {
    let are_texts = |given: &Map<String, Value>| {
        ["name", "type", "purpose", "log_level"]
            .iter()
            .all(|name| given.get(*name).is_none_or(|value| value.is_string() || value.is_null()))
    };
    object(value).filter(are_texts)
}

/// Returns the origin of the row in another object.
fn origin(value: &Value) -> Option<Value> {
    let origin = object(value)?;
    let text = |name: &str| origin.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_whole = text("object_type").is_some() && text("id").is_some();
    let names_an_object = text("object_id").is_some_and(|id| Uuid::try_parse(id).is_ok());
    (is_whole && names_an_object).then_some(Value::Object(origin))
}

/// Returns the first value that can be read.
fn json(attributes: &mut Attributes, names: [&str; 2]) -> Option<Value> {
    names.into_iter().find_map(|name| {
        attributes.take_if(name, |value| match value {
            Value::Null => None,
            Value::String(text) => value::parse(text),
            other => Some(other.clone()),
        })
    })
}
