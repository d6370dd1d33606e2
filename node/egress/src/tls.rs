//! TLS of outbound calls: trusted authorities, and certificates of a call.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Files in which systems keep the certificates of trusted authorities.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Upper bound of the certificates in a list of a call's options.
const CERTIFICATES_MAX: usize = 64;
/// Upper bound of a PEM text in a call's options, in bytes.
const PEM_BYTES_MAX: usize = 256 << 10;
/// Upper bound of the cached configurations, which hold sessions that shorten later handshakes.
const CONFIGS_MAX: usize = 256;

/// Error for a missing or invalid TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("this system has no file of trusted authorities")]
    NoSystemFile,
    #[error("{}: {why}", file.display())]
    File { file: PathBuf, why: pem::Error },
    #[error("{}: a certificate is invalid: {why}", file.display())]
    Certificate { file: PathBuf, why: rustls::Error },
    #[error("{} has no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("{field}: {why}")]
    Pem { field: &'static str, why: pem::Error },
    #[error("{field} needs 1 to 64 certificates in PEM within 256 KiB")]
    Certificates { field: &'static str },
    #[error("ca: a certificate is invalid: {0}")]
    Authority(rustls::Error),
    #[error("client certificate: it is invalid or does not match its key: {0}")]
    Identity(rustls::Error),
    #[error("TLS: {0}")]
    Versions(rustls::Error),
}

/// Certificates of one call, as PEM texts.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsOptions {
    /// Authorities that are trusted in addition to those of the system.
    pub ca: Option<String>,
    pub identity: Option<ClientIdentity>,
}

/// Certificate that identifies the caller to a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity {
    /// Certificate, followed by those of intermediate authorities.
    pub chain: String,
    pub key: String,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity(..)")
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ca, identity) = (self.ca.is_some(), self.identity.is_some());
        write!(f, "TlsOptions {{ ca: {ca}, identity: {identity} }}")
    }
}

/// Authorities that all calls trust, with cached configurations.
pub struct TrustedRoots {
    roots: RootCertStore,
    configs: Mutex<HashMap<Option<TlsOptions>, Arc<ClientConfig>>>,
}

impl TrustedRoots {
    /// Reads the authorities of the system, and skips unusable ones because nobody chose them individually.
    ///
    /// This blocks the thread.
    pub fn system() -> Result<TrustedRoots, TlsError> {
        let file = SYSTEM_FILES.iter().map(Path::new).find(|file| file.exists()).ok_or(TlsError::NoSystemFile)?;
        let mut roots = RootCertStore::empty();
        let failed = |why| TlsError::File { file: file.to_owned(), why };
        let certificates = CertificateDer::pem_file_iter(file).map_err(failed)?;
        let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        roots.add_parsable_certificates(certificates);
        if roots.is_empty() {
            return Err(TlsError::NoCertificate(file.to_owned()));
        }
        Ok(TrustedRoots::from_store(roots))
    }

    /// Reads the authorities in a PEM file. This blocks the thread.
    pub fn from_file(file: &Path) -> Result<TrustedRoots, TlsError> {
        TrustedRoots::none().with_file(file)
    }

    /// Adds the authorities in a PEM file. This blocks the thread.
    pub fn with_file(self, file: &Path) -> Result<TrustedRoots, TlsError> {
        let mut roots = self.roots;
        let before = roots.len();
        let failed = |why| TlsError::File { file: file.to_owned(), why };
        for certificate in CertificateDer::pem_file_iter(file).map_err(failed)? {
            let added = roots.add(certificate.map_err(failed)?);
            added.map_err(|why| TlsError::Certificate { file: file.to_owned(), why })?;
        }
        if roots.len() == before {
            return Err(TlsError::NoCertificate(file.to_owned()));
        }
        Ok(TrustedRoots::from_store(roots))
    }

    /// Returns roots without authorities, so that only those of a call are trusted.
    pub fn none() -> TrustedRoots {
        TrustedRoots::from_store(RootCertStore::empty())
    }

    fn from_store(roots: RootCertStore) -> TrustedRoots {
        TrustedRoots { roots, configs: Mutex::default() }
    }

    /// Returns the configuration for a call. It also checks options before they are saved.
    pub fn client_config(&self, options: Option<&TlsOptions>) -> Result<Arc<ClientConfig>, TlsError> {
        let key = options.cloned();
        if let Some(config) = self.configs.lock().get(&key) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.build(options)?);
        let mut configs = self.configs.lock();
        if configs.len() >= CONFIGS_MAX {
            configs.clear();
        }
        configs.insert(key, Arc::clone(&config));
        Ok(config)
    }

    fn build(&self, options: Option<&TlsOptions>) -> Result<ClientConfig, TlsError> {
        let mut roots = self.roots.clone();
        if let Some(ca) = options.and_then(|options| options.ca.as_ref()) {
            for certificate in certificates("ca", ca)? {
                roots.add(certificate).map_err(TlsError::Authority)?;
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Versions)?;
        let builder = builder.with_root_certificates(roots);
        let mut config = match options.and_then(|options| options.identity.as_ref()) {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                const KEY: &str = "client certificate key";
                if identity.key.len() > PEM_BYTES_MAX {
                    return Err(TlsError::Certificates { field: KEY });
                }
                let chain = certificates("client certificate", &identity.chain)?;
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
                let key = key.map_err(|why| TlsError::Pem { field: KEY, why })?;
                builder.with_client_auth_cert(chain, key).map_err(TlsError::Identity)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificates(field: &'static str, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    if text.len() > PEM_BYTES_MAX {
        return Err(TlsError::Certificates { field });
    }
    let found = CertificateDer::pem_slice_iter(text.as_bytes()).take(CERTIFICATES_MAX + 1);
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|why| TlsError::Pem { field, why })?;
    if found.is_empty() || found.len() > CERTIFICATES_MAX {
        return Err(TlsError::Certificates { field });
    }
    Ok(found)
}

impl fmt::Debug for TrustedRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrustedRoots({})", self.roots.len())
    }
}
