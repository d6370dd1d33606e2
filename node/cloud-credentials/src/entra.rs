//! Microsoft Entra: client credentials, by a secret or by a signed assertion of another identity provider.

use assay_node_models::provider::Provider;

use crate::encoding::form;
use crate::secret_fields::SecretFields;
use crate::token_url::token_url_for_identity;
use crate::{CredentialError, TokenRequest};

const SCOPE_DEFAULT: &str = "https://cognitiveservices.azure.com/.default";
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Returns the request of a client with a secret.
pub(crate) fn client_request(provider: &Provider, secret: &str) -> Result<TokenRequest, CredentialError> {
    let fields = SecretFields::read(provider, secret, "`client_id`, `client_secret`, `tenant_id` and `scope`")?;
    let client_secret = fields.require("client_secret", "the secret of the application")?;
    request(provider, &fields, &[("client_secret", client_secret)], false)
}

/// Returns the request of a client whose identity another provider asserts.
pub(crate) fn federated_request(
    provider: &Provider,
    secret: &str,
    identity_token: Option<&str>,
) -> Result<TokenRequest, CredentialError> {
    let fields = SecretFields::read(provider, secret, "`client_id`, `tenant_id`, `scope` and `client_assertion`")?;
    let own = fields.text("client_assertion");
    let assertion = own.or(identity_token);
    let assertion =
        assertion.ok_or_else(|| fields.unsupported("`auth_type` `entra_oidc` without `client_assertion`"))?;
    let proof = [("client_assertion_type", JWT_BEARER), ("client_assertion", assertion)];
    request(provider, &fields, &proof, own.is_none())
}

fn request(
    provider: &Provider,
    fields: &SecretFields<'_>,
    proof: &[(&str, &str)],
    is_of_server: bool,
) -> Result<TokenRequest, CredentialError> {
    let tenant = fields.require("tenant_id", "the id or the domain of the tenant")?;
    // part of the path, which it must not leave
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if !tenant.bytes().all(is_plain) || tenant.bytes().all(|byte| byte == b'.') {
        return Err(fields.invalid("tenant_id", "letters, digits, hyphens and dots"));
    }
    let client = fields.require("client_id", "the id of the application")?;
    let scope = fields.text("scope").unwrap_or(SCOPE_DEFAULT);
    let usual = format!("https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token");
    let url = token_url_for_identity(provider, usual, is_of_server)?;
    let mut values = vec![("grant_type", "client_credentials"), ("client_id", client), ("scope", scope)];
    values.extend(proof);
    Ok(TokenRequest::form(url, form(&values)))
}
