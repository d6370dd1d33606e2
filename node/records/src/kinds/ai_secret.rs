//! AI secret: a key for a provider of models. Responses show its last characters; the secret itself never leaves the
//! node (`Records::secret_of`).

use assay_node_auth::ObjectType;
use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{LINE, METADATA, NAME, SECRET};
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};
use crate::model_providers::check_provider;

pub static AI_SECRET: Kind = Kind {
    name: "ai_secret",
    record: RecordKind::AI_SECRET,
    naming: Naming::Unique,
    api: Api::Own,
    export: Export::AfterRows,
    fields: &[
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("type", LINE, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Replaced),
        Field::optional("secret", SECRET, OnPatch::Replaced),
        Field::ours("preview_secret", LINE, OnPatch::Fixed),
        Field::ours("updated_at", LINE, OnPatch::Fixed),
        Field::ours("secret_updated_at", LINE, OnPatch::Fixed),
        Field::ours("secret_updated_by_user_id", Shape::Uuid, OnPatch::Fixed),
    ],
    filters: &[("ai_secret_name", Filter::Name), ("name", Filter::Name), ("ai_secret_type", Filter::Field("type"))],
    check: Some(|checked| check_provider("type", checked.body)),
    ..Kind::plain(Home::Organization, Guard::Own(ObjectType::AiSecret))
};
