//! Handler of `POST /oauth/register`, with which programs register themselves (RFC 7591).
//!
//! All clients are public: they have no secret, so a code goes only to a registered address. People confirm the program
//! at each login.

use assay_node_auth::LoginRules;
use assay_node_http::openapi::{Operation, text};
use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::requests::login::pass;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload, StatusCode};
use assay_node_identity::RegisteredClient;
use serde_json::{Map, Value, json};

use super::parameters::{OAuthError, oauth_error};
use super::{FORM_BYTES_MAX, SCOPE, refused};

/// Upper bound of the redirect URIs of a client, and of each of them.
const REDIRECT_URIS_MAX: usize = 8;
const REDIRECT_BYTES_MAX: usize = 512;
/// Upper bound of the characters of a name, which people read.
const NAME_LETTERS_MAX: usize = 80;
const UNNAMED: &str = "unnamed program";
const GRANTS: [&str; 2] = ["authorization_code", "refresh_token"];

/// Registers a client.
pub async fn register(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    if !passed.rules.registers_clients() {
        let why = "programs cannot register themselves here: `oidc.client_registration` is off, or `oidc.clients` \
                   lists the allowed ones";
        return Err(Refusal::new(ErrorKind::NotFound, why));
    }
    if !passed.gate.admits_registration() {
        let why = "too many programs have registered themselves in the last minute; try again in a minute";
        return Err(Refusal { retry_after_seconds: Some(60), ..Refusal::new(ErrorKind::Busy, why) });
    }
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let body = body.object().await?;
    let (name, redirect_uris) = match asked(&body, passed.rules) {
        Ok(asked) => asked,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    let RegisteredClient { client_id, registration } = edge.identity.register_client(name, redirect_uris)?;
    let registered = json!({
        "client_id": client_id,
        "client_id_issued_at": registration.issued,
        "client_name": registration.name,
        "redirect_uris": registration.redirect_uris,
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": SCOPE,
    });
    Ok(HttpResponse::build(StatusCode::CREATED).content_type("application/json").body(registered.to_string()))
}

/// Returns the name and the redirect URIs of a request. Other members are replaced by what this server supports.
fn asked(body: &Map<String, Value>, rules: &LoginRules) -> Result<(String, Vec<String>), OAuthError> {
    let invalid = |why: &str| oauth_error("invalid_client_metadata", why);
    let grants = body.get("grant_types").and_then(Value::as_array);
    if grants.is_some_and(|grants| !grants.iter().any(|grant| grant == GRANTS[0])) {
        return Err(invalid("`grant_types` has to contain `authorization_code`"));
    }
    let types = body.get("response_types").and_then(Value::as_array);
    if types.is_some_and(|types| !types.iter().any(|one| one == "code")) {
        return Err(invalid("`response_types` has to contain `code`"));
    }
    let uris = body.get("redirect_uris").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if uris.is_empty() || uris.len() > REDIRECT_URIS_MAX {
        let why = format!("`redirect_uris` has to be a list of 1 to {REDIRECT_URIS_MAX} addresses");
        return Err(oauth_error("invalid_redirect_uri", why));
    }
    let uri = |uri: &Value| {
        let text = uri.as_str().filter(|uri| uri.len() <= REDIRECT_BYTES_MAX && rules.may_register(uri));
        text.map(str::to_owned).ok_or_else(|| {
            let shown: String = uri.to_string().chars().take(100).collect();
            let why = format!(
                "{shown} cannot be a redirect address: use http://127.0.0.1:<port>, [::1], localhost, or https. The \
                 operator can list others in `oidc.redirect_uris`"
            );
            oauth_error("invalid_redirect_uri", why)
        })
    };
    let uris = uris.iter().map(uri).collect::<Result<Vec<String>, OAuthError>>()?;
    let name = match body.get("client_name") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(name)) => name.chars().filter(|letter| !letter.is_control()).collect(),
        Some(_) => return Err(invalid("`client_name` has to be a string")),
    };
    let name: String = name.trim().chars().take(NAME_LETTERS_MAX).collect();
    Ok((if name.is_empty() { UNNAMED.to_owned() } else { name }, uris))
}

/// Describes the route for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let uris = json!({"type": "array", "items": text(), "minItems": 1, "maxItems": REDIRECT_URIS_MAX});
    let words = json!({"type": "array", "items": text()});
    let request = json!({
        "type": "object", "required": ["redirect_uris"], "properties": {
            "redirect_uris": uris, "client_name": text(), "grant_types": words, "response_types": words,
        },
    });
    let registered = json!({
        "type": "object", "required": ["client_id", "redirect_uris"],
        "properties": {"client_id": text(), "client_name": text(), "redirect_uris": uris},
    });
    let refused =
        json!({"type": "object", "required": ["error"], "properties": {"error": text(), "error_description": text()}});
    let register = Operation::new("post", "/oauth/register", "Logins", "Register a program for logins (RFC 7591)")
        .public()
        .takes(request)
        .answers_with(201, "The client is registered", "application/json", registered)
        .answers_with(400, "The client cannot be registered like this", "application/json", refused);
    vec![register]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<(String, Vec<String>), &'static str> {
        let rules = LoginRules {
            provider: "login.example".into(),
            origin: "https://assay.example".into(),
            clients: Vec::new(),
            redirect_uris: vec!["editor://callback".into()],
            is_registration_open: true,
            access_seconds: 600,
            login_seconds: 3600,
        };
        asked(body.as_object().expect("an object"), &rules).map_err(|wrong| wrong.error)
    }

    #[test]
    fn a_client_has_addresses_and_a_name() {
        let uri = "http://127.0.0.1:33418/";
        let found = read(json!({"redirect_uris": [uri, "editor://callback"], "client_name": " An\u{7} <agent> "}));
        assert_eq!(found, Ok(("An <agent>".into(), vec![uri.into(), "editor://callback".into()])));
        let found = read(json!({"redirect_uris": [uri], "grant_types": ["authorization_code"], "scope": "x"}));
        assert_eq!(found.map(|(name, _)| name), Ok(UNNAMED.into()));
        let long = read(json!({"redirect_uris": [uri], "client_name": "é".repeat(500)})).expect("it is cut");
        assert_eq!(long.0.chars().count(), NAME_LETTERS_MAX);
    }

    #[test]
    fn what_a_client_cannot_have_is_refused() {
        let uri = "https://app.example/back";
        let (metadata, redirect) = ("invalid_client_metadata", "invalid_redirect_uri");
        for (body, error) in [
            (json!({}), redirect),
            (json!({"redirect_uris": []}), redirect),
            (json!({"redirect_uris": uri}), redirect),
            (json!({"redirect_uris": [3]}), redirect),
            (json!({"redirect_uris": ["http://app.example/back"]}), redirect),
            (json!({"redirect_uris": vec![uri; REDIRECT_URIS_MAX + 1]}), redirect),
            (json!({"redirect_uris": [format!("{uri}{}", "x".repeat(REDIRECT_BYTES_MAX))]}), redirect),
            (json!({"redirect_uris": [uri], "client_name": 3}), metadata),
            (json!({"redirect_uris": [uri], "grant_types": ["client_credentials"]}), metadata),
            (json!({"redirect_uris": [uri], "response_types": ["token"]}), metadata),
        ] {
            assert_eq!(read(body.clone()), Err(error), "{body}");
        }
    }
}
