//! MLflow: traces of all experiments over the REST API of version 3, with their assessments.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fields::{id, iso_of_seconds, json_number, list, number, number_of, object, parsed, seconds_of_nanos, text};
use crate::item::{ItemHome, NeutralItem, NeutralScore, NeutralSpan, ScoreValue};
use crate::source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, encoded};

const NAME: &str = "mlflow";
const EXPERIMENTS_MAX: usize = 100;
/// Traces of a page. The server reads at most 10 at once with their spans, or some more in later versions.
const TRACES_MAX: usize = 10;
/// Types of spans by the type that MLflow gives.
const KINDS: [(&str, &str); 8] = [
    ("LLM", "llm"),
    ("CHAT_MODEL", "llm"),
    ("EMBEDDING", "llm"),
    ("TOOL", "tool"),
    ("AGENT", "task"),
    ("CHAIN", "task"),
    ("RETRIEVER", "function"),
    ("EVALUATOR", "score"),
];

/// Tracking server of MLflow.
#[derive(Clone, Debug)]
pub struct MlflowSource {
    pub url: String,
    pub window: ImportWindow,
    /// Name of the experiment to import. `None` imports all.
    pub source_project: Option<String>,
}

impl ImportSource for MlflowSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> String {
        self.url.clone()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        vec![SourceTask::new("experiments")]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        let with_cursor = |mut body: Value| {
            if let Some(cursor) = &task.cursor {
                body["page_token"] = Value::from(cursor.as_str());
            }
            body
        };
        match task.step.as_str() {
            "experiments" => SourceRequest::Search {
                path: "/api/2.0/mlflow/experiments/search".to_owned(),
                body: with_cursor(json!({"max_results": EXPERIMENTS_MAX, "view_type": "ALL"})),
            },
            "traces" => SourceRequest::Search {
                path: "/api/3.0/mlflow/traces/search".to_owned(),
                body: with_cursor(json!({
                    "locations": [{"type": "MLFLOW_EXPERIMENT",
                        "mlflow_experiment": {"experiment_id": task.text("id")}}],
                    "filter": self.filter(),
                    "max_results": TRACES_MAX,
                    "order_by": ["timestamp_ms ASC"],
                })),
            },
            "artifact" => SourceRequest::Get(format!(
                "/ajax-api/2.0/mlflow/get-trace-artifact?request_id={}",
                encoded(task.text("id"))
            )),
            _ => {
                let ids = list(&task.object, "traces").iter().filter_map(|info| text(info, "trace_id"));
                let ids: Vec<String> = ids.map(|id| format!("trace_ids={}", encoded(id))).collect();
                SourceRequest::Get(format!("/api/3.0/mlflow/traces/batchGet?{}", ids.join("&")))
            }
        }
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        let mut page = SourcePage::default();
        if task.step == "spans" && answer.is_absent() {
            // Servers before 3.5 keep the spans of a trace as an artifact.
            for info in list(&task.object, "traces") {
                let about = json!({"id": text(info, "trace_id"), "info": info});
                page.next.push(SourceTask::about("artifact", about));
            }
            return Ok(page);
        }
        if task.step == "artifact" && answer.is_absent() {
            page.note("traces whose spans are gone");
            return Ok(page);
        }
        let body = answer.json(NAME, task)?;
        match task.step.as_str() {
            "experiments" => {
                let wanted = |name: &str| self.source_project.as_deref().is_none_or(|wanted| wanted == name);
                for experiment in list(&body, "experiments") {
                    let name = text(experiment, "name").unwrap_or_default();
                    if wanted(name) {
                        let about = json!({"id": id(experiment, "experiment_id"), "name": name});
                        page.next.push(SourceTask::about("traces", about));
                    }
                }
            }
            "traces" => {
                let infos = list(&body, "traces");
                if !infos.is_empty() {
                    let about = json!({"name": task.text("name"), "traces": infos});
                    page.next.push(SourceTask::about("spans", about));
                }
            }
            "artifact" => {
                let info = task.object.get("info").unwrap_or(&Value::Null);
                trace(info, list(&body, "spans"), &mut page);
            }
            _ => {
                for found in list(&body, "traces") {
                    let info = found.get("trace_info").unwrap_or(&Value::Null);
                    trace(info, list(found, "spans"), &mut page);
                }
                self.missing(task, &body, &mut page);
            }
        }
        page.next.extend(text(&body, "next_page_token").map(|token| task.at(token)));
        Ok(page)
    }
}

impl MlflowSource {
    /// Adds tasks for traces of which the server did not return the spans, because they are artifacts.
    fn missing(&self, task: &SourceTask, body: &Value, page: &mut SourcePage) {
        let found: Vec<&str> =
            list(body, "traces").iter().filter_map(|one| one.pointer("/trace_info/trace_id")?.as_str()).collect();
        for info in list(&task.object, "traces") {
            let id = text(info, "trace_id").unwrap_or_default();
            if !found.contains(&id) {
                page.next.push(SourceTask::about("artifact", json!({"id": id, "info": info})));
            }
        }
    }

