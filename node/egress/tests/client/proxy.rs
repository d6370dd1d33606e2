//! Tests of the outbound proxy: it receives only checked addresses of public targets.

use std::sync::{Arc, Mutex};

use assay_node_egress::{
    EgressClient, EgressConfig, EgressFailure, EgressProgress, EgressRequest, EgressUrl, OutboundProxy,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{ScriptedResolver, ScriptedServer, config, get, ok, options, policy};

/// Settings that list a public name for plain http, and one on loopback.
const SETTINGS: &str = r#"
public = true
[[allow]]
host = "public.example"
ports = [80]
for = ["models"]
[[allow]]
host = "private.example"
ports = ["1-65535"]
for = ["models"]
"#;

/// Proxy whose tunnels all lead to one port on loopback, with the received heads.
async fn proxy(to: u16, says: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && socket.read_buf(&mut head).await.expect("bytes") > 0 {}
            seen.lock().expect("no panic").push(String::from_utf8(head).expect("a text"));
            socket.write_all(says.as_bytes()).await.expect("written");
            if says.contains(" 200 ") {
                let mut target = TcpStream::connect(("127.0.0.1", to)).await.expect("the target");
                tokio::spawn(async move { drop(copy_bidirectional(&mut socket, &mut target).await) });
            }
        }
    });
    (port, heads)
}

fn client(port: u16) -> EgressClient {
    let resolver = ScriptedResolver::new(&[
        ("public.example", &[&["93.184.216.34"]]),
        ("private.example", &[&["127.0.0.1"]]),
        ("rebind.example", &[&["10.0.0.1"]]),
        ("proxy.example", &[&["127.0.0.1"]]),
    ]);
    let proxy = OutboundProxy::new(&format!("http://proxy.example:{port}"), Some("Basic c2VjcmV0"));
    let proxy = proxy.expect("a proxy");
    assert!(!format!("{proxy:?}").contains("c2VjcmV0"));
    EgressClient::new(EgressConfig { proxy: Some(proxy), ..config(&resolver) }, policy(SETTINGS))
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_checked_address_of_a_public_target() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let (port, heads) = proxy(server.port, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n").await;
    let client = client(port);
    for _ in 0..2 {
        let url: EgressUrl = "http://public.example/v1".parse().expect("a URL");
        assert_eq!(get(&client, url, &options()).await, "body");
    }
    let head =
        "CONNECT 93.184.216.34:80 HTTP/1.1\r\nHost: 93.184.216.34:80\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n";
    assert_eq!(*heads.lock().expect("no panic"), [head], "one tunnel for both");
    let requests = server.witness.requests();
    assert!(requests[0].contains("host: public.example\r\n") && !requests[0].contains("c2VjcmV0"), "{requests:?}");
    assert_eq!(get(&client, server.url("private.example", "/"), &options()).await, "body");
    let refused = EgressRequest::get("https://rebind.example/".parse().expect("a URL"));
    let error = client.send(&refused, &options()).await.expect_err("refused");
    assert_eq!(error.failure(), EgressFailure::Refused);
    assert_eq!(heads.lock().expect("no panic").len(), 1, "neither a private nor a refused target");
}

#[tokio::test]
async fn a_proxy_that_refuses_or_talks_too_much_is_no_way() {
    for says in [
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake",
        "SSH-2.0\r\n\r\n",
        "",
    ] {
        let server = ScriptedServer::new(|_| ok("body")).await;
        let (port, _heads) = proxy(server.port, says).await;
        let request = EgressRequest::get("http://public.example/".parse().expect("a URL"));
        let error = client(port).send(&request, &options()).await.expect_err("no tunnel");
        let known = (error.failure(), error.progress());
        assert_eq!(known, (EgressFailure::NotReached, EgressProgress::NothingSent), "{says}");
        assert!(!error.operator_reason().contains("c2VjcmV0"), "{}", error.operator_reason());
        assert!(server.witness.requests().is_empty());
    }
}

#[test]
fn a_proxy_is_an_http_url_without_a_path() {
    for url in ["https://p:1", "http://p/x", "http://u:p@p:1", "p:3128", "socks5://p"] {
        assert!(OutboundProxy::new(url, None).is_err(), "{url}");
    }
    assert!(OutboundProxy::new("http://p:1", Some("Basic a\r\nX: y")).is_err());
    assert!(OutboundProxy::new("http://[::1]:3128", None).is_ok());
}
