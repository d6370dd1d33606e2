//! Tests with three nodes of which two do not reach each other, so that calls and streams go through the third.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{
    Call, CallError, CallFaults, FaultInjector, Handlers, Processes, RELAY_CALL, RELAY_DELIVER, Received, Refusal,
    RefusalCode, Transport, TransportConfig,
};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use crate::town::{Town, until};

/// Pairs of nodes. Packets from the first to the second are dropped.
#[derive(Debug, Default)]
struct Cuts(Mutex<BTreeSet<(u64, u64)>>);

impl Cuts {
    fn set(&self, cut: impl IntoIterator<Item = (u64, u64)>) {
        *self.0.lock() = cut.into_iter().collect();
    }
}

impl FaultInjector for Cuts {
    fn faults(&self, from: NodeId, to: NodeId, _service: &str) -> CallFaults {
        let cut = self.0.lock();
        let (lose_request, lose_answer) = (cut.contains(&(from.0, to.0)), cut.contains(&(to.0, from.0)));
        CallFaults { lose_request, lose_answer, ..CallFaults::default() }
    }
}

/// Returns caller and relay.
fn names(received: Received) -> Bytes {
    let name = |node: Option<NodeId>| node.map_or("nobody".to_owned(), |node| node.to_string());
    Bytes::from(format!("{} via {}", name(received.from), name(received.via)))
}

/// Returns the processes named by the call.
fn processes(received: &Received) -> Bytes {
    Bytes::from(format!("{:?} via {:?}", received.processes, received.via))
}

fn services() -> Handlers {
    let who = |received: Received| async move { Ok::<_, Refusal>(names(received)) };
    let refuse = |_: Received| async {
        Err::<Bytes, _>(Refusal::new(RefusalCode::NotLeader, "another leads").with_detail(Bytes::from_static(b"3")))
    };
    let chunks = |received: Received| stream::iter([Ok::<_, Refusal>(names(received)), Ok(Bytes::from_static(b"end"))]);
    let named = |received: Received| async move { Ok::<_, Refusal>(processes(&received)) };
    let named_in_chunks = |received: Received| stream::iter([Ok::<_, Refusal>(processes(&received))]);
    Handlers::new()
        .call("who", Arc::new(who))
        .call("refuse", Arc::new(refuse))
        .call("processes", Arc::new(named))
        .stream("chunks", Arc::new(chunks))
        .stream("processes", Arc::new(named_in_chunks))
}

fn relay_too(transport: &Transport) {
    let of = |transport: &Transport| transport.clone();
    let [on, to, on_in_chunks, to_in_chunks] = [(); 4].map(|()| of(transport));
    let handlers = Handlers::new()
        .call(RELAY_CALL, Arc::new(move |received: Received| on.pass_on(received)))
        .call(RELAY_DELIVER, Arc::new(move |received: Received| to.deliver(received)))
        .stream(RELAY_CALL, Arc::new(move |received: Received| on_in_chunks.pass_stream_on(received)))
        .stream(RELAY_DELIVER, Arc::new(move |received: Received| to_in_chunks.deliver_stream(received)));
    transport.register(handlers);
}

struct Ring {
    cuts: Arc<Cuts>,
    nodes: Vec<Transport>,
}

impl Ring {
    /// Creates the nodes; `relays` are those that support relaying.
    fn new(relays: &[u64]) -> Ring {
        let (town, cuts) = (Town::new(), Arc::new(Cuts::default()));
        let start = |node| {
            let fault_injector: Arc<dyn FaultInjector> = Arc::clone(&cuts) as _;
            let config = TransportConfig { fault_injector: Some(fault_injector), ..town.config(node) };
            let transport = Transport::start(config, services()).expect("a transport");
            if relays.contains(&node) {
                relay_too(&transport);
            }
            transport
        };
        let nodes: Vec<Transport> = (1..=3).map(start).collect();
        let addresses: BTreeMap<NodeId, String> =
            nodes.iter().map(|node| (node.node(), node.local_addr().to_string())).collect();
        for node in &nodes {
            let mut others = addresses.clone();
            others.remove(&node.node());
            node.set_addresses(others);
        }
        Ring { cuts, nodes }
    }

    fn node(&self, number: u64) -> &Transport {
        self.nodes.iter().find(|node| node.node() == NodeId(number)).expect("it is there")
    }

