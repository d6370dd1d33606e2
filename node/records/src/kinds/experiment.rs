//! Experiment: one run of an evaluation in a project.
//!
//! A create request can ask for a new one under an existing name, or let the service choose the name. It can name a
//! base experiment by id, by name or by commits.

use std::collections::HashMap;

use assay_node_auth::ObjectType;
use assay_node_shapes::{Member, Shape, take};
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;
use uuid::Uuid;

use super::{LINE, METADATA, NAME, PROSE, TAGS};
use crate::draft::{Body, text_of};
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, NAME_BYTES_MAX, Naming, OnPatch};

/// Upper bound of the ancestor commits in a request. Clients send the last few hundred.
const ANCESTORS_MAX: usize = 10_000;
/// Upper bound of the branch name in a generated name.
const BRANCH_BYTES_MAX: usize = 64;
/// Length of a suffix: a dash and eight digits.
const SUFFIX_BYTES: usize = 9;

pub static EXPERIMENT: Kind = Kind {
    name: "experiment",
    record: RecordKind::EXPERIMENT,
    naming: Naming::UniqueOrFresh,
    api: Api::Shared("/v1/experiment", Changes::ByPatch),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("repo_info", REPO_INFO, OnPatch::Merged),
        Field::ours("commit", LINE, OnPatch::Fixed),
        Field::optional("base_exp_id", Shape::Uuid, OnPatch::Replaced),
        Field::optional("dataset_id", Shape::Uuid, OnPatch::Replaced),
        Field::optional("dataset_version", LINE, OnPatch::Replaced),
        Field::optional("internal_metadata", INTERNAL_METADATA, OnPatch::Merged),
        Field::optional("parameters_id", Shape::Uuid, OnPatch::Replaced),
        Field::optional("parameters_version", LINE, OnPatch::Replaced),
        Field::optional("public", Shape::Bool, OnPatch::Replaced),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("metadata", METADATA, OnPatch::Merged),
        Field::optional("tags", TAGS, OnPatch::Replaced),
    ],
    filters: &[
        ("experiment_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
        ("metadata", Filter::Metadata),
    ],
    list_default: Some(1000),
    rows: &[ObjectKind::Experiment],
    has_deleted_at: true,
    complete: |making, fields| {
        fields.insert("user_id".into(), making.user.to_string().into());
        fields.entry("public").or_insert(Value::Bool(false));
    },
    derive: |fields| {
        if let Some(commit) = fields.get("repo_info").and_then(|info| info.get("commit")).cloned() {
            fields.insert("commit".into(), commit);
        }
    },
    ..Kind::plain(Home::Project, Guard::Own(ObjectType::Experiment))
};

/// Shape of metadata from SDKs about the creation of an experiment.
const INTERNAL_METADATA: Shape =
    Shape::Known { members: &[Member::optional("dataset_filter", METADATA)], bytes_max: 256 << 10 };

const REPO_INFO: Shape = Shape::Closed(&[
    Member::optional("commit", LINE),
    Member::optional("branch", LINE),
    Member::optional("tag", LINE),
    Member::optional("dirty", Shape::Bool),
    Member::optional("author_name", LINE),
    Member::optional("author_email", LINE),
    Member::optional("commit_message", PROSE),
    Member::optional("commit_time", LINE),
    // Clients truncate it to 65,536 characters of at most four bytes.
    Member::optional("git_diff", Shape::Text { bytes_min: 0, bytes_max: 256 << 10 }),
]);

/// Returns a generated name for an experiment without a name.
pub(crate) fn generated_name(fields: &Body, now_micros: i64) -> String {
    let branch = fields.get("repo_info").and_then(|info| info.get("branch")).and_then(Value::as_str);
    let branch = branch.filter(|branch| !branch.is_empty()).unwrap_or("experiment");
    format!("{}-{}", cut(branch, BRANCH_BYTES_MAX), now_micros.div_euclid(1_000_000))
}

