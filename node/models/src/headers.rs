//! Headers exchanged with clients and upstreams (1.6, G-14, G-15).

use std::collections::HashSet;

use crate::provider::is_hop_by_hop;

/// Upper bound of the headers of a message. Further headers are dropped.
const HEADERS_MAX: usize = 256;
/// Upper bound of a value that the gateway adds, in bytes.
const ADDED_VALUE_BYTES_MAX: usize = 1024;

/// Request headers that are forwarded without configuration.
const FORWARDED: [&str; 6] =
    ["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta", "idempotency-key"];
const TRACE: [&str; 2] = ["traceparent", "tracestate"];
/// Forwarded headers on which no answer depends.
const WITHOUT_EFFECT: [&str; 3] = ["accept", "content-type", "idempotency-key"];

/// Headers that no configuration forwards: credentials and traces of the caller.
const NEVER_FORWARDED: [&str; 9] =
    ["authorization", "cookie", "forwarded", "origin", "referer", "via", "x-api-key", "x-goog-api-key", "x-real-ip"];
const NEVER_FORWARDED_PREFIXES: [&str; 4] = ["x-forwarded-", "x-bt-", "x-amzn", "sec-"];

/// Headers of upstream responses that are not returned to the client.
const NEVER_RETURNED: [&str; 13] = [
    "age",
    "alt-svc",
    "cache-control",
    "content-length",
    "date",
    "expires",
    "openai-organization",
    "openai-project",
    "pragma",
    "server",
    "set-cookie",
    "strict-transport-security",
    "vary",
];
const NEVER_RETURNED_PREFIXES: [&str; 2] = ["access-control-", "x-bt-"];

const REQUEST_ID: &str = "x-request-id";
const UPSTREAM_REQUEST_ID: &str = "x-upstream-request-id";

/// Headers that are forwarded to upstreams in addition to the usual ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardPolicy {
    /// Whether headers of distributed tracing are forwarded.
    pub trace: bool,
    /// Names of `gateway.forward_headers` in lower case. A trailing `*` matches any ending.
    pub names: Vec<String>,
}

impl ForwardPolicy {
    fn passes(&self, name: &str) -> bool {
        let is_configured = |pattern: &String| match pattern.strip_suffix('*') {
            Some(begin) => name.starts_with(&begin.to_ascii_lowercase()),
            None => pattern.eq_ignore_ascii_case(name),
        };
        let is_refused = NEVER_FORWARDED.contains(&name)
            || is_hop_by_hop(name)
            || NEVER_FORWARDED_PREFIXES.iter().any(|begin| name.starts_with(begin));
        let is_usual = FORWARDED.contains(&name) || (self.trace && TRACE.contains(&name));
        !is_refused && (is_usual || self.names.iter().any(is_configured))
    }

    /// Returns the client's forwarded headers, with names in lower case.
    fn forwarded<'a>(&self, client: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, &'a str)> {
        let mut headers = lower_case(client);
        let of_connection = named_by_connection(&headers);
        headers.retain(|(name, _)| self.passes(name) && !of_connection.contains(name));
        headers
    }

    /// Returns the client's forwarded headers that may change the answer, sorted by their names in lower case.
    pub fn answer_headers<'a>(&self, client: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, &'a str)> {
        let mut headers = self.forwarded(client);
        headers.retain(|(name, _)| !WITHOUT_EFFECT.contains(&name.as_str()) && !TRACE.contains(&name.as_str()));
        // The order of several headers of one name is kept, because the last one may be the one that counts.
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        headers
    }
}

/// Returns the headers of a request to an upstream, with names in lower case.
///
/// The client's forwarded headers come first, then `authentication`, then the `additional` headers of the secret. Later
/// ones replace earlier ones, because some servers expect a key in another form.
pub fn request_headers<'a>(
    client: impl IntoIterator<Item = (&'a str, &'a str)>,
    policy: &ForwardPolicy,
    authentication: &[(String, String)],
    additional: &[(String, String)],
) -> Vec<(String, String)> {
    let forwarded = policy.forwarded(client).into_iter();
    let mut headers: Vec<(String, String)> = forwarded.map(|(name, value)| (name, value.to_owned())).collect();
    for winners in [authentication, additional] {
        headers.retain(|(name, _)| !winners.iter().any(|(winner, _)| winner.eq_ignore_ascii_case(name)));
        headers.extend(winners.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    }
    headers
}

/// Returns the upstream's headers that are returned to the client, with names in lower case.
pub fn response_headers<'a>(upstream: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let upstream = lower_case(upstream);
    let of_connection = named_by_connection(&upstream);
    let passes = |name: &str| {
        let is_dropped = NEVER_RETURNED.contains(&name)
            || is_hop_by_hop(name)
            || name == UPSTREAM_REQUEST_ID
            || NEVER_RETURNED_PREFIXES.iter().any(|begin| name.starts_with(begin));
        !is_dropped && !of_connection.contains(name)
    };
    let passing = upstream.iter().filter(|(name, _)| passes(name));
    let renamed = passing.map(|(name, value)| {
        let name = if name == REQUEST_ID { UPSTREAM_REQUEST_ID } else { name };
        (name.to_owned(), (*value).to_owned())
    });
    renamed.collect()
}

