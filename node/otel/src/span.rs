//! Conversion of a span to a row.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::attributes::Attributes;
use crate::conventions::{self, PARENT, PRESERVE};
use crate::decode::Limits;
use crate::draft::Draft;
use crate::events::{Messages, move_to_span};
use crate::json::{SPAN_KINDS, to_hex};
use crate::parent::Parent;
use crate::proto::{KeyValue, Link, STATUS_ERROR, Span};
use crate::value;

/// Common data of the spans of a resource and a scope.
#[derive(Debug, Default)]
pub(crate) struct Around {
    /// Attributes of the resource that are stored with each of its spans.
    pub resource: Map<String, Value>,
    pub sdk_version: Option<Value>,
    pub scope_name: String,
    pub scope_version: String,
}

/// Prefixes of omitted attributes. `context` describes the SDK, and the command line of a process may contain secrets.
const RESOURCE_LEFT_OUT: [&str; 2] = ["telemetry.", "process."];

impl Around {
    pub fn of_resource(attributes: Vec<KeyValue>, limits: &Limits) -> Result<Around, String> {
        within("attributes of its resource", attributes.len(), limits.attributes)?;
        let mut all = value::of_pairs(attributes, limits.value_depth)
            .ok_or_else(|| format!("an attribute of its resource is nested more than {} levels", limits.value_depth))?;
        let sdk_version = all.get("telemetry.sdk.version").cloned();
        all.retain(|name, _| !RESOURCE_LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)));
        Ok(Around { resource: all, sdk_version, ..Around::default() })
    }

    /// Returns the size of the attributes that each row of the resource repeats, in bytes of JSON.
    pub fn repeated_bytes(&self) -> usize {
        serde_json::to_vec(&self.resource).map_or(0, |bytes| bytes.len())
    }

    fn context(&self) -> Map<String, Value> {
        let mut origin = Map::from_iter([("name".to_owned(), Value::from("opentelemetry"))]);
        origin.extend(self.sdk_version.clone().map(|version| ("version".to_owned(), version)));
        let mut instrumentation = Map::new();
        for (key, text) in [("name", &self.scope_name), ("version", &self.scope_version)] {
            if !text.is_empty() {
                instrumentation.insert(key.to_owned(), Value::from(text.as_str()));
            }
        }
        if !instrumentation.is_empty() {
            origin.insert("instrumentation".to_owned(), Value::Object(instrumentation));
        }
        Map::from_iter([("span_origin".to_owned(), Value::Object(origin))])
    }
}

/// Attributes of the source location, in old and new names, with their keys in rows.
const CALLERS: [(&str, &str); 6] = [
    ("code.function.name", "caller_functionname"),
    ("code.function", "caller_functionname"),
    ("code.file.path", "caller_filename"),
    ("code.filepath", "caller_filename"),
    ("code.line.number", "caller_lineno"),
    ("code.lineno", "caller_lineno"),
];

/// Validated span.
pub(crate) struct Checked {
    span: Span,
    attributes: Attributes,
    pub parent: Option<String>,
}

const TRACE_ID_BYTES: usize = 16;
const SPAN_ID_BYTES: usize = 8;

/// Checks whether the span can become a row. The error is the reason.
pub(crate) fn check(mut span: Span, limits: &Limits) -> Result<Checked, String> {
    id("trace id", &span.trace_id, TRACE_ID_BYTES)?;
    id("span id", &span.span_id, SPAN_ID_BYTES)?;
    // Some exporters write an all-zero id for a missing parent.
    if span.parent_span_id.iter().all(|byte| *byte == 0) && span.parent_span_id.len() != 1 {
        span.parent_span_id.clear();
    }
    if !span.parent_span_id.is_empty() {
        id("parent span id", &span.parent_span_id, SPAN_ID_BYTES)?;
    }
    within("attributes", span.attributes.len(), limits.attributes)?;
    within("events", span.events.len(), limits.events)?;
    within("links", span.links.len(), limits.links)?;
    let parts = span.events.iter().map(|event| event.attributes.len());
    for attributes in parts.chain(span.links.iter().map(|link| link.attributes.len())) {
        within("attributes of one event or link", attributes, limits.attributes)?;
    }
    move_to_span(&mut span.events, &mut span.attributes);
    let mut attributes = Attributes::of(std::mem::take(&mut span.attributes), limits.value_depth)?;
    attributes.preserves = match attributes.get(PRESERVE) {
        Some(Value::Bool(preserves)) => *preserves,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    };
    let parent = attributes.text(PARENT).map(str::trim).filter(|parent| !parent.is_empty()).map(str::to_owned);
    Ok(Checked { span, attributes, parent })
}

