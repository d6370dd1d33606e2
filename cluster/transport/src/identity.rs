//! Certificate and key of a node, and their TLS configuration.
//!
//! Only TLS 1.3 is supported, and both sides present a certificate of the cluster's authority. A caller without one can
//! reach only open calls (`serve_request`).
//!
//! Sessions are never resumed, so each connection is verified with the current certificates.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_storage_model::{ClusterId, NodeId};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

use crate::certificate_names::{bears, node_name};
use crate::error::TransportError;

/// Name of HTTP/2 in the TLS handshake.
const PROTOCOL: &[u8] = b"h2";
/// Maximum number of trusted authorities: the current one and its successor, with a margin.
const CERTIFICATES_MAX: usize = 16;
/// First second of the year 10000, which no certificate can express (RFC 5280, 4.1.2.5).
const AFTER_ALL_TIMES: Duration = Duration::from_secs(253_402_300_800);

/// Certificates of this node, as PEM. During a rotation several authorities are trusted alike.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub authority_pem: String,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("authority_pem", &self.authority_pem)
            .field("certificate_pem", &self.certificate_pem)
            .field("key_pem", &"(kept)")
            .finish()
    }
}

impl Identity {
    /// Returns the expiry of the node's certificate, regardless of its issuer.
    pub fn runs_out(&self) -> Result<SystemTime, TransportError> {
        let chain = certificates(&self.certificate_pem)?;
        let verifier = verifier_of(Arc::new(roots_of(&self.authority_pem)?))?;
        // The verifier of TLS reads the validity, and checks the date before the signature.
        let checked = verifier.verify_client_cert(&chain[0], &chain[1..], UnixTime::since_unix_epoch(AFTER_ALL_TIMES));
        match checked {
            Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                Ok(UNIX_EPOCH + Duration::from_secs(not_after.as_secs()))
            }
            Err(why) => Err(wrong(why)),
            Ok(_) => Err(wrong("its certificate has no expiry")),
        }
    }

    /// Returns whether this authority issued the certificate, even if it has expired.
    pub fn is_by(&self, authority_pem: &str) -> Result<bool, TransportError> {
        let chain = certificates(&self.certificate_pem)?;
        let verifier = verifier_of(Arc::new(roots_of(authority_pem)?))?;
        let end = self.runs_out()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(verifier.verify_client_cert(&chain[0], &chain[1..], UnixTime::since_unix_epoch(end)).is_ok())
    }
}

/// Identity in the form that TLS uses.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) identity: Identity,
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Credentials {
    /// Creates credentials. Refuses at once what no peer would accept: a certificate of another node or authority, or a
    /// key that does not match.
    pub(crate) fn of(identity: &Identity, cluster: ClusterId, node: NodeId) -> Result<Credentials, TransportError> {
        let roots = Arc::new(roots_of(&identity.authority_pem)?);
        let chain = certificates(&identity.certificate_pem)?;
        let verifier = verifier_of(Arc::clone(&roots))?;
        verifier.verify_client_cert(&chain[0], &chain[1..], UnixTime::now()).map_err(wrong)?;
        let name = node_name(cluster, node);
        if !bears(&chain[0], &name) {
            return Err(wrong(format!("it does not have the name {name}")));
        }
        let key = || PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(wrong);
        let client = client_builder()?.with_root_certificates(roots);
        let client = client.with_client_auth_cert(chain.clone(), key()?).map_err(wrong)?;
        let server =
            ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).map_err(wrong)?;
        let server = server.with_client_cert_verifier(Arc::clone(&verifier)).with_single_cert(chain, key()?);
        let mut server = server.map_err(wrong)?;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let (identity, client, server) = (identity.clone(), Arc::new(finished(client)), Arc::new(server));
        Ok(Credentials { identity, client, server, verifier })
    }

    /// Returns whether a new connection with this certificate would be accepted now.
    pub(crate) fn trusts(&self, certificate: &CertificateDer<'_>) -> bool {
        self.verifier.verify_client_cert(certificate, &[], UnixTime::now()).is_ok()
    }
}

/// TLS configuration of a caller that has no certificate yet.
pub(crate) fn client_without_certificate(authority_pem: &str) -> Result<ClientConfig, TransportError> {
    let client = client_builder()?.with_root_certificates(roots_of(authority_pem)?);
    Ok(finished(client.with_no_client_auth()))
}

fn client_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, TransportError> {
    ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).map_err(wrong)
}

fn finished(mut client: ClientConfig) -> ClientConfig {
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.resumption = Resumption::disabled();
    client
}

fn roots_of(authority_pem: &str) -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority_pem)? {
        roots.add(certificate).map_err(wrong)?;
    }
    Ok(roots)
}

fn verifier_of(roots: Arc<RootCertStore>) -> Result<Arc<dyn ClientCertVerifier>, TransportError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
    verifier.allow_unauthenticated().build().map_err(wrong)
}

const PEM_END: &str = "-----END CERTIFICATE-----";

/// Splits a PEM text into its certificates, each as PEM and as DER bytes.
pub fn split_certificates(pem: &str) -> Result<Vec<(String, Vec<u8>)>, TransportError> {
    let mut found = Vec::new();
    for part in pem.split_inclusive(PEM_END).filter(|part| part.contains(PEM_END)) {
        let der = CertificateDer::from_pem_slice(part.as_bytes()).map_err(wrong)?;
        found.push((format!("{}\n", part.trim()), der.to_vec()));
    }
    Ok(found)
}

/// Parses certificates. At least one is required.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).take(CERTIFICATES_MAX + 1).collect();
    let found = found.map_err(wrong)?;
    match found.len() {
        0 => Err(wrong("no certificate in the PEM")),
        1..=CERTIFICATES_MAX => Ok(found),
        _ => Err(wrong(format!("more than {CERTIFICATES_MAX} certificates"))),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn wrong(why: impl fmt::Display) -> TransportError {
    TransportError::Certificate { what: "the node's identity", why: why.to_string() }
}
