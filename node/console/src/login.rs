//! Handlers of `/console/login`, with which a browser signs in through the OpenID provider or by a sign-in link.
//!
//! The console is a client of this server's own login flow. A browser cookie holds the PKCE verifier of the login. An
//! authorization code from a login in another browser is therefore useless here.

use assay_node_auth::{Secret, form_encoded};
use assay_node_http::requests::console_session::ConsoleCookie;
use assay_node_http::requests::login::pass;
use assay_node_http::responses::HandlerResult;
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Query, header};
use assay_node_identity::GrantRefusal;
use assay_node_records::mechanism::new_id;

use crate::sessions::check_enabled;

/// Path of the first page of the console.
const APP: &str = "/app";
const SIGN_IN: &str = "/app/sign-in";
/// Time limit from the start of a sign-in until the browser returns.
const LOGIN_SECONDS: i64 = 600;
/// Upper bound of the length of the address after the sign-in, which the provider receives and returns.
const NEXT_BYTES_MAX: usize = 2048;

/// Reason for a failed sign-in, as reported to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    /// The provider does not respond, or returned an error other than a denial.
    Unavailable,
    /// The user or the provider denied the login.
    Denied,
    /// The login started in another browser or at another address, expired, or was already used.
    NotHere,
    /// The sign-in link is unknown, expired or already used.
    UsedLink,
}

impl Problem {
    fn name(self) -> &'static str {
        match self {
            Problem::Unavailable => "unavailable",
            Problem::Denied => "denied",
            Problem::NotHere => "not_here",
            Problem::UsedLink => "used_link",
        }
    }
}

/// Handles `GET /console/login?next=`: redirects the browser to the provider.
pub async fn start(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    check_enabled(&edge)?;
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let asked = parameters(&request);
    let next = internal(value(&asked, "next").unwrap_or_default());
    let nonce = new_id().simple().to_string();
    let begun = edge.identity.begin_console_login(format!("{nonce}.{next}"))?;
    let url = match passed.gate.provider.authorize(begun.started).await {
        Ok(url) => url,
        Err(why) => {
            tracing::warn!(?why, "a sign-in to the console failed: the provider is not available");
            return Ok(sent_to(&failed(next, Problem::Unavailable), None));
        }
    };
    let kept = Secret::new(format!("{nonce}.{}", begun.verifier.expose()));
    let cookie = ConsoleCookie::of_login(&request, &edge).set(&kept, LOGIN_SECONDS);
    Ok(sent_to(&url, Some(&[cookie])))
}

/// Handles `GET /console/login/callback`: opens a session for a browser that returns from the login.
pub async fn finish(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    check_enabled(&edge)?;
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let cookie = ConsoleCookie::of_login(&request, &edge);
    let asked = parameters(&request);
    let (nonce, next) = value(&asked, "state").and_then(|state| state.split_once('.')).unwrap_or_default();
    let next = internal(next);
    let fails = |problem| Ok(sent_to(&failed(next, problem), Some(&[cookie.removed()])));
    let kept = cookie.value_in(request.headers());
    let verifier = kept.as_ref().and_then(|kept| kept.expose().split_once('.'));
    let verifier = verifier.filter(|(known, _)| !nonce.is_empty() && *known == nonce).map(|(_, verifier)| verifier);
    let Some(verifier) = verifier else { return fails(Problem::NotHere) };
    let Some(code) = value(&asked, "code") else {
        let is_denied = value(&asked, "error") == Some("access_denied");
        return fails(if is_denied { Problem::Denied } else { Problem::Unavailable });
    };
    match edge.identity.finish_console_login(code, &Secret::new(verifier.to_owned())).await {
        Ok(opened) => {
            let session = ConsoleCookie::of_session(&request, &edge);
            let session = session.set(&opened.value, opened.times.seconds_left());
            Ok(sent_to(next, Some(&[session, cookie.removed()])))
        }
        Err(GrantRefusal::Invalid(_)) => fails(Problem::NotHere),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// Handles `GET /console/login/link?code=`: opens a session for the sign-in link that a first start printed.
pub async fn link(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    check_enabled(&edge)?;
    let asked = parameters(&request);
    let code = value(&asked, "code").unwrap_or_default();
    let Some(opened) = edge.identity.redeem_sign_in_code(code).await? else {
        return Ok(sent_to(&failed(APP, Problem::UsedLink), None));
    };
    let session = ConsoleCookie::of_session(&request, &edge).set(&opened.value, opened.times.seconds_left());
    Ok(sent_to(APP, Some(&[session])))
}

fn parameters(request: &HttpRequest) -> Vec<(String, String)> {
    Query::<Vec<(String, String)>>::from_query(request.query_string()).map(Query::into_inner).unwrap_or_default()
}

fn value<'a>(asked: &'a [(String, String)], name: &str) -> Option<&'a str> {
    asked.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

/// Returns `next` if it is an address of the console, and the first page otherwise.
fn internal(next: &str) -> &str {
    let is_below = next == APP || next.strip_prefix(APP).is_some_and(|rest| rest.starts_with(['/', '?']));
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = next.split(['?', '#']).next().unwrap_or_default();
    // Browsers read an encoded dot as a dot.
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    let has_one_root = !path.contains("//") && !path.split('/').any(|part| part == "." || part == "..");
    match is_below && is_plain && has_one_root && next.len() <= NEXT_BYTES_MAX {
        true => next,
        false => APP,
    }
}

fn failed(next: &str, problem: Problem) -> String {
    format!("{SIGN_IN}?{}", form_encoded(&[("next", next), ("problem", problem.name())]))
}

fn sent_to(url: &str, cookies: Option<&[String]>) -> HttpResponse {
    let mut response = HttpResponse::Found();
    response.insert_header((header::LOCATION, url)).insert_header((header::REFERRER_POLICY, "no-referrer"));
    for cookie in cookies.unwrap_or_default() {
        response.append_header((header::SET_COOKIE, cookie.as_str()));
    }
    response.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_pages_of_the_console_only() {
        for next in ["/app", "/app/acme/p/bot/logs?q=a%20%3D%201&t=7d", "/app?x=//y"] {
            assert_eq!(internal(next), next);
        }
        let elsewhere = [
            "",
            "/",
            "//evil.test",
            "/app//evil.test",
            "/app\\evil",
            "https://evil.test/app",
            "/application",
            "/app/../x",
            "/app/%2E%2e/x",
            "/app/.%2e/x",
            "/app/\n",
            "/app/ä",
            "app",
        ];
        for next in elsewhere {
            assert_eq!(internal(next), APP, "{next:?}");
        }
        assert_eq!(internal(&format!("/app/{}", "x".repeat(NEXT_BYTES_MAX))), APP);
    }

    #[test]
    fn a_failure_is_told_to_the_page() {
        assert_eq!(failed("/app/a?b=1", Problem::Denied), "/app/sign-in?next=%2Fapp%2Fa%3Fb%3D1&problem=denied");
    }
}
