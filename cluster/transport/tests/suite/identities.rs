//! Tests of identities: clusters, receivers, senders, strangers, and certificates that change while a node runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use assay_cluster_transport::{
    Authority, CallError, Handlers, Identity, Received, Refusal, RefusalCode, Transport, TransportConfig, join_call,
};
use assay_storage_model::{ClusterId, NodeId};
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::raw::{self, Heard, RequestClaims};
use crate::town::{Town, call, count, counter, echo, identity_by, identity_for, tell};

const TWO: NodeId = NodeId(2);

/// Returns the true claims of node 1.
fn truth(town: &Town, body: &str) -> RequestClaims {
    RequestClaims { cluster: Some(town.cluster), from: Some(1), to: Some(2), bytes: body.len() }
}

fn node_name(town: &Town, node: u64) -> String {
    format!("node-{node}.{}.assay", town.cluster)
}

async fn say(town: &Town, to: &Transport, identity: &Identity, said: RequestClaims) -> Heard {
    let secured = raw::secure(to.local_addr(), &node_name(town, 2), identity, true).await.expect("TLS");
    raw::echo(secured, "echo", &said, "x").await
}

fn code(heard: Heard) -> RefusalCode {
    match heard {
        Heard::Refused(code, _) => code,
        other => panic!("not refused: {other:?}"),
    }
}

fn not_reached(result: Result<Bytes, CallError>) -> String {
    match result {
        Err(CallError::NotReached(why)) => why,
        other => panic!("not `NotReached`: {other:?}"),
    }
}

