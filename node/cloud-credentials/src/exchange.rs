//! Choice of the request for a token.

use std::fmt;

use assay_node_models::provider::{Provider, TokenExchange};

use crate::{CredentialError, TokenRequest, databricks, entra, federation, google};

/// What a token is asked for with.
#[derive(Clone, Copy)]
pub struct ExchangeCall<'a> {
    pub exchange: TokenExchange,
    pub provider: &'a Provider,
    /// Value of the secret. White space around it is not part of it.
    pub secret: &'a str,
    /// Token by which an identity provider identifies this server, if there is one. Its audience must be the model provider:
    /// it is sent there.
    pub identity_token: Option<&'a str>,
    pub now_ms: i64,
}

impl fmt::Debug for ExchangeCall<'_> {
    /// Shows no secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExchangeCall")
            .field("exchange", &self.exchange)
            .field("provider", &self.provider.name)
            .finish_non_exhaustive()
    }
}

/// Returns the request for a token. [`crate::parse_token`] reads its answer.
pub fn token_request(call: &ExchangeCall<'_>) -> Result<TokenRequest, CredentialError> {
    let ExchangeCall { exchange, provider, secret, identity_token, now_ms } = *call;
    let secret = secret.trim();
    match exchange {
        TokenExchange::EntraClient => entra::client_request(provider, secret),
        TokenExchange::EntraFederated => entra::federated_request(provider, secret, identity_token),
        TokenExchange::GoogleServiceAccount => google::service_account_request(provider, secret, now_ms),
        TokenExchange::DatabricksServicePrincipal => databricks::request(provider, secret),
        TokenExchange::WorkloadIdentity => federation::request(provider, secret, identity_token),
    }
}
