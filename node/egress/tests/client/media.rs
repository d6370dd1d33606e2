//! Tests of media: redirects are few and checked, and no credential is sent to another origin.

use assay_node_egress::{
    EgressFailure, EgressOptions, EgressProgress, EgressPurpose, HeaderMap, HeaderValue, MediaResponse, StatusCode,
    UNREACHABLE,
};

use crate::support::{Behind, ScriptedReply, ScriptedServer, client, ok, options, reply};

fn redirect(status: u16, location: &str) -> ScriptedReply {
    let head = format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    reply(&head, Behind::Keep)
}

fn credentials() -> HeaderMap {
    let names = ["authorization", "cookie", "x-api-key", "accept"];
    let header = |name: &'static str| (name.parse().expect("a name"), HeaderValue::from_static("secret"));
    names.into_iter().map(header).collect()
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_target_is_refused() {
    let secret = ScriptedServer::at("127.0.0.9", |_| ok("secret")).await;
    let port = secret.port;
    for location in [
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:169.254.169.254]/".to_owned(),
        "//169.254.169.254/".to_owned(),
        "http://0xa9fea9fe/".to_owned(),
        format!("http://127.0.0.9:{port}/"),
        format!("http://0x7f000009:{port}/"),
        "file:///etc/passwd".to_owned(),
        "http://user@up.example/".to_owned(),
    ] {
        let text = location.clone();
        let server = ScriptedServer::new(move |_| redirect(302, &text)).await;
        let fetched = client().fetch_media(server.url("up.example", "/a"), credentials(), &options()).await;
        let error = fetched.expect_err(&location);
        assert_eq!(error.to_string(), UNREACHABLE, "{location}");
        assert!(matches!(error.failure(), EgressFailure::Refused | EgressFailure::Redirects), "{location}");
        assert_eq!(error.progress(), EgressProgress::ResponseCut, "{location}");
    }
    assert_eq!(secret.witness.connections(), 0);
}

#[tokio::test]
async fn three_redirects_are_followed_and_a_fourth_is_not() {
    for status in [301, 302, 303, 307, 308] {
        let server = ScriptedServer::new(move |request| match request.split(' ').nth(1) {
            Some("/done") => ok("media"),
            Some(path) => redirect(status, &format!("{path}x")),
            None => ok(""),
        })
        .await;
        let fetched = client().fetch_media(server.url("up.example", "/"), HeaderMap::new(), &options()).await;
        assert_eq!(fetched.expect_err("endless").failure(), EgressFailure::Redirects);
        assert_eq!(server.witness.requests().len(), 4, "{status}");
    }
    let server = ScriptedServer::new(|request| match request.split(' ').nth(1) {
        Some("/0/a") => redirect(302, "../1"),
        Some("/1") => redirect(307, "?q=2"),
        Some("/1?q=2") => redirect(308, "/3"),
        _ => ok("media"),
    })
    .await;
    let fetched = client().fetch_media(server.url("up.example", "/0/a"), credentials(), &options()).await;
    let MediaResponse { status, body, url, .. } = fetched.expect("the media");
    assert_eq!((status, &body[..], url), (StatusCode::OK, &b"media"[..], server.url("up.example", "/3")));
    for request in server.witness.requests() {
        assert_eq!(request.matches("secret").count(), 4, "one origin: {request}");
    }
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let other = ScriptedServer::new(|request| match request.split(' ').nth(1) {
        Some("/back") => redirect(302, "/done"),
        _ => ok("media"),
    })
    .await;
    let target = other.url("other.example", "/back").to_text();
    let first = ScriptedServer::new(move |_| redirect(302, &target)).await;
    let fetched = client().fetch_media(first.url("up.example", "/"), credentials(), &options()).await;
    assert_eq!(fetched.expect("the media").body, "media");
    assert_eq!(first.witness.requests()[0].matches("secret").count(), 4);
    for request in other.witness.requests() {
        assert!(request.contains("accept: secret"), "{request}");
        assert_eq!(request.matches("secret").count(), 1, "{request}");
    }
    assert_eq!(other.witness.requests().len(), 2);
}

#[tokio::test]
async fn media_has_a_limit_of_bytes_and_its_own_purpose() {
    let server = ScriptedServer::new(|_| ok("0123456789")).await;
    let small = EgressOptions { response_bytes_max: 9, ..options() };
    let fetched = client().fetch_media(server.url("up.example", "/"), HeaderMap::new(), &small).await;
    assert_eq!(fetched.expect_err("too large").failure(), EgressFailure::BodyLarge);
    // No entry lists MCP, and the purpose is always media.
    let mcp = EgressOptions { purpose: EgressPurpose::Mcp, ..options() };
    let fetched = client().fetch_media(server.url("up.example", "/"), HeaderMap::new(), &mcp).await;
    assert_eq!(fetched.expect("the media").body, "0123456789");
}

#[tokio::test]
async fn a_response_that_is_no_redirect_is_the_media() {
    for script in [
        reply("HTTP/1.1 300 X\r\nLocation: /x\r\nContent-Length: 1\r\n\r\na", Behind::Keep),
        reply("HTTP/1.1 302 X\r\nContent-Length: 1\r\n\r\na", Behind::Keep),
        reply("HTTP/1.1 404 X\r\nContent-Length: 1\r\n\r\na", Behind::Keep),
    ] {
        let server = ScriptedServer::new(move |_| script.clone()).await;
        let fetched = client().fetch_media(server.url("up.example", "/"), HeaderMap::new(), &options()).await;
        assert_eq!(fetched.expect("a response").body, "a");
    }
}
