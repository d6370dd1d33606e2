//! Handlers for the registration of objects by older SDKs and JavaScript SDKs.
//!
//! Requests name projects by name, and responses contain the project with the object. Records and permissions are the
//! same as at `/v1`.

use assay_node_evaluations_http::experiments;
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::kind_of;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json, json_builder};
use assay_node_http::web::Payload;
use assay_node_records::{Kind as RecordKind, ListRequest, kinds};
use assay_storage_model::Xact;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::records::FOUND_EXISTING;
use crate::records::snapshots;

type Body = Map<String, Value>;

/// Name of a project that is registered without one.
pub(crate) const PROJECT_NAME: &str = "Global";
/// Upper bound of the ids in one request.
const OBJECTS_MAX: usize = assay_node_records::IDS_MAX;
/// Number of random digits in a generated name.
const SUFFIX_DIGITS: usize = 8;
/// Fields of a registration that become fields of the experiment, as in `POST /v1/experiment`.
const OF_EXPERIMENT: [&str; 13] = [
    "description",
    "repo_info",
    "base_exp_id",
    "base_experiment",
    "ancestor_commits",
    "dataset_id",
    "dataset_version",
    "internal_metadata",
    "parameters_id",
    "parameters_version",
    "public",
    "metadata",
    "tags",
];

/// Handles `POST /api/project/register`.
pub async fn project(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let (project, found) = named_project(&call, &body).await?;
    registered("project", &project, None, found)
}

/// Handles `GET /api/project`: returns a project by its id, or else by its name.
pub async fn one_project(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let given = |name: &str| asked.iter().rev().find(|(known, value)| known == name && !value.is_empty());
    if let Some((_, id)) = given("id") {
        let id = Uuid::parse_str(id).map_err(|_| Refusal::bad("`id` has to be a UUID"))?;
        return json(&call.edge.records.get(&call.principal, &kinds::PROJECT, id).await?);
    }
    let Some((_, name)) = given("name").or_else(|| given("project_name")) else {
        return Err(Refusal::bad("the request names no project: add `id` or `name`"));
    };
    let found = listed(&call, &kinds::PROJECT, vec![("project_name".into(), name.clone())]).await?;
    let missing = || Refusal::new(ErrorKind::NotFound, "no project with this name is visible to this credential");
    json(found.first().ok_or_else(missing)?)
}

/// Handles `POST /api/project/get`: returns an array of the projects found.
pub async fn projects(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let mut filters = Vec::new();
    push(&mut filters, &body, "project_name", &["project_name", "name"])?;
    push(&mut filters, &body, "org_name", &["org_name"])?;
    json(&by_id_or(&call, &kinds::PROJECT, &body, filters).await?)
}

/// Handles `POST /api/experiment/register`: creates an experiment, or returns an existing one if `update` is set.
pub async fn experiment(call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let update = flag(&body, "update")?;
    let (project, _) = project_of(&call, &body).await?;
    let mut wanted: Body = OF_EXPERIMENT.iter().filter_map(|name| body.remove_entry(*name)).collect();
    wanted.insert("project_id".into(), project["id"].clone());
    wanted.insert("ensure_new".into(), (!update).into());
    if let Some(name) = text(&body, "experiment_name")? {
        wanted.insert("name".into(), name.into());
    }
    let made = call.edge.records.create(&call.principal, &kinds::EXPERIMENT, wanted).await?;
    registered("experiment", &made.object, Some(&project), made.found_existing)
}

/// Handles `POST /api/experiment/get`: returns an array of the experiments found.
pub async fn experiments(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let mut filters = Vec::new();
    let is_named = push(&mut filters, &body, "experiment_name", &["experiment_name", "name"])?;
    let is_placed = in_project(&mut filters, &body)?;
    let is_said = names_ids(&body) || is_named && is_placed;
    if !is_said {
        return Err(Refusal::bad(
            "the request names no experiment: add `id`, or `experiment_name` and one of `project_name` and \
             `project_id`",
        ));
    }
    json(&by_id_or(&call, &kinds::EXPERIMENT, &body, filters).await?)
}

/// Handles `POST /api/base_experiment/get_id`: returns the base experiment, or 400 if there is none.
pub async fn base_experiment(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let id = needed_id(&body, "id")?;
    let base = experiments::base(&call, id).await?;
    let (id, name) = base.ok_or_else(|| Refusal::bad("the experiment has no base experiment"))?;
    json(&json!({"base_exp_id": id, "base_exp_name": name}))
}

