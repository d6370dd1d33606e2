//! Cache decisions: which requests may be answered from the cache, and which responses may be stored (1.8, G-21).
//!
//! ```text
//! x-bt-use-cache ─┐
//! cache-control ──┼── CacheRequest ──┐
//! x-bt-cache-ttl ─┘                  ├── CachePlan { read, write }
//! endpoint, body ────────────────────┘
//! ```

use serde_json::{Map, Value};
use thiserror::Error;

const USE_CACHE: &str = "x-bt-use-cache";
const CACHE_TTL: &str = "x-bt-cache-ttl";
const CACHE_CONTROL: &str = "cache-control";

/// Bounds and default of the lifetime of an entry, from a second to a week.
pub const TTL_MIN_S: u32 = 1;
pub const TTL_MAX_S: u32 = 604_800;
pub const TTL_DEFAULT_S: u32 = TTL_MAX_S;

/// Number of characters of a refused value that an error repeats.
const SHOWN_LETTERS_MAX: usize = 64;

/// Members of a body that let the provider run tools or use its own stored state.
const PROVIDER_STATE: [&str; 6] =
    ["previous_response_id", "conversation", "web_search_options", "mcp_servers", "container", "plugins"];

/// Error for an invalid header. Its text is for the caller, with status 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheHeaderError {
    #[error("invalid {USE_CACHE} header '{value}': it must be one of auto, always, never")]
    Mode { value: String },
    #[error("invalid {CACHE_TTL} header '{value}': it must be a whole number of seconds")]
    Ttl { value: String },
}

/// Kind of endpoint that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheEndpoint {
    Chat,
    Completions,
    Embeddings,
    Moderations,
    Responses,
    /// Messages endpoint of Anthropic's API.
    Messages,
    /// `generateContent` endpoint of Gemini's API, streaming or not.
    Generate,
}

impl CacheEndpoint {
    /// Returns the name, which is part of cache keys.
    pub fn name(self) -> &'static str {
        match self {
            CacheEndpoint::Chat => "chat",
            CacheEndpoint::Completions => "completions",
            CacheEndpoint::Embeddings => "embeddings",
            CacheEndpoint::Moderations => "moderations",
            CacheEndpoint::Responses => "responses",
            CacheEndpoint::Messages => "messages",
            CacheEndpoint::Generate => "generate",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// The cache is used only for requests whose response should repeat.
    #[default]
    Auto,
    Always,
    Never,
}

/// Caching preferences of the caller, from the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRequest {
    pub mode: CacheMode,
    pub ttl_s: u32,
    /// Whether reading is allowed. The directive `no-cache` clears it.
    pub may_read: bool,
    /// Whether writing is allowed. The directive `no-store` clears it.
    pub may_write: bool,
    /// Smallest `max-age` in seconds.
    pub max_age_s: Option<u64>,
}

impl Default for CacheRequest {
    fn default() -> CacheRequest {
        let (mode, ttl_s) = (CacheMode::Auto, TTL_DEFAULT_S);
        CacheRequest { mode, ttl_s, may_read: true, may_write: true, max_age_s: None }
    }
}

/// Maximum age of entries that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxAge {
    Any,
    Seconds(u64),
}

impl MaxAge {
    pub fn admits(self, age_s: u64) -> bool {
        match self {
            MaxAge::Any => true,
            MaxAge::Seconds(max) => age_s <= max,
        }
    }
}

/// Use of the cache by one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Maximum age of an entry, or `None` if reading is not allowed.
    pub read: Option<MaxAge>,
    /// Lifetime of the response in seconds, or `None` if writing is not allowed.
    pub write_ttl_s: Option<u32>,
}

impl CachePlan {
    /// Plan that does not use the cache.
    pub const NONE: CachePlan = CachePlan { read: None, write_ttl_s: None };

    pub fn uses_cache(&self) -> bool {
        self.read.is_some() || self.write_ttl_s.is_some()
    }
}

impl CacheRequest {
    /// Reads the headers, whose names are in lower case.
    ///
    /// Other headers and empty values are ignored.
    pub fn from_headers<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<CacheRequest, CacheHeaderError> {
        let mut request = CacheRequest::default();
        for (name, value) in headers {
            let value = value.trim();
            match name {
                _ if value.is_empty() => {}
                USE_CACHE => request.mode = mode(value)?,
                CACHE_TTL => request.ttl_s = ttl(value)?,
                CACHE_CONTROL => value.split(',').for_each(|directive| request.restrict(directive)),
                _ => {}
            }
        }
        Ok(request)
    }

