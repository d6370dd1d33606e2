//! The origin that a login names: the configured one, else the one that the caller used, so that whoever could reach
//! this server to log in can go on.

/// Longer names do not exist.
const HOST_BYTES_MAX: usize = 260;

/// `host` is the request's own, `forwarded_proto` what a proxy before this server says the caller spoke. None if no host
/// was named that could be handed back.
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

/// Letters, digits and what stands in names, addresses and before ports.
pub fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)
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
    fn what_is_no_host_is_not_handed_back() {
        for host in ["", "a/b", "a b", "a\"b", "user@host"] {
            assert_eq!(of_caller(Some(host), false, None), None, "{host}");
        }
        assert_eq!(of_caller(None, false, None), None);
        assert_eq!(of_caller(Some(&"a".repeat(261)), false, None), None);
    }
}
