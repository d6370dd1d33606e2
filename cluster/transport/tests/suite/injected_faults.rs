//! Tests of fault injection: lost, duplicated and late calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{Call, CallError, CallFaults, FaultInjector, Handlers, Received, Refusal, Transport};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::town::{Town, call, count, counter, echo, tell, until};

const TWO: NodeId = NodeId(2);

#[derive(Debug, Default)]
struct FixedFaults {
    faults: Mutex<CallFaults>,
    asked: Mutex<Vec<(NodeId, NodeId, String)>>,
}

impl FaultInjector for FixedFaults {
    fn faults(&self, from: NodeId, to: NodeId, service: &str) -> CallFaults {
        self.asked.lock().push((from, to, service.to_owned()));
        *self.faults.lock()
    }
}

struct FaultyPair {
    fault_injector: Arc<FixedFaults>,
    heard: Arc<std::sync::atomic::AtomicUsize>,
    caller: Transport,
    _answerer: Transport,
}

impl FaultyPair {
    fn new() -> FaultyPair {
        let (town, heard, fault_injector) = (Town::new(), counter(), Arc::new(FixedFaults::default()));
        let opened = Arc::clone(&heard);
        let chunks = move |_: Received| {
            opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            stream::iter([Ok::<_, Refusal>(Bytes::from_static(b"a")), Ok(Bytes::from_static(b"b"))])
        };
        let answerer = town.start(2, echo(&heard).stream("chunks", Arc::new(chunks)));
        let caller = town.start_under(1, Arc::clone(&fault_injector) as Arc<dyn FaultInjector>);
        tell(&caller, 2, answerer.local_addr());
        FaultyPair { fault_injector, heard, caller, _answerer: answerer }
    }

    /// Returns the result and its duration. The first call makes the connection.
    async fn call(&self, faults: CallFaults, within: Duration) -> (Result<Bytes, CallError>, Duration) {
        *self.fault_injector.faults.lock() = faults;
        let begun = Instant::now();
        let asked = Call { within, ..call("echo", "x") };
        (self.caller.call(TWO, asked).await, begun.elapsed())
    }
}

const SECOND: Duration = Duration::from_secs(1);
const HALF: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fair_weather_changes_nothing_and_is_asked_for_each_call() {
    let pair = FaultyPair::new();
    assert_eq!(pair.call(CallFaults::default(), SECOND * 9).await.0, Ok(Bytes::from_static(b"x")));
    let read = pair.caller.stream(TWO, call("chunks", "")).await.expect("a stream").count().await;
    assert_eq!((read, count(&pair.heard)), (2, 2));
    let asked = |service: &str| (NodeId(1), TWO, service.to_owned());
    assert_eq!(*pair.fault_injector.asked.lock(), [asked("echo"), asked("chunks")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_request_is_silence_and_nobody_heard_it() {
    let pair = FaultyPair::new();
    let (result, took) = pair.call(CallFaults { lose_request: true, ..CallFaults::default() }, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF && took < HALF * 3, "{took:?}");
    let opened = pair.caller.stream(TWO, Call { within: HALF, ..call("chunks", "") }).await.map(|_| ());
    assert!(matches!(opened, Err(CallError::Lost(_))), "{opened:?}");
    assert_eq!(count(&pair.heard), 0);
    assert_eq!(pair.caller.counts()[&TWO].failures, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_silence_and_it_was_done() {
    let pair = FaultyPair::new();
    let (result, took) = pair.call(CallFaults { lose_answer: true, ..CallFaults::default() }, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF, "{took:?}");
    assert_eq!(count(&pair.heard), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doubled_call_is_heard_twice_and_answered_once() {
    let pair = FaultyPair::new();
    let (result, _) = pair.call(CallFaults { duplicate: true, ..CallFaults::default() }, SECOND * 9).await;
    assert_eq!(result, Ok(Bytes::from_static(b"x")));
    until("the double is heard", || count(&pair.heard) == 2).await;
    assert_eq!(pair.caller.counts()[&TWO].calls, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delays_before_and_after_add_up_and_count_against_the_time() {
    let pair = FaultyPair::new();
    let delay = Duration::from_millis(200);
    let late = CallFaults { delay_before: delay, delay_after: delay, ..CallFaults::default() };
    let (result, took) = pair.call(late, SECOND * 9).await;
    assert_eq!(result, Ok(Bytes::from_static(b"x")));
    assert!(took >= delay * 2, "{took:?}");
    let too_late = CallFaults { delay_after: SECOND * 9, ..CallFaults::default() };
    let (result, took) = pair.call(too_late, HALF).await;
    assert!(matches!(result, Err(CallError::Lost(_))), "{result:?}");
    assert!(took >= HALF && took < HALF * 3, "{took:?}");
    assert_eq!(count(&pair.heard), 2, "both were heard");
    let before = CallFaults { delay_before: SECOND * 9, ..CallFaults::default() };
    assert!(pair.call(before, HALF).await.0.is_err());
    assert_eq!(count(&pair.heard), 2, "this one never set out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_not_made_better_by_the_weather() {
    let town = Town::new();
    let fault_injector = Arc::new(FixedFaults::default());
    fault_injector.faults.lock().lose_answer = true;
    let caller = town.start_under(1, fault_injector);
    let error = caller.call(TWO, call("echo", "x")).await.expect_err("no address");
    assert!(matches!(error, CallError::NotReached(_)), "{error}");
    let answerer = town.start(2, Handlers::new());
    tell(&caller, 2, answerer.local_addr());
    let refused = caller.call(TWO, Call { within: HALF, ..call("echo", "x") }).await;
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}
