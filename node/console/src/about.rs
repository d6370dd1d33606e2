//! Handlers for facts about this server, and for the overview of projects.

use std::collections::HashMap;

use assay_node_http::requests::caller::Call;
use assay_node_http::requests::console_session::{is_secure, session_value};
use assay_node_http::requests::origin::is_loopback;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, header};
use assay_node_query_http::{QueryOptions, rows_of};
use assay_node_records::{ListRequest, kinds};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::cluster::is_operator;

/// Parts of the console that this version serves to every user.
const SERVED: [&str; 15] = [
    "signin",
    "home",
    "welcome",
    "logs",
    "trace",
    "object",
    "query",
    "experiments",
    "datasets",
    "monitor",
    "prompts",
    "functions",
    "playgrounds",
    "review",
    "settings",
];
/// Part of the console for operators of the cluster.
const FOR_OPERATORS: &str = "cluster";
/// Upper bound of the number of projects in an overview.
const PROJECTS_MAX: usize = 1000;
/// Upper bound of the size of the rows that an overview reads, in bytes.
const OVERVIEW_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the number of projects whose newest rows are queried individually.
const ONE_BY_ONE_MAX: usize = 64;
/// Number of concurrent queries for newest rows.
const NEWEST_AT_ONCE: usize = 8;
const FIRST_KEY: &str = "The server printed the first key when it was started for the first time.";

/// Returns the sandbox and the interpreters of code functions, or null before the server has tried them.
fn code_functions(edge: &Edge, is_operator: bool) -> Value {
    let Some(runner) = edge.code.runner_if_ready() else { return Value::Null };
    let report = runner.report();
    let interpreters = report.interpreters.iter();
    let interpreters: Vec<Value> =
        interpreters.map(|(runtime, version)| json!({"runtime": runtime, "version": version})).collect();
    // What is missing tells about the machine.
    let (missing, limits) = match is_operator {
        true => (report.missing, Some(report.kernel_limits)),
        false => (Vec::new(), None),
    };
    json!({
        "setting": report.setting,
        "strength": report.strength.map(|strength| strength.name()),
        "interpreters": interpreters,
        "missing": missing,
        "kernel_limits": limits,
    })
}

/// Handles `GET /console/about`.
///
/// Without a session or a credential, the response contains only public facts: no organization names and no counts.
pub async fn about(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let is_private = is_secure(&request, &edge) || host.is_some_and(is_loopback);
    let mut served = SERVED.to_vec();
    let mut code = Value::Null;
    let has_rows = match signed_in(request, &edge).await? {
        Some(call) => {
            let is_operator = is_operator(&edge.console, &call.principal);
            if is_operator {
                served.push(FOR_OPERATORS);
            }
            code = code_functions(&edge, is_operator);
            Some(has_rows(&call).await?)
        }
        None => None,
    };
    let mut sign_in = json!({"key": edge.console.config.enabled});
    if let (Some(rules), true) = (edge.identity.login_rules(), edge.console.config.enabled) {
        sign_in["oidc"] = json!({"issuer": rules.provider});
    }
    json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "node": edge.console.node,
        "cluster": edge.console.cluster,
        "served": served,
        "sign_in": sign_in,
        "first_key": (!edge.identity.has_sessions()).then_some(FIRST_KEY),
        "has_rows": has_rows,
        "secure": is_private,
        "limits": {"body_bytes": edge.config.body_bytes_max},
        "code": code,
    }))
}

