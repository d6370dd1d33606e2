//! Clients of logins: what the operator allows, and clients that register themselves (RFC 7591).
//!
//! A registration is a sealed ticket that serves as the client id, so that nodes store nothing for it.

use serde::{Deserialize, Serialize};

use crate::login::Ticket;

/// Settings of logins: clients, redirect URIs, lifetimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRules {
    /// Host of the provider, for display.
    pub provider: String,
    /// Origin of this server: issuer and audience of access tokens.
    pub origin: String,
    /// Allowed client ids; an empty list allows all.
    pub clients: Vec<String>,
    /// Allowed redirect URIs in addition to the loopback addresses, compared exactly.
    pub redirect_uris: Vec<String>,
    /// Whether clients may register themselves.
    pub is_registration_open: bool,
    pub access_seconds: i64,
    pub login_seconds: i64,
}

impl LoginRules {
    pub fn knows_client(&self, client: &str) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|known| known == client)
    }

    /// Returns whether clients may register themselves. A list of allowed clients excludes it.
    pub fn registers_clients(&self) -> bool {
        self.is_registration_open && self.clients.is_empty()
    }

    /// Returns whether a client may register a redirect URI: https, a loopback address, or a configured URI.
    pub fn may_register(&self, uri: &str) -> bool {
        self.redirect_uris.iter().any(|known| known == uri) || is_https(uri) || loopback_parts(uri).is_some()
    }

    /// Returns whether a redirect URI is allowed: a loopback address, or a configured URI.
    pub fn may_redirect(&self, uri: &str) -> bool {
        self.redirect_uris.iter().any(|known| known == uri) || is_loopback_callback(uri)
    }
}

/// Returns whether a URI is `http://127.0.0.1:<port>/callback`, or the same with `[::1]` or `localhost`.
fn is_loopback_callback(uri: &str) -> bool {
    loopback_parts(uri).is_some_and(|(_, path)| path == "/callback")
}

/// Returns the host and the path of a loopback address, without its port; `None` for other URIs.
fn loopback_parts(uri: &str) -> Option<(&'static str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = ["127.0.0.1", "[::1]", "localhost"].into_iter().find(|host| match authority.strip_prefix(host) {
        Some("") => true,
        Some(port) => port.strip_prefix(':').is_some_and(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }),
        None => false,
    })?;
    is_visible(path).then_some((host, path))
}

/// Returns whether a URI is an https address with a host, and without a user or a fragment.
fn is_https(uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    !host.is_empty() && !host.contains(['@', '\\']) && is_visible(rest)
}

/// Returns whether a part of a URI has only visible ASCII characters and no fragment.
fn is_visible(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_graphic()) && !part.contains('#')
}

/// Client of a login: one of the operator's names, or one that registered itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginClient {
    /// Name in records and audit entries.
    pub id: String,
    /// Registration of the client, if it has one.
    pub registration: Option<ClientTicket>,
}

impl LoginClient {
    /// Returns whether browsers may be sent to a URI.
    pub fn may_redirect(&self, rules: &LoginRules, uri: &str) -> bool {
        match &self.registration {
            Some(registration) => registration.allows(uri),
            None => rules.may_redirect(uri),
        }
    }
}

/// Registration of a client, encoded in its client id. The node stores nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTicket {
    /// Name that the client chose. It proves nothing.
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// Time of the registration in seconds since the epoch.
    pub issued: i64,
}

impl ClientTicket {
    /// Returns whether a redirect URI is registered. The port of a loopback address may differ (RFC 8252, 7.3).
    pub fn allows(&self, uri: &str) -> bool {
        let is_same = |known: &String| {
            known == uri || loopback_parts(known).is_some_and(|parts| Some(parts) == loopback_parts(uri))
        };
        self.redirect_uris.iter().any(is_same)
    }
}

impl Ticket for ClientTicket {
    const USE: u8 = 6;

    fn until(&self) -> Option<i64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const ORIGIN: &str = "https://assay.example";

