//! Members of a request that describe the experiment to create.

use assay_node_scorers::results::merged_tags;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::members::{EvalRequestError, Members};

/// Upper bound of the tags of an experiment or of a case.
pub const EVAL_TAGS_MAX: usize = 1_000;

pub(crate) const TAGS: &str = "an array of at most 1000 strings, or null";
const COLLECT: &str = "all, none or some";
const FIELDS: &str = "an array of commit, branch, tag, dirty, author_name, author_email, commit_message, commit_time \
     and git_diff";
const GIT_TEXTS: [&str; 8] =
    ["commit", "branch", "tag", "author_name", "author_email", "commit_message", "commit_time", "git_diff"];

/// Experiment that an eval creates if it has no parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalExperiment {
    pub name: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub tags: Vec<String>,
    pub is_public: bool,
    pub base: Option<EvalBase>,
    pub repo_info: Option<Map<String, Value>>,
    /// Git members that a client collects. They have no effect on an explicit `repo_info`.
    pub git_metadata_settings: Option<Map<String, Value>>,
}

/// Experiment to compare with. The id counts if a request has both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalBase {
    Id(Uuid),
    Name(String),
}

impl EvalExperiment {
    pub(crate) fn read(body: &Members<'_>) -> Result<EvalExperiment, EvalRequestError> {
        let base = match (body.uuid("base_experiment_id")?, body.text("base_experiment_name")?) {
            (Some(id), _) => Some(EvalBase::Id(id)),
            (None, name) => name.map(EvalBase::Name),
        };
        Ok(EvalExperiment {
            name: body.text("experiment_name")?,
            metadata: body.object("metadata")?.cloned(),
            tags: tags(body.get("tags")).ok_or_else(|| body.invalid("tags", TAGS))?,
            is_public: body.flag("is_public")?,
            base,
            repo_info: repo_info(body)?,
            git_metadata_settings: git_settings(body)?,
        })
    }
}

/// Returns the tags of a member, each once, or `None` if it is not valid.
pub(crate) fn tags(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(listed)) if listed.len() <= EVAL_TAGS_MAX => {
            let tags: Option<Vec<String>> = listed.iter().map(|tag| tag.as_str().map(str::to_owned)).collect();
            tags.map(|tags| merged_tags(&[], &tags))
        }
        Some(_) => None,
    }
}

fn repo_info(body: &Members<'_>) -> Result<Option<Map<String, Value>>, EvalRequestError> {
    let Some(info) = body.object("repo_info")? else { return Ok(None) };
    let members = Members::new(info, "repo_info");
    // A diff is longer than other texts, so only the type is checked.
    for name in GIT_TEXTS {
        if members.get(name).is_some_and(|value| !value.is_string()) {
            return Err(members.invalid(name, "a string or null"));
        }
    }
    members.flag("dirty")?;
    Ok(Some(info.clone()))
}

fn git_settings(body: &Members<'_>) -> Result<Option<Map<String, Value>>, EvalRequestError> {
    let Some(settings) = body.object("git_metadata_settings")? else { return Ok(None) };
    let members = Members::new(settings, "git_metadata_settings");
    if !members.text("collect")?.is_some_and(|collect| ["all", "none", "some"].contains(&collect.as_str())) {
        return Err(members.invalid("collect", COLLECT));
    }
    let is_field = |value: &Value| value.as_str().is_some_and(|name| name == "dirty" || GIT_TEXTS.contains(&name));
    match members.get("fields") {
        None => {}
        Some(Value::Array(fields)) if fields.iter().all(is_field) => {}
        Some(_) => return Err(members.invalid("fields", FIELDS)),
    }
    Ok(Some(settings.clone()))
}
