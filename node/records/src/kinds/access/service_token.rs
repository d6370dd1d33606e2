//! Service token of a service account, in the organization of the account. It is stored like an API key, with separate
//! fingerprints.

use assay_node_shapes::Shape;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{RecordKind, UniqueKey};
use serde_json::Value;
use uuid::Uuid;

use super::{organization, user};
use crate::authz::CatalogView;
use crate::draft;
use crate::error::RecordsError;
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};
use crate::kinds::NAME;

const FINGERPRINT_SCOPE: &str = "service_token.fingerprint";
/// Field with the id of its service account.
pub const ACCOUNT: &str = "service_account_id";

pub static SERVICE_TOKEN: Kind = Kind {
    name: "service_token",
    record: RecordKind::SERVICE_TOKEN,
    naming: Naming::Secret,
    api: Api::Own,
    export: Export::Never,
    fields: &[
        Field::required("name", NAME, OnPatch::Fixed),
        Field::ours("preview_name", NAME, OnPatch::Fixed),
        Field::required(ACCOUNT, Shape::Uuid, OnPatch::Fixed),
    ],
    filters: &[("service_token_name", Filter::Name), ("name", Filter::Name)],
    join: Some(|state, object| {
        let account = draft::id_in(object, ACCOUNT).and_then(|id| state.get(RecordKind::USER, id));
        let account = account.and_then(|account| draft::read(account).ok()).unwrap_or_default();
        for (field, of_account) in [("service_account_email", "email"), ("service_account_name", "given_name")] {
            object.insert(field.into(), account.get(of_account).cloned().unwrap_or(Value::Null));
        }
    }),
    ..Kind::plain(Home::Organization, Guard::Holder(ACCOUNT))
};

pub fn token_key(fingerprint: &str) -> UniqueKey {
    UniqueKey::new(FINGERPRINT_SCOPE, fingerprint)
}

/// Refuses an account that cannot have tokens: it must be a service account and a member of the organization.
pub fn check_account(view: &CatalogView<'_>, org: OrgId, account: Uuid) -> Result<(), RecordsError> {
    let is_account = view.get(RecordKind::USER, account).is_some_and(|user| user::is_service_account(user));
    if is_account && view.find(&organization::member_key(org, account)).is_some() {
        return Ok(());
    }
    Err(RecordsError::BadRequest(format!("`{ACCOUNT}`: no service account {account} is in the organization")))
}