/// Handles `POST /api/dataset/register`: returns the dataset of the name, or creates one.
///
/// Generates a name if the request has none.
pub async fn dataset(call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let (project, _) = project_of(&call, &body).await?;
    let name = match text(&body, "dataset_name")? {
        Some(name) => name.to_owned(),
        None => format!("dataset-{}", &Uuid::new_v4().simple().to_string()[..SUFFIX_DIGITS]),
    };
    let mut wanted: Body =
        ["description", "metadata", "tags"].iter().filter_map(|name| body.remove_entry(*name)).collect();
    wanted.insert("project_id".into(), project["id"].clone());
    wanted.insert("name".into(), name.into());
    let made = call.edge.records.create(&call.principal, &kinds::DATASET, wanted).await?;
    registered("dataset", &made.object, Some(&project), made.found_existing)
}

/// Handles `POST /api/dataset/get`: returns an array of the datasets found.
pub async fn datasets(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let mut filters = Vec::new();
    let is_named = push(&mut filters, &body, "dataset_name", &["dataset_name", "name"])?;
    let is_placed = in_project(&mut filters, &body)?;
    if !(names_ids(&body) || is_named || is_placed) {
        return Err(Refusal::bad("the request names no dataset: add `id`, or `dataset_name` and the project"));
    }
    json(&by_id_or(&call, &kinds::DATASET, &body, filters).await?)
}

/// Handles `POST /api/dataset_snapshot/register`. With `update`, replaces an existing snapshot of the name.
pub async fn snapshot(call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let update = flag(&body, "update")?;
    let mut wanted: Body =
        ["dataset_id", "xact_id", "description"].iter().filter_map(|name| body.remove_entry(*name)).collect();
    let name = text(&body, "dataset_snapshot_name")?
        .ok_or_else(|| Refusal::bad("`dataset_snapshot_name` is missing or empty"))?;
    wanted.insert("name".into(), name.into());
    let made = snapshots::make(&call, wanted.clone()).await?;
    if made.found_existing && update {
        let moved = snapshots::replaced(&call, wanted).await?;
        return registered("dataset_snapshot", &moved, None, true);
    }
    registered("dataset_snapshot", &made.object, None, made.found_existing)
}

/// Handles `POST /api/dataset_snapshot/get`: returns an array.
pub async fn list_snapshots(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    snapshots_like(&call, &body).await
}

/// Handles `GET /api/dataset_snapshot/get`, which takes the same fields as query parameters.
pub async fn snapshots_by_query(call: Call) -> HandlerResult {
    let given = call.query()?.into_iter().filter(|(_, value)| !value.is_empty());
    let mut body: Body = given.map(|(name, value)| (name, Value::String(value))).collect();
    if let Some(limit) = text(&body, "limit")?.map(str::to_owned) {
        let wrong = |_| Refusal::bad("`limit` has to be a whole number, 0 or more");
        body.insert("limit".into(), limit.parse::<u64>().map_err(wrong)?.into());
    }
    snapshots_like(&call, &body).await
}

async fn snapshots_like(call: &Call, body: &Body) -> HandlerResult {
    let mut filters = Vec::new();
    for (filter, names) in
        [("dataset_id", &["dataset_id"][..]), ("name", &["name", "dataset_snapshot_name"]), ("xact_id", &["xact_id"])]
    {
        push(&mut filters, body, filter, names)?;
    }
    // Records store the version in decimal digits, and requests may use either form.
    if let Some((_, version)) = filters.iter_mut().find(|(name, _)| name == "xact_id") {
        *version = Xact::parse(version).map_err(|why| Refusal::bad(format!("`xact_id`: {why}")))?.to_string();
    }
    let limit = match body.get("limit") {
        None | Some(Value::Null) => None,
        Some(limit) => Some(limit.as_u64().ok_or_else(|| Refusal::bad("`limit` has to be a whole number, 0 or more"))?),
    };
    let ids = id_of(body, "id")?.into_iter().collect();
    let request = ListRequest { limit, starting_after: id_of(body, "cursor")?, ids, filters, ..ListRequest::default() };
    json(&call.edge.records.list(&call.principal, &kinds::DATASET_SNAPSHOT, &request).await?)
}

/// Handles `POST /api/<kind>/patch_id`: patches the record whose id is in the body.
pub async fn patch(kind: &'static RecordKind, call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let id = needed_id(&body, "id")?;
    body.remove("id");
    json(&call.edge.records.patch(&call.principal, kind, id, body).await?)
}

