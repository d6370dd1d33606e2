//! Traces, observations and scores of Langfuse as spans and scores.

use serde_json::{Map, Value, json};

use crate::fields::{id, json_number, number, number_of, object, parsed, parsed_object, seconds, text, texts, time};
use crate::item::{ItemHome, NeutralItem, NeutralScore, NeutralSpan, ScoreValue, SpanRepeat};
use crate::source::SourcePage;

/// Types of spans by the type of an observation.
const KINDS: &[(&str, &str)] = &[
    ("GENERATION", "llm"),
    ("EMBEDDING", "llm"),
    ("TOOL", "tool"),
    ("AGENT", "task"),
    ("CHAIN", "task"),
    ("RETRIEVER", "function"),
    ("GUARDRAIL", "function"),
    ("EVALUATOR", "score"),
];

pub(super) fn trace_key(trace: &str) -> String {
    format!("trace/{trace}")
}

fn observation_key(observation: &str) -> String {
    format!("observation/{observation}")
}

/// Returns the id of the span of a trace. An observation may have the id of its trace.
fn trace_span_id(trace: &str) -> String {
    format!("trace-{trace}")
}

/// Returns the span of a trace, which is the root of its observations.
pub(super) fn trace_span(home: ItemHome, trace: &Value) -> NeutralSpan {
    let id = id(trace, "id").unwrap_or_default();
    let mut span = empty_trace(home, &id);
    span.set("span_attributes", json!({"name": text(trace, "name").unwrap_or("trace"), "type": "task"}));
    span.set("input", trace.get("input").cloned().unwrap_or_default());
    span.set("output", trace.get("output").cloned().unwrap_or_default());
    span.set("tags", texts(trace, "tags"));
    if let Some(created) = time(trace, "timestamp") {
        let start = seconds(&created);
        span.set("created", created);
        span.set_in("metrics", "start", start.map_or(Value::Null, json_number));
        let latency = number(trace, "latency").filter(|latency| *latency >= 0.0);
        span.set_in(
            "metrics",
            "end",
            start.zip(latency).map_or(Value::Null, |(start, took)| json_number(start + took)),
        );
    }
    metadata(&mut span, trace);
    about(&mut span, trace, &["userId", "sessionId", "release", "version", "environment", "public", "bookmarked"]);
    kept(&mut span, trace, &["id", "htmlPath"]);
    span
}

fn empty_trace(home: ItemHome, id: &str) -> NeutralSpan {
    NeutralSpan { home, key: trace_key(id), trace: id.to_owned(), span: trace_span_id(id), ..NeutralSpan::default() }
}

/// Returns the span of the trace of an observation that carries what is said of the trace.
///
/// A root observation adds times, input and output to a span that another observation has made.
pub(super) fn trace_of_observation(home: ItemHome, observation: &Value) -> Option<NeutralSpan> {
    let trace = text(observation, "traceId")?;
    let mut span = empty_trace(home, trace);
    span.repeat = SpanRepeat::Implied;
    let is_root = is_root(observation);
    let own_name = if is_root { text(observation, "name") } else { None };
    let name = text(observation, "traceName").or(own_name).unwrap_or("trace");
    span.set("span_attributes", json!({"name": name, "type": "task"}));
    span.set("tags", texts(observation, "tags"));
    about(&mut span, observation, &["userId", "sessionId", "release", "environment"]);
    span.set_in("metadata", "langfuse", json!({"id": trace}));
    let created = time(observation, "startTime");
    if is_root {
        span.repeat = SpanRepeat::Added;
        for field in ["input", "output"] {
            span.set(field, observation.get(field).map(parsed).unwrap_or_default());
        }
        let at = |key: &str| time(observation, key).as_deref().and_then(seconds).map_or(Value::Null, json_number);
        span.set_in("metrics", "start", at("startTime"));
        span.set_in("metrics", "end", at("endTime"));
    }
    span.set("created", created);
    Some(span)
}

pub(super) fn is_root(observation: &Value) -> bool {
    let is_marked = observation.get("isRootObservation").and_then(Value::as_bool).unwrap_or_default();
    is_marked || text(observation, "parentObservationId").is_none()
}

