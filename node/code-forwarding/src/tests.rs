//! Calls between simulated nodes whose messages are lost or doubled, and which end at any moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assay_node_runner::interpreters::WantedVersion;
use assay_node_runner::runtimes::RuntimeKind;
use assay_node_runner::{CodeEvent, ConsoleStream, OfferedInterpreter, RunnerOffer};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::{
    ALIVE_EVERY, CodeExecutor, CodeForwarding, ExecutionRequest, ForwardedCall, ForwardingError, ForwardingPeers,
    Outcome, PeerFailure, PeerNode, PeerService, SILENCE_MAX,
};

const MINUTE: Duration = Duration::from_secs(60);
const ORIGIN: NodeId = NodeId(1);
const PYTHON: WantedVersion<'_> = WantedVersion { runtime: RuntimeKind::Python, version: "3.11", is_exact: false };
const NO_PYTHON: &str = "there is no python to run the function with";
/// Slots of a simulated executor.
const SLOTS: u64 = 8;

/// What happens to the messages of a service.
#[derive(Clone, Copy, Debug, Default)]
struct SimulatedFaults {
    /// Each message arrives twice.
    is_doubled: bool,
    /// The answers of every second message are lost.
    loses_answers: bool,
}

/// Nodes of a cluster, and the messages between them.
#[derive(Debug, Default)]
struct SimulatedNetwork {
    nodes: Mutex<BTreeMap<NodeId, CodeForwarding>>,
    output: Mutex<SimulatedFaults>,
    loses_cancels: AtomicBool,
    messages: AtomicU64,
}

/// Peers of one node.
#[derive(Debug)]
struct SimulatedPeers {
    own: NodeId,
    network: Arc<SimulatedNetwork>,
}

impl ForwardingPeers for SimulatedPeers {
    fn others(&self) -> Vec<PeerNode> {
        let nodes = self.network.nodes.lock();
        nodes.keys().filter(|node| **node != self.own).map(|node| PeerNode { node: *node, is_heard: true }).collect()
    }

    fn ask(
        &self,
        node: NodeId,
        service: PeerService,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerFailure>> {
        let (network, own) = (Arc::clone(&self.network), self.own);
        async move {
            let number = network.messages.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
            let is_cancel = service == PeerService::Call && body.windows(6).any(|word| word == b"cancel");
            if is_cancel && network.loses_cancels.load(Ordering::Relaxed) {
                return Err(PeerFailure::Unknown("lost".into()));
            }
            // A node that is not alive neither hears nor speaks.
            let reached = {
                let nodes = network.nodes.lock();
                nodes.get(&node).filter(|_| nodes.contains_key(&own)).cloned()
            };
            let reached = reached.ok_or_else(|| PeerFailure::NotDone("not reached".into()))?;
            let faults =
                if service == PeerService::Output { *network.output.lock() } else { SimulatedFaults::default() };
            if faults.is_doubled {
                let _ = reached.answer(service, own, body.clone()).await;
            }
            let answer = reached.answer(service, own, body).await.map_err(PeerFailure::NotDone);
            match faults.loses_answers && number % 2 == 0 {
                true => Err(PeerFailure::Unknown("the answer is lost".into())),
                false => answer,
            }
        }
        .boxed()
    }
}

/// Course of a simulated function.
#[derive(Clone, Debug)]
enum SimulatedCourse {
    /// Returns the request after some lines.
    Echo {
        lines: usize,
    },
    /// Returns an outcome of this many bytes.
    Large(usize),
    Refuse,
    RunOn,
}

#[derive(Debug)]
struct SimulatedExecutor {
    course: SimulatedCourse,
    started: AtomicU64,
    /// Lines that the functions wrote.
    written: Arc<AtomicU64>,
    /// Calls that have ended, in any way.
    ended: Arc<AtomicU64>,
}

/// Counts the end of a call.
struct CountedEnd(Arc<AtomicU64>);

impl Drop for CountedEnd {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl CodeExecutor for SimulatedExecutor {
    fn offer(&self) -> BoxFuture<'static, RunnerOffer> {
        let python = OfferedInterpreter { runtime: "python".into(), version: "3.11.7".into() };
        let running = self.started.load(Ordering::Relaxed) - self.ended.load(Ordering::Relaxed);
        async move { RunnerOffer { interpreters: vec![python], slots: SLOTS, running, ..RunnerOffer::default() } }
            .boxed()
    }

