//! Checks of each field of a row. Informational values (`span_attributes.type`, the caller in `context`,
//! `metadata.model`) are checked for their documented JSON type or less, since a refusal costs the whole request.
//! Values used in computations (scores, metrics, tags, ids, times) are checked for their range.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{ID_BYTES_MAX, Problem, SCORING_STATE, parse_created};
use crate::ids::ObjectKind;

/// Metrics that JSON numbers cannot represent, as clients send them.
const NON_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
/// Deprecated metrics that are no numbers.
const CALLER: [&str; 3] = ["caller_functionname", "caller_filename", "caller_lineno"];
/// Members of `span_attributes` with a type; others hold anything.
const ATTRIBUTE_TEXTS: [&str; 4] = ["name", "type", "purpose", "log_level"];
const ORIGIN_KINDS: [&str; 6] = ["project_logs", "experiment", "dataset", "prompt", "function", "prompt_session"];

/// Identity of a row, read first, since every kind of row has it.
#[derive(Debug)]
pub(super) struct Identity {
    pub id: Option<String>,
    pub span_id: Option<String>,
    pub root_span_id: Option<String>,
    /// None for a root: absent, null and empty are the same.
    pub parents: Option<Vec<String>>,
    pub created: Option<i64>,
}

impl Identity {
    pub fn of(sent: &Map<String, Value>) -> Result<Identity, Problem> {
        let id_of = |name: &str| id_in(sent.get(name), name);
        Ok(Identity {
            id: id_of("id")?,
            span_id: id_of("span_id")?,
            root_span_id: id_of("root_span_id")?,
            parents: parents(sent.get("span_parents"))?,
            created: created(sent.get("created"))?,
        })
    }
}

/// An id at `path`, or none where there is nothing or null.
pub(super) fn id_in(found: Option<&Value>, path: &str) -> Result<Option<String>, Problem> {
    match found {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() => Err(Problem::new(path, "is empty; an id has at least one byte")),
        Some(Value::String(id)) if id.len() > ID_BYTES_MAX => {
            Err(Problem::new(path, format!("has {} bytes; an id has at most {ID_BYTES_MAX}", id.len())))
        }
        Some(Value::String(id)) => Ok(Some(id.clone())),
        Some(other) => Err(Problem::unlike(path, other, "an id is a string")),
    }
}

/// A control flag: absent and null are false.
pub(super) fn flag(sent: &Map<String, Value>, name: &str) -> Result<bool, Problem> {
    match sent.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(truth)) => Ok(*truth),
        Some(other) => Err(Problem::unlike(name, other, "it is true, false or null")),
    }
}

/// The body of a comment row.
pub(super) fn comment(found: &Value) -> Result<(), Problem> {
    match found.get("text") {
        Some(Value::String(_)) => Ok(()),
        Some(text) if found.is_object() => Err(Problem::unlike("comment.text", text, "it is a string")),
        _ if found.is_object() => Err(Problem::new("comment.text", "is missing; it is a string")),
        _ => Err(Problem::unlike("comment", found, "a comment is an object with `text`")),
    }
}

fn parents(found: Option<&Value>) -> Result<Option<Vec<String>>, Problem> {
    let ids = match found {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(ids)) => ids,
        Some(other) => return Err(Problem::unlike("span_parents", other, "it is an array of span ids or null")),
    };
    let mut parents = Vec::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        let path = format!("span_parents.{at}");
        let parent = id_in(Some(id), &path)?;
        parents.push(parent.ok_or_else(|| Problem::unlike(path, id, "an id is a string"))?);
    }
    Ok((!parents.is_empty()).then_some(parents))
}

fn created(found: Option<&Value>) -> Result<Option<i64>, Problem> {
    const RIGHT: &str = "it is a time such as 2026-11-21T05:44:00.123Z, or null";
    match found {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let micros = parse_created(text);
            micros.map(Some).ok_or_else(|| Problem::unlike("created", &Value::from(text.as_str()), RIGHT))
        }
        Some(other) => Err(Problem::unlike("created", other, RIGHT)),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Any,
    Object,
    Text,
    Scores,
    Metrics,
    Tags,
    SpanAttributes,
    Origin,
    Facets,
    Classifications,
}