    fn filter(&self) -> String {
        let millis = |time: &str| crate::fields::seconds(time).map(|seconds| (seconds * 1000.0) as i64);
        let until = millis(&self.window.until).map(|until| format!("trace.timestamp_ms < {until}"));
        let since = self.window.since.as_deref().and_then(millis);
        let since = since.map(|since| format!("trace.timestamp_ms >= {since}"));
        until.into_iter().chain(since).collect::<Vec<_>>().join(" AND ")
    }
}

/// Adds the spans of a trace, and its assessments.
fn trace(info: &Value, spans: &[Value], page: &mut SourcePage) {
    let trace_id = text(info, "trace_id").unwrap_or_default();
    let mut root = None;
    for span in spans {
        let Some(mut made) = span_of(trace_id, span) else {
            page.note("spans without ids");
            continue;
        };
        if made.parents.is_empty() {
            about_trace(&mut made, info);
            root.get_or_insert_with(|| made.span.clone());
        }
        page.items.push(NeutralItem::Span(Box::new(made)));
    }
    if spans.is_empty() {
        page.note("traces without spans");
    }
    for assessment in list(info, "assessments") {
        self::assessment(trace_id, root.as_deref(), assessment, page);
    }
}

fn span_key(trace: &str, span: &str) -> String {
    format!("span/{trace}/{span}")
}

fn span_of(trace: &str, span: &Value) -> Option<NeutralSpan> {
    let context = span.get("context").unwrap_or(span);
    let span_id = hex_id(context, "span_id")?;
    let parent = hex_id(span, "parent_span_id").or_else(|| hex_id(span, "parent_id"));
    let mut made = NeutralSpan {
        key: span_key(trace, &span_id),
        trace: trace.to_owned(),
        span: span_id,
        parents: parent.into_iter().collect(),
        ..NeutralSpan::default()
    };
    let mut attributes = attributes(span.get("attributes").unwrap_or(&Value::Null));
    let mut take = |key: &str| attributes.remove(key).filter(|value| !value.is_null());
    let kind = take("mlflow.spanType");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("UNKNOWN");
    let mut named = json!({"name": text(span, "name").unwrap_or("span")});
    if let Some((_, ours)) = KINDS.iter().find(|(name, _)| *name == kind) {
        named["type"] = Value::from(*ours);
    }
    made.set("span_attributes", named);
    made.set("input", take("mlflow.spanInputs").unwrap_or_default());
    made.set("output", take("mlflow.spanOutputs").unwrap_or_default());
    let usage = take("mlflow.chat.tokenUsage").unwrap_or_default();
    let cost = take("mlflow.llm.cost").unwrap_or_default();
    for key in ["mlflow.traceRequestId", "mlflow.spanFunctionName"] {
        drop(take(key));
    }
    if let Some(model) = take("mlflow.llm.model") {
        made.set_in("metadata", "model", model);
    }
    for (key, value) in attributes {
        made.set_in("metadata", &key, value);
    }
    let json = |value: Option<f64>| value.map_or(Value::Null, json_number);
    let start = seconds_of_nanos(span, "start_time_unix_nano").or_else(|| seconds_of_nanos(span, "start_time"));
    let end = seconds_of_nanos(span, "end_time_unix_nano").or_else(|| seconds_of_nanos(span, "end_time"));
    made.set("created", start.map(iso_of_seconds));
    made.set_in("metrics", "start", json(start));
    made.set_in("metrics", "end", json(end));
    for (metric, from) in
        [("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("tokens", "total_tokens")]
    {
        made.set_in("metrics", metric, json(number(&usage, from)));
    }
    made.set_in("metrics", "estimated_cost", json(number(&cost, "total_cost")));
    if let Some(error) = error_of(span) {
        made.set("error", error);
    }
    Some(made)
}

/// Returns the error of a span, in the forms of all versions.
fn error_of(span: &Value) -> Option<String> {
    let status = span.get("status").unwrap_or(&Value::Null);
    let code = status.get("code").or_else(|| span.get("status_code"));
    let is_error = match code {
        Some(Value::String(code)) => matches!(code.as_str(), "STATUS_CODE_ERROR" | "ERROR"),
        code => code.and_then(Value::as_i64) == Some(2),
    };
    let message = text(status, "message").or_else(|| text(span, "status_message"));
    is_error.then(|| message.unwrap_or("error").to_owned())
}

/// Returns an id in hexadecimal digits. Newer servers write the bytes in base64, and older ones the digits.
fn hex_id(of: &Value, key: &str) -> Option<String> {
    let given = text(of, key)?;
    let digits = given.strip_prefix("0x").unwrap_or(given);
    if matches!(digits.len(), 16 | 32) && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(digits.to_ascii_lowercase());
    }
    match STANDARD.decode(given) {
        Ok(bytes) if matches!(bytes.len(), 8 | 16) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        _ => Some(given.to_owned()),
    }
}

/// Returns attributes, which are a map of JSON texts in older versions, and a list of typed values in newer ones.
fn attributes(given: &Value) -> Map<String, Value> {
    match given {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), json_text(value))).collect(),
        Value::Array(pairs) => {
            let pairs =
                pairs.iter().filter_map(|pair| Some((text(pair, "key")?.to_owned(), any_value(pair.get("value")?))));
            pairs.map(|(key, value)| (key, parsed(&value))).collect()
        }
        _ => Map::new(),
    }
}

