//! Row of an observation of the ingestion endpoint, and of its trace.

use assay_node_otel::{total_cost, usage_metrics};
use serde_json::{Map, Value, json};

use crate::fields::{BadField, given, iso, number_of, object_of, seconds, text, texts, time};
use crate::metadata::{self, OWN};

/// Types of observations, with the type of the span.
const KINDS: [(&str, &str); 10] = [
    ("SPAN", "task"),
    ("GENERATION", "llm"),
    ("EVENT", "task"),
    ("EMBEDDING", "llm"),
    ("AGENT", "task"),
    ("TOOL", "tool"),
    ("CHAIN", "task"),
    ("RETRIEVER", "function"),
    ("EVALUATOR", "score"),
    ("GUARDRAIL", "function"),
];
/// Levels of observations.
pub(crate) const LEVELS: [&str; 4] = ["DEBUG", "DEFAULT", "WARNING", "ERROR"];
/// Upper bound of the bytes of an id. Clients send UUIDs or hexadecimal digits.
const ID_BYTES_MAX: usize = 200;

pub(crate) fn span_type_of(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, span_type)| *span_type)
}

/// Returns the id of the row of an observation, which is that of an exported span.
pub(crate) fn row_id(trace_id: &str, id: &str) -> String {
    format!("{trace_id}-{id}")
}

pub(crate) fn checked_id<'a>(name: &str, id: &'a str) -> Result<&'a str, BadField> {
    match id.len() <= ID_BYTES_MAX && !id.contains(char::is_control) {
        true => Ok(id),
        false => Err(BadField(format!("`{name}` has to have at most {ID_BYTES_MAX} bytes and no control characters"))),
    }
}

/// Returns the row of an observation from the body of an event.
///
/// `is_new` tells whether the event creates the observation. An update has only the changed fields.
pub(crate) fn observation_row(
    body: &Map<String, Value>,
    (trace_id, id, kind): (&str, &str, &str),
    is_new: bool,
) -> Result<Value, BadField> {
    let span_type = span_type_of(kind).ok_or_else(|| BadField(format!("`type` `{kind}` is unknown")))?;
    let mut about = Map::new();
    if let Some(name) = text(body, "name")? {
        about.insert("name".into(), name.into());
    } else if is_new {
        about.insert("name".into(), kind.to_ascii_lowercase().into());
    }
    if is_new {
        about.insert("type".into(), span_type.into());
    }
    let mut own = Map::from_iter([("kind".to_owned(), json!("observation"))]);
    if is_new {
        own.insert("type".into(), kind.into());
    }
    let (level, status) = (level_of(body)?, text(body, "statusMessage")?);
    for (name, key) in [
        ("version", "version"),
        ("environment", "environment"),
        ("statusMessage", "status_message"),
        ("promptName", "prompt_name"),
    ] {
        own.extend(text(body, name)?.map(|text| (key.to_owned(), text.into())));
    }
    own.extend(level.map(|level| ("level".to_owned(), level.into())));
    own.extend(given(body, "promptVersion").map(|version| ("prompt_version".to_owned(), version.clone())));
    let mut row = Map::from_iter([
        ("id".to_owned(), row_id(trace_id, id).into()),
        ("span_id".to_owned(), id.into()),
        ("root_span_id".to_owned(), trace_id.into()),
        ("_is_merge".to_owned(), true.into()),
    ]);
    let parent = text(body, "parentObservationId")?;
    if is_new || parent.is_some() {
        row.insert("span_parents".into(), json!([parent.unwrap_or(trace_id)]));
    }
    let mut metrics = times(body, &mut row, &mut own, is_new && kind == "EVENT")?;
    metrics.extend(model_fields(body, &mut own)?);
    for name in ["input", "output"] {
        row.extend(given(body, name).map(|value| (name.to_owned(), value.clone())));
    }
    if level == Some("ERROR") {
        row.insert("error".into(), status.unwrap_or("error").into());
    }
    let mut fields = object_of(own.get("model_parameters"));
    fields.extend(text(body, "model")?.map(|model| ("model".to_owned(), model.into())));
    metadata::put(&mut fields, &mut own, given(body, "metadata").cloned().unwrap_or(Value::Null));
    fields.insert(OWN.into(), Value::Object(own));
    row.insert("metadata".into(), Value::Object(fields));
    for (name, map) in [("metrics", metrics), ("span_attributes", about)] {
        if !map.is_empty() {
            row.insert(name.into(), Value::Object(map));
        }
    }
    Ok(Value::Object(row))
}

