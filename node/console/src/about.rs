//! What the console asks for beside the API: facts about this server, and an overview of projects.

use assay_node_http::requests::caller::Call;
use assay_node_http::requests::console_session::{is_secure, session_value};
use assay_node_http::requests::origin::is_loopback;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, header};
use assay_node_query_http::{QueryOptions, rows_of};
use assay_node_records::{ListRequest, kinds};
use serde_json::{Value, json};

/// Parts of the console that this version has.
const SERVED: [&str; 10] =
    ["signin", "home", "welcome", "logs", "trace", "object", "query", "experiments", "datasets", "monitor"];
/// Upper bound of the projects of an overview.
const PROJECTS_MAX: usize = 1000;
/// Upper bound of the bytes of an overview's rows.
const OVERVIEW_BYTES_MAX: usize = 1 << 20;
const FIRST_KEY: &str = "The server printed the first key when it was started for the first time.";

/// `GET /console/about`. Without a session it has nothing that is not public: no name of an organization, and no count.
pub async fn about(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let is_private = is_secure(&request, &edge) || host.is_some_and(is_loopback);
    let has_rows = match signed_in(request, &edge).await? {
        Some(call) => Some(has_rows(&call).await?),
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
        "served": SERVED,
        "sign_in": sign_in,
        "first_key": (!edge.identity.has_sessions()).then_some(FIRST_KEY),
        "has_rows": has_rows,
        "secure": is_private,
        "limits": {"body_bytes": edge.config.body_bytes_max},
    }))
}

/// Returns the call of a session. One that has ended is none: its page asks how to sign in again.
async fn signed_in(request: HttpRequest, edge: &Edge) -> Result<Option<Call>, Refusal> {
    if session_value(&request, edge)?.is_none() {
        return Ok(None);
    }
    match Call::of(request).await {
        Ok(call) => Ok(Some(call)),
        Err(refusal) if refusal.kind == ErrorKind::Unauthorized => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Returns whether a project of the organization has a row.
async fn has_rows(call: &Call) -> Result<bool, Refusal> {
    let mut projects = projects_of(call).await?;
    projects.truncate(PROJECTS_MAX);
    if projects.is_empty() {
        return Ok(false);
    }
    let query = format!("select: id | from: {} spans | limit: 1", source(&projects));
    Ok(!rows_of(call, query, &QueryOptions::newest(OVERVIEW_BYTES_MAX)).await?.is_empty())
}

/// `GET /console/projects`: the projects that the caller may see, with their newest row, and rows and errors of a day.
pub async fn projects(call: Call) -> HandlerResult {
    let mut projects = projects_of(&call).await?;
    let is_truncated = projects.len() > PROJECTS_MAX;
    projects.truncate(PROJECTS_MAX);
    let mut overview = Vec::new();
    if !projects.is_empty() {
        let source = source(&projects);
        let newest = format!("dimensions: project_id | measures: max(created) as newest | from: {source} spans");
        let day = format!(
            "dimensions: project_id | measures: count(1) as n, count(error) as errors | from: {source} spans | \
             filter: created >= now() - interval 1 day"
        );
        let newest = rows_of(&call, newest, &QueryOptions::newest(OVERVIEW_BYTES_MAX)).await?;
        let day = rows_of(&call, day, &QueryOptions::newest(OVERVIEW_BYTES_MAX)).await?;
        let find = |rows: &[Value], id: &Value| rows.iter().find(|row| row["project_id"] == *id).cloned();
        overview = projects
            .iter()
            .map(|project| {
                let id = &project["id"];
                let day = find(&day, id).unwrap_or_default();
                json!({
                    "id": id, "name": project["name"],
                    "newest": find(&newest, id).unwrap_or_default()["newest"],
                    "rows_24h": day["n"].as_u64().unwrap_or(0), "errors_24h": day["errors"].as_u64().unwrap_or(0),
                })
            })
            .collect();
    }
    json(&json!({"projects": overview, "truncated": is_truncated}))
}

/// Returns the caller's projects, at most one more than an overview has.
async fn projects_of(call: &Call) -> Result<Vec<Value>, Refusal> {
    let request = ListRequest::from_query(vec![("limit".to_owned(), (PROJECTS_MAX + 1).to_string())])?;
    Ok(call.edge.records.list(&call.principal, &kinds::PROJECT, &request).await?)
}

/// Returns the logs of projects as a source of a query.
fn source(projects: &[Value]) -> String {
    let ids: Vec<String> =
        projects.iter().map(|project| format!("'{}'", project["id"].as_str().unwrap_or_default())).collect();
    format!("project_logs({})", ids.join(", "))
}
