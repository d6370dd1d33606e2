//! Handlers of `/console/jobs`, which change every row that a query selects.
//!
//! All batches select rows at one version, so the job's own writes do not affect its selection. Each batch checks the
//! caller's permissions again.

use std::time::Duration;

use assay_node_auth::{Permission, Principal};
use assay_node_btql::parse;
use assay_node_bulk_jobs::{BulkJob, JobOwner, RunningJob};
use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::wait::Wait;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, Payload, spawn};
use assay_node_query_http::{QueryOptions, RowsPage, rows_of, rows_page};
use assay_node_reviews::{ASSIGNMENTS, DEFAULT_LIST, REVIEW_LISTS};
use assay_storage_model::ObjectKind;
use assay_storage_model::event::{SentItem, format_micros};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{now_micros, searched, send, write_to};

/// Number of rows in one batch.
const BATCH_ROWS: u64 = 500;
/// Number of rows in one batch of copies, whose rows are read whole.
const COPIED_ROWS: u64 = 100;
/// Upper bound of the number of rows in one job.
const ROWS_MAX: u64 = 5_000_000;
const BYTES_MAX: usize = 64 << 20;
/// Upper bound of the time that one batch waits in queues.
const BATCH_WAIT: Duration = Duration::from_secs(60);
/// Upper bound of the attempts for one batch while nodes are busy.
const TRIES_MAX: u32 = 5;
const TAGS_MAX: usize = 100;
const USERS_MAX: usize = 100;

/// Action that a job performs on each row.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Tag { add: Vec<String>, remove: Vec<String> },
    Assign { users: Vec<Uuid> },
    Score { name: String, value: Option<f64> },
    Delete,
    AddToDataset { dataset: Uuid },
}

/// Checked request for a job.
#[derive(Clone, Debug, PartialEq)]
struct JobRequest {
    kind: ObjectKind,
    object: Uuid,
    filter: String,
    /// Whether the filter selects traces.
    ///
    /// A deletion then affects all rows of a trace, and any other action affects its root row.
    is_of_traces: bool,
    action: Action,
}

/// Handles `POST /console/jobs`: starts a job.
pub async fn start(call: Call, payload: Payload) -> HandlerResult {
    let request = JobRequest::read(&call.small_body(payload).await?.object().await?)?;
    for permission in request.permissions() {
        call.edge.records.object(&call.principal, request.kind, request.object, *permission).await?;
    }
    if let Action::AddToDataset { dataset } = request.action {
        call.edge.records.object(&call.principal, ObjectKind::Dataset, dataset, Permission::Update).await?;
    }
    // This query refuses an invalid filter before the job starts.
    let first = rows_of(&call, request.query(None, 1, "id"), &QueryOptions::newest(BYTES_MAX)).await;
    first?;
    let job = call.edge.console.jobs.begin(owner(&call.principal), request.words(), Uuid::new_v4(), now_micros);
    let job = job.map_err(|why| Refusal::new(ErrorKind::Busy, why.to_string()))?;
    let id = job.id();
    let (edge, principal) = (call.edge.clone(), call.principal.clone());
    drop(spawn(run(edge, principal, request, job)));
    let found = call.edge.console.jobs.look(owner(&call.principal), id, false).await;
    let found = found.map_err(|why| Refusal::internal(why.to_string()))?;
    json(&found.as_ref().map(job_json))
}

/// Handles `GET /console/jobs`: returns the caller's jobs.
pub async fn list(call: Call) -> HandlerResult {
    let jobs = call.edge.console.jobs.list(owner(&call.principal)).await;
    json(&json!({"jobs": jobs.iter().map(job_json).collect::<Vec<_>>()}))
}

/// Handles `GET /console/jobs/{id}`: returns one of the caller's jobs.
pub async fn get(call: Call) -> HandlerResult {
    look(call, false).await
}

/// Handles `DELETE /console/jobs/{id}`: cancels a job. Changes that the job made remain.
pub async fn cancel(call: Call) -> HandlerResult {
    look(call, true).await
}

