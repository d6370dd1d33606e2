//! Temporary credentials of a role: `AssumeRole` of AWS STS.

use assay_node_models::provider::{HiddenText, Provider};

use super::{AwsCredentials, AwsRequest, SigningScope, aws_credentials, aws_region, signature_headers};
use crate::encoding::form;
use crate::times::parse_iso;
use crate::token::{TOKEN_BODY_BYTES_MAX, refusal};
use crate::token_url::token_url;
use crate::{CredentialError, TokenRequest};

/// Life of the credentials that are asked for, in seconds. Roles allow at least one hour.
pub const ROLE_SECONDS: u32 = 3600;
const SESSION_NAME: &str = "assay-gateway";
const STS_VERSION: &str = "2011-06-15";

/// Returns the signed request for credentials of `metadata.role_arn`.
pub fn assume_role_request(provider: &Provider, secret: &str, now_ms: i64) -> Result<TokenRequest, CredentialError> {
    let credentials = aws_credentials(provider, secret)?;
    let region = aws_region(provider)?;
    let missing = || CredentialError::Missing {
        provider: provider.name.clone(),
        member: "metadata.role_arn".to_owned(),
        expected: "the ARN of the role",
    };
    let role = provider.metadata.role_arn.as_deref().ok_or_else(missing)?;
    let seconds = ROLE_SECONDS.to_string();
    let mut fields = vec![
        ("Action", "AssumeRole"),
        ("Version", STS_VERSION),
        ("RoleArn", role),
        ("RoleSessionName", SESSION_NAME),
        ("DurationSeconds", &seconds),
    ];
    fields.extend(provider.metadata.external_id.as_ref().map(|id| ("ExternalId", id.reveal())));
    let ending = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let mut request =
        TokenRequest::form(token_url(provider, format!("https://sts.{region}.{ending}/"))?, form(&fields));
    // the answer is XML whatever is asked for
    request.headers.retain(|(name, _)| name != "accept");
    let signed = AwsRequest {
        method: request.method,
        url: &request.url,
        headers: &request.headers,
        body: request.body.as_bytes(),
    };
    let scope = SigningScope { region, service: "sts" };
    let added = signature_headers(&signed, &credentials, &scope, now_ms)?;
    request.headers.extend(added);
    Ok(request)
}

/// Reads the answer: the credentials, and when they expire in milliseconds since 1970.
pub fn parse_assumed_role(status: u16, body: &[u8]) -> Result<(AwsCredentials, i64), CredentialError> {
    let problem = |problem| CredentialError::Answer { problem };
    if body.len() > TOKEN_BODY_BYTES_MAX {
        return Err(problem("it is too long"));
    }
    let text = std::str::from_utf8(body).map_err(|_| problem("it is not UTF-8"))?;
    if !(200..300).contains(&status) {
        return Err(refusal(status, element(text, "Code").as_deref()));
    }
    let inner = element(text, "Credentials").ok_or_else(|| problem("it has no element `Credentials`"))?;
    let value =
        |name: &str| element(&inner, name).map(|value| unescaped(value.trim())).filter(|value| !value.is_empty());
    let (id, key, token) = (value("AccessKeyId"), value("SecretAccessKey"), value("SessionToken"));
    let (Some(access_key_id), Some(key), Some(token)) = (id, key, token) else {
        return Err(problem("an element of `Credentials` is missing"));
    };
    let expires = value("Expiration").and_then(|time| parse_iso(&time));
    let expires = expires.ok_or_else(|| problem("`Expiration` is no time"))?;
    let credentials = AwsCredentials {
        access_key_id,
        secret_access_key: HiddenText::new(key),
        session_token: Some(HiddenText::new(token)),
    };
    Ok((credentials, expires))
}

/// Content of the first element of this name, which has no attributes.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    Some(content.to_owned())
}

fn unescaped(text: &str) -> String {
    // `&amp;` last, as it may begin another
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}
