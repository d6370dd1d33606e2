//! Tests of heads and bodies: limits of size and time, and the progress after a failure.

use std::time::{Duration, Instant};

use assay_node_egress::{
    EgressError, EgressFailure, EgressOptions, EgressProgress, EgressRequest, EgressTimes, HeaderName, HeaderValue,
    Method, StatusCode,
};
use bytes::Bytes;
use futures::StreamExt;

use crate::support::{Behind, ScriptedReply, ScriptedServer, client, get, ok, options, reply, soon};

const SHORT: Duration = Duration::from_millis(150);

fn paused(head: &str, pause: Duration, rest: &str) -> ScriptedReply {
    let pieces = vec![(Duration::ZERO, head.as_bytes().to_vec()), (pause, rest.as_bytes().to_vec())];
    ScriptedReply { pieces, behind: Behind::Hang }
}

async fn failure_of(script: ScriptedReply, options: &EgressOptions) -> EgressError {
    let server = ScriptedServer::new(move |_| script.clone()).await;
    let request = EgressRequest::get(server.url("up.example", "/"));
    let response = match client().send(&request, options).await {
        Err(error) => return error,
        Ok(response) => response,
    };
    response.body.collect().await.expect_err("the body fails")
}

#[tokio::test]
async fn what_is_known_about_a_request_depends_on_where_it_failed() {
    use EgressFailure::*;
    use EgressProgress::*;
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(129));
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(70_000));
    for (text, behind, failure, progress) in [
        ("", Behind::Close, NoHead, NoResponse),
        ("HTTP/1.1 200", Behind::Close, NoHead, NoResponse),
        ("SSH-2.0-x\r\n\r\n", Behind::Hang, NoHead, NoResponse),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            Behind::Hang,
            NoHead,
            NoResponse,
        ),
        (many.as_str(), Behind::Hang, NoHead, NoResponse),
        (long.as_str(), Behind::Hang, NoHead, NoResponse),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Behind::Close, BodyCut, ResponseCut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", Behind::Close, BodyCut, ResponseCut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", Behind::Close, BodyCut, ResponseCut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Behind::Hang, BodyCut, ResponseCut),
    ] {
        let error = soon(failure_of(reply(text, behind), &options())).await;
        let known = (error.failure(), error.progress());
        assert_eq!(known, (failure, progress), "{text:.60}: {}", error.operator_reason());
    }
}