/// Returns the name with a suffix from the id of the new record.
pub(crate) fn suffixed(name: &str, id: Uuid) -> String {
    format!("{}-{}", cut(name, NAME_BYTES_MAX - SUFFIX_BYTES), &id.simple().to_string()[..8])
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Checks the fields of the base experiment, including those without effect.
pub(crate) fn check_bases(sent: &Body) -> Result<(), RecordsError> {
    text_of(sent, "base_experiment")?;
    ancestors(sent).map(drop)
}

/// Returns the ancestor commits with their distance, nearest first.
pub(crate) fn ancestors(sent: &Body) -> Result<HashMap<String, usize>, RecordsError> {
    const COMMITS: Shape = Shape::Texts { items_max: ANCESTORS_MAX, bytes_max: 4 << 10 };
    let Some(list) = sent.get("ancestor_commits").filter(|value| !value.is_null()) else {
        return Ok(HashMap::new());
    };
    let Value::Array(commits) = take(&COMMITS, "ancestor_commits", list.clone())? else {
        return Ok(HashMap::new());
    };
    let mut places = HashMap::new();
    for (place, commit) in commits.iter().enumerate() {
        if let Some(commit) = commit.as_str() {
            places.entry(commit.to_owned()).or_insert(place);
        }
    }
    Ok(places)
}

/// Search for the newest experiment on the nearest ancestor. Experiments must be passed newest first.
#[derive(Debug)]
pub(crate) struct BaseSearch {
    places: HashMap<String, usize>,
    best: Option<(usize, Uuid)>,
}

impl BaseSearch {
    pub fn new(places: HashMap<String, usize>) -> BaseSearch {
        BaseSearch { places, best: None }
    }

    /// Returns whether no later experiment can be a better match.
    pub fn is_over(&self) -> bool {
        self.places.is_empty() || matches!(self.best, Some((0, _)))
    }

    pub fn see(&mut self, id: Uuid, body: &Body) {
        let commit = body.get("commit").and_then(Value::as_str);
        let Some(place) = commit.and_then(|commit| self.places.get(commit)) else {
            return;
        };
        if self.best.is_none_or(|(best, _)| *place < best) {
            self.best = Some((*place, id));
        }
    }

    pub fn found(&self) -> Option<Uuid> {
        self.best.map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_suffixed_name_stays_a_legal_name() {
        let id = Uuid::from_u128(0xabcd_ef01 << 96);
        assert_eq!(suffixed("run", id), "run-abcdef01");
        let long = suffixed(&"é".repeat(512), id);
        assert!(long.len() <= NAME_BYTES_MAX && long.ends_with("é-abcdef01"), "{}", long.len());
    }

    #[test]
    fn a_generated_name_tells_branch_and_time() {
        let at = 1_700_000_000_500_000;
        assert_eq!(generated_name(&body(json!({})), at), "experiment-1700000000");
        assert_eq!(generated_name(&body(json!({"repo_info": {"branch": "main"}})), at), "main-1700000000");
        assert_eq!(generated_name(&body(json!({"repo_info": {"branch": ""}})), at), "experiment-1700000000");
    }

    #[test]
    fn the_base_is_the_newest_on_the_nearest_ancestor() {
        let sent = body(json!({"ancestor_commits": ["c3", "c2", "c1", "c3"]}));
        // (commits of experiments, newest first) -> index of the base
        let cases: [(&[&str], Option<u128>); 5] = [
            (&["c1", "c2", "c1"], Some(1)),
            (&["c2", "c2"], Some(0)),
            (&["c1", "c3", "c3"], Some(1)),
            (&["other"], None),
            (&[], None),
        ];
        for (commits, expected) in cases {
            let mut search = BaseSearch::new(ancestors(&sent).expect("commits"));
            for (number, commit) in commits.iter().enumerate() {
                search.see(Uuid::from_u128(number as u128), &body(json!({"commit": commit})));
            }
            assert_eq!(search.found(), expected.map(Uuid::from_u128), "{commits:?}");
        }
        assert!(BaseSearch::new(HashMap::new()).is_over());
        assert!(ancestors(&body(json!({"ancestor_commits": "c1"}))).is_err());
    }
}