    fn execute(&self, call: ExecutionRequest) -> BoxFuture<'static, Outcome> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let (course, written, end) = (self.course.clone(), Arc::clone(&self.written), CountedEnd(self.ended.clone()));
        async move {
            let _end = end;
            let content = match course {
                SimulatedCourse::Echo { lines } => {
                    for line in 0..lines {
                        if let Some(events) = &call.events {
                            let _ = events.send(line_of(line)).await;
                        }
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                    call.request
                }
                SimulatedCourse::Large(bytes) => Bytes::from(vec![7; bytes]),
                SimulatedCourse::Refuse => return Outcome { is_refused: true, content: Bytes::from_static(b"busy") },
                SimulatedCourse::RunOn => std::future::pending().await,
            };
            Outcome { is_refused: false, content }
        }
        .boxed()
    }
}

fn line_of(number: usize) -> CodeEvent {
    CodeEvent::Console { stream: ConsoleStream::Stdout, message: format!("line {number}") }
}

/// Cluster of an origin without interpreters, and of executors.
struct SimulatedCluster {
    network: Arc<SimulatedNetwork>,
    origin: CodeForwarding,
    executors: Vec<Arc<SimulatedExecutor>>,
}

impl SimulatedCluster {
    fn of(courses: &[SimulatedCourse]) -> SimulatedCluster {
        let network = Arc::new(SimulatedNetwork::default());
        let join = |node: NodeId| {
            let peers = SimulatedPeers { own: node, network: Arc::clone(&network) };
            let forwarding = CodeForwarding::between(Arc::new(peers), Handle::current());
            network.nodes.lock().insert(node, forwarding.clone());
            forwarding
        };
        let origin = join(ORIGIN);
        let mut executors = Vec::new();
        for (node, course) in (2..).zip(courses) {
            let executor = Arc::new(SimulatedExecutor {
                course: course.clone(),
                started: AtomicU64::new(0),
                written: Arc::default(),
                ended: Arc::default(),
            });
            join(NodeId(node)).execute_with(Arc::clone(&executor) as Arc<dyn CodeExecutor>);
            executors.push(executor);
        }
        SimulatedCluster { network, origin, executors }
    }

    async fn call(&self, events: Option<mpsc::Sender<CodeEvent>>) -> Result<Outcome, ForwardingError> {
        self.origin.call(forwarded(events), PYTHON, NO_PYTHON).await
    }

    fn started(&self) -> u64 {
        self.executors.iter().map(|executor| executor.started.load(Ordering::Relaxed)).sum()
    }

    fn ended(&self) -> u64 {
        self.executors.iter().map(|executor| executor.ended.load(Ordering::Relaxed)).sum()
    }

