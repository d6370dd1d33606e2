//! Functions that are rows of a playground (functions.md 8.3).

use assay_node_auth::{Asker, Permission};
use assay_node_functions::Version;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_invocations::{FunctionVersion, InvokedFunction};
use assay_node_objects::RowHome;
use assay_storage_model::ObjectKind;
use serde_json::Value;
use uuid::Uuid;

/// Name of a function whose row has none.
const UNNAMED: &str = "playground function";

/// Returns the function of a row that the caller may read.
pub(super) async fn function_of(
    caller: &Caller,
    (session, row): (&str, &str),
    version: &FunctionVersion,
) -> Result<InvokedFunction, Refusal> {
    let session =
        Uuid::parse_str(session).map_err(|_| Refusal::bad("`prompt_session_id` has to be a UUID of a playground"))?;
    let at = match Version::of(version.version.as_deref(), version.environment.as_deref())? {
        Version::Newest => None,
        Version::At(xact) => Some(xact),
        Version::Of(_) => {
            return Err(Refusal::bad("rows of a playground have no environments: name a `version` or nothing"));
        }
    };
    let (records, who) = (&caller.edge.records, &caller.principal);
    let home = records.object(who, ObjectKind::PlaygroundLogs, session, Permission::Read).await?;
    let rows = RowHome { object: home.key, org: home.org, project_id: home.project_id };
    let objects = caller.edge.objects.on_behalf_of(&Asker::of(who));
    let found = objects.rows(&rows, vec![row.to_owned()], at).await?;
    let Some(found) = found.first() else {
        return Err(Refusal::not_found("the row of `prompt_session_function_id` in this playground"));
    };
    let found: Value = serde_json::from_slice(found)
        .map_err(|why| Refusal::internal(format!("a row of a playground cannot be decoded: {why}")))?;
    let mut function = InvokedFunction::of_row(found);
    if function.function_data.is_null() && function.prompt_data.is_null() {
        return Err(Refusal::new(
            ErrorKind::BadRequest,
            "the row of `prompt_session_function_id` defines no function: it has neither `prompt_data` nor \
             `function_data`",
        ));
    }
    // The id of a row is not the id of a stored function, which variables and spans refer to.
    function.id = None;
    function.project_id = Some(home.project_id.to_string());
    if function.name.is_empty() {
        function.name = UNNAMED.to_owned();
    }
    Ok(function)
}
