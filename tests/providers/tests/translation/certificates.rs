//! Certificates of provider secrets: authorities to trust, and a client certificate whose key is in the secret.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use assay_node_dialects::Dialect;
use assay_node_models::provider::ProviderType;
use assay_test_providers::ProviderServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

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

/// Serves one answer over TLS, with the first pair, to callers that have the second pair.
struct TlsServer {
    base: String,
    /// Heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl TlsServer {
    fn start() -> TlsServer {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate("second.crt")).expect("a root");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_client_cert_verifier(verifier.expect("a verifier"));
        let key = PrivateKeyDer::from_pem_slice(pem("first.key").as_bytes()).expect("a key");
        let config = Arc::new(builder.with_single_cert(vec![certificate("first.crt")], key).expect("a pair"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&heads);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a good configuration");
                let mut stream = StreamOwned::new(connection, socket.expect("a connection"));
                // who has no certificate, or does not trust this, goes away
                if let Ok(head) = answer(&mut stream) {
                    asked.lock().expect("no panic").push(head);
                }
            }
        });
        TlsServer { base, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

/// Answers a request, and returns its head.
fn answer(stream: &mut (impl Read + Write)) -> std::io::Result<String> {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    let head = loop {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&bytes[..length]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.ends_with('}')
        {
            break head.to_owned();
        }
    };
    let message = json!({"role": "assistant", "content": "sealed"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let body = json!({"id": "c", "object": "chat.completion", "model": MODEL, "choices": [choice]}).to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.flush()?;
    Ok(head)
}

fn call(caller: &GatewayCaller, base: &str, key: &str, tls: Value) -> GatewayAnswer {
    let secret = TestSecret::at(base, ProviderType::OpenAi, key, json!({"tls": tls, "customModels": {MODEL: {}}}));
    caller.call(&secret, (Dialect::Chat, MODEL, false), body(Dialect::Chat, Scenario::Plain, MODEL, false))
}

#[test]
fn a_server_that_wants_a_certificate_gets_it() {
    let (server, caller) = (TlsServer::start(), GatewayCaller::new());
    let key = json!({"api_key": "sk-1", "tls_key": pem("second.key")}).to_string();
    let both = json!({"ca": pem("first.crt"), "cert": pem("second.crt")});
    let answer = call(&caller, &server.base, &key, both);
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "sealed");
    assert!(server.heads()[0].contains("\r\nauthorization: Bearer sk-1"), "{:?}", server.heads());
    let none = json!({"ca": pem("first.crt")});
    assert_ne!(call(&caller, &server.base, "sk-1", none).status, 200, "it has no certificate");
    let untrusted = json!({"cert": pem("second.crt")});
    assert_ne!(call(&caller, &server.base, &key, untrusted).status, 200, "nobody trusts the server");
    assert_eq!(server.heads().len(), 1);
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
