//! Project tag: a label with a colour for rows of a project.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{LINE, NAME, PROSE};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static PROJECT_TAG: Kind = Kind {
    name: "project_tag",
    record: RecordKind::PROJECT_TAG,
    naming: Naming::Unique,
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
    complete: made_by,
    ..Kind::plain(Home::Project, Guard::Project)
};