    /// Waits until all started calls have ended, and returns how long it took.
    async fn all_ended(&self) -> Duration {
        let began = Instant::now();
        while self.ended() < self.started() {
            assert!(began.elapsed() < MINUTE, "a call runs on");
            sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }
}

fn forwarded(events: Option<mpsc::Sender<CodeEvent>>) -> ForwardedCall {
    ForwardedCall { request: Bytes::from_static(b"request"), time_max: MINUTE, events }
}

fn value(content: &'static [u8]) -> Result<Outcome, ForwardingError> {
    Ok(Outcome { is_refused: false, content: Bytes::from_static(content) })
}

#[tokio::test(start_paused = true)]
async fn events_and_the_outcome_arrive_once_and_in_order() {
    for faults in [
        SimulatedFaults::default(),
        SimulatedFaults { is_doubled: true, ..SimulatedFaults::default() },
        SimulatedFaults { loses_answers: true, ..SimulatedFaults::default() },
    ] {
        let cluster = SimulatedCluster::of(&[SimulatedCourse::Echo { lines: 1_000 }]);
        *cluster.network.output.lock() = faults;
        let (sender, mut events) = mpsc::channel(4);
        let reading = async {
            let mut read = Vec::new();
            while let Some(event) = events.recv().await {
                read.push(event);
            }
            read
        };
        let (outcome, read) = futures::join!(cluster.call(Some(sender)), reading);
        assert_eq!(outcome, value(b"request"), "{faults:?}");
        assert_eq!(read, (0..1_000).map(line_of).collect::<Vec<_>>(), "{faults:?}");
        let reading = cluster.origin.reading();
        assert_eq!((reading.forwarded, reading.lost, cluster.started()), (1, 0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_outcome_arrives_whole() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::Large(17 << 20)]);
    let outcome = cluster.call(None).await.expect("an outcome");
    assert!(outcome.content.len() == 17 << 20 && outcome.content.iter().all(|byte| *byte == 7));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_holds_the_function_back() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::Echo { lines: 100_000 }]);
    let (sender, mut events) = mpsc::channel(1);
    let call = cluster.call(Some(sender));
    let reading = async {
        sleep(3 * SILENCE_MAX).await;
        let written = cluster.executors[0].written.load(Ordering::Relaxed);
        assert!(written < 1_000, "{written} lines wait");
        let mut count = 0;
        while events.recv().await.is_some() {
            count += 1;
        }
        count
    };
    let (outcome, count) = futures::join!(call, reading);
    assert_eq!((outcome, count), (value(b"request"), 100_000));
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_its_caller_also_if_the_message_is_lost() {
    for is_lost in [false, true] {
        let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn]);
        cluster.network.loses_cancels.store(is_lost, Ordering::Relaxed);
        let call = cluster.call(None);
        assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err());
        let took = cluster.all_ended().await;
        assert!(took <= if is_lost { 2 * ALIVE_EVERY } else { ALIVE_EVERY / 4 }, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_its_origin() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn]);
    let call = cluster.call(None);
    let end = async {
        sleep(Duration::from_secs(5)).await;
        cluster.network.nodes.lock().remove(&ORIGIN);
        cluster.all_ended().await
    };
    let (outcome, took) = futures::join!(call, end);
    assert!(took <= SILENCE_MAX + 2 * ALIVE_EVERY, "{took:?}");
    assert!(matches!(outcome, Err(ForwardingError::Lost { node: NodeId(2), .. })), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_executor_is_told_and_the_call_is_not_repeated() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn, SimulatedCourse::RunOn]);
    let end = async {
        sleep(Duration::from_secs(5)).await;
        cluster.network.nodes.lock().remove(&NodeId(2));
    };
    let (outcome, ()) = futures::join!(cluster.call(None), end);
    let why = outcome.expect_err("lost").to_string();
    assert!(why.contains("node 2") && why.contains("may have run"), "{why}");
    assert_eq!((cluster.started(), cluster.origin.reading().lost), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_before_the_start_is_tried_on_one_other_node() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::Refuse, SimulatedCourse::Echo { lines: 0 }]);
    assert_eq!(cluster.call(None).await, value(b"request"));
    let cluster =
        SimulatedCluster::of(&[SimulatedCourse::Refuse, SimulatedCourse::Refuse, SimulatedCourse::Echo { lines: 0 }]);
    let refused = Outcome { is_refused: true, content: Bytes::from_static(b"busy") };
    assert_eq!(cluster.call(None).await, Ok(refused));
    assert_eq!(cluster.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_just_ended_is_replaced_by_another_one() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::Echo { lines: 0 }, SimulatedCourse::Echo { lines: 0 }]);
    assert_eq!(cluster.call(None).await, value(b"request"));
    // The offers of both are still known.
    cluster.network.nodes.lock().remove(&NodeId(2));
    assert_eq!(cluster.call(None).await, value(b"request"));
    assert_eq!(cluster.executors[1].started.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_idle_until_half_of_its_slots_are_taken() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn]);
    let mut calls = Vec::new();
    for count in 0..SLOTS / 2 {
        assert_eq!(cluster.origin.idle_node(PYTHON).await, Some(NodeId(2)), "{count} calls");
        let mut call = Box::pin(cluster.origin.call_on(NodeId(2), forwarded(None)));
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut call).await.is_err());
        calls.push(call);
    }
    assert_eq!(cluster.origin.idle_node(PYTHON).await, None);
    // Answers of the nodes are reused for a shorter time.
    sleep(Duration::from_secs(4)).await;
    assert_eq!(cluster.origin.idle_node(PYTHON).await, None, "by a newer answer of the node");
    calls.pop();
    assert_eq!(cluster.origin.idle_node(PYTHON).await, Some(NodeId(2)));
    let node = WantedVersion { runtime: RuntimeKind::Node, version: "20", is_exact: false };
    assert_eq!(cluster.origin.idle_node(node).await, None, "it has no such interpreter");
}

#[tokio::test(start_paused = true)]
async fn without_a_capable_node_the_error_names_each() {
    let cluster = SimulatedCluster::of(&[]);
    let why = cluster.call(None).await.expect_err("nobody").to_string();
    assert_eq!(why, "there is no python to run the function with");
    let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn]);
    let node = WantedVersion { runtime: RuntimeKind::Node, version: "20", is_exact: false };
    let why =
        cluster.origin.call(forwarded(None), node, "functions.code is off").await.expect_err("nobody").to_string();
    assert!(why.contains("This node: functions.code is off; node 2: there is no node"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_waits_for_its_calls_and_then_ends_them() {
    let cluster = SimulatedCluster::of(&[SimulatedCourse::RunOn]);
    let executor = cluster.network.nodes.lock()[&NodeId(2)].clone();
    let close = async {
        sleep(Duration::from_secs(5)).await;
        executor.close(MINUTE / 4).await;
    };
    let began = Instant::now();
    let (outcome, ()) = futures::join!(cluster.call(None), close);
    let why = outcome.expect_err("ended").to_string();
    assert!(why.contains("is stopping") && began.elapsed() < MINUTE / 2, "{why} {:?}", began.elapsed());
    assert_eq!(cluster.all_ended().await, Duration::ZERO);
    let refused = cluster.call(None).await;
    assert!(matches!(refused, Err(ForwardingError::NotTaken(_))), "{refused:?}");
}
