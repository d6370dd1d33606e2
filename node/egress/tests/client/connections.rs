//! Tests of connections: sharing, closing, and number.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_node_egress::{
    EgressClient, EgressConfig, EgressFailure, EgressOptions, EgressProgress, EgressPurpose, EgressRequest,
    EgressTimes, PoolLimits,
};
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::support::{
    Behind, LISTED, ScriptedResolver, ScriptedServer, client, config, get, ok, options, policy, reply, soon,
};

fn limited(pool: PoolLimits) -> EgressClient {
    let resolver = ScriptedResolver::new(&[("up.example", &[&["127.0.0.1"]])]);
    EgressClient::new(EgressConfig { pool, ..config(&resolver) }, policy(LISTED))
}

#[tokio::test]
async fn calls_of_one_organization_purpose_and_origin_share_a_connection() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let client = client();
    let other_organization = EgressOptions { organization: Uuid::from_u128(2), ..options() };
    let other_purpose = EgressOptions { purpose: EgressPurpose::Webhooks, ..options() };
    for (host, options, connections) in [
        ("up.example", options(), 1),
        ("up.example", options(), 1),
        ("UP.example.", options(), 1),
        ("up.example", other_organization.clone(), 2),
        ("up.example", other_purpose, 3),
        ("127.0.0.1", options(), 4),
        ("up.example", options(), 4),
        ("up.example", other_organization, 4),
    ] {
        assert_eq!(get(&client, server.url(host, "/"), &options).await, "body");
        assert_eq!(server.witness.connections(), connections, "{host} {options:?}");
    }
    client.set_policy(policy(LISTED));
    assert_eq!(get(&client, server.url("up.example", "/"), &options()).await, "body");
    assert_eq!(server.witness.connections(), 5, "no connection of an old policy is used");
    server.witness.closed(4).await;
    let request = EgressRequest::get(server.url("up.example", "/"));
    let under_way = client.send(&request, &options()).await.expect("a response");
    client.set_policy(policy(LISTED));
    under_way.body.collect().await.expect("a body");
    assert_eq!(get(&client, server.url("up.example", "/"), &options()).await, "body");
    assert_eq!(server.witness.connections(), 6, "nor that of a call that was under way");
}

#[tokio::test]
async fn each_thread_uses_the_connections_that_it_opened() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let client = client();
    get(&client, server.url("up.example", "/"), &options()).await;
    let (of_other, url) = (client.clone(), server.url("up.example", "/"));
    let other = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..2 {
                get(&of_other, url.clone(), &options()).await;
            }
        });
    });
    other.await.expect("both calls are answered");
    assert_eq!(server.witness.connections(), 2, "the other thread opened one, and used it twice");
    get(&client, server.url("up.example", "/"), &options()).await;
    assert_eq!(server.witness.connections(), 2);
}

