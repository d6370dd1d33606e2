//! Prompt session: a playground for prompts, whose rows are its trials.

use assay_node_auth::ObjectType;
use assay_node_shapes::Shape;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;

use super::{METADATA, NAME, PROSE};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static PROMPT_SESSION: Kind = Kind {
    name: "prompt_session",
    record: RecordKind::PLAYGROUND,
    naming: Naming::Unique,
    api: Api::Shared("/v1/prompt_session", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Merged),
    ],
    filters: &[
        ("prompt_session_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    rows: &[ObjectKind::PlaygroundLogs],
    has_deleted_at: true,
    complete: made_by,
    ..Kind::plain(Home::Project, Guard::Own(ObjectType::PromptSession))
};
