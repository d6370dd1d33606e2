//! Requests for tokens, and their answers.

use assay_node_models::provider::TokenExchange;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider;
use crate::{CredentialError, ExchangeCall, Token, TokenRequest, parse_token, token_request};

const NOW_MS: i64 = 1_700_000_000_999;

fn asked(
    exchange: TokenExchange,
    provider_type: &str,
    metadata: &Value,
    secret: &str,
    identity_token: Option<&str>,
) -> Result<TokenRequest, CredentialError> {
    let provider = provider(provider_type, metadata);
    let call = ExchangeCall { exchange, provider: &provider, secret, identity_token, now_ms: NOW_MS };
    assert!(!format!("{call:?}").contains("hidden"));
    let found = token_request(&call);
    assert!(!format!("{found:?}").contains("hidden"), "{found:?}");
    found
}

fn header<'a>(request: &'a TokenRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

#[test]
fn entra_gets_the_credentials_of_a_client() {
    let secret = json!({"client_id": "c", "client_secret": "hidden &", "tenant_id": "t-1", "scope": "s/.default"});
    let request = asked(TokenExchange::EntraClient, "azure", &json!({}), &secret.to_string(), None);
    let request = request.expect("a request");
    assert_eq!(request.url, "https://login.microsoftonline.com/t-1/oauth2/v2.0/token");
    let expected = "grant_type=client_credentials&client_id=c&scope=s%2F.default&client_secret=hidden%20%26";
    assert_eq!((request.method, request.body.as_str()), ("POST", expected));
    assert_eq!(header(&request, "content-type"), Some("application/x-www-form-urlencoded"));
    for (name, value) in [("tenant_id", "../x"), ("tenant_id", "a/b"), ("tenant_id", ".."), ("tenant_id", "")] {
        let mut wrong = secret.clone();
        wrong[name] = value.into();
        let why = asked(TokenExchange::EntraClient, "azure", &json!({}), &wrong.to_string(), None).expect_err(value);
        assert!(why.to_string().contains(name), "{why}");
    }
    let metadata = json!({"token_url": "https://login.microsoftonline.us/t-1/oauth2/v2.0/token"});
    let request = asked(TokenExchange::EntraClient, "azure", &metadata, &secret.to_string(), None);
    assert_eq!(request.expect("a request").url, "https://login.microsoftonline.us/t-1/oauth2/v2.0/token");
}

#[test]
fn entra_takes_an_assertion_of_another_provider() {
    let mut secret = json!({"client_id": "c", "tenant_id": "t"});
    let ask =
        |secret: &Value, token| asked(TokenExchange::EntraFederated, "azure", &json!({}), &secret.to_string(), token);
    let request = ask(&secret, Some("hidden.a.b")).expect("a request");
    let expected = "grant_type=client_credentials&client_id=c\
        &scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default\
        &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer\
        &client_assertion=hidden.a.b";
    assert_eq!(request.body, expected);
    let why = ask(&secret, None).expect_err("no assertion").to_string();
    assert!(why.contains("not supported by this version"), "{why}");
    secret["client_assertion"] = "hidden.c.d".into();
    assert!(ask(&secret, Some("x")).expect("a request").body.ends_with("client_assertion=hidden.c.d"));
}

#[test]
fn a_service_account_signs_as_google_auth_does() {
    let golden: Value = serde_json::from_str(include_str!("../golden/assertion.json")).expect("JSON");
    let assertion = golden["assertion"].as_str().expect("a text");
    let expected = format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
    let account = |key: &Value, uri: &str| {
        json!({
            "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key": key,
            "private_key_id": "key-1", "token_uri": uri,
        })
    };
    let ask = |secret: &Value, metadata| {
        asked(TokenExchange::GoogleServiceAccount, "vertex", &metadata, &secret.to_string(), None)
    };
    for key in ["private_key", "pkcs1"] {
        let secret = account(&golden[key], "https://oauth2.googleapis.com/token");
        let request = ask(&secret, json!({})).expect("a request");
        assert_eq!((request.url.as_str(), request.body.as_str()), ("https://oauth2.googleapis.com/token", &*expected));
    }
    let secret = account(&golden["private_key"], "https://evil.example/token");
    let why = ask(&secret, json!({})).expect_err("another host").to_string();
    assert!(why.contains("`token_uri`") && !why.contains("evil"), "{why}");
    let secret = account(&golden["private_key"], "");
    let request = ask(&secret, json!({"token_url": "http://127.0.0.1:1/token"})).expect("a request");
    assert_eq!(request.url, "http://127.0.0.1:1/token");
    for key in ["hidden", "-----BEGIN PRIVATE KEY-----\nhidden\n-----END PRIVATE KEY-----\n"] {
        let why = ask(&account(&json!(key), ""), json!({})).expect_err("no key");
        assert!(why.to_string().contains("`private_key`"), "{why}");
    }
}

