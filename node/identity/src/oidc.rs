//! OpenID provider for logins: its metadata, its keys, and the validation of its tokens.
//!
//! The provider is contacted only for logins, so that a node can start without it. Its metadata is cached. If a refresh
//! fails or takes long, the last valid metadata stays in use.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use assay_node_auth::{
    IdTokenClaims, JwtKeys, JwtRefusal, JwtRules, LoginRules, PendingLogin, Secret, basic_credential, form_encoded,
};
use assay_node_secrets::read_secret_file;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::logins::StartedLogin;
use crate::outward::{BadStatus, OutwardClient, parse_url};
use crate::provider::{Provider, ProviderRefusal};
use crate::refreshed::Refreshed;

/// Environment variable that overrides the secret of the file.
pub const CLIENT_SECRET_VARIABLE: &str = "ASSAY_OIDC_CLIENT_SECRET";
/// Path of the metadata below the issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// Time limit for one request, because name resolution has no limit of its own.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(30);
/// Accepted lifetimes of access tokens in seconds. The record is checked at each use, so this matters only for readers
/// of the token alone.
const ACCESS_SECONDS: std::ops::RangeInclusive<u64> = 60..=900;
/// Accepted lifetimes of logins in seconds: an hour to ninety days.
const LOGIN_SECONDS: std::ops::RangeInclusive<u64> = 3600..=90 * 24 * 3600;

/// Settings of logins. Without `issuer` and `client_id`, logins are disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OidcConfig {
    /// OpenID provider: its https address. Its configuration is at `/.well-known/openid-configuration` below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Client id of this server at the provider. Register `<http.public_url>/oauth/callback` there as redirect address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// File with the client secret, readable by its owner alone. Without it this server is a public client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// Scopes to request. They have to include the email address of the person.
    pub scopes: String,
    /// PEM file with the authorities to trust for https, instead of those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Client ids that people may log in through; an empty list means any. Clients have no secrets, so `redirect_uris`
    /// decides where browsers are sent.
    pub clients: Vec<String>,
    /// Addresses that browsers may be sent to, beside `http://127.0.0.1:<port>/callback` (also `[::1]` and
    /// `localhost`).
    pub redirect_uris: Vec<String>,
    /// Whether programs may register themselves, as coding agents do. People then confirm the program at each login. It
    /// has no effect if `clients` lists any.
    pub client_registration: bool,
    /// Lifetime of an access token.
    pub access_seconds: u64,
    /// Lifetime of a login, after which the person has to log in again.
    pub login_seconds: u64,
}

impl Default for OidcConfig {
    fn default() -> Self {
        OidcConfig {
            issuer: None,
            client_id: None,
            client_secret_file: None,
            scopes: "openid email".into(),
            ca: None,
            clients: Vec::new(),
            redirect_uris: Vec::new(),
            client_registration: true,
            access_seconds: 600,
            login_seconds: 30 * 24 * 3600,
        }
    }
}

