//! Settings of the trusted issuer of JWTs, and its startup.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::{JwtKeys, JwtRules};
use assay_node_secrets::read_secret_file;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::jwt_keys::{KeySource, is_url};
use crate::jwts::{ASKED_AGAIN_AFTER, Jwts};
use crate::outward::{OutwardClient, parse_url};

/// Accepted refresh intervals. A shorter interval would fetch keys more often than after a failure.
const REFRESH_SECONDS: std::ops::RangeInclusive<u64> = ASKED_AGAIN_AFTER.as_secs()..=86_400;

/// Settings of JWTs. Without `jwks` and `hs256_secret_file`, no JWT is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// Issuer of the JWTs: the exact value of the claim `iss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Audience that the claim `aud` has to contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Public keys of the issuer (RS256, ES256) as a JWK set: a file, or an https address. It is read again after
    /// `jwks_refresh_seconds`, and at once if a token names an unknown key, at most every 30 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// Age at which the key set is read again. A key that the issuer withdraws is accepted until then. From 30 to 86400.
    pub jwks_refresh_seconds: u64,
    /// PEM file with the authorities to trust for https, instead of those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// File with the secret that is shared with the issuer (HS256), readable by its owner alone. It has at least 32
    /// bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hs256_secret_file: Option<PathBuf>,
}

impl Default for JwtConfig {
    fn default() -> JwtConfig {
        JwtConfig {
            issuer: None,
            audience: None,
            jwks: None,
            jwks_refresh_seconds: 300,
            ca: None,
            hs256_secret_file: None,
        }
    }
}

impl JwtConfig {
    /// Refuses contradictory settings, with a message that tells what to change.
    pub fn check(&self) -> Result<(), String> {
        let has_keys = self.jwks.is_some() || self.hs256_secret_file.is_some();
        let named = [("jwt.issuer", &self.issuer), ("jwt.audience", &self.audience)];
        for (name, value) in named {
            match value.as_deref() {
                None if has_keys => {
                    return Err(format!(
                        "{name} is not set: set it too, or tokens that the issuer made for other services would be \
                         accepted"
                    ));
                }
                Some("") => return Err(format!("{name} is empty")),
                Some(_) if !has_keys => {
                    return Err(format!("{name} has no effect without keys; set jwt.jwks or jwt.hs256_secret_file"));
                }
                _ => {}
            }
        }
        let url = self.jwks.as_deref().filter(|jwks| is_url(jwks));
        if let Some(url) = url {
            parse_url(url).map_err(|why| format!("jwt.jwks is {why}"))?;
        }
        if !REFRESH_SECONDS.contains(&self.jwks_refresh_seconds) {
            let (least, most) = (REFRESH_SECONDS.start(), REFRESH_SECONDS.end());
            let seconds = self.jwks_refresh_seconds;
            return Err(format!("jwt.jwks_refresh_seconds is {seconds}; set it to {least} to {most}"));
        }
        if self.ca.is_some() && url.is_none() {
            return Err("jwt.ca has no effect unless jwt.jwks is an https address".into());
        }
        Ok(())
    }
}

/// Trusted issuer, and the task that refreshes its keys.
#[derive(Debug)]
pub struct TrustedIssuer {
    pub jwts: Arc<Jwts>,
    keeping: Option<JoinHandle<()>>,
}

impl Drop for TrustedIssuer {
    fn drop(&mut self) {
        if let Some(keeping) = &self.keeping {
            keeping.abort();
        }
    }
}

