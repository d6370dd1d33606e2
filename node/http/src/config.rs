//! What the HTTP part is told when it starts. Every limit has its name, its unit and its reason here.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// OpenTelemetry's own for gRPC.
const OTLP_PORT: u16 = 4317;
const OFF: &str = "off";

/// Read once by the program; what is left out has the default that stands below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Address and port; with port 0 the system chooses.
    pub listen: String,
    /// The origin that clients reach this server by, such as `https://assay.example.com`. Login hands it out. Without
    /// it the caller is told the address that it used itself; one that used a domain is refused, unless `http.tls` is set.
    pub public_url: Option<String>,
    /// Address and port of their own for `/metrics`. Without it only programs on this machine are shown
    /// metrics, by a loopback address and without a proxy.
    pub metrics_listen: Option<String>,
    /// Address and port where exporters of OpenTelemetry are served over gRPC, or `off`. Without it the port of that name, 4317,
    /// of the host of `listen`; or one that the system chooses, where it chooses that of `listen`.
    pub otlp_listen: Option<String>,
    /// Without it clients are spoken to in plain text.
    pub tls: Option<TlsFiles>,
    /// Threads that serve; 0 means one a core.
    pub workers: usize,
    /// Open connections of all workers. Beyond it new ones wait until one closes: each costs buffers.
    pub connections_max: usize,
    /// Connections that the system keeps ready to be accepted.
    pub backlog: u32,
    /// Request line and headers. No client that is served sends a tenth of it.
    pub head_bytes_max: usize,
    /// A connection that has not sent its headers by then is closed.
    pub head_seconds_max: u64,
    /// A TLS handshake that has not ended by then is given up.
    pub tls_handshake_seconds_max: u64,
    /// An idle connection is closed after this; the SDKs keep theirs for as long as they may.
    pub keep_alive_seconds: u64,
    /// The body of a request that writes or reads rows.
    pub body_bytes_max: usize,
    /// The body of every other request: a record of the catalog is at most 1 MiB.
    pub small_body_bytes_max: usize,
    /// A file: an attachment, or the code of functions. It must come within the time for a request.
    pub file_bytes_max: u64,
    /// Bodies that are being read or worked on, of all requests together. Beyond it the answer is 429.
    pub bodies_bytes_max: usize,
    /// About what the bodies that are parsed may take of memory; the others wait for their turn as bytes.
    pub parsed_bytes_max: usize,
    /// Pages of rows that are on their way to their readers, of all of them together. Beyond it the answer is 503.
    pub answers_bytes_max: usize,
    /// A connection whose other end takes nothing of what was sent to it for this long is closed.
    pub unread_seconds_max: u32,
    /// A whole body must have come by then.
    pub body_seconds_max: u64,
    /// After the grace a body must have come at least this fast, or it is cut: a slow sender holds memory. A page of rows
    /// must be taken as fast.
    pub body_bytes_per_second_min: u64,
    /// A body may stall so long before its rate counts.
    pub body_grace_seconds: u64,
    /// A request that is not answered by then is answered 503; what it wrote may have been written.
    pub request_seconds_max: u64,
    /// How long a stop waits for requests under way.
    pub stop_seconds_max: u64,
}

/// PEM files. They are looked at again from time to time, so that a renewed certificate needs no restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate of this server first, then those that signed it.
    pub certificates: PathBuf,
    pub private_key: PathBuf,
}

impl Default for HttpConfig {
    fn default() -> Self {
        HttpConfig {
            listen: "127.0.0.1:8000".into(),
            public_url: None,
            metrics_listen: None,
            otlp_listen: None,
            tls: None,
            workers: 0,
            connections_max: 4096,
            backlog: 1024,
            head_bytes_max: 16 << 10,
            head_seconds_max: 10,
            tls_handshake_seconds_max: 5,
            keep_alive_seconds: 75,
            body_bytes_max: 20 << 20,
            small_body_bytes_max: 2 << 20,
            file_bytes_max: 256 << 20,
            bodies_bytes_max: 64 << 20,
            parsed_bytes_max: 64 << 20,
            answers_bytes_max: 256 << 20,
            unread_seconds_max: 60,
            body_seconds_max: 60,
            body_bytes_per_second_min: 4 << 10,
            body_grace_seconds: 10,
            request_seconds_max: 120,
            stop_seconds_max: 30,
        }
    }
}