impl OidcConfig {
    /// Refuses contradictory settings, with a message that tells what to change.
    pub fn check(&self, public_url: Option<&str>) -> Result<(), String> {
        let (issuer, client) = match (&self.issuer, &self.client_id) {
            (Some(issuer), Some(client)) => (issuer, client),
            (Some(_), None) => {
                return Err("oidc.client_id is not set: set the id of this server at the provider".into());
            }
            (None, Some(_)) => return Err("oidc.client_id has no effect without oidc.issuer; set it too".into()),
            (None, None) if *self != OidcConfig::default() => {
                return Err("the settings of `oidc` have no effect without oidc.issuer and oidc.client_id; set them \
                            too"
                .into());
            }
            (None, None) => return Ok(()),
        };
        parse_url(issuer).map_err(|why| format!("oidc.issuer is {why}"))?;
        if issuer.contains('?') {
            return Err(format!("oidc.issuer is `{issuer}`; it must not have a query"));
        }
        if client.is_empty() {
            return Err("oidc.client_id is empty".into());
        }
        if public_url.is_none() {
            let why = "http.public_url is not set: the provider redirects browsers to it, and it must be the same on \
                       every node";
            return Err(why.into());
        }
        let words: Vec<&str> = self.scopes.split_whitespace().collect();
        if !words.contains(&"openid") || !words.contains(&"email") {
            return Err("oidc.scopes must contain `openid` and `email`, because addresses identify users".into());
        }
        for uri in &self.redirect_uris {
            if uri.is_empty() || !uri.bytes().all(|byte| byte.is_ascii_graphic()) || uri.contains('#') {
                return Err(format!(
                    "oidc.redirect_uris has `{uri}`; it must have only visible ASCII characters and no fragment"
                ));
            }
            if uri.starts_with("http://") {
                parse_url(uri).map_err(|why| format!("oidc.redirect_uris has {why}"))?;
            } else if !uri.split_once("://").is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty()) {
                return Err(format!("oidc.redirect_uris has `{uri}`; it should be like https://app.example/callback"));
            }
        }
        for (name, value, range) in [
            ("access_seconds", self.access_seconds, ACCESS_SECONDS),
            ("login_seconds", self.login_seconds, LOGIN_SECONDS),
        ] {
            if !range.contains(&value) {
                let (least, most) = (range.start(), range.end());
                return Err(format!("oidc.{name} is {value}; it should be {least} to {most}"));
            }
        }
        Ok(())
    }
}

/// Returns whether browsers may be redirected to URLs of this scheme.
///
/// Programs register schemes of their own. Schemes that a browser executes are refused.
fn is_scheme(scheme: &str) -> bool {
    let letters = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    letters && !scheme.is_empty() && !["javascript", "data", "file"].contains(&scheme.to_ascii_lowercase().as_str())
}

/// Returns the rules of logins and their provider; `None` if logins are disabled.
///
/// The provider need not be reachable yet. `origin` is the origin of this server, and `secret` is the value of
/// [`CLIENT_SECRET_VARIABLE`].
pub fn open_provider(
    config: &OidcConfig,
    origin: Option<&str>,
    secret: Option<Secret>,
    client: Arc<dyn OutwardClient>,
) -> anyhow::Result<Option<(LoginRules, Arc<OpenId>)>> {
    let (Some(issuer), Some(client_id), Some(origin)) = (&config.issuer, &config.client_id, origin) else {
        return Ok(None);
    };
    let secret = match (secret, &config.client_secret_file) {
        (Some(secret), _) => Some(secret),
        (None, Some(file)) => Some(read_secret_file(file, "the shared secret of the OpenID provider")?),
        (None, None) => None,
    };
    let rules = LoginRules {
        provider: host_of(issuer).to_owned(),
        origin: origin.to_owned(),
        clients: config.clients.clone(),
        redirect_uris: config.redirect_uris.clone(),
        is_registration_open: config.client_registration,
        access_seconds: i64::try_from(config.access_seconds)?,
        login_seconds: i64::try_from(config.login_seconds)?,
    };
    // This detects a missing authority file at startup.
    client.server(issuer, config.ca.as_deref()).context("oidc.issuer")?;
    let asking = ProviderClient {
        rules: JwtRules { issuer: issuer.clone(), audience: client_id.clone() },
        secret,
        scopes: config.scopes.clone(),
        ca: config.ca.clone(),
        callback: format!("{origin}/oauth/callback"),
        client,
    };
    let provider = OpenId { asking: Arc::new(asking), kept: Refreshed::default(), runtime: Handle::current() };
    Ok(Some((rules, Arc::new(provider))))
}

/// Returns the host of a URL, with its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Provider with cached metadata. Clones share the cache.
#[derive(Clone)]
pub struct OpenId {
    asking: Arc<ProviderClient>,
    kept: Refreshed<ProviderMetadata>,
    /// Runtime for blocking requests; the few HTTP workers must not block.
    runtime: Handle,
}

impl fmt::Debug for OpenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenId({})", self.asking.rules.issuer)
    }
}

