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

use std::collections::HashSet;

use assay_node_shapes::Shape;
use assay_node_shapes::list_patch::fold_lists;
use assay_storage_model::catalog::Record;
use serde::de::DeserializeOwned;

use crate::authz::guard;
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::{Checked, Kind};

/// Decodes the body of a record into its type.
fn decoded<T: DeserializeOwned>(record: &Record) -> Result<T, RecordsError> {
    let damaged = |error| RecordsError::Internal(format!("{} {} cannot be decoded: {error}", record.kind, record.id));
    serde_json::from_slice(&record.body).map_err(damaged)
}

/// Shape of the users, groups or roles in one record.
const MEMBERS: Shape = Shape::List { of: &Shape::Uuid, items_max: 10_000 };

/// Applies list changes of a patch, which are fields with the prefixes `add_` and `remove_`.
fn folded_lists(stored: &Body, sent: &mut Body, lists: &[&str]) -> Result<(), RecordsError> {
    fold_lists(stored, sent, lists).map_err(|why| RecordsError::BadRequest(why.to_string()))
}

/// Refuses members that the organization does not have, and members that include the record itself.
fn check_members(checked: &Checked<'_>, list: &str, kind: &'static Kind) -> Result<(), RecordsError> {
    let Checked { view, who, id, before, body } = checked;
    if let Some(id) = group::ids(body, list).find(|id| guard::known(view, kind, who.org, *id).is_none()) {
        return Err(RecordsError::BadRequest(format!("`{list}`: no {} {id} is in the organization", kind.name)));
    }
    // A cycle that an earlier version stored remains until its list is changed.
    let unchanged = before.is_some_and(|before| before.get(list) == body.get(list));
    let (mut seen, mut open) = (HashSet::new(), Vec::from_iter(group::ids(body, list).filter(|_| !unchanged)));
    while let Some(member) = open.pop() {
        if *id == Some(member) {
            let said = format!("`{list}`: one of its members includes this {0}, or is this {0}", kind.name);
            return Err(RecordsError::BadRequest(said));
        }
        if let Some(record) = view.get(kind.record, member).filter(|_| seen.insert(member)) {
            open.extend(group::ids(&decoded::<Body>(record)?, list));
        }
    }
    Ok(())
}
