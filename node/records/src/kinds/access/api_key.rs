//! API key of a user. The record has the fingerprint of the secret in the unique key, and its last characters.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::{RecordKind, UniqueKey};
use serde_json::Value;

use crate::draft;
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};
use crate::kinds::NAME;

const FINGERPRINT_SCOPE: &str = "api_key.fingerprint";

pub static API_KEY: Kind = Kind {
    name: "api_key",
    record: RecordKind::API_KEY,
    naming: Naming::Secret,
    api: Api::Shared("/v1/api_key", Changes::Never),
    export: Export::Never,
    fields: &[
        Field::required("name", NAME, OnPatch::Fixed),
        Field::ours("preview_name", NAME, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
    ],
    filters: &[("api_key_name", Filter::Name), ("name", Filter::Name)],
    complete: made_by,
    join: Some(|state, object| {
        let user = draft::id_in(object, "user_id").and_then(|id| state.get(RecordKind::USER, id));
        let user = user.and_then(|user| draft::read(user).ok()).unwrap_or_default();
        for (field, of_user) in
            [("user_email", "email"), ("user_given_name", "given_name"), ("user_family_name", "family_name")]
        {
            object.insert(field.into(), user.get(of_user).cloned().unwrap_or(Value::Null));
        }
    }),
    ..Kind::plain(Home::Organization, Guard::Holder("user_id"))
};

pub fn fingerprint_key(fingerprint: &str) -> UniqueKey {
    UniqueKey::new(FINGERPRINT_SCOPE, fingerprint)
}
