//! Tests of TLS: trusted authorities, server names, and client certificates.

use std::path::Path;
use std::sync::{Arc, Mutex};

use assay_node_egress::{
    ClientIdentity, EgressClient, EgressConfig, EgressFailure, EgressOptions, EgressProgress, EgressRequest, EgressUrl,
    TlsOptions, TrustedRoots,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{ScriptedResolver, Witness, config, get, ok, options, policy, serve};

/// Self-signed pairs for `localhost`, which are useless anywhere else.
const PAIRS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../http/tests/data");

const SETTINGS: &str = r#"
[[allow]]
cidr = "127.0.0.1"
ports = ["1-65535"]
for = ["models"]
"#;

fn pem(name: &str) -> String {
    std::fs::read_to_string(format!("{PAIRS}/{name}")).expect("a file of tests")
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem(name).as_bytes()).expect("a certificate")
}

struct TlsServer {
    port: u16,
    witness: Arc<Witness>,
    names: Arc<Mutex<Vec<Option<String>>>>,
}

/// Creates a server with the first pair. If it requires a client certificate, it expects the second pair.
async fn server(asks: bool) -> TlsServer {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let builder = if asks {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("second.crt")).expect("a root");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(verifier.expect("a verifier"))
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_slice(pem("first.key").as_bytes()).expect("a key");
    let config = builder.with_single_cert(vec![certificate("first.crt")], key).expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (witness, names) = (Arc::new(Witness::default()), Arc::new(Mutex::new(Vec::new())));
    let (seen, asked) = (Arc::clone(&witness), Arc::clone(&names));
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            // A client that does not trust this certificate closes the connection.
            let Ok(stream) = acceptor.accept(socket).await else { continue };
            asked.lock().expect("no panic").push(stream.get_ref().1.server_name().map(str::to_owned));
            tokio::spawn(serve(stream, Arc::clone(&seen), Arc::new(|_: &str| ok("sealed"))));
        }
    });
    TlsServer { port, witness, names }
}

fn client(roots: TrustedRoots) -> EgressClient {
    let resolver = ScriptedResolver::new(&[("localhost", &[&["127.0.0.1"]]), ("other.example", &[&["127.0.0.1"]])]);
    EgressClient::new(EgressConfig { roots, ..config(&resolver) }, policy(SETTINGS))
}

fn trusting(ca: &str, identity: Option<ClientIdentity>) -> EgressOptions {
    EgressOptions { tls: Some(Arc::new(TlsOptions { ca: Some(pem(ca)), identity })), ..options() }
}

fn url(host: &str, port: u16) -> EgressUrl {
    format!("https://{host}:{port}/").parse().expect("a URL")
}

#[tokio::test]
async fn a_server_is_known_by_the_name_in_the_url_and_a_trusted_certificate() {
    let server = server(false).await;
    let client = client(TrustedRoots::none());
    assert_eq!(get(&client, url("localhost", server.port), &trusting("first.crt", None)).await, "sealed");
    assert_eq!(get(&client, url("localhost", server.port), &trusting("first.crt", None)).await, "sealed");
    assert_eq!(*server.names.lock().expect("no panic"), [Some("localhost".to_owned())], "one connection, by its name");
    for (host, options) in [
        ("localhost", options()),
        ("localhost", trusting("second.crt", None)),
        ("other.example", trusting("first.crt", None)),
        ("127.0.0.1", trusting("first.crt", None)),
    ] {
        let request = EgressRequest::get(url(host, server.port));
        let error = client.send(&request, &options).await.expect_err("not trusted");
        let known = (error.failure(), error.progress());
        assert_eq!(known, (EgressFailure::NotReached, EgressProgress::NothingSent), "{host}");
        assert!(error.operator_reason().contains("certificate"), "{}", error.operator_reason());
    }
    assert_eq!(server.witness.requests().len(), 2);
}

#[tokio::test]
async fn authorities_come_from_a_file() {
    let server = server(false).await;
    let roots = TrustedRoots::from_file(Path::new(&format!("{PAIRS}/first.crt"))).expect("a root");
    assert_eq!(get(&client(roots), url("localhost", server.port), &options()).await, "sealed");
    let key = TrustedRoots::from_file(Path::new(&format!("{PAIRS}/first.key"))).expect_err("no certificate");
    assert!(key.to_string().contains("has no certificate"), "{key}");
    let none = TrustedRoots::from_file(Path::new(&format!("{PAIRS}/none.crt"))).expect_err("no file");
    assert!(none.to_string().contains("none.crt"), "{none}");
}

#[tokio::test]
async fn a_caller_shows_its_certificate_where_the_server_asks() {
    let server = server(true).await;
    let identity = |chain: &str, key: &str| Some(ClientIdentity { chain: pem(chain), key: pem(key) });
    let client = client(TrustedRoots::none());
    let known = trusting("first.crt", identity("second.crt", "second.key"));
    assert!(!format!("{known:?}").contains("BEGIN"), "{known:?}");
    assert_eq!(get(&client, url("localhost", server.port), &known).await, "sealed");
    for options in [trusting("first.crt", None), trusting("first.crt", identity("first.crt", "first.key"))] {
        let request = EgressRequest::get(url("localhost", server.port));
        client.send(&request, &options).await.expect_err("not known to the server");
    }
    assert_eq!(server.witness.requests().len(), 1);
}

#[test]
fn mistaken_certificates_are_named() {
    let roots = TrustedRoots::none();
    let identity = |chain: String, key: String| TlsOptions { ca: None, identity: Some(ClientIdentity { chain, key }) };
    for (options, says) in [
        (TlsOptions { ca: Some(String::new()), identity: None }, "ca needs 1 to 64 certificates"),
        (TlsOptions { ca: Some(pem("first.key")), identity: None }, "ca needs 1 to 64 certificates"),
        (TlsOptions { ca: Some(pem("first.crt").repeat(65)), identity: None }, "ca needs 1 to 64 certificates"),
        (identity(pem("first.crt"), pem("second.key")), "does not match its key"),
        (identity(pem("first.crt"), String::new()), "client certificate key"),
        (identity(pem("first.crt"), "x".repeat(300_000)), "client certificate key needs"),
    ] {
        let why = roots.client_config(Some(&options)).expect_err(says).to_string();
        assert!(why.contains(says), "{why}");
    }
}
