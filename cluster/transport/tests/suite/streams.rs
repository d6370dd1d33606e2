//! Tests of streams: order, explicit ends, refusals, and a slow reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_cluster_transport::{Call, CallError, Handlers, Received, Refusal, RefusalCode};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, stream};

use crate::proxy::Proxy;
use crate::town::{Dropped, Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);
const CHUNK: usize = 256 << 10;

fn chunk(number: usize) -> Bytes {
    Bytes::from(vec![number as u8; CHUNK])
}

/// Returns as many chunks as the body requests.
fn chunks(received: Received) -> impl futures::Stream<Item = Result<Bytes, Refusal>> + Send + 'static {
    let number: usize = String::from_utf8_lossy(&received.body).parse().expect("a number");
    stream::iter((0..number).map(|number| Ok(chunk(number))))
}

fn chunks_service() -> Handlers {
    Handlers::new().stream("chunks", Arc::new(chunks))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_arrive_in_order_and_the_end_is_said() {
    let town = Town::new();
    let (caller, _answerer) = town.pair(chunks_service());
    for number in [0, 1, 100] {
        let opened = caller.stream(TWO, call("chunks", number.to_string()).in_bulk()).await.expect("a stream");
        let read: Vec<Result<Bytes, CallError>> = opened.collect().await;
        assert_eq!(read.len(), number);
        assert!(read.iter().enumerate().all(|(number, read)| read.as_ref() == Ok(&chunk(number))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_at_once_is_seen_at_the_opening_and_a_later_one_is_the_last_item() {
    let town = Town::new();
    let handler = |received: Received| {
        let after = received.body.len();
        let refusal = Refusal::new(RefusalCode::NotHere, "gone").with_detail(Bytes::from_static(b"!"));
        stream::iter((0..after).map(|number| Ok(chunk(number))).chain([Err(refusal), Ok(chunk(0))]))
    };
    let (caller, _answerer) = town.pair(Handlers::new().stream("breaks", Arc::new(handler)));
    let refusal = Refusal::new(RefusalCode::NotHere, "gone").with_detail(Bytes::from_static(b"!"));
    let opened = caller.stream(TWO, call("breaks", "")).await.map(|_| ());
    assert_eq!(opened, Err(CallError::Refused(refusal.clone())));
    let opened = caller.stream(TWO, call("breaks", "xxx")).await.expect("a stream");
    let read: Vec<_> = opened.collect().await;
    assert_eq!(read.len(), 4, "nothing comes behind the refusal");
    assert_eq!(read[3], Err(CallError::Refused(refusal)));
    let unknown = caller.stream(TWO, call("nobody", "")).await.map(|_| ());
    assert!(matches!(unknown, Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::NoService));
    assert_eq!(caller.counts()[&TWO].failures, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_the_middle_is_the_last_item() {
    let town = Town::new();
    let handler =
        |_: Received| stream::iter(0..9).map(|number| if number < 2 { Ok(chunk(number)) } else { panic!("no more") });
    let early = |_: Received| -> stream::Empty<Result<Bytes, Refusal>> { panic!("none at all") };
    let handlers = Handlers::new().stream("panics", Arc::new(handler)).stream("early", Arc::new(early));
    let (caller, _answerer) = town.pair(handlers);
    let read: Vec<_> = caller.stream(TWO, call("panics", "")).await.expect("a stream").collect().await;
    assert_eq!(read.len(), 3);
    let failed = |why: &str| CallError::Refused(Refusal::new(RefusalCode::Failed, why));
    assert_eq!(read[2], Err(failed("the handler panicked: no more")));
    let opened = caller.stream(TWO, call("early", "")).await.map(|_| ());
    assert_eq!(opened, Err(failed("the handler panicked: none at all")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_does_not_read_holds_the_sender_back() {
    const ALL: usize = 400;
    let town = Town::new();
    let made = counter();
    let makes = Arc::clone(&made);
    let handler = move |_: Received| {
        let makes = Arc::clone(&makes);
        stream::iter((0..ALL).map(move |number| {
            makes.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Refusal>(chunk(number))
        }))
    };
    let (caller, _answerer) = town.pair(Handlers::new().stream("file", Arc::new(handler)));
    let mut opened = caller.stream(TWO, call("file", "").in_bulk()).await.expect("a stream");
    assert_eq!(opened.next().await, Some(Ok(chunk(0))));
    tokio::time::sleep(Duration::from_millis(700)).await;
    let ahead = count(&made);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(count(&made), ahead, "the sender stands still");
    assert!(ahead * CHUNK <= 8 << 20, "{ahead} of {ALL} chunks were made for a reader of one");
    let read = opened.fold(1, |read, item| async move { read + usize::from(item.is_ok()) }).await;
    assert_eq!((read, count(&made)), (ALL, ALL), "and goes on when it is read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_reads_leave_calls_beside_them_alone() {
    let town = Town::new();
    let (caller, _answerer) = town.pair(echo(&counter()).stream("chunks", Arc::new(chunks)));
    let unread = (0..64).map(|_| caller.stream(TWO, call("chunks", "20").in_bulk()));
    let unread: Vec<_> = futures::future::join_all(unread).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for beside in [call("echo", "x"), call("echo", vec![1; 3 << 20]).in_bulk()] {
        let body = beside.body.clone();
        assert_eq!(caller.call(TWO, beside).await, Ok(body));
    }
    let one_more = Call { within: Duration::from_millis(200), ..call("chunks", "20").in_bulk() };
    let error = caller.stream(TWO, one_more).await.map(|_| ()).expect_err("there are enough");
    assert!(matches!(error, CallError::NotReached(_)), "it waited its turn here: {error}");
    for stream in unread {
        assert_eq!(stream.expect("a stream").count().await, 20);
    }
    assert_eq!(caller.counts()[&TWO].connections_made, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_that_does_not_come_in_time_loses_the_stream() {
    let town = Town::new();
    let dropped = counter();
    let drops = Arc::clone(&dropped);
    let handler = move |received: Received| {
        assert_eq!(received.within, Duration::from_millis(300), "the time is for each chunk");
        let held = Dropped(Arc::clone(&drops));
        // Four chunks come in time, although together they take longer than one may. Then none comes.
        stream::unfold((0, held), |(number, held)| async move {
            let pause = if number < 4 { 150 } else { 60_000 };
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Some((Ok::<_, Refusal>(chunk(number)), (number + 1, held)))
        })
    };
    let (caller, _answerer) = town.pair(Handlers::new().stream("slow", Arc::new(handler)));
    let mut asked = call("slow", "");
    asked.within = Duration::from_millis(300);
    let read: Vec<_> = caller.stream(TWO, asked).await.expect("a stream").collect().await;
    assert_eq!(read.len(), 5);
    assert!(matches!(read[4], Err(CallError::Lost(_))), "{:?}", read[4]);
    until("the handler's stream is dropped", || count(&dropped) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_leaves_lets_the_sender_go() {
    let town = Town::new();
    let dropped = counter();
    let drops = Arc::clone(&dropped);
    let handler = move |_: Received| {
        let held = Dropped(Arc::clone(&drops));
        stream::unfold(held, |held| async move { Some((Ok::<_, Refusal>(chunk(1)), held)) })
    };
    let (caller, _answerer) = town.pair(Handlers::new().stream("endless", Arc::new(handler)));
    let mut opened = caller.stream(TWO, call("endless", "")).await.expect("a stream");
    assert!(opened.next().await.is_some_and(|first| first.is_ok()));
    drop(opened);
    until("the handler's stream is dropped", || count(&dropped) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_connection_breaks_is_lost_and_never_seems_whole() {
    let town = Town::new();
    let (caller, answerer) = town.pair(chunks_service());
    let proxy = Proxy::start(answerer.local_addr()).await;
    tell(&caller, 2, proxy.address());
    let mut opened = caller.stream(TWO, call("chunks", "400").in_bulk()).await.expect("a stream");
    assert_eq!(opened.next().await, Some(Ok(chunk(0))));
    proxy.cut();
    let read: Vec<_> = opened.collect().await;
    assert!(read.len() < 400 - 1, "{} chunks went around the cut", read.len());
    assert!(matches!(read.last(), Some(Err(CallError::Lost(_)))), "{:?}", read.last());
}
