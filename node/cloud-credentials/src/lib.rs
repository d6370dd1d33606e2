//! Credentials of model providers that are no plain keys, without IO.
//!
//! | module | subject |
//! |---|---|
//! | [`aws`] | Signature Version 4 of requests, and temporary credentials of a role |
//! | [`token_request`], [`parse_token`] | the request for a token, and its answer |
//! | [`CredentialCache`] | tokens that are kept until they expire: when to ask, and for how long to wait after a failure |
//!
//! The caller sends requests, and passes the time in milliseconds since 1970. Which secret needs what is decided by
//! [`assay_node_models::provider::auth_plan`].
//!
//! Tokens are asked for at hosts of the provider only:
//!
//! | exchange | address |
//! |---|---|
//! | Entra | `login.microsoftonline.com` |
//! | Google | `oauth2.googleapis.com`, `sts.googleapis.com`; another `token_uri` of a key must be one of Google's |
//! | AWS role | `sts.<region>.amazonaws.com` |
//! | Databricks | the workspace, which is the origin of `metadata.api_base` |
//! | OpenAI, Anthropic | `auth.openai.com`, `api.anthropic.com` |
//!
//! `metadata.token_url` of a secret replaces the address, for sovereign clouds and private endpoints. It is checked as an
//! address; whether the server may connect to it is for the caller to check. A token that identifies this server is never
//! sent there.
//!
//! Errors and debug output show no secrets, and nothing that a token server wrote except the code of its error.

pub mod aws;
mod cache;
mod databricks;
mod encoding;
mod entra;
mod error;
mod exchange;
mod federation;
mod google;
mod secret_fields;
mod times;
mod token;
mod token_url;

pub use cache::{
    CREDENTIALS_MAX, CredentialCache, CredentialKey, CredentialLookup, FETCH_MS_MAX, REFRESH_MS, RETRY_MS_MAX,
};
pub use error::CredentialError;
pub use exchange::{ExchangeCall, token_request};
pub use federation::ANTHROPIC_TOKEN_BETA;
pub use token::{EXPIRES_IN_DEFAULT_S, TOKEN_BODY_BYTES_MAX, Token, TokenRequest, parse_token};

#[cfg(test)]
mod tests;