/// Opens the issuer of the settings, if there is one. An unreadable file is an error, but a server may become reachable
/// later.
pub async fn open_issuer(config: &JwtConfig, client: &dyn OutwardClient) -> anyhow::Result<Option<TrustedIssuer>> {
    let (Some(issuer), Some(audience)) = (&config.issuer, &config.audience) else { return Ok(None) };
    let rules = JwtRules { issuer: issuer.clone(), audience: audience.clone() };
    let secret = match &config.hs256_secret_file {
        None => JwtKeys::default(),
        Some(file) => {
            let secret = read_secret_file(file, "the shared secret of the issuer of JWTs")?;
            JwtKeys::of_secret(&secret).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?
        }
    };
    let Some(jwks) = &config.jwks else {
        return Ok(Some(TrustedIssuer { jwts: Arc::new(Jwts::with_keys(rules, secret)), keeping: None }));
    };
    let source = KeySource::of(jwks, config.ca.as_deref(), client).context("jwt.jwks")?;
    if let KeySource::File(_) = source {
        source.get().await.map_err(anyhow::Error::msg).context("jwt.jwks")?;
    }
    let jwts = Arc::new(Jwts::waiting(rules, secret.clone()));
    let refresh = Duration::from_secs(config.jwks_refresh_seconds);
    let keeping = tokio::spawn({
        let jwts = Arc::clone(&jwts);
        async move {
            let get = || async { Ok(source.get().await?.and(&secret)) };
            jwts.keep(refresh, get).await;
        }
    });
    Ok(Some(TrustedIssuer { jwts, keeping: Some(keeping) }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::outward::OutwardServer;

    /// Client for tests that only read files.
    #[derive(Debug)]
    struct NoClient;

    impl OutwardClient for NoClient {
        fn server(&self, url: &str, _: Option<&Path>) -> anyhow::Result<Arc<dyn OutwardServer>> {
            anyhow::bail!("{url} is not asked here")
        }
    }

    fn config(change: impl FnOnce(&mut JwtConfig)) -> JwtConfig {
        let mut config = JwtConfig { issuer: Some("i".into()), audience: Some("a".into()), ..JwtConfig::default() };
        change(&mut config);
        config
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        assert_eq!(JwtConfig::default().check(), Ok(()));
        assert_eq!(config(|config| config.jwks = Some("/keys.json".into())).check(), Ok(()));
        let refused = |change: fn(&mut JwtConfig)| config(change).check().unwrap_err();
        assert!(refused(|_| {}).contains("jwt.issuer has no effect without keys"));
        let secret = |config: &mut JwtConfig| config.hs256_secret_file = Some("/secret".into());
        assert_eq!(config(secret).check(), Ok(()));
        let mut without = config(secret);
        without.audience = None;
        assert!(without.check().unwrap_err().contains("jwt.audience is not set"));
        without.audience = Some(String::new());
        assert!(without.check().unwrap_err().contains("jwt.audience is empty"));
        let plain = refused(|config| config.jwks = Some("http://issuer.example/keys".into()));
        assert!(plain.contains("jwt.jwks is `http://issuer.example/keys`") && plain.contains("use https"), "{plain}");
        let ca = refused(|config| (config.jwks, config.ca) = (Some("/keys".into()), Some("/ca.pem".into())));
        assert!(ca.contains("jwt.ca has no effect"), "{ca}");
        for seconds in [0, 29, 86_401] {
            let mut config = JwtConfig { jwks_refresh_seconds: seconds, ..JwtConfig::default() };
            let why = config.check().unwrap_err();
            assert!(why.contains(&format!("jwt.jwks_refresh_seconds is {seconds}; set it to 30 to 86400")), "{why}");
            config.jwks_refresh_seconds = 30;
            assert_eq!(config.check(), Ok(()));
        }
    }

    #[tokio::test]
    async fn a_secret_is_its_owners_alone_and_a_file_of_keys_is_read_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        let with = |change: &dyn Fn(&mut JwtConfig)| config(|config| change(config));
        let secret = with(&|config| config.hs256_secret_file = Some(file.clone()));
        let why = open_issuer(&secret, &NoClient).await.unwrap_err().to_string();
        assert!(why.contains("shared secret of the issuer"), "{why}");
        std::fs::write(&file, "short\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(open_issuer(&secret, &NoClient).await.unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            open_issuer(&secret, &NoClient)
                .await
                .unwrap_err()
                .to_string()
                .contains("at least 32 bytes, but this one has 5")
        );
        std::fs::write(&file, "x".repeat(32)).unwrap();
        assert!(open_issuer(&secret, &NoClient).await.unwrap().is_some());
        let keys = with(&|config| config.jwks = Some("/none/keys.json".into()));
        assert!(
            format!("{:#}", open_issuer(&keys, &NoClient).await.unwrap_err())
                .contains("jwt.jwks: reading /none/keys.json")
        );
        assert!(open_issuer(&JwtConfig::default(), &NoClient).await.unwrap().is_none());
    }
}
