//! Access keys, from a secret and its metadata.

use assay_node_models::provider::{HiddenText, Provider};

use crate::CredentialError;
use crate::secret_fields::SecretFields;

const REGION_DEFAULT: &str = "us-east-1";
const MEMBERS: &str = "`access_key_id` and `secret_access_key`";

/// Access key that signs requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsCredentials {
    /// Id of the key. It is no secret, and part of each signature.
    pub access_key_id: String,
    pub secret_access_key: HiddenText,
    /// Token that temporary keys need.
    pub session_token: Option<HiddenText>,
}

/// Returns the access key of a secret.
///
/// The secret is the secret access key, and `metadata.access_key` its id; or the secret is JSON with `access_key_id`,
/// `secret_access_key` and, if it is temporary, `session_token`. Metadata win.
pub fn aws_credentials(provider: &Provider, secret: &str) -> Result<AwsCredentials, CredentialError> {
    let (secret, metadata) = (secret.trim(), &provider.metadata);
    let token_of_metadata = metadata.session_token.clone();
    let id_of_metadata = metadata.access_key.as_ref().map(|id| id.reveal().trim());
    if !secret.starts_with('{') {
        let missing = || CredentialError::Missing {
            provider: provider.name.clone(),
            member: "metadata.access_key".to_owned(),
            expected: "the id of the access key whose secret is stored",
        };
        let id = id_of_metadata.ok_or_else(missing)?;
        return checked(provider, id, secret, token_of_metadata);
    }
    let fields = SecretFields::read(provider, secret, MEMBERS)?;
    let either = |name: &'static str, other: &'static str| fields.text(name).or_else(|| fields.text(other));
    let id = match id_of_metadata.or_else(|| either("access_key_id", "access_key")) {
        Some(id) => id,
        None => fields.require("access_key_id", "the id of an access key")?,
    };
    let key = match either("secret_access_key", "secret_key") {
        Some(key) => key,
        None => fields.require("secret_access_key", "the secret of the access key")?,
    };
    let token = token_of_metadata.or_else(|| fields.text("session_token").map(HiddenText::new));
    checked(provider, id, key, token)
}

/// Checks that the credentials can be parts of headers.
fn checked(
    provider: &Provider,
    id: &str,
    key: &str,
    token: Option<HiddenText>,
) -> Result<AwsCredentials, CredentialError> {
    let invalid = |member: &str, expected| CredentialError::Invalid {
        provider: provider.name.clone(),
        member: member.to_owned(),
        expected,
    };
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain(id) || id.contains(['/', ',']) {
        return Err(invalid("the id of the access key", "letters and digits"));
    }
    if !is_plain(key) {
        return Err(invalid("the secret access key", "a text without blanks"));
    }
    if token.as_ref().is_some_and(|token| !is_plain(token.reveal().trim())) {
        return Err(invalid("the session token", "a text without blanks"));
    }
    Ok(AwsCredentials {
        access_key_id: id.to_owned(),
        secret_access_key: HiddenText::new(key),
        session_token: token.map(|token| HiddenText::new(token.reveal().trim())),
    })
}

/// Returns the region of a secret, checked to be part of a host name.
pub fn aws_region(provider: &Provider) -> Result<&str, CredentialError> {
    let region = provider.metadata.region.as_deref().unwrap_or(REGION_DEFAULT);
    if region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        Ok(region)
    } else {
        let expected = "the name of a region, such as `eu-central-1`";
        Err(CredentialError::Invalid {
            provider: provider.name.clone(),
            member: "metadata.region".to_owned(),
            expected,
        })
    }
}
