//! The cluster's own certificate authority, kept by nodes that may admit others.
//!
//! A node creates its key pair itself and sends only the public key. The authority decides on the names in the
//! certificate, so a request has no other content.
//!
//! A node's certificate expires, and a holder of the authority issues the next one before that. The authority's own
//! certificate does not expire. A node switches certificates with `set_identity`.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_storage_model::{ClusterId, NodeId};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::server::ParsedCertificate;

use crate::certificate_names::{any_name, node_name};
use crate::error::TransportError;

/// Prefix of every encoded Ed25519 key, followed by its 32 bytes (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PUBLIC_KEY_BYTES: usize = 32;
/// Upper bound of a request.
const REQUEST_BYTES_MAX: usize = 4 << 10;
/// Start of the validity, long before the first cluster, so that a certificate is valid even if a clock is behind.
const VALID_FROM_YEAR: i32 = 2020;
/// End of the authority's validity, long after the last cluster.
const VALID_TO_YEAR: i32 = 2120;
/// Longest validity of a node's certificate, whatever is requested.
const VALID_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub struct Authority {
    cluster: ClusterId,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// Public key on its way to the authority.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    pem: String,
    public: [u8; PUBLIC_KEY_BYTES],
}

/// Creates a key pair: the private key as PEM, which stays on its node, and the request that is sent.
pub fn new_request() -> Result<(String, CertificateRequest), TransportError> {
    let pair = KeyPair::generate_for(&PKCS_ED25519).map_err(|why| wrong("a key pair", why))?;
    Ok((pair.serialize_pem(), CertificateRequest::from_pem(&pair.public_key_pem())?))
}

impl CertificateRequest {
    /// Parses a `PUBLIC KEY` in PEM. Refuses keys other than Ed25519.
    pub fn from_pem(text: &str) -> Result<CertificateRequest, TransportError> {
        const WHAT: &str = "the request for a certificate";
        if text.len() > REQUEST_BYTES_MAX {
            return Err(wrong(WHAT, format!("it has {} bytes, the limit is {REQUEST_BYTES_MAX}", text.len())));
        }
        let key = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()).map_err(|why| wrong(WHAT, why))?;
        let public = key.strip_prefix(&PUBLIC_KEY_PREFIX).and_then(|public| public.try_into().ok());
        let public = public.ok_or_else(|| wrong(WHAT, "no Ed25519 key"))?;
        Ok(CertificateRequest { pem: text.to_owned(), public })
    }

    /// Creates a request for the next certificate of an existing key pair, as PEM.
    pub fn of_key(key_pem: &str) -> Result<CertificateRequest, TransportError> {
        let pair = KeyPair::from_pem_and_sign_algo(key_pem, &PKCS_ED25519).map_err(|why| wrong("a key pair", why))?;
        CertificateRequest::from_pem(&pair.public_key_pem())
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }
}

impl PublicKeyData for CertificateRequest {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl fmt::Debug for CertificateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateRequest")
    }
}

