//! Kinds of records in the API, one file for each, and their list [`KINDS`]. Kinds above organizations, and kinds
//! without lists, are in `access`.
//!
//! A new kind needs a file here, an entry in [`KINDS`], and an id in `RecordKind` of the model. Routes, exports,
//! deletes of projects and access rights follow from its declaration.

pub(crate) mod access;
mod agent;
mod ai_secret;
mod custom_column;
mod dataset;
pub(crate) mod dataset_snapshot;
mod env_var;
mod environment;
mod environment_object;
pub(crate) mod experiment;
mod gateway_budget;
mod guardrails;
pub(crate) mod inactive;
mod mcp_server;
mod org_automation;
mod project;
mod project_automation;
mod project_score;
mod project_tag;
pub(crate) mod prompt;
mod prompt_session;
mod simulated_user;
mod span_iframe;
mod view;

use assay_node_auth::ObjectType;
use assay_node_shapes::Shape;
use assay_node_shapes::configurations::{LINE, PROSE, TEXTS, URL};
use assay_storage_model::ObjectKind;
use uuid::Uuid;

use crate::kind::{Guard, Home, Kind};

pub use access::acl::ACL;
pub use access::api_key::API_KEY;
pub use access::group::GROUP;
pub use access::project_group::PROJECT_GROUP;
pub use access::role::ROLE;
pub use access::service_token::SERVICE_TOKEN;
pub(crate) use access::{acl, project_group};
pub use access::{
    api_key, console_session, group, invitation, login, organization, role, service_token, temporary_credential, user,
};
pub use agent::AGENT;
pub use ai_secret::AI_SECRET;
pub use custom_column::CUSTOM_COLUMN;
pub use dataset::DATASET;
pub use dataset_snapshot::DATASET_SNAPSHOT;
pub use env_var::ENV_VAR;
pub use environment::ENVIRONMENT;
pub(crate) use environment_object::ENVIRONMENT_OBJECT;
pub use experiment::EXPERIMENT;
pub use gateway_budget::GATEWAY_BUDGET;
pub use mcp_server::MCP_SERVER;
pub use org_automation::ORG_AUTOMATION;
pub use project::PROJECT;
pub use project_automation::PROJECT_AUTOMATION;
pub use project_score::PROJECT_SCORE;
pub use project_tag::PROJECT_TAG;
pub use prompt::PROMPT;
pub use prompt_session::PROMPT_SESSION;
pub use simulated_user::SIMULATED_USER;
pub use span_iframe::SPAN_IFRAME;
pub use view::VIEW;

/// All kinds of the API, in the order of an import.
///
/// Each kind follows those that it depends on, so that an import finds the records that it names. Grants can be on any
/// kind and come last. `RecordKind` of the model numbers these kinds, and records without a kind here, such as users.
pub static KINDS: [&Kind; 27] = [
    &ROLE,
    &GROUP,
    &PROJECT,
    &PROJECT_GROUP,
    &API_KEY,
    &SERVICE_TOKEN,
    &DATASET,
    &PROMPT,
    &EXPERIMENT,
    &PROMPT_SESSION,
    &AGENT,
    &ENVIRONMENT,
    &ENVIRONMENT_OBJECT,
    &DATASET_SNAPSHOT,
    &PROJECT_SCORE,
    &PROJECT_TAG,
    &SPAN_IFRAME,
    &CUSTOM_COLUMN,
    &MCP_SERVER,
    &SIMULATED_USER,
    &PROJECT_AUTOMATION,
    &ORG_AUTOMATION,
    &AI_SECRET,
    &ENV_VAR,
    &GATEWAY_BUDGET,
    &VIEW,
    &ACL,
];

/// Returns the kinds whose records have this owner. Records in a project are deleted with it.
pub(crate) fn within(home: Home) -> impl Iterator<Item = &'static Kind> {
    KINDS.into_iter().filter(move |kind| kind.home == home)
}

/// Returns the kind of the record of an object of rows. The audit log and files have no record except their
/// organization.
pub fn of_object(rows: ObjectKind) -> Option<&'static Kind> {
    KINDS.into_iter().find(|kind| kind.rows.contains(&rows))
}

/// Returns the kind whose records are granted as this object type. Project logs are granted separately, but share the
/// record of their project.
pub(crate) fn of_object_type(object: ObjectType) -> Option<&'static Kind> {
    let object = if object == ObjectType::ProjectLog { ObjectType::Project } else { object };
    KINDS.into_iter().find(|kind| kind.guard == Guard::Own(object))
}

/// Returns the kind in a request path, if it is the project or belongs to one.
pub(crate) fn in_project(named: &str) -> Option<&'static Kind> {
    match named {
        "project" | "project_logs" => Some(&PROJECT),
        other => within(Home::Project).find(|kind| kind.name == other),
    }
}

pub(crate) const NAME: Shape = Shape::Text { bytes_min: 1, bytes_max: crate::kind::NAME_BYTES_MAX };
const TAGS: Shape = Shape::Texts { items_max: 1000, bytes_max: 1024 };
/// Shape of the metadata of one record. Larger data belongs into rows.
const METADATA: Shape = Shape::Open { bytes_max: 256 << 10 };
/// Shape of an environment variable or a provider key, which may be a JSON file.
const SECRET: Shape = Shape::Secret { bytes_max: 64 << 10 };
/// Upper bound of the characters of a name in a slug.
const SLUG_LETTERS_MAX: usize = 48;

/// Returns a slug for URLs from the name and a part of the id, which makes it unique. A slug does not change with the
/// name.
pub(crate) fn slug(name: &str, id: Uuid) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG_LETTERS_MAX) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let end = if slug.is_empty() || slug.ends_with('-') { "" } else { "-" };
    format!("{slug}{end}{}", &id.simple().to_string()[..8])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use assay_storage_model::catalog::RecordKind;

    use super::*;

    #[test]
    fn no_two_kinds_share_a_name_a_record_kind_or_rows() {
        let names: HashSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let records: HashSet<RecordKind> = KINDS.iter().map(|kind| kind.record).collect();
        let rows: Vec<ObjectKind> = KINDS.iter().flat_map(|kind| kind.rows).copied().collect();
        assert_eq!((names.len(), records.len()), (KINDS.len(), KINDS.len()));
        assert!(rows.iter().all(|kind| rows.iter().filter(|other| *other == kind).count() == 1), "{rows:?}");
    }

    #[test]
    fn a_slug_has_the_names_letters_and_some_of_the_id() {
        let id = Uuid::from_u128(0x1234_5678 << 96);
        for (name, expected) in [
            ("My Data, v2", "my-data-v2-12345678"),
            ("--", "12345678"),
            ("données!", "donn-es-12345678"),
            (&"x".repeat(500), &format!("{}-12345678", "x".repeat(48))),
        ] {
            assert_eq!(slug(name, id), expected);
        }
    }
}