/// Returns the value of a JSON text. Older versions write all values of attributes as such texts.
fn json_text(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    serde_json::from_str(text).unwrap_or_else(|_| value.clone())
}

/// Returns the JSON of a value of OTLP.
fn any_value(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|map| map.iter().next()) else { return Value::Null };
    match kind.as_str() {
        "int_value" | "intValue" => number_of(value).map_or(Value::Null, json_number),
        "array_value" | "arrayValue" => Value::Array(list(value, "values").iter().map(any_value).collect()),
        "kvlist_value" | "kvlistValue" => {
            let pairs = list(value, "values").iter();
            let pairs = pairs.filter_map(|pair| Some((text(pair, "key")?.to_owned(), any_value(pair.get("value")?))));
            Value::Object(pairs.collect())
        }
        _ => value.clone(),
    }
}

/// Adds what is said of the trace to its root.
fn about_trace(span: &mut NeutralSpan, info: &Value) {
    let given = |key: &str| object(info, key).cloned().unwrap_or_default();
    let (tags, metadata) = (given("tags"), given("trace_metadata"));
    for (key, name) in [("mlflow.trace.user", "user_id"), ("mlflow.trace.session", "session_id")] {
        span.set_in("metadata", name, metadata.get(key).cloned().unwrap_or_default());
    }
    let is_own = |key: &str| key.starts_with("mlflow.");
    let own_tags: Map<String, Value> = tags.into_iter().filter(|(key, _)| !is_own(key)).collect();
    let own_metadata: Map<String, Value> = metadata.into_iter().filter(|(key, _)| !is_own(key)).collect();
    span.set_in("metadata", "trace_metadata", own_metadata);
    let experiment = info.pointer("/trace_location/mlflow_experiment/experiment_id").and_then(Value::as_str);
    let about = json!({"trace_id": text(info, "trace_id"), "experiment_id": experiment, "tags": own_tags,
        "state": text(info, "state"), "client_request_id": text(info, "client_request_id")});
    span.set_in("metadata", NAME, about);
}

/// Adds an assessment: a feedback as a score, an expectation as expected output.
fn assessment(trace: &str, root: Option<&str>, assessment: &Value, page: &mut SourcePage) {
    let Some(span) = hex_id(assessment, "span_id").or_else(|| root.map(str::to_owned)) else {
        return page.note("assessments of traces without spans");
    };
    let name = text(assessment, "assessment_name").unwrap_or("assessment");
    let mut details = Map::new();
    for (key, from) in [("comment", "rationale"), ("source", "source"), ("metadata", "metadata")] {
        crate::item::set(&mut details, key, assessment.get(from).cloned().unwrap_or_default());
    }
    let value = match (assessment.get("feedback"), assessment.get("expectation")) {
        (Some(feedback), _) => parsed(feedback.get("value").unwrap_or(&Value::Null)),
        (None, Some(expectation)) => {
            details.insert("is_expectation".to_owned(), Value::Bool(true));
            page.note("expectations of traces, which are in metadata");
            let whole = expectation.pointer("/serialized_value/value").or_else(|| expectation.get("value"));
            Value::from(whole.map(ToString::to_string).unwrap_or_default())
        }
        (None, None) => return page.note("assessments that are neither feedback nor expectations"),
    };
    let value = match value {
        Value::Bool(value) => ScoreValue::Number(f64::from(u8::from(value))),
        Value::Number(number) => ScoreValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(word) => ScoreValue::Text(word),
        Value::Null => return page.note("feedback without a value"),
        other => ScoreValue::Text(other.to_string()),
    };
    page.items.push(NeutralItem::Score(NeutralScore {
        home: ItemHome::Logs,
        target: span_key(trace, &span),
        row_id: None,
        id: id(assessment, "assessment_id").unwrap_or_else(|| name.to_owned()),
        name: name.to_owned(),
        value,
        details,
    }));
}