    /// Applies a directive of `cache-control`. Unknown directives have no effect, as in RFC 9111.
    fn restrict(&mut self, directive: &str) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-cache" => self.may_read = false,
            "no-store" => self.may_write = false,
            "max-age" => {
                // RFC 9111 recommends treating an invalid age as stale, so it counts as zero.
                let seconds = seconds(value.trim().trim_matches('"')).map_or(0, |seconds| seconds.max(0) as u64);
                self.max_age_s = Some(self.max_age_s.map_or(seconds, |known| known.min(seconds)));
                self.may_read &= seconds > 0;
            }
            _ => {}
        }
    }

    /// Returns the use of the cache by the request. `body` is the parsed body.
    pub fn plan(&self, endpoint: CacheEndpoint, body: &Value) -> CachePlan {
        let is_wanted = match self.mode {
            CacheMode::Never => false,
            CacheMode::Always => true,
            CacheMode::Auto => repeats_itself(endpoint, body),
        };
        if !is_wanted || depends_on_provider_state(body) {
            return CachePlan::NONE;
        }
        let max_age = self.max_age_s.map_or(MaxAge::Any, MaxAge::Seconds);
        CachePlan { read: self.may_read.then_some(max_age), write_ttl_s: self.may_write.then_some(self.ttl_s) }
    }
}

fn mode(value: &str) -> Result<CacheMode, CacheHeaderError> {
    match value {
        "auto" => Ok(CacheMode::Auto),
        "always" => Ok(CacheMode::Always),
        "never" => Ok(CacheMode::Never),
        _ => Err(CacheHeaderError::Mode { value: shown(value) }),
    }
}

fn ttl(value: &str) -> Result<u32, CacheHeaderError> {
    let seconds = seconds(value).ok_or_else(|| CacheHeaderError::Ttl { value: shown(value) })?;
    let seconds = seconds.clamp(i64::from(TTL_MIN_S), i64::from(TTL_MAX_S));
    Ok(u32::try_from(seconds).expect("is within the bounds"))
}

fn shown(value: &str) -> String {
    value.chars().take(SHOWN_LETTERS_MAX).collect()
}

/// Parses a whole number. A number beyond the range becomes its bound.
fn seconds(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse().unwrap_or(i64::MAX);
    Some(if is_negative { -seconds } else { seconds })
}

/// Returns whether equal requests should have equal responses. Embeddings and moderations always do.
fn repeats_itself(endpoint: CacheEndpoint, body: &Value) -> bool {
    let config = |name| body.get(name).unwrap_or(&Value::Null);
    let is_fixed = |value: &Value| {
        let is_cold = value.get("temperature").and_then(Value::as_f64) == Some(0.0);
        is_cold || value.get("seed").is_some_and(|seed| !seed.is_null())
    };
    match endpoint {
        CacheEndpoint::Embeddings | CacheEndpoint::Moderations => true,
        CacheEndpoint::Generate => {
            is_fixed(body) || is_fixed(config("generationConfig")) || is_fixed(config("generation_config"))
        }
        _ => is_fixed(body),
    }
}

/// Returns whether the response depends on more than the body, or whether the request has side effects (G-20).
fn depends_on_provider_state(body: &Value) -> bool {
    let is_true = |name| body.get(name) == Some(&Value::Bool(true));
    let is_set = |name: &&str| body.get(*name).is_some_and(|value| !value.is_null());
    is_true("store")
        || is_true("background")
        || PROVIDER_STATE.iter().any(is_set)
        // A prompt that the provider stores (Responses) may change there. A text completion has its prompt in the body.
        || body.get("prompt").is_some_and(Value::is_object)
        || body.get("tools").is_some_and(has_provider_tool)
}

/// Returns whether the provider runs one of the tools. A value that is not a list of tools counts as such a tool.
fn has_provider_tool(tools: &Value) -> bool {
    match tools {
        Value::Null => false,
        Value::Array(tools) => tools.iter().any(|tool| !tool.as_object().is_some_and(is_run_by_caller)),
        _ => true,
    }
}

