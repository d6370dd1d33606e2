//! Settings of the HTTP server: listeners, limits and timeouts.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_node_connections::{Gate, Limits};
use assay_node_limits::memory_share;
use serde::{Deserialize, Serialize};

use crate::server::METRICS_CONNECTIONS_MAX;
use crate::server::admin::CONNECTIONS_MAX;

/// Divisor that yields the size of the reserve for health checks from the number of connections.
const RESERVE: usize = 32;
const RESERVE_MIN: usize = 4;
const RESERVE_MAX: usize = 64;
/// Lowest number of connections to which a listener is reduced.
const CONNECTIONS_MIN: usize = 8;
/// Default port of OpenTelemetry over gRPC.
const OTLP_PORT: u16 = 4317;
const OFF: &str = "off";

/// Settings of the HTTP server, read at startup. Missing settings take the values of [`Default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Address and port for clients. With port 0, the system chooses a port.
    pub listen: String,
    /// Origin at which clients reach this server, such as `https://assay.example.com`.
    ///
    /// Login returns this origin to the client. Without it, login returns the address that the caller used. A caller
    /// that used a domain is then refused unless `http.tls` is set.
    pub public_url: Option<String>,
    /// Address and port of a listener that serves only `/metrics`.
    ///
    /// Without it, only programs on this machine may read metrics, over a loopback address and without a proxy.
    pub metrics_listen: Option<String>,
    /// Address and port for OTLP over gRPC, or `off`.
    ///
    /// The default is port 4317 of the host of `listen`. If `listen` has port 0, the system chooses the port.
    pub otlp_listen: Option<String>,
    /// Certificate files. Without them, the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Number of worker threads. 0 means one for each processor.
    pub workers: usize,
    /// Upper bound of the open connections of `listen`.
    ///
    /// A new connection beyond it replaces the connection that was idle longest. If none is idle, the new one serves
    /// only `/healthz` and `/readyz`. The limit of open files lowers this bound.
    pub connections_max: usize,
    /// Upper bound of the open connections of `otlp_listen`.
    pub otlp_connections_max: usize,
    /// Upper bound of the connections from one address to each listener. Addresses in `trusted_proxies` are exempt.
    pub connections_per_address_max: usize,
    /// Addresses of proxies that forward requests of many clients, or their networks, such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
    /// Number of connections that the system queues until they are accepted.
    pub backlog: u32,
    /// Upper bound of the bytes of the request line and headers.
    pub head_bytes_max: usize,
    /// Time limit for the headers of a request, after which the connection is closed.
    pub head_seconds_max: u64,
    /// Time limit for a TLS handshake.
    pub tls_handshake_seconds_max: u64,
    /// Time after which an idle connection is closed.
    pub keep_alive_seconds: u64,
    /// Upper bound of the body of a request that writes or reads rows.
    pub body_bytes_max: usize,
    /// Upper bound of the body of any other request. A record of the catalog has at most 1 MiB.
    pub small_body_bytes_max: usize,
    /// Upper bound of a file: an attachment, or the code of a function. The upload must end within an hour.
    pub file_bytes_max: u64,
    /// Upper bound of all request bodies in progress.
    ///
    /// Requests beyond it wait, fairly by organization and credential, and receive a 429 when their wait ends. The
    /// default is 1/32 of the memory of the machine or control group, from 48 MiB to 512 MiB.
    pub bodies_bytes_max: usize,
    /// Upper bound of the estimated memory of all parsed bodies. Further bodies wait unparsed.
    ///
    /// Rows that a restore or a comparison holds count too. The default is the same share of memory as for
    /// `bodies_bytes_max`, from 64 MiB to 512 MiB.
    pub parsed_bytes_max: usize,
    /// Upper bound of concurrent file uploads. Further uploads wait.
    pub uploads_max: usize,
    /// Upper bound of the bytes of responses with rows that are being sent.
    ///
    /// A response beyond it waits, and becomes a 429 after at most 30 s.
    pub answers_bytes_max: usize,
    /// Time after which a client that reads nothing of a response is disconnected.
    ///
    /// Each part that the client reads extends the remaining time, up to this value.
    pub answer_grace_seconds: u64,
    /// Minimum rate at which a client must read a response, after the grace period.
    pub answer_bytes_per_second_min: u64,
    /// Time after which a connection is closed if its client acknowledges none of the sent bytes.
    pub unread_seconds_max: u32,
    /// Time limit for a whole body.
    pub body_seconds_max: u64,
    /// Minimum rate at which a body must arrive, after the grace period.
    pub body_bytes_per_second_min: u64,
    /// Grace period of a body before its minimum rate applies.
    pub body_grace_seconds: u64,
    /// Time limit for the response to a request. A request beyond it receives a 503, although its write may have been
    /// done.
    pub request_seconds_max: u64,
    /// Time limit of a shutdown for requests in progress.
    pub stop_seconds_max: u64,
}