/// Returns the call of the request's session or credential, or `None` if it has ended.
///
/// The page of an ended session still needs the ways to sign in.
async fn signed_in(request: HttpRequest, edge: &Edge) -> Result<Option<Call>, Refusal> {
    let has_credential = request.headers().contains_key(header::AUTHORIZATION);
    if !has_credential && session_value(&request, edge)?.is_none() {
        return Ok(None);
    }
    match Call::of(request).await {
        Ok(call) => Ok(Some(call)),
        Err(refusal) if refusal.kind == ErrorKind::Unauthorized => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Returns whether any of the caller's projects has a row.
async fn has_rows(call: &Call) -> Result<bool, Refusal> {
    let mut projects = projects_of(call).await?;
    projects.truncate(PROJECTS_MAX);
    if projects.is_empty() {
        return Ok(false);
    }
    let query = format!("select: id | from: {} spans | limit: 1", source(&projects));
    Ok(!rows_of(call, query, &QueryOptions::newest(OVERVIEW_BYTES_MAX)).await?.is_empty())
}

/// Handles `GET /console/projects`.
///
/// The response lists the projects that the caller may see. Each project has the time of its newest row, and its counts
/// of rows and errors during the last day.
pub async fn projects(call: Call) -> HandlerResult {
    let mut projects = projects_of(&call).await?;
    let is_truncated = projects.len() > PROJECTS_MAX;
    projects.truncate(PROJECTS_MAX);
    let mut overview = Vec::new();
    if !projects.is_empty() {
        let source = source(&projects);
        let counts = "count(1) as n, count(error) as errors, max(created) as newest";
        let rows = format!("from: {source} spans | filter: created >= now() - interval 1 day");
        let day = format!("dimensions: project_id | measures: {counts} | {rows}");
        let day = rows_of(&call, day, &QueryOptions::newest(OVERVIEW_BYTES_MAX)).await?;
        let day = |id: &Value| day.iter().find(|row| row["project_id"] == *id).cloned().unwrap_or_default();
        let idle = projects.iter().map(|project| &project["id"]).filter(|id| day(id)["newest"].is_null());
        let newest = newest(&call, &idle.cloned().collect::<Vec<_>>()).await?;
        overview = projects
            .iter()
            .map(|project| {
                let id = &project["id"];
                let day = day(id);
                let newest = [&day["newest"], newest.get(&id.to_string()).unwrap_or(&Value::Null)];
                json!({
                    "id": id, "name": project["name"],
                    "newest": newest.into_iter().find(|time| !time.is_null()),
                    "rows_24h": day["n"].as_u64().unwrap_or(0), "errors_24h": day["errors"].as_u64().unwrap_or(0),
                })
            })
            .collect();
    }
    json(&json!({"projects": overview, "truncated": is_truncated}))
}

/// Returns the creation time of each project's newest row, by the project's id as JSON.
///
/// A few projects are queried individually, because the storage order yields the newest row at once. For many projects,
/// a single query over all rows is cheaper.
async fn newest(call: &Call, projects: &[Value]) -> Result<HashMap<String, Value>, Refusal> {
    let options = QueryOptions::newest(OVERVIEW_BYTES_MAX);
    if projects.len() > ONE_BY_ONE_MAX {
        let from = format!("from: {} spans", sources_of(projects));
        let rows =
            rows_of(call, format!("dimensions: project_id | measures: max(created) as newest | {from}"), &options)
                .await?;
        return Ok(rows.iter().map(|row| (row["project_id"].to_string(), row["newest"].clone())).collect());
    }
    let asked = projects.iter().map(|id| async {
        let query = format!("select: created | from: {} spans | limit: 1", sources_of(std::slice::from_ref(id)));
        let rows = rows_of(call, query, &options).await?;
        Ok::<_, Refusal>((id.to_string(), rows.first().map(|row| row["created"].clone()).unwrap_or_default()))
    });
    stream::iter(asked).buffer_unordered(NEWEST_AT_ONCE).try_collect().await
}

/// Returns the projects that the caller may see.
///
/// The limit is one more than an overview contains, which reveals a truncation.
async fn projects_of(call: &Call) -> Result<Vec<Value>, Refusal> {
    let request = ListRequest::from_query(vec![("limit".to_owned(), (PROJECTS_MAX + 1).to_string())])?;
    Ok(call.edge.records.list(&call.principal, &kinds::PROJECT, &request).await?)
}

/// Returns the query source for the logs of projects.
fn source(projects: &[Value]) -> String {
    sources_of(&projects.iter().map(|project| project["id"].clone()).collect::<Vec<_>>())
}

/// Returns the query source for the logs of the projects with these ids.
fn sources_of(ids: &[Value]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("'{}'", id.as_str().unwrap_or_default())).collect();
    format!("project_logs({})", ids.join(", "))
}