#[test]
fn databricks_is_asked_at_its_workspace() {
    let secret = json!({"client_id": "c", "client_secret": "hidden"}).to_string();
    let ask =
        |metadata: Value| asked(TokenExchange::DatabricksServicePrincipal, "databricks", &metadata, &secret, None);
    let request = ask(json!({"api_base": "https://dbc-1.cloud.databricks.com/serving-endpoints"})).expect("a request");
    assert_eq!(request.url, "https://dbc-1.cloud.databricks.com/oidc/v1/token");
    assert_eq!(request.body, "grant_type=client_credentials&scope=all-apis");
    assert_eq!(header(&request, "authorization"), Some("Basic YzpoaWRkZW4="));
    for metadata in [json!({}), json!({"api_base": "dbc"}), json!({"api_base": "https://u:hidden@h"})] {
        assert!(ask(metadata).expect_err("no workspace").to_string().contains("metadata.api_base"));
    }
}

#[test]
fn workloads_are_federated_where_the_provider_documents_it() {
    let ask = |kind: &str, secret: &Value, token| {
        asked(TokenExchange::WorkloadIdentity, kind, &json!({}), &secret.to_string(), token)
    };
    let secret = json!({"identity_provider_id": "idp_1", "service_account_id": "sa_1"});
    let request = ask("openai", &secret, Some("hidden.a.b")).expect("a request");
    assert_eq!(request.url, "https://auth.openai.com/oauth/token");
    let expected = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "subject_token": "hidden.a.b",
        "identity_provider_id": "idp_1", "service_account_id": "sa_1",
    });
    assert_eq!(serde_json::from_str::<Value>(&request.body).expect("JSON"), expected);
    let secret = json!({
        "federation_rule_id": "fdrl_1", "organization_id": "o", "service_account_id": "svac_1",
        "workspace_id": "default", "subject_token": "hidden.c.d",
    });
    let request = ask("anthropic", &secret, None).expect("a request");
    assert_eq!(request.url, "https://api.anthropic.com/v1/oauth/token");
    assert_eq!(header(&request, "anthropic-beta"), Some("oauth-2025-04-20,oidc-federation-2026-04-01"));
    let body: Value = serde_json::from_str(&request.body).expect("JSON");
    assert_eq!((&body["assertion"], &body["workspace_id"]), (&json!("hidden.c.d"), &json!("default")));
    let secret = json!({"audience": "//iam.googleapis.com/projects/1", "service_account_impersonation_url": null});
    let request = ask("vertex", &secret, Some("hidden.e.f")).expect("a request");
    assert_eq!(request.url, "https://sts.googleapis.com/v1/token");
    assert!(request.body.ends_with("&subject_token=hidden.e.f"), "{}", request.body);
    let why = ask("vertex", &json!({"service_account_impersonation_url": "x"}), None).expect_err("not supported");
    assert!(matches!(why, CredentialError::Unsupported { .. }));
    for (kind, secret) in [("openai", json!({})), ("anthropic", json!({})), ("azure", json!({}))] {
        let why = ask(kind, &secret, None).expect_err("no token").to_string();
        assert!(why.contains("not supported by this version"), "{why}");
    }
}

#[test]
fn the_identity_of_the_server_goes_to_fixed_addresses_only() {
    let metadata = json!({"token_url": "https://evil.example/"});
    for (exchange, kind, secret) in [
        (TokenExchange::EntraFederated, "azure", json!({"client_id": "c", "tenant_id": "t"})),
        (TokenExchange::WorkloadIdentity, "openai", json!({})),
        (TokenExchange::WorkloadIdentity, "anthropic", json!({})),
        (TokenExchange::WorkloadIdentity, "vertex", json!({"audience": "a"})),
    ] {
        let why = asked(exchange, kind, &metadata, &secret.to_string(), Some("hidden")).expect_err("another address");
        assert!(why.to_string().contains("`metadata.token_url` together"), "{why}");
    }
}

