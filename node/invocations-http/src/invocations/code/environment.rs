//! Environment variables of code functions (functions.md 5.5).

use std::collections::BTreeMap;
use std::time::Duration;

use assay_node_http::responses::refusal::Refusal;
use assay_node_identity::InvocationCredential;
use assay_node_invocations::{InvokeError, InvokedFunction};
use assay_node_records::{ListRequest, RecordsError, kinds, mechanism};
use uuid::Uuid;

use super::super::services::{CallerServices, error_of};
use super::id_of;

/// Time that a credential lives beyond the longest call.
pub(super) const CREDENTIAL_MARGIN: Duration = Duration::from_secs(60);
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
    services: &CallerServices,
    function: &InvokedFunction,
) -> Result<BTreeMap<String, String>, InvokeError> {
    let organization = Some(services.caller().principal.org.0);
    let owners = [("organization", organization), ("project", services.project()), ("function", id_of(function))];
    let mut variables = BTreeMap::new();
    for (object_type, id) in owners.into_iter().filter_map(|(object_type, id)| Some((object_type, id?))) {
        let found = variables_of(services, (object_type, id)).await;
        variables.extend(found.map_err(|why| error_of(Refusal::from(why)))?);
    }
    Ok(variables)
}

async fn variables_of(
    services: &CallerServices,
    (object_type, id): (&str, Uuid),
) -> Result<Vec<(String, String)>, RecordsError> {
    let (records, who) = (&services.caller().edge.records, &services.caller().principal);
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

/// Returns the variables of one call: the credential, and the addresses of this cluster.
///
/// Variables of the user about a model provider win, so that a function may use its own key.
pub(super) fn of_call(
    services: &CallerServices,
    credential: &InvocationCredential,
    users: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let caller = services.caller();
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: &str| drop(variables.insert(name.to_owned(), value.to_owned()));
    set("BRAINTRUST_API_KEY", credential.secret.expose());
    set("BRAINTRUST_ORG_NAME", &caller.principal.org_name);
    if let Some(origin) = caller.edge.code.own.url() {
        let gateway = format!("{origin}{GATEWAY_PATH}");
        for name in API_VARIABLES {
            set(name, &origin);
        }
        set("BRAINTRUST_AI_GATEWAY_URL", &gateway);
        if !users.contains_key("OPENAI_API_KEY") && !users.contains_key("OPENAI_BASE_URL") {
            set("OPENAI_API_KEY", credential.secret.expose());
            set("OPENAI_BASE_URL", &gateway);
        }
    }
    variables
}