    #[test]
    fn browsers_are_sent_to_their_own_machine_or_where_the_operator_says() {
        let mut rules = LoginRules {
            provider: "login.example".into(),
            origin: ORIGIN.into(),
            clients: Vec::new(),
            redirect_uris: vec!["https://app.example/oauth/back".into()],
            is_registration_open: true,
            access_seconds: 600,
            login_seconds: 3600,
        };
        for fine in [
            "http://127.0.0.1:49152/callback",
            "http://127.0.0.1/callback",
            "http://[::1]:1/callback",
            "http://localhost:65535/callback",
            "https://app.example/oauth/back",
        ] {
            assert!(rules.may_redirect(fine), "{fine}");
        }
        for foreign in [
            "",
            "https://127.0.0.1:1/callback",
            "http://127.0.0.1:1/callback?x=y",
            "http://127.0.0.1:1/callback#x",
            "http://127.0.0.1:1/other",
            "http://127.0.0.1:1/other/callback",
            "http://127.0.0.1:0/callback",
            "http://127.0.0.1:+1/callback",
            "http://127.0.0.1:65536/callback",
            "http://127.0.0.1:/callback",
            "http://127.0.0.1.evil.example/callback",
            "http://127.0.0.1:1@evil.example/callback",
            "http://user@127.0.0.1:1/callback",
            "http://127.0.0.2:1/callback",
            "http://evil.example/callback",
            "https://app.example/oauth/back/more",
            "https://app.example/oauth/back?x",
        ] {
            assert!(!rules.may_redirect(foreign), "{foreign}");
        }
        assert!(rules.knows_client("anything"));
        rules.clients = vec!["cli".into()];
        assert!(rules.knows_client("cli") && !rules.knows_client("other"));
    }

    #[test]
    fn a_client_registers_addresses_of_its_own() {
        let mut rules = LoginRules {
            provider: "login.example".into(),
            origin: ORIGIN.into(),
            clients: Vec::new(),
            redirect_uris: vec!["editor://mcp/callback".into()],
            is_registration_open: true,
            access_seconds: 600,
            login_seconds: 3600,
        };
        for fine in [
            "http://127.0.0.1:33418",
            "http://localhost:1/any/path?x=y",
            "http://[::1]/",
            "https://app.example/back?x=y",
            "editor://mcp/callback",
        ] {
            assert!(rules.may_register(fine), "{fine}");
        }
        for foreign in [
            "",
            "http://app.example/back",
            "https://",
            "https://user@app.example/",
            "https://app.example/#x",
            "https://app.example/a b",
            "http://127.0.0.1:1/#x",
            "http://127.0.0.1:0/x",
            "http://127.0.0.1.evil.example/",
            "editor://mcp/other",
            "javascript:alert(1)",
        ] {
            assert!(!rules.may_register(foreign), "{foreign}");
        }
        assert!(rules.registers_clients());
        rules.clients = vec!["cli".into()];
        assert!(!rules.registers_clients(), "a list of clients is complete");
        let redirect_uris = vec!["http://127.0.0.1:1/x".into(), "https://app.example/back".into()];
        let registration = ClientTicket { name: "x".into(), redirect_uris, issued: NOW };
        let client = LoginClient { id: "registered-1".into(), registration: Some(registration) };
        for (uri, is_allowed) in [
            ("http://127.0.0.1:1/x", true),
            ("http://127.0.0.1:49152/x", true),
            ("http://localhost:1/x", false),
            ("http://127.0.0.1:1/y", false),
            ("http://127.0.0.1:1/callback", false),
            ("https://app.example/back", true),
            ("https://app.example/back?x", false),
            ("https://app.example:443/back", false),
        ] {
            assert_eq!(client.may_redirect(&rules, uri), is_allowed, "{uri}");
        }
        let plain = LoginClient { id: "cli".into(), registration: None };
        assert!(plain.may_redirect(&rules, "http://127.0.0.1:1/callback"));
        assert!(!plain.may_redirect(&rules, "http://127.0.0.1:1/x"));
    }
}
