//! Settings of the gateway: the table `gateway` of the configuration.

mod header_names;
mod path_patterns;

use std::path::PathBuf;
use std::time::Duration;

use assay_node_limits::memory_share;
use assay_node_models::attempts::CALL_MS_MAX;
use serde::{Deserialize, Serialize};

pub use header_names::{FORWARD_HEADERS_MAX, HEADER_NAME_BYTES_MAX, NeverForwarded};
pub use path_patterns::{PASSTHROUGH_PATHS_MAX, PATTERN_BYTES_MAX};

/// Default of `passthrough_paths` (G-03). It contains no paths of objects that outlive a call.
const PASSTHROUGH_PATHS: [&str; 6] = ["images/**", "audio/**", "rerank", "tokenize", "detokenize", "score"];
/// Upper bound of `retry_budget_seconds`.
const RETRY_BUDGET_SECONDS_MAX: u64 = 600;
/// Upper bound of `call_seconds_max`.
const CALL_SECONDS_MAX: u64 = 24 * 3600;
/// Upper bound of `calls_max`.
const CALLS_MAX: usize = 1 << 20;
/// Upper bound of `calls_bytes_max`.
const CALLS_BYTES_MAX: usize = 1 << 40;
/// Upper bound of `request_bytes_max`.
const REQUEST_BYTES_MAX: usize = 1 << 30;
/// Upper bound of `scoring_runs_per_minute` and `scoring_dollars_per_day`.
const SCORING_MAX: u64 = 1_000_000;

/// Table `gateway` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// Whether this node serves model calls of clients.
    pub enabled: bool,
    /// Time within which a call is retried after all of its providers have failed. With 0, each provider is tried once.
    pub retry_budget_seconds: u64,
    /// Time limit of a model call with all its attempts. Budgets hold its reservation for at most this time.
    pub call_seconds_max: u64,
    /// Whether a call is retried although a provider may have processed it already.
    pub retry_uncertain: bool,
    /// Whether calls of one session go to the same provider while it works, so that its caches are effective.
    pub affinity: bool,
    /// Names of further request headers that are forwarded to providers.
    pub forward_headers: Vec<String>,
    /// Whether the trace headers of requests are forwarded to providers: `traceparent`, `tracestate` and `baggage`.
    pub forward_trace_headers: bool,
    /// Paths that are passed to providers unmodified.
    ///
    /// `*` matches one part of a path, and `**` at the end matches one or more parts. Do not add files, batches and
    /// similar objects: all users of a shared key see them.
    pub passthrough_paths: Vec<String>,
    /// Whether responses are cached for calls that request it.
    pub cache: bool,
    /// Upper bound of the bytes of cached responses on this node.
    pub cache_bytes_max: u64,
    /// Upper bound of the bytes of cached responses of one organization.
    pub cache_organization_bytes_max: u64,
    /// Upper bound of the concurrent model calls of this node. A call beyond it waits, and receives a 429 after 30 s.
    pub calls_max: usize,
    /// Upper bound of the memory for the bodies of running model calls.
    ///
    /// A call beyond it waits, fairly by organization and credential, and receives a 429 when its wait ends. The default
    /// is 1/16 of the memory of the machine or control group, from 64 MiB to 1 GiB.
    pub calls_bytes_max: usize,
    /// Upper bound of the body of a model call. It must not exceed `http.bodies_bytes_max`.
    pub request_bytes_max: usize,
    /// Whether logged calls include the messages. Otherwise, they include no inputs and outputs.
    pub log_content: bool,
    /// Model for judges and scorers without a model.
    pub scorer_model: String,
    /// Embedding model for scorers without one.
    pub scorer_embedding_model: String,
    /// Model for facets that name none, or that name a model of the hosted service such as `brain-facet-1`. Without it,
    /// such facets are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facet_model: Option<String>,
    /// Runs per minute of a rule of online scoring that sets no cap; 0 means no limit.
    pub scoring_runs_per_minute: u64,
    /// US dollars per day of a rule of online scoring that sets no cap; 0 means no limit.
    pub scoring_dollars_per_day: u64,
    /// JSON file with models, which take precedence over the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog_file: Option<PathBuf>,
}

impl Default for GatewaySettings {
    fn default() -> GatewaySettings {
        GatewaySettings {
            enabled: true,
            retry_budget_seconds: 45,
            call_seconds_max: CALL_MS_MAX / 1000,
            retry_uncertain: false,
            affinity: true,
            forward_headers: Vec::new(),
            forward_trace_headers: false,
            passthrough_paths: PASSTHROUGH_PATHS.map(str::to_owned).into(),
            cache: true,
            cache_bytes_max: 1 << 30,
            cache_organization_bytes_max: 256 << 20,
            calls_max: 2048,
            calls_bytes_max: usize::try_from(memory_share(16, 64 << 20, 1 << 30)).unwrap_or(usize::MAX),
            request_bytes_max: 32 << 20,
            log_content: true,
            scorer_model: "gpt-5-mini".to_owned(),
            scorer_embedding_model: "text-embedding-ada-002".to_owned(),
            facet_model: None,
            scoring_runs_per_minute: 0,
            scoring_dollars_per_day: 0,
            catalog_file: None,
        }
    }
}