/// Client of the provider.
struct ProviderClient {
    /// Expected issuer, and the client id of this server as the audience.
    rules: JwtRules,
    secret: Option<Secret>,
    scopes: String,
    ca: Option<PathBuf>,
    callback: String,
    client: Arc<dyn OutwardClient>,
}

/// Metadata of the provider.
#[derive(Debug)]
struct ProviderMetadata {
    authorize: String,
    token: String,
    /// Whether the secret is sent in the form, which some providers require.
    secret_in_form: bool,
    keys: JwtKeys,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: Option<String>,
}

impl ProviderClient {
    fn discover(&self) -> anyhow::Result<ProviderMetadata> {
        let ca = self.ca.as_deref();
        let issuer = self.rules.issuer.trim_end_matches('/');
        let said = self.client.server(&format!("{issuer}{DISCOVERY}"), ca)?.get()?;
        let said: DiscoveryDocument = serde_json::from_slice(&said).context("the configuration of the provider")?;
        anyhow::ensure!(
            said.issuer == self.rules.issuer,
            "the provider names its issuer `{}`, but oidc.issuer is `{}`: they have to match exactly",
            said.issuer,
            self.rules.issuer
        );
        let is_tls = parse_url(issuer).map_err(anyhow::Error::msg)?.is_tls;
        for place in [&said.authorization_endpoint, &said.token_endpoint, &said.jwks_uri] {
            let place = parse_url(place).map_err(anyhow::Error::msg)?;
            anyhow::ensure!(place.is_tls || !is_tls, "the provider uses https, but names an endpoint without https");
        }
        let keys = JwtKeys::of_jwks(&self.client.server(&said.jwks_uri, ca)?.get()?).map_err(anyhow::Error::msg)?;
        // The default method is `client_secret_basic`.
        let ways = said.token_endpoint_auth_methods_supported;
        let takes = |way: &str| ways.as_ref().is_some_and(|ways| ways.iter().any(|known| known == way));
        Ok(ProviderMetadata {
            authorize: said.authorization_endpoint,
            token: said.token_endpoint,
            secret_in_form: takes("client_secret_post") && !takes("client_secret_basic"),
            keys,
        })
    }

    fn authorize(&self, known: &ProviderMetadata, begun: &StartedLogin) -> String {
        let asked = form_encoded(&[
            ("response_type", "code"),
            ("client_id", &self.rules.audience),
            ("redirect_uri", &self.callback),
            ("scope", &self.scopes),
            ("state", &begun.state),
            ("nonce", &begun.nonce),
            ("code_challenge", &begun.challenge),
            ("code_challenge_method", "S256"),
        ]);
        let mark = if known.authorize.contains('?') { '&' } else { '?' };
        format!("{}{mark}{asked}", known.authorize)
    }

    /// Exchanges a code for the ID token of the provider.
    fn exchange(&self, known: &ProviderMetadata, code: &str, verifier: &str) -> anyhow::Result<String> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.callback),
            ("code_verifier", verifier),
            ("client_id", &self.rules.audience),
        ];
        let mut credential = None;
        match &self.secret {
            Some(secret) if known.secret_in_form => form.push(("client_secret", secret.expose())),
            Some(secret) => credential = Some(basic_credential(&self.rules.audience, secret)),
            None => {}
        }
        let form = Secret::new(form_encoded(&form));
        let answer = self.client.server(&known.token, self.ca.as_deref())?.post(form.expose(), credential.as_ref())?;
        let answer: TokenResponse = serde_json::from_slice(&answer).context("the token response of the provider")?;
        answer.id_token.context("the provider's token response has no `id_token`: request the scope `openid`")
    }
}

impl OpenId {
    /// Returns the metadata. An unknown key allows an early refresh, for which the caller waits.
    async fn known(&self, has_new_key: bool) -> Result<Arc<ProviderMetadata>, ProviderRefusal> {
        let fetch = || {
            let (runtime, asking) = (self.runtime.clone(), Arc::clone(&self.asking));
            async move {
                waited(&runtime, move || asking.discover()).await.map_err(|why| {
                    let why = format!("{why:#}");
                    tracing::warn!(
                        why,
                        "the OpenID provider could not be reached; its last configuration stays in use"
                    );
                    why
                })
            }
        };
        self.kept.read(has_new_key, &self.runtime, fetch).await.map_err(ProviderRefusal::Unavailable)
    }

