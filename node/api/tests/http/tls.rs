//! TLS for clients, and a certificate that is renewed while the server runs.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_http::TlsFiles;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{ClientResponse, connect, exchange, request};
use crate::fixture::{Fixture, KEY};

/// Two self-signed pairs for `localhost`, of no use anywhere else.
pub const FIRST: (&str, &str) =
    (include_str!("../../../http/tests/data/first.crt"), include_str!("../../../http/tests/data/first.key"));
const SECOND: (&str, &str) =
    (include_str!("../../../http/tests/data/second.crt"), include_str!("../../../http/tests/data/second.key"));

pub fn place(files: &TlsFiles, pair: (&str, &str)) {
    fs::write(&files.private_key, pair.1).expect("written");
    fs::write(&files.certificates, pair.0).expect("written");
}

pub fn files_in(dir: &Path) -> TlsFiles {
    TlsFiles { certificates: dir.join("a.crt"), private_key: dir.join("a.key") }
}

/// A caller that trusts this certificate and no other.
pub fn stream(address: SocketAddr, certificate: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    StreamOwned::new(connection, connect(address))
}

fn login(fixture: &Fixture, certificate: &str) -> ClientResponse {
    let bearer = format!("Bearer {KEY}");
    let bytes = request("POST", "/api/apikey/login", &[("Authorization", &bearer)], b"");
    exchange(&mut stream(fixture.address, certificate), &bytes)
}

/// Whether a handshake with trust in this certificate alone succeeds.
fn is_shown(fixture: &Fixture, certificate: &str) -> bool {
    let mut stream = stream(fixture.address, certificate);
    while stream.conn.is_handshaking() {
        if stream.conn.complete_io(&mut stream.sock).is_err() {
            return false;
        }
    }
    true
}

#[test]
fn clients_speak_tls_and_a_renewed_certificate_needs_no_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = files_in(dir.path());
    place(&files, FIRST);
    let fixture = Fixture::with(|config| config.tls = Some(files.clone()));
    assert_eq!(login(&fixture, FIRST.0).ok()["org_info"][0]["api_url"], "https://assay-test:8000");
    assert!(!is_shown(&fixture, SECOND.0));

    // Half of a pair is no pair: what is in use stays.
    fs::write(&files.certificates, SECOND.0).expect("written");
    std::thread::sleep(Duration::from_secs(11));
    assert!(is_shown(&fixture, FIRST.0));
    place(&files, SECOND);
    let began = Instant::now();
    while !is_shown(&fixture, SECOND.0) {
        assert!(began.elapsed() < Duration::from_secs(15));
        std::thread::sleep(Duration::from_millis(200));
    }
    login(&fixture, SECOND.0).ok();
}
