//! Tests of peers that are down, come back, move, and stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{
    CallError, Handlers, Received, Refusal, RefusalCode, SHUTDOWN_WITHIN, Transport, TransportConfig,
};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, stream};

use crate::town::{AMPLE, Dropped, Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);

fn start_at(town: &Town, listen: SocketAddr, handlers: Handlers) -> Transport {
    Transport::start(TransportConfig { listen, ..town.config(2) }, handlers).expect("the port is free")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_down_is_not_reached_at_once_and_one_that_returns_is_reached_soon() {
    let town = Town::new();
    let heard = counter();
    let (caller, answerer) = town.pair(echo(&heard));
    let listen = answerer.local_addr();
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    answerer.shutdown().await;
    for _ in 0..20 {
        let begun = Instant::now();
        let error = caller.call(TWO, call("echo", "x")).await.expect_err("nobody is there");
        assert!(matches!(error, CallError::NotReached(_)) && !error.may_have_been_done(), "{error}");
        assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    }
    let counts = caller.counts()[&TWO];
    assert_eq!((counts.failures, counts.connected, counts.connections_made), (20, false, 1));
    let _again = start_at(&town, listen, echo(&heard));
    let begun = Instant::now();
    while caller.call(TWO, call("echo", "x")).await.is_err() {
        assert!(begun.elapsed() < AMPLE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begun.elapsed() < Duration::from_millis(1000), "reached again after {:?}", begun.elapsed());
    assert_eq!(count(&heard), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_without_an_address_is_not_reached() {
    let town = Town::new();
    let caller = town.start(1, Handlers::new());
    let error = caller.call(TWO, call("echo", "x")).await.expect_err("no address");
    assert_eq!(error, CallError::NotReached("node 2 has no known address".into()));
    let nobody = std::collections::BTreeMap::from([(TWO, "no such host.invalid:1".to_owned())]);
    caller.set_addresses(nobody);
    let error = caller.call(TWO, call("echo", "x")).await.expect_err("no such host");
    assert!(matches!(error, CallError::NotReached(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_accepts_and_says_nothing_is_not_reached_within_a_second() {
    let town = Town::new();
    let caller = town.start(1, Handlers::new());
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    tell(&caller, 2, mute.local_addr().expect("bound"));
    let begun = Instant::now();
    let asked = (0..50).map(|_| caller.call(TWO, call("echo", "x")));
    for answer in futures::future::join_all(asked).await {
        assert!(matches!(answer, Err(CallError::NotReached(_))), "{answer:?}");
    }
    assert!(begun.elapsed() < Duration::from_millis(1800), "all share one attempt: {:?}", begun.elapsed());
    let mut short = call("echo", "x");
    short.within = Duration::from_millis(30);
    tokio::time::sleep(Duration::from_millis(250)).await;
    let begun = Instant::now();
    let error = caller.call(TWO, short).await.expect_err("no time");
    assert!(matches!(error, CallError::NotReached(_)), "nothing was sent: {error}");
    assert!(begun.elapsed() < Duration::from_millis(300), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_moved_is_asked_at_its_new_address_and_the_old_connection_goes() {
    let town = Town::new();
    let (before, after) = (counter(), counter());
    let (caller, old) = town.pair(echo(&before));
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    let new = town.start(2, echo(&after));
    tell(&caller, 2, new.local_addr());
    assert!(!caller.counts()[&TWO].connected, "the old connection is let go");
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    tell(&caller, 2, new.local_addr());
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    assert_eq!((count(&before), count(&after)), (1, 2));
    let counts = caller.counts()[&TWO];
    assert_eq!((counts.calls, counts.connections_made), (3, 2), "counts stay with the peer");
    let begun = Instant::now();
    old.shutdown().await;
    assert!(begun.elapsed() < Duration::from_millis(400), "nobody is connected to it: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_ends_what_is_under_way_takes_nothing_new_and_frees_its_port() {
    let town = Town::new();
    let begun = counter();
    let begins = Arc::clone(&begun);
    let slow = move |_: Received| {
        begins.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            Ok::<_, Refusal>(Bytes::from_static(b"done"))
        }
    };
    let (caller, answerer) = town.pair(echo(&counter()).call("slow", Arc::new(slow)));
    let listen = answerer.local_addr();
    let asked = tokio::spawn({
        let caller = caller.clone();
        async move { caller.call(TWO, call("slow", "")).await }
    });
    until("the call is under way", || count(&begun) == 1).await;
    let stopping = tokio::spawn({
        let answerer = answerer.clone();
        async move { answerer.shutdown().await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let late = caller.call(TWO, call("echo", "x")).await;
    assert!(matches!(&late, Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::Unavailable), "{late:?}");
    let own = answerer.call(TWO, call("echo", "x")).await;
    assert!(matches!(&own, Err(CallError::NotReached(_))), "{own:?}");
    assert_eq!(asked.await.expect("no panic"), Ok(Bytes::from_static(b"done")));
    stopping.await.expect("no panic");
    let again = start_at(&town, listen, Handlers::new());
    assert_eq!(again.local_addr(), listen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_lets_go_of_its_handlers_and_of_streams_that_do_not_end() {
    let town = Town::new();
    let (held, stream_held) = (counter(), counter());
    let (drops, stream_drops) = (Dropped(Arc::clone(&held)), Arc::clone(&stream_held));
    let handler = move |received: Received| {
        let _held = &drops;
        async move { Ok::<_, Refusal>(received.body) }
    };
    let endless = move |_: Received| {
        let held = Dropped(Arc::clone(&stream_drops));
        stream::unfold(held, |held| async move { Some((Ok::<_, Refusal>(Bytes::from_static(b"x")), held)) })
    };
    let handlers = Handlers::new().call("held", Arc::new(handler)).stream("endless", Arc::new(endless));
    let (caller, answerer) = town.pair(handlers);
    assert!(caller.call(TWO, call("held", "x")).await.is_ok());
    let mut opened = caller.stream(TWO, call("endless", "")).await.expect("a stream");
    assert!(opened.next().await.is_some_and(|first| first.is_ok()));
    let begun = Instant::now();
    answerer.shutdown().await;
    assert!(begun.elapsed() < SHUTDOWN_WITHIN + Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(count(&held), 1, "the handler is dropped");
    until("the stream is dropped", || count(&stream_held) == 1).await;
    let rest: Vec<_> = opened.collect().await;
    assert!(matches!(rest.last(), Some(Err(CallError::Lost(_)))), "it does not seem whole: {:?}", rest.last());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_last_handle_is_dropped_listens_no_longer() {
    let town = Town::new();
    let (caller, answerer) = town.pair(echo(&counter()));
    let listen = answerer.local_addr();
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    drop(answerer);
    until("the port is free", || std::net::TcpListener::bind(listen).is_ok()).await;
    until("the connection is gone", || !caller.counts()[&TWO].connected).await;
}
