//! Kinds of access control: users, groups, roles, grants, keys and tokens.

pub(crate) mod acl;
pub mod api_key;
pub mod console_session;
pub mod group;
pub mod invitation;
pub mod login;
pub mod organization;
pub(crate) mod project_group;
pub mod role;
pub mod service_token;
pub mod temporary_credential;
pub mod user;

use assay_node_shapes::Shape;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::Record;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::authz::{CatalogView, guard};
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::Kind;

/// Decodes a record whose body has a type of its own.
fn decoded<T: DeserializeOwned>(record: &Record) -> Result<T, RecordsError> {
    let damaged = |error| RecordsError::Internal(format!("{} {} cannot be decoded: {error}", record.kind, record.id));
    serde_json::from_slice(&record.body).map_err(damaged)
}

/// Users, groups or roles in one record.
const MEMBERS: Shape = Shape::List { of: &Shape::Uuid, items_max: 10_000 };

/// Applies additions and removals of lists in a patch: fields with the prefixes `add_` and `remove_`. Existing elements
/// are not added again.
fn folded_lists(stored: &Body, sent: &mut Body, lists: &[&str]) -> Result<(), RecordsError> {
    for list in lists {
        sent.remove(*list);
        let mut named = |what: &str| {
            let name = format!("{what}_{list}");
            match sent.remove(&name) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::Array(items)) => Ok(items),
                Some(_) => Err(RecordsError::BadRequest(format!("`{name}` has to be a list"))),
            }
        };
        let (add, remove) = (named("add")?, named("remove")?);
        if add.is_empty() && remove.is_empty() {
            continue;
        }
        let mut items = stored.get(*list).and_then(Value::as_array).cloned().unwrap_or_default();
        items.retain(|item| !remove.iter().any(|gone| is_same(item, gone)));
        for item in add {
            if !items.iter().any(|there| is_same(there, &item)) {
                items.push(item);
            }
        }
        sent.insert((*list).to_owned(), Value::Array(items));
    }
    Ok(())
}

/// Compares ids without regard to case, and objects without their null members.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.eq_ignore_ascii_case(b),
        (Value::Object(a), Value::Object(b)) => {
            let same = |a: &Body, b: &Body| {
                a.iter().filter(|(_, value)| !value.is_null()).all(|(name, value)| b.get(name) == Some(value))
            };
            same(a, b) && same(b, a)
        }
        _ => a == b,
    }
}

/// Every id of a list is a record of this kind in the organization, or belongs to the system.
fn check_members(
    view: &CatalogView<'_>,
    org: OrgId,
    body: &Body,
    list: &str,
    kind: &'static Kind,
) -> Result<(), RecordsError> {
    match group::ids(body, list).find(|id| guard::known(view, kind, org, *id).is_none()) {
        Some(id) => Err(RecordsError::BadRequest(format!("`{list}`: no {} {id} is in the organization", kind.name))),
        None => Ok(()),
    }
}