/// Returns whether the caller runs the tool. The four APIs express such tools differently.
fn is_run_by_caller(tool: &Map<String, Value>) -> bool {
    match tool.get("type").unwrap_or(&Value::Null) {
        Value::String(kind) => kind == "function" || kind == "custom",
        Value::Null => {
            let is_declarations = |name: &String| name == "functionDeclarations" || name == "function_declarations";
            tool.contains_key("function")
                || tool.contains_key("input_schema")
                || (!tool.is_empty() && tool.keys().all(is_declarations))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use CacheEndpoint::{Chat, Completions, Embeddings, Generate, Messages, Moderations, Responses};

    fn request(headers: &[(&str, &str)]) -> CacheRequest {
        CacheRequest::from_headers(headers.iter().copied()).expect("valid headers")
    }

    fn plan(headers: &[(&str, &str)], endpoint: CacheEndpoint, body: Value) -> (Option<MaxAge>, Option<u32>) {
        let plan = request(headers).plan(endpoint, &body);
        (plan.read, plan.write_ttl_s)
    }

    const NOTHING: (Option<MaxAge>, Option<u32>) = (None, None);
    const BOTH: (Option<MaxAge>, Option<u32>) = (Some(MaxAge::Any), Some(TTL_DEFAULT_S));

    #[test]
    fn auto_is_for_answers_that_repeat_themselves() {
        for (endpoint, body, expected) in [
            (Chat, json!({"temperature": 0}), BOTH),
            (Chat, json!({"temperature": 0.0}), BOTH),
            (Completions, json!({"temperature": -0.0}), BOTH),
            (Chat, json!({"temperature": 1e-9}), NOTHING),
            (Chat, json!({"temperature": "0"}), NOTHING),
            (Chat, json!({"temperature": null}), NOTHING),
            (Chat, json!({}), NOTHING),
            (Chat, json!([]), NOTHING),
            (Chat, json!({"seed": 7, "temperature": 1}), BOTH),
            (Responses, json!({"seed": 0}), BOTH),
            (Chat, json!({"seed": null, "temperature": 1}), NOTHING),
            (Messages, json!({"temperature": 0}), BOTH),
            (Messages, json!({"generationConfig": {"temperature": 0}}), NOTHING),
            (Generate, json!({"generationConfig": {"temperature": 0}}), BOTH),
            (Generate, json!({"generation_config": {"seed": 1}}), BOTH),
            (Generate, json!({"generationConfig": {"temperature": 1}}), NOTHING),
            (Generate, json!({"temperature": 0}), BOTH),
            (Embeddings, json!({"input": "x"}), BOTH),
            (Moderations, json!({"input": "x"}), BOTH),
        ] {
            assert_eq!(plan(&[], endpoint, body.clone()), expected, "{endpoint:?} {body}");
            let auto = [("x-bt-use-cache", "auto")];
            assert_eq!(plan(&auto, endpoint, body.clone()), expected, "{endpoint:?} {body}");
            assert_eq!(plan(&[("x-bt-use-cache", "always")], endpoint, body.clone()), BOTH, "{endpoint:?} {body}");
            assert_eq!(plan(&[("x-bt-use-cache", "never")], endpoint, body.clone()), NOTHING, "{endpoint:?} {body}");
        }
    }

    #[test]
    fn cache_control_restricts_and_never_wins() {
        let (any, week) = (Some(MaxAge::Any), Some(TTL_DEFAULT_S));
        for (control, expected) in [
            ("no-cache", (None, week)),
            ("max-age=0", (None, week)),
            ("max-age=-1", (None, week)),
            ("max-age=soon", (None, week)),
            ("max-age", (None, week)),
            ("no-store", (any, None)),
            ("No-Store , NO-CACHE", NOTHING),
            ("max-age=60", (Some(MaxAge::Seconds(60)), week)),
            ("max-age=\"60\"", (Some(MaxAge::Seconds(60)), week)),
            ("max-age=90, Max-Age = 60", (Some(MaxAge::Seconds(60)), week)),
            ("max-age=99999999999999999999", (Some(MaxAge::Seconds(i64::MAX as u64)), week)),
            ("private, no-transform, s-maxage=0", BOTH),
            ("", BOTH),
            (",=,;", BOTH),
        ] {
            for mode in ["auto", "always"] {
                let headers = [("x-bt-use-cache", mode), ("cache-control", control)];
                assert_eq!(plan(&headers, Embeddings, json!({})), expected, "{mode} {control}");
            }
            let headers = [("cache-control", control), ("x-bt-use-cache", "never")];
            assert_eq!(plan(&headers, Embeddings, json!({})), NOTHING, "never {control}");
            let headers = [("cache-control", control)];
            assert_eq!(plan(&headers, Chat, json!({})), NOTHING, "it switches nothing on: {control}");
        }
        let twice = [("cache-control", "max-age=60"), ("cache-control", "no-store")];
        assert_eq!(plan(&twice, Embeddings, json!({})), (Some(MaxAge::Seconds(60)), None));
    }

    #[test]
    fn the_time_of_an_entry_is_clamped() {
        for (value, seconds) in [
            ("60", 60),
            (" 60 ", 60),
            ("0", 1),
            ("-5", 1),
            ("604800", 604_800),
            ("604801", 604_800),
            ("99999999999999999999999", 604_800),
            ("-99999999999999999999999", 1),
            ("", TTL_DEFAULT_S),
        ] {
            assert_eq!(request(&[("x-bt-cache-ttl", value)]).ttl_s, seconds, "{value}");
        }
    }

    #[test]
    fn a_bad_header_is_refused_with_its_value() {
        let refused = |name, value| CacheRequest::from_headers([(name, value)]).expect_err(value).to_string();
        let why = refused("x-bt-use-cache", "sometimes");
        assert_eq!(why, "invalid x-bt-use-cache header 'sometimes': it must be one of auto, always, never");
        for value in ["AUTO", "true", "auto,always"] {
            refused("x-bt-use-cache", value);
        }
        for value in ["1.5", "1h", "-", "+1", "0x1", "1 2"] {
            assert!(refused("x-bt-cache-ttl", value).contains("whole number of seconds"), "{value}");
        }
        assert!(refused("x-bt-cache-ttl", &"é".repeat(1000)).len() < 300);
        assert_eq!(request(&[("x-bt-use-cache", ""), ("x-other", "sometimes")]), CacheRequest::default());
    }

    #[test]
    fn what_depends_on_the_provider_is_never_cached() {
        for body in [
            json!({"store": true}),
            json!({"background": true}),
            json!({"previous_response_id": "resp_1"}),
            json!({"conversation": {"id": "conv_1"}}),
            json!({"prompt": {"id": "pmpt_1", "version": "2", "variables": {"city": "Paris"}}}),
            json!({"web_search_options": {}}),
            json!({"mcp_servers": [{"url": "https://x"}]}),
            json!({"tools": [{"type": "web_search"}]}),
            json!({"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "file_search"}]}),
            json!({"tools": [{"type": "mcp", "server_label": "x"}]}),
            json!({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            json!({"tools": [{"googleSearch": {}}]}),
            json!({"tools": [{"functionDeclarations": [], "codeExecution": {}}]}),
            json!({"tools": [{}]}),
            json!({"tools": ["web_search"]}),
            json!({"tools": {"type": "function"}}),
            json!({"tools": [{"type": 1, "function": {}}]}),
        ] {
            let headers = [("x-bt-use-cache", "always")];
            for endpoint in [Chat, Responses, Messages, Generate] {
                assert_eq!(plan(&headers, endpoint, body.clone()), NOTHING, "{body}");
            }
        }
    }

    #[test]
    fn tools_of_the_caller_are_no_obstacle() {
        for body in [
            json!({"store": false, "background": false, "previous_response_id": null, "tools": null}),
            json!({"store": null, "tools": []}),
            json!({"prompt": "a text", "tools": null}),
            json!({"prompt": ["two", "texts"]}),
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            json!({"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}]}),
            json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
            json!({"tools": [{"type": "custom", "name": "f", "input_schema": {}}]}),
            json!({"tools": [{"functionDeclarations": [{"name": "f"}]}, {"function_declarations": []}]}),
            json!({"tools": [{"function": {"name": "f"}}]}),
        ] {
            assert_eq!(plan(&[("x-bt-use-cache", "always")], Chat, body.clone()), BOTH, "{body}");
        }
    }
}
