//! Environment variables of code functions (functions.md 5.5).

use std::collections::BTreeMap;

use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::InvokeError;
use assay_node_records::{ListRequest, RecordsError, kinds, mechanism};
use uuid::Uuid;

use super::super::services::error_of;

/// Category of variables for code.
const FOR_CODE: &str = "env_var";
/// Path of the AI gateway below the origin of the API.
const GATEWAY_PATH: &str = "/v1/proxy";
/// Variables that name the API of this cluster.
const API_VARIABLES: [&str; 3] = ["BRAINTRUST_API_URL", "BRAINTRUST_APP_URL", "BRAINTRUST_PROXY_URL"];

/// Returns the variables of the organization, the project and the function that the caller may use (F-43).
///
/// The narrower ones win. Keys of model providers are not given to code.
pub(super) async fn variables(
    caller: &Caller,
    project: Option<Uuid>,
    function: Option<Uuid>,
) -> Result<BTreeMap<String, String>, InvokeError> {
    let organization = Some(caller.principal.org.0);
    let owners = [("organization", organization), ("project", project), ("function", function)];
    let mut variables = BTreeMap::new();
    for (object_type, id) in owners.into_iter().filter_map(|(object_type, id)| Some((object_type, id?))) {
        let found = variables_of(caller, (object_type, id)).await;
        variables.extend(found.map_err(|why| error_of(Refusal::from(why)))?);
    }
    Ok(variables)
}

async fn variables_of(caller: &Caller, (object_type, id): (&str, Uuid)) -> Result<Vec<(String, String)>, RecordsError> {
    let (records, who) = (&caller.edge.records, &caller.principal);
    let filters = vec![("object_type".into(), object_type.into()), ("object_id".into(), id.to_string())];
    let listed = records.listed(who, &kinds::ENV_VAR, &ListRequest { filters, ..ListRequest::default() }).await?;
    let mut found = Vec::with_capacity(listed.len());
    for record in &listed {
        let body = mechanism::read_body(record)?;
        if mechanism::text_in(&body, "secret_category") != FOR_CODE {
            continue;
        }
        if let Some(value) = records.stored_secret(&kinds::ENV_VAR, record)? {
            found.push((mechanism::text_in(&body, "name").to_owned(), value.expose().to_owned()));
        }
    }
    Ok(found)
}

/// Returns the variables with the addresses of this cluster, and the names of those that hold the worker's secret.
///
/// Variables of the user about a model provider win, so that a function may use its own key.
pub(super) fn of_cluster(
    caller: &Caller,
    users: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, Vec<&'static str>) {
    let mut variables = BTreeMap::new();
    let mut secret_names = vec!["BRAINTRUST_API_KEY"];
    let mut set = |name: &str, value: &str| drop(variables.insert(name.to_owned(), value.to_owned()));
    set("BRAINTRUST_ORG_NAME", &caller.principal.org_name);
    if let Some(origin) = caller.edge.code.own.url() {
        let gateway = format!("{origin}{GATEWAY_PATH}");
        for name in API_VARIABLES {
            set(name, &origin);
        }
        set("BRAINTRUST_AI_GATEWAY_URL", &gateway);
        if !users.contains_key("OPENAI_API_KEY") && !users.contains_key("OPENAI_BASE_URL") {
            secret_names.push("OPENAI_API_KEY");
            set("OPENAI_BASE_URL", &gateway);
        }
    }
    (variables, secret_names)
}