impl HttpConfig {
    /// What the limits must be to each other, with a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("connections_max", self.connections_max as u64),
            ("head_bytes_max", self.head_bytes_max as u64),
            ("head_seconds_max", self.head_seconds_max),
            ("tls_handshake_seconds_max", self.tls_handshake_seconds_max),
            ("body_bytes_max", self.body_bytes_max as u64),
            ("small_body_bytes_max", self.small_body_bytes_max as u64),
            ("file_bytes_max", self.file_bytes_max),
            ("parsed_bytes_max", self.parsed_bytes_max as u64),
            ("answers_bytes_max", self.answers_bytes_max as u64),
            ("unread_seconds_max", u64::from(self.unread_seconds_max)),
            ("body_seconds_max", self.body_seconds_max),
            ("body_bytes_per_second_min", self.body_bytes_per_second_min),
            ("request_seconds_max", self.request_seconds_max),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("http.{name} is 0; it should be at least 1"));
        }
        if self.bodies_bytes_max < self.body_bytes_max.max(self.small_body_bytes_max) {
            return Err("http.bodies_bytes_max is below the most that one body may have; one must fit".into());
        }
        if self.request_seconds_max < self.body_seconds_max {
            return Err("http.request_seconds_max is below http.body_seconds_max; a body is part of its request".into());
        }
        match &self.public_url {
            Some(url) if !is_origin(url) => Err(format!(
                "http.public_url is `{url}`; it should be like `https://assay.example.com`, without a path"
            )),
            _ => Ok(()),
        }
    }

    /// Where gRPC is served; none where it is not.
    pub fn otlp_address(&self) -> Option<String> {
        match self.otlp_listen.as_deref() {
            Some(OFF) => None,
            Some(address) => Some(address.to_owned()),
            None => {
                let (host, port) = self.listen.rsplit_once(':')?;
                let port = if port == "0" { 0 } else { OTLP_PORT };
                Some(format!("{host}:{port}"))
            }
        }
    }

    /// `public_url` as it is handed out: paths are put behind it.
    pub fn public_origin(&self) -> Option<&str> {
        self.public_url.as_deref().map(|url| url.trim_end_matches('/'))
    }

    pub(crate) fn body_grace(&self) -> Duration {
        Duration::from_secs(self.body_grace_seconds)
    }

    pub(crate) fn request_time_max(&self) -> Duration {
        Duration::from_secs(self.request_seconds_max)
    }
}

fn is_origin(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(crate::origin::is_host_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(change: impl FnOnce(&mut HttpConfig), part: &str) {
        let mut config = HttpConfig::default();
        change(&mut config);
        let problem = config.check().expect_err(part);
        assert!(problem.contains(part), "{problem}");
    }

    #[test]
    fn the_defaults_fit_together() {
        assert_eq!(HttpConfig::default().check(), Ok(()));
    }

    #[test]
    fn limits_that_contradict_each_other_are_refused() {
        refused(|config| config.body_seconds_max = 0, "body_seconds_max is 0");
        refused(|config| config.bodies_bytes_max = 1, "one must fit");
        refused(|config| config.request_seconds_max = 59, "part of its request");
    }

    #[test]
    fn exporters_are_served_where_they_look() {
        let at = |listen: &str, otlp: Option<&str>| {
            let otlp_listen = otlp.map(str::to_owned);
            HttpConfig { listen: listen.into(), otlp_listen, ..HttpConfig::default() }.otlp_address()
        };
        assert_eq!(at("127.0.0.1:8000", None).as_deref(), Some("127.0.0.1:4317"));
        assert_eq!(at("[::]:8000", None).as_deref(), Some("[::]:4317"));
        assert_eq!(at("0.0.0.0:0", None).as_deref(), Some("0.0.0.0:0"));
        assert_eq!(at("0.0.0.0:8000", Some("10.0.0.1:5000")).as_deref(), Some("10.0.0.1:5000"));
        assert_eq!(at("0.0.0.0:8000", Some("off")), None);
    }

    #[test]
    fn a_public_url_is_an_origin() {
        for wrong in ["assay.example.com", "https://", "https://a/b", "ftp://a", "https://a b", "https://u@a"] {
            refused(|config| config.public_url = Some(wrong.into()), "public_url");
        }
        let config = HttpConfig { public_url: Some("https://a.example:8443/".into()), ..HttpConfig::default() };
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.public_origin(), Some("https://a.example:8443"));
    }
}
