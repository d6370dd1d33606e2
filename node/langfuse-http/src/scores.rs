//! Scores: rows of their own, and values on traces and observations.

use std::collections::{HashMap, HashSet};

use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{Payload, StatusCode};
use assay_node_langfuse::{
    NewScore, NumberedPage, RowFilter, ScoreRows, ScoreShape, experiment_of_trace, experiment_target, page_meta,
    score_removal, score_view,
};
use assay_node_otel::ParentObject;
use assay_node_rows_http::otlp::exports::object_of;
use assay_node_rows_http::rows::now_micros;
use assay_storage_model::ObjectKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::rows::{LOGS, by_ids, deletion, page_after, page_of, write};
use crate::wire::{WireCall, bad, not_found, with_status};

/// Upper bound of the scores of a request.
const SCORES_MAX: usize = 1_000;
/// Upper bound of the reasons in the answer to a request with several scores.
const REASONS_MAX: usize = 100;

/// Stores scores, and their values on traces, observations and rows of experiments.
pub(crate) async fn store(call: &WireCall, scores: Vec<NewScore>) -> Result<(), Refusal> {
    if scores.is_empty() {
        return Ok(());
    }
    let (mut rows, mut targets, mut waiting, mut traces) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for score in scores {
        let ScoreRows { score, target, awaits } = score.rows();
        traces.extend(
            target
                .as_ref()
                .and_then(|_| Some((score["root_span_id"].as_str()?.to_owned(), experiment_target(&score)?))),
        );
        rows.push(score);
        match (target, awaits) {
            (Some(target), None) => targets.push(target),
            (Some(target), Some(row)) => waiting.push((row, target)),
            (None, _) => {}
        }
    }
    rows.extend(targets);
    write(&call.call, ObjectKind::ProjectLogs, call.project, rows).await?;
    // The scores are stored now, so that an observation or an experiment that arrives later finds them.
    let awaited: HashSet<String> =
        waiting.iter().map(|(row, _)| row).chain(traces.iter().map(|(row, _)| row)).cloned().collect();
    let awaited: Vec<String> = awaited.into_iter().collect();
    let there = by_ids(&call.call, (LOGS, &[call.project]), &awaited).await?;
    let there: HashMap<&str, &Value> = there.iter().filter_map(|row| Some((row["id"].as_str()?, row))).collect();
    let values: Vec<Value> =
        waiting.into_iter().filter(|(row, _)| there.contains_key(row.as_str())).map(|(_, target)| target).collect();
    write(&call.call, ObjectKind::ProjectLogs, call.project, values).await?;
    let of_experiments = traces.into_iter().filter_map(|(trace, target)| {
        let row = there.get(trace.as_str())?;
        Some((experiment_of_trace(row, call.project)?, target))
    });
    score_experiments(call, of_experiments.collect()).await
}

/// Writes the values of scores to rows of experiments.
pub(crate) async fn score_experiments(call: &WireCall, targets: Vec<(ParentObject, Value)>) -> Result<(), Refusal> {
    let mut by_object: HashMap<ParentObject, Vec<Value>> = HashMap::new();
    for (object, target) in targets {
        by_object.entry(object).or_default().push(target);
    }
    for (object, rows) in by_object {
        let (kind, id) = object_of(&call.call, &object).await?;
        write(&call.call, kind, id, rows).await?;
    }
    Ok(())
}

fn read_score(body: &Map<String, Value>) -> Result<NewScore, Refusal> {
    NewScore::of_body(body, &Uuid::new_v4().to_string(), now_micros()).map_err(bad)
}

/// Handles `POST /scores`: stores a score, or a list of scores.
pub(crate) async fn create(call: &WireCall, payload: Payload) -> HandlerResult {
    let body = call.packed_body(payload).await?.json().await?;
    match &body.value {
        Value::Object(score) => {
            let score = read_score(score)?;
            let id = score.id.clone();
            store(call, vec![score]).await?;
            json(&json!({"id": id}))
        }
        Value::Array(items) if items.len() <= SCORES_MAX => create_all(call, items).await,
        Value::Array(items) => {
            Err(Refusal::bad(format!("the request has {} scores; the maximum is {SCORES_MAX}", items.len())))
        }
        _ => Err(Refusal::bad("the body has to be a score or a list of scores")),
    }
}

async fn create_all(call: &WireCall, items: &[Value]) -> HandlerResult {
    let (mut scores, mut errors) = (Vec::new(), Vec::new());
    for (place, item) in items.iter().enumerate() {
        let score = item.as_object().ok_or_else(|| Refusal::bad("it is not an object")).and_then(read_score);
        match score {
            Ok(score) => scores.push(score),
            Err(refusal) => errors.push(json!({"message": format!("score {place}: {}", refusal.message)})),
        }
    }
    let (accepted, rejected) = (scores.len(), errors.len());
    store(call, scores).await?;
    match rejected {
        0 => with_status(StatusCode::ACCEPTED, &json!({"message": "Accepted"})),
        _ => {
            errors.truncate(REASONS_MAX);
            let body = json!({"accepted": accepted, "rejected": rejected, "errors": errors});
            with_status(StatusCode::MULTI_STATUS, &body)
        }
    }
}

async fn row_of(call: &WireCall, id: &str) -> Result<Value, Refusal> {
    let rows = by_ids(&call.call, (LOGS, &[call.project]), &[format!("score-{id}")]).await?;
    rows.into_iter().next().ok_or_else(|| not_found("the score"))
}

pub(crate) async fn get(call: &WireCall, id: &str) -> HandlerResult {
    let row = row_of(call, id).await?;
    let view = score_view(&row, &call.project_text(), ScoreShape::Older);
    json(&view.ok_or_else(|| not_found("the score"))?)
}

/// Handles `DELETE /scores/{id}`: deletes a score, and its value on its target.
pub(crate) async fn delete(call: &WireCall, id: &str) -> HandlerResult {
    let row = row_of(call, id).await?;
    let rows = score_removal(&row).into_iter().chain([deletion(&row["id"])]).collect();
    write(&call.call, ObjectKind::ProjectLogs, call.project, rows).await?;
    with_status(StatusCode::ACCEPTED, &json!({"message": "Score deletion request accepted"}))
}

pub(crate) async fn list(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let filter = RowFilter::scores().with_score_parameters(&pairs).map_err(bad)?;
    let (rows, total) = page_of(&call.call, &filter, (LOGS, &[call.project]), page).await?;
    let data: Vec<Value> =
        rows.iter().filter_map(|row| score_view(row, &call.project_text(), ScoreShape::Older)).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

/// Handles `GET /v3/scores`, whose pages have cursors.
pub(crate) async fn list_v3(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let limit = NumberedPage::of(&pairs).map_err(bad)?.limit;
    let filter = RowFilter::scores().with_score_parameters(&pairs).map_err(bad)?;
    let cursor = pairs.iter().find(|(name, _)| name == "cursor").map(|(_, cursor)| cursor.clone());
    let page = page_after(&call.call, &filter, call.project, (limit, cursor)).await?;
    let data: Vec<Value> =
        page.rows.iter().filter_map(|row| score_view(row, &call.project_text(), ScoreShape::V3)).collect();
    json(&json!({"data": data, "meta": {"limit": limit, "cursor": page.cursor}}))
}
