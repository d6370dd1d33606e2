//! Spans of an export as rows of a project, with the rows of their traces and experiments.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_node_otel::{Export, Mapped, Parent, ParentObject, Rows};
use assay_storage_model::event::parse_created;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fields::{iso, object_of, parsed_or_text};
use crate::metadata::{self, OWN, own};
use crate::observation::{LEVELS, span_type_of, trace_frame};

/// Version of the SDK that sent an export, which determines the form of metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdkVersion {
    /// Whether each value of metadata is JSON, also a text.
    pub encodes_metadata: bool,
}

impl SdkVersion {
    /// Returns the version from the headers with the SDK's name and version.
    pub fn of(name: Option<&str>, version: Option<&str>) -> SdkVersion {
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        SdkVersion { encodes_metadata: name == Some("python") && major.is_some_and(|major| major >= 5) }
    }
}

/// Attributes of observations, with their keys in `metadata.langfuse`.
const OBSERVATION: [(&str, &str); 7] = [
    ("langfuse.observation.level", "level"),
    ("langfuse.observation.status_message", "status_message"),
    ("langfuse.observation.prompt.name", "prompt_name"),
    ("langfuse.observation.prompt.version", "prompt_version"),
    ("langfuse.version", "version"),
    ("langfuse.release", "release"),
    ("langfuse.environment", "environment"),
];
/// Attributes with an object as JSON, with their keys in `metadata.langfuse`.
const DETAILS: [(&str, &str); 3] = [
    ("langfuse.observation.usage_details", "usage_details"),
    ("langfuse.observation.cost_details", "cost_details"),
    ("langfuse.observation.model.parameters", "model_parameters"),
];
/// Attributes of traces, with their keys in `metadata.langfuse`.
const TRACE: [(&str, &str); 5] = [
    ("langfuse.trace.name", "trace_name"),
    ("langfuse.trace.public", "public"),
    ("langfuse.release", "release"),
    ("langfuse.version", "version"),
    ("langfuse.environment", "environment"),
];
const PEOPLE: [(&str, &str); 4] = [
    ("user.id", "user_id"),
    ("session.id", "session_id"),
    ("langfuse.user.id", "user_id"),
    ("langfuse.session.id", "session_id"),
];

/// Converts an export to rows of a project's log: the observations, their traces, and rows of experiments.
pub fn rows_of_export(export: Export, project: Uuid, sdk: SdkVersion) -> Rows {
    let parent =
        Arc::new(Parent { object: ParentObject::Project(project.to_string()), span: None, propagated_event: None });
    let Rows { taken, rejected } = export.rows(None);
    let mut rows = Vec::with_capacity(taken.len() + 1);
    // Rows of experiments are written first, so that a trace with a mark has one.
    let mut first = Vec::new();
    let mut traces: BTreeMap<String, (usize, TraceDraft)> = BTreeMap::new();
    for Mapped { index, row, .. } in taken {
        let Value::Object(row) = row else { continue };
        let span = ExportedSpan::of(row, sdk);
        let (_, trace) = traces.entry(span.trace_id.clone()).or_insert_with(|| (index, TraceDraft::default()));
        trace.see(&span);
        let experiment = span.experiment(project);
        if let Some((object, _)) = &experiment {
            trace.experiment = mark_of(object);
        }
        let row = span.into_row();
        if let Some((object, fields)) = experiment {
            let row = experiment_row(&row, fields);
            let parent = Parent { object, span: None, propagated_event: None };
            first.push(Mapped { index, parent: Some(Arc::new(parent)), row });
        }
        rows.push(Mapped { index, parent: Some(Arc::clone(&parent)), row: Value::Object(row) });
    }
    for (id, (index, trace)) in traces {
        rows.push(Mapped { index, parent: Some(Arc::clone(&parent)), row: trace.row(&id) });
    }
    first.extend(rows);
    Rows { taken: first, rejected }
}

