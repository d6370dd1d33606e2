//! Gateway budget: a limit of the model calls of a scope in a window (G-34). A separate record keeps the ledger of its
//! usage.

use assay_node_shapes::{Member, Shape};
use assay_storage_model::catalog::RecordKind;
use uuid::Uuid;

use super::{API_KEY, LINE, PROJECT, SERVICE_TOKEN, organization, user};
use crate::authz::CatalogView;
use crate::authz::guard::known;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use crate::kinds::{AI_SECRET, ENV_VAR};

pub static GATEWAY_BUDGET: Kind = Kind {
    name: "gateway_budget",
    record: RecordKind::GATEWAY_BUDGET,
    naming: Naming::Whole(&["scope", "window", "action"]),
    api: Api::Shared("/v1/gateway_budget", Changes::ByPatchAndPut),
    // Its scope may be a key or a member, which do not exist in other clusters.
    export: Export::Never,
    fields: &[
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("scope", SCOPE, OnPatch::Fixed),
        Field::required("window", WINDOW, OnPatch::Replaced),
        Field::optional("limit_usd", Shape::Number { min: 0.0, max: USD_MAX }, OnPatch::Replaced),
        Field::optional("limit_tokens", Shape::Whole { min: 0, max: COUNT_MAX }, OnPatch::Replaced),
        Field::optional("limit_requests", Shape::Whole { min: 0, max: COUNT_MAX }, OnPatch::Replaced),
        Field::optional("limit_concurrent", Shape::Whole { min: 0, max: CONCURRENT_MAX }, OnPatch::Replaced),
        Field::required("action", Shape::Word(&["reject", ALERT]), OnPatch::Replaced),
        Field::optional("allow_unpriced", Shape::Bool, OnPatch::Replaced),
    ],
    filters: &[("window", Filter::Field("window")), ("action", Filter::Field("action"))],
    check: Some(check),
    complete: |making, fields| {
        made_by(making, fields);
        fields.entry("allow_unpriced").or_insert(false.into());
    },
    derive: |fields| {
        // Null means "not given", in changes as well.
        if fields.get("allow_unpriced").is_none_or(serde_json::Value::is_null) {
            fields.insert("allow_unpriced".into(), false.into());
        }
    },
    ..Kind::plain(Home::Organization, Guard::Organization)
};

/// Upper bound of a limit in dollars, so that billionths of it fit into an integer.
const USD_MAX: f64 = 1e9;
/// Upper bound of exact integers in JavaScript clients.
const COUNT_MAX: i64 = 9_007_199_254_740_991;
const CONCURRENT_MAX: i64 = 1_000_000;
const ALERT: &str = "alert";
const LIMITS: [&str; 4] = ["limit_usd", "limit_tokens", "limit_requests", "limit_concurrent"];
const WINDOW: Shape = Shape::Word(&["minute", "hour", "day", "week", "month", "total"]);
const SCOPE: Shape = Shape::Tagged(
    "type",
    &[
        ("org", OF_RECORD),
        ("project", OF_RECORD),
        ("user", OF_RECORD),
        ("service_account", OF_RECORD),
        ("api_key", OF_RECORD),
        ("secret", OF_RECORD),
        ("model", &[Member::required("id", LINE)]),
    ],
);
const OF_RECORD: &[Member] = &[Member::required("id", Shape::Uuid)];

fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let has = |limit: &str| checked.body.get(limit).is_some_and(|value| !value.is_null());
    if !LIMITS.iter().any(|limit| has(limit)) {
        let all = LIMITS.join("`, `");
        return Err(RecordsError::BadRequest(format!("the budget has no limit: set at least one of `{all}`")));
    }
    // Calls of such a budget make no reservations, so concurrent calls are not counted.
    if draft::text_in(checked.body, "action") == ALERT && has("limit_concurrent") {
        let said = "`limit_concurrent`: a limit of concurrent calls needs the action `reject`";
        return Err(RecordsError::BadRequest(said.into()));
    }
    // A budget may outlive the object of its scope.
    if checked.before.is_none() { check_scope(checked) } else { Ok(()) }
}

fn check_scope(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Checked { view, who, body, .. } = checked;
    let scope = body.get("scope").and_then(|scope| scope.as_object()).cloned().unwrap_or_else(Body::new);
    let kind = draft::text_in(&scope, "type");
    // A model is only a name, which any secret may define.
    let Some(id) = draft::id_in(&scope, "id").filter(|_| kind != "model") else { return Ok(()) };
    let is_there = |kinds: &[&Kind]| kinds.iter().any(|kind| known(view, kind, who.org, id).is_some());
    let found = match kind.as_str() {
        "org" => id == who.org.0,
        "project" => is_there(&[&PROJECT]),
        "user" => is_member(view, checked, id, false),
        "service_account" => is_member(view, checked, id, true),
        "api_key" => is_there(&[&API_KEY, &SERVICE_TOKEN]),
        _ => is_there(&[&AI_SECRET, &ENV_VAR]),
    };
    if found {
        return Ok(());
    }
    Err(RecordsError::BadRequest(format!("`scope.id`: the organization has no {kind} with the id {id}")))
}

fn is_member(view: &CatalogView<'_>, checked: &Checked<'_>, id: Uuid, account: bool) -> bool {
    view.find(&organization::member_key(checked.who.org, id)).is_some()
        && view.get(RecordKind::USER, id).is_some_and(|found| user::is_service_account(found) == account)
}
