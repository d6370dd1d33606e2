//! Prompts with integer versions and labels.

use assay_node_functions::{Definition, Version};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{Payload, StatusCode};
use assay_node_langfuse::{
    NewPrompt, NumberedPage, PromptState, VersionChoice, label_list, new_version, page_meta, prompt_meta, prompt_view,
    with_labels,
};
use assay_node_records::{ListRequest, Pinned, RecordsError};
use assay_storage_model::Xact;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::rows::ROWS_MAX;
use crate::wire::{WireCall, bad, with_status};

/// Upper bound of attempts when concurrent requests change the same prompt.
const ATTEMPTS_MAX: usize = 8;

fn missing() -> Refusal {
    let why = "Prompt not found: no prompt of this name, with this version or label, is visible to this key";
    Refusal::new(ErrorKind::NotFound, why)
}

fn busy() -> Refusal {
    Refusal::new(ErrorKind::Busy, "concurrent requests keep changing this prompt: try again")
}

/// Returns the newest row of a prompt.
async fn newest(call: &WireCall, name: &str) -> Result<Option<Value>, Refusal> {
    let filters = vec![("project_id".to_owned(), call.project_text()), ("slug".to_owned(), name.to_owned())];
    let request = ListRequest { limit: Some(1), filters, ..ListRequest::default() };
    let found = call.edge.functions.list(&call.principal, Definition::Prompt, request, &Version::Newest).await?;
    Ok(found.into_iter().next())
}

