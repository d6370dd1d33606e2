//! Secrets of providers with client certificates: the key for requests, and the key of the certificate.
//!
//! A secret with `metadata.tls.cert` is JSON with the member `tls_key`. Its member `api_key` is the key for requests.
//! Without `api_key`, the remaining members are the secret, because secrets of clouds are JSON. The key of the
//! certificate is never sent, even if the certificate was removed from the metadata.

use std::sync::Arc;

use assay_node_auth::Secret;
use assay_node_egress::{ClientIdentity, TlsOptions, TrustedRoots};
use assay_node_models::provider::{Provider, TLS_KEY_MEMBER};
use serde_json::Value;

use crate::error::GatewayError;

/// Member of the secret with the key for requests.
const API_KEY_MEMBER: &str = "api_key";

/// Secret of a provider, separated from the key of its certificate.
#[derive(Debug)]
pub(crate) struct ProviderSecret {
    auth: Secret,
    tls: Option<Arc<TlsOptions>>,
}

impl ProviderSecret {
    /// Parses a secret, and checks its certificates.
    pub fn read(
        provider: &Provider,
        secret: Option<&Secret>,
        roots: &TrustedRoots,
    ) -> Result<ProviderSecret, GatewayError> {
        let secret = secret.map_or("", Secret::expose);
        let certificates = &provider.metadata.tls;
        let refused = |why: String| {
            let why = format!("certificates of the provider `{}`: {why}", provider.name);
            GatewayError::new(502, "provider_auth_error", why)
        };
        let (auth, identity) = match (&certificates.cert, split(secret)) {
            (None, None) => (secret.to_owned(), None),
            (None, Some((auth, _))) => (auth, None),
            (Some(chain), Some((auth, key))) => (auth, Some(ClientIdentity { chain: chain.clone(), key })),
            (Some(_), None) => {
                let why = format!("the secret has to be JSON with the private key in `{TLS_KEY_MEMBER}`");
                return Err(refused(why));
            }
        };
        let options = TlsOptions { ca: certificates.ca.clone(), identity };
        let tls = (options != TlsOptions::default()).then(|| Arc::new(options));
        if let Some(options) = &tls {
            roots.client_config(Some(options)).map_err(|error| refused(error.to_string()))?;
        }
        Ok(ProviderSecret { auth: Secret::new(auth), tls })
    }

    /// Returns the key for requests, or the secret from which it is derived.
    pub fn auth(&self) -> &str {
        self.auth.expose()
    }

    /// Returns the certificates for requests to the model server.
    pub fn tls(&self) -> Option<Arc<TlsOptions>> {
        self.tls.clone()
    }

    /// Returns only the certificate authorities, for requests to token servers. These do not receive the certificate.
    pub fn authorities(&self) -> Option<Arc<TlsOptions>> {
        let ca = self.tls.as_ref()?.ca.clone()?;
        Some(Arc::new(TlsOptions { ca: Some(ca), identity: None }))
    }
}

/// Splits a secret into the key for requests and the key of the certificate, if it has the latter.
fn split(secret: &str) -> Option<(String, String)> {
    if !secret.trim_start().starts_with('{') {
        return None;
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(secret) else { return None };
    let Some(Value::String(tls_key)) = members.shift_remove(TLS_KEY_MEMBER) else { return None };
    let auth = match members.get(API_KEY_MEMBER) {
        Some(Value::String(key)) => key.clone(),
        _ => Value::Object(members).to_string(),
    };
    Some((auth, tls_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_key_of_its_certificate() {
        let found = split(r#"{"api_key": "sk-1", "tls_key": "PEM"}"#);
        assert_eq!(found, Some(("sk-1".to_owned(), "PEM".to_owned())));
        let found = split(r#"{"client_id": "c", "tls_key": "PEM"}"#);
        assert_eq!(found, Some((r#"{"client_id":"c"}"#.to_owned(), "PEM".to_owned())));
        for secret in ["", "sk-1", "{}", r#"{"tls_key": 1}"#] {
            assert_eq!(split(secret), None, "{secret}");
        }
    }
}