/// The fields that rows of a kind of object have, apart from identity and control; none is dropped.
fn kind_of(object: ObjectKind, field: &str) -> Option<Kind> {
    let everywhere = match field {
        "metadata" => Some(Kind::Object),
        "tags" => Some(Kind::Tags),
        _ => None,
    };
    let special = match object {
        ObjectKind::ProjectLogs | ObjectKind::Experiment | ObjectKind::PlaygroundLogs => match field {
            "output" | "error" => Some(Kind::Any),
            "scores" => Some(Kind::Scores),
            "metrics" => Some(Kind::Metrics),
            "context" => Some(Kind::Object),
            "span_attributes" => Some(Kind::SpanAttributes),
            SCORING_STATE if object == ObjectKind::ProjectLogs => Some(Kind::Object),
            _ if object == ObjectKind::PlaygroundLogs => defined(field).or_else(|| recorded(field)),
            _ => recorded(field),
        },
        ObjectKind::Dataset => recorded(field),
        ObjectKind::ProjectPrompts => match field {
            "origin" => Some(Kind::Object),
            _ => defined(field),
        },
        ObjectKind::AuditLog => match field {
            "action" | "object_type" | "object_id" | "object_name" | "previous_hash" | "hash" => Some(Kind::Text),
            "actor" | "details" => Some(Kind::Object),
            "sequence" => Some(Kind::Any),
            _ => None,
        },
        ObjectKind::Files => match field {
            "bytes" => Some(Kind::Text),
            _ => None,
        },
    };
    everywhere.or(special)
}

/// Fields common to spans and dataset rows.
fn recorded(field: &str) -> Option<Kind> {
    match field {
        "input" | "expected" => Some(Kind::Any),
        "origin" => Some(Kind::Origin),
        "facets" => Some(Kind::Facets),
        "classifications" => Some(Kind::Classifications),
        _ => None,
    }
}

/// Fields that define a function, in prompts and in rows of playgrounds.
fn defined(field: &str) -> Option<Kind> {
    match field {
        "name" | "slug" | "description" | "function_type" => Some(Kind::Text),
        "prompt_data" | "function_data" | "function_schema" => Some(Kind::Object),
        _ => None,
    }
}

/// Returns whether a JSON text is stored unchanged; otherwise `checked` decides.
pub(super) fn takes_text(object: ObjectKind, name: &str, text: &[u8]) -> bool {
    match kind_of(object, name) {
        Some(Kind::Any) => true,
        Some(Kind::Object) => text.first() == Some(&b'{') || text == b"null",
        _ => false,
    }
}

/// The value as it is stored, or none for a field that rows of this kind do not have.
pub(super) fn checked(object: ObjectKind, merge: bool, name: &str, mut value: Value) -> Result<Option<Value>, Problem> {
    let Some(kind) = kind_of(object, name) else {
        return Ok(None);
    };
    if value.is_null() {
        return Ok(Some(value));
    }
    match kind {
        Kind::Any => {}
        Kind::Object => drop(object_at(name, &mut value)?),
        Kind::Text => text_or_null(name, &value)?,
        Kind::Scores => scores(object_at(name, &mut value)?)?,
        Kind::Metrics => metrics(object_at(name, &mut value)?)?,
        Kind::Tags => tags(&value)?,
        Kind::SpanAttributes => {
            let attributes = object_at(name, &mut value)?;
            for text in ATTRIBUTE_TEXTS {
                text_or_null(&format!("{name}.{text}"), attributes.get(text).unwrap_or(&Value::Null))?;
            }
        }
        Kind::Origin => origin(object_at(name, &mut value)?, merge)?,
        Kind::Facets => {
            for (facet, value) in object_at(name, &mut value)? {
                text_or_null(&format!("{name}.{facet}"), value)?;
            }
        }
        Kind::Classifications => classifications(object_at(name, &mut value)?)?,
    }
    Ok(Some(value))
}

fn object_at<'v>(path: &str, value: &'v mut Value) -> Result<&'v mut Map<String, Value>, Problem> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(Problem::unlike(path, other, "it is an object or null")),
    }
}

fn text_or_null(path: &str, value: &Value) -> Result<(), Problem> {
    match value {
        Value::String(_) | Value::Null => Ok(()),
        other => Err(Problem::unlike(path, other, "it is a string or null")),
    }
}