async fn look(call: Call, cancel: bool) -> HandlerResult {
    let id = call.id()?;
    let found = call.edge.console.jobs.look(owner(&call.principal), id, cancel).await;
    let found = found.map_err(|why| Refusal::new(ErrorKind::Unavailable, why.to_string()))?;
    json(&job_json(&found.ok_or_else(|| Refusal::not_found(format!("the job {id}")))?))
}

fn owner(who: &Principal) -> JobOwner {
    JobOwner { org: who.org, user: who.user }
}

fn job_json(job: &BulkJob) -> Value {
    json!({
        "id": job.id, "what": job.what, "state": job.state, "matched": job.matched, "done": job.done,
        "started": format_micros(job.started), "ended": job.ended.map(format_micros), "error": job.error,
    })
}

/// Runs a job and records its result.
async fn run(edge: Data<Edge>, principal: Principal, request: JobRequest, job: RunningJob) {
    let result = Runner { edge, principal, request: &request, job: &job }.run().await;
    if let Err(why) = &result {
        tracing::warn!(job = %job.id(), why = why.message, "a job over a query failed");
    }
    job.end(result.map_err(|why| why.message));
}

struct Runner<'j> {
    edge: Data<Edge>,
    principal: Principal,
    request: &'j JobRequest,
    job: &'j RunningJob,
}

