//! Exports of OpenTelemetry, and the ingestion endpoint with its answer for each event.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::web::{Payload, StatusCode};
use assay_node_langfuse::{
    Accepted, EventError, EventRows, NewScore, RowFilter, SdkVersion, events_of, experiment_of_trace,
    experiment_target, observation_row, rows_of_event, rows_of_export, score_target,
};
use assay_node_otel::{Export, ParentObject, Rows, encode_response};
use assay_node_rows_http::otlp::exports::take_as;
use assay_node_rows_http::otlp::http::answered;
use assay_node_rows_http::rows::now_micros;
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rows::{LOGS, RowsError, read_all, write, write_each};
use crate::scores::{score_experiments, store};
use crate::wire::{WireCall, bad, with_status};

/// Headers with the name and the version of the SDK.
const SDK_NAME: &str = "x-langfuse-sdk-name";
const SDK_VERSION: &str = "x-langfuse-sdk-version";
/// Upper bound of the events of a batch that the store refuses. A batch with more of them is refused as a whole.
const UNSTORABLE_MAX: usize = 20;

/// Handles `POST /otel/v1/traces`: writes the spans, and adds the scores that arrived before them.
pub(crate) async fn export(call: &WireCall, payload: Payload) -> HandlerResult {
    let header = |name: &str| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let (sdk, project) = (SdkVersion::of(header(SDK_NAME), header(SDK_VERSION)), call.project);
    answered(&call.call, payload, async |body, encoding| {
        let spans: Arc<Mutex<ExportedSpans>> = Arc::default();
        let seen = Arc::clone(&spans);
        let rejected = take_as(&call.call, body, encoding, move |export: Export| {
            let rows = rows_of_export(export, project, sdk);
            if let Ok(mut seen) = seen.lock() {
                *seen = ExportedSpans::of(&rows, project);
            }
            rows
        })
        .await?;
        let spans = spans.lock().map(|mut spans| std::mem::take(&mut *spans)).unwrap_or_default();
        spans.add_scores(call).await?;
        Ok(encode_response(&rejected, encoding))
    })
    .await
}

/// Rows of the observations of an export, their traces, and the experiments of traces.
#[derive(Debug, Default)]
struct ExportedSpans {
    rows: HashSet<String>,
    traces: HashSet<String>,
    experiments: HashMap<String, ParentObject>,
}

impl ExportedSpans {
    fn of(rows: &Rows, project: Uuid) -> ExportedSpans {
        let mut spans = ExportedSpans::default();
        for row in rows.taken.iter().map(|one| &one.row) {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let trace = text("root_span_id");
            spans.rows.insert(text("id"));
            spans.experiments.extend(experiment_of_trace(row, project).map(|object| (trace.clone(), object)));
            spans.traces.insert(trace);
        }
        spans
    }

    /// Writes the values of scores that awaited these observations.
    ///
    /// A score is stored before its observation is looked up, and an observation before its scores are. So one of both
    /// requests finds the other.
    async fn add_scores(self, call: &WireCall) -> Result<(), Refusal> {
        if self.traces.is_empty() {
            return Ok(());
        }
        let traces: Vec<String> = self.traces.into_iter().collect();
        let scores = RowFilter::of_traces(&traces).only_scores();
        let scores = read_all(&call.call, &scores, LOGS, &[call.project]).await?;
        let known = |score: &&Value| observation_row(score).is_some_and(|row| self.rows.contains(&row));
        let targets: Vec<Value> = scores.iter().filter(known).filter_map(score_target).collect();
        write(&call.call, ObjectKind::ProjectLogs, call.project, targets).await?;
        let of_experiments = scores.iter().filter_map(|score| {
            let trace = score["root_span_id"].as_str()?;
            Some((self.experiments.get(trace)?.clone(), experiment_target(score)?))
        });
        score_experiments(call, of_experiments.collect()).await
    }
}

/// Handles `POST /ingestion`: stores each event, and reports those that cannot be stored.
pub(crate) async fn ingest(call: &WireCall, payload: Payload) -> HandlerResult {
    let body = call.object(payload).await?;
    let (now, mut successes, mut errors) = (now_micros(), Vec::new(), Vec::new());
    let (mut scores, mut rows, mut events): (Vec<NewScore>, Vec<Value>, Vec<String>) = Default::default();
    for event in events_of(&body).map_err(bad)? {
        match event.and_then(|event| rows_of_event(&event, now)) {
            Ok(Accepted { id, rows: EventRows::Rows(of_event) }) => {
                events.extend(of_event.iter().map(|_| id.clone()));
                rows.extend(of_event);
                successes.push(id);
            }
            Ok(Accepted { id, rows: EventRows::Score(score) }) => {
                scores.push(*score);
                successes.push(id);
            }
            Ok(Accepted { id, rows: EventRows::Log(line) }) => {
                tracing::info!(line, "a client of Langfuse's API logged");
                successes.push(id);
            }
            Err(error) => errors.push(error),
        }
    }
    errors.extend(store_rows(call, rows, events).await?);
    store(call, scores).await?;
    successes.retain(|id| errors.iter().all(|error| error.id != *id));
    let successes: Vec<Value> = successes.iter().map(|id| json!({"id": id, "status": 201})).collect();
    let errors: Vec<Value> = errors.iter().map(EventError::json).collect();
    with_status(StatusCode::MULTI_STATUS, &json!({"successes": successes, "errors": errors}))
}

/// Writes the rows of events. Returns the errors of the events with rows that the store refuses.
///
/// Rows of the same event are omitted together, and the others are written again. Repeated merges change nothing.
async fn store_rows(
    call: &WireCall,
    mut rows: Vec<Value>,
    mut events: Vec<String>,
) -> Result<Vec<EventError>, Refusal> {
    let mut errors = Vec::new();
    loop {
        match write_each(&call.call, ObjectKind::ProjectLogs, call.project, rows.clone()).await {
            Ok(()) => return Ok(errors),
            Err(RowsError::Whole(refusal)) => return Err(refusal),
            Err(RowsError::Row { why, .. }) if errors.len() == UNSTORABLE_MAX => return Err(Refusal::bad(why)),
            Err(RowsError::Row { row, why }) => {
                let id = events.get(row).cloned().ok_or_else(|| Refusal::internal("an unknown row was refused"))?;
                let keeps: Vec<bool> = events.iter().map(|event| *event != id).collect();
                let mut kept = keeps.iter();
                rows.retain(|_| kept.next().copied().unwrap_or(true));
                events.retain(|event| *event != id);
                errors.push(EventError { id, status: 400, message: why });
            }
        }
    }
}
