//! HTTP peer of an import, a source or the target, with retries and limits.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::Secret;
use assay_node_egress::{
    AllowEntry, EgressClient, EgressConfig, EgressOptions, EgressPolicy, EgressPurpose, EgressRequest, EgressSettings,
    EgressTimes, EgressUrl, HeaderMap, HeaderName, HeaderValue, Method, OwnEndpoints, PortRange, TrustedRoots, UrlHost,
    UrlScheme,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

/// Upper bound of the attempts of one request.
const ATTEMPTS_MAX: u32 = 10;
/// Pause before the second attempt. It doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Upper bound of a pause that the peer asks for.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// Upper bound of a response. Pages have at most some hundred entries.
const RESPONSE_BYTES_MAX: u64 = 256 << 20;
/// Text of an error of the peer that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 300;
const TIMES: EgressTimes = EgressTimes {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(180),
    between_chunks: Duration::from_secs(60),
    total: Duration::from_secs(600),
};

/// Header with a credential.
#[derive(Clone, Debug)]
pub struct PeerHeader {
    pub name: &'static str,
    pub value: Secret,
}

/// Returns a header with a name and a password.
pub fn basic(name: &str, password: &Secret) -> PeerHeader {
    let encoded = STANDARD.encode(format!("{name}:{}", password.expose()));
    PeerHeader { name: "authorization", value: Secret::new(format!("Basic {encoded}")) }
}

/// Server at one address, with the credential for it.
#[derive(Debug)]
pub struct HttpPeer {
    client: EgressClient,
    base: String,
    headers: HeaderMap,
    /// Name in messages.
    name: String,
}

/// Response of a peer, of a status that is not worth another attempt.
#[derive(Debug)]
pub struct PeerResponse {
    pub status: u16,
    pub body: Bytes,
}

impl PeerResponse {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the beginning of the body, for messages.
    pub fn shown(&self) -> String {
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
        String::from_utf8_lossy(shown).trim().to_owned()
    }
}

impl HttpPeer {
    /// Creates a client that calls this server and nothing else. Plain HTTP with a credential stays on this machine,
    /// unless `is_plain_allowed`.
    pub fn new(
        base: &str,
        credentials: &[PeerHeader],
        ca: Option<&Path>,
        is_plain_allowed: bool,
    ) -> anyhow::Result<HttpPeer> {
        let base = base.trim_end_matches('/').to_owned();
        let url: EgressUrl = base.parse().with_context(|| format!("the address {base}"))?;
        let (origin, is_here) = (url.origin(), is_loopback(url.host()));
        anyhow::ensure!(
            origin.scheme == UrlScheme::Https || is_here || is_plain_allowed || credentials.is_empty(),
            "{base}: the key would be sent in plain text; use https, or allow it with --plain-http"
        );
        let mut entry = AllowEntry {
            ports: vec![PortRange::single(url.port())],
            purposes: vec![EgressPurpose::Imports],
            ..AllowEntry::default()
        };
        match url.host() {
            UrlHost::Address(address) => entry.cidr = Some(address.to_string()),
            UrlHost::Name(name) => entry.host = Some(name.as_str().to_owned()),
        }
        let settings = EgressSettings { allow: vec![entry], public: false, ..EgressSettings::default() };
        let policy = EgressPolicy::new(&settings, OwnEndpoints::default())?;
        let roots = match (ca, origin.scheme) {
            (Some(file), _) => TrustedRoots::from_file(file)?,
            (None, UrlScheme::Https) => TrustedRoots::system()?,
            (None, UrlScheme::Http) => TrustedRoots::none(),
        };
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", HeaderValue::from_static("assay-import"));
        headers.insert("accept", HeaderValue::from_static("application/json"));
        for header in credentials {
            let value = HeaderValue::from_str(header.value.expose());
            let mut value = value.with_context(|| format!("the value of {}", header.name))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header.name), value);
        }
        let name = origin.to_string();
        Ok(HttpPeer { client: EgressClient::new(EgressConfig::new(roots), policy), base, headers, name })
    }

    /// Sends a request until it succeeds or another attempt is of no use. All requests of imports may be repeated.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        say: &mut dyn FnMut(&str),
    ) -> anyhow::Result<PeerResponse> {
        let url: EgressUrl = format!("{}{path}", self.base).parse().with_context(|| format!("the path {path}"))?;
        let mut headers = self.headers.clone();
        let bytes = match body {
            Some(body) => {
                headers.insert("content-type", HeaderValue::from_static("application/json"));
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        let request = EgressRequest { method, url, headers, body: bytes };
        let mut options = EgressOptions::new(EgressPurpose::Imports, Uuid::nil());
        (options.times, options.response_bytes_max) = (TIMES, RESPONSE_BYTES_MAX);
        let mut pause = PAUSE_FIRST;
        for attempt in 1..=ATTEMPTS_MAX {
            let (why, asked) = match Box::pin(self.attempt(&request, &options)).await {
                Ok((response, _)) if !is_transient(response.status) => return Ok(response),
                Ok((response, asked)) => (format!("status {}: {}", response.status, response.shown()), asked),
                Err(why) => (why, None),
            };
            anyhow::ensure!(attempt < ATTEMPTS_MAX, "{}: {why}; it failed {ATTEMPTS_MAX} times", self.name);
            let wait = asked.unwrap_or(pause).min(ASKED_PAUSE_MAX);
            if attempt > 1 || wait > PAUSE_FIRST {
                say(&format!("{}: {why}; again in {:.1} s", self.name, wait.as_secs_f64()));
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        anyhow::bail!("{}: no attempt was made", self.name)
    }

    async fn attempt(
        &self,
        request: &EgressRequest,
        options: &EgressOptions,
    ) -> Result<(PeerResponse, Option<Duration>), String> {
        // The client hides its reasons from authors of URLs. Here the operator is the author.
        let response = self.client.send(request, options).await.map_err(|why| why.operator_reason().to_owned())?;
        let status = response.status.as_u16();
        let asked = response.headers.get("retry-after").and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| *seconds >= 0.0);
        let asked = asked.map(|seconds| Duration::from_secs_f64(seconds.min(ASKED_PAUSE_MAX.as_secs_f64())));
        let body = response.body.collect().await.map_err(|why| why.operator_reason().to_owned())?;
        Ok((PeerResponse { status, body }, asked))
    }

    /// Sends a request, and returns the JSON of its success.
    pub async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        say: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Value> {
        let response = self.call(method, path, body, say).await?;
        let place = path.split('?').next().unwrap_or_default();
        anyhow::ensure!(
            response.is_success(),
            "{} refused {place} with the status {}: {}",
            self.name,
            response.status,
            response.shown()
        );
        serde_json::from_slice(&response.body).with_context(|| format!("{}{place} answered no JSON", self.name))
    }
}

fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

fn is_loopback(host: &UrlHost) -> bool {
    match host {
        UrlHost::Address(address) => address.to_canonical().is_loopback(),
        UrlHost::Name(name) => name.as_str() == "localhost",
    }
}
