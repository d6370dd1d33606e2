//! Tests that refused targets receive no connection, and look like missing ones.

use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_node_egress::{
    EgressClient, EgressFailure, EgressOptions, EgressProgress, EgressRequest, EgressTimes, EgressUrl, UNREACHABLE,
};
use tokio::net::TcpListener;

use crate::support::{
    Behind, LISTED, ScriptedResolver, ScriptedServer, client, config, get, ok, options, policy, reply,
};

/// Names and addresses that try to trick the policy. `PORT` is a listener on loopback.
const TRICKS: &[(&str, &[&str])] = &[
    ("http://127.0.0.1:PORT/", &[]),
    ("https://127.0.0.1:PORT/", &[]),
    ("https://127.1:PORT/", &[]),
    ("https://0x7f.1:PORT/", &[]),
    ("https://0177.0.0.1:PORT/", &[]),
    ("https://2130706433:PORT/", &[]),
    ("https://[::ffff:127.0.0.1]:PORT/", &[]),
    ("https://[64:ff9b::127.0.0.1]:PORT/", &[]),
    ("https://0.0.0.0:PORT/", &[]),
    ("https://[::]:PORT/", &[]),
    ("https://trick.example:PORT/", &["127.0.0.1"]),
    ("http://trick.example:PORT/", &["127.0.0.1"]),
    ("https://TRICK.example.:PORT/", &["127.0.0.1"]),
    ("https://trick.example:PORT/", &["127.1.2.3"]),
    ("https://trick.example:PORT/", &["0.0.0.0"]),
    ("https://trick.example:PORT/", &["::ffff:127.0.0.1"]),
    ("https://trick.example:PORT/", &["93.184.216.34", "127.0.0.1"]),
    ("https://trick.example:PORT/", &["127.0.0.1", "93.184.216.34"]),
    ("https://trick.example:PORT/", &["::"]),
    ("https://trick.example:PORT/", &[]),
];

#[tokio::test]
async fn a_refused_target_sees_no_connection() {
    let server = ScriptedServer::at("0.0.0.0", |_| ok("secret")).await;
    for (url, addresses) in TRICKS {
        let resolver = ScriptedResolver::new(&[("trick.example", &[addresses])]);
        let client = EgressClient::new(config(&resolver), policy("public = true"));
        let url: EgressUrl = url.replace("PORT", &server.port.to_string()).parse().expect(url);
        let error = client.send(&EgressRequest::get(url.clone()), &options()).await.expect_err("refused");
        assert_eq!(error.to_string(), UNREACHABLE, "{url:?}");
        assert_eq!(
            (error.failure(), error.progress()),
            (EgressFailure::Refused, EgressProgress::NothingSent),
            "{url:?}"
        );
        assert_eq!(client.counts().origins, 0, "nothing is left of a refused call");
    }
    assert_eq!(server.witness.connections(), 0);
}

#[tokio::test]
async fn a_refused_target_and_a_closed_port_have_one_text() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let silent = ScriptedServer::new(|_| reply("", Behind::Close)).await;
    let client = client();
    let hasty = EgressTimes { connect: Duration::from_millis(300), ..options().times };
    let hasty = EgressOptions { times: hasty, ..options() };
    let mut texts = Vec::new();
    for url in [
        format!("http://up.example:{port}/"),
        format!("http://other.example.:{port}/"),
        format!("http://10.0.0.1:{port}/"),
        format!("http://unknown.example:{port}/"),
        format!("http://up.example:{}/", silent.port),
        format!("https://up.example:{}/", silent.port),
    ] {
        let request = EgressRequest::get(url.parse().expect("a URL"));
        let error = client.send(&request, &hasty).await.expect_err("unreachable");
        assert!(!error.operator_reason().is_empty());
        assert!(std::error::Error::source(&error).is_none());
        texts.push((error.to_string(), format!("{error:?}")));
    }
    texts.dedup();
    assert_eq!(texts, [(UNREACHABLE.to_owned(), format!("EgressError({UNREACHABLE})"))]);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_at_every_connection() {
    let server = ScriptedServer::new(|_| {
        let text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        reply(text, Behind::Close)
    })
    .await;
    for forbidden in ["169.254.169.254", "127.0.0.2", "10.0.0.1", "::1"] {
        let resolver = ScriptedResolver::new(&[("rebind.example", &[&["127.0.0.1"], &[forbidden]])]);
        let client = EgressClient::new(config(&resolver), policy(LISTED));
        let url = server.url("rebind.example", "/");
        assert_eq!(get(&client, url.clone(), &options()).await, "ok");
        assert_eq!(resolver.questions.load(Ordering::SeqCst), 1, "checked and connected with one answer");
        let error = client.send(&EgressRequest::get(url), &options()).await.expect_err("refused");
        assert_eq!(error.failure(), EgressFailure::Refused, "{}", error.operator_reason());
        assert!(error.operator_reason().contains(forbidden), "{}", error.operator_reason());
    }
    assert_eq!(server.witness.connections(), 4);
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let server = ScriptedServer::at("127.0.0.3", |_| ok("third")).await;
    let resolver = ScriptedResolver::new(&[("up.example", &[&["127.0.0.2", "127.0.0.3"]])]);
    let client = EgressClient::new(config(&resolver), policy(LISTED));
    assert_eq!(get(&client, server.url("up.example", "/"), &options()).await, "third");
}
