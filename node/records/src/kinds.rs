//! The kinds of records that the API shows, a file each, and those that stand above organizations.

pub(crate) mod acl;
mod agent;
mod ai_secret;
pub(crate) mod api_key;
mod dataset;
pub(crate) mod dataset_snapshot;
mod env_var;
mod environment;
pub(crate) mod environment_object;
pub(crate) mod experiment;
pub(crate) mod group;
pub(crate) mod inactive;
pub(crate) mod invitation;
pub(crate) mod login;
mod mcp_server;
mod org_automation;
pub(crate) mod organization;
mod project;
mod project_automation;
pub(crate) mod project_group;
mod project_score;
mod project_tag;
pub(crate) mod prompt;
mod prompt_session;
pub(crate) mod role;
pub(crate) mod service_token;
mod simulated_user;
mod span_iframe;
pub(crate) mod user;
mod view;

use assay_storage_model::{ObjectKind, OrgId};
use serde_json::Value;
use uuid::Uuid;

use crate::access::Sight;
use crate::draft::Body;
use crate::error::RecordsError;
use crate::guard;
use crate::kind::Kind;
use crate::shape::{MOST_POSITIVE, Member, Shape};

pub use acl::ACL;
pub use agent::AGENT;
pub use ai_secret::AI_SECRET;
pub use api_key::API_KEY;
pub use dataset::DATASET;
pub use dataset_snapshot::DATASET_SNAPSHOT;
pub use env_var::ENV_VAR;
pub use environment::ENVIRONMENT;
pub use experiment::EXPERIMENT;
pub use group::GROUP;
pub use mcp_server::MCP_SERVER;
pub use org_automation::ORG_AUTOMATION;
pub use project::PROJECT;
pub use project_automation::PROJECT_AUTOMATION;
pub use project_group::PROJECT_GROUP;
pub use project_score::PROJECT_SCORE;
pub use project_tag::PROJECT_TAG;
pub use prompt::PROMPT;
pub use prompt_session::PROMPT_SESSION;
pub use role::ROLE;
pub use service_token::SERVICE_TOKEN;
pub use simulated_user::SIMULATED_USER;
pub use span_iframe::SPAN_IFRAME;
pub use view::VIEW;

/// What is within a project and goes with it.
pub(crate) static WITHIN_PROJECT: [&Kind; 11] = [
    &EXPERIMENT,
    &DATASET,
    &PROMPT,
    &AGENT,
    &PROMPT_SESSION,
    &PROJECT_AUTOMATION,
    &PROJECT_SCORE,
    &PROJECT_TAG,
    &SPAN_IFRAME,
    &MCP_SERVER,
    &SIMULATED_USER,
];

/// The kind whose id names an object of rows; what was done to access, and files, are found by their organization.
pub(crate) fn of_object(kind: ObjectKind) -> Option<&'static Kind> {
    match kind {
        ObjectKind::ProjectLogs | ObjectKind::ProjectPrompts => Some(&PROJECT),
        ObjectKind::Experiment => Some(&EXPERIMENT),
        ObjectKind::Dataset => Some(&DATASET),
        ObjectKind::PlaygroundLogs => Some(&PROMPT_SESSION),
        ObjectKind::AuditLog | ObjectKind::Files => None,
    }
}

/// The kind that a path of the API names where that is a project's, or the project.
pub(crate) fn in_project(named: &str) -> Option<&'static Kind> {
    match named {
        "project" | "project_logs" => Some(&PROJECT),
        other => WITHIN_PROJECT.iter().copied().find(|kind| kind.name == other),
    }
}

/// A description, a message: what people read.
const PROSE: Shape = Shape::Text { bytes_min: 0, bytes_max: 64 << 10 };
/// A label, a version, a path.
const LINE: Shape = Shape::Text { bytes_min: 0, bytes_max: 4 << 10 };
pub(crate) const NAME: Shape = Shape::Text { bytes_min: 1, bytes_max: crate::kind::NAME_BYTES_MAX };
const TAGS: Shape = Shape::Texts { items_max: 1000, bytes_max: 1024 };
/// Metadata of one record; rows are the place for more.
const METADATA: Shape = Shape::Open { bytes_max: 256 << 10 };
const TEXTS: Shape = Shape::Texts { items_max: 1000, bytes_max: 64 << 10 };
const URL: Shape = Shape::Text { bytes_min: 1, bytes_max: 8 << 10 };
/// A key of a provider, which may be a file of JSON, or what a function finds in its environment.
const SECRET: Shape = Shape::Secret { bytes_max: 64 << 10 };
/// What a rule looks at at once.
const SCOPE: Shape = Shape::Tagged(
    "type",
    &[
        ("span", &[]),
        ("trace", &[Member::optional("idle_seconds", SECONDS)]),
        (
            "group",
            &[
                Member::required("group_by", LINE),
                Member::optional("interval_seconds", Shape::Number { min: 1.0, max: MOST_POSITIVE }),
                Member::optional("max_traces", Shape::Whole { min: 1, max: 64 }),
                Member::required("placement", Shape::Word(&["first", "each"])),
                Member::optional("idle_seconds", SECONDS),
            ],
        ),
    ],
);
const SECONDS: Shape = Shape::Number { min: 0.0, max: MOST_POSITIVE };

/// Users, groups or roles in one record.
const MEMBERS: Shape = Shape::List { of: &Shape::Uuid, items_max: 10_000 };

/// A patch names what to add to a list and what to take out of it: `add_` and `remove_` before the list's name. What is
/// there already is not added again.
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

/// Ids are the same in any case; of objects, what is null is not there.
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
    sight: &Sight<'_>,
    org: OrgId,
    body: &Body,
    list: &str,
    kind: &'static Kind,
) -> Result<(), RecordsError> {
    match group::ids(body, list).find(|id| guard::known(sight, kind, org, *id).is_none()) {
        Some(id) => Err(RecordsError::BadRequest(format!("`{list}`: no {} {id} is in the organization", kind.name))),
        None => Ok(()),
    }
}

/// Letters of a slug that come from the name.
const SLUG_LETTERS_MAX: usize = 48;

/// For addresses: the name's letters and digits, and some of the id, since two names can have the same letters. It
/// stays when the name changes, so that addresses do.
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
    use super::*;

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