#[test]
fn a_secret_of_another_form_is_named_by_what_is_valid() {
    for secret in ["hidden", "[]", "{\"client_id\": \"hidden\"", ""] {
        let why =
            asked(TokenExchange::EntraClient, "azure", &json!({}), secret, None).expect_err("no JSON").to_string();
        assert!(why.contains("`client_secret`"), "{why}");
    }
    for url in [json!(1), json!("ftp://h/"), json!("https://u@h/"), json!("https://"), json!("https://h/ x")] {
        let secret = json!({"client_id": "c", "client_secret": "hidden", "tenant_id": "t"}).to_string();
        let why = asked(TokenExchange::EntraClient, "azure", &json!({"token_url": url}), &secret, None);
        assert!(why.expect_err("no address").to_string().contains("metadata.token_url"));
    }
}

#[test]
fn answers_have_tokens_with_their_lives() {
    for (body, expires_in) in [
        (json!({"access_token": "hidden", "expires_in": 3599}), 3599),
        (json!({"access_token": "hidden", "expires_in": "3599"}), 3599),
        (json!({"access_token": "hidden"}), 900),
        (json!({"access_token": "hidden", "expires_in": 1e300}), 900),
        (json!({"access_token": "hidden", "expires_in": 1_000_000_000u64}), 86_400),
    ] {
        let token = parse_token(200, body.to_string().as_bytes()).expect("a token");
        assert_eq!((token.value.reveal(), token.expires_in), ("hidden", expires_in));
        assert!(!format!("{token:?}").contains("hidden\""));
    }
    for body in ["", "{}", "[]", r#"{"access_token": ""}"#, r#"{"access_token": "hid den"}"#, r#"{"access_token": 1}"#]
    {
        let why = parse_token(200, body.as_bytes()).expect_err(body);
        assert!(matches!(why, CredentialError::Answer { .. }), "{why}");
    }
    assert!(parse_token(200, &vec![b' '; (256 << 10) + 1]).is_err());
}

#[test]
fn refusals_show_their_code_and_nothing_else() {
    let entra = json!({"error": "invalid_client", "error_description": "AADSTS7000215: Invalid secret 'hidden'."});
    let refused = |status, code: &str| CredentialError::Refused { status, code: code.to_owned() };
    for (status, body, expected) in [
        (401, entra, refused(401, "invalid_client AADSTS7000215")),
        (400, json!({"error": "invalid_grant", "error_description": "hidden"}), refused(400, "invalid_grant")),
        (
            400,
            json!({"error": {"type": "invalid_request_error", "message": "hidden"}}),
            refused(400, "invalid_request_error"),
        ),
        (403, json!("hidden"), refused(403, "unknown")),
        (400, json!({"error": "<b>\n\"x\""}), refused(400, "bx")),
        (429, json!({"error": "slow_down"}), CredentialError::Failed { status: 429 }),
        (503, json!({}), CredentialError::Failed { status: 503 }),
        (302, json!({}), CredentialError::Failed { status: 302 }),
    ] {
        let blames = matches!(expected, CredentialError::Refused { .. });
        let found: Result<Token, _> = parse_token(status, body.to_string().as_bytes());
        assert_eq!(found, Err(expected));
        assert_eq!(found.expect_err("an error").blames_secret(), blames);
    }
}

proptest! {
    #[test]
    fn any_secret_is_read_or_refused_without_being_shown(secret in "\\PC{0,60}", kind in 0usize..4) {
        let (exchange, provider_type) = [
            (TokenExchange::EntraClient, "azure"),
            (TokenExchange::GoogleServiceAccount, "vertex"),
            (TokenExchange::DatabricksServicePrincipal, "databricks"),
            (TokenExchange::WorkloadIdentity, "openai"),
        ][kind];
        let _ = asked(exchange, provider_type, &json!({}), &secret, None);
    }

    #[test]
    fn any_answer_is_read_or_refused(status in 100u16..600, body in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse_token(status, &body);
        let _ = crate::aws::parse_assumed_role(status, &body);
    }
}