/// Reason why settings of the gateway are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewaySettingsError {
    #[error("gateway.{setting} is {value}; set it to {min} to {max}")]
    Range { setting: &'static str, value: u64, min: u64, max: u64 },
    #[error("gateway.{setting} is empty; set it to the name of a model")]
    NoModel { setting: &'static str },
    #[error("gateway.{setting} has {count} entries, at most {max} are allowed")]
    Entries { setting: &'static str, count: usize, max: usize },
    #[error("gateway.forward_headers[{entry}]: `{name}` is no header name of at most 128 letters, digits and hyphens")]
    HeaderName { entry: usize, name: String },
    #[error("gateway.forward_headers[{entry}]: `{name}` is never sent to a provider, because {why}")]
    HeaderForbidden { entry: usize, name: String, why: NeverForwarded },
    #[error(
        "gateway.passthrough_paths[{entry}]: `{pattern}` is no pattern of a path; write it without a slash at its ends, \
         as rerank or images/**. `*` stands for one part, and `**` may only be the last"
    )]
    Pattern { entry: usize, pattern: String },
    #[error(
        "gateway.cache_organization_bytes_max is above gateway.cache_bytes_max; an organization has a part of the whole"
    )]
    OrganizationCache,
    #[error(
        "gateway.request_bytes_max is {request}, above http.bodies_bytes_max, which is {bodies}; all bodies together \
         must hold at least one"
    )]
    Bodies { request: usize, bodies: usize },
}

impl GatewaySettings {
    /// Checks the settings. `bodies_bytes_max` is the upper bound of all request bodies of the server.
    pub fn check(&self, bodies_bytes_max: usize) -> Result<(), GatewaySettingsError> {
        let range = |setting, value: u64, min, max| match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(GatewaySettingsError::Range { setting, value, min, max }),
        };
        range("retry_budget_seconds", self.retry_budget_seconds, 0, RETRY_BUDGET_SECONDS_MAX)?;
        range("call_seconds_max", self.call_seconds_max, 1, CALL_SECONDS_MAX)?;
        range("calls_max", self.calls_max as u64, 1, CALLS_MAX as u64)?;
        range("calls_bytes_max", self.calls_bytes_max as u64, 1, CALLS_BYTES_MAX as u64)?;
        range("request_bytes_max", self.request_bytes_max as u64, 1, REQUEST_BYTES_MAX as u64)?;
        range("scoring_runs_per_minute", self.scoring_runs_per_minute, 0, SCORING_MAX)?;
        range("scoring_dollars_per_day", self.scoring_dollars_per_day, 0, SCORING_MAX)?;
        let scoring = [("scorer_model", &self.scorer_model), ("scorer_embedding_model", &self.scorer_embedding_model)];
        for (setting, model) in scoring.into_iter().chain(self.facet_model.iter().map(|model| ("facet_model", model))) {
            if model.trim().is_empty() {
                return Err(GatewaySettingsError::NoModel { setting });
            }
        }
        let entries = |setting, count, max| match count <= max {
            true => Ok(()),
            false => Err(GatewaySettingsError::Entries { setting, count, max }),
        };
        entries("forward_headers", self.forward_headers.len(), FORWARD_HEADERS_MAX)?;
        entries("passthrough_paths", self.passthrough_paths.len(), PASSTHROUGH_PATHS_MAX)?;
        for (entry, name) in self.forward_headers.iter().enumerate() {
            header_names::check(entry, name)?;
        }
        if let Some((entry, pattern)) =
            self.passthrough_paths.iter().enumerate().find(|(_, pattern)| !path_patterns::is_pattern(pattern))
        {
            return Err(GatewaySettingsError::Pattern { entry, pattern: pattern.clone() });
        }
        if self.cache_organization_bytes_max > self.cache_bytes_max {
            return Err(GatewaySettingsError::OrganizationCache);
        }
        if self.enabled && self.request_bytes_max > bodies_bytes_max {
            return Err(GatewaySettingsError::Bodies { request: self.request_bytes_max, bodies: bodies_bytes_max });
        }
        Ok(())
    }

    pub fn retry_budget(&self) -> Duration {
        Duration::from_secs(self.retry_budget_seconds)
    }

    pub fn call_time(&self) -> Duration {
        Duration::from_secs(self.call_seconds_max)
    }

    /// Returns whether a path may be passed to a provider (G-03). It must have no leading slash, and is not decoded.
    pub fn passes_through(&self, path: &str) -> bool {
        self.passthrough_paths.iter().any(|pattern| path_patterns::matches(pattern, path))
    }

    /// Returns whether these settings forward a request header (G-14). The name is case-insensitive.
    pub fn forwards_header(&self, name: &str) -> bool {
        let is_named = self.forward_headers.iter().any(|header| header.eq_ignore_ascii_case(name));
        is_named || (self.forward_trace_headers && header_names::is_trace(name))
    }
}

#[cfg(test)]
mod tests;
