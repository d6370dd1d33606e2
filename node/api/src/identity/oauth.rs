//! Handlers of OAuth 2.1 with PKCE for user logins.
//!
//! This server is the authorization server of its clients, and the configured provider identifies the users.
//!
//! ```text
//! client -> GET authorize -> provider -> GET callback -> client (with a code) -> POST token -> tokens
//!           |                            |
//!           |                            +-- a person who is invited, or whose program registered itself, is asked:
//!           |                                POST invitations
//!           +-- an error is a page until the redirect URI is known to be allowed; after that it goes to the client
//! ```

mod pages;
mod parameters;
pub mod registration;

use assay_node_auth::{AskedTicket, IdTokenClaims, LoginAsked, LoginClient};
use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::requests::login::pass;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload, StatusCode, header};
use assay_node_identity::{GrantRefusal, InvitationReply, LoginTokens, PendingInvitation, ProviderRefusal};
use assay_node_records::RecordsError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::identity::setup;

use parameters::{Grant, OAuthError, RedirectTarget, oauth_error};

pub(crate) use pages::{Page, escaped, page};
pub(crate) use parameters::{Parameters, form};

/// Only scope, which grants everything that the user may do.
pub(crate) const SCOPE: &str = "mcp";
const REPLY: &str = "/oauth/invitations";
/// Prefix of form fields that name an invitation.
const REPLY_FIELD: &str = "invitation-";
/// Form field with which a user denies access to a program.
const CONSENT_FIELD: &str = "consent";
const DENY: &str = "deny";
/// Upper bound of the body of a form.
pub(crate) const FORM_BYTES_MAX: usize = 32 << 10;

/// Returns the metadata of the authorization server, as in RFC 8414.
pub async fn metadata(edge: Data<Edge>) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let origin = &passed.rules.origin;
    let mut metadata = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/oauth/authorize"),
        "token_endpoint": format!("{origin}/oauth/token"),
        "revocation_endpoint": format!("{origin}/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": [SCOPE],
        "authorization_response_iss_parameter_supported": true,
        "service_documentation": format!("{origin}/docs/guide/coding-agents"),
    });
    if passed.rules.registers_clients() {
        metadata["registration_endpoint"] = format!("{origin}/oauth/register").into();
    }
    json(&metadata)
}

/// Returns the client that a request names.
fn client_of(edge: &Data<Edge>, parameters: &Parameters) -> Result<Result<LoginClient, OAuthError>, Refusal> {
    let client_id = match parameters.needed("client_id") {
        Ok(client_id) => client_id,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let unknown = || {
        let why = "`client_id` is unknown: register the client again, or use one that `oidc.clients` allows";
        oauth_error("invalid_client", why)
    };
    Ok(edge.identity.login_client(client_id)?.ok_or_else(unknown))
}

/// Redirects a browser to the provider.
pub async fn authorize(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let shown = |wrong: OAuthError| Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(&wrong.why)));
    let parameters = match Parameters::of(request.query_string()) {
        Ok(parameters) => parameters,
        Err(wrong) => return shown(wrong),
    };
    let client = match client_of(&edge, &parameters)? {
        Ok(client) => client,
        Err(wrong) => return shown(wrong),
    };
    let target = match parameters.target(passed.rules, &client) {
        Ok(target) => target,
        Err(wrong) => return shown(wrong),
    };
    let asked = match parameters.login(passed.rules, &client, &target) {
        Ok(asked) => asked,
        Err(wrong) => return Ok(sent_back(&target, &wrong)),
    };
    let begun = match edge.identity.begin_login(asked) {
        Err(RecordsError::TooLarge(why)) => return Ok(sent_back(&target, &oauth_error("invalid_request", why))),
        begun => begun?,
    };
    match passed.gate.provider.authorize(begun).await {
        Ok(url) => Ok(sent_to(&url)),
        Err(why) => Ok(sent_back(&target, &unavailable(&why))),
    }
}

