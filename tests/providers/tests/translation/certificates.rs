//! Certificates of provider secrets: authorities to trust, and a client certificate whose key is in the secret.

use std::sync::Arc;

use assay_node_dialects::Dialect;
use assay_node_models::provider::ProviderType;
use assay_test_providers::ProviderServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::caller::{GatewayAnswer, GatewayCaller, TestSecret};
use crate::requests::{Scenario, body};

/// Self-signed pairs for `localhost`, of no use anywhere else.
const PAIRS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../node/http/tests/data");
const MODEL: &str = "scripted";

fn pem(name: &str) -> String {
    std::fs::read_to_string(format!("{PAIRS}/{name}")).expect("a file of tests")
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem(name).as_bytes()).expect("a certificate")
}

/// Puts TLS with the first pair before a server, for callers that have the second pair. Returns the origin.
fn behind_tls(server: &ProviderServer) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate("second.crt")).expect("a root");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions").with_client_cert_verifier(verifier.expect("a verifier"));
    let key = PrivateKeyDer::from_pem_slice(pem("first.key").as_bytes()).expect("a key");
    let config = builder.with_single_cert(vec![certificate("first.crt")], key).expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener that does not block");
    let origin = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
    let to = server.origin().trim_start_matches("http://").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(socket).await else { return };
                    let mut server = TcpStream::connect(to).await.expect("the server");
                    drop(tokio::io::copy_bidirectional(&mut stream, &mut server).await);
                });
            }
        });
    });
    origin
}

fn call(caller: &GatewayCaller, base: &str, key: &str, tls: Value) -> GatewayAnswer {
    let secret = TestSecret::at(base, ProviderType::OpenAi, key, json!({"tls": tls, "customModels": {MODEL: {}}}));
    caller.call(&secret, (Dialect::Chat, MODEL, false), body(Dialect::Chat, Scenario::Plain, MODEL, false))
}

#[test]
fn a_server_that_wants_a_certificate_gets_it() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let base = behind_tls(&server);
    let key = json!({"api_key": "sk-1", "tls_key": pem("second.key")}).to_string();
    let both = json!({"ca": pem("first.crt"), "cert": pem("second.crt")});
    let answer = call(&caller, &base, &key, both);
    assert_eq!(answer.status, 200, "{}", answer.json());
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-1"));
    assert_ne!(call(&caller, &base, "sk-1", json!({"ca": pem("first.crt")})).status, 200, "it has no certificate");
    assert_ne!(call(&caller, &base, &key, json!({"cert": pem("second.crt")})).status, 200, "nobody trusts the server");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn certificates_that_cannot_be_used_are_an_error_of_the_provider() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let secret = json!({"api_key": "sk-1", "tls_key": pem("second.key")}).to_string();
    let broken = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    for (key, tls, why) in [
        ("sk-1", json!({"cert": pem("second.crt")}), "private key in `tls_key`"),
        ("sk-1", json!({"ca": broken}), "ca: a certificate is invalid"),
        (secret.as_str(), json!({"cert": pem("first.crt")}), "does not match its key"),
    ] {
        let refused = call(&caller, &server.origin(), key, tls);
        let error = refused.json()["error"].clone();
        assert_eq!((refused.status, &error["code"]), (502, &json!("provider_auth_error")), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(why)), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_key_of_a_certificate_is_never_sent() {
    let (server, caller) = (ProviderServer::start().expect("a provider"), GatewayCaller::new());
    let secret = json!({"api_key": "sk-1", "tls_key": "PEM"}).to_string();
    assert_eq!(call(&caller, &server.origin(), &secret, Value::Null).status, 200);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-1"));
}
