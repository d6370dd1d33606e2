//! Nodes of one cluster in one process, and handlers that count.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use assay_cluster_transport::{
    Authority, Call, FaultInjector, Handlers, Identity, Patience, Received, Refusal, Transport, TransportConfig,
    new_request,
};
use assay_storage_model::{ClusterId, NodeId};
use bytes::Bytes;
use tokio::runtime::Handle;
use uuid::Uuid;

/// Long enough for every operation that succeeds.
pub const AMPLE: Duration = Duration::from_secs(20);

pub struct Town {
    pub cluster: ClusterId,
    pub authority: Authority,
}

impl Town {
    pub fn new() -> Town {
        let cluster = ClusterId(Uuid::new_v4());
        Town { cluster, authority: Authority::new(cluster).expect("an authority") }
    }

    pub fn identity(&self, node: u64) -> Identity {
        identity_by(&self.authority, node, self.authority.certificate_pem())
    }

    pub fn config(&self, node: u64) -> TransportConfig {
        TransportConfig {
            cluster: self.cluster,
            node: NodeId(node),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            identity: self.identity(node),
            fault_injector: None,
            patience: Patience::default(),
            runtime: Handle::current(),
        }
    }

    pub fn start(&self, node: u64, handlers: Handlers) -> Transport {
        Transport::start(self.config(node), handlers).expect("a transport")
    }

    pub fn start_under(&self, node: u64, fault_injector: Arc<dyn FaultInjector>) -> Transport {
        let config = TransportConfig { fault_injector: Some(fault_injector), ..self.config(node) };
        Transport::start(config, Handlers::new()).expect("a transport")
    }

    /// Node 1, which calls, and node 2, which answers.
    pub fn pair(&self, handlers: Handlers) -> (Transport, Transport) {
        let (caller, answerer) = (self.start(1, Handlers::new()), self.start(2, handlers));
        tell(&caller, 2, answerer.local_addr());
        (caller, answerer)
    }
}

/// Returns a certificate by this authority, for a node that trusts `trusted_pem`.
pub fn identity_by(authority: &Authority, node: u64, trusted_pem: &str) -> Identity {
    identity_for(authority, node, trusted_pem, Duration::from_secs(3600))
}

/// Returns an identity like `identity_by`, with this validity.
pub fn identity_for(authority: &Authority, node: u64, trusted_pem: &str, valid: Duration) -> Identity {
    let (key_pem, request) = new_request().expect("a request");
    let certificate_pem = authority.issue(NodeId(node), &request, valid).expect("a certificate");
    Identity { authority_pem: trusted_pem.to_owned(), certificate_pem, key_pem }
}

/// Sets the addresses of the transport to this peer alone.
pub fn tell(transport: &Transport, node: u64, address: SocketAddr) {
    transport.set_addresses(BTreeMap::from([(NodeId(node), address.to_string())]));
}

pub fn call(service: &'static str, body: impl Into<Bytes>) -> Call {
    Call::new(service, body.into(), AMPLE)
}

/// Returns handlers that respond with the request body, and count.
pub fn echo(heard: &Arc<AtomicUsize>) -> Handlers {
    let heard = Arc::clone(heard);
    Handlers::new().call(
        "echo",
        Arc::new(move |received: Received| {
            heard.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Refusal>(received.body) }
        }),
    )
}

pub fn counter() -> Arc<AtomicUsize> {
    Arc::default()
}

pub fn count(counter: &Arc<AtomicUsize>) -> usize {
    counter.load(Ordering::SeqCst)
}

/// Waits for a while until the condition holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < AMPLE, "it never came to be: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

/// Guard that counts when it is dropped.
pub struct Dropped(pub Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
