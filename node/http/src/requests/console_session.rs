//! Cookies of the console: their names and attributes, and the requests that may use the session cookie.
//!
//! A browser sends the cookie automatically, even for a page of another origin. The cookie therefore counts only with
//! the header `x-assay-console`, which CORS does not allow other origins to send. The page must also have this server's
//! origin. Requests with an `Authorization` header never use the cookie.

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap};
use assay_node_auth::Secret;

use crate::requests::caller::{AUTHORIZATION, FORWARDED_PROTO};
use crate::requests::origin;
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::server::edge::Edge;

/// Header that only pages of this server can send.
pub const CONSOLE_HEADER: &str = "x-assay-console";
/// Only valid value of [`CONSOLE_HEADER`].
pub const CONSOLE_HEADER_VALUE: &str = "1";
const FETCH_SITE: &str = "sec-fetch-site";
/// Prefix of cookies that browsers accept only over TLS, for this host alone, and for all its paths.
const HOST_PREFIX: &str = "__Host-";

/// Cookie of the console, in the variant for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCookie {
    name: String,
    is_secure: bool,
    same_site: &'static str,
}

impl ConsoleCookie {
    /// Returns the session cookie. Its name includes the cluster, because all ports of a host share their cookies.
    pub fn of_session(request: &HttpRequest, edge: &Edge) -> ConsoleCookie {
        ConsoleCookie::named("assay", &edge.console.cluster, is_secure(request, edge))
    }

    /// Returns the cookie of a login in progress.
    ///
    /// It must be sent with the navigation back from the provider's page, so it is less strict than the session cookie.
    pub fn of_login(request: &HttpRequest, edge: &Edge) -> ConsoleCookie {
        let cookie = ConsoleCookie::named("assay-login", &edge.console.cluster, is_secure(request, edge));
        ConsoleCookie { same_site: "Lax", ..cookie }
    }

    fn named(name: &str, cluster: &str, is_secure: bool) -> ConsoleCookie {
        let prefix = if is_secure { HOST_PREFIX } else { "" };
        ConsoleCookie { name: format!("{prefix}{name}-{cluster}"), is_secure, same_site: "Strict" }
    }

    /// Returns the value of the cookie in the headers of a request.
    pub fn value_in(&self, headers: &HeaderMap) -> Option<Secret> {
        let pairs =
            headers.get_all(header::COOKIE).filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
        let mut named = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == self.name);
        named.next().map(|(_, value)| Secret::new(value.to_owned()))
    }

    /// Returns the header value that sets the cookie for `seconds` seconds.
    pub fn set(&self, value: &Secret, seconds: i64) -> String {
        self.with(value.expose(), seconds.max(0))
    }

    /// Returns the header value that removes the cookie.
    pub fn removed(&self) -> String {
        self.with("", 0)
    }

    fn with(&self, value: &str, seconds: i64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={}{secure}", self.name, self.same_site)
    }
}

/// Returns whether the client used TLS, to this server or to a proxy in front of it.
pub fn is_secure(request: &HttpRequest, edge: &Edge) -> bool {
    let forwarded = request.headers().get(FORWARDED_PROTO).and_then(|value| value.to_str().ok());
    edge.config.tls.is_some() || forwarded.map(str::trim) == Some("https")
}

/// Returns whether a request has [`CONSOLE_HEADER`], which only pages of this server can send.
pub fn has_console_header(headers: &HeaderMap) -> bool {
    headers.get(CONSOLE_HEADER).is_some_and(|value| value == CONSOLE_HEADER_VALUE)
}

/// Returns the session that a request uses, or `None` if it uses another credential or none.
pub fn session_value(request: &HttpRequest, edge: &Edge) -> Result<Option<Secret>, Refusal> {
    let headers = request.headers();
    if !edge.console.config.enabled || headers.contains_key(AUTHORIZATION) || !has_console_header(headers) {
        return Ok(None);
    }
    let Some(value) = ConsoleCookie::of_session(request, edge).value_in(headers) else { return Ok(None) };
    check_origin(request, edge)?;
    Ok(Some(value))
}

/// Returns the session cookie of a request, even without [`CONSOLE_HEADER`].
///
/// It identifies only the browser, because a page of another origin can send the same request.
pub fn cookie_value(request: &HttpRequest, edge: &Edge) -> Option<Secret> {
    ConsoleCookie::of_session(request, edge).value_in(request.headers())
}

/// Refuses a request from a page of another origin.
///
/// Browsers send `Sec-Fetch-Site` over TLS and to this machine. Otherwise they send `Origin` with requests to another
/// origin.
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