/// Span with the attributes of Langfuse apart from the others.
struct ExportedSpan {
    trace_id: String,
    span_id: String,
    row: Map<String, Value>,
    /// Attributes with Langfuse's names.
    raw: Map<String, Value>,
    /// Attributes of the application and of other conventions.
    metadata: Map<String, Value>,
    is_root: bool,
    sdk: SdkVersion,
}

fn text_of<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    map.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn is_true(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value == &Value::Bool(true) || value.as_str() == Some("true"))
}

impl ExportedSpan {
    fn of(mut row: Map<String, Value>, sdk: SdkVersion) -> ExportedSpan {
        let taken = |row: &Map<String, Value>, name: &str| text_of(row, name).unwrap_or_default().to_owned();
        let (trace_id, span_id) = (taken(&row, "root_span_id"), taken(&row, "span_id"));
        let all = match row.remove("metadata") {
            Some(Value::Object(all)) => all,
            _ => Map::new(),
        };
        let (mut raw, mut metadata) = (Map::new(), Map::new());
        for (name, value) in all {
            let is_raw = name.starts_with("langfuse.") || PEOPLE.iter().any(|(attribute, _)| *attribute == name);
            if is_raw {
                raw.insert(name, value)
            } else {
                metadata.insert(name, value)
            };
        }
        let is_root = row.get("span_parents").is_none_or(Value::is_null)
            || ["langfuse.internal.as_root", "langfuse.internal.is_app_root"]
                .iter()
                .any(|name| is_true(raw.get(*name)));
        ExportedSpan { trace_id, span_id, row, raw, metadata, is_root, sdk }
    }

    /// Returns metadata with a prefix, which is a value or an attribute for each key.
    fn metadata_under(&self, name: &str) -> Value {
        let beginning = format!("{name}.");
        let keys: Map<String, Value> = self
            .raw
            .iter()
            .filter_map(|(attribute, value)| Some((attribute.strip_prefix(&beginning)?, value)))
            .map(|(key, value)| (key.to_owned(), self.decoded(value)))
            .collect();
        match (self.raw.get(name).map(|value| self.decoded(value)), keys.is_empty()) {
            (Some(Value::Object(mut whole)), _) => {
                whole.extend(keys);
                Value::Object(whole)
            }
            (Some(whole), true) => whole,
            (_, false) => Value::Object(keys),
            (None, true) => Value::Null,
        }
    }

