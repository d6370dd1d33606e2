//! Origins of requests, and the classification of host names.
//!
//! Without a configured origin, a login uses the origin of its caller, who is known to reach the server there.

use std::net::IpAddr;

use crate::requests::caller::{Call, FORWARDED_PROTO};
use crate::responses::refusal::Refusal;
use crate::web::header;

/// Upper bound of a host with its port. Host names are shorter.
const HOST_BYTES_MAX: usize = 260;

/// Returns the origin that the caller used, or `None` if the request has no valid host.
///
/// `host` is the `Host` header. `forwarded_proto` is the caller's protocol according to a proxy in front of this
/// server.
pub fn of_caller(host: Option<&str>, is_tls: bool, forwarded_proto: Option<&str>) -> Option<String> {
    let host = host?.trim();
    let has_form = !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.bytes().all(is_host_byte);
    let scheme = match forwarded_proto.map(str::trim) {
        Some("https") => "https",
        Some("http") => "http",
        _ if is_tls => "https",
        _ => "http",
    };
    has_form.then(|| format!("{scheme}://{host}"))
}

/// Returns the host of `host:port`, without the brackets of an IPv6 address.
fn name_of(host: &str) -> &str {
    let host = host.trim();
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_localhost(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
}

/// Returns whether a host names this machine.
pub fn is_loopback(host: &str) -> bool {
    let name = name_of(host);
    is_localhost(name) || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns whether a host is an address, or a name of this machine or its network.
///
/// Such a name has no dot. A domain belongs to somebody, who can make it resolve to this server.
pub fn is_of_this_network(host: &str) -> bool {
    let name = name_of(host);
    name.parse::<IpAddr>().is_ok() || (!name.is_empty() && !name.contains('.'))
}

/// Returns whether a byte may occur in a host name, an address or a port.
pub fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)
}

/// Returns the origin under which clients reach this server, for URLs in responses.
pub fn origin_of(call: &Call) -> Result<String, Refusal> {
    if let Some(origin) = call.edge.config.public_origin() {
        return Ok(origin.to_owned());
    }
    let text = |name: &str| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_tls = call.edge.config.tls.is_some();
    let host = text(header::HOST.as_str());
    // With TLS, the caller has verified the name against this server's certificate.
    if !is_tls && host.is_some_and(|host| !is_of_this_network(host)) {
        return Err(Refusal::bad(
            "this server does not trust the domain in `Host`, so it cannot make URLs with it. Set `http.public_url` \
             to the origin that clients use, or address the server by its IP address",
        ));
    }
    let origin = of_caller(host, is_tls, text(FORWARDED_PROTO));
    origin.ok_or_else(|| {
        Refusal::bad("the `Host` header has no host, so the server cannot make a URL: send a `Host` header")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_gets_back_the_origin_it_used() {
        let plain = |host| of_caller(Some(host), false, None);
        assert_eq!(plain("localhost:8000").as_deref(), Some("http://localhost:8000"));
        assert_eq!(plain("[::1]:8000").as_deref(), Some("http://[::1]:8000"));
        assert_eq!(of_caller(Some("a.example"), true, None).as_deref(), Some("https://a.example"));
        assert_eq!(of_caller(Some("a.example"), false, Some("https")).as_deref(), Some("https://a.example"));
        assert_eq!(of_caller(Some("a.example"), true, Some("gopher")).as_deref(), Some("https://a.example"));
    }

    #[test]
    fn only_a_domain_may_be_somebody_elses() {
        for host in ["10.0.0.1:8000", "[fd00::1]:8000", "127.0.0.1", "localhost:8000", "assay-1:8000", "fd00::1"] {
            assert!(is_of_this_network(host), "{host}");
        }
        for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.evil.example"] {
            assert!(!is_of_this_network(host), "{host}");
        }
        assert!(is_loopback("[::1]:8000") && is_loopback("127.8.8.8") && is_loopback("LOCALHOST:80"));
        assert!(!is_loopback("10.0.0.1") && !is_loopback("assay-1") && !is_loopback("a.localhost.example"));
    }

    #[test]
    fn what_is_no_host_is_not_handed_back() {
        for host in ["", "a/b", "a b", "a\"b", "user@host"] {
            assert_eq!(of_caller(Some(host), false, None), None, "{host}");
        }
        assert_eq!(of_caller(None, false, None), None);
        assert_eq!(of_caller(Some(&"a".repeat(261)), false, None), None);
    }
}
