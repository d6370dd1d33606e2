//! Handler of `POST /function/sandbox-list`, which lists the evaluators in a bundle (functions.md 8.3).

use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::code::list_evaluators;
use super::responses::refusal_of;
use super::services::CallerServices;

/// Provider whose sandboxes are ordinary bundles.
const PROVIDER: &str = "lambda";

/// Lists the evaluators in the bundle that the body names.
pub async fn list(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let data = bundle_of(&body)?;
    let project = match &body.get("project_id") {
        None | Some(Value::Null) => None,
        Some(id) => {
            let id = id.as_str().and_then(|id| Uuid::parse_str(id).ok());
            Some(id.ok_or_else(|| Refusal::bad("`project_id` has to be a UUID"))?)
        }
    };
    let services = CallerServices::of_request(&call, project, None);
    // The bundle runs while its evaluators are listed.
    services.check_may_define_code()?;
    json(&list_evaluators(&services, data).await.map_err(refusal_of)?)
}

/// Returns the bundle of a request, as functions name theirs.
fn bundle_of(body: &Map<String, Value>) -> Result<Value, Refusal> {
    let spec = body.get("sandbox_spec").cloned().unwrap_or_default();
    match spec["provider"].as_str() {
        Some(PROVIDER) => {}
        Some(other) => {
            return Err(Refusal::bad(format!(
                "`sandbox_spec.provider` is `{other}`; this server lists sandboxes of the provider `{PROVIDER}` only"
            )));
        }
        None => return Err(Refusal::bad(format!("`sandbox_spec.provider` is missing; `{PROVIDER}` is valid"))),
    }
    let named = [body.get("bundle_id"), spec.get("bundle_id"), spec.get("snapshot_ref")];
    let id = named.into_iter().flatten().find_map(Value::as_str);
    let id =
        id.ok_or_else(|| Refusal::bad("`sandbox_spec.snapshot_ref` is missing: send the id of an uploaded bundle"))?;
    let context = body.get("runtime_context").cloned().unwrap_or_default();
    let location = json!({"type": "experiment", "eval_name": "", "position": {"type": "task"}});
    Ok(json!({"type": "bundle", "bundle_id": id, "runtime_context": context, "location": location}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_named_in_one_of_three_places() {
        let id = |body: Value| {
            let found = bundle_of(body.as_object().expect("an object")).map_err(|refusal| refusal.message);
            found.map(|data| data["bundle_id"].as_str().unwrap_or_default().to_owned())
        };
        let spec = |more: Value| {
            let mut spec = json!({"provider": "lambda"});
            spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!({ "sandbox_spec": spec })
        };
        assert_eq!(id(spec(json!({"snapshot_ref": "a"}))).as_deref(), Ok("a"));
        assert_eq!(id(spec(json!({"bundle_id": "b", "snapshot_ref": "a"}))).as_deref(), Ok("b"));
        assert!(id(spec(json!({}))).is_err_and(|why| why.contains("snapshot_ref")));
        assert!(id(json!({"sandbox_spec": {"provider": "modal"}})).is_err_and(|why| why.contains("`modal`")));
        assert!(id(json!({})).is_err_and(|why| why.contains("is missing")));
    }
}
