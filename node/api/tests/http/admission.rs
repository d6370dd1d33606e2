//! Budgets that are full: who waits, who is refused and when, and what a refused client sees.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::client::{ClientResponse, connect, read_answer};
use crate::fixture::{Fixture, KEY};

const WITHIN: Duration = Duration::from_secs(20);
const BODIES: &str = "budget=\"http.bodies_bytes_max\"";

/// A node whose budget for bodies is so small that one request fills it.
fn small_fixture(bytes: usize) -> Fixture {
    Fixture::with(|config| {
        config.bodies_bytes_max = bytes;
        config.body_bytes_max = bytes;
        config.small_body_bytes_max = bytes;
    })
}

/// Sends the head of a request, and some of its body.
fn begin(fixture: &Fixture, headers: &[(&str, &str)], length: usize, sent: usize) -> TcpStream {
    let mut stream = connect(fixture.address);
    let mut head =
        format!("POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {length}\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes()).expect("sent");
    stream.write_all(&vec![b' '; sent]).expect("sent");
    stream
}

fn metric(fixture: &Fixture, name: &str) -> u64 {
    let text = fixture.knock("GET", "/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
}

fn held(fixture: &Fixture) -> u64 {
    metric(fixture, "assay_http_body_bytes_held ")
}

fn waiting(fixture: &Fixture) -> u64 {
    metric(fixture, &format!("assay_budget_waiting{{{BODIES}}} "))
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WITHIN, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A request whose body is blank is read, and then refused for that.
#[track_caller]
fn was_read(answer: &ClientResponse) {
    assert!(answer.refused(400).contains("is empty"), "{}", answer.text());
}

/// Such a node answered 429 at once.
#[test]
fn a_request_waits_for_room_and_is_refused_only_when_its_client_would_give_up() {
    let fixture = small_fixture(100_000);
    let first = begin(&fixture, &[], 80_000, 10);
    until("the first holds what it announced", || held(&fixture) == 80_000);
    let began = Instant::now();
    let refused = fixture.call("POST", "/logs3", &[("x-stainless-timeout", "2")], &[b' '; 50_000]);
    let said = refused.refused(429);
    assert!(said.contains("http.bodies_bytes_max"), "{said}");
    assert!(refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()));
    assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
    thread::scope(|scope| {
        let second = scope.spawn(|| fixture.call("POST", "/logs3", &[], &[b' '; 50_000]));
        until("the second waits", || waiting(&fixture) == 1);
        drop(first);
        was_read(&second.join().expect("no panic"));
    });
    assert_eq!(metric(&fixture, &format!("assay_budget_refused_total{{{BODIES}}} ")), 1);
    until("what was held comes back", || held(&fixture) == 0);
}

#[test]
fn a_client_that_leaves_gives_up_its_place_and_what_it_holds() {
    let fixture = small_fixture(100_000);
    let first = begin(&fixture, &[], 80_000, 10);
    until("the first holds what it announced", || held(&fixture) == 80_000);
    let second = begin(&fixture, &[], 50_000, 20_000);
    until("the second waits", || waiting(&fixture) == 1);
    drop(second);
    until("nobody waits", || waiting(&fixture) == 0);
    drop(first);
    until("nobody holds anything", || held(&fixture) == 0);
}

/// The end of a connection behind many unread bytes is seen when the request is admitted.
#[test]
fn a_client_that_left_behind_unread_bytes_holds_nothing_once_it_is_admitted() {
    let fixture = small_fixture(1_000_000);
    let first = begin(&fixture, &[], 800_000, 10);
    until("the first holds what it announced", || held(&fixture) == 800_000);
    let second = begin(&fixture, &[], 600_000, 400_000);
    until("the second waits", || waiting(&fixture) == 1);
    drop(second);
    drop(first);
    until("nobody waits and nobody holds anything", || waiting(&fixture) == 0 && held(&fixture) == 0);
    was_read(&fixture.call("POST", "/logs3", &[], &[b' '; 700_000]));
}

/// The limits of a body and of a request begin to count when it is admitted.
#[test]
fn a_request_that_waits_is_neither_idle_nor_slow() {
    let fixture = Fixture::with(|config| {
        config.bodies_bytes_max = 100_000;
        config.body_bytes_max = 100_000;
        config.small_body_bytes_max = 100_000;
        config.body_grace_seconds = 2;
        config.body_seconds_max = 2;
        config.request_seconds_max = 3;
        config.head_seconds_max = 1;
        config.keep_alive_seconds = 1;
    });
    let mut first = begin(&fixture, &[], 80_000, 10);
    until("the first is admitted", || held(&fixture) == 80_000);
    let mut second = begin(&fixture, &[], 79_000, 10);
    until("the second waits", || waiting(&fixture) == 1);
    let began = Instant::now();
    let mut third = begin(&fixture, &[], 78_000, 78_000);
    read_answer(&mut first).refused(408);
    read_answer(&mut second).refused(408);
    was_read(&read_answer(&mut third));
    assert!(
        began.elapsed() > Duration::from_secs(3),
        "it waited longer than a request may take: {:?}",
        began.elapsed()
    );
}

#[test]
fn a_key_alone_reaches_85_percent_and_leaves_room_for_another_organization() {
    let fixture = small_fixture(1_000_000);
    fixture.organization("globex");
    let alone: Vec<TcpStream> = (0..17).map(|_| begin(&fixture, &[], 50_000, 10)).collect();
    until("it holds 85 %", || held(&fixture) == 850_000);
    let more: Vec<TcpStream> = (0..4).map(|_| begin(&fixture, &[], 50_000, 10)).collect();
    until("and no more", || waiting(&fixture) == 4 && held(&fixture) == 850_000);
    for _ in 0..20 {
        was_read(&fixture.call("POST", "/logs3", &[("x-bt-org-name", "globex")], &[b' '; 50_000]));
        was_read(&fixture.call("POST", "/logs3", &[("x-bt-org-name", "globex")], b" "));
    }
    assert_eq!(waiting(&fixture), 4);
    drop((alone, more));
    until("everything comes back", || held(&fixture) == 0);
}

/// A body in chunks announces no length: it reserves its part in steps.
#[test]
fn a_body_in_chunks_grows_into_the_budget() {
    let fixture = Fixture::open();
    let mut stream = connect(fixture.address);
    let head =
        format!("POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let chunk = [b"4000\r\n".as_slice(), &[b' '; 0x4000], b"\r\n"].concat();
    for _ in 0..40 {
        stream.write_all(&chunk).expect("sent");
    }
    until("it holds what came", || held(&fixture) >= 40 * 0x4000);
    stream.write_all(b"0\r\n\r\n").expect("sent");
    was_read(&read_answer(&mut stream));
    until("everything comes back", || held(&fixture) == 0);
}

/// The answer is there before the body is, and sending the rest of it does not fail.
#[test]
fn a_client_that_still_sends_sees_why_it_was_refused() {
    let fixture = Fixture::open();
    let piece = vec![b'x'; 256 << 10];
    let (unknown, known) = ("Bearer sk-unknown".to_owned(), format!("Bearer {KEY}"));
    for (credential, length, status) in [(&unknown, 8_usize << 20, 401), (&known, 30 << 20, 413)] {
        for framing in [format!("Content-Length: {length}"), "Transfer-Encoding: chunked".to_owned()] {
            if status == 413 && framing.starts_with('T') {
                continue;
            }
            let mut stream = connect(fixture.address);
            let head = format!("POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: {credential}\r\n{framing}\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("sent");
            let is_chunked = framing.starts_with('T');
            for _ in 0..31 {
                if is_chunked {
                    stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).expect("sent");
                }
                stream.write_all(&piece).unwrap_or_else(|error| panic!("{status} {framing}: {error}"));
                if is_chunked {
                    stream.write_all(b"\r\n").expect("sent");
                }
                // Slower than the answer is.
                thread::sleep(Duration::from_millis(20));
            }
            read_answer(&mut stream).refused(status);
        }
    }
}

/// It is not read for ever either.
#[test]
fn a_refused_body_without_an_end_is_cut() {
    let fixture = Fixture::open();
    let mut stream = connect(fixture.address);
    let head =
        "POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk-unknown\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    read_answer(&mut stream).refused(401);
    let chunk = [b"40000\r\n".as_slice(), &[b' '; 0x40000], b"\r\n"].concat();
    let began = Instant::now();
    while stream.write_all(&chunk).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(30), "it takes whatever comes");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn uploads_hold_what_came_of_them_and_slots_are_shared() {
    let fixture = Fixture::with(|config| config.uploads_max = 2);
    let ask = |org: &str| {
        let body = json!({"key": Uuid::new_v4(), "filename": "f", "content_type": "text/plain", "org_id": ""});
        let headers = [("x-bt-org-name", org), ("Content-Type", "application/json")];
        let answer = fixture.call("POST", "/attachment", &headers, body.to_string().as_bytes()).ok();
        let url = answer["signedUrl"].as_str().expect("an address").to_owned();
        url[url.find("/attachment/bytes").expect("a path")..].to_owned()
    };
    let upload = |path: &str| {
        let mut stream = connect(fixture.address);
        let head = format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(&[b'x'; 1000]).expect("sent");
        stream
    };
    let slots = "assay_budget_held{budget=\"http.uploads_max\"} ";
    let mut first = upload(&ask(crate::fixture::ORG));
    until("it holds a slot, and of the bytes what came", || metric(&fixture, slots) == 1 && held(&fixture) == 1000);
    let second = upload(&ask(crate::fixture::ORG));
    until("both hold slots", || metric(&fixture, slots) == 2);
    let mut third = upload(&ask(crate::fixture::ORG));
    until("the third waits", || metric(&fixture, "assay_budget_waiting{budget=\"http.uploads_max\"} ") == 1);
    drop(second);
    until("it is admitted", || metric(&fixture, "assay_budget_waiting{budget=\"http.uploads_max\"} ") == 0);
    for stream in [&mut first, &mut third] {
        stream.write_all(&vec![b'x'; 2_999_000]).expect("sent");
        assert_eq!(read_answer(stream).status, 200);
    }
    until("everything comes back", || held(&fixture) == 0 && metric(&fixture, slots) == 0);
}

/// It used to be said at once, and the body came whatever became of the request.
#[test]
fn a_client_that_expects_to_be_told_is_told_once_it_is_admitted() {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let expects = [("Expect", "100-continue")];
    let fixture = small_fixture(100_000);
    let first = begin(&fixture, &[], 80_000, 10);
    until("the first holds what it announced", || held(&fixture) == 80_000);
    let mut second = begin(&fixture, &expects, 50_000, 0);
    until("the second waits", || waiting(&fixture) == 1);
    second.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let mut told = [0; CONTINUE.len()];
    assert!(second.read(&mut told).is_err(), "it waits: {:?}", String::from_utf8_lossy(&told));
    drop(first);
    second.set_read_timeout(Some(WITHIN)).expect("a timeout");
    second.read_exact(&mut told).expect("it is told");
    assert_eq!(told, CONTINUE);
    second.write_all(&[b' '; 50_000]).expect("sent");
    was_read(&read_answer(&mut second));
    // Whoever is refused is not told to send.
    let mut stream = connect(fixture.address);
    let head = "POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk-unknown\r\nExpect: 100-continue\r\n\
                Content-Length: 50000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    read_answer(&mut stream).refused(401);
}
