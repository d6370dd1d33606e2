//! Tests of access: credentials, logins, grants, and secrets at rest.

pub(crate) mod hardening;
pub(crate) mod matrix;
pub(crate) mod oidc;
pub(crate) mod secrets;
pub(crate) mod service_tokens;
pub(crate) mod unknown_credentials;