#[tokio::test]
async fn a_slow_head_and_a_slow_body_end_in_time() {
    let short = |times: EgressTimes| EgressOptions { times, ..options() };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha";
    let first_byte = short(EgressTimes { first_byte: SHORT, ..options().times });
    let between = short(EgressTimes { between_chunks: SHORT, ..options().times });
    let total = short(EgressTimes { total: SHORT, ..options().times });
    for (script, options, failure) in [
        (reply("", Behind::Hang), &first_byte, EgressFailure::HeadLate),
        (paused("HTTP/1.1 200 OK\r\n", Duration::from_secs(1), "\r\n"), &first_byte, EgressFailure::HeadLate),
        (reply("", Behind::Hang), &total, EgressFailure::HeadLate),
        (paused(head, Duration::from_secs(1), "lf"), &between, EgressFailure::BodyLate),
        (paused(head, Duration::from_secs(1), "lf"), &total, EgressFailure::BodyLate),
    ] {
        let start = Instant::now();
        let error = failure_of(script, options).await;
        assert_eq!(error.failure(), failure, "{}", error.operator_reason());
        assert!(start.elapsed() < Duration::from_secs(1), "{failure:?} took {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read_on() {
    let small = EgressOptions { response_bytes_max: 9, ..options() };
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n";
    let to_the_end = "HTTP/1.1 200 OK\r\n\r\n0123456789";
    for (text, behind) in [(sized, Behind::Keep), (chunked, Behind::Keep), (to_the_end, Behind::Close)] {
        assert_eq!(failure_of(reply(text, behind), &small).await.failure(), EgressFailure::BodyLarge, "{text}");
        let server = ScriptedServer::new(move |_| reply(text, behind)).await;
        let exact = EgressOptions { response_bytes_max: 10, ..options() };
        assert_eq!(get(&client(), server.url("up.example", "/"), &exact).await, "0123456789");
    }
}

#[tokio::test]
async fn a_pause_can_be_waited_for_in_parts() {
    let script = paused("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", SHORT, "lf");
    let server = ScriptedServer::new(move |_| script.clone()).await;
    let request = EgressRequest::get(server.url("up.example", "/"));
    let mut body = client().send(&request, &options()).await.expect("a response").body;
    let (mut chunks, mut pauses) = (Vec::new(), 0);
    loop {
        match tokio::time::timeout(SHORT / 5, body.next()).await {
            Err(_) => pauses += 1,
            Ok(Ok(Some(chunk))) => chunks.push(chunk),
            Ok(end) => break assert!(end.expect("the body is whole").is_none()),
        }
    }
    assert_eq!((chunks.concat(), pauses > 0), (b"half".to_vec(), true));
}

#[tokio::test]
async fn a_pause_in_parts_has_the_limit_of_a_whole_one() {
    let script = paused("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", Duration::from_secs(60), "lf");
    let server = ScriptedServer::new(move |_| script.clone()).await;
    let times = EgressTimes { between_chunks: SHORT, ..options().times };
    let request = EgressRequest::get(server.url("up.example", "/"));
    let mut body = client().send(&request, &EgressOptions { times, ..options() }).await.expect("a response").body;
    assert_eq!(body.next().await.expect("the first chunk"), Some(Bytes::from_static(b"ha")));
    let start = Instant::now();
    let late = soon(async {
        loop {
            if let Ok(next) = tokio::time::timeout(SHORT / 5, body.next()).await {
                break next;
            }
        }
    });
    assert_eq!(late.await.expect_err("too late").failure(), EgressFailure::BodyLate);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stream_has_the_chunks_as_they_come() {
    let script = paused(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        Duration::from_millis(30),
        "2\r\ncd\r\n0\r\nTrailer: x\r\n\r\n",
    );
    let server = ScriptedServer::new(move |_| script.clone()).await;
    let request = EgressRequest::get(server.url("up.example", "/"));
    let response = client().send(&request, &options()).await.expect("a response");
    let chunks: Vec<_> = response.body.into_stream().collect().await;
    let chunks: Vec<Bytes> = chunks.into_iter().collect::<Result<_, _>>().expect("no error");
    assert_eq!(chunks, ["ab", "cd"]);
}

#[tokio::test]
async fn statuses_and_redirects_are_responses() {
    for status in [204, 301, 302, 307, 400, 401, 404, 429, 500, 529] {
        let server = ScriptedServer::new(move |_| {
            let head = format!("HTTP/1.1 {status} X\r\nLocation: http://169.254.169.254/\r\n");
            let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
            reply(&format!("{head}{length}\r\n"), Behind::Keep)
        })
        .await;
        let request = EgressRequest::get(server.url("up.example", "/"));
        let response = client().send(&request, &options()).await.expect("a response");
        assert_eq!(response.status, StatusCode::from_u16(status).expect("a status"));
        assert_eq!(server.witness.connections(), 1);
    }
}

#[tokio::test]
async fn a_request_has_the_headers_of_its_caller_and_none_of_the_connection() {
    let server = ScriptedServer::new(|_| ok("")).await;
    let mut request = EgressRequest::post(server.url("up.example", "/v1?k=1"), Bytes::from_static(b"{}"));
    for (name, value) in [
        ("authorization", "Bearer secret"),
        ("host", "evil.example"),
        ("connection", "keep-alive, x-mine"),
        ("transfer-encoding", "chunked"),
        ("content-length", "99"),
        ("upgrade", "h2c"),
        ("te", "trailers"),
        ("expect", "100-continue"),
        ("proxy-authorization", "Basic x"),
        ("proxy-connection", "close"),
        ("keep-alive", "1"),
        ("x-mine", "1"),
    ] {
        request.headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    assert!(!format!("{request:?}").contains("secret"), "{request:?}");
    client().send(&request, &options()).await.expect("a response");
    let mut lines: Vec<_> = server.witness.requests()[0].lines().map(str::to_owned).collect();
    let first = lines.remove(0);
    lines.sort();
    let host = format!("host: up.example:{}", server.port);
    let expected =
        ["", "authorization: Bearer secret", "content-length: 2", &host, "user-agent: assay", "x-mine: 1", "{}"];
    assert_eq!((first.as_str(), lines), ("POST /v1?k=1 HTTP/1.1", expected.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn a_post_without_a_body_says_so() {
    let server = ScriptedServer::new(|_| ok("")).await;
    client().send(&EgressRequest::post(server.url("up.example", "/"), Bytes::new()), &options()).await.expect("sent");
    client().send(&EgressRequest::get(server.url("up.example", "/")), &options()).await.expect("sent");
    let requests = server.witness.requests();
    assert_eq!(requests.iter().map(|text| text.matches("content-length: 0").count()).collect::<Vec<_>>(), [1, 0]);
}

#[tokio::test]
async fn a_request_with_too_large_a_head_is_not_sent() {
    let server = ScriptedServer::new(|_| ok("")).await;
    let mut large = EgressRequest::get(server.url("up.example", "/"));
    large.headers.insert("x", HeaderValue::try_from("x".repeat(70_000)).expect("a value"));
    let mut many = EgressRequest::get(server.url("up.example", "/"));
    for _ in 0..129 {
        many.headers.append("x", HeaderValue::from_static("1"));
    }
    let connect = EgressRequest { method: Method::CONNECT, ..EgressRequest::get(server.url("up.example", "/")) };
    for request in [large, many, connect] {
        let error = client().send(&request, &options()).await.expect_err("refused");
        assert_eq!((error.failure(), error.progress()), (EgressFailure::Refused, EgressProgress::NothingSent));
    }
    assert_eq!(server.witness.connections(), 0);
}
