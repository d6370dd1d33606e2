//! Project automation: an action on logged rows, at intervals, or on old rows.

use assay_node_shapes::Shape;
use assay_node_shapes::configurations::AUTOMATION;
use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE, inactive};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static PROJECT_AUTOMATION: Kind = Kind {
    name: "project_automation",
    record: RecordKind::AUTOMATION,
    naming: Naming::Unique,
    api: Api::Shared("/v1/project_automation", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("config", AUTOMATION, OnPatch::Replaced),
    ],
    filters: &[
        ("project_automation_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    check: Some(inactive::check_automation),
    complete: made_by,
    join: Some(|_, object| inactive::say_of_automation(object)),
    ..Kind::plain(Home::Project, Guard::Project)
};
