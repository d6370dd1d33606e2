//! Project tag: a label with a colour for rows of a project.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{LINE, NAME, PROSE};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by, nothing_derived};

pub static PROJECT_TAG: Kind = Kind {
    name: "project_tag",
    record: RecordKind::PROJECT_TAG,
    home: Home::Project,
    naming: Naming::Unique,
    guard: Guard::Project,
    api: Api::Shared("/v1/project_tag", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("color", LINE, OnPatch::Replaced),
        Field::ours("position", LINE, OnPatch::Fixed),
    ],
    filters: &[
        ("project_tag_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    list_default: None,
    rows: &[],
    has_deleted_at: false,
    builtin: Vec::new,
    fold: None,
    check: None,
    complete: made_by,
    derive: nothing_derived,
    join: None,
};