    async fn call(&self, from: u64, to: u64, call: Call) -> Result<String, CallError> {
        let answer = self.node(from).call(NodeId(to), call).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn who(&self, from: u64, to: u64, within: Duration) -> Result<String, CallError> {
        self.call(from, to, Call::new("who", Bytes::new(), within)).await
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_do_not_reach_each_other_call_through_a_third_and_directly_again_after_it() {
    let ring = Ring::new(&[1, 2, 3]);
    assert_eq!(ring.who(1, 2, LONG).await.as_deref(), Ok("1 via nobody"));
    for cut in [vec![(1, 2), (2, 1)], vec![(2, 1)]] {
        ring.cuts.set(cut.clone());
        // A repeatable call is sent again as soon as the path is known to be down.
        let began = Instant::now();
        let question = Call::new("who", Bytes::new(), LONG).repeatable();
        assert_eq!(ring.call(1, 2, question).await.as_deref(), Ok("1 via 3"), "{cut:?}");
        assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
        assert!(!ring.node(1).answers_directly(NodeId(2)));
        // From here on every call uses the relay at once.
        assert_eq!(ring.who(1, 2, LONG).await.as_deref(), Ok("1 via 3"), "{cut:?}");
        assert!(ring.call(2, 1, Call::new("who", Bytes::new(), LONG).repeatable()).await.is_ok());
        assert_eq!(ring.who(2, 1, LONG).await.as_deref(), Ok("2 via 3"), "{cut:?}");
        let refused = ring.call(1, 2, Call::new("refuse", Bytes::new(), LONG)).await.expect_err("refused");
        let CallError::Refused(refusal) = &refused else { panic!("{refused:?}") };
        assert_eq!((refusal.code, &refusal.detail[..]), (RefusalCode::NotLeader, &b"3"[..]), "as the receiver said it");
        let chunks = ring.node(1).stream(NodeId(2), Call::new("chunks", Bytes::new(), LONG)).await.expect("opens");
        let chunks: Vec<Bytes> = chunks.try_collect().await.expect("is whole");
        assert_eq!(chunks, ["1 via 3", "end"]);
        assert!(ring.node(1).counts()[&NodeId(2)].relayed >= 3);
        ring.cuts.set([]);
        for (from, to) in [(1, 2), (2, 1)] {
            until("it answers directly", || ring.node(from).answers_directly(NodeId(to))).await;
            assert_eq!(ring.who(from, to, LONG).await, Ok(format!("{from} via nobody")));
        }
    }
}

/// A receiver compares the processes that a call names with those of the origin and with its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relayed_call_names_the_processes_of_its_origin_and_its_receiver() {
    let ring = Ring::new(&[1, 2, 3]);
    for (cut, via) in [(vec![], None), (vec![(1, 2), (2, 1)], Some(NodeId(3)))] {
        ring.cuts.set(cut);
        for named in [None, Some(Processes { from: 7, to: None }), Some(Processes { from: u128::MAX, to: Some(8) })] {
            let call = Call { processes: named, ..Call::new("processes", Bytes::new(), LONG).repeatable() };
            let said = format!("{named:?} via {via:?}");
            assert_eq!(ring.call(1, 2, call.clone()).await, Ok(said.clone()));
            let chunks = ring.node(1).stream(NodeId(2), call).await.expect("opens");
            let chunks: Vec<Bytes> = chunks.try_collect().await.expect("is whole");
            assert_eq!(chunks, [said]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_nobody_reaches_is_not_reached_and_answers_as_soon_as_it_can() {
    let ring = Ring::new(&[1, 2, 3]);
    let all = [(1, 2), (2, 1), (3, 2), (2, 3)];
    ring.cuts.set(all);
    let short = Duration::from_millis(600);
    for _ in 0..3 {
        let error = ring.who(1, 2, short).await.expect_err("nobody reaches it");
        assert!(matches!(error, CallError::Lost(_) | CallError::NotReached(_)), "{error:?}");
    }
    ring.cuts.set([]);
    until("node 2 answers", || ring.node(1).answers_directly(NodeId(2))).await;
    assert_eq!(ring.who(1, 2, LONG).await.as_deref(), Ok("1 via nobody"));
}

/// Nodes of 0.4 treat the calls as those of an unregistered service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_do_not_know_relays_are_called_as_before() {
    for knows in [&[1, 2][..], &[1, 3]] {
        let ring = Ring::new(knows);
        ring.cuts.set([(1, 2), (2, 1)]);
        let short = Duration::from_millis(600);
        for _ in 0..3 {
            let error = ring.who(1, 2, short).await.expect_err("the path is cut");
            assert!(matches!(error, CallError::Lost(_) | CallError::NotReached(_)), "{error:?}");
        }
        ring.cuts.set([]);
        assert_eq!(ring.who(1, 3, LONG).await.as_deref(), Ok("1 via nobody"));
        assert_eq!(ring.who(1, 2, LONG).await.as_deref(), Ok("1 via nobody"));
    }
}

/// A call that is not repeatable has one outcome if the path goes down while it is in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_heard_twice_is_not_sent_again() {
    let ring = Ring::new(&[1, 2, 3]);
    ring.cuts.set([(2, 1)]);
    let began = Instant::now();
    let error = ring.who(1, 2, LONG).await.expect_err("its answer is lost");
    assert!(matches!(error, CallError::Lost(_)), "{error:?}");
    assert!(began.elapsed() < LONG / 2, "it is given up before its time is over: {:?}", began.elapsed());
    let sent_on = ring.node(1).stream(NodeId(2), Call::new("chunks", Bytes::new(), LONG)).await.expect("opens");
    assert_eq!(sent_on.count().await, 2);
}
