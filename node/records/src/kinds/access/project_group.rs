//! Project group: projects with common grants. A grant on the group applies to each of its projects.

use assay_node_auth::{Decision, Giving, ObjectType, Permission};
use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;
use uuid::Uuid;

use super::MEMBERS;
use super::group::ids;
use crate::authz::guard;
use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::{Api, Changes, Checked, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use crate::kinds::{NAME, PROJECT, PROSE};

const PROJECTS: &str = "member_projects";

pub static PROJECT_GROUP: Kind = Kind {
    name: "project_group",
    record: RecordKind::PROJECT_GROUP,
    naming: Naming::Unique,
    api: Api::Shared("/v1/project_group", Changes::ByPatchAndPut),
    export: Export::Never,
    fields: &[
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional(PROJECTS, MEMBERS, OnPatch::Replaced),
    ],
    filters: &[("project_group_name", Filter::Name), ("name", Filter::Name)],
    has_deleted_at: true,
    fold: Some(|stored, sent| super::folded_lists(stored, sent, &[PROJECTS])),
    check: Some(check),
    complete: |making, fields| {
        made_by(making, fields);
        sorted(fields);
    },
    derive: sorted,
    // Deleted projects stay in the stored list until it is changed.
    join: Some(|state, object| {
        if let Some(Value::Array(projects)) = object.get_mut(PROJECTS) {
            projects.retain(|project| {
                let id = project.as_str().and_then(|id| Uuid::parse_str(id).ok());
                let stored = id.and_then(|id| state.get(RecordKind::PROJECT, id));
                stored.is_some_and(|project| !project.keys.is_empty())
            });
        }
    }),
    ..Kind::plain(Home::Organization, Guard::Own(ObjectType::ProjectGroup))
};

fn sorted(fields: &mut Body) {
    let list = fields.entry(PROJECTS).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(projects) = list.as_array_mut() {
        projects.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        projects.dedup();
    }
}

/// Checks the author of an addition, which grants the rights on the group to the project. The author must be allowed to
/// create grants on the project, and must hold these rights there.
fn check(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Checked { view, who, id, before, body } = checked;
    let there: Vec<Uuid> = before.map(|before| ids(before, PROJECTS).collect()).unwrap_or_default();
    for project in ids(body, PROJECTS).filter(|project| !there.contains(project)) {
        let missing = || RecordsError::BadRequest(format!("`{PROJECTS}`: no project {project} is in the organization"));
        guard::known(view, &PROJECT, who.org, project).ok_or_else(missing)?;
        match guard::decide_of_project(who, Permission::CreateAcls, project) {
            Decision::Allowed => {
                if let Some(group) = *id {
                    view.check_giving(who, PROJECTS, &Giving::Project { group, project })?;
                }
            }
            Decision::NotVisible => return Err(missing()),
            Decision::Forbidden => {
                return Err(RecordsError::Forbidden(format!(
                    "`{PROJECTS}`: this credential is not granted `create_acls` on the project {project}, which is \
                     needed to add it to a group"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the projects of a group.
pub(crate) fn read(body: &Body) -> Vec<Uuid> {
    ids(body, PROJECTS).collect()
}