impl Runner<'_> {
    /// Returns the caller with a new time limit, which applies to one batch.
    fn caller(&self) -> Caller {
        let wait = Wait::new(Instant::now() + BATCH_WAIT);
        Caller { edge: self.edge.clone(), principal: self.principal.clone(), wait, temporary: None, invocation: None }
    }

    async fn run(&self) -> Result<(), Refusal> {
        let count = rows_of(&self.caller(), self.request.count(), &QueryOptions::newest(BYTES_MAX)).await?;
        let matched = count.first().and_then(|row| row["n"].as_u64()).unwrap_or(0);
        self.job.set_matched(matched);
        if matched > ROWS_MAX {
            let said = format!("the query selects {matched} rows, and one job changes at most {ROWS_MAX}; narrow it");
            return Err(Refusal::bad(said));
        }
        let (columns, batch) = match self.request.action {
            Action::AddToDataset { .. } => ("id, input, output, expected, metadata, tags", COPIED_ROWS),
            _ => ("id", BATCH_ROWS),
        };
        let (mut cursor, mut version) = (None, None);
        loop {
            if self.job.is_cancelled() {
                return Ok(());
            }
            let query = self.request.query(cursor.as_deref(), batch, columns);
            let options = QueryOptions { version: version.clone(), ..QueryOptions::newest(BYTES_MAX) };
            let RowsPage { rows, cursor: next, version: read_at, .. } =
                rows_page(&self.caller(), query, &options).await?;
            version = Some(read_at);
            if !rows.is_empty() {
                self.write_again(&rows).await?;
                self.job.add_done(rows.len() as u64);
            }
            match next {
                Some(next) if !rows.is_empty() => cursor = Some(next),
                _ => return Ok(()),
            }
        }
    }

    /// Writes a batch, and tries again while a node is busy. A repeated write is harmless, since writes are idempotent.
    async fn write_again(&self, rows: &[Value]) -> Result<(), Refusal> {
        let mut tries = 1;
        loop {
            match self.write(rows).await {
                Err(why) if tries < TRIES_MAX && is_passing(why.kind) => {
                    tokio::time::sleep(Duration::from_secs(u64::from(tries))).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    async fn write(&self, rows: &[Value]) -> Result<(), Refusal> {
        let caller = self.caller();
        let request = self.request;
        let (kind, object) = match request.action {
            Action::AddToDataset { dataset } => (ObjectKind::Dataset, dataset),
            _ => (request.kind, request.object),
        };
        let rows: Vec<SentItem> = rows.iter().filter_map(|row| request.written(row)).map(SentItem::from).collect();
        let write = write_to(&caller, kind, object, searched(rows), None).await?;
        send(&caller, vec![write]).await?;
        Ok(())
    }
}

/// Returns whether a refusal is temporary.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::TooLate)
}

impl JobRequest {
    fn read(body: &Map<String, Value>) -> Result<JobRequest, Refusal> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("object_type") {
            "project_logs" => ObjectKind::ProjectLogs,
            "experiment" => ObjectKind::Experiment,
            "dataset" => ObjectKind::Dataset,
            other => {
                let said = format!("`object_type` is `{}`; use project_logs, experiment or dataset", shortened(other));
                return Err(Refusal::bad(said));
            }
        };
        let object = Uuid::parse_str(text("object_id"))
            .map_err(|_| Refusal::bad("`object_id` has to be the id of an object, which is a UUID"))?;
        let is_of_traces = match text("shape") {
            "spans" | "" => false,
            "traces" => true,
            other => {
                return Err(Refusal::bad(format!("`shape` is `{}`; use traces or spans", shortened(other))));
            }
        };
        let filter = text("filter").trim().to_owned();
        let action = body.get("action").and_then(Value::as_object);
        let action = Action::read(action.ok_or_else(|| Refusal::bad("`action` has to be an object with a `kind`"))?)?;
        let is_dataset = kind == ObjectKind::Dataset;
        if is_dataset && (is_of_traces || matches!(action, Action::Score { .. })) {
            return Err(Refusal::bad("rows of a dataset have no traces and no scores"));
        }
        let request = JobRequest { kind, object, filter, is_of_traces, action };
        request.check()?;
        Ok(request)
    }

    /// Checks that the filter is a single expression, because it becomes part of the job's queries.
    fn check(&self) -> Result<(), Refusal> {
        if self.filter.is_empty() {
            return Ok(());
        }
        let parsed = parse(&Value::String(format!("select: id | from: dataset('x') | filter: {}", self.filter)));
        let parsed = parsed.map_err(|why| Refusal::bad(format!("`filter`: {why}")))?;
        if parsed.query.limit.is_some() || parsed.query.cursor.is_some() {
            return Err(Refusal::bad("`filter` has to be one expression, without other clauses"));
        }
        Ok(())
    }

    /// Returns the permissions that the job needs on its object. Every job reads rows before it changes them.
    fn permissions(&self) -> &'static [Permission] {
        match self.action {
            Action::AddToDataset { .. } => &[Permission::Read],
            _ => &[Permission::Read, Permission::Update],
        }
    }

    fn shape(&self) -> &'static str {
        match (self.is_of_traces, &self.action) {
            (false, _) => "spans",
            (true, Action::Delete) => "traces",
            (true, _) => "summary",
        }
    }

    fn from(&self) -> String {
        let filter = if self.filter.is_empty() { String::new() } else { format!(" | filter: ({}\n)", self.filter) };
        let shape = if self.kind == ObjectKind::Dataset { "" } else { self.shape() };
        format!("from: {}('{}') {shape}{filter}", self.kind.name(), self.object)
    }

    fn query(&self, cursor: Option<&str>, limit: u64, columns: &str) -> Value {
        let cursor = cursor.map(|cursor| format!(" | cursor: '{cursor}'")).unwrap_or_default();
        format!("select: {columns} | {} | limit: {limit}{cursor}", self.from()).into()
    }

    fn count(&self) -> Value {
        format!("measures: count(1) as n | {}", self.from()).into()
    }

    /// Returns the item to write for a row.
    fn written(&self, row: &Value) -> Option<Value> {
        let id = row["id"].as_str()?;
        let mut merge = json!({"id": id, "_is_merge": true, "_audit_source": "app"});
        match &self.action {
            Action::Tag { add, remove } => {
                if !add.is_empty() {
                    merge["tags"] = json!(add);
                }
                if !remove.is_empty() {
                    merge["_array_delete"] = json!([{"path": ["tags"], "delete": remove}]);
                }
            }
            Action::Assign { users } => {
                merge["metadata"] = json!({ASSIGNMENTS: users});
                merge["_merge_paths"] = json!([["metadata", ASSIGNMENTS]]);
                if !users.is_empty() {
                    merge["metadata"][REVIEW_LISTS] = json!({DEFAULT_LIST: {"status": "PENDING"}});
                }
            }
            Action::Score { name, value } => merge["scores"] = json!({name: value}),
            Action::Delete => merge = json!({"id": id, "_object_delete": true, "_audit_source": "app"}),
            Action::AddToDataset { dataset } => {
                // The id of the copy derives from the row, so repeated copies do not create duplicates.
                let copy = Uuid::new_v5(dataset, id.as_bytes());
                let expected = [&row["expected"], &row["output"]].into_iter().find(|value| !value.is_null());
                merge = json!({
                    "id": copy, "input": row["input"], "expected": expected, "metadata": row["metadata"],
                    "tags": row["tags"],
                    "origin": {"object_type": self.kind.name(), "object_id": self.object, "id": id},
                });
            }
        }
        Some(merge)
    }

    /// Returns a description of the job for its owner.
    fn words(&self) -> String {
        match &self.action {
            Action::Tag { add, remove } => match (add.is_empty(), remove.is_empty()) {
                (false, true) => format!("Add the tags {}", add.join(", ")),
                (true, _) => format!("Remove the tags {}", remove.join(", ")),
                (false, false) => format!("Add the tags {}, remove {}", add.join(", "), remove.join(", ")),
            },
            Action::Assign { users } if users.is_empty() => "Assign to nobody".to_owned(),
            Action::Assign { users } => format!("Assign to {} people", users.len()),
            Action::Score { name, .. } => format!("Set the score {name}"),
            Action::Delete => "Delete".to_owned(),
            Action::AddToDataset { .. } => "Add to a dataset".to_owned(),
        }
    }
}

