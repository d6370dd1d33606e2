//! TLS certificates of a listener, which are reloaded when their files change.
//!
//! If the new files are unreadable or do not match, the server logs an error and keeps the current pair.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::TlsFiles;

/// Interval at which the files are read again.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Upper bound of a file. A certificate chain has a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Current certificate and key, shared by all handshakes.
#[derive(Debug)]
pub struct Certificates {
    files: TlsFiles,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    /// Hash of the files, which detects a change without keeping the key as text.
    hash: [u8; 32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    Same,
    Changed,
}

impl Certificates {
    pub fn read(files: &TlsFiles) -> io::Result<Arc<Certificates>> {
        let current = read(files)?;
        Ok(Arc::new(Certificates { files: files.clone(), current: RwLock::new(current) }))
    }

    /// Returns a server configuration for TLS 1.2 and later.
    pub fn server_config(self: &Arc<Certificates>) -> io::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(self) as _;
        Ok(builder.with_no_client_auth().with_cert_resolver(resolver))
    }

    /// Reads the files again. An error leaves the current pair in use.
    ///
    /// The call blocks on the disk, so it must not run on a thread that serves requests.
    pub fn look(&self) -> io::Result<Looked> {
        let found = read(&self.files)?;
        if self.current.read().hash == found.hash {
            return Ok(Looked::Same);
        }
        *self.current.write() = found;
        Ok(Looked::Changed)
    }

    /// Reloads the files at regular intervals, forever.
    pub async fn keep_fresh(self: Arc<Certificates>) {
        let mut last_problem = String::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let certificates = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || certificates.look()).await;
            match looked.map_err(io::Error::other).flatten() {
                Ok(Looked::Same) => last_problem.clear(),
                Ok(Looked::Changed) => {
                    last_problem.clear();
                    tracing::info!(file = %self.files.certificates.display(), "a renewed certificate is in use");
                }
                Err(error) => {
                    let problem = error.to_string();
                    if problem != last_problem {
                        tracing::error!(%problem, "the certificate files cannot be used; the current pair stays in \
                                                   use");
                        last_problem = problem;
                    }
                }
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().key))
    }
}

fn read(files: &TlsFiles) -> io::Result<Current> {
    let wrong = |path: &std::path::Path, why: String| io::Error::other(format!("{}: {why}", path.display()));
    let bytes_of = |path: &std::path::Path| {
        let bytes = fs::metadata(path).map_err(|error| wrong(path, error.to_string()))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(wrong(path, format!("{bytes} bytes are too many for a PEM file")));
        }
        fs::read(path).map_err(|error| wrong(path, error.to_string()))
    };
    let (chain_pem, key_pem) = (bytes_of(&files.certificates)?, bytes_of(&files.private_key)?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain_pem).collect();
    let chain = chain.map_err(|error| wrong(&files.certificates, format!("not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificates, "it has no certificate".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(&key_pem);
    let key = key.map_err(|error| wrong(&files.private_key, format!("no private key in PEM: {error}")))?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider());
    let key = key.map_err(|error| wrong(&files.private_key, format!("does not fit the certificate: {error}")))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(chain_pem.len() as u64).to_le_bytes()).update(&chain_pem).update(&key_pem);
    Ok(Current { key: Arc::new(key), hash: *hasher.finalize().as_bytes() })
}
