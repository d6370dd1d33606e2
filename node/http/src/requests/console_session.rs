//! Cookies of the console: their names and forms, and which requests may use the one of a session.
//!
//! A browser sends the cookie by itself, also for a page of somebody else. So it counts only with the header
//! `x-assay-console`, which CORS does not allow other origins to send, and only from a page of this server's origin.
//! Requests with an `Authorization` header never use the cookie.

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap};
use assay_node_auth::Secret;

use crate::requests::caller::{AUTHORIZATION, FORWARDED_PROTO};
use crate::requests::origin;
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::server::edge::Edge;

/// Header that only pages of this server can send.
pub const CONSOLE_HEADER: &str = "x-assay-console";
/// The only value of that header.
pub const CONSOLE_HEADER_VALUE: &str = "1";
const FETCH_SITE: &str = "sec-fetch-site";
/// Browsers take a cookie of this name only over TLS, for this host alone, and for all its paths.
const HOST_PREFIX: &str = "__Host-";

/// Cookie of the console, as one request can have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCookie {
    name: String,
    is_secure: bool,
    same_site: &'static str,
}

impl ConsoleCookie {
    /// Returns the cookie of a session. Its name has the cluster in it, since all ports of a host share their cookies.
    pub fn of_session(request: &HttpRequest, edge: &Edge) -> ConsoleCookie {
        ConsoleCookie::named("assay", &edge.console.cluster, is_secure(request, edge))
    }

    /// Returns the cookie of a browser that signs in with the provider. The provider's page leads back, so that the cookie
    /// comes with a link from elsewhere.
    pub fn of_login(request: &HttpRequest, edge: &Edge) -> ConsoleCookie {
        let cookie = ConsoleCookie::named("assay-login", &edge.console.cluster, is_secure(request, edge));
        ConsoleCookie { same_site: "Lax", ..cookie }
    }

    fn named(name: &str, cluster: &str, is_secure: bool) -> ConsoleCookie {
        let prefix = if is_secure { HOST_PREFIX } else { "" };
        ConsoleCookie { name: format!("{prefix}{name}-{cluster}"), is_secure, same_site: "Strict" }
    }

    /// Returns the value in the headers of a request.
    pub fn value_in(&self, headers: &HeaderMap) -> Option<Secret> {
        let pairs =
            headers.get_all(header::COOKIE).filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
        let mut named = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == self.name);
        named.next().map(|(_, value)| Secret::new(value.to_owned()))
    }

    /// Returns the header that sets the cookie for so many seconds.
    pub fn set(&self, value: &Secret, seconds: i64) -> String {
        self.with(value.expose(), seconds.max(0))
    }

    /// Returns the header that removes the cookie.
    pub fn removed(&self) -> String {
        self.with("", 0)
    }

    fn with(&self, value: &str, seconds: i64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={}{secure}", self.name, self.same_site)
    }
}

/// Returns whether the client reached this server over TLS, or a proxy before it.
pub fn is_secure(request: &HttpRequest, edge: &Edge) -> bool {
    let forwarded = request.headers().get(FORWARDED_PROTO).and_then(|value| value.to_str().ok());
    edge.config.tls.is_some() || forwarded.map(str::trim) == Some("https")
}

/// Returns whether a request has the header that only pages of this server can send.
pub fn has_console_header(headers: &HeaderMap) -> bool {
    headers.get(CONSOLE_HEADER).is_some_and(|value| value == CONSOLE_HEADER_VALUE)
}

/// Returns the value of the session that a request uses. None where it uses another credential, or none.
pub fn session_value(request: &HttpRequest, edge: &Edge) -> Result<Option<Secret>, Refusal> {
    let headers = request.headers();
    if !edge.console.config.enabled || headers.contains_key(AUTHORIZATION) || !has_console_header(headers) {
        return Ok(None);
    }
    let Some(value) = ConsoleCookie::of_session(request, edge).value_in(headers) else { return Ok(None) };
    check_origin(request, edge)?;
    Ok(Some(value))
}

/// Returns the value of the cookie of a request, also one without the header. It proves the browser, and no more: a page
/// of somebody else can send the same request.
pub fn cookie_value(request: &HttpRequest, edge: &Edge) -> Option<Secret> {
    ConsoleCookie::of_session(request, edge).value_in(request.headers())
}

/// Refuses a request of a page of another origin. Browsers name it in `Sec-Fetch-Site` over TLS and on this machine, and
/// else in `Origin` where it is another one.
pub fn check_origin(request: &HttpRequest, edge: &Edge) -> Result<(), Refusal> {
    let text = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let is_own = match (text(FETCH_SITE), text(header::ORIGIN.as_str())) {
        (Some(site), _) => site == "same-origin",
        (None, None) => true,
        (None, Some(asking)) => {
            let own = origin::of_caller(text(header::HOST.as_str()), is_secure(request, edge), None);
            own.as_deref() == Some(asking) || edge.config.public_origin() == Some(asking)
        }
    };
    match is_own {
        true => Ok(()),
        false => Err(Refusal::new(
            ErrorKind::Unauthorized,
            "the session of the console was sent by a page of another origin: send `Authorization: Bearer <API key or \
             token>` instead",
        )),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let plain = ConsoleCookie::named("assay", "0a1b2c3d", false);
        let value = |text: &'static str| {
            let found = plain.value_in(&headers(&[("cookie", text)]));
            found.map(|value| value.expose().to_owned())
        };
        assert_eq!(value("assay-0a1b2c3d=cs-1").as_deref(), Some("cs-1"));
        assert_eq!(value("a=b; assay-0a1b2c3d=cs-1; c=d").as_deref(), Some("cs-1"));
        for other in ["", "assay-0a1b2c3d", "xassay-0a1b2c3d=1", "__Host-assay-0a1b2c3d=1", "assay-00000000=1"] {
            assert_eq!(value(other), None, "{other}");
        }
    }

    #[test]
    fn scripts_and_other_sites_never_get_the_cookie() {
        let value = Secret::new("cs-1".to_owned());
        let plain = ConsoleCookie::named("assay", "0a1b2c3d", false);
        assert_eq!(plain.set(&value, 60), "assay-0a1b2c3d=cs-1; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        let secure = ConsoleCookie::named("assay", "0a1b2c3d", true);
        assert_eq!(secure.removed(), "__Host-assay-0a1b2c3d=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure");
    }
}
