//! Tests of calls: inputs of handlers, results of callers, limits, deadlines, panics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{
    Address, Call, CallError, Handlers, MESSAGE_BYTES_MAX, Received, Refusal, RefusalCode, Transport,
};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::future::join_all;
use futures::stream;
use parking_lot::Mutex;

use crate::town::{AMPLE, Dropped, Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);

fn refused(result: Result<Bytes, CallError>) -> Refusal {
    match result {
        Err(CallError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_comes_with_sender_address_and_time_and_is_answered_in_both_lanes() {
    let town = Town::new();
    let told: Arc<Mutex<Vec<Received>>> = Arc::default();
    let keep = Arc::clone(&told);
    let handler = move |received: Received| {
        keep.lock().push(received.clone());
        async move { Ok::<_, Refusal>([b"heard ", received.body.as_ref()].concat().into()) }
    };
    let (caller, _answerer) = town.pair(Handlers::new().call("raft.append", Arc::new(handler)));
    let address = Address { group: GroupId(17), from: ReplicaId(4), to: ReplicaId(u64::MAX) };
    let plain = call("raft.append", "one");
    let bulk = call("raft.append", "two").to_replica(address).in_bulk();
    assert_eq!(caller.call(TWO, plain).await, Ok(Bytes::from_static(b"heard one")));
    assert_eq!(caller.call(TWO, bulk).await, Ok(Bytes::from_static(b"heard two")));
    let for_ever = Call { within: Duration::MAX, ..call("raft.append", "three") };
    assert_eq!(caller.call(TWO, for_ever).await, Ok(Bytes::from_static(b"heard three")));
    let told = told.lock();
    assert_eq!(told.iter().map(|received| received.from).collect::<Vec<_>>(), [Some(NodeId(1)); 3]);
    assert_eq!(told.iter().map(|received| received.address).collect::<Vec<_>>(), [None, Some(address), None]);
    assert!(told[..2].iter().all(|received| received.within <= AMPLE && received.within > AMPLE / 2), "{told:?}");
    let counts = caller.counts()[&TWO];
    assert_eq!((counts.calls, counts.failures, counts.connections_made), (3, 0, 2), "a connection for each lane");
    assert!(counts.connected && counts.bytes_in > 0 && counts.bytes_out > 0 && counts.last_heard.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_arrives_whole_however_large_its_detail() {
    let town = Town::new();
    let sent = Refusal::new(RefusalCode::NotLeader, "ask node 3 – perhaps").with_detail(vec![7; 100_000].into());
    let answer = sent.clone();
    let handler = move |_: Received| std::future::ready(Err(answer.clone()));
    let (caller, _answerer) = town.pair(Handlers::new().call("ask", Arc::new(handler)));
    assert_eq!(refused(caller.call(TWO, call("ask", "")).await), sent);
    assert_eq!(caller.counts()[&TWO].failures, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_registered_later_is_reached_later() {
    let town = Town::new();
    let (caller, answerer) = town.pair(Handlers::new());
    assert_eq!(refused(caller.call(TWO, call("echo", "x")).await).code, RefusalCode::NoService);
    answerer.register(echo(&counter()));
    assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
    let as_stream = caller.stream(TWO, call("echo", "x")).await.map(|_| ());
    assert!(matches!(as_stream, Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::NoService));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_that_is_refused_before_it_is_read_leaves_the_connection_whole() {
    let town = Town::new();
    let (caller, _answerer) = town.pair(echo(&counter()));
    let body = Bytes::from(vec![1; 3 << 20]);
    for _ in 0..30 {
        assert_eq!(refused(caller.call(TWO, call("nobody", body.clone())).await).code, RefusalCode::NoService);
        assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
    }
    assert_eq!(caller.counts()[&TWO].connections_made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_body_arrives_and_a_larger_one_is_not_sent() {
    let town = Town::new();
    let heard = counter();
    let (caller, _answerer) = town.pair(echo(&heard));
    let body: Bytes = (0..MESSAGE_BYTES_MAX).map(|place| (place % 251) as u8).collect();
    let answer = caller.call(TWO, call("echo", body.clone()).in_bulk()).await.expect("the largest body");
    assert!(answer == body, "{} bytes came back, other ones", answer.len());
    let larger = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
    assert_eq!(refused(caller.call(TWO, call("echo", larger).in_bulk()).await).code, RefusalCode::BadRequest);
    assert_eq!(count(&heard), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_large_is_a_failure_of_the_handler() {
    let town = Town::new();
    let handler = |_: Received| async { Ok::<_, Refusal>(Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1])) };
    let (caller, _answerer) = town.pair(Handlers::new().call("much", Arc::new(handler)));
    let refusal = refused(caller.call(TWO, call("much", "")).await);
    assert_eq!(refusal.code, RefusalCode::Failed);
    assert!(refusal.why.contains("too large"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_time_is_over_the_call_is_lost_and_the_handler_is_let_go() {
    let town = Town::new();
    let (told, dropped) = (Arc::new(Mutex::new(None)), counter());
    let (keep, drops) = (Arc::clone(&told), Arc::clone(&dropped));
    let handler = move |received: Received| {
        *keep.lock() = Some(received.within);
        let held = Dropped(Arc::clone(&drops));
        async move {
            let _held = held;
            std::future::pending::<Result<Bytes, Refusal>>().await
        }
    };
    let (caller, _answerer) = town.pair(Handlers::new().call("never", Arc::new(handler)));
    let within = Duration::from_millis(300);
    let begun = Instant::now();
    let mut asked = call("never", "");
    asked.within = within;
    let error = caller.call(TWO, asked).await.expect_err("no answer");
    assert!(matches!(&error, CallError::Lost(_)) && error.may_have_been_done(), "{error}");
    assert!(begun.elapsed() >= within && begun.elapsed() < within * 3, "{:?}", begun.elapsed());
    let told = told.lock().expect("the handler was asked");
    assert!(told <= within && told > within / 3, "the receiver was told {told:?}");
    until("the handler is dropped", || count(&dropped) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_lets_the_handler_go() {
    let town = Town::new();
    let (begun, dropped) = (counter(), counter());
    let (begins, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let handler = move |_: Received| {
        begins.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let held = Dropped(Arc::clone(&drops));
        async move {
            let _held = held;
            std::future::pending::<Result<Bytes, Refusal>>().await
        }
    };
    let (caller, _answerer) = town.pair(Handlers::new().call("never", Arc::new(handler)));
    let asked = tokio::spawn(async move { caller.call(TWO, call("never", "")).await });
    until("the handler begins", || count(&begun) == 1).await;
    asked.abort();
    until("the handler is dropped", || count(&dropped) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_a_failure_of_that_call_alone() {
    let town = Town::new();
    let late = |_: Received| async { panic!("late panic") };
    let early = |_: Received| -> std::future::Ready<Result<Bytes, Refusal>> { panic!("early panic") };
    let handlers = echo(&counter()).call("late", Arc::new(late)).call("early", Arc::new(early));
    let (caller, _answerer) = town.pair(handlers);
    for service in ["late", "early"] {
        let refusal = refused(caller.call(TWO, call(service, "")).await);
        assert_eq!(refusal.code, RefusalCode::Failed);
        assert_eq!(refusal.why, format!("the handler panicked: {service} panic"));
    }
    assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
    assert_eq!(caller.counts()[&TWO].connections_made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_share_one_connection() {
    let town = Town::new();
    let heard = counter();
    let (caller, _answerer) = town.pair(echo(&heard));
    let calls = (0..2000u32).map(|number| {
        let caller = caller.clone();
        tokio::spawn(async move { (number, caller.call(TWO, call("echo", number.to_string())).await) })
    });
    for asked in calls.collect::<Vec<_>>() {
        let (number, answer) = asked.await.expect("no panic");
        assert_eq!(answer, Ok(Bytes::from(number.to_string())));
    }
    assert_eq!(count(&heard), 2000);
    assert_eq!(caller.counts()[&TWO].connections_made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_wait_their_turn_and_all_arrive() {
    let town = Town::new();
    let heard = counter();
    let answerer = town.start(2, echo(&heard));
    let callers: Vec<Transport> = (3..6).map(|node| town.start(node, Handlers::new())).collect();
    callers.iter().for_each(|caller| tell(caller, 2, answerer.local_addr()));
    let body = Bytes::from(vec![9; 30 << 20]);
    // The first caller sends more than one connection may carry at once, and the others a little.
    let calls = (0..24usize).map(|number| {
        let (caller, body) = (callers[number.saturating_sub(21)].clone(), body.clone());
        tokio::spawn(async move {
            let mut large = call("echo", body).in_bulk();
            large.within = AMPLE * 6;
            caller.call(TWO, large).await.map(|answer| answer.len())
        })
    });
    for asked in calls.collect::<Vec<_>>() {
        assert_eq!(asked.await.expect("no panic"), Ok(30 << 20));
    }
    assert_eq!(count(&heard), 24);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_that_give_up_leave_the_connection_whole() {
    let town = Town::new();
    let slow = |received: Received| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, Refusal>(received.body)
    };
    let handlers = echo(&counter())
        .call("slow", Arc::new(slow))
        .stream("chunks", Arc::new(|_: Received| stream::repeat(Ok::<_, Refusal>(Bytes::from(vec![1; 1 << 16])))));
    let (caller, _answerer) = town.pair(handlers);
    assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
    for round in 0..40u64 {
        let hasty = (0..100u64).map(|number| {
            let body = vec![0; if number % 10 == 0 { 1 << 18 } else { 10 }];
            let asked = caller.call(TWO, call("slow", body));
            tokio::time::timeout(Duration::from_micros((round * 100 + number) * 7), asked)
        });
        let streams = (0..30).map(|_| caller.stream(TWO, call("chunks", "")));
        let (_, opened) = tokio::join!(join_all(hasty), join_all(streams));
        assert!(opened.iter().all(Result::is_ok), "round {round}");
    }
    assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
    assert_eq!(caller.counts()[&TWO].connections_made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_on_another_runtime_is_served_alike() {
    let town = Town::new();
    let (caller, _answerer) = town.pair(echo(&counter()));
    let asked = std::thread::spawn(move || {
        let other = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let first = other.block_on(caller.call(TWO, call("echo", "x")));
        drop(other);
        (first, caller)
    });
    let (first, caller) = tokio::task::spawn_blocking(|| asked.join().expect("no panic")).await.expect("no panic");
    assert_eq!(first, Ok(Bytes::from_static(b"x")));
    assert_eq!(caller.call(TWO, call("echo", "y")).await, Ok(Bytes::from_static(b"y")));
    assert_eq!(caller.counts()[&TWO].connections_made, 1, "the connection outlives the runtime of its first caller");
}
