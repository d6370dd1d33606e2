//! Pepper of the fingerprints of API keys and service tokens, which is created once and never changed.

use assay_node_auth::Pepper;
use assay_storage_catalog::State;
use assay_storage_model::catalog::UniqueKey;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::draft;
use crate::error::RecordsError;

impl Catalog {
    /// Returns the pepper, which exists once the cluster was founded.
    pub fn pepper(&self, state: &State) -> Result<&Pepper, RecordsError> {
        if let Some(pepper) = self.pepper.get() {
            return Ok(pepper);
        }
        let record = state.find(&pepper_key()).ok_or_else(not_founded)?;
        let body = draft::read(record)?;
        let pepper = body.get("value").and_then(Value::as_str).and_then(Pepper::from_hex);
        let pepper = pepper.ok_or_else(|| RecordsError::Internal("the pepper of API keys cannot be decoded".into()))?;
        Ok(self.pepper.get_or_init(|| pepper))
    }
}

/// Returns the key of the record with the pepper.
pub(crate) fn pepper_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "api_key_pepper")
}

fn not_founded() -> RecordsError {
    RecordsError::Unavailable(
        "this cluster has no organization yet, because its first start is not complete: try again".into(),
    )
}