/// Handles `POST /api/<kind>/delete_id`.
pub async fn delete(kind: &'static RecordKind, call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    json(&call.edge.records.delete(&call.principal, kind, needed_id(&body, "id")?).await?)
}

/// Handles `POST /api/project_automation/register`. With `update`, replaces an existing automation of the name.
pub async fn automation(call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let update = flag(&body, "update")?;
    let mut wanted: Body =
        ["project_id", "description", "config"].iter().filter_map(|name| body.remove_entry(*name)).collect();
    let name = text(&body, "project_automation_name")?
        .ok_or_else(|| Refusal::bad("`project_automation_name` is missing or empty"))?;
    wanted.insert("name".into(), name.into());
    let made = call.edge.records.create(&call.principal, &kinds::PROJECT_AUTOMATION, wanted.clone()).await?;
    if made.found_existing && update {
        let replaced = call.edge.records.replace(&call.principal, &kinds::PROJECT_AUTOMATION, wanted).await?;
        return registered("project_automation", &replaced, None, true);
    }
    registered("project_automation", &made.object, None, made.found_existing)
}

/// Handles `POST /api/organization/patch_id`.
pub async fn patch_organization(call: Call, payload: Payload) -> HandlerResult {
    let mut body = read(&call, payload).await?;
    let id = needed_id(&body, "id")?;
    body.remove("id");
    json(&call.edge.identity.patch_organization(&call.principal, id, body).await?)
}

/// Handles `POST /api/self/get_object_info`: returns the names of objects and their projects.
///
/// Omits objects that the caller may not see.
pub async fn object_info(call: Call, payload: Payload) -> HandlerResult {
    let body = read(&call, payload).await?;
    let kind = match text(&body, "object_type")? {
        Some("project" | "project_log" | "project_logs") => &kinds::PROJECT,
        Some("experiment") => &kinds::EXPERIMENT,
        Some("dataset") => &kinds::DATASET,
        Some(other) => {
            let said = format!("`object_type` is `{}`; it should be project, experiment or dataset", shortened(other));
            return Err(Refusal::bad(said));
        }
        None => return Err(Refusal::bad("`object_type` is missing")),
    };
    let ids = ids(&body, "object_ids")?;
    let mut infos = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(found) = experiments::visible(&call, kind, id).await? else { continue };
        let project = match found["project_id"].as_str().and_then(|id| Uuid::parse_str(id).ok()) {
            Some(project) => experiments::visible(&call, &kinds::PROJECT, project)
                .await?
                .map_or_else(|| json!({"id": project, "name": project}), |found| named(&found)),
            None => named(&found),
        };
        infos.push(json!({
            "object_id": id, "object_name": found["name"], "object_type": kind.name(),
            "parent_cols": {
                "organization": {"id": call.principal.org, "name": call.principal.org_name}, "project": project,
            },
        }));
    }
    json(&infos)
}

fn named(record: &Value) -> Value {
    json!({"id": record["id"], "name": record["name"]})
}

/// Returns the response with an object under the name of its kind, and with its project if given.
fn registered(name: &str, object: &Value, project: Option<&Value>, found_existing: bool) -> HandlerResult {
    let mut said = json!({"found_existing": found_existing});
    said[name] = object.clone();
    if let Some(project) = project {
        said["project"] = project.clone();
    }
    let mut answer = json_builder();
    if found_existing {
        answer.insert_header((FOUND_EXISTING, "true"));
    }
    Ok(answer.body(serde_json::to_vec(&said).map_err(Refusal::internal)?))
}

/// Returns the project of a registered object. If the caller may not see the project, its id serves as the name.
async fn project_of(call: &Call, body: &Body) -> Result<(Value, bool), Refusal> {
    // These fields must be valid even if `project_id` makes them redundant.
    let (_, _) = (id_of(body, "org_id")?, text(body, "org_name")?);
    text(body, "project_name")?;
    match id_of(body, "project_id")? {
        Some(id) => {
            let found = experiments::visible(call, &kinds::PROJECT, id).await?;
            Ok((found.unwrap_or_else(|| json!({"id": id, "name": id})), true))
        }
        None => named_project(call, body).await,
    }
}

