//! Weather: what is lost, doubled and late.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{Call, CallError, Fate, Handlers, Received, Refusal, Transport, Weather};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::town::{Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);

#[derive(Debug, Default)]
struct Set {
    fate: Mutex<Fate>,
    asked: Mutex<Vec<(NodeId, NodeId, String)>>,
}

impl Weather for Set {
    fn fate(&self, from: NodeId, to: NodeId, service: &str) -> Fate {
        self.asked.lock().push((from, to, service.to_owned()));
        *self.fate.lock()
    }
}

struct Storm {
    weather: Arc<Set>,
    heard: Arc<std::sync::atomic::AtomicUsize>,
    caller: Transport,
    _answerer: Transport,
}

impl Storm {
    fn new() -> Storm {
        let (town, heard, weather) = (Town::new(), counter(), Arc::new(Set::default()));
        let opened = Arc::clone(&heard);
        let chunks = move |_: Received| {
            opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            stream::iter([Ok::<_, Refusal>(Bytes::from_static(b"a")), Ok(Bytes::from_static(b"b"))])
        };
        let answerer = town.start(2, echo(&heard).stream("chunks", Arc::new(chunks)));
        let caller = town.start_under(1, Arc::clone(&weather) as Arc<dyn Weather>);
        tell(&caller, 2, answerer.local_addr());
        Storm { weather, heard, caller, _answerer: answerer }
    }

    /// The result, and how long it took; the first call of all makes the connection.
    async fn call(&self, fate: Fate, within: Duration) -> (Result<Bytes, CallError>, Duration) {
        *self.weather.fate.lock() = fate;
        let begun = Instant::now();
        let asked = Call { within, ..call("echo", "x") };
        (self.caller.call(TWO, asked).await, begun.elapsed())
    }
}

const SECOND: Duration = Duration::from_secs(1);
const HALF: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fair_weather_changes_nothing_and_is_asked_for_each_call() {
    let storm = Storm::new();
    assert_eq!(storm.call(Fate::default(), SECOND * 9).await.0, Ok(Bytes::from_static(b"x")));
    let read = storm.caller.stream(TWO, call("chunks", "")).await.expect("a stream").count().await;
    assert_eq!((read, count(&storm.heard)), (2, 2));
    let asked = |service: &str| (NodeId(1), TWO, service.to_owned());
    assert_eq!(*storm.weather.asked.lock(), [asked("echo"), asked("chunks")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_request_is_silence_and_nobody_heard_it() {
    let storm = Storm::new();
    let (result, took) = storm.call(Fate { lose_request: true, ..Fate::default() }, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF && took < HALF * 3, "{took:?}");
    let opened = storm.caller.stream(TWO, Call { within: HALF, ..call("chunks", "") }).await.map(|_| ());
    assert!(matches!(opened, Err(CallError::Lost(_))), "{opened:?}");
    assert_eq!(count(&storm.heard), 0);
    assert_eq!(storm.caller.counts()[&TWO].failures, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_silence_and_it_was_done() {
    let storm = Storm::new();
    let (result, took) = storm.call(Fate { lose_answer: true, ..Fate::default() }, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF, "{took:?}");
    assert_eq!(count(&storm.heard), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doubled_call_is_heard_twice_and_answered_once() {
    let storm = Storm::new();
    let (result, _) = storm.call(Fate { duplicate: true, ..Fate::default() }, SECOND * 9).await;
    assert_eq!(result, Ok(Bytes::from_static(b"x")));
    until("the double is heard", || count(&storm.heard) == 2).await;
    assert_eq!(storm.caller.counts()[&TWO].calls, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delays_before_and_after_add_up_and_count_against_the_time() {
    let storm = Storm::new();
    let delay = Duration::from_millis(200);
    let late = Fate { delay_before: delay, delay_after: delay, ..Fate::default() };
    let (result, took) = storm.call(late, SECOND * 9).await;
    assert_eq!(result, Ok(Bytes::from_static(b"x")));
    assert!(took >= delay * 2, "{took:?}");
    let too_late = Fate { delay_after: SECOND * 9, ..Fate::default() };
    let (result, took) = storm.call(too_late, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF && took < HALF * 3, "{took:?}");
    assert_eq!(count(&storm.heard), 2, "both were heard");
    let before = Fate { delay_before: SECOND * 9, ..Fate::default() };
    assert!(storm.call(before, HALF).await.0.is_err());
    assert_eq!(count(&storm.heard), 2, "this one never set out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_not_made_better_by_the_weather() {
    let town = Town::new();
    let weather = Arc::new(Set::default());
    weather.fate.lock().lose_answer = true;
    let caller = town.start_under(1, weather);
    let error = caller.call(TWO, call("echo", "x")).await.expect_err("no address");
    assert!(matches!(error, CallError::NotReached(_)), "{error}");
    let answerer = town.start(2, Handlers::new());
    tell(&caller, 2, answerer.local_addr());
    let refused = caller.call(TWO, Call { within: HALF, ..call("echo", "x") }).await;
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}
