//! Traces, sessions and observations in the form of answers, from rows.

use assay_storage_model::event::parse_created;
use serde_json::{Map, Value, json};

use crate::fields::{iso_of_seconds, number_of};
use crate::metadata::{own, read_object};
use crate::score::{ScoreShape, score_view};

const MILLIS: f64 = 1_000.0;

fn kind_of(row: &Value) -> Option<&str> {
    own(row)?.get("kind")?.as_str()
}

fn field(row: &Value, name: &str) -> Value {
    own(row).and_then(|own| own.get(name)).cloned().unwrap_or(Value::Null)
}

fn of_metadata(row: &Value, name: &str) -> Value {
    row.get("metadata").and_then(|metadata| metadata.get(name)).cloned().unwrap_or(Value::Null)
}

fn or(value: Value, other: impl Into<Value>) -> Value {
    if value.is_null() { other.into() } else { value }
}

fn is_root(row: &Value) -> bool {
    row.get("span_parents").is_none_or(|parents| parents.is_null() || parents == &json!([]))
}

/// Returns the row of a trace among its rows: the trace's own one, or the root of a trace of another SDK.
pub fn trace_row_of(rows: &[Value]) -> Option<&Value> {
    let own_row = rows.iter().find(|row| kind_of(row) == Some("trace"));
    let root = || rows.iter().find(|row| is_root(row) && kind_of(row).is_none());
    own_row.or_else(root).or_else(|| rows.iter().find(|row| is_observation(row)))
}

fn is_observation(row: &Value) -> bool {
    matches!(kind_of(row), Some("observation") | None)
}

/// Returns a trace as lists have it, without its observations and scores.
pub fn trace_view(row: &Value, project: &str) -> Value {
    let id = row.get("root_span_id").cloned().unwrap_or(Value::Null);
    let get = |name: &str| row.get(name).cloned().unwrap_or(Value::Null);
    // A score may have made the row, whose time of creation is then that of the score.
    let at = or(iso_of_seconds(row["metrics"].get("start")).unwrap_or(Value::Null), get("created"));
    let name = or(field(row, "trace_name"), row["span_attributes"]["name"].clone());
    let path = format!("/project/{project}/traces/{}", id.as_str().unwrap_or_default());
    json!({
        "id": id, "timestamp": at, "name": name, "input": get("input"), "output": get("output"),
        "sessionId": of_metadata(row, "session_id"), "release": field(row, "release"), "version": field(row, "version"),
        "userId": of_metadata(row, "user_id"), "metadata": read_object(row), "tags": or(get("tags"), json!([])),
        "public": or(field(row, "public"), false), "environment": or(field(row, "environment"), "default"),
        "htmlPath": path, "createdAt": at, "updatedAt": at, "projectId": project,
    })
}

