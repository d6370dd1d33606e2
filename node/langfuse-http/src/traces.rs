//! Traces, observations and sessions.

use std::collections::{BTreeSet, HashMap};

use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_langfuse::{
    NumberedPage, RowFilter, observation_v2_view, observation_view, page_meta, session_view, trace_view,
    trace_with_rows,
};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};

use crate::rows::{LOGS, ROWS_MAX, by_ids, deletion, page_after, page_of, read, read_all, write};
use crate::wire::{WireCall, bad, not_found};

/// Handles `GET /traces`: a page of traces, with the ids of their observations and scores.
pub(crate) async fn list(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let filter = RowFilter::traces().with_trace_parameters(&pairs).map_err(bad)?;
    let (roots, total) = page_of(&call.call, &filter, (LOGS, &[call.project]), page).await?;
    let ids: Vec<String> = roots.iter().filter_map(|row| row["root_span_id"].as_str()).map(str::to_owned).collect();
    let mut of_traces: HashMap<String, Vec<Value>> = HashMap::new();
    if !ids.is_empty() {
        let light = RowFilter::of_traces(&ids).light(LOGS, &[call.project], ROWS_MAX);
        let rows = read(&call.call, light).await?;
        if rows.len() as u64 >= ROWS_MAX {
            let why = format!("the traces have {ROWS_MAX} observations or more: ask for fewer with `limit`");
            return Err(Refusal::bad(why));
        }
        for row in rows {
            let trace = row["root_span_id"].as_str().unwrap_or_default().to_owned();
            of_traces.entry(trace).or_default().push(row);
        }
    }
    let project = call.project_text();
    let data: Vec<Value> = roots
        .iter()
        .map(|root| {
            let mut view = trace_view(root, &project);
            let rows = of_traces.remove(root["root_span_id"].as_str().unwrap_or_default()).unwrap_or_default();
            if let Some(mut totals) = trace_with_rows(&rows, &project, false) {
                for name in ["latency", "totalCost", "observations", "scores"] {
                    view[name] = totals[name].take();
                }
            }
            view
        })
        .collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

async fn rows_of_trace(call: &WireCall, id: &str) -> Result<Vec<Value>, Refusal> {
    read_all(&call.call, &RowFilter::of_traces(&[id.to_owned()]), LOGS, &[call.project]).await
}

/// Handles `GET /traces/{id}`: a trace with its observations and scores.
pub(crate) async fn get(call: &WireCall, id: &str) -> HandlerResult {
    let rows = rows_of_trace(call, id).await?;
    let trace = trace_with_rows(&rows, &call.project_text(), true);
    json(&trace.ok_or_else(|| not_found("the trace"))?)
}

/// Handles `DELETE /traces/{id}`: deletes all rows of a trace.
pub(crate) async fn delete(call: &WireCall, id: &str) -> HandlerResult {
    let rows = rows_of_trace(call, id).await?;
    if rows.is_empty() {
        return Err(not_found("the trace"));
    }
    let rows = rows.iter().map(|row| deletion(&row["id"])).collect();
    write(&call.call, ObjectKind::ProjectLogs, call.project, rows).await?;
    json(&json!({"message": "Trace deleted successfully"}))
}

pub(crate) async fn observations(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let filter = RowFilter::observations().with_observation_parameters(&pairs).map_err(bad)?;
    let (rows, total) = page_of(&call.call, &filter, (LOGS, &[call.project]), page).await?;
    let data: Vec<Value> = rows.iter().map(|row| observation_view(row, &call.project_text())).collect();
    json(&json!({"data": data, "meta": page_meta(page, total)}))
}

/// Handles `GET /v2/observations`, whose pages have cursors, and whose items have fields of their traces.
pub(crate) async fn observations_v2(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let limit = NumberedPage::of(&pairs).map_err(bad)?.limit;
    let filter = RowFilter::observations().with_observation_parameters(&pairs).map_err(bad)?;
    let cursor = pairs.iter().find(|(name, _)| name == "cursor").map(|(_, cursor)| cursor.clone());
    let page = page_after(&call.call, &filter, call.project, (limit, cursor)).await?;
    let traces: BTreeSet<String> =
        page.rows.iter().filter_map(|row| row["root_span_id"].as_str()).map(str::to_owned).collect();
    let traces: Vec<String> = traces.into_iter().collect();
    let traces = by_ids(&call.call, (LOGS, &[call.project]), &traces).await?;
    let trace_of = |row: &Value| traces.iter().find(|trace| trace["id"] == row["root_span_id"]);
    let project = call.project_text();
    let data: Vec<Value> = page.rows.iter().map(|row| observation_v2_view(row, &project, trace_of(row))).collect();
    json(&json!({"data": data, "meta": {"cursor": page.cursor}}))
}

pub(crate) async fn observation(call: &WireCall, id: &str) -> HandlerResult {
    let query = RowFilter::observations().span(id).rows(LOGS, &[call.project], 1);
    let rows = read(&call.call, query).await?;
    let row = rows.first().ok_or_else(|| not_found("the observation"))?;
    json(&observation_view(row, &call.project_text()))
}

/// Handles `GET /sessions/{id}`: a session with its traces.
pub(crate) async fn session(call: &WireCall, id: &str) -> HandlerResult {
    let traces = read_all(&call.call, &RowFilter::traces().session(id), LOGS, &[call.project]).await?;
    json(&session_view(id, &traces, &call.project_text()).ok_or_else(|| not_found("the session"))?)
}
