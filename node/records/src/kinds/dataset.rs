//! Dataset: rows to evaluate against, within a project.

use assay_node_auth::ObjectType;
use assay_node_shapes::Shape;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;

use super::{LINE, METADATA, NAME, PROSE, TAGS, slug};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static DATASET: Kind = Kind {
    name: "dataset",
    record: RecordKind::DATASET,
    naming: Naming::Unique,
    api: Api::Shared("/v1/dataset", Changes::ByPatch),
    export: Export::BeforeRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::optional("tags", TAGS, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Merged),
        Field::ours("url_slug", LINE, OnPatch::Fixed),
    ],
    filters: &[
        ("dataset_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    rows: &[ObjectKind::Dataset],
    has_deleted_at: true,
    complete: |making, fields| {
        let name = fields.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        let slug = slug(name, making.id);
        fields.insert("url_slug".into(), slug.into());
        fields.insert("user_id".into(), making.user.to_string().into());
    },
    ..Kind::plain(Home::Project, Guard::Own(ObjectType::Dataset))
};