    async fn identified(&self, code: String, pending: PendingLogin) -> Result<IdTokenClaims, ProviderRefusal> {
        let known = self.known(false).await?;
        let (asking, place, nonce) = (Arc::clone(&self.asking), Arc::clone(&known), pending.nonce.clone());
        let exchanged = waited(&self.runtime, move || asking.exchange(&place, &code, &pending.verifier)).await;
        let token = exchanged.map_err(|why| {
            let said = format!("{why:#}");
            let refused = |status: &BadStatus| status.0.starts_with('4');
            match why.downcast_ref::<BadStatus>() {
                Some(status) if refused(status) => ProviderRefusal::Refused(said),
                _ => ProviderRefusal::Unavailable(said),
            }
        })?;
        let verify = |keys: &JwtKeys| keys.identify(&token, &self.asking.rules, &nonce, now());
        let who = match verify(&known.keys) {
            Err(JwtRefusal::UnknownKey) => verify(&self.known(true).await?.keys),
            who => who,
        };
        who.map_err(|why| ProviderRefusal::Refused(format!("the provider's token: {why}")))
    }
}

/// Runs a blocking request on the runtime, with a time limit.
async fn waited<T, F>(runtime: &Handle, ask: F) -> anyhow::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> anyhow::Result<T> + Send + 'static,
{
    let answered = tokio::time::timeout(GIVEN_UP_AFTER, runtime.spawn_blocking(ask)).await;
    answered.with_context(|| format!("there was no response within {} s", GIVEN_UP_AFTER.as_secs()))??
}

impl Provider for OpenId {
    fn authorize(&self, begun: StartedLogin) -> BoxFuture<'static, Result<String, ProviderRefusal>> {
        let provider = self.clone();
        Box::pin(async move { Ok(provider.asking.authorize(&*provider.known(false).await?, &begun)) })
    }

    fn identify(
        &self,
        code: String,
        pending: PendingLogin,
    ) -> BoxFuture<'static, Result<IdTokenClaims, ProviderRefusal>> {
        let provider = self.clone();
        Box::pin(async move { provider.identified(code, pending).await })
    }
}