fn place_of(row: &Value) -> Result<(Uuid, Xact), Refusal> {
    let id = row["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    let xact = row["_xact_id"].as_str().and_then(|xact| Xact::parse(xact).ok());
    id.zip(xact).ok_or_else(|| Refusal::internal("the row of a prompt has no id or no version"))
}

/// Handles `POST /v2/prompts`: adds a version to a prompt, which is created if it does not exist.
pub(crate) async fn create(call: &WireCall, payload: Payload) -> HandlerResult {
    let new = NewPrompt::of_body(&call.object(payload).await?).map_err(bad)?;
    let project = call.project_text();
    for _ in 0..ATTEMPTS_MAX {
        let before = newest(call, &new.name).await?;
        let (fields, version, labels) = new_version(&new, before.as_ref(), &project).map_err(bad)?;
        let Some(row) = written(call, before.as_ref(), fields).await? else { continue };
        pin(call, &row, version, &labels).await?;
        return with_status(StatusCode::CREATED, &prompt_view(&row, &PromptState::of(&row), version, &project));
    }
    Err(busy())
}

/// Writes a row of a prompt. Returns `None` if another request changed the prompt first.
async fn written(
    call: &WireCall,
    before: Option<&Value>,
    fields: Map<String, Value>,
) -> Result<Option<Value>, Refusal> {
    let functions = &call.edge.functions;
    match before {
        None => {
            let (row, found) = functions.create(&call.principal, Definition::Prompt, fields).await?;
            Ok((!found).then_some(row))
        }
        Some(row) => Ok(functions.replace_at(&call.principal, Definition::Prompt, place_of(row)?, fields).await?),
    }
}

/// Pins a version to the environments with the names of its labels. Labels without an environment need none.
async fn pin(call: &WireCall, newest: &Value, version: u64, labels: &[String]) -> Result<(), Refusal> {
    let (id, _) = place_of(newest)?;
    let Some(xact) = PromptState::of(newest).xact_of(version, newest) else { return Ok(()) };
    let of = Pinned::of("prompt", id)?;
    for label in labels {
        let body = Map::from_iter([("object_version".to_owned(), xact.as_str().into())]);
        match call.edge.records.set_pin(&call.principal, &of, label, body).await {
            Ok(_) | Err(RecordsError::BadRequest(_)) => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(())
}

/// Handles `GET /v2/prompts/{name}`: returns a version, by its number or by its label.
pub(crate) async fn get(call: &WireCall, name: &str) -> HandlerResult {
    let pairs = call.query()?;
    let parameter = |name: &str| pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
    let choice = VersionChoice::of(parameter("version"), parameter("label")).map_err(bad)?;
    let row = newest(call, name).await?.ok_or_else(missing)?;
    let state = PromptState::of(&row);
    let (version, xact) = state.resolve(&choice).ok_or_else(missing)?;
    let row = match xact {
        None => row,
        Some(xact) => {
            let at = Version::of(Some(&xact), None)?;
            call.edge.functions.get(&call.principal, Definition::Prompt, place_of(&row)?.0, &at).await?
        }
    };
    json(&prompt_view(&row, &state, version, &call.project_text()))
}

/// Handles `PATCH /v2/prompts/{name}/versions/{version}`: moves labels to a version.
pub(crate) async fn label(call: &WireCall, name: &str, version: &str, payload: Payload) -> HandlerResult {
    let labels = label_list(&call.object(payload).await?).map_err(bad)?;
    let project = call.project_text();
    for _ in 0..ATTEMPTS_MAX {
        let before = newest(call, name).await?.ok_or_else(missing)?;
        let changed = with_labels(&before, &project, version, &labels).map_err(bad)?;
        let (fields, number) = changed.ok_or_else(missing)?;
        let Some(row) = written(call, Some(&before), fields).await? else { continue };
        pin(call, &row, number, &labels).await?;
        let state = PromptState::of(&row);
        let xact = state.resolve(&VersionChoice::Version(number)).and_then(|(_, xact)| xact);
        let of_version = match xact {
            None => row,
            Some(xact) => {
                let at = Version::of(Some(&xact), None)?;
                call.edge.functions.get(&call.principal, Definition::Prompt, place_of(&row)?.0, &at).await?
            }
        };
        return json(&prompt_view(&of_version, &state, number, &project));
    }
    Err(busy())
}

/// Handles `DELETE /v2/prompts/{name}`: deletes a prompt with all versions.
pub(crate) async fn delete(call: &WireCall, name: &str) -> HandlerResult {
    if call.query()?.iter().any(|(name, value)| (name == "version" || name == "label") && !value.is_empty()) {
        let why = "single versions of a prompt cannot be deleted: versions of this server are immutable. Delete the \
                   whole prompt, or move its labels";
        return Err(Refusal::new(ErrorKind::NotImplemented, why));
    }
    let row = newest(call, name).await?.ok_or_else(missing)?;
    call.edge.functions.delete(&call.principal, Definition::Prompt, place_of(&row)?.0).await?;
    with_status(StatusCode::OK, &json!({"message": "Prompt deleted"}))
}

/// Handles `GET /v2/prompts`: a page of prompts by name, with their versions and labels.
pub(crate) async fn list(call: &WireCall) -> HandlerResult {
    let pairs = call.query()?;
    let page = NumberedPage::of(&pairs).map_err(bad)?;
    let parameter = |name: &str| {
        pairs.iter().find(|(given, value)| given == name && !value.is_empty()).map(|(_, value)| value.as_str())
    };
    let known = ["page", "limit", "name", "label", "tag"];
    if let Some((name, _)) = pairs.iter().find(|(name, value)| !value.is_empty() && !known.contains(&name.as_str())) {
        return Err(Refusal::bad(format!("the parameter `{name}` is not supported by this server")));
    }
    let mut filters = vec![("project_id".to_owned(), call.project_text())];
    filters.extend(parameter("name").map(|name| ("slug".to_owned(), name.to_owned())));
    let request = ListRequest { limit: Some(ROWS_MAX), filters, ..ListRequest::default() };
    let rows = call.edge.functions.list(&call.principal, Definition::Prompt, request, &Version::Newest).await?;
    let has = |meta: &Value, list: &str, wanted: Option<&str>| match wanted {
        None => true,
        Some(wanted) => meta[list].as_array().is_some_and(|items| items.iter().any(|item| item == wanted)),
    };
    let mut found: Vec<Value> = rows
        .iter()
        .map(prompt_meta)
        .filter(|meta| has(meta, "labels", parameter("label")) && has(meta, "tags", parameter("tag")))
        .collect();
    found.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    let total = found.len() as u64;
    json(&json!({"data": page.of_items(found), "meta": page_meta(page, total)}))
}
