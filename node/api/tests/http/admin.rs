//! The administrators' listener: who gets in, what is asked for, what is too much.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{AdminToken, Secret};
use assay_node_http::{Admin, AdminAnswer, AdminConfig, AdminRefusal, AdminRequest};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::json;

use crate::client::{ClientResponse, connect, exchange, read_answer, request};
use crate::fixture::{Fixture, KEY};
use crate::tls::{FIRST, files_in, place, stream};

/// Long enough that others come meanwhile.
const TAKES_LONG: Duration = Duration::from_secs(3);
const TOKEN: &str = "adm-the-token-of-the-tests-0123456789";

/// Says back what was asked, but for the few that show how it may end otherwise.
fn answers(request: AdminRequest) -> BoxFuture<'static, Result<AdminAnswer, AdminRefusal>> {
    Box::pin(async move {
        match request.operation.as_str() {
            "remove" => Err(AdminRefusal::Refused("node 9 is the only one there is".into())),
            "token" => Err(AdminRefusal::Unavailable("the catalog does not answer".into())),
            "rebalance" => {
                let lines = [json!({"waiting": "shard 1"}), json!({"settled": true})];
                Ok(AdminAnswer::Lines(futures::stream::iter(lines).boxed()))
            }
            "takes-long" => {
                tokio::time::sleep(TAKES_LONG).await;
                Ok(AdminAnswer::Done(json!({})))
            }
            operation => Ok(AdminAnswer::Done(json!({"operation": operation, "fields": request.fields}))),
        }
    })
}

fn fixture_with(config: AdminConfig) -> Fixture {
    let token = AdminToken::new(&Secret::new(TOKEN.into())).expect("a token");
    let listen = Some(config.listen.unwrap_or_else(|| "127.0.0.1:0".into()));
    let config = AdminConfig { listen, ..config };
    Fixture::with_admin(|_| {}, Some(Admin { config, token, answers: Arc::new(answers) }))
}

fn listener(fixture: &Fixture) -> SocketAddr {
    fixture.admin.expect("the listener's port")
}

fn call(fixture: &Fixture, method: &str, path: &str, token: &str, body: &[u8]) -> ClientResponse {
    let bearer = format!("Bearer {token}");
    exchange(&mut connect(listener(fixture)), &request(method, path, &[("Authorization", &bearer)], body))
}

#[test]
fn the_token_opens_this_door_alone_and_an_api_key_does_not() {
    let fixture = fixture_with(AdminConfig::default());
    let status = call(&fixture, "GET", "/cluster/status", TOKEN, b"").ok();
    assert_eq!(status, json!({"operation": "status", "fields": {}}));

    for (path, method) in [("/cluster/status", "GET"), ("/cluster/drain", "POST"), ("/nothing", "GET"), ("/v1", "GET")]
    {
        for wrong in [KEY, "x", &TOKEN[1..], &format!("{TOKEN}x")] {
            let answer = call(&fixture, method, path, wrong, b"");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let why = answer.refused(401);
            assert!(why.contains("API keys are not accepted here") && why.contains("admin.token"), "{why}");
            assert!(!why.contains(TOKEN));
        }
        let none = exchange(&mut connect(listener(&fixture)), &request(method, path, &[], b"")).refused(401);
        assert!(none.contains("no token was sent") && none.contains("ASSAY_ADMIN_TOKEN"), "{none}");
    }
    for path in ["/v1/project", "/ping", "/version", "/cluster/status"] {
        let bearer = format!("Bearer {TOKEN}");
        let answer = fixture.send(&request("GET", path, &[("Authorization", &bearer)], b""));
        assert!([401, 404, 405].contains(&answer.status), "the API takes no such token: {path} {}", answer.status);
    }
    assert_eq!(fixture.get("/cluster/status").status, 404, "and does not serve what is for administrators");
    call(&fixture, "GET", "/v1/project", TOKEN, b"").refused(404);
}

