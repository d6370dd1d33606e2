//! Requests for tokens, and their answers.

use std::fmt;

use assay_node_models::provider::HiddenText;
use serde_json::Value;

use crate::CredentialError;

/// Longest answer of a token server that is read.
pub const TOKEN_BODY_BYTES_MAX: usize = 256 << 10;
/// Life of a token whose server does not say it, in seconds.
pub const EXPIRES_IN_DEFAULT_S: u64 = 900;
/// Longest life that is believed, in seconds.
const EXPIRES_IN_MAX_S: u64 = 86_400;
/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Longest code of an error that is shown.
const CODE_CHARS_MAX: usize = 64;

/// Request for a token, ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRequest {
    pub method: &'static str,
    pub url: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl TokenRequest {
    pub(crate) fn form(url: String, body: String) -> TokenRequest {
        TokenRequest::post(url, "application/x-www-form-urlencoded", body)
    }

    pub(crate) fn json(url: String, body: &Value) -> TokenRequest {
        TokenRequest::post(url, "application/json", body.to_string())
    }

    fn post(url: String, content_type: &str, body: String) -> TokenRequest {
        let headers = [("accept", "application/json"), ("content-type", content_type)];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        TokenRequest { method: "POST", url, headers: headers.to_vec(), body }
    }

    pub(crate) fn with_header(mut self, name: &str, value: String) -> TokenRequest {
        self.headers.push((name.to_owned(), value));
        self
    }
}

impl fmt::Debug for TokenRequest {
    /// Shows neither the values of headers nor the body, which have secrets. The query of the address is not shown either.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let url = self.url.split('?').next().unwrap_or_default();
        out.debug_struct("TokenRequest")
            .field("method", &self.method)
            .field("url", &url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Token for `Authorization: Bearer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub value: HiddenText,
    /// Seconds from the answer on.
    pub expires_in: u64,
}

impl Token {
    /// Returns when the token expires if its answer came now.
    pub fn expires_ms(&self, now_ms: i64) -> i64 {
        let life_ms = i64::try_from(self.expires_in.saturating_mul(1000)).unwrap_or(i64::MAX);
        now_ms.saturating_add(life_ms)
    }
}

/// Reads the answer of a token server: `{"access_token", "expires_in"}`.
pub fn parse_token(status: u16, body: &[u8]) -> Result<Token, CredentialError> {
    let problem = |problem| CredentialError::Answer { problem };
    if body.len() > TOKEN_BODY_BYTES_MAX {
        return Err(problem("it is too long"));
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(refusal(status, error_code(&body).as_deref()));
    }
    let value = body.get("access_token").and_then(Value::as_str);
    let value = value.ok_or_else(|| problem("it is no JSON object with a text `access_token`"))?;
    if value.is_empty() || value.len() > TOKEN_BYTES_MAX || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(problem("`access_token` is empty, too long, or has characters that no header can have"));
    }
    // Entra has sent the number as a text
    let seconds = match body.get("expires_in") {
        Some(Value::String(text)) => text.parse().ok(),
        Some(number) => number.as_u64(),
        None => None,
    };
    let expires_in = seconds.unwrap_or(EXPIRES_IN_DEFAULT_S).min(EXPIRES_IN_MAX_S);
    Ok(Token { value: HiddenText::new(value), expires_in })
}

/// Error of an answer with this status. Only 4xx are about the secret, except those that mean to wait.
pub(crate) fn refusal(status: u16, code: Option<&str>) -> CredentialError {
    match status {
        408 | 429 => CredentialError::Failed { status },
        400..=499 => CredentialError::Refused { status, code: shown(code.unwrap_or("unknown")) },
        _ => CredentialError::Failed { status },
    }
}

/// Code of an OAuth error, with that of Entra, which begins the description.
fn error_code(body: &Value) -> Option<String> {
    let nested = body.pointer("/error/type").or_else(|| body.pointer("/error/code"));
    let code = body.get("error").and_then(Value::as_str).or_else(|| nested.and_then(Value::as_str))?;
    let description = body.get("error_description").and_then(Value::as_str).unwrap_or_default();
    let entra = description.split(':').next().unwrap_or_default();
    let is_entra = entra.strip_prefix("AADSTS").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    Some(if is_entra { format!("{code} {entra}") } else { code.to_owned() })
}

/// Returns what may be shown of a code: letters, digits and few others, and not more than a word or two.
fn shown(code: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    code.chars().filter(is_plain).take(CODE_CHARS_MAX).collect()
}
