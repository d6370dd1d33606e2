//! Databricks: OAuth of a service principal, at its workspace.

use assay_node_models::provider::Provider;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::encoding::form;
use crate::secret_fields::SecretFields;
use crate::token_url::{origin_of_base, token_url};
use crate::{CredentialError, TokenRequest};

pub(crate) fn request(provider: &Provider, secret: &str) -> Result<TokenRequest, CredentialError> {
    let fields = SecretFields::read(provider, secret, "`client_id` and `client_secret`")?;
    let client = fields.require("client_id", "the id of the service principal")?;
    let client_secret = fields.require("client_secret", "the OAuth secret of the service principal")?;
    let url = token_url(provider, format!("{}/oidc/v1/token", origin_of_base(provider)?))?;
    let body = form(&[("grant_type", "client_credentials"), ("scope", "all-apis")]);
    let basic = STANDARD.encode(format!("{client}:{client_secret}"));
    Ok(TokenRequest::form(url, body).with_header("authorization", format!("Basic {basic}")))
}
