//! Addresses of token servers.

use assay_node_models::provider::Provider;
use serde_json::Value;

use crate::CredentialError;

/// Bytes of an address.
const URL_BYTES_MAX: usize = 2048;
const EXPECTED: &str = "an address such as `https://login.example.com/token`, without a user name";

/// Returns `metadata.token_url`, or else the usual address.
pub(crate) fn token_url(provider: &Provider, usual: impl Into<String>) -> Result<String, CredentialError> {
    match provider.metadata.members.get("token_url") {
        None | Some(Value::Null) => Ok(usual.into()),
        Some(Value::String(url)) if is_address(url) => Ok(url.clone()),
        Some(_) => Err(CredentialError::Invalid {
            provider: provider.name.clone(),
            member: "metadata.token_url".to_owned(),
            expected: EXPECTED,
        }),
    }
}

/// Returns the address for a token that identifies this server. `metadata.token_url` is refused with it: whoever writes the
/// metadata would get the token.
pub(crate) fn token_url_for_identity(
    provider: &Provider,
    usual: impl Into<String>,
    is_of_server: bool,
) -> Result<String, CredentialError> {
    if is_of_server && provider.metadata.members.get("token_url").is_some_and(|url| !url.is_null()) {
        let what = "`metadata.token_url` together with the identity of this server";
        return Err(CredentialError::Unsupported { provider: provider.name.clone(), what });
    }
    token_url(provider, usual)
}

fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#';
    !authority.is_empty() && !authority.contains('@') && url.len() <= URL_BYTES_MAX && url.bytes().all(is_plain)
}

/// Returns scheme and authority of `metadata.api_base`.
pub(crate) fn origin_of_base(provider: &Provider) -> Result<String, CredentialError> {
    let member = || "metadata.api_base".to_owned();
    let base = provider.metadata.api_base.as_deref().ok_or_else(|| CredentialError::Missing {
        provider: provider.name.clone(),
        member: member(),
        expected: "the address of the workspace",
    })?;
    let rest = base.split_once("://").filter(|_| is_address(base));
    let origin = rest.map(|(scheme, rest)| format!("{scheme}://{}", rest.split(['/', '?']).next().unwrap_or_default()));
    origin.ok_or_else(|| CredentialError::Invalid {
        provider: provider.name.clone(),
        member: member(),
        expected: "the address of the workspace, such as `https://adb-1.2.azuredatabricks.net`",
    })
}
