//! Sources of the keys of a JWT issuer: a file, or the server of the issuer. Control over these keys is control over
//! all users.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::{JWKS_BYTES_MAX, JwtKeys};

use crate::outward::{OutwardClient, OutwardServer};

/// Time limit for one fetch, because name resolution has no limit of its own.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(20);

/// Source of keys.
#[derive(Clone, Debug)]
pub enum KeySource {
    File(PathBuf),
    Server(Arc<dyn OutwardServer>),
}

impl KeySource {
    /// Creates a source from a URL or a path. `ca` is a file with the authorities to trust instead of the system ones.
    pub fn of(text: &str, ca: Option<&Path>, client: &dyn OutwardClient) -> anyhow::Result<KeySource> {
        if !is_url(text) {
            return Ok(KeySource::File(text.into()));
        }
        Ok(KeySource::Server(client.server(text, ca)?))
    }

    /// Fetches the current keys.
    pub async fn get(&self) -> Result<JwtKeys, String> {
        let source = self.clone();
        let got = tokio::task::spawn_blocking(move || source.bytes());
        let got = tokio::time::timeout(GIVEN_UP_AFTER, got).await;
        let late = |_| format!("there was no response within {} s", GIVEN_UP_AFTER.as_secs());
        let bytes = got.map_err(late)?.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))?;
        JwtKeys::of_jwks(&bytes)
    }

    fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            KeySource::File(file) => {
                let doing = || format!("reading {}", file.display());
                let opened = std::fs::File::open(file).with_context(doing)?;
                let mut bytes = Vec::new();
                // One more byte than allowed, so that a longer file is detected.
                opened.take(JWKS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(doing)?;
                Ok(bytes)
            }
            KeySource::Server(server) => server.get(),
        }
    }
}

/// Returns whether a text is a URL and not a path.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://")
}
