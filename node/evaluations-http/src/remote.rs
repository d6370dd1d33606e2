//! Remote evaluations, which a server of the user runs with its own code (functions.md 8.2).
//!
//! The server is one of those that the project lists in `settings.remote_eval_sources` (F-62). It receives the credential
//! of the caller, which is never stored. The evaluation therefore ends with the process that forwards it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use assay_node_auth::Secret;
use assay_node_dialects::sse::{SseEvent, SseParser};
use assay_node_egress::{
    EgressError, EgressOptions, EgressPurpose, EgressRequest, EgressTimes, EgressUrl, HeaderName, HeaderValue,
};
use assay_node_evaluations::{EvalMetricEntry, EvalParent, EvalRequest, EvalScoreEntry, EvalSummary, EvalTaskProgress};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::web::Bytes;
use assay_node_invocations::InvokedFunction;
use assay_node_records::kinds;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::functions::EvalFunctions;
use crate::jobs::{EvalJobExperiment, EvalJobProgress, EvalJobState};
use crate::launch::EvalClient;
use crate::run::{Driven, EvalLease};

/// Time limits of a remote evaluation.
const EVAL_TIMES: EgressTimes = EgressTimes {
    between_chunks: Duration::from_secs(15 * 60),
    total: Duration::from_secs(24 * 3_600),
    ..EgressTimes::WHOLE
};
/// Upper bound of the bytes that a remote evaluation sends.
const EVAL_BYTES_MAX: u64 = 1 << 30;
/// Upper bound of one event of a remote evaluation, in bytes.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// Upper bound of a list of evaluations, in bytes.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// Upper bound of the summary that is stored, in bytes.
const SUMMARY_BYTES_MAX: usize = 128 << 10;
/// Upper bound of the letters of an error from a remote server.
const ERROR_LETTERS_MAX: usize = 2_000;

/// Server of remote evaluations, with the credential of the caller.
pub struct RemoteServer {
    endpoint: String,
    organization: Uuid,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Remote evaluation that has not started.
#[derive(Debug)]
pub struct RemoteEval {
    server: RemoteServer,
    body: Value,
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Returns whether another server runs a function as an evaluation.
pub fn is_remote(function: &InvokedFunction) -> bool {
    function.function_data["type"] == "remote_eval"
}

impl RemoteServer {
    /// Returns a server that the project lists, for requests on behalf of the caller.
    pub async fn new(
        caller: &Caller,
        client: &EvalClient,
        (project, endpoint): (Uuid, &str),
    ) -> Result<RemoteServer, Refusal> {
        let record = caller.edge.records.get(&caller.principal, &kinds::PROJECT, project).await?;
        if !is_listed(&record["settings"], endpoint) {
            return Err(Refusal::new(
                ErrorKind::Forbidden,
                format!(
                    "the server `{endpoint}` of the remote evaluation is not among `settings.remote_eval_sources` of the \
                     project: add it there"
                ),
            ));
        }
        let authorization = client.authorization.as_ref().ok_or_else(|| {
            Refusal::bad("a remote evaluation passes the credential on: send it in the header `Authorization`")
        })?;
        let headers = headers_of(caller, authorization, &client.origin, project)?;
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        Ok(RemoteServer { endpoint, organization: caller.principal.org.0, headers })
    }

    /// Returns the evaluations of the server by name.
    pub async fn list(&self, caller: &Caller) -> Result<Value, Refusal> {
        let mut request = EgressRequest::get(self.url("list")?);
        request.headers.extend(self.headers.clone());
        let options = EgressOptions { response_bytes_max: LIST_BYTES_MAX, ..self.options(EgressTimes::WHOLE) };
        let response = caller.edge.gateway.egress().send(&request, &options).await.map_err(unreached)?;
        let status = response.status;
        let body = response.body.collect().await.map_err(unreached)?;
        if !status.is_success() {
            return Err(refused(status.as_u16(), &body));
        }
        match serde_json::from_slice(&body) {
            Ok(listed @ Value::Object(_)) => Ok(listed),
            _ => Err(Refusal::new(ErrorKind::BadGateway, "the server of remote evaluations sent no list of them")),
        }
    }

    fn url(&self, path: &str) -> Result<EgressUrl, Refusal> {
        let text = format!("{}/{path}", self.endpoint);
        text.parse().map_err(|why| Refusal::bad(format!("the address of the remote evaluation: {why}")))
    }

