//! Google: the signed assertion of a service account.

use assay_node_models::provider::Provider;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::json;

use crate::encoding::{base64_url, form};
use crate::secret_fields::SecretFields;
use crate::token_url::token_url;
use crate::{CredentialError, TokenRequest};

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Other addresses that keys of Google name.
const TOKEN_URLS: [&str; 3] =
    [TOKEN_URL, "https://accounts.google.com/o/oauth2/token", "https://www.googleapis.com/oauth2/v4/token"];
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Life of an assertion, which is the longest that Google takes.
const ASSERTION_S: i64 = 3600;

/// Returns the request of a service account, whose key file is the secret.
pub(crate) fn service_account_request(
    provider: &Provider,
    secret: &str,
    now_ms: i64,
) -> Result<TokenRequest, CredentialError> {
    let fields = SecretFields::read(provider, secret, "of the key file of a service account")?;
    let email = fields.require("client_email", "the address of the service account")?;
    let pem = fields.require("private_key", "an RSA key in PEM")?;
    if fields.text("token_uri").is_some_and(|uri| !TOKEN_URLS.contains(&uri)) {
        let expected = "an address of Google; another one can be in `metadata.token_url`";
        return Err(fields.invalid("token_uri", expected));
    }
    let url = token_url(provider, fields.text("token_uri").unwrap_or(TOKEN_URL))?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = fields.text("private_key_id") {
        header["kid"] = id.into();
    }
    let now = now_ms.div_euclid(1000);
    let claims = json!({"iss": email, "scope": SCOPE, "aud": TOKEN_URL, "iat": now, "exp": now + ASSERTION_S});
    let signed = format!("{}.{}", base64_url(header.to_string()), base64_url(claims.to_string()));
    let key = key(pem).ok_or_else(|| fields.invalid("private_key", "an RSA key in PEM"))?;
    let mut signature = vec![0; key.public().modulus_len()];
    // this kind of signature takes no random numbers: the argument is not used
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| CredentialError::Signature { problem: "the RSA key does not sign" })?;
    let assertion = format!("{signed}.{}", base64_url(signature));
    Ok(TokenRequest::form(url, form(&[("grant_type", JWT_BEARER), ("assertion", &assertion)])))
}

/// Reads a key in PKCS#8, which Google writes, or in PKCS#1.
fn key(pem: &str) -> Option<KeyPair> {
    let between = |label: &str| {
        let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
        let (base64, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let base64: String = base64.chars().filter(|c| !c.is_whitespace()).collect();
        STANDARD.decode(base64).ok()
    };
    match between("PRIVATE KEY") {
        Some(der) => KeyPair::from_pkcs8(&der).ok(),
        None => KeyPair::from_der(&between("RSA PRIVATE KEY")?).ok(),
    }
}
