//! Token servers: OAuth of Google, Entra, Databricks, OpenAI and Anthropic, and STS of AWS.
//!
//! Every secret is right unless the request contains `wrong`. Each token is another one, so that tests see which was used.

use serde_json::{Value, json};

/// Life of a token in seconds.
const EXPIRES_IN: u64 = 3600;

/// Answer of a token server.
pub(crate) struct TokenAnswer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

/// Answers a request for a token, if it is one. Its number becomes part of the token.
pub(crate) fn answer(path: &str, body: &str, number: usize) -> Option<TokenAnswer> {
    let path = path.split('?').next().unwrap_or_default();
    let is_wrong = body.contains("wrong");
    if path.ends_with("/token") {
        let json = match is_wrong {
            true => json!({"error": "invalid_client", "error_description": "AADSTS7000215: the secret is wrong"}),
            false => {
                json!({"access_token": format!("scripted-token-{number}"), "expires_in": EXPIRES_IN, "token_type": "Bearer"})
            }
        };
        return Some(oauth(if is_wrong { 401 } else { 200 }, &json));
    }
    body.contains("Action=AssumeRole").then(|| sts(is_wrong, number))
}

fn oauth(status: u16, body: &Value) -> TokenAnswer {
    TokenAnswer { status, content_type: "application/json", body: body.to_string() }
}

fn sts(is_wrong: bool, number: usize) -> TokenAnswer {
    let (status, body) = if is_wrong {
        let error = "<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error>";
        (403, format!("<ErrorResponse>{error}</ErrorResponse>"))
    } else {
        let credentials = format!(
            "<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>scripted-key-{number}</SecretAccessKey>\
             <SessionToken>scripted-session-{number}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        );
        let result = format!("<AssumeRoleResult><Credentials>{credentials}</Credentials></AssumeRoleResult>");
        (200, format!("<AssumeRoleResponse>{result}</AssumeRoleResponse>"))
    };
    TokenAnswer { status, content_type: "text/xml", body }
}