    fn options(&self, times: EgressTimes) -> EgressOptions {
        EgressOptions { times, ..EgressOptions::new(EgressPurpose::Evals, self.organization) }
    }
}

impl RemoteEval {
    /// Prepares a remote evaluation. `data` is the member of the request as it was sent.
    pub async fn new(
        caller: &Caller,
        client: &EvalClient,
        (request, functions): (&EvalRequest, &EvalFunctions),
        data: Value,
    ) -> Result<RemoteEval, Refusal> {
        let function = &functions.task.function_data;
        let endpoint = function["endpoint"].as_str().ok_or_else(|| Refusal::bad("`task`: it has no `endpoint`"))?;
        let name = request.name.as_deref().or(function["eval_name"].as_str());
        let name = name.ok_or_else(|| Refusal::bad("`task`: it has no `eval_name`"))?;
        let server = RemoteServer::new(caller, client, (request.project_id, endpoint)).await?;
        server.url("eval")?;
        let mut body = json!({"name": name, "data": data, "project_id": request.project_id, "stream": true});
        let mut parameters = function["parameters"].as_object().cloned().unwrap_or_default();
        parameters.extend(request.parameters.clone());
        // Servers refuse null where a member may be absent.
        if !parameters.is_empty() {
            body["parameters"] = Value::Object(parameters);
        }
        if let Some(name) = &request.experiment.name {
            body["experiment_name"] = name.as_str().into();
        }
        if let Some(parent) = &request.parent {
            body["parent"] = parent_json(parent);
        }
        let scores = functions.plan.iter().zip(&request.scores);
        let scores: Vec<Value> =
            scores.map(|(scorer, named)| json!({"name": scorer.name, "function_id": named.reference})).collect();
        if !scores.is_empty() {
            body["scores"] = scores.into();
        }
        Ok(RemoteEval { server, body })
    }

    /// Forwards the evaluation, and follows its events to the end.
    pub async fn run(
        self,
        lease: &EvalLease,
        outputs: Option<mpsc::Sender<EvalTaskProgress>>,
    ) -> Result<Driven, Refusal> {
        let mut cancelled = lease.cancelled();
        tokio::select! {
            ended = self.exchange(lease, outputs) => ended,
            Ok(_) = cancelled.wait_for(|cancelled| *cancelled) => {
                Ok(Driven::Remote { state: EvalJobState::Cancelled, summary: None })
            }
        }
    }

    async fn exchange(
        &self,
        lease: &EvalLease,
        outputs: Option<mpsc::Sender<EvalTaskProgress>>,
    ) -> Result<Driven, Refusal> {
        let body = serde_json::to_vec(&self.body).map_err(Refusal::internal)?;
        let mut request = EgressRequest::post(self.server.url("eval")?, Bytes::from(body));
        request.headers.extend(self.server.headers.clone());
        let options = EgressOptions { response_bytes_max: EVAL_BYTES_MAX, ..self.server.options(EVAL_TIMES) };
        let mut response = lease.edge.gateway.egress().send(&request, &options).await.map_err(unreached)?;
        if !response.status.is_success() {
            let status = response.status.as_u16();
            let body = response.body.collect().await.map_err(unreached)?;
            return Err(refused(status, &body));
        }
        let mut events = RemoteEvents { lease, outputs, done: 0, failed: None, summary: None };
        let mut parser = SseParser::with_limit(EVENT_BYTES_MAX);
        while let Some(bytes) = response.body.next().await.map_err(unreached)? {
            for event in parser.push(&bytes).map_err(malformed)? {
                events.take(event);
            }
        }
        if let Some(event) = parser.finish().map_err(malformed)? {
            events.take(event);
        }
        events.end()
    }
}

/// Events of a remote evaluation so far.
struct RemoteEvents<'l> {
    lease: &'l EvalLease,
    outputs: Option<mpsc::Sender<EvalTaskProgress>>,
    done: u64,
    failed: Option<String>,
    summary: Option<Value>,
}

impl RemoteEvents<'_> {
    fn take(&mut self, event: SseEvent) {
        let data = || serde_json::from_str::<Value>(&event.data).unwrap_or_default();
        match event.event.as_deref() {
            Some("start") => {
                if let Some(experiment) = experiment_of(&data()) {
                    self.lease.note_experiment(experiment);
                }
            }
            Some("progress") => self.progress(&data()),
            Some("summary") => self.summary = Some(data()),
            // The forms of errors differ between the servers of the SDKs.
            Some("error") => self.failed = Some(error_text(event.data.as_bytes())),
            _ => {}
        }
    }