impl Action {
    fn read(action: &Map<String, Value>) -> Result<Action, Refusal> {
        let list = |name: &str, most: usize| -> Result<Vec<String>, Refusal> {
            let items = match action.get(name) {
                None | Some(Value::Null) => return Ok(Vec::new()),
                Some(Value::Array(items)) if items.len() <= most => items,
                Some(_) => {
                    return Err(Refusal::bad(format!("`action.{name}` has to be a list of at most {most} texts")));
                }
            };
            let texts = items.iter().map(|item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            texts.ok_or_else(|| Refusal::bad(format!("`action.{name}` has to be a list of texts")))
        };
        let id = |name: &str| {
            let found = action.get(name).and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
            found.ok_or_else(|| Refusal::bad(format!("`action.{name}` has to be an id, which is a UUID")))
        };
        match action.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "tag" => {
                let (add, remove) = (list("add", TAGS_MAX)?, list("remove", TAGS_MAX)?);
                if add.is_empty() && remove.is_empty() {
                    return Err(Refusal::bad("`action` has neither tags to add nor tags to remove"));
                }
                Ok(Action::Tag { add, remove })
            }
            "assign" => {
                let users = list("users", USERS_MAX)?;
                let users: Result<Vec<Uuid>, _> = users.iter().map(|user| Uuid::parse_str(user)).collect();
                Ok(Action::Assign { users: users.map_err(|_| Refusal::bad("`action.users` has to be a list of ids"))? })
            }
            "score" => {
                let name = action.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| Refusal::bad("`action.name` has to be the name of a score"))?.to_owned();
                let value = match action.get("value") {
                    None | Some(Value::Null) => None,
                    Some(value) => {
                        Some(value.as_f64().filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| {
                            Refusal::bad("`action.value` has to be a number between 0 and 1, or null")
                        })?)
                    }
                };
                Ok(Action::Score { name, value })
            }
            "delete" => Ok(Action::Delete),
            "add_to_dataset" => Ok(Action::AddToDataset { dataset: id("dataset_id")? }),
            other => Err(Refusal::bad(format!(
                "`action.kind` is `{}`; use tag, assign, score, delete or add_to_dataset",
                shortened(other)
            ))),
        }
    }
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let maybe = json!({"type": "string", "nullable": true});
    let count = json!({"type": "integer", "minimum": 0});
    let closed = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let job = closed(json!({
        "id": uuid(), "what": text(),
        "state": {"type": "string", "enum": ["running", "done", "failed", "cancelled"]},
        "matched": {"type": "integer", "minimum": 0, "nullable": true}, "done": count,
        "started": {"type": "string", "format": "date-time"},
        "ended": {"type": "string", "format": "date-time", "nullable": true}, "error": maybe,
    }));
    let takes = json!({"type": "object", "required": ["object_type", "object_id", "action"], "properties": {
        "object_type": {"type": "string", "enum": ["project_logs", "experiment", "dataset"]}, "object_id": uuid(),
        "filter": text(), "shape": {"type": "string", "enum": ["traces", "spans"]}, "action": action_schema(),
    }});
    let of = |method: &'static str, path: &str, summary: &str| Operation::new(method, path, "Console", summary);
    vec![
        of("get", "/console/jobs", "List the caller's jobs over queries")
            .answers(closed(json!({"jobs": {"type": "array", "items": job}}))),
        of("post", "/console/jobs", "Change all rows that a query selects")
            .takes(takes)
            .answers(job.clone())
            .also_refuses(&[ErrorKind::NotFound]),
        of("get", "/console/jobs/{id}", "Get the progress of a job").of("job").answers(job.clone()),
        of("delete", "/console/jobs/{id}", "Cancel a job").of("job").answers(job),
    ]
}