/// Returns the time in seconds since the epoch.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::outward::OutwardServer;

    fn config(change: impl FnOnce(&mut OidcConfig)) -> Result<(), String> {
        let mut config = OidcConfig {
            issuer: Some("https://issuer.example".into()),
            client_id: Some("assay".into()),
            ..OidcConfig::default()
        };
        change(&mut config);
        config.check(Some("https://assay.example"))
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        assert_eq!(OidcConfig::default().check(None), Ok(()));
        assert_eq!(config(|_| {}), Ok(()));
        let uris = |uris: &[&str]| {
            let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
            config(|config| config.redirect_uris = uris)
        };
        assert_eq!(uris(&["https://app.example/back?x=1", "cursor://login/back", "http://localhost:1/x"]), Ok(()));
        for (wrong, says) in [
            (config(|config| config.issuer = None), "no effect without oidc.issuer"),
            (config(|config| config.client_id = None), "oidc.client_id is not set"),
            (config(|config| config.client_id = Some(String::new())), "oidc.client_id is empty"),
            (config(|config| config.issuer = Some("http://issuer.example".into())), "use https"),
            (config(|config| config.issuer = Some("https://issuer.example/?x".into())), "must not have a query"),
            (config(|config| config.scopes = "openid profile".into()), "`openid` and `email`"),
            (config(|config| config.access_seconds = 901), "oidc.access_seconds is 901; it should be 60 to 900"),
            (config(|config| config.login_seconds = 1), "oidc.login_seconds is 1"),
            (uris(&["http://app.example/back"]), "use https"),
            (uris(&["https://app.example/#x"]), "no fragment"),
            (uris(&["/callback"]), "should be like"),
            (uris(&["javascript://x"]), "should be like"),
            (uris(&[""]), "no fragment"),
        ] {
            assert!(wrong.clone().is_err_and(|why| why.contains(says)), "{says}: {wrong:?}");
        }
        let bare = OidcConfig { clients: vec!["cli".into()], ..OidcConfig::default() };
        assert!(bare.check(None).is_err_and(|why| why.contains("no effect without oidc.issuer")));
        let mut whole = OidcConfig { issuer: Some("https://i.example".into()), ..OidcConfig::default() };
        whole.client_id = Some("assay".into());
        assert!(whole.check(None).is_err_and(|why| why.contains("http.public_url is not set")));
    }

    fn asking(issuer: &str, answer: &str) -> ProviderClient {
        ProviderClient {
            rules: JwtRules { issuer: issuer.into(), audience: "a&b".into() },
            secret: Some(Secret::new("s".into())),
            scopes: "openid email".into(),
            ca: None,
            callback: "https://assay.example/oauth/callback".into(),
            client: Arc::new(Answering(answer.into())),
        }
    }

    #[test]
    fn a_browser_takes_all_that_it_should_to_the_provider() {
        let begun = StartedLogin { state: "1.x".into(), nonce: "n".into(), challenge: "c".into() };
        let known = |authorize: &str| ProviderMetadata {
            authorize: authorize.into(),
            token: String::new(),
            secret_in_form: false,
            keys: JwtKeys::default(),
        };
        let url = asking("https://i.example", "").authorize(&known("https://i.example/a"), &begun);
        assert_eq!(
            url,
            "https://i.example/a?response_type=code&client_id=a%26b&redirect_uri=https%3A%2F%2Fassay.example%2Foauth%2F\
             callback&scope=openid%20email&state=1.x&nonce=n&code_challenge=c&code_challenge_method=S256"
        );
        let url = asking("https://i.example", "").authorize(&known("https://i.example/a?t=1"), &begun);
        assert!(url.starts_with("https://i.example/a?t=1&response_type=code"), "{url}");
    }

    /// Provider with one fixed response.
    #[derive(Debug)]
    struct Answering(String);

    #[derive(Debug)]
    struct AnsweringServer(String);

    impl OutwardClient for Answering {
        fn server(&self, url: &str, _: Option<&Path>) -> anyhow::Result<Arc<dyn OutwardServer>> {
            assert!(url.ends_with("/.well-known/openid-configuration"), "{url}");
            Ok(Arc::new(AnsweringServer(self.0.clone())))
        }
    }

    impl OutwardServer for AnsweringServer {
        fn get(&self) -> anyhow::Result<Vec<u8>> {
            Ok(self.0.clone().into_bytes())
        }

        fn post(&self, _: &str, _: Option<&Secret>) -> anyhow::Result<Vec<u8>> {
            anyhow::bail!("nothing is posted here")
        }
    }

    #[test]
    fn a_provider_that_is_another_or_sends_elsewhere_in_the_open_is_not_taken() {
        let said = |issuer: &str, token: &str| {
            serde_json::json!({"issuer": issuer, "authorization_endpoint": "https://i.example/a",
                "token_endpoint": token, "jwks_uri": "https://i.example/k"})
            .to_string()
        };
        let issuer = "http://127.0.0.1:1";
        let refused = |answer: String| asking(issuer, &answer).discover().map(drop).map_err(|why| format!("{why:#}"));
        for (answer, says) in [
            (said("https://other.example", "https://i.example/t"), "names its issuer `https://other.example`"),
            (said(issuer, "http://i.example/t"), "use https"),
            ("<html>".into(), "the configuration of the provider"),
            (format!("{{\"issuer\": \"{issuer}\"}}"), "authorization_endpoint"),
        ] {
            let refused = refused(answer);
            assert!(refused.as_ref().is_err_and(|why| why.contains(says)), "{says}: {refused:?}");
        }
    }
}