    fn progress(&mut self, data: &Value) {
        let text = data["data"].as_str().unwrap_or_default();
        let result = match data["event"].as_str() {
            Some("json_delta") => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
            Some("error") => Err(error_text(text.as_bytes())),
            _ => return,
        };
        self.done += 1;
        self.lease.note_progress(EvalJobProgress { cases: self.done, done: self.done, ..EvalJobProgress::default() });
        if let Some(outputs) = &self.outputs {
            let row_id = data["id"].as_str().and_then(|id| Uuid::parse_str(id).ok()).unwrap_or_default();
            let name = data["name"].as_str().unwrap_or_default().to_owned();
            // A slow reader misses outputs, which are in the rows.
            let _ = outputs.try_send(EvalTaskProgress { row_id, name, result });
        }
    }

    fn end(self) -> Result<Driven, Refusal> {
        if let Some(why) = self.failed {
            return Err(Refusal::new(ErrorKind::BadGateway, format!("the remote evaluation failed: {why}")));
        }
        let Some(summary) = self.summary.as_ref().and_then(summary_of) else {
            return Err(Refusal::new(ErrorKind::BadGateway, "the remote evaluation ended without a summary"));
        };
        let summary = json!(summary);
        let is_small = summary.to_string().len() <= SUMMARY_BYTES_MAX;
        Ok(Driven::Remote { state: EvalJobState::Completed, summary: is_small.then_some(summary) })
    }
}

fn is_listed(settings: &Value, endpoint: &str) -> bool {
    let sources = settings["remote_eval_sources"].as_array().into_iter().flatten();
    let mut urls = sources.filter_map(|source| source["url"].as_str());
    urls.any(|url| url.trim_end_matches('/') == endpoint.trim_end_matches('/'))
}

fn headers_of(
    caller: &Caller,
    authorization: &Secret,
    origin: &str,
    project: Uuid,
) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
    let shown = authorization.expose();
    let token = shown.split_once(' ').map_or(shown, |(_, token)| token.trim());
    let project = project.to_string();
    let headers = [
        ("authorization", shown),
        ("x-bt-auth-token", token),
        ("x-bt-org-name", caller.principal.org_name.as_str()),
        ("x-bt-project-id", project.as_str()),
        // The server of the Python SDK takes it as the address of this server.
        ("origin", origin),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    ];
    let header = |(name, value): (&'static str, &str)| {
        let value = HeaderValue::from_bytes(value.as_bytes());
        let value = value.map_err(|_| Refusal::bad(format!("`{name}` of the remote evaluation is no header value")))?;
        Ok((HeaderName::from_static(name), value))
    };
    headers.into_iter().map(header).collect()
}

fn parent_json(parent: &EvalParent) -> Value {
    match parent {
        EvalParent::Slug(slug) => slug.as_str().into(),
        EvalParent::Target(target) => {
            let mut parent = json!({"object_type": target.object_type, "object_id": target.object_id});
            if let Some(span) = &target.span {
                parent["row_ids"] =
                    json!({"id": span.row_id, "span_id": span.span_id, "root_span_id": span.root_span_id});
            }
            if !target.propagated.is_empty() {
                parent["propagated_event"] = Value::Object(target.propagated.clone());
            }
            parent
        }
    }
}

fn unreached(error: EgressError) -> Refusal {
    Refusal::new(ErrorKind::BadGateway, format!("the server of the remote evaluation: {error}"))
}

fn malformed(error: impl fmt::Display) -> Refusal {
    Refusal::new(ErrorKind::BadGateway, format!("the events of the remote evaluation: {error}"))
}

fn refused(status: u16, body: &[u8]) -> Refusal {
    let why = error_text(body);
    Refusal::new(ErrorKind::BadGateway, format!("the server of the remote evaluation answered {status}: {why}"))
}

