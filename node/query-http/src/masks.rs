//! Masks of blind projects, which hide review data from callers until they submit their own review.

use std::collections::BTreeSet;
use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Target, decide};
use assay_node_query::Masks;
use assay_node_records::Records;
use assay_node_records::mechanism::read_body;
use assay_node_reviews::{Blindness, HumanScore};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;
use uuid::Uuid;

use assay_node_http::responses::refusal::Refusal;

/// Returns the masks of projects for a caller.
///
/// A project has no mask if its reviews are not blind or if the caller may change it.
pub fn masks(
    records: &Records,
    who: &Principal,
    projects: impl IntoIterator<Item = (OrgId, Uuid)>,
) -> Result<Masks, Refusal> {
    let projects: BTreeSet<(OrgId, Uuid)> = projects.into_iter().collect();
    let mut masks = Masks::new();
    for (org, project) in projects {
        if is_blind(records, project)? && !may_change(who, org, project) {
            let scores = human_scores(records, org, project)?;
            let scores = scores.into_iter().filter(HumanScore::is_among_scores).map(|score| score.name).collect();
            masks.insert(project, Arc::new(Blindness { user: who.user, scores }));
        }
    }
    Ok(masks)
}

/// Returns whether the reviews of a project are blind.
pub fn is_blind(records: &Records, project: Uuid) -> Result<bool, Refusal> {
    has_setting(records, project, "blind_reviews")
}

/// Returns whether a setting of a project is true.
pub fn has_setting(records: &Records, project: Uuid, setting: &str) -> Result<bool, Refusal> {
    let body = records.catalog().peek(|view| view.get(RecordKind::PROJECT, project).map(|record| read_body(record)));
    let body = body.transpose().map_err(Refusal::from)?;
    Ok(body.is_some_and(|body| body.get("settings").is_some_and(|settings| settings[setting] == Value::Bool(true))))
}

/// Returns whether a caller may change a project, and therefore sees all reviews.
pub fn may_change(who: &Principal, org: OrgId, project: Uuid) -> bool {
    let target = Target::in_organization(ObjectType::Project, Some(project), org);
    decide(who, Permission::Update, &target) == Decision::Allowed
}

/// Returns the definitions of a project's human scores.
pub fn human_scores(records: &Records, org: OrgId, project: Uuid) -> Result<Vec<HumanScore>, Refusal> {
    let bodies: Result<Vec<_>, _> = records.catalog().peek(|view| {
        let scores = view.all(RecordKind::PROJECT_SCORE).filter(|record| record.org == Some(org));
        scores.map(|record| read_body(record)).collect()
    });
    let is_here = |body: &serde_json::Map<String, Value>| {
        body.get("project_id").and_then(Value::as_str) == Some(project.to_string().as_str())
    };
    let bodies = bodies.map_err(Refusal::from)?;
    Ok(bodies.iter().filter(|body| is_here(body)).filter_map(HumanScore::read).collect())
}