/// Time after which a connection that is no longer trusted is closed.
const CLOSED_MAX: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_for_another_cluster_node_or_sender_is_refused_by_its_headers() {
    let town = Town::new();
    let heard = counter();
    let answerer = town.start(2, echo(&heard));
    let one = town.identity(1);
    let truth = truth(&town, "x");
    let answered = say(&town, &answerer, &one, truth.clone()).await;
    assert_eq!(answered, Heard::Body(Bytes::from_static(b"x")), "the raw caller speaks well");
    let elsewhere = Some(ClusterId(Uuid::new_v4()));
    for (said, expected) in [
        (RequestClaims { cluster: elsewhere, ..truth.clone() }, RefusalCode::WrongCluster),
        (RequestClaims { cluster: None, ..truth.clone() }, RefusalCode::BadRequest),
        (RequestClaims { to: Some(3), ..truth.clone() }, RefusalCode::WrongReceiver),
        (RequestClaims { to: None, ..truth.clone() }, RefusalCode::WrongReceiver),
        (RequestClaims { from: Some(3), ..truth.clone() }, RefusalCode::NotAuthenticated),
        (RequestClaims { from: None, ..truth.clone() }, RefusalCode::NotAuthenticated),
        (RequestClaims { bytes: 2, ..truth.clone() }, RefusalCode::BadRequest),
        (RequestClaims { bytes: 0, ..truth.clone() }, RefusalCode::BadRequest),
        (RequestClaims { bytes: usize::MAX, ..truth.clone() }, RefusalCode::BadRequest),
    ] {
        let answered = say(&town, &answerer, &one, said.clone()).await;
        assert_eq!(code(answered), expected, "{said:?}");
    }
    let other = say(&town, &answerer, &town.identity(3), truth).await;
    assert_eq!(code(other), RefusalCode::NotAuthenticated, "node 3 says that it is node 1");
    assert_eq!(count(&heard), 1, "the handler heard the true call alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_reaches_nothing() {
    let town = Town::new();
    let heard = counter();
    let answerer = town.start(2, echo(&heard).open_call("join", Arc::new(|_: Received| async { Ok(Bytes::new()) })));
    let stranger = Authority::new(town.cluster).expect("an authority of the same cluster, says its name");
    let identity = identity_by(&stranger, 1, town.authority.certificate_pem());
    for service in ["echo", "join"] {
        // Under TLS 1.3 the caller learns of the refusal only when it reads.
        let answered = match raw::secure(answerer.local_addr(), &node_name(&town, 2), &identity, true).await {
            Ok(secured) => raw::echo(secured, service, &truth(&town, "x"), "x").await,
            Err(_) => Heard::Broken,
        };
        assert_eq!(answered, Heard::Broken);
    }
    assert_eq!(count(&heard), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_were_mixed_up_reach_nobody() {
    let town = Town::new();
    let heard = counter();
    let (caller, two, three) =
        (town.start(1, Handlers::new()), town.start(2, echo(&heard)), town.start(3, echo(&heard)));
    tell(&caller, 2, three.local_addr());
    let why = not_reached(caller.call(TWO, call("echo", "x")).await);
    assert!(why.contains(&node_name(&town, 2)), "{why}");
    assert_eq!((count(&heard), caller.counts()[&TWO].connections_made), (0, 0));
    tell(&caller, 2, two.local_addr());
    assert_eq!(caller.call(TWO, call("echo", "x")).await, Ok(Bytes::from_static(b"x")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_two_clusters_do_not_reach_each_other_not_even_under_one_authority() {
    let (town, other) = (Town::new(), Town::new());
    let heard = counter();
    let caller = town.start(1, Handlers::new());
    tell(&caller, 2, other.start(2, echo(&heard)).local_addr());
    not_reached(caller.call(TWO, call("echo", "x")).await);
    let same_authority =
        Town { cluster: town.cluster, authority: Authority::new(other.cluster).expect("an authority") };
    let refused = Transport::start(same_authority.config(1), Handlers::new());
    assert!(refused.is_err_and(|error| error.to_string().contains("does not have the name")));
    assert_eq!(count(&heard), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_reaches_open_calls_and_nothing_else() {
    let town = Town::new();
    let heard = counter();
    let told: Arc<Mutex<Vec<Option<NodeId>>>> = Arc::default();
    let keep = Arc::clone(&told);
    let join = move |received: Received| {
        keep.lock().push(received.from);
        async move { Ok::<_, Refusal>(received.body) }
    };
    let (caller, answerer) = town.pair(echo(&heard).open_call("join", Arc::new(join)));
    let (authority, address) = (town.authority.certificate_pem(), answerer.local_addr().to_string());
    let asked = |service, body: &Bytes| join_call(authority, town.cluster, &address, call(service, body.clone()));
    let token = Bytes::from_static(b"token");
    assert_eq!(asked("join", &token).await, Ok(token.clone()));
    assert_eq!(caller.call(TWO, call("join", token.clone())).await, Ok(token.clone()), "a member may ask as well");
    assert_eq!(*told.lock(), [None, Some(NodeId(1))]);
    for (service, body) in [("echo", token.clone()), ("nobody", token.clone())] {
        let refused = asked(service, &body).await;
        let is_no = |refusal: &Refusal| {
            refusal.code == RefusalCode::NotAuthenticated && !refusal.why.contains("there is no service")
        };
        assert!(matches!(&refused, Err(CallError::Refused(refusal)) if is_no(refusal)), "{refused:?}");
    }
    let much = asked("join", &Bytes::from(vec![0; 1 << 20])).await;
    assert!(matches!(&much, Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::BadRequest), "{much:?}");
    // The caller may not claim a name either.
    let secured = raw::secure(answerer.local_addr(), &node_name(&town, 2), &town.identity(1), false).await;
    let answered = raw::echo(secured.expect("TLS"), "join", &truth(&town, "x"), "x").await;
    assert_eq!(code(answered), RefusalCode::NotAuthenticated);
    assert_eq!(count(&heard), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_joins_sees_that_it_speaks_to_the_cluster_of_its_token() {
    let town = Town::new();
    let heard = counter();
    let join = Arc::clone(&heard);
    let handler = move |_: Received| {
        join.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async { Ok(Bytes::new()) }
    };
    let answerer = town.start(2, Handlers::new().open_call("join", Arc::new(handler)));
    let address = answerer.local_addr().to_string();
    let other = Authority::new(town.cluster).expect("another authority of that name");
    not_reached(join_call(other.certificate_pem(), town.cluster, &address, call("join", "")).await);
    let elsewhere = ClusterId(Uuid::new_v4());
    not_reached(join_call(town.authority.certificate_pem(), elsewhere, &address, call("join", "")).await);
    not_reached(join_call("no certificate", town.cluster, &address, call("join", "")).await);
    assert_eq!(count(&heard), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_start_with_certificates_that_nobody_would_accept() {
    let town = Town::new();
    let why = |identity: Identity| {
        let config = TransportConfig { identity, ..town.config(1) };
        Transport::start(config, Handlers::new()).expect_err("unusable").to_string()
    };
    let own = town.identity(1);
    assert!(why(town.identity(3)).contains("does not have the name node-1."));
    let other_key = town.identity(1).key_pem;
    assert!(why(Identity { key_pem: other_key.clone(), ..own.clone() }).starts_with("the node's identity"));
    let other = Authority::new(town.cluster).expect("an authority");
    why(identity_by(&other, 1, town.authority.certificate_pem()));
    why(Identity { authority_pem: String::new(), ..own.clone() });
    let transport = town.start(1, Handlers::new());
    assert!(transport.set_identity(&town.identity(3)).is_err());
    assert!(!format!("{own:?}").contains(&own.key_pem[30..60]));
    let taken = TransportConfig { listen: transport.local_addr(), ..town.config(1) };
    let error = Transport::start(taken, Handlers::new()).expect_err("the port is taken").to_string();
    assert!(error.starts_with(&format!("cannot listen on {}", transport.local_addr())), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_is_replaced_while_everyone_runs() {
    let town = Town::new();
    let (caller, answerer) = town.pair(echo(&counter()));
    let ask = async || caller.call(TWO, call("echo", "x")).await;
    let fresh = || tell(&caller, 9, answerer.local_addr());
    let again = || tell(&caller, 2, answerer.local_addr());
    assert!(ask().await.is_ok());
    let next = Authority::new(town.cluster).expect("the next authority");
    let next_alone = |node| identity_by(&next, node, next.certificate_pem());
    answerer.set_identity(&next_alone(2)).expect("a good identity");
    let since = std::time::Instant::now();
    while ask().await.is_ok() {
        let waited = since.elapsed();
        assert!(waited < CLOSED_MAX, "a connection whose certificate is not trusted any more is open after {waited:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fresh();
    again();
    assert!(not_reached(ask().await).contains("TLS"), "a new one is made with the new certificates");
    caller.set_identity(&next_alone(1)).expect("a good identity");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(ask().await.is_ok());
    let shown = raw::secure(answerer.local_addr(), &node_name(&town, 2), &next_alone(1), true).await.expect("TLS");
    assert!(shown.get_ref().1.peer_certificates().is_some_and(|chain| chain.len() == 1));
    let old = raw::secure(answerer.local_addr(), &node_name(&town, 2), &town.identity(1), true).await;
    assert!(old.is_err(), "who trusts the old authority alone is no longer content");
}

#[test]
fn an_identity_says_when_it_runs_out_and_whose_it_is() {
    let town = Town::new();
    let trusted = town.authority.certificate_pem();
    let other = Authority::new(town.cluster).expect("another authority of that name");
    for valid in [Duration::ZERO, Duration::from_secs(3600), Duration::from_secs(60 * 365 * 24 * 3600)] {
        let identity = identity_for(&town.authority, 1, trusted, valid);
        let (wanted, runs_out) = (SystemTime::now() + valid, identity.runs_out().expect("a date"));
        let wrong = wanted.duration_since(runs_out).or_else(|_| runs_out.duration_since(wanted)).expect("a difference");
        assert!(wrong < Duration::from_secs(5), "{runs_out:?}");
        assert!(identity.is_by(trusted).expect("reads") && !identity.is_by(other.certificate_pem()).expect("reads"));
    }
    let stranger = identity_by(&other, 1, trusted);
    assert!(stranger.runs_out().is_ok() && !stranger.is_by(trusted).expect("reads"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_ran_out_opens_nothing_and_the_next_one_is_taken_while_calls_go_on() {
    const VALID: Duration = Duration::from_secs(3);
    let town = Town::new();
    let trusted = town.authority.certificate_pem();
    let start = |node, handlers| {
        let identity = identity_for(&town.authority, node, trusted, VALID);
        Transport::start(TransportConfig { identity, ..town.config(node) }, handlers).expect("a transport")
    };
    let (caller, answerer) = (start(1, Handlers::new()), start(2, echo(&counter())));
    tell(&caller, 2, answerer.local_addr());
    let ask = async || caller.call(TWO, call("echo", "x")).await;
    let renewed_at = caller.identity().runs_out().expect("a date") + Duration::from_secs(1);
    while SystemTime::now() < renewed_at {
        assert!(ask().await.is_ok(), "a connection that stands, stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tell(&caller, 9, answerer.local_addr());
    tell(&caller, 2, answerer.local_addr());
    assert!(not_reached(ask().await).contains("expired"), "a new one is refused");
    for transport in [&answerer, &caller] {
        let next = town.identity(transport.node().0);
        transport.set_identity(&next).expect("a good identity");
        assert_eq!(transport.identity(), next);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(ask().await.is_ok(), "the next certificates are shown and taken");
}
