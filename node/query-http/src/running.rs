//! Handlers of `/v1/query`: running queries, and their cancel.
//!
//! Users see and cancel their own queries. Owners of an organization see and cancel all of its queries. For everybody
//! else a query does not exist.

use assay_node_auth::Principal;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_query::{RunningQuery, RunningQuestion};
use assay_node_records::is_owner;
use assay_storage_model::event::format_micros;
use serde_json::{Value, json};

const MICROS_PER_SECOND: f64 = 1e6;

/// Handles `GET /v1/query/running`: lists the running queries of all nodes, oldest first.
pub async fn list(call: Call) -> HandlerResult {
    let found = call.edge.queries.running(question(&call.principal)).await;
    let now = call.edge.queries.now();
    json(&json!({
        "queries": found.queries.iter().map(|query| shown(query, now)).collect::<Vec<_>>(),
        "silent_nodes": found.silent.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}

/// Handles `POST /v1/query/{id}/cancel`: cancels a query on the node that runs it.
pub async fn cancel(call: Call) -> HandlerResult {
    let id = call.id()?;
    let found = call.edge.queries.cancel(id, question(&call.principal)).await?;
    let query = found.ok_or_else(|| Refusal::not_found(format!("the running query {id}")))?;
    json(&shown(&query, call.edge.queries.now()))
}

/// Returns the question about all queries that a caller may see.
fn question(who: &Principal) -> RunningQuestion {
    let user = (!is_owner(who)).then_some(who.user);
    RunningQuestion { organization: who.org.0, user, id: None, cancel: false }
}

fn shown(query: &RunningQuery, now: i64) -> Value {
    let seconds = now.saturating_sub(query.started).max(0) as f64 / MICROS_PER_SECOND;
    json!({
        "id": query.id, "user_id": query.owner.user, "kind": query.kind, "phase": query.phase, "query": query.text,
        "objects": query.objects, "started": format_micros(query.started), "seconds": seconds,
        "rows_scanned": query.rows_scanned, "memory_bytes": query.memory_bytes, "is_cancelled": query.is_cancelled,
    })
}
