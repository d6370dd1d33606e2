//! Summary row of a trace (btql.md, section 7.1).

use assay_node_btql::bound::{Bound, Derived};
use serde_json::{Map, Value as Json};

use crate::aggregate::{mean, sum};
use crate::row::{EvalContext, Row, Scope, TraceOf, minus, plus};
use crate::scalar::evaluate;
use crate::value::{Value, order, same};

/// Columns of a root that a summary keeps; null for a trace without a root.
const OF_THE_ROOT_ALONE: [&str; 17] = [
    "_async_scoring_state",
    "audit_data",
    "classifications",
    "comments",
    "context",
    "error",
    "expected",
    "facets",
    "id",
    "input",
    "is_root",
    "metadata",
    "origin",
    "output",
    "span_attributes",
    "span_id",
    "span_parents",
];
/// Metrics with a rule of their own; any other that is a number is summed.
const RULED: [&str; 16] = [
    "prompt_tokens",
    "completion_tokens",
    "prompt_cached_tokens",
    "prompt_cache_creation_tokens",
    "total_tokens",
    "estimated_cost",
    "llm_calls",
    "tool_calls",
    "errors",
    "llm_errors",
    "tool_errors",
    "start",
    "end",
    "duration",
    "llm_duration",
    "time_to_first_token",
];
const TOKENS: [&str; 4] =
    ["prompt_tokens", "completion_tokens", "prompt_cached_tokens", "prompt_cache_creation_tokens"];

pub fn of(
    bound: &Bound,
    root: Option<&Row>,
    trace: &TraceOf,
    world: EvalContext<'_>,
) -> Result<Map<String, Json>, String> {
    let spans = trace.spans.as_slice();
    let base = root.unwrap_or(&spans[0]);
    let mut fields = (*base.fields).clone();
    if root.is_none() {
        OF_THE_ROOT_ALONE.iter().for_each(|name| drop(fields.insert((*name).to_owned(), Json::Null)));
    }
    let mut set = |name: &str, value: Json| drop(fields.insert(name.to_owned(), value));
    set("_pagination_key", trace.key.clone().into());
    set("_xact_id", trace.xact.to_string().into());
    set("tags", tags(spans).to_json());
    set("scores", Value::Object(scores(spans)).to_json());
    set("metrics", Value::Object(metrics(spans, world)).to_json());
    set("span_type_info", Value::Object(type_info(root, spans)).to_json());
    if let Some(key) = &bound.comparison_key {
        // D-92: of the root span, and not of what the trace comes to.
        let key = root.map_or(Ok(Value::Null), |root| evaluate(key, Scope::of_row(world, root)))?;
        let text = Some(key.to_json()).filter(|json| !json.is_null()).map(|json| Json::String(json.to_string()));
        set("comparison_key", text.unwrap_or_default());
    }
    let row = Row { fields: fields.clone().into(), ..Row::default() };
    for (name, expr) in &bound.weighted_scores {
        let value = evaluate(expr, Scope::of_row(world, &row))?.to_json();
        if let Some(Json::Object(scores)) = fields.get_mut("scores") {
            scores.insert(name.clone(), value);
        }
    }
    Ok(fields)
}

/// All tags, in the order in which they were first seen; null where no span has a list of them.
fn tags(spans: &[Row]) -> Value {
    let mut all: Option<Vec<Value>> = None;
    for span in spans {
        let Value::Array(tags) = span.column("tags") else { continue };
        let all = all.get_or_insert_with(Vec::new);
        for tag in tags {
            if !all.iter().any(|other| same(other, &tag)) {
                all.push(tag);
            }
        }
    }
    all.map_or(Value::Null, Value::Array)
}

/// The members of the same name of all spans, names as they were first seen.
fn members(spans: &[Row], column: &str) -> Vec<(String, Vec<Value>)> {
    let mut all: Vec<(String, Vec<Value>)> = Vec::new();
    for span in spans {
        let Value::Object(of) = span.column(column) else { continue };
        for (name, value) in of {
            match all.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => values.push(value),
                None => all.push((name, vec![value])),
            }
        }
    }
    all
}

/// D-37: the mean without nulls; of nulls alone, null.
fn scores(spans: &[Row]) -> Vec<(String, Value)> {
    members(spans, "scores").into_iter().map(|(name, values)| (name, mean(&values))).collect()
}

