//! URLs of outbound calls in normal form: scheme, checked host, port, and path with query.

use std::fmt;
use std::str::FromStr;

use crate::error::UrlError;
use crate::host::UrlHost;

/// Upper bound of a URL in bytes. Signed URLs of object stores have about 4 KiB.
pub const URL_BYTES_MAX: usize = 8 << 10;

/// Scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlScheme {
    Http,
    Https,
}

impl UrlScheme {
    pub fn name(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            UrlScheme::Http => 80,
            UrlScheme::Https => 443,
        }
    }
}

/// Scheme, host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlOrigin {
    pub scheme: UrlScheme,
    pub host: UrlHost,
    pub port: u16,
}

impl UrlOrigin {
    /// Returns the value of the `Host` header, which omits the default port of the scheme.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), self.host, self.port)
    }
}

/// Callable URL. Only its origin is printed, because paths and queries of webhooks contain secrets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EgressUrl {
    origin: UrlOrigin,
    /// Path with query. It begins with a slash and has no fragment.
    path_and_query: String,
}

impl EgressUrl {
    pub fn origin(&self) -> &UrlOrigin {
        &self.origin
    }

    pub fn host(&self) -> &UrlHost {
        &self.origin.host
    }

    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Returns the path with the query, which may contain secrets.
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// Returns the complete URL in normal form, which may contain secrets.
    pub fn to_text(&self) -> String {
        format!("{}://{}{}", self.origin.scheme.name(), self.origin.authority(), self.path_and_query)
    }

    /// Returns the target of a `Location` header in a response of this URL.
    pub fn join(&self, location: &str) -> Result<EgressUrl, UrlError> {
        check_characters(location)?;
        let location = without_fragment(location);
        if has_scheme(location) {
            return location.parse();
        }
        if location.starts_with("//") {
            return format!("{}:{location}", self.origin.scheme.name()).parse();
        }
        let path = self.path_and_query.split('?').next().unwrap_or_default();
        let joined = if location.is_empty() {
            self.path_and_query.clone()
        } else if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{path}{location}")
        } else {
            let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
            format!("{folder}{location}")
        };
        if joined.len() > URL_BYTES_MAX {
            return Err(UrlError::Long);
        }
        Ok(EgressUrl { origin: self.origin.clone(), path_and_query: without_dots(&joined) })
    }
}

impl FromStr for EgressUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<EgressUrl, UrlError> {
        check_characters(text)?;
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = if scheme.eq_ignore_ascii_case("https") {
            UrlScheme::Https
        } else if scheme.eq_ignore_ascii_case("http") {
            UrlScheme::Http
        } else {
            return Err(UrlError::Scheme);
        };
        let rest = without_fragment(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = split_authority(authority)?;
        let host: UrlHost = host.parse()?;
        let port = port.map_or(Ok(scheme.default_port()), parse_port)?;
        let path_and_query = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(EgressUrl { origin: UrlOrigin { scheme, host, port }, path_and_query })
    }
}

/// Checks for printable ASCII without characters that URL parsers interpret differently.
fn check_characters(text: &str) -> Result<(), UrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::Long);
    }
    match text.chars().find(|c| !c.is_ascii_graphic() || matches!(c, '\\' | '"' | '<' | '>' | '`')) {
        Some(wrong) => Err(UrlError::Character(wrong)),
        None => Ok(()),
    }
}

fn without_fragment(text: &str) -> &str {
    text.split('#').next().unwrap_or_default()
}

/// Returns whether a reference begins with a scheme, which must then be a supported one.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?']).filter(|end| reference[*end..].starts_with(':'));
    end.is_some_and(|end| end > 0)
}

fn split_authority(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    let after_address = authority.rfind(']').map_or(0, |end| end + 1);
    match authority[after_address..].find(':') {
        Some(colon) => {
            let colon = after_address + colon;
            Ok((&authority[..colon], Some(&authority[colon + 1..])))
        }
        None => Ok((authority, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, UrlError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse::<u16>().ok().filter(|port| is_plain && *port > 0);
    port.ok_or(UrlError::Port)
}

/// Resolves `.` and `..` in a path. The query stays unchanged.
fn without_dots(path_and_query: &str) -> String {
    let (path, query) = path_and_query.split_at(path_and_query.find('?').unwrap_or(path_and_query.len()));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let is_folder = path.ends_with("/.") || path.ends_with("/..");
    let end = if is_folder && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}{query}", parts.join("/"))
}

impl fmt::Debug for EgressUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressUrl({}/..)", self.origin)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(base: &str, location: &str) -> Result<String, UrlError> {
        Ok(base.parse::<EgressUrl>().expect(base).join(location)?.to_text())
    }

    #[test]
    fn a_url_has_one_normal_form() {
        for (text, normal) in [
            ("HTTPS://API.Example.COM./v1?k=1#part", "https://api.example.com/v1?k=1"),
            ("http://h", "http://h/"),
            ("http://h?q", "http://h/?q"),
            ("http://h#f", "http://h/"),
            ("https://h:443/", "https://h/"),
            ("https://h:80/", "https://h:80/"),
            ("http://0x7f.1:8080/a/../b", "http://127.0.0.1:8080/a/../b"),
            ("http://[0:0::1]/", "http://[::1]/"),
            ("http://my_service-1:8000/", "http://my_service-1:8000/"),
        ] {
            assert_eq!(text.parse::<EgressUrl>().expect(text).to_text(), normal, "{text}");
        }
    }

    #[test]
    fn a_location_leads_where_a_browser_would_go() {
        let base = "https://a.example/b/c/d?q=1";
        for (location, expected) in [
            ("", "https://a.example/b/c/d?q=1"),
            ("#f", "https://a.example/b/c/d?q=1"),
            ("e", "https://a.example/b/c/e"),
            ("./e", "https://a.example/b/c/e"),
            ("../e?x", "https://a.example/b/e?x"),
            ("../../../..", "https://a.example/"),
            ("..", "https://a.example/b/"),
            ("?x=/../", "https://a.example/b/c/d?x=/../"),
            ("/", "https://a.example/"),
            ("/x/y?u=http://z", "https://a.example/x/y?u=http://z"),
            ("//z.example:8443/y", "https://z.example:8443/y"),
            ("http://z.example", "http://z.example/"),
        ] {
            assert_eq!(joined(base, location).as_deref(), Ok(expected), "{location}");
        }
        for location in ["file:///etc/passwd", "javascript:1", "//u@h/", "http:x", "/a b", "\\\\h\\x", "//"] {
            assert!(joined(base, location).is_err(), "{location}");
        }
    }

    #[test]
    fn what_is_shown_of_a_url_is_its_origin() {
        let url: EgressUrl = "https://hooks.example/T0/secret?sig=secret".parse().unwrap();
        assert_eq!(format!("{url:?}"), "EgressUrl(https://hooks.example:443/..)");
    }

    proptest! {
        #[test]
        fn a_normal_form_is_its_own_normal_form(text in "(http|https)://[a-z0-9.:@%x\\[\\]-]{0,20}[a-z/?#.]{0,10}") {
            if let Ok(url) = text.parse::<EgressUrl>() {
                prop_assert_eq!(url.to_text().parse::<EgressUrl>(), Ok(url));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(base in "http://[a-z]{1,3}/[a-z./?]{0,8}", text in "\\PC{0,40}") {
            drop(text.parse::<EgressUrl>());
            if let Ok(base) = base.parse::<EgressUrl>() {
                drop(base.join(&text));
            }
        }
    }
}