/// Returns a trace with the totals of its rows. `is_whole` adds its observations and scores, else their ids.
pub fn trace_with_rows(rows: &[Value], project: &str, is_whole: bool) -> Option<Value> {
    let mut view = trace_view(trace_row_of(rows)?, project);
    let of_trace = rows.iter().filter(|row| is_observation(row));
    let mut observations: Vec<Value> = of_trace.map(|row| observation_view(row, project)).collect();
    observations.sort_by(|one, other| text(one, "startTime").cmp(text(other, "startTime")));
    let mut scores: Vec<Value> = rows.iter().filter_map(|row| score_view(row, project, ScoreShape::Older)).collect();
    scores.sort_by(|one, other| text(one, "timestamp").cmp(text(other, "timestamp")));
    let times = |name: &str| observations.iter().filter_map(|one| parse_created(text(one, name))).collect::<Vec<_>>();
    let (first, last) = (times("startTime").into_iter().min(), times("endTime").into_iter().max());
    view["latency"] = first.zip(last).map_or(json!(0.0), |(first, last)| json!((last - first).max(0) as f64 / 1e6));
    view["totalCost"] = observations.iter().filter_map(|one| one["calculatedTotalCost"].as_f64()).sum::<f64>().into();
    let ids = |list: Vec<Value>| list.into_iter().map(|mut one| one["id"].take()).collect::<Value>();
    view["observations"] = if is_whole { Value::Array(observations) } else { ids(observations) };
    view["scores"] = if is_whole { Value::Array(scores) } else { ids(scores) };
    Some(view)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Fields that both versions of an observation have.
struct ObservationFields {
    fields: Map<String, Value>,
    usage: Map<String, Value>,
    costs: Map<String, Value>,
    total_cost: Value,
}

impl ObservationFields {
    fn of(row: &Value, project: &str) -> ObservationFields {
        let get = |name: &str| row.get(name).cloned().unwrap_or(Value::Null);
        let metric = |name: &str| row.get("metrics").and_then(|metrics| metrics.get(name));
        let (start, end) = (metric("start"), metric("end"));
        let trace = get("root_span_id");
        let parent = get("span_parents").get(0).cloned().filter(|parent| *parent != trace).unwrap_or(Value::Null);
        let started = or(get("created"), iso_of_seconds(start).unwrap_or(Value::Null));
        let kind = or(field(row, "type"), type_of(text(&row["span_attributes"], "type")));
        let ended = if kind == "EVENT" { Value::Null } else { iso_of_seconds(end).unwrap_or(Value::Null) };
        let latency = start.zip(end).and_then(|(start, end)| Some((end.as_f64()? - start.as_f64()?).max(0.0)));
        let latency = latency.filter(|_| !ended.is_null()).map(|seconds| (seconds * MILLIS).round() / MILLIS);
        let level = if row.get("error").is_some_and(|error| !error.is_null()) { "ERROR" } else { "DEFAULT" };
        let status = if level == "ERROR" { get("error") } else { Value::Null };
        let fields = json!({
            "id": get("span_id"), "traceId": trace, "projectId": project, "parentObservationId": parent, "type": kind,
            "startTime": started, "endTime": ended, "name": row["span_attributes"]["name"],
            "level": or(field(row, "level"), level), "statusMessage": or(field(row, "status_message"), status),
            "version": field(row, "version"), "environment": or(field(row, "environment"), "default"),
            "completionStartTime": field(row, "completion_start_time"), "createdAt": started, "updatedAt": started,
            "input": get("input"), "output": get("output"), "metadata": read_object(row),
            "model": of_metadata(row, "model"), "modelParameters": or(field(row, "model_parameters"), json!({})),
            "promptId": null, "promptName": field(row, "prompt_name"),
            "promptVersion": version(&field(row, "prompt_version")),
            "latency": latency, "timeToFirstToken": metric("time_to_first_token"), "modelId": null, "inputPrice": null,
            "outputPrice": null, "totalPrice": null,
        });
        let usage = usage_of(row);
        let costs = with_total(object(field(row, "cost_details")));
        let total_cost = or(
            costs.get("total").cloned().unwrap_or(Value::Null),
            metric("estimated_cost").cloned().unwrap_or(Value::Null),
        );
        ObservationFields { fields: object(fields), usage, costs, total_cost }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn version(value: &Value) -> Value {
    match value {
        Value::String(text) => text.parse::<i64>().map_or(Value::Null, Value::from),
        other => other.clone(),
    }
}

/// Returns the type of an observation of another SDK.
fn type_of(span_type: &str) -> &'static str {
    match span_type {
        "llm" => "GENERATION",
        "tool" => "TOOL",
        "score" => "EVALUATOR",
        _ => "SPAN",
    }
}

/// Returns counts of tokens: those that were sent, or those of the metrics.
fn usage_of(row: &Value) -> Map<String, Value> {
    let sent = object(field(row, "usage_details"));
    if !sent.is_empty() {
        return with_total(sent);
    }
    let names = [("input", "prompt_tokens"), ("output", "completion_tokens"), ("total", "tokens")];
    let metrics = &row["metrics"];
    let of_metrics =
        names.into_iter().filter_map(|(name, metric)| Some((name.to_owned(), metrics.get(metric)?.clone())));
    with_total(of_metrics.filter(|(_, count)| count.is_number()).collect())
}

/// Adds the sum of the parts, which answers always have.
fn with_total(mut details: Map<String, Value>) -> Map<String, Value> {
    if details.is_empty() || details.contains_key("total") || details.contains_key("total_tokens") {
        return details;
    }
    let numbers: Vec<_> = details.values().filter_map(number_of).collect();
    let whole = numbers.iter().map(|number| number.as_i64()).collect::<Option<Vec<_>>>();
    let total = match whole {
        Some(counts) => json!(counts.into_iter().fold(0_i64, i64::saturating_add)),
        None => json!(numbers.iter().filter_map(|number| number.as_f64()).sum::<f64>()),
    };
    details.insert("total".into(), total);
    details
}

/// Returns an observation as version 1 of the API has it.
pub fn observation_view(row: &Value, project: &str) -> Value {
    let ObservationFields { mut fields, usage, costs, total_cost } = ObservationFields::of(row, project);
    let sum = |details: &Map<String, Value>, prefix: &str| {
        let parts = details.iter().filter(|(name, _)| name.starts_with(prefix)).filter_map(|(_, value)| value.as_f64());
        parts.reduce(|sum, part| sum + part)
    };
    let count = |prefix: &str| sum(&usage, prefix).map_or(0, |count| count as i64);
    let total = usage.get("total").or_else(|| usage.get("total_tokens")).and_then(Value::as_i64).unwrap_or(0);
    let (input, output) = (count("input").max(count("prompt_tokens")), count("output").max(count("completion_tokens")));
    let (input_cost, output_cost) = (sum(&costs, "input"), sum(&costs, "output"));
    fields.insert(
        "usage".into(),
        json!({"input": input, "output": output, "total": total, "unit": "TOKENS", "inputCost": input_cost,
            "outputCost": output_cost, "totalCost": total_cost}),
    );
    for (name, value) in [
        ("promptTokens", json!(input)),
        ("completionTokens", json!(output)),
        ("totalTokens", json!(total)),
        ("unit", json!("TOKENS")),
        ("calculatedInputCost", json!(input_cost)),
        ("calculatedOutputCost", json!(output_cost)),
        ("calculatedTotalCost", total_cost),
        ("usageDetails", Value::Object(usage)),
        ("costDetails", Value::Object(costs)),
    ] {
        fields.insert(name.into(), value);
    }
    Value::Object(fields)
}

/// Returns an observation as version 2 of the API has it, whose input and output are texts.
pub fn observation_v2_view(row: &Value, project: &str, trace: Option<&Value>) -> Value {
    let ObservationFields { mut fields, usage, costs, total_cost } = ObservationFields::of(row, project);
    for name in ["input", "output"] {
        let as_text = match fields.remove(name) {
            None | Some(Value::Null) => Value::Null,
            Some(Value::String(text)) => Value::String(text),
            Some(other) => Value::String(other.to_string()),
        };
        fields.insert(name.into(), as_text);
    }
    let of_trace = |name: &str| trace.map_or(Value::Null, |trace| of_metadata(trace, name));
    let own_of_trace = |name: &str| trace.map_or(Value::Null, |trace| field(trace, name));
    for (name, value) in [
        ("isRootObservation", Value::Bool(fields.get("parentObservationId").is_none_or(Value::is_null))),
        ("userId", or(of_metadata(row, "user_id"), of_trace("user_id"))),
        ("sessionId", or(of_metadata(row, "session_id"), of_trace("session_id"))),
        ("usageDetails", Value::Object(usage)),
        ("costDetails", Value::Object(costs)),
        ("totalCost", total_cost),
        ("bookmarked", false.into()),
        ("public", or(own_of_trace("public"), false)),
        (
            "traceName",
            or(own_of_trace("trace_name"), trace.map_or(Value::Null, |trace| trace["span_attributes"]["name"].clone())),
        ),
        ("tags", or(trace.map_or(Value::Null, |trace| trace["tags"].clone()), json!([]))),
        ("release", or(field(row, "release"), own_of_trace("release"))),
    ] {
        fields.insert(name.into(), value);
    }
    Value::Object(fields)
}

/// Returns a session with its traces.
pub fn session_view(id: &str, traces: &[Value], project: &str) -> Option<Value> {
    let views: Vec<Value> = traces.iter().map(|row| trace_view(row, project)).collect();
    let first = views.iter().min_by_key(|view| text(view, "timestamp").to_owned())?;
    let (created, environment) = (first["timestamp"].clone(), first["environment"].clone());
    Some(json!({"id": id, "createdAt": created, "projectId": project, "environment": environment, "traces": views}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        vec![
            json!({"id": "t", "span_id": "t", "root_span_id": "t", "span_parents": null,
                "created": "2026-01-01T00:00:00.000Z",
                "span_attributes": {"name": "chat", "type": "task"}, "tags": ["a"],
                "metadata": {"user_id": "u", "k": 1, "langfuse": {"kind": "trace", "release": "r"}}}),
            json!({"id": "t-o", "span_id": "o", "root_span_id": "t", "span_parents": ["t"],
                "created": "2026-01-01T00:00:00.000Z", "span_attributes": {"name": "answer", "type": "llm"},
                "metrics": {"start": 1_767_225_600.0, "end": 1_767_225_602.0},
                "input": [1], "metadata": {"model": "m", "langfuse": {"kind": "observation", "type": "GENERATION",
                    "usage_details": {"input": 3, "output": 4}, "cost_details": {"input": 0.5, "output": 0.25},
                    "prompt_version": "2"}}}),
            json!({"id": "score-s", "root_span_id": "t", "created": "2026-01-01T00:00:03.000Z",
                "metadata": {"langfuse": {"kind": "score", "score_id": "s", "data_type": "NUMERIC", "value": 1}}}),
        ]
    }

    #[test]
    fn a_trace_has_its_totals_observations_and_scores() {
        let trace = trace_with_rows(&rows(), "p", true).expect("a trace");
        assert_eq!(
            (&trace["name"], &trace["userId"], &trace["metadata"]),
            (&json!("chat"), &json!("u"), &json!({"k": 1}))
        );
        assert_eq!((&trace["latency"], &trace["totalCost"]), (&json!(2.0), &json!(0.75)));
        assert_eq!((&trace["observations"][0]["id"], &trace["scores"][0]["id"]), (&json!("o"), &json!("s")));
        let brief = trace_with_rows(&rows(), "p", false).expect("a trace");
        assert_eq!((&brief["observations"], &brief["scores"]), (&json!(["o"]), &json!(["s"])));
        assert_eq!(trace_with_rows(&[], "p", true), None);
    }

    #[test]
    fn an_observation_has_the_fields_of_its_version() {
        let rows = rows();
        let one = observation_view(&rows[1], "p");
        assert_eq!((&one["parentObservationId"], &one["type"]), (&Value::Null, &json!("GENERATION")));
        assert_eq!((&one["usage"]["total"], &one["usageDetails"]["total"]), (&json!(7), &json!(7)));
        assert_eq!((&one["latency"], &one["promptVersion"]), (&json!(2.0), &json!(2)));
        let two = observation_v2_view(&rows[1], "p", Some(&rows[0]));
        assert_eq!((&two["input"], &two["userId"], &two["traceName"]), (&json!("[1]"), &json!("u"), &json!("chat")));
        assert_eq!((&two["isRootObservation"], &two["totalCost"]), (&json!(true), &json!(0.75)));
    }

    #[test]
    fn a_trace_of_another_sdk_is_its_root() {
        let row = json!({"id": "x", "span_id": "x", "root_span_id": "r", "span_parents": null, "error": "bad",
            "created": "2026-01-01T00:00:00.000Z", "span_attributes": {"name": "n", "type": "llm"},
            "metrics": {"prompt_tokens": 1, "completion_tokens": 2, "tokens": 3}});
        let trace = trace_with_rows(&[row], "p", true).expect("a trace");
        assert_eq!((&trace["id"], &trace["environment"]), (&json!("r"), &json!("default")));
        let one = &trace["observations"][0];
        assert_eq!(
            (&one["level"], &one["statusMessage"], &one["usage"]["total"]),
            (&json!("ERROR"), &json!("bad"), &json!(3))
        );
    }
}
