//! CORS headers for browsers on other origins (client-wire.md 11.4).
//!
//! Credentials are bearer keys that a page must already hold, never cookies. Any origin may therefore call.

use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";

/// Allowed request headers: those of the contract, and others that this server reads.
const REQUEST_HEADERS: &str = "Content-Type, X-Amz-Date, Authorization, X-Api-Key, X-Amz-Security-Token, \
    x-bt-auth-token, x-bt-parent, x-bt-org-name, x-bt-project-id, x-bt-stream-fmt, x-bt-use-cache, x-bt-use-gateway, \
    x-stainless-os, x-stainless-lang, x-stainless-package-version, x-stainless-runtime, x-stainless-runtime-version, \
    x-stainless-arch, Idempotency-Key, x-bt-impersonate-user, Mcp-Protocol-Version, Mcp-Method, Mcp-Name";

/// Exposed response headers: those of the contract, the trace id, the version of a page, and those of refusals.
const EXPOSED: &str = "x-bt-cursor, x-bt-found-existing, x-bt-found-existing-experiment, x-bt-span-id, \
    x-bt-span-export, x-bt-internal-trace-id, x-bt-version, Retry-After, WWW-Authenticate";

const MAX_AGE_SECONDS: &str = "86400";

const ASKS_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Headers of a request that the CORS headers of its response depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRequest {
    origin: Option<HeaderValue>,
    is_preflight: bool,
    private_network: bool,
}

impl CorsRequest {
    pub fn of(headers: &HeaderMap, is_options: bool) -> CorsRequest {
        let private_network = headers.get(ASKS_PRIVATE_NETWORK).is_some_and(|value| value == "true");
        CorsRequest { origin: headers.get(header::ORIGIN).cloned(), is_preflight: is_options, private_network }
    }

    pub fn answer(&self, headers: &mut HeaderMap) {
        let fixed = HeaderValue::from_static;
        // A cache must not serve the response for one origin to another.
        headers.append(header::VARY, fixed("Origin"));
        if let Some(origin) = &self.origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, fixed("true"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, fixed(EXPOSED));
        }
        if self.is_preflight {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, fixed(METHODS));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, fixed(REQUEST_HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, fixed(MAX_AGE_SECONDS));
            if self.private_network {
                headers.insert(ALLOWS_PRIVATE_NETWORK, fixed("true"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(asked: &[(&'static str, &'static str)], is_options: bool) -> HeaderMap {
        let pairs = asked.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut answer = HeaderMap::new();
        CorsRequest::of(&pairs.collect(), is_options).answer(&mut answer);
        answer
    }

    #[track_caller]
    fn says(headers: &HeaderMap, name: &str, part: &str) {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert!(value.contains(part), "{name}: {value}");
    }

    #[test]
    fn an_answer_names_the_origin_that_asked() {
        let answer = answered(&[("origin", "https://a.example")], false);
        says(&answer, "access-control-allow-origin", "https://a.example");
        says(&answer, "access-control-allow-credentials", "true");
        for name in ["x-bt-found-existing", "x-bt-internal-trace-id", "x-bt-version", "Retry-After"] {
            says(&answer, "access-control-expose-headers", name);
        }
        says(&answer, "vary", "Origin");
        assert!(!answer.contains_key("access-control-allow-methods"));
    }

    #[test]
    fn a_preflight_is_told_methods_and_headers() {
        let asked = [("origin", "null"), ("access-control-request-private-network", "true")];
        let answer = answered(&asked, true);
        says(&answer, "access-control-allow-methods", "PATCH");
        for name in ["x-bt-org-name", "x-stainless-runtime-version", "Authorization", "X-Amz-Date"] {
            says(&answer, "access-control-allow-headers", name);
        }
        says(&answer, "access-control-max-age", "86400");
        says(&answer, "access-control-allow-private-network", "true");
    }

    #[test]
    fn a_caller_that_is_no_browser_is_told_nothing_of_origins() {
        let answer = answered(&[], false);
        assert!(!answer.contains_key("access-control-allow-origin"));
    }
}
