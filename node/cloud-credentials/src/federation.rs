//! Workload identity federation: a token of an identity provider is exchanged for one of the model provider.
//!
//! The secret is JSON that names the trusted identity. The identity token is the caller's, or `subject_token` of the secret.

use assay_node_models::provider::{Provider, ProviderType};
use serde_json::{Value, json};

use crate::encoding::form;
use crate::google::SCOPE;
use crate::secret_fields::SecretFields;
use crate::token_url::token_url_for_identity;
use crate::{CredentialError, TokenRequest};

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const JWT_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
/// What requests with a token of Anthropic need in `anthropic-beta`.
pub const ANTHROPIC_TOKEN_BETA: &str = "oauth-2025-04-20";
const ANTHROPIC_FEDERATION_BETA: &str = "oidc-federation-2026-04-01";

pub(crate) fn request(
    provider: &Provider,
    secret: &str,
    identity_token: Option<&str>,
) -> Result<TokenRequest, CredentialError> {
    match provider.provider_type {
        ProviderType::OpenAi => openai(provider, secret, identity_token),
        ProviderType::Anthropic => anthropic(provider, secret, identity_token),
        ProviderType::Vertex => google(provider, secret, identity_token),
        _ => {
            Err(CredentialError::Unsupported { provider: provider.name.clone(), what: "workload identity federation" })
        }
    }
}

/// Returns the address of the token server and the identity token.
fn addressed<'a>(
    provider: &Provider,
    fields: &'a SecretFields<'_>,
    identity_token: Option<&'a str>,
    usual: &str,
) -> Result<(String, &'a str), CredentialError> {
    let own = fields.text("subject_token");
    let token = own.or(identity_token);
    let token = token.ok_or_else(|| fields.unsupported("workload identity federation without `subject_token`"))?;
    Ok((token_url_for_identity(provider, usual, own.is_none())?, token))
}

fn openai(provider: &Provider, secret: &str, identity_token: Option<&str>) -> Result<TokenRequest, CredentialError> {
    let members = "`identity_provider_id`, `service_account_id` and `subject_token`";
    let fields = SecretFields::read(provider, secret, members)?;
    let (url, subject) = addressed(provider, &fields, identity_token, "https://auth.openai.com/oauth/token")?;
    let body = json!({
        "grant_type": TOKEN_EXCHANGE,
        "subject_token_type": fields.text("subject_token_type").unwrap_or(JWT_TYPE),
        "subject_token": subject,
        "identity_provider_id": fields.require("identity_provider_id", "the id of the identity provider at OpenAI")?,
        "service_account_id": fields.require("service_account_id", "the id of the service account")?,
    });
    Ok(TokenRequest::json(url, &body))
}

fn anthropic(provider: &Provider, secret: &str, identity_token: Option<&str>) -> Result<TokenRequest, CredentialError> {
    let members = "`federation_rule_id`, `organization_id`, `service_account_id` and `subject_token`";
    let fields = SecretFields::read(provider, secret, members)?;
    let (url, subject) = addressed(provider, &fields, identity_token, "https://api.anthropic.com/v1/oauth/token")?;
    let mut body = json!({
        "grant_type": JWT_BEARER,
        "assertion": subject,
        "federation_rule_id": fields.require("federation_rule_id", "the id of the federation rule")?,
        "organization_id": fields.require("organization_id", "the id of the organization")?,
        "service_account_id": fields.require("service_account_id", "the id of the service account")?,
    });
    if let Some(workspace) = fields.text("workspace_id") {
        body["workspace_id"] = Value::from(workspace);
    }
    let request = TokenRequest::json(url, &body);
    let betas = format!("{ANTHROPIC_TOKEN_BETA},{ANTHROPIC_FEDERATION_BETA}");
    Ok(request.with_header("anthropic-version", "2023-06-01".to_owned()).with_header("anthropic-beta", betas))
}

/// The secret has the members of a credential configuration file of the type `external_account`.
fn google(provider: &Provider, secret: &str, identity_token: Option<&str>) -> Result<TokenRequest, CredentialError> {
    let fields = SecretFields::read(provider, secret, "`audience`, `subject_token_type` and `subject_token`")?;
    if fields.text("service_account_impersonation_url").is_some() {
        return Err(fields.unsupported("`service_account_impersonation_url`"));
    }
    let audience = fields.require("audience", "the name of the provider in its workload identity pool")?;
    let (url, subject) = addressed(provider, &fields, identity_token, "https://sts.googleapis.com/v1/token")?;
    let body = form(&[
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ACCESS_TOKEN_TYPE),
        ("scope", SCOPE),
        ("audience", audience),
        ("subject_token_type", fields.text("subject_token_type").unwrap_or(JWT_TYPE)),
        ("subject_token", subject),
    ]);
    Ok(TokenRequest::form(url, body))
}