fn metrics(spans: &[Row], world: EvalContext<'_>) -> Vec<(String, Value)> {
    let llm: Vec<&Row> = spans.iter().filter(|span| span.is_type("llm")).collect();
    let tool: Vec<&Row> = spans.iter().filter(|span| span.is_type("tool")).collect();
    let errors = |of: &[&Row]| of.iter().filter(|span| !span.column("error").is_null()).count();
    let count = |count: usize| Value::Int(count as i128);
    let all = |name: &str| {
        let values = spans.iter().map(|span| span.metric(name)).filter(|value| value.number().is_some());
        values.collect::<Vec<_>>().into_iter()
    };
    let start = all("start").min_by(order).unwrap_or(Value::Null);
    let end = all("end").max_by(order).unwrap_or(Value::Null);
    let of_llm = |of: &dyn Fn(&Row) -> Value| llm.iter().map(|span| of(span)).collect::<Vec<Value>>();
    let mut metrics: Vec<(String, Value)> = Vec::new();
    let mut set = |name: &str, value: Value| metrics.push((name.to_owned(), value));
    let tokens = |name: &str| counted_once(spans, &|span| span.metric(name));
    TOKENS.iter().for_each(|name| set(name, tokens(name)));
    set("total_tokens", plus(&tokens("prompt_tokens"), &tokens("completion_tokens")));
    set("estimated_cost", counted_once(spans, &|span| span.derived(Derived::EstimatedCost, world)));
    set("llm_calls", count(llm.len()));
    set("tool_calls", count(tool.len()));
    set("llm_errors", count(errors(&llm)));
    set("tool_errors", count(errors(&tool)));
    set("errors", count(errors(&llm) + errors(&tool)));
    set("duration", minus(&end, &start));
    set("start", start);
    set("end", end);
    set("llm_duration", sum(&of_llm(&|span| span.derived(Derived::Duration, world))));
    set("time_to_first_token", mean(&of_llm(&|span| span.metric("time_to_first_token"))));
    for (name, values) in members(spans, "metrics") {
        let is_number = values.iter().any(|value| matches!(value, Value::Int(_) | Value::Float(_)));
        if is_number && !RULED.contains(&name.as_str()) {
            set(&name, counted_once(spans, &|span| span.metric(&name)));
        }
    }
    metrics
}

/// D-40: of LLM spans alone, where one of them has it, since their parents repeat it.
fn counted_once(spans: &[Row], of: &dyn Fn(&Row) -> Value) -> Value {
    let has = |span: &Row| of(span).number().is_some();
    let llm_only = spans.iter().any(|span| span.is_type("llm") && has(span));
    let counted = spans.iter().filter(|span| !llm_only || span.is_type("llm"));
    sum(&counted.map(of).collect::<Vec<_>>())
}

/// D-38.
fn type_info(root: Option<&Row>, spans: &[Row]) -> Vec<(String, Value)> {
    let mut llm = spans.iter().filter(|span| span.is_type("llm")).peekable();
    let has_llm = llm.peek().is_some();
    let cached = has_llm && llm.all(|span| span.metric("cached").truth() == Some(true));
    let has_error = spans.iter().any(|span| !span.column("error").is_null());
    let attribute = |name: &str| root.map_or(Value::Null, |root| root.column("span_attributes").member(name));
    let in_progress = root.is_some_and(|root| !root.metric("start").is_null() && root.metric("end").is_null());
    vec![
        ("cached".into(), Value::Bool(cached)),
        ("has_error".into(), Value::Bool(has_error)),
        ("name".into(), attribute("name")),
        ("type".into(), attribute("type")),
        ("purpose".into(), attribute("purpose")),
        ("in_progress".into(), Value::Bool(in_progress)),
    ]
}

/// D-39, D-41: the value itself where it fits, and else the start of its text.
pub fn preview(value: Value, length: i64) -> Value {
    let Ok(length) = usize::try_from(length) else { return value };
    let Some(text) = value.to_text() else { return value };
    if text.chars().count() <= length {
        return value;
    }
    let start: String = text.chars().take(length).collect();
    Value::Text(format!("{start}..."))
}