/// Returns the project that the body names, and creates it if it does not exist.
async fn named_project(call: &Call, body: &Body) -> Result<(Value, bool), Refusal> {
    let mut wanted = Body::from_iter([("name".to_owned(), text(body, "project_name")?.unwrap_or(PROJECT_NAME).into())]);
    for name in ["org_id", "org_name"] {
        if let Some(value) = body.get(name) {
            wanted.insert(name.into(), value.clone());
        }
    }
    let made = call.edge.records.create(&call.principal, &kinds::PROJECT, wanted).await?;
    Ok((made.object, made.found_existing))
}

/// Adds a filter from the first of these fields that has a text. Returns whether it added one.
fn push(filters: &mut Vec<(String, String)>, body: &Body, filter: &str, names: &[&str]) -> Result<bool, Refusal> {
    for name in names {
        if let Some(value) = text(body, name)? {
            filters.push((filter.to_owned(), value.to_owned()));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds filters for the project and its organization. Returns whether the body names a project.
///
/// An id takes precedence over a name.
fn in_project(filters: &mut Vec<(String, String)>, body: &Body) -> Result<bool, Refusal> {
    let (id, name) = (id_of(body, "project_id")?, text(body, "project_name")?);
    let placed = id.map(|id| ("project_id", id.to_string())).or(name.map(|name| ("project_name", name.to_owned())));
    filters.extend(placed.map(|(filter, value)| (filter.to_owned(), value)));
    push(filters, body, "org_name", &["org_name"])?;
    Ok(id.is_some() || name.is_some())
}

/// Returns the records with the given ids, or all records that match the filters.
async fn by_id_or(
    call: &Call,
    kind: &'static RecordKind,
    body: &Body,
    filters: Vec<(String, String)>,
) -> Result<Vec<Value>, Refusal> {
    match body.get("id") {
        Some(Value::Array(_)) => {
            let request = ListRequest { ids: ids(body, "id")?, filters, ..ListRequest::default() };
            Ok(call.edge.records.list(&call.principal, kind, &request).await?)
        }
        _ => match id_of(body, "id")? {
            Some(id) => Ok(experiments::visible(call, kind, id).await?.into_iter().collect()),
            None => listed(call, kind, filters).await,
        },
    }
}

async fn listed(call: &Call, kind: &'static RecordKind, filters: Vec<(String, String)>) -> Result<Vec<Value>, Refusal> {
    let request = ListRequest { filters, ..ListRequest::default() };
    Ok(call.edge.records.list(&call.principal, kind, &request).await?)
}

async fn read(call: &Call, payload: Payload) -> Result<Body, Refusal> {
    call.small_body(payload).await?.object().await
}

/// Returns the text of a field, or `None` if it is missing, null or empty.
fn text<'b>(body: &'b Body, name: &str) -> Result<Option<&'b str>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(Refusal::bad(format!("`{name}` is {}; it should be a string", kind_of(other)))),
    }
}

fn flag(body: &Body, name: &str) -> Result<bool, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(other) => Err(Refusal::bad(format!("`{name}` is {}; it should be true or false", kind_of(other)))),
    }
}

/// Returns whether the body has an `id` that is neither null nor empty.
fn names_ids(body: &Body) -> bool {
    body.get("id").is_some_and(|id| !id.is_null() && id != "")
}

fn id_of(body: &Body, name: &str) -> Result<Option<Uuid>, Refusal> {
    let wrong = |_| Refusal::bad(format!("`{name}` has to be a UUID"));
    text(body, name)?.map(|text| Uuid::parse_str(text).map_err(wrong)).transpose()
}

fn needed_id(body: &Body, name: &str) -> Result<Uuid, Refusal> {
    id_of(body, name)?.ok_or_else(|| Refusal::bad(format!("`{name}` is missing")))
}

fn ids(body: &Body, name: &str) -> Result<Vec<Uuid>, Refusal> {
    let Some(Value::Array(items)) = body.get(name) else {
        return Err(Refusal::bad(format!("`{name}` has to be an array of UUIDs")));
    };
    if items.len() > OBJECTS_MAX {
        return Err(Refusal::bad(format!("`{name}` has {} ids; the maximum is {OBJECTS_MAX}", items.len())));
    }
    let read = |(place, item): (usize, &Value)| {
        let id = item.as_str().and_then(|text| Uuid::parse_str(text).ok());
        id.ok_or_else(|| Refusal::bad(format!("`{name}[{place}]` has to be a UUID")))
    };
    items.iter().enumerate().map(read).collect()
}