#[test]
fn operations_are_handed_on_and_refusals_have_their_status() {
    let fixture = fixture_with(AdminConfig::default());
    let post =
        |operation: &str, body: &str| call(&fixture, "POST", &format!("/cluster/{operation}"), TOKEN, body.as_bytes());
    assert_eq!(post("drain", "{\"node\": 2}").ok(), json!({"operation": "drain", "fields": {"node": 2}}));
    assert_eq!(post("status", "").ok(), json!({"operation": "status", "fields": {}}));
    assert!(post("remove", "{\"node\": 9}").refused(409).contains("the only one there is"));
    let busy = post("token", "");
    assert!(busy.header("retry-after").is_some());
    assert!(busy.refused(503).contains("does not answer"));
    assert!(post("drain", "[2]").refused(400).contains("an array"));
    assert!(post("drain", "{\"node\"").refused(400).contains("not valid JSON"));
    let by_get = call(&fixture, "GET", "/cluster/drain", TOKEN, b"");
    assert_eq!(by_get.header("allow"), Some("POST"));
    by_get.refused(405);
    call(&fixture, "DELETE", "/cluster/drain", TOKEN, b"").refused(404);
}

#[test]
fn what_takes_long_says_a_line_at_a_time() {
    let fixture = fixture_with(AdminConfig::default());
    let bearer = format!("Bearer {TOKEN}");
    let mut stream = connect(listener(&fixture));
    let headers = [("Authorization", bearer.as_str()), ("Connection", "close")];
    stream.write_all(&request("POST", "/cluster/rebalance", &headers, b"")).expect("sent");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).expect("read to its end");
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("application/x-ndjson"), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines, ["{\"waiting\":\"shard 1\"}", "{\"settled\":true}"]);
}

#[test]
fn no_more_is_read_and_no_more_is_under_way_than_is_named() {
    const BODY_BYTES_MAX: usize = 64 << 10;
    const AT_ONCE_MAX: usize = 8;
    let fixture = fixture_with(AdminConfig::default());
    let sized = |bytes: usize| format!("{{\"x\":\"{}\"}}", "y".repeat(bytes - 8)).into_bytes();
    call(&fixture, "POST", "/cluster/drain", TOKEN, &sized(BODY_BYTES_MAX)).ok();
    let why = call(&fixture, "POST", "/cluster/drain", TOKEN, &sized(BODY_BYTES_MAX + 1)).refused(413);
    assert!(why.contains("65536"), "{why}");
    let deep = [vec![b'['; 200], vec![b']'; 200]].concat();
    call(&fixture, "POST", "/cluster/drain", TOKEN, &deep).refused(400);
    // Who has no token is refused before its body is looked at, however long it says that is.
    let head = "POST /cluster/drain HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n";
    exchange(&mut connect(listener(&fixture)), head.as_bytes()).refused(401);

    let under_way: Vec<_> = (0..AT_ONCE_MAX)
        .map(|_| {
            let mut stream = connect(listener(&fixture));
            let bearer = format!("Bearer {TOKEN}");
            stream
                .write_all(&request("POST", "/cluster/takes-long", &[("Authorization", &bearer)], b""))
                .expect("sent");
            stream
        })
        .collect();
    let began = Instant::now();
    loop {
        let answer = call(&fixture, "GET", "/cluster/status", TOKEN, b"");
        if answer.status == 429 {
            assert!(answer.refused(429).contains("8 administrators' requests are in progress"));
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "eight are under way, and a ninth is served");
    }
    call(&fixture, "GET", "/cluster/status", KEY, b"").refused(401);
    let began = Instant::now();
    while call(&fixture, "GET", "/cluster/status", TOKEN, b"").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(10), "what ended makes room");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(under_way);
}

#[test]
fn a_slow_body_is_given_up() {
    let fixture = fixture_with(AdminConfig::default());
    let mut stream = connect(listener(&fixture));
    let head = format!(
        "POST /cluster/drain HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n{{"
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes()).expect("sent");
    assert!(read_answer(&mut stream).refused(408).contains("within 10 s"));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn nothing_here_is_for_browsers_and_tls_is_spoken_where_it_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = files_in(dir.path());
    place(&files, FIRST);
    let fixture = fixture_with(AdminConfig { tls: Some(files), ..AdminConfig::default() });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Origin", "https://page.example")];
    let sent = |method: &str, headers: &[(&str, &str)]| {
        exchange(&mut stream(listener(&fixture), FIRST.0), &request(method, "/cluster/status", headers, b""))
    };
    let answer = sent("GET", &headers);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.ok();
    let preflight = sent("OPTIONS", &headers[1..]);
    assert_eq!(preflight.header("access-control-allow-methods"), None);
    preflight.refused(401);
}
