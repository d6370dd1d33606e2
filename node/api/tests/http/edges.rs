//! Behaviour of every path: browsers, unknown paths, slow senders, health, metrics, the end.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{connect, exchange, read_answer, request};
use crate::fixture::{Fixture, KEY};

#[test]
fn a_preflight_is_answered_on_every_path_without_a_key() {
    let fixture = Fixture::open();
    for path in ["/v1", "/v1/project", "/v1/project_logs/x/insert", "/logs3", "/btql", "/nothing/here", "/v1/prompt"] {
        let headers = [("Origin", "https://page.example"), ("Access-Control-Request-Private-Network", "true")];
        let answer = fixture.send(&request("OPTIONS", path, &headers, b""));
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://page.example"));
        assert_eq!(answer.header("access-control-max-age"), Some("86400"));
        assert_eq!(answer.header("access-control-allow-private-network"), Some("true"));
    }
    let answer = fixture.send(&request("GET", "/v1/project", &[("Origin", "https://page.example")], b""));
    answer.refused(401);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://page.example"), "a page must see why");
    assert!(answer.header("access-control-expose-headers").is_some_and(|names| names.contains("x-bt-found-existing")));
}

/// A preflight kept its connection open, so that a few of them took the whole reserve for health checks.
#[test]
fn a_preflight_gives_its_place_in_the_reserve_back() {
    let fixture = Fixture::with(|config| config.connections_max = 1);
    let head =
        format!("POST /v1/project HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 100\r\n\r\n{{");
    let preflight = b"OPTIONS /v1/project HTTP/1.1\r\nHost: a\r\nOrigin: https://page.example\r\n\r\n";
    let began = Instant::now();
    let _busy = loop {
        let mut busy = connect(fixture.address);
        busy.write_all(head.as_bytes()).expect("sent");
        // Until its request has begun, a connection counts as idle, and the next one takes its place.
        thread::sleep(Duration::from_millis(200));
        if exchange(&mut connect(fixture.address), &request("GET", "/v1", &[], b"")).status == 503 {
            break busy;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "one request takes all connections");
    };
    for _ in 0..20 {
        let mut page = connect(fixture.address);
        let answer = exchange(&mut page, preflight);
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
        assert_eq!(page.read(&mut [0]).expect("an end"), 0, "the server hangs up");
    }
    assert_eq!(fixture.knock("GET", "/healthz").ok(), json!({"live": true}));
}

#[test]
fn paths_are_served_or_unknown() {
    let fixture = Fixture::open();
    let greeting = fixture.knock("GET", "/v1");
    assert_eq!((greeting.status, greeting.text().as_str()), (200, "Hello, World!"));
    assert!(fixture.post("/v1/eval", &json!({})).refused(400).contains("`data` is missing"));
    assert!(fixture.post("/function/sandbox-list", &json!({})).refused(400).contains("sandbox_spec.provider"));
    fixture.get("/nothing").refused(404);
    fixture.get("/v1/project/").refused(404);
    let other = fixture.call("PUT", "/v1/project", &[], b"{}");
    other.refused(405);
    assert_eq!(other.header("allow"), Some("GET, POST"));
    fixture.get("/logs3").refused(405);
    fixture.get("/v1/project/not-an-id").refused(400);
}

#[test]
fn a_slow_body_is_cut_and_others_are_served_meanwhile() {
    let fixture = Fixture::with(|config| (config.body_grace_seconds, config.body_bytes_per_second_min) = (1, 1000));
    let project = fixture.project("p");
    let mut slow = connect(fixture.address);
    let head = format!(
        "POST /v1/project_logs/{project}/insert HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Length: 100000\r\n\r\n{{\"events\":"
    );
    let began = Instant::now();
    slow.write_all(head.as_bytes()).expect("sent");
    fixture.get("/v1/project").ok();
    let mut drip = slow.try_clone().expect("a second handle");
    let dripping = thread::spawn(move || {
        while drip.write_all(b" ").is_ok() && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let said = read_answer(&mut slow).refused(408);
    assert!(said.contains("too slowly"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(slow);
    dripping.join().expect("no panic");
}

#[test]
fn a_head_that_is_too_large_and_bytes_that_are_no_http_are_refused() {
    let fixture = Fixture::open();
    let long = "x".repeat(20_000);
    fixture.call("GET", "/v1/project", &[("x-long", &long)], b"").refused(431);
    assert_eq!(fixture.send(b"nonsense\r\n\r\n").status, 400);
}

#[test]
fn every_answer_has_an_id_of_its_own() {
    let fixture = Fixture::open();
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let answer = fixture.call("GET", "/ping", &[("x-bt-internal-trace-id", "mine")], b"");
            answer.header("x-bt-internal-trace-id").expect("an id").to_owned()
        })
        .collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() == 32), "{ids:?}");
}