/// Returns the span of an observation.
pub(super) fn observation_span(home: ItemHome, observation: &Value) -> NeutralSpan {
    let id = id(observation, "id").unwrap_or_default();
    let trace = text(observation, "traceId");
    let parent = text(observation, "parentObservationId").filter(|_| !is_root(observation)).map(str::to_owned);
    let parents = parent.or_else(|| trace.map(trace_span_id)).into_iter().collect();
    let (key, trace) = (observation_key(&id), trace.unwrap_or(&id).to_owned());
    let mut span = NeutralSpan { home, key, trace, span: id, parents, ..NeutralSpan::default() };
    let mut named = json!({"name": text(observation, "name").unwrap_or("observation")});
    let kind = text(observation, "type").unwrap_or_default();
    if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == kind) {
        named["type"] = Value::from(*kind);
    }
    span.set("span_attributes", named);
    for field in ["input", "output"] {
        span.set(field, observation.get(field).map(parsed).unwrap_or_default());
    }
    if text(observation, "level") == Some("ERROR") {
        span.set("error", text(observation, "statusMessage").unwrap_or("error"));
    }
    span.set("created", time(observation, "startTime"));
    metadata(&mut span, observation);
    model(&mut span, observation);
    about(&mut span, observation, &["level", "statusMessage", "version", "environment", "promptName", "promptVersion"]);
    kept(&mut span, observation, &["id", "type", "promptId", "usagePricingTierName", "parentObservationId"]);
    metrics(&mut span, observation);
    span
}

fn model(span: &mut NeutralSpan, observation: &Value) {
    let name = ["model", "providedModelName"].iter().find_map(|key| text(observation, key));
    span.set_in("metadata", "model", name.map_or(Value::Null, Value::from));
    for (name, value) in parsed_object(observation, "modelParameters") {
        let metadata = span.fields.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.entry(name).or_insert(value);
        }
    }
}

/// Copies the metadata of the application.
fn metadata(span: &mut NeutralSpan, of: &Value) {
    match of.get("metadata").map(parsed) {
        Some(Value::Object(map)) => {
            let values = map.into_iter().map(|(key, value)| (key, parsed(&value)));
            span.set("metadata", values.collect::<Map<_, _>>());
        }
        Some(Value::Null) | None => {}
        Some(other) => span.set("metadata", json!({"value": other})),
    }
}

/// Copies fields to the metadata in snake case, unless the application has a value of that name.
fn about(span: &mut NeutralSpan, of: &Value, keys: &[&str]) {
    for key in keys {
        let value = match of.get(*key) {
            None | Some(Value::Null | Value::Bool(false)) => continue,
            Some(Value::String(text)) if text.is_empty() => continue,
            Some(value) => value.clone(),
        };
        let name = snake(key);
        let is_taken = span.fields.get("metadata").is_some_and(|metadata| metadata.get(&name).is_some());
        let is_default = *key == "level" && value == "DEFAULT";
        if !is_taken && !is_default {
            span.set_in("metadata", &name, value);
        }
    }
}

/// Keeps names in the source under one key of the metadata.
fn kept(span: &mut NeutralSpan, of: &Value, keys: &[&str]) {
    let pairs =
        keys.iter().filter_map(|key| Some((snake(key), of.get(*key).filter(|value| !value.is_null())?.clone())));
    let pairs: Map<String, Value> = pairs.collect();
    span.set_in("metadata", "langfuse", pairs);
}

fn metrics(span: &mut NeutralSpan, observation: &Value) {
    let at = |key: &str| time(observation, key).as_deref().and_then(seconds);
    let (start, end) = (at("startTime"), at("endTime"));
    let first = number(observation, "timeToFirstToken")
        .or_else(|| Some(at("completionStartTime")? - start?))
        .filter(|first| *first >= 0.0);
    let json = |value: Option<f64>| value.map_or(Value::Null, json_number);
    span.set_in("metrics", "start", json(start));
    span.set_in("metrics", "end", json(end));
    span.set_in("metrics", "time_to_first_token", json(first));
    for (name, count) in tokens(observation) {
        span.set_in("metrics", name, count);
    }
    span.set_in("metrics", "estimated_cost", json(cost(observation)));
}

/// Returns the cost of an observation. Spans that are no calls of models have none.
fn cost(observation: &Value) -> Option<f64> {
    let details = parsed_object(observation, "costDetails");
    let usage = observation.get("usage").unwrap_or(&Value::Null);
    let total = details.get("total").and_then(number_of);
    let total = total
        .or_else(|| number(observation, "totalCost"))
        .or_else(|| number(observation, "calculatedTotalCost"))
        .or_else(|| number(usage, "totalCost"));
    let sum = || {
        let parts: Vec<f64> = details.values().filter_map(number_of).collect();
        (!parts.is_empty()).then(|| parts.iter().sum())
    };
    total.or_else(sum).filter(|total| *total > 0.0 || !details.is_empty())
}