fn id(what: &str, bytes: &[u8], length: usize) -> Result<(), String> {
    if bytes.len() != length {
        return Err(format!(
            "its {what} is not {length} bytes, which JSON writes as {} hexadecimal digits",
            length * 2
        ));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(format!("its {what} is all zero, which is not a valid id"));
    }
    Ok(())
}

fn within(what: &str, there: usize, max: usize) -> Result<(), String> {
    if there > max { Err(format!("it has {there} {what}; the maximum is {max}")) } else { Ok(()) }
}

/// Returns the row of a span under a parent.
pub(crate) fn row(
    checked: Checked,
    parent: Option<&Arc<Parent>>,
    around: &Around,
    limits: &Limits,
) -> Result<Value, String> {
    let Checked { mut span, mut attributes, .. } = checked;
    let mut draft = Draft { context: around.context(), ..Draft::default() };
    for (name, key) in CALLERS {
        if let Some(value) = attributes.get(name).filter(|_| !draft.context.contains_key(key)) {
            draft.context.insert(key.to_owned(), value.clone());
        }
    }
    let mut messages = Messages::of(std::mem::take(&mut span.events), limits.value_depth, attributes.preserves)?;
    conventions::fill(&mut attributes, &mut messages, &mut draft);
    let error = error(&span, &attributes, messages.exception());
    let left = left(&mut span, messages, around, limits)?;
    draft.add_metadata(attributes.rest().collect());
    keep(&mut draft.metadata, left);
    let mut row = identity(&span, parent);
    fields(&mut row, span, draft, error);
    if let Some(event) = parent.and_then(|parent| parent.propagated_event.as_ref()) {
        propagate(&mut row, event);
    }
    Ok(Value::Object(row))
}

/// Stores the parts of a span without a field under one key of `metadata`. Values of the application stay.
fn keep(metadata: &mut Map<String, Value>, mut left: Map<String, Value>) {
    if left.is_empty() {
        return;
    }
    match metadata.shift_remove(LEFT) {
        None => {}
        Some(Value::Object(own)) => value::merge(&mut left, own),
        Some(own) => drop(left.insert("value".to_owned(), own)),
    }
    metadata.insert(LEFT.to_owned(), Value::Object(left));
}

const LEFT: &str = "otel";

/// Returns the fields for the identity and position of the row.
///
/// The id consists of the ids of the trace and the span. So a repeated span is the same row, and the span can be
/// derived from the row. The span id alone would not suffice, because a project with a billion spans has duplicates.
fn identity(span: &Span, parent: Option<&Arc<Parent>>) -> Map<String, Value> {
    let (trace_id, span_id) = (to_hex(&span.trace_id), to_hex(&span.span_id));
    let mut row = Map::with_capacity(ROW_FIELDS);
    row.insert("id".to_owned(), Value::from(format!("{trace_id}-{span_id}")));
    row.insert("span_id".to_owned(), Value::from(span_id));
    let under = parent.and_then(|parent| parent.span.as_ref());
    // Spans below a span of another trace belong to that trace, so that no trace is split.
    row.insert("root_span_id".to_owned(), Value::from(under.map_or(trace_id, |under| under.root_span_id.clone())));
    let of = match (span.parent_span_id.is_empty(), under) {
        (false, _) => json!([to_hex(&span.parent_span_id)]),
        (true, Some(under)) => json!([under.span_id]),
        (true, None) => Value::Null,
    };
    row.insert("span_parents".to_owned(), of);
    row
}

const ROW_FIELDS: usize = 16;