/// Returns the default of a budget that is a share of the machine's memory.
fn share(min: u64) -> usize {
    usize::try_from(memory_share(32, min, 512 << 20)).unwrap_or(usize::MAX)
}

/// PEM files of a TLS listener. The server rereads them regularly, so a renewed certificate needs no restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// File with the certificate of this server, followed by its intermediate certificates.
    pub certificates: PathBuf,
    /// File with the private key of the certificate.
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
            otlp_connections_max: 512,
            connections_per_address_max: 512,
            trusted_proxies: vec!["127.0.0.0/8".into(), "::1".into()],
            backlog: 1024,
            head_bytes_max: 16 << 10,
            head_seconds_max: 10,
            tls_handshake_seconds_max: 5,
            keep_alive_seconds: 75,
            body_bytes_max: 20 << 20,
            small_body_bytes_max: 2 << 20,
            file_bytes_max: 256 << 20,
            bodies_bytes_max: share(48 << 20),
            parsed_bytes_max: share(64 << 20),
            uploads_max: 64,
            answers_bytes_max: 256 << 20,
            answer_grace_seconds: 30,
            answer_bytes_per_second_min: 4 << 10,
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
    /// Checks the settings, also against each other. The error says what to change.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("connections_max", self.connections_max as u64),
            ("otlp_connections_max", self.otlp_connections_max as u64),
            ("connections_per_address_max", self.connections_per_address_max as u64),
            ("head_bytes_max", self.head_bytes_max as u64),
            ("head_seconds_max", self.head_seconds_max),
            ("tls_handshake_seconds_max", self.tls_handshake_seconds_max),
            ("body_bytes_max", self.body_bytes_max as u64),
            ("small_body_bytes_max", self.small_body_bytes_max as u64),
            ("file_bytes_max", self.file_bytes_max),
            ("parsed_bytes_max", self.parsed_bytes_max as u64),
            ("uploads_max", self.uploads_max as u64),
            ("answers_bytes_max", self.answers_bytes_max as u64),
            ("answer_grace_seconds", self.answer_grace_seconds),
            ("answer_bytes_per_second_min", self.answer_bytes_per_second_min),
            ("unread_seconds_max", u64::from(self.unread_seconds_max)),
            ("body_seconds_max", self.body_seconds_max),
            ("body_bytes_per_second_min", self.body_bytes_per_second_min),
            ("request_seconds_max", self.request_seconds_max),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("http.{name} is 0; it should be at least 1"));
        }
        self.networks()?;
        let listened = [("listen", Some(&self.listen)), ("metrics_listen", self.metrics_listen.as_ref())];
        let otlp = ("otlp_listen", self.otlp_listen.as_ref().filter(|listen| *listen != OFF));
        for (name, listen) in listened.into_iter().chain([otlp]) {
            listen.map_or(Ok(()), |listen| check_listen(listen)).map_err(|why| format!("http.{name} {why}"))?;
        }
        if self.bodies_bytes_max < self.body_bytes_max.max(self.small_body_bytes_max) {
            return Err("http.bodies_bytes_max is below the maximum size of one body; it must hold at least one".into());
        }
        if self.request_seconds_max < self.body_seconds_max {
            return Err("http.request_seconds_max is below http.body_seconds_max; it must be at least as long, \
                        because a request includes its body"
                .into());
        }
        match &self.public_url {
            Some(url) if !is_origin(url) => Err(format!(
                "http.public_url is `{url}`; it should be like `https://assay.example.com`, without a path"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the networks of `trusted_proxies`, each as an address and a prefix length.
    fn networks(&self) -> Result<Vec<(IpAddr, u8)>, String> {
        self.trusted_proxies.iter().map(|text| network(text)).collect()
    }

    /// Returns the gate of a listener, which admits up to `connections` connections.
    pub(crate) fn gate(&self, listener: &str, connections: usize) -> Arc<Gate> {
        let limits =
            Limits { connections, reserve: reserve_of(connections), per_address: self.connections_per_address_max };
        Gate::new(listener, limits, self.networks().unwrap_or_default())
    }

    /// Returns the number of files that the connections of all listeners may take.
    pub fn connection_files(&self) -> usize {
        let metrics = if self.metrics_listen.is_some() { METRICS_CONNECTIONS_MAX } else { 0 };
        let listeners = [self.connections_max, self.otlp_connections_max, metrics, CONNECTIONS_MAX];
        let listeners = listeners.into_iter().filter(|connections| *connections > 0);
        listeners.map(|connections| connections + 2 * reserve_of(connections)).sum()
    }

    /// Lowers the numbers of connections proportionally until they take at most `files` files, or reach their minimum.
    ///
    /// Returns whether the settings exceeded `files`.
    pub fn fit_connections(&mut self, files: usize) -> bool {
        let fits = self.connection_files() <= files;
        let less = |connections: usize| (connections - connections.div_ceil(16)).max(CONNECTIONS_MIN.min(connections));
        loop {
            let (http, otlp) = (less(self.connections_max), less(self.otlp_connections_max));
            let is_least = (http, otlp) == (self.connections_max, self.otlp_connections_max);
            if is_least || self.connection_files() <= files {
                return !fits;
            }
            (self.connections_max, self.otlp_connections_max) = (http, otlp);
        }
    }

    /// Returns the address of the gRPC listener, or `None` if it is off.
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

    /// Returns `public_url` without a trailing slash, so that a path can follow.
    pub fn public_origin(&self) -> Option<&str> {
        self.public_url.as_deref().map(|url| url.trim_end_matches('/'))
    }

    pub(crate) fn body_grace(&self) -> Duration {
        Duration::from_secs(self.body_grace_seconds)
    }

    pub fn request_time_max(&self) -> Duration {
        Duration::from_secs(self.request_seconds_max)
    }
}

/// Returns the number of connections that are reserved for health checks.
fn reserve_of(connections: usize) -> usize {
    (connections / RESERVE).clamp(RESERVE_MIN, RESERVE_MAX)
}

/// Parses a network such as `10.0.0.0/8`, or a single address.
fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong =
        || format!("http.trusted_proxies has `{text}`; write an address or a network, such as 10.0.0.7 or 10.0.0.0/8");
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), |bits| bits.trim().parse().map_err(|_| wrong()))?;
    if bits > most { Err(wrong()) } else { Ok((address, bits)) }
}

