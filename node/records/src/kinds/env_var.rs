//! Environment variable for the functions of an organization or a project, or for one function. Its value never leaves
//! the node.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use super::{LINE, METADATA, NAME, SECRET};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};
use crate::model_providers::{check_provider, is_model_provider};

/// Shape of the category: `ai_provider` if the type is a known provider (G-08). No `sandbox_provider` is created yet.
const CATEGORY: Shape = Shape::Word(&["env_var", "ai_provider", "sandbox_provider"]);

pub static ENV_VAR: Kind = Kind {
    name: "env_var",
    record: RecordKind::ENV_VAR,
    naming: Naming::UniqueAmong(&["object_type", "object_id"]),
    api: Api::Shared("/v1/env_var", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("object_type", Shape::Word(&["organization", "project", "function"]), OnPatch::Fixed),
        Field::required("object_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Said),
        Field::optional("value", SECRET, OnPatch::Replaced),
        Field::optional("metadata", METADATA, OnPatch::Replaced),
        Field::optional("secret_type", LINE, OnPatch::Replaced),
        Field::ours("secret_category", CATEGORY, OnPatch::Fixed),
        Field::ours("preview_secret", LINE, OnPatch::Fixed),
        Field::ours("secret_updated_at", LINE, OnPatch::Fixed),
        Field::ours("secret_updated_by_user_id", Shape::Uuid, OnPatch::Fixed),
        // No use of a variable is recorded yet.
        Field::ours("used", LINE, OnPatch::Fixed),
    ],
    filters: &[
        ("env_var_name", Filter::Field("name")),
        ("name", Filter::Field("name")),
        ("object_type", Filter::Field("object_type")),
        ("object_id", Filter::Field("object_id")),
    ],
    complete: |_, fields| (ENV_VAR.derive)(fields),
    derive: |fields| {
        let is_provider = fields.get("secret_type").and_then(Value::as_str).is_some_and(is_model_provider);
        fields.insert("secret_category".into(), if is_provider { "ai_provider" } else { "env_var" }.into());
    },
    check: Some(|checked| check_provider("secret_type", checked.body)),
    ..Kind::plain(Home::Object, Guard::Object)
};