fn fields(row: &mut Map<String, Value>, span: Span, mut draft: Draft, error: Option<String>) {
    let mut metrics = Map::new();
    // A time of zero means that the time is missing.
    if span.start_time_unix_nano > 0 {
        row.insert("created".to_owned(), Value::from(value::iso(span.start_time_unix_nano)));
        metrics.insert("start".to_owned(), value::seconds(span.start_time_unix_nano));
    }
    if span.end_time_unix_nano > 0 {
        metrics.insert("end".to_owned(), value::seconds(span.end_time_unix_nano));
    }
    metrics.extend(draft.metrics);
    let mut about = Map::from_iter([("name".to_owned(), Value::from(span.name))]);
    about.extend(draft.span_type.map(|span_type| ("type".to_owned(), Value::from(span_type))));
    value::merge(&mut about, std::mem::take(&mut draft.given));
    row.insert("span_attributes".to_owned(), Value::Object(about));
    let optional = [
        ("input", draft.input),
        ("output", draft.output),
        ("expected", draft.expected),
        ("error", error.map(Value::from)),
        ("scores", some(draft.scores)),
        ("metadata", some(draft.metadata)),
        ("metrics", some(metrics)),
        ("tags", Some(Value::Array(draft.tags)).filter(|tags| tags != &json!([]))),
        ("context", some(draft.context)),
        ("origin", draft.origin),
    ];
    row.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

fn some(map: Map<String, Value>) -> Option<Value> {
    (!map.is_empty()).then_some(Value::Object(map))
}

/// Returns the error text: the exception, and the status message if it says more.
fn error(span: &Span, attributes: &Attributes, thrown: Option<String>) -> Option<String> {
    let status = span.status.as_ref().filter(|status| status.code == STATUS_ERROR);
    let said = status.map(|status| status.message.trim()).filter(|said| !said.is_empty());
    match (thrown, said) {
        (Some(thrown), Some(said)) if !thrown.contains(said) => Some(format!("{said}\n{thrown}")),
        (Some(thrown), _) => Some(thrown),
        (None, Some(said)) => Some(said.to_owned()),
        (None, None) => status.map(|_| attributes.text("error.type").unwrap_or("error").to_owned()),
    }
}

/// Returns the parts of a span without a field in rows.
fn left(span: &mut Span, messages: Messages, around: &Around, limits: &Limits) -> Result<Map<String, Value>, String> {
    let mut left = Map::new();
    let kind = usize::try_from(span.kind).ok().filter(|kind| *kind > 0).and_then(|kind| SPAN_KINDS.get(kind));
    if let Some(kind) = kind.and_then(|kind| kind.strip_prefix("SPAN_KIND_")) {
        left.insert("kind".to_owned(), Value::from(kind.to_ascii_lowercase()));
    }
    if !span.trace_state.is_empty() {
        left.insert("trace_state".to_owned(), Value::from(std::mem::take(&mut span.trace_state)));
    }
    let dropped = [
        ("dropped_attributes", span.dropped_attributes_count),
        ("dropped_events", span.dropped_events_count),
        ("dropped_links", span.dropped_links_count),
    ];
    left.extend(
        dropped.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count.into())),
    );
    let events = messages.rest();
    if !events.is_empty() {
        left.insert("events".to_owned(), Value::Array(events));
    }
    let links: Option<Vec<Value>> = std::mem::take(&mut span.links).into_iter().map(|one| link(one, limits)).collect();
    let links =
        links.ok_or_else(|| format!("an attribute of a link is nested more than {} levels", limits.value_depth))?;
    if !links.is_empty() {
        left.insert("links".to_owned(), Value::Array(links));
    }
    if !around.resource.is_empty() {
        left.insert("resource".to_owned(), Value::Object(around.resource.clone()));
    }
    Ok(left)
}

fn link(link: Link, limits: &Limits) -> Option<Value> {
    let mut shown = json!({ "root_span_id": to_hex(&link.trace_id), "span_id": to_hex(&link.span_id) });
    if !link.attributes.is_empty() {
        shown["attributes"] = Value::Object(value::of_pairs(link.attributes, limits.value_depth)?);
    }
    Some(shown)
}

/// Fields of a row that a slug may set. Identity, position and write mode are excluded.
const PROPAGATED: [&str; 11] = [
    "span_attributes",
    "input",
    "output",
    "expected",
    "error",
    "scores",
    "metadata",
    "metrics",
    "tags",
    "context",
    "origin",
];

fn propagate(row: &mut Map<String, Value>, event: &Map<String, Value>) {
    let allowed = event.iter().filter(|(name, _)| PROPAGATED.contains(&name.as_str()));
    value::merge(row, allowed.map(|(name, value)| (name.clone(), value.clone())).collect());
}
