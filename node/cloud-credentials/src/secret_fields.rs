//! Members of a secret that is JSON.

use assay_node_models::provider::Provider;
use serde_json::{Map, Value};

use crate::CredentialError;

/// Longest secret that is read.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// Secret that is a JSON object.
pub(crate) struct SecretFields<'a> {
    provider: &'a Provider,
    fields: Map<String, Value>,
}

impl<'a> SecretFields<'a> {
    /// Reads the secret. `members` names those that it should have.
    pub(crate) fn read(
        provider: &'a Provider,
        secret: &str,
        members: &'static str,
    ) -> Result<SecretFields<'a>, CredentialError> {
        let json = (secret.len() <= SECRET_BYTES_MAX).then(|| serde_json::from_str(secret));
        match json {
            Some(Ok(Value::Object(fields))) => Ok(SecretFields { provider, fields }),
            _ => Err(CredentialError::NotJson { provider: provider.name.clone(), members }),
        }
    }

    /// Returns a member that has a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    pub(crate) fn require(&self, name: &'static str, expected: &'static str) -> Result<&str, CredentialError> {
        self.text(name).ok_or_else(|| CredentialError::Missing {
            provider: self.provider.name.clone(),
            member: format!("`{name}`"),
            expected,
        })
    }

    pub(crate) fn invalid(&self, name: &str, expected: &'static str) -> CredentialError {
        CredentialError::Invalid { provider: self.provider.name.clone(), member: format!("`{name}`"), expected }
    }

    pub(crate) fn unsupported(&self, what: &'static str) -> CredentialError {
        CredentialError::Unsupported { provider: self.provider.name.clone(), what }
    }
}