    fn decoded(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if self.sdk.encodes_metadata || text.starts_with(['{', '[']) => parsed_or_text(text),
            other => other.clone(),
        }
    }

    /// Returns the object and the fields of the experiment's row, if the span is the root of an experiment's item.
    fn experiment(&self, project: Uuid) -> Option<(ParentObject, Map<String, Value>)> {
        let raw = |name: &str| text_of(&self.raw, &format!("langfuse.experiment.{name}"));
        if raw("item.root_observation_id") != Some(self.span_id.as_str()) {
            return None;
        }
        let (id, name) = (raw("id"), raw("name"));
        let dataset = raw("dataset.id").and_then(|id| Uuid::parse_str(id).ok());
        let object = match (id.and_then(|id| Uuid::parse_str(id).ok()), name) {
            (Some(id), _) if dataset.is_some() => ParentObject::Experiment(id.to_string()),
            (_, Some(name)) => ParentObject::ExperimentNamed { project, name: name.to_owned(), dataset },
            _ => return None,
        };
        let mut fields = Map::new();
        fields.extend(raw("item.expected_output").map(|text| ("expected".to_owned(), parsed_or_text(text))));
        if let (Some(dataset), Some(item)) = (dataset, raw("item.id")) {
            fields.insert("origin".into(), json!({"object_type": "dataset", "object_id": dataset, "id": item}));
        }
        Some((object, fields))
    }

    /// Returns the row of the observation.
    fn into_row(self) -> Map<String, Value> {
        let user = self.metadata_under("langfuse.observation.metadata");
        let of_trace = self.metadata_under("langfuse.trace.metadata");
        let ExportedSpan { trace_id, mut row, raw, mut metadata, is_root, .. } = self;
        let mut own = Map::from_iter([("kind".to_owned(), json!("observation"))]);
        let kind = text_of(&raw, "langfuse.observation.type").map(str::to_ascii_uppercase);
        own.extend(kind.filter(|kind| span_type_of(kind).is_some()).map(|kind| ("type".to_owned(), kind.into())));
        for (name, key) in OBSERVATION {
            own.extend(raw.get(name).map(|value| (key.to_owned(), value.clone())));
        }
        for (name, key) in DETAILS {
            let details = object_of(raw.get(name));
            if !details.is_empty() {
                own.insert(key.into(), Value::Object(details));
            }
        }
        completion_start(&raw, &mut row, &mut own);
        if text_of(&own, "level") == Some(LEVELS[3]) && !row.contains_key("error") {
            row.insert("error".into(), text_of(&own, "status_message").unwrap_or("error").into());
        }
        // The conventions copied these keys to the top, in the form of older SDKs.
        let parameters = object_of(own.get("model_parameters"));
        let copied = [&user, &of_trace].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
        for key in copied.filter(|key| *key != "model" && !parameters.contains_key(*key)) {
            metadata.shift_remove(key);
        }
        metadata::put(&mut metadata, &mut own, user);
        for (name, key) in PEOPLE {
            metadata.extend(raw.get(name).map(|value| (key.to_owned(), value.clone())));
        }
        metadata.insert(OWN.into(), Value::Object(own));
        row.insert("metadata".into(), Value::Object(metadata));
        if is_root {
            row.insert("span_parents".into(), json!([trace_id]));
        }
        row.shift_remove("tags");
        row.insert("_is_merge".into(), true.into());
        row
    }
}

/// Adds the time of the first token.
fn completion_start(raw: &Map<String, Value>, row: &mut Map<String, Value>, own: &mut Map<String, Value>) {
    let said = text_of(raw, "langfuse.observation.completion_start_time").map(|text| text.trim_matches('"'));
    let Some(first) = said.and_then(parse_created) else { return };
    own.insert("completion_start_time".into(), iso(first));
    let Some(Value::Object(metrics)) = row.get_mut("metrics") else { return };
    if let Some(start) = metrics.get("start").and_then(Value::as_f64) {
        metrics.insert("time_to_first_token".into(), (first as f64 / 1_000_000.0 - start).max(0.0).into());
    }
}

/// Returns the row of an experiment: the observation as the root of its trace, with the fields of the item.
fn experiment_row(row: &Map<String, Value>, fields: Map<String, Value>) -> Value {
    let mut row = row.clone();
    let trace = row.get("root_span_id").cloned().unwrap_or_default();
    if let Some(Value::Object(own)) = row.get_mut("metadata").and_then(|metadata| metadata.get_mut(OWN)) {
        own.insert("trace_id".into(), trace.clone());
    }
    row.insert("id".into(), trace);
    row.insert("span_parents".into(), Value::Null);
    row.extend(fields);
    Value::Object(row)
}

/// Returns the mark of an experiment in the row of a trace, by which scores find the experiment.
fn mark_of(object: &ParentObject) -> Option<Value> {
    match object {
        ParentObject::Experiment(id) => Some(json!({"id": id})),
        ParentObject::ExperimentNamed { name, .. } => Some(json!({"name": name})),
        _ => None,
    }
}

/// Returns the experiment that the row of a trace is marked with.
pub fn experiment_of_trace(row: &Value, project: Uuid) -> Option<ParentObject> {
    let mark = own(row)?.get("experiment")?;
    let text = |name: &str| mark.get(name).and_then(Value::as_str).map(str::to_owned);
    match (text("id"), text("name")) {
        (Some(id), _) => Some(ParentObject::Experiment(id)),
        (None, Some(name)) => Some(ParentObject::ExperimentNamed { project, name, dataset: None }),
        (None, None) => None,
    }
}

