//! Handlers for simulated users of the project that the path names.

use assay_node_http::openapi::{Operation, uuid};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_records::{ListRequest, kinds};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::records::created;
use assay_node_api_descriptions::families::Family;

fn project(call: &Call) -> Result<Uuid, Refusal> {
    let text = call.request.match_info().get("project_id").unwrap_or_default();
    Uuid::parse_str(text).map_err(|_| Refusal::bad("the project's id in the path has to be a UUID"))
}

pub async fn create(call: Call, payload: Payload) -> HandlerResult {
    let project = project(&call)?;
    let mut body = call.small_body(payload).await?.object().await?;
    body.insert("project_id".into(), project.to_string().into());
    let made = call.edge.records.create(&call.principal, &kinds::SIMULATED_USER, body).await?;
    created(&made.object, made.found_existing)
}

pub async fn list(call: Call) -> HandlerResult {
    let mut request = ListRequest::from_query(call.query()?)?;
    request.filters.retain(|(name, _)| name != "project_id");
    request.filters.push(("project_id".into(), project(&call)?.to_string()));
    json(&json!({"objects": call.edge.records.list(&call.principal, &kinds::SIMULATED_USER, &request).await?}))
}

pub async fn get(call: Call) -> HandlerResult {
    json(&of_project(&call).await?)
}

pub async fn patch(call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    of_project(&call).await?;
    json(&call.edge.records.patch(&call.principal, &kinds::SIMULATED_USER, id, body).await?)
}

pub async fn delete(call: Call) -> HandlerResult {
    of_project(&call).await?;
    json(&call.edge.records.delete(&call.principal, &kinds::SIMULATED_USER, call.id()?).await?)
}

/// Returns the simulated user, or refuses one of another project.
///
/// Simulated users never change their project, so the check remains valid.
async fn of_project(call: &Call) -> Result<Value, Refusal> {
    let (project, id) = (project(call)?, call.id()?);
    let found = call.edge.records.get(&call.principal, &kinds::SIMULATED_USER, id).await?;
    if found["project_id"] != project.to_string() {
        let said = format!("no simulated_user with the id {id} is visible to this credential");
        return Err(Refusal::new(ErrorKind::NotFound, said));
    }
    Ok(found)
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let mut said = kinds::SIMULATED_USER.describe();
    for part in ["properties", "required"] {
        match &mut said.create[part] {
            Value::Object(fields) => drop(fields.remove("project_id")),
            Value::Array(names) => names.retain(|name| name != "project_id"),
            _ => {}
        }
    }
    said.filters.retain(|(name, _)| *name != "project_id");
    let family = Family::new("/v1/project/{project_id}/simulated_user", "simulated_user", said);
    let all = [family.create(), family.list(), family.get(), family.patch(), family.delete()];
    all.into_iter().map(|operation| operation.part("project_id", uuid())).collect()
}