#[tokio::test]
async fn a_response_without_a_body_gives_its_connection_back_at_once() {
    let server = ScriptedServer::new(|_| reply("HTTP/1.1 204 No Content\r\n\r\n", Behind::Keep)).await;
    let client = client();
    for _ in 0..3 {
        let request = EgressRequest::get(server.url("up.example", "/"));
        let response = client.send(&request, &options()).await.expect("a response");
        assert_eq!(client.counts().calls, 0);
        drop(response);
    }
    assert_eq!(server.witness.connections(), 1);
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_without_notice() {
    // The server does not announce that it will close the connection.
    let server = ScriptedServer::new(|_| reply("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Behind::Close)).await;
    let client = client();
    for turn in 1..=3 {
        let request = EgressRequest::post(server.url("up.example", "/"), Bytes::from_static(b"once"));
        let response = client.send(&request, &options()).await.expect("a response");
        assert_eq!(response.body.collect().await.expect("a body"), "ok");
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!((server.witness.connections(), server.witness.requests().len()), (turn, turn));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_arrives_twice_however_a_close_and_a_request_meet() {
    let server = ScriptedServer::new(|_| reply("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Behind::Close)).await;
    let client = client();
    let mut responses = 0;
    for turn in 0..200 {
        let body = Bytes::from(format!("turn {turn}."));
        let request = EgressRequest::post(server.url("up.example", "/"), body);
        match client.send(&request, &options()).await {
            Ok(response) => {
                assert_eq!(response.body.collect().await.expect("a body"), "ok");
                responses += 1;
            }
            Err(error) => assert_eq!(error.progress(), EgressProgress::NoResponse, "{}", error.operator_reason()),
        }
    }
    let requests = server.witness.requests();
    let mut different = requests.clone();
    different.dedup();
    assert_eq!(requests.len(), different.len());
    assert!(requests.len() >= responses && responses > 0, "{responses}");
}

#[tokio::test]
async fn a_request_that_may_have_been_executed_is_not_repeated() {
    let turns = AtomicUsize::new(0);
    let server = ScriptedServer::new(move |_| match turns.fetch_add(1, Ordering::SeqCst) {
        0 => ok("first"),
        _ => reply("", Behind::Close),
    })
    .await;
    let client = client();
    assert_eq!(get(&client, server.url("up.example", "/"), &options()).await, "first");
    let request = EgressRequest::post(server.url("up.example", "/"), Bytes::from_static(b"once"));
    let error = client.send(&request, &options()).await.expect_err("no response");
    assert_eq!(error.progress(), EgressProgress::NoResponse, "{}", error.operator_reason());
    assert_eq!((server.witness.connections(), server.witness.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_caller_who_goes_away_closes_the_connection() {
    let silent = ScriptedServer::new(|_| reply("", Behind::Hang)).await;
    let half = ScriptedServer::new(|_| {
        reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", Behind::Hang)
    })
    .await;
    let client = client();
    let request = EgressRequest::get(silent.url("up.example", "/"));
    let call = tokio::time::timeout(Duration::from_millis(100), client.send(&request, &options())).await;
    assert!(call.is_err(), "the server is silent");
    silent.witness.closed(1).await;
    let mut response = client.send(&EgressRequest::get(half.url("up.example", "/")), &options()).await.expect("a head");
    assert_eq!(response.body.next().await.expect("a chunk").expect("a chunk"), "ab");
    assert_eq!(client.counts().calls, 1);
    drop(response);
    half.witness.closed(1).await;
    assert_eq!((client.counts().calls, client.counts().origins), (0, 0));
}

#[tokio::test]
async fn the_rest_of_a_large_request_is_not_sent_for_a_caller_who_went_away() {
    const BODY_BYTES: usize = 32 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let url = format!("http://up.example:{port}/").parse().expect("a URL");
    let request = EgressRequest::post(url, Bytes::from(vec![b'x'; BODY_BYTES]));
    let client = client();
    let options = options();
    let (mut socket, ()) = tokio::join!(async { listener.accept().await.expect("a connection").0 }, async {
        let call = tokio::time::timeout(Duration::from_millis(200), client.send(&request, &options)).await;
        assert!(call.is_err(), "the call succeeded although the server reads nothing");
    });
    let mut received = Vec::new();
    drop(soon(socket.read_to_end(&mut received)).await);
    assert!(received.len() < BODY_BYTES, "{} bytes", received.len());
}

#[tokio::test]
async fn calls_wait_for_each_other_and_no_longer_than_for_a_connection() {
    let server = ScriptedServer::new(|_| reply("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", Behind::Hang)).await;
    for limits in [
        PoolLimits { calls_per_origin_max: 1, ..PoolLimits::default() },
        PoolLimits { calls_max: 1, ..PoolLimits::default() },
    ] {
        let client = limited(limits);
        let request = EgressRequest::get(server.url("up.example", "/"));
        let first = client.send(&request, &options()).await.expect("a head");
        let hasty = EgressTimes { connect: Duration::from_millis(100), ..options().times };
        let hasty = EgressOptions { times: hasty, ..options() };
        let error = client.send(&request, &hasty).await.expect_err("no permit");
        assert_eq!((error.failure(), error.progress()), (EgressFailure::Busy, EgressProgress::NothingSent));
        let (second, ()) = tokio::join!(client.send(&request, &hasty), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(first);
        });
        drop(second.expect("the first has ended"));
        assert_eq!((client.counts().calls, client.counts().origins), (0, 0));
    }
}

#[tokio::test]
async fn idle_connections_are_few_and_do_not_stay() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let limits = PoolLimits { idle_max: 3, idle_per_origin_max: 2, ..PoolLimits::default() };
    let client = limited(PoolLimits { idle_time: Duration::from_millis(400), ..limits });
    let request = EgressRequest::get(server.url("up.example", "/"));
    let of = |number: u128| EgressOptions { organization: Uuid::from_u128(number), ..options() };
    let sent = futures::future::join_all((0..4).map(async |_| client.send(&request, &options()).await)).await;
    assert_eq!(server.witness.connections(), 4);
    for response in sent {
        response.expect("a response").body.collect().await.expect("a body");
    }
    assert_eq!(client.counts().idle, 2, "of one origin");
    for number in 2..=5 {
        get(&client, server.url("up.example", "/"), &of(number)).await;
    }
    assert_eq!(client.counts().idle, 3, "of all");
    server.witness.closed(8).await;
    assert_eq!((client.counts().idle, client.counts().origins), (0, 0));
}

#[tokio::test]
async fn an_old_connection_is_not_used_again() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let client = limited(PoolLimits { age_max: Duration::from_millis(1), ..PoolLimits::default() });
    for turn in 1..=3 {
        get(&client, server.url("up.example", "/"), &options()).await;
        tokio::time::sleep(Duration::from_millis(3)).await;
        assert_eq!(server.witness.connections(), turn);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_closes_its_connections() {
    let server = ScriptedServer::new(|_| ok("body")).await;
    let client = client();
    get(&client, server.url("up.example", "/"), &options()).await;
    drop(client);
    soon(server.witness.closed(1)).await;
}

/// A dropped future returns no error, so only the mark tells how far the call came.
#[tokio::test]
async fn a_dropped_call_tells_whether_its_request_departed() {
    let silent = ScriptedServer::new(|_| reply("", Behind::Hang)).await;
    let client = client();
    let plain = silent.url("up.example", "/");
    // The server reads the greeting of TLS as the start of a head, and waits for more.
    let secured = format!("https://up.example:{}/", silent.port).parse().expect("a URL");
    for (url, departed) in [(plain, true), (secured, false)] {
        let options = options();
        let request = EgressRequest::get(url);
        let sent = tokio::time::timeout(Duration::from_millis(200), client.send(&request, &options)).await;
        assert!(sent.is_err(), "the server does not answer");
        assert_eq!(options.departure.is_marked(), departed);
    }
}