/// Checks that a text is an address or name with a port. The error says what to write instead.
fn check_listen(listen: &str) -> Result<(), String> {
    let port = |text: &str| text.parse::<u16>().is_ok();
    if listen.parse::<std::net::SocketAddr>().is_ok() {
        return Ok(());
    }
    match listen.rsplit_once(':') {
        _ if listen.parse::<std::net::Ipv6Addr>().is_ok() => {
            Err(format!("is `{listen}`, which has no port; write [{listen}]:8000"))
        }
        Some((host, text)) if port(text) && !host.is_empty() && !host.contains(':') => Ok(()),
        Some((host, _)) => Err(format!(
            "is `{listen}`, which is not an address and a port; write for instance {}:8000",
            if host.is_empty() || host.contains(':') { "127.0.0.1" } else { host }
        )),
        None if port(listen) => Err(format!("is `{listen}`, which has no address; write 127.0.0.1:{listen}")),
        None => Err(format!("is `{listen}`, which has no port; write {listen}:8000")),
    }
}

fn is_origin(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(crate::requests::origin::is_host_byte))
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
        refused(|config| config.bodies_bytes_max = 1, "hold at least one");
        refused(|config| config.request_seconds_max = 59, "includes its body");
    }

    #[test]
    fn connections_fit_into_the_files_that_there_are() {
        let mut config = HttpConfig::default();
        assert!(!config.fit_connections(config.connection_files()));
        assert_eq!(config, HttpConfig::default());
        for files in [4_000, 2_000, 1_000, 500, 128] {
            let mut config = HttpConfig::default();
            assert!(config.fit_connections(files));
            assert!(config.connection_files() <= files, "{files}: {}", config.connection_files());
            assert!(config.connections_max >= CONNECTIONS_MIN && config.check().is_ok());
        }
        let mut config = HttpConfig { connections_max: 4, ..HttpConfig::default() };
        assert!(config.fit_connections(1));
        assert_eq!((config.connections_max, config.otlp_connections_max), (4, CONNECTIONS_MIN));
    }

    #[test]
    fn a_network_is_an_address_and_its_bits() {
        assert_eq!(network("10.0.0.0/8"), Ok(("10.0.0.0".parse().expect("an address"), 8)));
        assert_eq!(network("::1"), Ok(("::1".parse().expect("an address"), 128)));
        for wrong in ["", "proxy.example", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        refused(|config| config.trusted_proxies = vec!["a".into()], "http.trusted_proxies has `a`");
    }

    #[test]
    fn an_address_has_a_port() {
        for right in ["127.0.0.1:8000", "[::]:0", "localhost:80"] {
            assert_eq!(check_listen(right), Ok(()), "{right}");
        }
        for (wrong, write) in [
            ("0.0.0.0", "0.0.0.0:8000"),
            ("::1", "[::1]:8000"),
            ("8000", "127.0.0.1:8000"),
            ("a:b", "a:8000"),
            (":80", "127.0.0.1"),
        ] {
            assert!(check_listen(wrong).expect_err(wrong).contains(write), "{wrong}");
        }
        refused(|config| config.listen = "0.0.0.0".into(), "http.listen is `0.0.0.0`, which has no port");
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