/// Handles the redirect from the provider back to this server.
pub async fn callback(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let shown = Parameters::of(request.query_string());
    let state = shown.as_ref().ok().and_then(|shown| shown.one("state").ok().flatten());
    let pending = state.map(|state| edge.identity.pending_login(state)).transpose()?.flatten();
    let (Ok(shown), Some(pending)) = (&shown, pending) else {
        let why = "This login was not started on this server, or is older than ten minutes. Start again from your \
                   program.";
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(why)));
    };
    let asked = pending.asked.clone();
    let target = RedirectTarget::of(&asked, passed.rules);
    let code = match (shown.one("error"), shown.one("code")) {
        (Ok(None), Ok(Some(code))) => code.to_owned(),
        (Ok(Some("access_denied")), _) => {
            return Ok(sent_back(&target, &oauth_error("access_denied", "the provider denied the login")));
        }
        _ => return Ok(sent_back(&target, &oauth_error("server_error", "the provider returned no code"))),
    };
    let who = match passed.gate.provider.identify(code, pending).await {
        Ok(who) => who,
        Err(why @ ProviderRefusal::Unavailable(_)) => return Ok(sent_back(&target, &unavailable(&why))),
        Err(ProviderRefusal::Refused(why)) => {
            tracing::warn!(why, "a login failed: the token of the provider is invalid");
            let why = "the token of the provider is invalid; the log of the server has the details";
            return Ok(sent_back(&target, &oauth_error("access_denied", why)));
        }
    };
    let invitations = edge.identity.pending_invitations(&who).await?;
    if asked.session.is_some() {
        return setup::ask(&edge, &asked, &who, &invitations);
    }
    if asked.registered.is_some() || !invitations.is_empty() {
        return ask(&edge, &asked, &who, &invitations);
    }
    finished(&target, edge.identity.finish_login(&asked, &who).await)
}

fn finished(target: &RedirectTarget, code: Result<String, RecordsError>) -> HandlerResult {
    match code {
        Ok(code) => Ok(sent_to(&target.with(&[("code", &code)]))),
        Err(RecordsError::Forbidden(why)) => {
            let back = target.with(&[("error", "access_denied"), ("error_description", &why)]);
            Ok(page(StatusCode::FORBIDDEN, &Page::not_logged_in(&why).back_to(&back)))
        }
        Err(why) => Err(why.into()),
    }
}

/// Asks a user about a client that registered itself, and about pending invitations, before the login finishes.
fn ask(edge: &Data<Edge>, asked: &LoginAsked, who: &IdTokenClaims, invitations: &[PendingInvitation]) -> HandlerResult {
    let (answer, _) = edge.identity.ask_person(asked, who)?;
    let (consent, buttons) = match &asked.registered {
        None => (String::new(), "<button>Continue</button>".to_owned()),
        Some(name) => (
            consent(name, &asked.redirect_uri, &who.email),
            format!("<button>Allow access</button> <button name=\"{CONSENT_FIELD}\" value=\"{DENY}\">Deny</button>"),
        ),
    };
    let more = format!(
        "{consent}<form method=\"post\" action=\"{REPLY}\"><input type=\"hidden\" name=\"answer\" \
         value=\"{answer}\">{}{buttons}</form>",
        choices(invitations)
    );
    let (title, heading) = match asked.registered {
        Some(_) => ("Allow access?", "A program requests access"),
        None => ("Invitations", "You are invited"),
    };
    Ok(page(StatusCode::OK, &Page { title, heading, why: "", more, has_form: true }))
}