fn scores(scores: &mut Map<String, Value>) -> Result<(), Problem> {
    for (name, score) in scores.iter_mut() {
        let right = match score {
            Value::Null => true,
            Value::Bool(truth) => {
                *score = Value::from(u8::from(*truth));
                true
            }
            Value::Number(number) => number.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)),
            _ => false,
        };
        if !right {
            let right = "a score is a number between 0 and 1 or null";
            return Err(Problem::unlike(format!("scores.{name}"), score, right));
        }
    }
    Ok(())
}

fn metrics(metrics: &mut Map<String, Value>) -> Result<(), Problem> {
    for (name, metric) in metrics.iter_mut() {
        let right = match metric {
            Value::Null | Value::Number(_) => true,
            Value::Bool(truth) => {
                *metric = Value::from(u8::from(*truth));
                true
            }
            Value::String(text) if NON_FINITE.contains(&text.as_str()) => true,
            _ => CALLER.contains(&name.as_str()),
        };
        if !right {
            let right = "a metric is a number, null, or one of \"NaN\", \"Infinity\", \"-Infinity\"";
            return Err(Problem::unlike(format!("metrics.{name}"), metric, right));
        }
    }
    Ok(())
}

fn tags(tags: &Value) -> Result<(), Problem> {
    const RIGHT: &str = "tags are an array of unique strings or null";
    let Value::Array(tags) = tags else {
        return Err(Problem::unlike("tags", tags, RIGHT));
    };
    let mut seen = HashSet::with_capacity(tags.len());
    for (at, tag) in tags.iter().enumerate() {
        let path = format!("tags.{at}");
        let Value::String(text) = tag else {
            return Err(Problem::unlike(path, tag, RIGHT));
        };
        if !seen.insert(text) {
            return Err(Problem::unlike(path, tag, "this tag was given before; tags are unique"));
        }
    }
    Ok(())
}

/// A merge may send some members only, since it folds into an origin that is there.
fn origin(origin: &Map<String, Value>, merge: bool) -> Result<(), Problem> {
    for required in ["object_type", "object_id", "id"] {
        if !merge && origin.get(required).is_none_or(Value::is_null) {
            let right = "is missing; an origin has `object_type`, `object_id` and `id`";
            return Err(Problem::new(format!("origin.{required}"), right));
        }
    }
    if let Some(object_type) = origin.get("object_type").filter(|value| !value.is_null())
        && object_type.as_str().is_none_or(|text| !ORIGIN_KINDS.contains(&text))
    {
        let right = format!("it is one of {}", ORIGIN_KINDS.join(", "));
        return Err(Problem::unlike("origin.object_type", object_type, &right));
    }
    if let Some(object_id) = origin.get("object_id").filter(|value| !value.is_null())
        && object_id.as_str().is_none_or(|text| uuid::Uuid::parse_str(text).is_err())
    {
        return Err(Problem::unlike("origin.object_id", object_id, "it is a UUID"));
    }
    id_in(origin.get("id"), "origin.id")?;
    for text in ["_xact_id", "created"] {
        text_or_null(&format!("origin.{text}"), origin.get(text).unwrap_or(&Value::Null))?;
    }
    Ok(())
}

fn classifications(classifications: &Map<String, Value>) -> Result<(), Problem> {
    for (name, found) in classifications {
        let here = format!("classifications.{name}");
        match found {
            Value::Null => {}
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(at, item)| classification(&format!("{here}.{at}"), item))?
            }
            other => return Err(Problem::unlike(here, other, "it is an array of classifications or null")),
        }
    }
    Ok(())
}

fn classification(here: &str, item: &Value) -> Result<(), Problem> {
    let Value::Object(members) = item else {
        return Err(Problem::unlike(here, item, "a classification is an object with `id`"));
    };
    let member = |name: &str| members.get(name).unwrap_or(&Value::Null);
    let at = |name: &str| format!("{here}.{name}");
    if !member("id").is_string() {
        return Err(Problem::unlike(at("id"), member("id"), "a classification has an `id` that is a string"));
    }
    text_or_null(&at("label"), member("label"))?;
    let confidence = member("confidence");
    if !(confidence.is_null() || confidence.is_number()) {
        return Err(Problem::unlike(at("confidence"), confidence, "it is a number or null"));
    }
    for name in ["metadata", "source"] {
        if !(member(name).is_null() || member(name).is_object()) {
            return Err(Problem::unlike(at(name), member(name), "it is an object or null"));
        }
    }
    Ok(())
}
