//! Handlers for views, which requests address together with their object.

use assay_node_auth::ObjectType;
use assay_node_http::openapi::{Operation, objects, reference};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_records::{ListRequest, RecordsError, kinds::VIEW};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use assay_node_api_descriptions::families::{Family, filtered, paged};

const OBJECT: [&str; 2] = ["object_type", "object_id"];

pub async fn list(call: Call) -> HandlerResult {
    let query = call.query()?;
    named(|name| of_query(&query, name))?;
    let request = ListRequest::from_query(query)?;
    json(&json!({"objects": call.edge.records.list(&call.principal, &VIEW, &request).await?}))
}

pub async fn get(call: Call) -> HandlerResult {
    let query = call.query()?;
    let object = named(|name| of_query(&query, name))?;
    json(&of_object(&call, call.id()?, &object).await?)
}

pub async fn patch(call: Call, payload: Payload) -> HandlerResult {
    let (id, body) = (call.id()?, call.small_body(payload).await?.object().await?);
    of_object(&call, id, &named(|name| of_body(&body, name))?).await?;
    json(&call.edge.records.patch(&call.principal, &VIEW, id, body).await?)
}

pub async fn delete(call: Call, payload: Payload) -> HandlerResult {
    let (id, body) = (call.id()?, call.small_body(payload).await?.object().await?);
    of_object(&call, id, &named(|name| of_body(&body, name))?).await?;
    json(&call.edge.records.delete(&call.principal, &VIEW, id).await?)
}

fn of_query(query: &[(String, String)], name: &str) -> Option<String> {
    query.iter().find(|(named, value)| named == name && !value.is_empty()).map(|(_, value)| value.clone())
}

fn of_body(body: &Map<String, Value>, name: &str) -> Option<String> {
    body.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn named(value: impl Fn(&str) -> Option<String>) -> Result<[String; 2], Refusal> {
    let missing = |name: &str| {
        Refusal::bad(format!("`{name}` is missing: views belong to an object, which the request must name"))
    };
    let [object_type, object_id] = OBJECT.map(|name| value(name).ok_or_else(|| missing(name)));
    let (object_type, object_id) = (object_type?, object_id?);
    if ObjectType::parse(&object_type).is_none() {
        return Err(Refusal::bad(format!("`object_type` should be one of `{}`", ObjectType::WORDS.join("`, `"))));
    }
    let id = Uuid::parse_str(&object_id).map_err(|_| Refusal::bad("`object_id` has to be a UUID"))?;
    Ok([object_type, id.to_string()])
}

/// Returns the view if it belongs to the object.
async fn of_object(call: &Call, id: Uuid, object: &[String; 2]) -> Result<Value, Refusal> {
    let view = call.edge.records.get(&call.principal, &VIEW, id).await?;
    let is_its = OBJECT.iter().zip(object).all(|(name, wanted)| view[*name] == **wanted);
    let missing = || RecordsError::NotFound(format!("no view with the id {id} is visible to this credential"));
    is_its.then_some(view).ok_or_else(|| missing().into())
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let family = Family::new("/v1/view", "view", VIEW.describe());
    let object = |name: &str| family.said.create["properties"][name].clone();
    let (object_type, object_id) = (object("object_type"), object("object_id"));
    let of_object = |operation: Operation| {
        operation.must_ask("object_type", object_type.clone()).must_ask("object_id", object_id.clone())
    };
    let mut change = family.said.patch.clone();
    change["properties"]["object_type"] = object_type.clone();
    change["properties"]["object_id"] = object_id.clone();
    change["required"] = json!(["object_type", "object_id"]);
    let named = json!({"type": "object", "required": ["object_type", "object_id"],
        "properties": {"object_type": object_type.clone(), "object_id": object_id.clone()}});
    let filters: Vec<_> =
        family.said.filters.iter().filter(|(name, _)| !name.starts_with("object_")).cloned().collect();
    let list = Operation::new("get", "/v1/view", "Views", "List views of an object, newest first");
    let list = of_object(filtered(paged(list, None), &filters));
    vec![
        family.create(),
        family.replace(),
        list.with("View", family.said.answer.clone()).answers(objects(&reference("View"))),
        of_object(family.get()),
        family.patch().with("PatchView", change),
        family.delete().takes(named),
    ]
}
