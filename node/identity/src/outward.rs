//! Client of external servers as a trait, and the URLs that it accepts. The program implements it with TLS.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use assay_node_secrets::Secret;

/// Client for external servers: https, or plain http to this machine only.
pub trait OutwardClient: fmt::Debug + Send + Sync {
    /// Returns the endpoint of a URL. `ca` is a file with the authorities to trust instead of the system ones. An
    /// unreadable file is an error.
    fn server(&self, url: &str, ca: Option<&Path>) -> anyhow::Result<Arc<dyn OutwardServer>>;
}

/// Endpoint of a server. Calls block, within limits of time and size, and follow no redirects.
pub trait OutwardServer: fmt::Debug + Send + Sync {
    fn get(&self) -> anyhow::Result<Vec<u8>>;

    /// Sends a form with this `Authorization` value.
    fn post(&self, form: &str, authorization: Option<&Secret>) -> anyhow::Result<Vec<u8>>;
}

/// Parsed URL of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// Path with its query.
    pub path: String,
}

/// Error for a response with another status than 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadStatus(pub String);

impl fmt::Display for BadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it responded with the status `{}`", self.0)
    }
}

impl std::error::Error for BadStatus {}

/// Parses a URL and checks that requests to it are allowed.
pub fn parse_url(url: &str) -> Result<ServerUrl, String> {
    let wrong = |why: &str| Err(format!("`{url}`: {why}; it should be like https://issuer.example/path"));
    let (is_tls, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return wrong("it is neither https nor http"),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        // Colons in brackets belong to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port) => (host, port),
            Err(_) => return wrong("its port is not a number"),
        },
        _ => (authority, if is_tls { 443 } else { 80 }),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte)) {
        return wrong("it has no host, or more than a host");
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return wrong("its path has invalid characters");
    }
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback());
    if !is_tls && !is_here {
        return wrong("plain HTTP can be modified in transit: use https");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(ServerUrl { is_tls, host: host.to_owned(), port, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_on_this_machine() {
        let place = |url: &str| parse_url(url).map(|place| (place.is_tls, place.host, place.port, place.path));
        assert_eq!(place("https://a.example"), Ok((true, "a.example".into(), 443, "/".into())));
        assert_eq!(
            place("https://a.example:8443/x/y.json?z=1"),
            Ok((true, "a.example".into(), 8443, "/x/y.json?z=1".into()))
        );
        assert_eq!(place("https://[2001:db8::1]/k"), Ok((true, "2001:db8::1".into(), 443, "/k".into())));
        assert_eq!(place("http://[::1]:80/k"), Ok((false, "::1".into(), 80, "/k".into())));
        assert_eq!(place("http://localhost?q"), Ok((false, "localhost".into(), 80, "/?q".into())));
        for (url, says) in [
            ("http://a.example/k", "use https"),
            ("ftp://a.example/k", "neither https nor http"),
            ("https:///k", "no host"),
            ("https://user@a.example/k", "more than a host"),
            ("https://user:pw@a.example/k", "not a number"),
            ("https://a.example:x/k", "not a number"),
            ("https://a.example/a b", "invalid characters"),
            ("https://a.example/a\r\nX: y", "invalid characters"),
            ("https://a.example/#k", "invalid characters"),
        ] {
            assert!(parse_url(url).unwrap_err().contains(says), "{url}");
        }
    }
}