/// Returns what a user has to know about a client that registered itself.
fn consent(name: &str, redirect_uri: &str, email: &str) -> String {
    let host = redirect_uri.split_once("://").map_or(redirect_uri, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    format!(
        "<p>A program that calls itself <b>{}</b> wants to read and change everything that <b>{}</b> may read and \
         change here.</p><p>Access goes to <b>{}</b>, at the address <code>{}</code>.</p><p>If you did not start this, \
         or do not know that address, deny it.</p>",
        escaped(name),
        escaped(email),
        escaped(host),
        escaped(redirect_uri)
    )
}

/// Returns the form fields for each invitation. The default postpones the decision.
pub(crate) fn choices(invitations: &[PendingInvitation]) -> String {
    let one = |invitation: &PendingInvitation| {
        let (organization, by) = (escaped(&invitation.organization), escaped(&invitation.invited_by));
        let choice = |word: &str, label: &str, more: &str| {
            let name = format!("{REPLY_FIELD}{}", invitation.id);
            format!("<label><input type=\"radio\" name=\"{name}\" value=\"{word}\"{more}> {label}</label> ")
        };
        format!(
            "<p><b>{by}</b> invites you to the organization <b>{organization}</b>. Its owners can see what you write \
             there.</p><p>{}{}{}</p>",
            choice("accept", "Accept", ""),
            choice("decline", "Decline", ""),
            choice("later", "Decide later", " checked"),
        )
    };
    invitations.iter().map(one).collect()
}

/// Accepts and declines invitations as the form says.
pub(crate) async fn carry_out(edge: &Data<Edge>, form: &Parameters, who: &IdTokenClaims) -> Result<(), Refusal> {
    for (name, value) in &form.0 {
        let id = name.strip_prefix(REPLY_FIELD).and_then(|id| Uuid::parse_str(id).ok());
        let reply = match value.as_str() {
            "accept" => InvitationReply::Accept,
            "decline" => InvitationReply::Decline,
            _ => continue,
        };
        if let Some(id) = id {
            edge.identity.reply_at_login(who, id, reply).await?;
        }
    }
    Ok(())
}

/// Handles `POST /oauth/invitations`: replies to invitations and finishes the login.
pub async fn reply(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    const TOO_OLD: &str = "This form was not issued by this server, or is older than five minutes. Start again from \
                           your program.";
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let form = form(&body.bytes).ok();
    let answer = form.as_ref().and_then(|form| form.one("answer").ok().flatten());
    let ticket = answer.map(|answer| edge.identity.allowed(answer)).transpose()?.flatten();
    let ticket = ticket.filter(|ticket| ticket.asked.session.is_none());
    let (Some(form), Some(AskedTicket { asked, email, is_verified, login: Some(login), .. })) = (form, ticket) else {
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(TOO_OLD)));
    };
    let who = IdTokenClaims { email, is_verified };
    let target = RedirectTarget::of(&asked, passed.rules);
    if form.0.iter().any(|(name, value)| name == CONSENT_FIELD && value == DENY) {
        return Ok(sent_back(&target, &oauth_error("access_denied", "the user denied access")));
    }
    if let Err(why) = edge.identity.check_unanswered(login).await {
        return finished(&target, Err(why));
    }
    carry_out(&edge, &form, &who).await?;
    finished(&target, edge.identity.finish_login_as(&asked, &who, login).await)
}

/// Handles `POST /oauth/token`: exchanges a code or a refresh token for tokens.
pub async fn token(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let form = match form(&body.bytes) {
        Ok(form) => form,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    let client = client_of(&edge, &form)?;
    let tokens = match client.and_then(|client| Grant::read(&form, passed.rules, &client)) {
        Err(wrong) => return Ok(refused(&wrong)),
        Ok(Grant::Code { client, code, redirect_uri, verifier }) => {
            edge.identity.redeem_code(&code, &client, &redirect_uri, &verifier).await
        }
        Ok(Grant::Refresh { client, token }) => edge.identity.refresh_login(&token, &client).await,
    };
    match tokens {
        Ok(LoginTokens { access, refresh, expires_in, scope }) => json(&json!({
            "access_token": access.expose(),
            "token_type": "Bearer",
            "expires_in": expires_in,
            "refresh_token": refresh.expose(),
            "scope": scope,
        })),
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&oauth_error("invalid_grant", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// Revokes a token, as in RFC 7009. Unknown tokens count as revoked.
pub async fn revoke(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let asked = form(&body.bytes).and_then(|form| {
        let client = form.one("client_id")?.map(str::to_owned);
        Ok((form.needed("token")?.to_owned(), client))
    });
    let (token, client) = match asked {
        Ok(asked) => asked,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    let known = client.as_deref().map(|client| edge.identity.login_client(client)).transpose()?.flatten();
    let client = known.map(|known| known.id).or(client);
    match edge.identity.end_login(&token, client.as_deref()).await {
        Ok(()) => json(&json!({})),
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&oauth_error("invalid_client", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

pub(crate) fn unavailable(why: &ProviderRefusal) -> OAuthError {
    let (ProviderRefusal::Unavailable(why) | ProviderRefusal::Refused(why)) = why;
    tracing::warn!(why, "a login failed: the provider did not respond as expected");
    oauth_error(
        "temporarily_unavailable",
        "the provider did not respond as expected; the log of the server has the details",
    )
}

pub(crate) fn sent_to(url: &str) -> HttpResponse {
    let mut answer = HttpResponse::Found();
    // The URL contains secrets for one use, so no other server may see it.
    answer.insert_header((header::LOCATION, url)).insert_header((header::REFERRER_POLICY, "no-referrer"));
    answer.finish()
}

fn sent_back(target: &RedirectTarget, wrong: &OAuthError) -> HttpResponse {
    sent_to(&target.with(&[("error", wrong.error), ("error_description", &wrong.why)]))
}

/// Returns an error response, as in RFC 6749 5.2.
fn refused(wrong: &OAuthError) -> HttpResponse {
    let said: Value = json!({"error": wrong.error, "error_description": wrong.why});
    HttpResponse::BadRequest().content_type("application/json").body(said.to_string())
}