/// Returns counts of tokens. Each token is in one count of the source, so cached ones are added to the prompt.
fn tokens(observation: &Value) -> Vec<(&'static str, i64)> {
    let mut usage = parsed_object(observation, "usageDetails");
    if usage.is_empty() {
        usage = object(observation, "usage").cloned().unwrap_or_default();
    }
    let count = |name: &str| usage.get(name).and_then(number_of).map(|count| count as i64);
    let sum = |is_part: fn(&str) -> bool| {
        let parts = usage.iter().filter(|(name, _)| is_part(name));
        parts.filter_map(|(_, count)| Some(number_of(count)? as i64)).reduce(i64::saturating_add)
    };
    let counts = [
        ("prompt_tokens", count("prompt_tokens").or_else(|| sum(is_prompt))),
        ("completion_tokens", count("completion_tokens").or_else(|| sum(is_completion))),
        ("tokens", count("total").or_else(|| count("total_tokens"))),
        ("prompt_cached_tokens", sum(|name| is_cache(name) && !is_cache_write(name))),
        ("prompt_cache_creation_tokens", sum(|name| is_cache(name) && is_cache_write(name))),
        ("completion_reasoning_tokens", sum(|name| is_completion(name) && name.contains("reasoning"))),
    ];
    counts.into_iter().filter_map(|(name, count)| Some((name, count.filter(|count| *count > 0)?))).collect()
}

fn is_prompt(name: &str) -> bool {
    (name.starts_with("input") || is_cache(name)) && !name.ends_with("Cost")
}

fn is_completion(name: &str) -> bool {
    name.starts_with("output") && !name.ends_with("Cost")
}

fn is_cache(name: &str) -> bool {
    name.starts_with("cache") || name.starts_with("input") && name.contains("cache")
}

fn is_cache_write(name: &str) -> bool {
    name.contains("creation") || name.contains("write")
}

/// Adds a score of a trace or an observation.
pub(super) fn score(home: &ItemHome, score: &Value, page: &mut SourcePage) {
    let subject = score.get("subject").unwrap_or(&Value::Null);
    let of_subject = |kind: &str| id(subject, "id").filter(|_| text(subject, "kind") == Some(kind));
    let observation = id(score, "observationId").or_else(|| of_subject("observation"));
    let trace = id(score, "traceId").or_else(|| of_subject("trace"));
    let target = match (observation, trace) {
        (Some(observation), _) => observation_key(&observation),
        (None, Some(trace)) => trace_key(&trace),
        (None, None) => {
            let is_of_run = score.get("datasetRunId").is_some_and(|run| !run.is_null())
                || text(subject, "kind") == Some("experiment");
            return page.note(if is_of_run { "scores of whole dataset runs" } else { "scores of sessions" });
        }
    };
    let value = match score.get("value") {
        Some(Value::Bool(value)) => Some(ScoreValue::Number(f64::from(u8::from(*value)))),
        Some(Value::String(text)) if text.parse::<f64>().is_err() => Some(ScoreValue::Text(text.clone())),
        value => value.and_then(number_of).map(ScoreValue::Number),
    };
    let in_words = text(score, "stringValue").map(|text| ScoreValue::Text(text.to_owned()));
    let kind = text(score, "dataType").unwrap_or("NUMERIC");
    let value = match kind {
        "CATEGORICAL" | "TEXT" | "CORRECTION" => in_words.or(value),
        _ => value.or(in_words),
    };
    let (Some(value), Some(score_id)) = (value, id(score, "id")) else {
        return page.note("scores without a value");
    };
    let details = ["source", "comment", "metadata", "timestamp", "dataType", "authorUserId", "configId", "queueId"];
    let details = details.iter().filter_map(|key| {
        let value = score.get(*key).filter(|value| !value.is_null() && **value != json!({}))?;
        Some((snake(key), value.clone()))
    });
    page.items.push(NeutralItem::Score(NeutralScore {
        home: home.clone(),
        target,
        row_id: None,
        id: score_id,
        name: text(score, "name").unwrap_or("score").to_owned(),
        value,
        details: details.collect(),
    }));
}

/// Returns a name in snake case.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Returns a name in camel case.
pub(super) fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut is_upper = false;
    for character in name.chars() {
        if character == '_' {
            is_upper = true;
        } else if std::mem::take(&mut is_upper) {
            camel.push(character.to_ascii_uppercase());
        } else {
            camel.push(character);
        }
    }
    camel
}