impl Authority {
    pub fn new(cluster: ClusterId) -> Result<Authority, TransportError> {
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|why| wrong("a new authority", why))?;
        let certificate = own_params(cluster).self_signed(&key).map_err(|why| wrong("a new authority", why))?;
        let issuer = Issuer::new(own_params(cluster), key);
        Ok(Authority { cluster, certificate_pem: certificate.pem(), issuer })
    }

    /// Loads a kept authority. The key must match the certificate, and the certificate must belong to this cluster.
    pub fn from_pem(cluster: ClusterId, certificate_pem: &str, key_pem: &str) -> Result<Authority, TransportError> {
        const WHAT: &str = "the cluster's authority";
        let kept = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|why| wrong(WHAT, why))?;
        let key = KeyPair::from_pem_and_sign_algo(key_pem, &PKCS_ED25519).map_err(|why| wrong(WHAT, why))?;
        let parsed = ParsedCertificate::try_from(&kept).map_err(|why| wrong(WHAT, why))?;
        if parsed.subject_public_key_info().as_ref() != key.subject_public_key_info() {
            return Err(wrong(WHAT, "the key does not belong to the certificate"));
        }
        // Certificates contain the name of their issuer, so under another name no peer would trust them.
        let made = own_params(cluster).self_signed(&key).map_err(|why| wrong(WHAT, why))?;
        if subject(&kept)? != subject(made.der())? {
            return Err(wrong(WHAT, format!("it is not of cluster {cluster}")));
        }
        let issuer = Issuer::new(own_params(cluster), key);
        Ok(Authority { cluster, certificate_pem: certificate_pem.to_owned(), issuer })
    }

    /// Returns the public certificate that every node trusts.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the private key. Its holder can admit nodes.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for a node, as PEM, with the given validity.
    pub fn issue(&self, node: NodeId, request: &CertificateRequest, valid: Duration) -> Result<String, TransportError> {
        const WHAT: &str = "a certificate";
        let names = [node_name(self.cluster, node), any_name(self.cluster)];
        let mut params = CertificateParams::new(names).map_err(|why| wrong(WHAT, why))?;
        set_name_and_time(&mut params, format!("Assay node {node}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        params.not_after = date_time_ymd(1970, 1, 1) + (now + valid.min(VALID_MAX));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(request, &self.issuer).map_err(|why| wrong(WHAT, why))?.pem())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

fn own_params(cluster: ClusterId) -> CertificateParams {
    let mut params = CertificateParams::default();
    set_name_and_time(&mut params, format!("Assay cluster {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn set_name_and_time(params: &mut CertificateParams, name: String) {
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(VALID_FROM_YEAR, 1, 1);
    params.not_after = date_time_ymd(VALID_TO_YEAR, 1, 1);
}

fn subject(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, TransportError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).map_err(|why| wrong("the cluster's authority", why))?;
    Ok(roots.roots[0].subject.to_vec())
}

fn wrong(what: &'static str, why: impl fmt::Display) -> TransportError {
    TransportError::Certificate { what, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate_names::bears;

    fn id(number: u8) -> ClusterId {
        format!("00000000-0000-0000-0000-0000000000{number:02}").parse().expect("an id")
    }

    fn issued(authority: &Authority, node: u64) -> CertificateDer<'static> {
        let (_, request) = new_request().expect("a request");
        let pem = authority.issue(NodeId(node), &request, VALID_MAX).expect("a certificate");
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")
    }

    #[test]
    fn a_certificate_bears_its_node_and_any_and_no_other_name() {
        let certificate = issued(&Authority::new(id(1)).expect("an authority"), 7);
        assert!(bears(&certificate, &node_name(id(1), NodeId(7))));
        assert!(bears(&certificate, &any_name(id(1))));
        for other in [node_name(id(1), NodeId(8)), node_name(id(2), NodeId(7)), any_name(id(2))] {
            assert!(!bears(&certificate, &other), "{other}");
        }
    }

    #[test]
    fn a_request_travels_as_text_and_another_kind_of_key_is_refused() {
        let (key_pem, request) = new_request().expect("a request");
        assert!(CertificateRequest::from_pem(request.pem()).is_ok_and(|read| read == request));
        assert!(!request.pem().contains("PRIVATE") && key_pem.contains("PRIVATE"));
        assert!(!format!("{request:?}").contains(&request.pem()[40..60]));
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key pair");
        for text in [other.public_key_pem(), key_pem, String::new(), "x".repeat(1 << 20)] {
            assert!(CertificateRequest::from_pem(&text).is_err());
        }
    }

    #[test]
    fn a_key_pair_asks_again_as_it_asked_first() {
        let (key_pem, request) = new_request().expect("a request");
        assert!(CertificateRequest::of_key(&key_pem).is_ok_and(|again| again == request));
        assert!(CertificateRequest::of_key(request.pem()).is_err(), "the public half is no key pair");
    }

    #[test]
    fn a_kept_authority_goes_on_issuing_and_a_wrong_half_is_seen() {
        let first = Authority::new(id(1)).expect("an authority");
        let kept = Authority::from_pem(id(1), first.certificate_pem(), &first.key_pem()).expect("the same");
        assert_eq!(kept.certificate_pem(), first.certificate_pem());
        assert!(bears(&issued(&kept, 3), &node_name(id(1), NodeId(3))));
        let second = Authority::new(id(1)).expect("an authority");
        let why = |cluster, certificate: &Authority, key: &Authority| {
            let found = Authority::from_pem(cluster, certificate.certificate_pem(), &key.key_pem());
            found.expect_err("it does not fit").to_string()
        };
        assert!(why(id(1), &first, &second).contains("the key does not belong to the certificate"));
        assert!(why(id(2), &first, &first).contains("it is not of cluster"));
        assert!(!format!("{first:?}").contains(&first.key_pem()[40..60]));
    }
}
