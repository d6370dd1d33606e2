//! Tests of peers that fall silent, and of slow links.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{CallError, Handlers, Received, Refusal};
use assay_storage_model::NodeId;
use bytes::Bytes;

use crate::proxy::Proxy;
use crate::town::{Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_falls_silent_is_noticed_in_two_seconds_and_reached_when_it_is_back() {
    let town = Town::new();
    let heard = counter();
    let (caller, answerer) = town.pair(echo(&heard));
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(caller.counts()[&TWO].connected, "one that is idle answers pings");
    proxy.silence();
    let noticed = until("the silence is noticed", || !caller.counts()[&TWO].connected).await;
    assert!(noticed > Duration::from_secs(1) && noticed < Duration::from_secs(3), "{noticed:?}");
    proxy.heal();
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    assert_eq!(count(&heard), 2);
    let last_heard = caller.counts()[&TWO].last_heard.expect("it was heard");
    assert!(last_heard.elapsed() < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_under_way_when_the_peer_falls_silent_is_lost_before_its_time() {
    let town = Town::new();
    let (caller, answerer) = town.pair(echo(&counter()));
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    proxy.silence();
    let begun = Instant::now();
    let error = caller.call(TWO, call("echo", "x")).await.expect_err("silence");
    assert!(matches!(error, CallError::Lost(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Regression: a ping over a silent connection waited until that connection was closed, 2.5 s later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_shows_in_less_than_a_second_that_the_path_is_down() {
    let town = Town::new();
    let (caller, answerer) = town.pair(echo(&counter()));
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    proxy.silence();
    let calling = caller.clone();
    let call = tokio::spawn(async move { calling.call(TWO, call("echo", "x")).await });
    let noticed = until("the path is down", || !caller.answers_directly(TWO)).await;
    assert!(noticed < Duration::from_secs(1), "{noticed:?}");
    assert!(call.await.expect("ends").is_err());
}

/// Regression: a response to another call ended the observation of all calls in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_shows_that_the_path_is_down_after_others_were_answered() {
    let town = Town::new();
    let never = |_: Received| std::future::pending::<Result<Bytes, Refusal>>();
    let (caller, answerer) = town.pair(echo(&counter()).call("never", Arc::new(never)));
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    let calling = caller.clone();
    let waits = tokio::spawn(async move { calling.call(TWO, call("never", "x")).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(caller.call(TWO, call("echo", "x")).await.is_ok());
    proxy.silence();
    let noticed = until("the path is down", || !caller.answers_directly(TWO)).await;
    assert!(noticed < Duration::from_millis(1800), "{noticed:?}");
    assert!(waits.await.expect("ends").is_err());
}

/// At this rate the response to a ping is behind seconds of written bytes, and so is every other sign of life.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_slow_and_full_is_left_alone() {
    let town = Town::new();
    let take = |received: Received| async move { Ok::<_, Refusal>(received.body.len().to_string().into()) };
    let (caller, answerer) = town.pair(Handlers::new().call("take", Arc::new(take)));
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    assert!(caller.call(TWO, call("take", "x").in_bulk()).await.is_ok());
    assert!(caller.call(TWO, call("take", "x")).await.is_ok());
    // The rate is twice the minimum, so that the link is slow and not the machine.
    proxy.slow(2 << 20);
    let body = Bytes::from(vec![5; 4 << 20]);
    let begun = Instant::now();
    let calls = (0..4).map(|_| caller.call(TWO, call("take", body.clone()).in_bulk()));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer, Ok(Bytes::from(body.len().to_string())), "after {:?}", begun.elapsed());
    }
    assert!(begun.elapsed() > Duration::from_secs(5), "it was slow: {:?}", begun.elapsed());
    assert_eq!(caller.counts()[&TWO].connections_made, 2, "one of each lane");
}