/// Headers of a response that describe the call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GatewayHeaders<'a> {
    pub request_id: &'a str,
    /// Whether the response came from the cache, or `None` if the cache was not used.
    pub cached: Option<bool>,
    /// Name of the secret.
    pub used_endpoint: Option<&'a str>,
    pub used_model: Option<&'a str>,
    pub attempts: Option<u32>,
    /// Cost in USD. Only responses in one piece report it.
    pub cost: Option<f64>,
    /// Id of the row. Like the exported span, it exists only if the call is logged.
    pub span_id: Option<&'a str>,
    pub span_export: Option<&'a str>,
    /// Names of parameters that were not sent, separated by commas.
    pub dropped_params: Option<&'a str>,
    /// Age of a cached response in seconds.
    pub age_s: Option<u64>,
    /// Time to live of a cacheable response in seconds.
    pub ttl_s: Option<u64>,
    pub is_stream: bool,
}

impl GatewayHeaders<'_> {
    /// Returns the headers to add to a response.
    pub fn to_headers(&self) -> Vec<(&'static str, String)> {
        let cache_control = match (self.ttl_s, self.is_stream) {
            (Some(ttl), true) => Some(format!("max-age={ttl}, no-transform")),
            (Some(ttl), false) => Some(format!("max-age={ttl}")),
            (None, true) => Some("no-transform".to_owned()),
            (None, false) => None,
        };
        let cost = self.cost.filter(|cost| !self.is_stream && cost.is_finite());
        let headers = [
            ("x-bt-request-id", Some(visible(self.request_id))),
            ("x-bt-cached", self.cached.map(|hit| if hit { "HIT" } else { "MISS" }.to_owned())),
            ("x-bt-used-endpoint", self.used_endpoint.map(visible)),
            ("x-bt-used-model", self.used_model.map(visible)),
            ("x-bt-attempts", self.attempts.map(|count| count.to_string())),
            ("x-bt-cost", cost.map(|cost| cost.to_string())),
            ("x-bt-span-id", self.span_id.map(visible)),
            ("x-bt-span-export", self.span_export.map(visible)),
            ("x-bt-dropped-params", self.dropped_params.map(visible)),
            ("age", self.age_s.map(|age| age.to_string())),
            ("cache-control", cache_control),
            ("x-accel-buffering", self.is_stream.then(|| "no".to_owned())),
        ];
        headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Percent-encodes invalid characters of a header value, because users choose the names of secrets and models.
fn visible(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes().take(ADDED_VALUE_BYTES_MAX) {
        if byte.is_ascii_graphic() && byte != b'%' || byte == b' ' {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all that is written");
        }
    }
    out
}

fn lower_case<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, &'a str)> {
    headers.into_iter().take(HEADERS_MAX).map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

/// Returns the header names that the message itself declares as specific to its connection.
fn named_by_connection(headers: &[(String, &str)]) -> HashSet<String> {
    let declared = headers.iter().filter(|(name, _)| name == "connection");
    declared.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(headers: &[(String, String)]) -> Vec<&str> {
        headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn owned(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_known_headers_of_a_request_pass() {
        let client = [
            ("Accept", "*/*"),
            ("Content-Type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("Anthropic-Beta", "x"),
            ("OpenAI-Beta", "y"),
            ("Idempotency-Key", "z"),
            ("traceparent", "00-1"),
            ("User-Agent", "sdk"),
            ("X-Custom", "1"),
            ("Cookie", "c"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-bt-parent", "project_id:1"),
        ];
        let usual = ["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta", "idempotency-key"];
        let plain = request_headers(client, &ForwardPolicy::default(), &[], &[]);
        assert_eq!(names(&plain), usual);
        let policy = ForwardPolicy { trace: true, names: vec!["X-Custom".to_owned(), "user-*".to_owned()] };
        let more = request_headers(client, &policy, &[], &[]);
        assert_eq!(names(&more), [&usual[..], &["traceparent", "user-agent", "x-custom"]].concat());
    }

    #[test]
    fn answers_depend_on_forwarded_headers_only() {
        let client = [
            ("User-Agent", "sdk"),
            ("OpenAI-Organization", "o"),
            ("Anthropic-Beta", "b"),
            ("anthropic-beta", "a"),
            ("Accept", "*/*"),
            ("content-type", "application/json"),
            ("idempotency-key", "z"),
            ("traceparent", "00-1"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
        ];
        let of = |policy: ForwardPolicy| policy.answer_headers(client);
        let usual = [("anthropic-beta".to_owned(), "b"), ("anthropic-beta".to_owned(), "a")];
        assert_eq!(of(ForwardPolicy::default()), usual);
        let names = vec!["openai-*".to_owned(), "X-Hop".to_owned()];
        let configured = of(ForwardPolicy { trace: true, names });
        assert_eq!(configured, [&usual[..], &[("openai-organization".to_owned(), "o")]].concat());
    }

    #[test]
    fn no_configuration_passes_credentials_or_headers_of_the_connection() {
        let client = [
            ("Authorization", "Bearer ours"),
            ("x-api-key", "ours"),
            ("X-Goog-Api-Key", "ours"),
            ("cookie", "c"),
            ("x-forwarded-for", "1"),
            ("forwarded", "for=1"),
            ("sec-fetch-mode", "cors"),
            ("x-amzn-trace-id", "t"),
            ("host", "h"),
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "1"),
        ];
        let policy = ForwardPolicy { trace: true, names: vec!["*".to_owned(), "authorization".to_owned()] };
        assert_eq!(request_headers(client, &policy, &[], &[]), []);
    }

    #[test]
    fn headers_of_the_secret_win() {
        let additional = [owned("Accept", "own"), owned("authorization", "Token k"), owned("x-a", "1")];
        let authentication = [owned("Authorization", "Bearer k")];
        let headers = request_headers([("accept", "*/*")], &ForwardPolicy::default(), &authentication, &additional);
        assert_eq!(headers, [owned("accept", "own"), owned("authorization", "Token k"), owned("x-a", "1")]);
    }

    #[test]
    fn headers_of_a_response_pass_but_those_of_the_server_and_the_account() {
        let upstream = [
            ("Content-Type", "application/json"),
            ("content-length", "5"),
            ("Date", "d"),
            ("Server", "s"),
            ("Vary", "v"),
            ("cache-control", "no-store"),
            ("Access-Control-Allow-Origin", "*"),
            ("set-cookie", "c"),
            ("openai-organization", "o"),
            ("openai-project", "p"),
            ("OpenAI-Processing-Ms", "5"),
            ("X-Request-Id", "r"),
            ("x-upstream-request-id", "false"),
            ("request-id", "q"),
            ("x-bt-cost", "0"),
            ("x-ratelimit-remaining-requests", "9"),
            ("retry-after", "3"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
        ];
        let expected = [
            owned("content-type", "application/json"),
            owned("openai-processing-ms", "5"),
            owned("x-upstream-request-id", "r"),
            owned("request-id", "q"),
            owned("x-ratelimit-remaining-requests", "9"),
            owned("retry-after", "3"),
        ];
        assert_eq!(response_headers(upstream), expected);
    }

    #[test]
    fn a_response_says_how_it_came_about() {
        let said = GatewayHeaders {
            request_id: "r",
            cached: Some(true),
            used_endpoint: Some("Schlüssel\r\n%"),
            attempts: Some(2),
            cost: Some(0.000_002_55),
            ttl_s: Some(60),
            age_s: Some(3),
            ..GatewayHeaders::default()
        };
        let headers = said.to_headers();
        for expected in [
            ("x-bt-request-id", "r"),
            ("x-bt-cached", "HIT"),
            ("x-bt-used-endpoint", "Schl%C3%BCssel%0D%0A%25"),
            ("x-bt-attempts", "2"),
            ("x-bt-cost", "0.00000255"),
            ("age", "3"),
            ("cache-control", "max-age=60"),
        ] {
            assert!(
                headers.iter().any(|(name, value)| (*name, value.as_str()) == expected),
                "{expected:?}: {headers:?}"
            );
        }
        let stream = GatewayHeaders { is_stream: true, cost: Some(1.0), ..said }.to_headers();
        assert!(stream.contains(&("cache-control", "max-age=60, no-transform".to_owned())));
        assert!(!stream.iter().any(|(name, _)| *name == "x-bt-cost"), "unknown while the stream begins");
    }
}