/// Returns the row that marks a trace with its experiment.
pub fn experiment_mark(trace: &str, experiment: Uuid) -> Value {
    let mut row = trace_frame(trace);
    row.insert("metadata".into(), json!({OWN: {"experiment": {"id": experiment}}}));
    Value::Object(row)
}

/// Fields of a trace, which any of its spans may have.
#[derive(Default)]
struct TraceDraft {
    experiment: Option<Value>,
    fields: Map<String, Value>,
    metadata: Map<String, Value>,
    people: Map<String, Value>,
    tags: Vec<Value>,
    input: Option<Value>,
    output: Option<Value>,
    /// Whether the input or the output is that of the trace, and not of its root.
    is_given: [bool; 2],
    root: Option<Map<String, Value>>,
}

impl TraceDraft {
    fn see(&mut self, span: &ExportedSpan) {
        for (name, key) in TRACE {
            if let Some(value) = span.raw.get(name).filter(|value| !value.is_null()) {
                let value = if key == "public" { is_true(Some(value)).into() } else { value.clone() };
                self.fields.insert(key.to_owned(), value);
            }
        }
        for (name, key) in PEOPLE {
            self.people.extend(span.raw.get(name).map(|value| (key.to_owned(), value.clone())));
        }
        if let Value::Object(metadata) = span.metadata_under("langfuse.trace.metadata") {
            self.metadata.extend(metadata);
        }
        for tag in span.row.get("tags").and_then(Value::as_array).into_iter().flatten() {
            if !self.tags.contains(tag) {
                self.tags.push(tag.clone());
            }
        }
        let names = ["langfuse.trace.input", "langfuse.trace.output"];
        for (place, (name, field)) in names.into_iter().zip(["input", "output"]).enumerate() {
            let slot = if place == 0 { &mut self.input } else { &mut self.output };
            if let Some(text) = text_of(&span.raw, name) {
                (*slot, self.is_given[place]) = (Some(parsed_or_text(text)), true);
            } else if span.is_root && !self.is_given[place] {
                *slot = span.row.get(field).cloned().or_else(|| slot.take());
            }
        }
        if span.is_root {
            self.root = Some(span.row.clone());
        }
    }

    fn row(self, id: &str) -> Value {
        let mut row = trace_frame(id);
        let mut own = Map::from_iter([("kind".to_owned(), json!("trace"))]);
        own.extend(self.fields);
        own.extend(self.experiment.map(|mark| ("experiment".to_owned(), mark)));
        let root = self.root.unwrap_or_default();
        let of_root = root.get("span_attributes").and_then(|about| about.get("name"));
        if let Some(name) = own.get("trace_name").or(of_root) {
            row.insert("span_attributes".into(), json!({"name": name, "type": "task"}));
        }
        row.extend(root.get("created").map(|created| ("created".to_owned(), created.clone())));
        let times = root.get("metrics").and_then(Value::as_object).cloned().unwrap_or_default();
        let times: Map<String, Value> =
            times.into_iter().filter(|(name, _)| name == "start" || name == "end").collect();
        if !times.is_empty() {
            row.insert("metrics".into(), Value::Object(times));
        }
        row.extend(
            [("input", self.input), ("output", self.output)]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        if !self.tags.is_empty() {
            row.insert("tags".into(), Value::Array(self.tags));
        }
        let mut metadata = self.people;
        metadata::put(&mut metadata, &mut own, Value::Object(self.metadata));
        metadata.insert(OWN.into(), Value::Object(own));
        row.insert("metadata".into(), Value::Object(metadata));
        Value::Object(row)
    }
}

#[cfg(test)]
mod tests;