fn level_of(body: &Map<String, Value>) -> Result<Option<&str>, BadField> {
    match text(body, "level")? {
        Some(level) if !LEVELS.contains(&level) => {
            Err(BadField(format!("`level` has to be one of {}", LEVELS.join(", "))))
        }
        level => Ok(level),
    }
}

/// Adds the times of an observation, and returns its metrics of time.
fn times(
    body: &Map<String, Value>,
    row: &mut Map<String, Value>,
    own: &mut Map<String, Value>,
    is_event: bool,
) -> Result<Map<String, Value>, BadField> {
    let (start, end) = (time(body, "startTime")?, time(body, "endTime")?);
    let first = time(body, "completionStartTime")?;
    let mut metrics = Map::new();
    if let Some(start) = start {
        row.insert("created".into(), iso(start));
        metrics.insert("start".into(), seconds(start));
    }
    if let Some(end) = end.or(start.filter(|_| is_event)) {
        metrics.insert("end".into(), seconds(end));
    }
    if let Some(first) = first {
        own.insert("completion_start_time".into(), iso(first));
        if let Some(start) = start {
            metrics.insert("time_to_first_token".into(), seconds(first.saturating_sub(start)));
        }
    }
    Ok(metrics)
}

/// Adds the fields of a model call, and returns the metrics of its usage.
fn model_fields(body: &Map<String, Value>, own: &mut Map<String, Value>) -> Result<Map<String, Value>, BadField> {
    let object = |name: &str| match given(body, name) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(_) => Err(BadField(format!("`{name}` has to be an object"))),
    };
    let (mut usage, mut costs) = (flat_usage(object("usageDetails")?), object("costDetails")?);
    let old = object("usage")?;
    for (names, key) in [
        (["input", "promptTokens"], "input"),
        (["output", "completionTokens"], "output"),
        (["total", "totalTokens"], "total"),
    ] {
        if let Some(count) = names.iter().find_map(|name| given(&old, name)).filter(|_| !usage.contains_key(key)) {
            usage.insert(key.into(), count.clone());
        }
    }
    for (name, key) in [("inputCost", "input"), ("outputCost", "output"), ("totalCost", "total")] {
        if let Some(cost) = given(&old, name).filter(|_| !costs.contains_key(key)) {
            costs.insert(key.into(), cost.clone());
        }
    }
    let mut metrics: Map<String, Value> =
        usage_metrics(&usage).into_iter().map(|(name, count)| (name.to_owned(), Value::Number(count))).collect();
    let part = |name: &str| metrics.get(name).and_then(Value::as_i64);
    if let (Some(prompt), Some(completion), None) = (part("prompt_tokens"), part("completion_tokens"), part("tokens")) {
        metrics.insert("tokens".into(), prompt.saturating_add(completion).into());
    }
    metrics.extend(total_cost(&costs).map(|cost| ("estimated_cost".to_owned(), Value::Number(cost))));
    for (key, map) in
        [("usage_details", usage), ("cost_details", costs), ("model_parameters", object("modelParameters")?)]
    {
        if !map.is_empty() {
            own.insert(key.into(), Value::Object(map));
        }
    }
    Ok(metrics)
}

/// Flattens the details of usage in OpenAI's form: `prompt_tokens_details.cached_tokens` is `input_cached_tokens`.
fn flat_usage(sent: Map<String, Value>) -> Map<String, Value> {
    let mut usage = Map::new();
    for (name, value) in sent {
        match value {
            Value::Object(parts) => {
                let side = if name.starts_with("prompt") || name.starts_with("input") { "input" } else { "output" };
                let parts = parts.into_iter().filter(|(_, count)| count.is_number());
                usage.extend(parts.map(|(part, count)| (format!("{side}_{part}"), count)));
            }
            Value::Null => {}
            value if number_of(&value).is_some() => drop(usage.insert(name, value)),
            _ => {}
        }
    }
    usage
}