/// Describes the action of a job. Its kind determines the other members.
fn action_schema() -> Value {
    let some = || json!({"type": "string", "minLength": 1});
    let list = |of: Value, most: usize| json!({"type": "array", "items": of, "maxItems": most, "nullable": true});
    let filled = |most: usize| json!({"type": "array", "items": some(), "minItems": 1, "maxItems": most});
    let variant = |kind: &str, required: &[&str], mut fields: Value| {
        fields["kind"] = json!({"type": "string", "enum": [kind]});
        let required = [&["kind"][..], required].concat();
        json!({"type": "object", "required": required, "properties": fields})
    };
    let tags = || list(some(), TAGS_MAX);
    let share = json!({"type": "number", "minimum": 0, "maximum": 1, "nullable": true});
    json!({"anyOf": [
        variant("tag", &["add"], json!({"add": filled(TAGS_MAX), "remove": tags()})),
        variant("tag", &["remove"], json!({"add": tags(), "remove": filled(TAGS_MAX)})),
        variant("assign", &[], json!({"users": list(uuid(), USERS_MAX)})),
        variant("score", &["name"], json!({"name": some(), "value": share})),
        variant("delete", &[], json!({})),
        variant("add_to_dataset", &["dataset_id"], json!({"dataset_id": uuid()})),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_an_action_says_what_is_read() {
        let read = |action: Value| Action::read(action.as_object().expect("an object")).is_ok();
        let variants = action_schema()["anyOf"].as_array().cloned().expect("a list");
        let of_kind = |kind: &str| variants.iter().filter(|one| one["properties"]["kind"]["enum"][0] == kind).count();
        assert_eq!(["tag", "assign", "score", "delete", "add_to_dataset"].map(of_kind), [2, 1, 1, 1, 1]);
        for (at, list) in [(0, "add"), (1, "remove")] {
            assert_eq!(variants[at]["required"], json!(["kind", list]));
            assert_eq!(variants[at]["properties"][list]["minItems"], 1);
            assert!(!read(json!({"kind": "tag", list: []})), "{list}");
            assert!(read(json!({"kind": "tag", list: ["x"]})), "{list}");
        }
        assert!(read(json!({"kind": "assign", "users": null})) && !read(json!({"kind": "score"})));
    }
}
