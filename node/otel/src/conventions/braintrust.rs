//! Attributes that are made for these rows: each is a field, mostly as text that is JSON.

use serde_json::Value;

use crate::attributes::Attributes;
use crate::draft::{Convention, Draft, SILENT, numbers, object, texts};
use crate::value;

pub(crate) const PARENT: &str = "braintrust.parent";
/// Whether what was taken stays in `metadata` as well.
pub(crate) const PRESERVE: &str = "braintrust.otel.preserve_attributes";
/// Where the span is to go; read before, and of no use in the row.
const ROUTING: [&str; 4] = [PARENT, PRESERVE, "braintrust.org", "braintrust.app_url"];

pub(super) const CONVENTION: Convention = Convention { signs: &["braintrust."], before: fields, ..SILENT };

/// What cannot be read stays where it was, in `metadata`, and the field is as if nothing had been said.
fn fields(attributes: &mut Attributes, draft: &mut Draft) {
    draft.input = json(attributes, ["braintrust.input_json", "braintrust.input"]);
    draft.output = json(attributes, ["braintrust.output_json", "braintrust.output"]);
    draft.expected = json(attributes, ["braintrust.expected_json", "braintrust.expected"]);
    let is_object = |value: &Value| object(value).map(Value::Object);
    draft.origin = attributes.take_if("braintrust.origin", is_object);
    let map = |attributes: &mut Attributes, name| attributes.take_if(name, object).unwrap_or_default();
    draft.metadata = map(attributes, "braintrust.metadata");
    draft.given = map(attributes, "braintrust.span_attributes");
    value::merge(&mut draft.context, map(attributes, "braintrust.context_json"));
    draft.scores.extend(attributes.take_if("braintrust.scores", numbers).unwrap_or_default());
    draft.metrics.extend(attributes.take_if("braintrust.metrics", numbers).unwrap_or_default());
    draft.tag(attributes.take_if("braintrust.tags", texts).unwrap_or_default());
    for name in ROUTING {
        attributes.take(name);
    }
}

/// The first that can be read.
fn json(attributes: &mut Attributes, names: [&str; 2]) -> Option<Value> {
    names.into_iter().find_map(|name| {
        attributes.take_if(name, |value| match value {
            Value::Null => None,
            Value::String(text) => value::parse(text),
            other => Some(other.clone()),
        })
    })
}