/// Nothing ended an answer that nobody read: the page stayed in memory for as long as the connection.
#[test]
fn a_page_that_nobody_reads_holds_its_room_for_a_while_and_no_longer() {
    const ROW_BYTES: usize = 5 << 20;
    let fixture = Fixture::with(|config| (config.answers_bytes_max, config.unread_seconds_max) = (4 * ROW_BYTES, 6));
    let project = fixture.project("p");
    for id in ["a", "b", "c"] {
        let row = json!({"id": id, "input": "x".repeat(ROW_BYTES)});
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": [row]})).ok();
    }
    let path = format!("/v1/project_logs/{project}/fetch");
    let bearer = format!("Bearer {KEY}");
    let mut asleep = connect(fixture.address);
    asleep.write_all(&request("GET", &path, &[("Authorization", &bearer)], b"")).expect("sent");
    let held = || {
        let text = fixture.knock("GET", "/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix("assay_http_answer_bytes_held "));
        line.and_then(|bytes| bytes.parse::<usize>().ok()).expect("a number")
    };
    let waited = Instant::now();
    while held() < 2 * ROW_BYTES {
        assert!(waited.elapsed() < Duration::from_secs(10), "the page is on its way");
        thread::sleep(Duration::from_millis(10));
    }
    // A client that gives up after two seconds is told after one.
    let hurried = [("Authorization", bearer.as_str()), ("x-stainless-timeout", "2")];
    let refused = exchange(&mut connect(fixture.address), &request("GET", &path, &hurried, b""));
    assert!(refused.refused(429).contains("answers_bytes_max") && refused.header("retry-after").is_some());
    assert_eq!(
        fixture.get(&path).ok()["events"].as_array().map(Vec::len),
        Some(3),
        "whoever waits has room in the end"
    );
    while held() > 0 {
        assert!(waited.elapsed() < Duration::from_secs(40), "who reads nothing is left");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(fixture.get(&path).ok()["events"].as_array().map(Vec::len), Some(3), "there is room again");
}

#[test]
fn metrics_and_health_are_shown_where_they_should_be() {
    let fixture = Fixture::open();
    let text = fixture.knock("GET", "/metrics").text();
    assert!(text.contains("assay_http_answers_total{status=\"200\"}") && text.contains("assay_more 1"), "{text}");
    fixture.send(&request("GET", "/metrics", &[("X-Forwarded-For", "10.0.0.1")], b"")).refused(404);
    assert_eq!(fixture.knock("GET", "/healthz").ok(), json!({"live": true}));
    assert_eq!(fixture.knock("GET", "/readyz").ok(), json!({"ready": true}));
    fixture.handle.drain();
    assert!(fixture.knock("GET", "/readyz").refused(503).contains("drains"));
    fixture.get("/ping").ok();

    let apart = Fixture::with(|config| config.metrics_listen = Some("127.0.0.1:0".into()));
    apart.knock("GET", "/metrics").refused(404);
    let port = apart.metrics.expect("a port of its own");
    let answer = exchange(&mut connect(port), &request("GET", "/metrics", &[], b""));
    assert!(answer.status == 200 && answer.text().contains("assay_http_requests_under_way"));
    exchange(&mut connect(port), &request("GET", "/v1/project", &[], b"")).refused(401);
}

#[test]
fn a_stop_ends_idle_connections_and_takes_no_new_ones() {
    let mut fixture = Fixture::open();
    let mut idle = connect(fixture.address);
    let keep = format!("GET /ping HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    exchange(&mut idle, keep.as_bytes()).ok();
    let began = Instant::now();
    fixture.stop();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(std::net::TcpStream::connect(fixture.address).is_err());
}

/// Requests were lost by every stop under load: idle connections were closed as the next request was on its way, and
/// those that had just come went with the socket.
#[test]
fn clients_that_send_all_the_while_lose_no_request_by_a_stop() {
    const CLIENTS: usize = 8;
    let mut fixture = Fixture::open();
    let address = fixture.address;
    let request = format!("GET /ping HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let request = request.clone();
            thread::spawn(move || send_until_refused(address, request.as_bytes()))
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    fixture.stop();
    for client in clients {
        let (answered, lost) = client.join().expect("a client ends");
        assert!(answered > 0 && lost.is_none(), "after {answered} answers: {lost:?}");
    }
}

/// How many answers there were until no connection was to be had, and how a request was lost, if one was.
fn send_until_refused(address: std::net::SocketAddr, request: &[u8]) -> (u32, Option<String>) {
    let mut answered = 0;
    while let Ok(mut stream) = std::net::TcpStream::connect(address) {
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        loop {
            let mut answer = Vec::new();
            let mut part = [0; 4096];
            let sent = stream.write_all(request);
            while sent.is_ok() && !is_whole(&answer) {
                match stream.read(&mut part) {
                    Ok(bytes) if bytes > 0 => answer.extend_from_slice(&part[..bytes]),
                    end => return (answered, Some(format!("{end:?}"))),
                }
            }
            if let Err(error) = sent {
                return (answered, Some(error.to_string()));
            }
            answered += 1;
            let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
            assert!(text.starts_with("http/1.1 200") || text.contains("retry-after: 1\r"), "{text}");
            if text.contains("retry-after") {
                thread::sleep(Duration::from_secs(1)); // as it was told
            }
            if text.contains("connection: close") {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    (answered, None)
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(str::parse::<usize>);
    matches!(length, Some(Ok(length)) if body.len() >= length)
}