/// Returns the row of a trace from the body of an event.
pub(crate) fn trace_row(body: &Map<String, Value>, id: &str, at: Option<i64>) -> Result<Value, BadField> {
    let mut own = Map::from_iter([("kind".to_owned(), json!("trace"))]);
    let mut row = trace_frame(id);
    if let Some(name) = text(body, "name")? {
        row.insert("span_attributes".into(), json!({"name": name, "type": "task"}));
        own.insert("trace_name".into(), name.into());
    }
    for name in ["release", "version", "environment"] {
        own.extend(text(body, name)?.map(|text| (name.to_owned(), text.into())));
    }
    match given(body, "public") {
        None => {}
        Some(Value::Bool(public)) => drop(own.insert("public".into(), (*public).into())),
        Some(_) => return Err(BadField("`public` has to be true or false".into())),
    }
    let sent = time(body, "timestamp")?;
    row.extend(sent.or(at).map(|at| ("created".to_owned(), iso(at))));
    row.extend(sent.map(|at| ("metrics".to_owned(), json!({"start": seconds(at)}))));
    for name in ["input", "output"] {
        row.extend(given(body, name).map(|value| (name.to_owned(), value.clone())));
    }
    row.extend(texts(body, "tags")?.map(|tags| ("tags".to_owned(), json!(tags))));
    let mut fields = Map::new();
    for (name, key) in [("userId", "user_id"), ("sessionId", "session_id")] {
        fields.extend(text(body, name)?.map(|text| (key.to_owned(), text.into())));
    }
    metadata::put(&mut fields, &mut own, given(body, "metadata").cloned().unwrap_or(Value::Null));
    fields.insert(OWN.into(), Value::Object(own));
    row.insert("metadata".into(), Value::Object(fields));
    Ok(Value::Object(row))
}

/// Returns the ids of the row of a trace, which every write of it has.
pub(crate) fn trace_frame(id: &str) -> Map<String, Value> {
    Map::from_iter([
        ("id".to_owned(), id.into()),
        ("span_id".to_owned(), id.into()),
        ("root_span_id".to_owned(), id.into()),
        ("span_parents".to_owned(), Value::Null),
        ("_is_merge".to_owned(), true.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_generation_is_a_model_call_with_usage_and_cost() {
        let sent = body(json!({
            "name": "answer", "startTime": "2026-01-02T03:04:05.000Z", "endTime": "2026-01-02T03:04:07Z",
            "completionStartTime": "2026-01-02T03:04:05.500Z", "model": "m", "modelParameters": {"temperature": 0.5},
            "usage": {"promptTokens": 3, "completionTokens": 4}, "costDetails": {"input": 0.5, "output": 0.25},
            "input": "q", "output": "a", "level": "ERROR", "statusMessage": "late", "metadata": {"k": "v"},
            "promptName": "p", "promptVersion": 2,
        }));
        let row = observation_row(&sent, ("t", "o", "GENERATION"), true).expect("a row");
        assert_eq!((&row["id"], &row["span_parents"]), (&json!("t-o"), &json!(["t"])));
        assert_eq!(row["span_attributes"], json!({"name": "answer", "type": "llm"}));
        let metrics = json!({
            "start": 1_767_323_045.0, "end": 1_767_323_047.0, "time_to_first_token": 0.5, "prompt_tokens": 3,
            "completion_tokens": 4, "tokens": 7, "estimated_cost": 0.75,
        });
        assert_eq!(row["metrics"], metrics);
        assert_eq!((&row["error"], &row["metadata"]["k"]), (&json!("late"), &json!("v")));
        assert_eq!(row["metadata"]["langfuse"]["usage_details"], json!({"input": 3, "output": 4}));
        assert_eq!(row["metadata"]["temperature"], json!(0.5));
    }

    #[test]
    fn an_update_has_only_its_changes() {
        let row = observation_row(&body(json!({"output": 1})), ("t", "o", "SPAN"), false).expect("a row");
        assert!(row.get("span_parents").is_none() && row.get("span_attributes").is_none(), "{row}");
        assert_eq!(row["metadata"], json!({"langfuse": {"kind": "observation"}}));
    }

    #[test]
    fn details_of_openai_are_flat_counts() {
        let sent = body(json!({"usageDetails": {
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": null},
        }}));
        let row = observation_row(&sent, ("t", "o", "GENERATION"), true).expect("a row");
        assert_eq!(row["metrics"]["prompt_tokens"], 10);
        assert_eq!(row["metadata"]["langfuse"]["usage_details"]["input_cached_tokens"], 4);
    }

    #[test]
    fn invalid_fields_are_named() {
        for (sent, name) in [
            (json!({"level": "LOUD"}), "`level`"),
            (json!({"startTime": "soon"}), "`startTime`"),
            (json!({"usageDetails": 3}), "`usageDetails`"),
            (json!({"name": 3}), "`name`"),
        ] {
            let why = observation_row(&body(sent), ("t", "o", "SPAN"), true).expect_err("is refused");
            assert!(why.0.starts_with(name), "{why}");
        }
        assert!(observation_row(&body(json!({})), ("t", "o", "WHAT"), true).is_err());
    }
}
