//! Description of logins: OAuth, and programs that are set up while their person logs in.

use serde_json::{Value, json};

use assay_node_http::openapi::{Operation, names, reference, text, uuid};

/// Describes logins by OAuth.
pub fn logins() -> Vec<Operation> {
    const LOGINS: &str = "Logins";
    let of = |method, path: &str, summary: &str| Operation::new(method, path, LOGINS, summary).public();
    let page = |operation: Operation, status| {
        operation.answers_with(status, "A page with the reason why the login failed", "text/html", text())
    };
    let refused =
        json!({"type": "object", "required": ["error"], "properties": {"error": text(), "error_description": text()}});
    let form = |operation: Operation, needed: &[&str], fields: Value| {
        operation
            .takes_form(json!({"type": "object", "required": needed, "properties": fields}))
            .with("LoginError", refused.clone())
            .answers_with(400, "The code or token is invalid", "application/json", reference("LoginError"))
    };
    let grants = json!({"type": "string", "enum": ["authorization_code", "refresh_token"]});
    let tokens = json!({
        "type": "object", "required": ["access_token", "token_type", "expires_in", "refresh_token", "scope"],
        "properties": {
            "access_token": text(), "token_type": {"type": "string", "enum": ["Bearer"]}, "expires_in": {"type": "integer"},
            "refresh_token": text(), "scope": text(),
        },
    });
    let method = json!({"type": "string", "enum": ["S256"]});
    let authorize = of("get", "/oauth/authorize", "Start a login at the provider")
        .must_ask("response_type", json!({"type": "string", "enum": ["code"]}))
        .must_ask("client_id", text())
        .must_ask("redirect_uri", text())
        .must_ask("code_challenge", text())
        .must_ask("code_challenge_method", method)
        .asks("state", text())
        .asks("scope", json!({"type": "string", "enum": ["mcp"]}))
        .asks("resource", text());
    let back = of("get", "/oauth/callback", "Receive the redirect of the provider")
        .must_ask("state", text())
        .asks("code", text())
        .asks("error", text());
    let granted = json!({
        "grant_type": grants, "client_id": text(), "code": text(), "redirect_uri": text(), "code_verifier": text(),
        "refresh_token": text(), "scope": text(), "resource": text(),
    });
    let revoked = json!({"token": text(), "token_type_hint": text(), "client_id": text()});
    let ended = of("post", "/oauth/revoke", "End the login of a token");
    let replies = json!({"type": "object", "required": ["answer"], "properties": {"answer": text()},
        "additionalProperties": {"type": "string", "enum": ["accept", "decline", "later"]}});
    let reply = of("post", "/oauth/invitations", "Answer the invitations at login").takes_form(replies);
    vec![
        of("get", "/.well-known/oauth-authorization-server", "Get the metadata of the OAuth server (RFC 8414)")
            .answers(json!({"type": "object", "required": ["issuer", "authorization_endpoint", "token_endpoint"]})),
        page(authorize.redirects(), 400),
        page(page(back.redirects(), 400), 403).answers_with(
            200,
            "A page that asks about a program, and about pending invitations",
            "text/html",
            text(),
        ),
        page(page(reply.redirects(), 400), 403),
        form(
            of("post", "/oauth/token", "Get tokens for a code or a refresh token"),
            &["grant_type", "client_id"],
            granted,
        )
        .answers(tokens),
        form(ended, &["token"], revoked).answers(json!({"type": "object"})),
    ]
}

/// Describes the setup of programs while their person logs in.
pub fn setups() -> Vec<Operation> {
    let of = |method, path: &str, summary: &str| {
        Operation::new(method, format!("/api/cli/wizard-session/{path}"), "Logins", summary).public()
    };
    let shown = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let page = |operation: Operation, status| {
        operation.answers_with(status, "A page for the person at the browser", "text/html", text())
    };
    let time = json!({"type": "string", "format": "date-time"});
    let session = shown(json!({
        "session_token": text(), "poll_token": text(), "login_path": text(), "verification_code": text(), "expires_at": time,
    }));
    let status = json!({"type": "string", "enum": ["pending", "expired", "claimed", "complete"]});
    let state = json!({"type": "object", "required": ["status"], "properties": {
        "status": status, "expires_at": time, "api_key": text(), "org_id": uuid(), "org_name": text(), "project_id": uuid(),
        "project_name": text(),
    }});
    let login = of("get", "login", "Start the login of a program's user").must_ask("session_token", text());
    let answer = json!({"type": "object", "required": ["answer"], "properties": {"answer": text()}});
    let allow = of("post", "allow", "Allow the waiting program").takes_form(answer);
    let allow = allow.answers_with(200, "A page with the result", "text/html", text());
    vec![
        of("post", "create", "Start a setup session").answers(session),
        page(page(login.redirects(), 400), 503),
        page(page(allow, 400), 403),
        of("get", "poll", "Get the state of the session, with its `poll_token` as a bearer token")
            .must_ask("session_token", text())
            .answers(state),
    ]
}