/// Returns the text of an error, which is JSON of several forms or no JSON.
fn error_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::String(text)) => text,
        Ok(value) => {
            let places = [&value["error"]["message"], &value["error"], &value["message"]];
            let found = places.into_iter().find_map(Value::as_str).map(str::to_owned);
            found.unwrap_or_else(|| value.to_string())
        }
        Err(_) => text.into_owned(),
    };
    text.chars().take(ERROR_LETTERS_MAX).collect()
}

/// Returns a member of a summary, whose names are in camel case.
fn text_of(summary: &Value, camel: &str, snake: &str) -> Option<String> {
    let found = summary[camel].as_str().or(summary[snake].as_str());
    found.map(str::to_owned)
}

fn experiment_of(start: &Value) -> Option<EvalJobExperiment> {
    let id = text_of(start, "experimentId", "experiment_id").and_then(|id| Uuid::parse_str(&id).ok())?;
    Some(EvalJobExperiment { id, name: text_of(start, "experimentName", "experiment_name")? })
}

fn summary_of(sent: &Value) -> Option<EvalSummary> {
    let text = |camel: &str, snake: &str| text_of(sent, camel, snake);
    Some(EvalSummary {
        project_name: text("projectName", "project_name")?,
        experiment_name: text("experimentName", "experiment_name")?,
        project_url: text("projectUrl", "project_url").unwrap_or_default(),
        experiment_url: text("experimentUrl", "experiment_url").unwrap_or_default(),
        comparison_experiment_name: text("comparisonExperimentName", "comparison_experiment_name"),
        scores: Some(entries::<EvalScoreEntry>(&sent["scores"])),
        metrics: Some(entries::<EvalMetricEntry>(&sent["metrics"])),
    })
}

/// Returns the readable entries of scores or metrics. Absent counts are zero.
fn entries<T: DeserializeOwned>(sent: &Value) -> BTreeMap<String, T> {
    let members = sent.as_object().into_iter().flatten();
    let entry = |(name, value): (&String, &Value)| {
        let mut entry = Map::from_iter([("improvements".to_owned(), 0.into()), ("regressions".to_owned(), 0.into())]);
        entry.insert("unit".to_owned(), "".into());
        let given = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        entry.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        Some((name.clone(), serde_json::from_value(Value::Object(entry)).ok()?))
    };
    members.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_servers_are_called() {
        let settings = json!({"remote_eval_sources": [{"url": "http://a:8300/", "name": "a"}, {"url": "http://b"}]});
        assert!(is_listed(&settings, "http://a:8300") && is_listed(&settings, "http://b/"));
        for other in ["http://a:8301", "http://a:8300/x", "http://b.example", ""] {
            assert!(!is_listed(&settings, other), "{other}");
        }
        assert!(!is_listed(&Value::Null, "http://a"));
    }

    #[test]
    fn errors_of_all_servers_are_texts() {
        for (sent, text) in [
            ("\"no\"", "no"),
            ("{\"error\": \"no\"}", "no"),
            ("{\"error\": {\"message\": \"no\", \"status\": 400}}", "no"),
            ("{\"message\": \"no\", \"stack\": \"x\"}", "no"),
            ("no JSON", "no JSON"),
            ("{\"a\":1}", "{\"a\":1}"),
        ] {
            assert_eq!(error_text(sent.as_bytes()), text, "{sent}");
        }
    }

    #[test]
    fn a_summary_in_camel_case_becomes_one_of_ours() {
        let sent = json!({
            "projectName": "p", "experimentName": "e", "projectUrl": "u", "experimentUrl": "v",
            "scores": {"s": {"name": "s", "score": 0.5, "diff": null}, "odd": {"score": "x"}},
            "metrics": {"duration": {"name": "duration", "metric": 1.5, "unit": "s", "improvements": 2}},
        });
        let summary = summary_of(&sent).expect("a summary");
        let score = &summary.scores.expect("scores")["s"];
        assert_eq!((score.score, score.diff, score.improvements), (0.5, None, 0));
        assert_eq!(summary.metrics.expect("metrics")["duration"].improvements, 2);
        assert_eq!(summary_of(&json!({"projectName": "p"})), None);
        let start = json!({"experimentId": Uuid::nil(), "experimentName": "e"});
        assert_eq!(experiment_of(&start), Some(EvalJobExperiment { id: Uuid::nil(), name: "e".into() }));
    }
}
