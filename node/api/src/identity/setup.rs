//! Handlers for the setup of a program in a terminal, whose user logs in with a browser.
//!
//! The program waits until the user allows access, and then receives an API key of the user.
//!
//! ```text
//! program -> POST create (a session, and what it shows when it asks) ... GET poll, again and again -> an API key
//! browser -> GET login -> provider -> callback -> "is it yours? its code is ABCD-2345" -> POST allow
//! ```
//! An attacker may start a session and send its URL to somebody else. Therefore, a page asks the user after the login
//! to compare the code with the code in the terminal. No other page can submit this form.

use assay_node_auth::{IdTokenClaims, LoginAsked};
use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::requests::caller::bearer;
use assay_node_http::requests::login::pass;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, Payload, StatusCode, header};
use assay_node_identity::{PendingInvitation, Setup, SetupState};
use assay_node_records::RecordsError;
use assay_storage_model::event::format_micros;
use serde_json::json;

use crate::identity::oauth::{
    FORM_BYTES_MAX, Page, Parameters, SCOPE, carry_out, choices, escaped, form, page, sent_to, unavailable,
};
use crate::registering::PROJECT_NAME;

const LOGIN: &str = "/api/cli/wizard-session/login";
const ALLOW: &str = "/api/cli/wizard-session/allow";
const CLIENT: &str = "setup of a program";
const TOO_OLD: &str =
    "This setup was not started on this server, or is older than ten minutes. Start again from your program.";

/// Handles `POST /api/cli/wizard-session/create`: begins a session. It needs no credential.
pub async fn create(edge: Data<Edge>) -> HandlerResult {
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let Setup { session, token, code, until } = edge.identity.begin_setup()?;
    json(&json!({
        "session_token": session,
        "poll_token": token.expose(),
        // A ticket has only characters that URLs allow.
        "login_path": format!("{LOGIN}?session_token={session}"),
        "verification_code": code,
        "expires_at": time_of(until),
    }))
}

/// Redirects a browser to the provider, or shows the error that the provider returned.
pub async fn login(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let shown = Parameters::of(request.query_string());
    let one = |name: &str| shown.as_ref().ok().and_then(|shown| shown.one(name).ok().flatten());
    if let Some(error) = one("error") {
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(sentence_of(error))));
    }
    let session = one("session_token").map(|session| edge.identity.setup(session)).transpose()?.flatten();
    let Some(session) = session else { return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(TOO_OLD))) };
    let asked = LoginAsked {
        client_id: CLIENT.into(),
        redirect_uri: format!("{}{LOGIN}", passed.rules.origin),
        state: None,
        challenge: session.challenge,
        scope: SCOPE.into(),
        session: Some(session.session),
        registered: None,
    };
    let begun = edge.identity.begin_login(asked)?;
    match passed.gate.provider.authorize(begun).await {
        Ok(url) => Ok(sent_to(&url)),
        Err(why) => Ok(page(StatusCode::SERVICE_UNAVAILABLE, &Page::not_logged_in(&unavailable(&why).why))),
    }
}

/// Returns the sentence for an error in the URL. Attackers can write URLs, so the page shows no other text of it.
fn sentence_of(error: &str) -> &'static str {
    match error {
        "access_denied" => "The provider denied the login, or its token is invalid. Start again from your program.",
        "temporarily_unavailable" => "The provider did not respond as expected. Try again in a moment.",
        _ => "The login failed. Start again from your program.",
    }
}

/// Asks an identified user to allow access.
pub fn ask(
    edge: &Data<Edge>,
    asked: &LoginAsked,
    who: &IdTokenClaims,
    invitations: &[PendingInvitation],
) -> HandlerResult {
    let (answer, code) = edge.identity.ask_person(asked, who)?;
    let email = escaped(&who.email);
    let more = format!(
        "<p>It will get an API key with the permissions of <b>{email}</b>. It shows the code</p><h2>{code}</h2><p>If \
         your terminal shows another code, or you did not start a setup there, close this page.</p><form \
         method=\"post\" action=\"{ALLOW}\"><input type=\"hidden\" name=\"answer\" value=\"{answer}\">{}<button>The \
         codes match: allow access</button></form>",
        choices(invitations)
    );
    let asks = Page {
        title: "Allow access?",
        heading: "A program in a terminal requests access",
        why: "",
        more,
        has_form: true,
    };
    Ok(page(StatusCode::OK, &asks))
}

/// Handles `POST /api/cli/wizard-session/allow`: allows access.
pub async fn allow(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let form = form(&body.bytes).ok();
    let answer = form.as_ref().and_then(|form| form.one("answer").ok().flatten());
    let ticket = answer.map(|answer| edge.identity.allowed(answer)).transpose()?.flatten();
    let ticket = ticket.and_then(|ticket| ticket.asked.session.map(|session| (session, ticket)));
    let (Some(form), Some((session, ticket))) = (form, ticket) else {
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(TOO_OLD)));
    };
    let who = IdTokenClaims { email: ticket.email, is_verified: ticket.is_verified };
    match edge.identity.check_unanswered(session).await {
        Ok(()) => {}
        Err(RecordsError::Forbidden(why)) => return Ok(page(StatusCode::FORBIDDEN, &Page::not_logged_in(&why))),
        Err(why) => return Err(why.into()),
    }
    carry_out(&edge, &form, &who).await?;
    match edge.identity.finish_login(&ticket.asked, &who).await {
        Ok(_) => {
            let why = "The program has access now. You can close this page and return to your terminal.";
            let done = Page { title: "Done", heading: "Done", why, more: String::new(), has_form: false };
            Ok(page(StatusCode::OK, &done))
        }
        Err(RecordsError::Forbidden(why)) => Ok(page(StatusCode::FORBIDDEN, &Page::not_logged_in(&why))),
        Err(why) => Err(why.into()),
    }
}

/// Handles `GET /api/cli/wizard-session/poll`: returns the state of the session to the program that has its token.
pub async fn poll(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let token = bearer(request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes()))?;
    let shown = Parameters::of(request.query_string());
    let session = shown.as_ref().ok().and_then(|shown| shown.one("session_token").ok().flatten());
    let session = session.map(|session| edge.identity.setup(session)).transpose()?.flatten();
    let Some(session) = session else { return json(&json!({"status": "expired"})) };
    match edge.identity.poll_setup(&session, token.expose(), PROJECT_NAME).await? {
        SetupState::Pending => json(&json!({"status": "pending", "expires_at": time_of(session.until)})),
        SetupState::Claimed => json(&json!({"status": "claimed"})),
        SetupState::Expired => json(&json!({"status": "expired"})),
        SetupState::Complete { key, who, project } => json(&json!({
            "status": "complete",
            "api_key": key.expose(),
            "org_id": who.org,
            "org_name": who.org_name,
            "project_id": project.id,
            "project_name": project.name,
        })),
    }
}

fn time_of(seconds: i64) -> String {
    format_micros(seconds.saturating_mul(1_000_000))
}
