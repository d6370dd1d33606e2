//! Agent: an autonomous program of a project, with a name and a slug.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use super::{LINE, METADATA, NAME, PROSE, slug};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static AGENT: Kind = Kind {
    name: "agent",
    record: RecordKind::AGENT,
    naming: Naming::Unique,
    api: Api::Shared("/v1/agent", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::ours("slug", LINE, OnPatch::Fixed),
        Field::ours("kind", LINE, OnPatch::Fixed),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Merged),
    ],
    filters: &[
        ("agent_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    complete: |making, fields| {
        let slug = slug(fields.get("name").and_then(Value::as_str).unwrap_or_default(), making.id);
        fields.insert("slug".into(), slug.into());
        fields.insert("kind".into(), "agent".into());
        fields.insert("user_id".into(), making.user.to_string().into());
    },
    ..Kind::plain(Home::Project, Guard::Project)
};
