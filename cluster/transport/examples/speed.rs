//! Benchmark of the transport between two nodes over loopback with TLS: sequential and concurrent small calls, calls of
//! a mebibyte, and a stream.
//!
//! Run it with `cargo run --release -p assay-cluster-transport --example speed`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster_transport::{
    Authority, Call, Handlers, Identity, Patience, Received, Refusal, Transport, TransportConfig, new_request,
};
use assay_storage_model::{ClusterId, NodeId};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::runtime::Handle;
use uuid::Uuid;

const FOR: Duration = Duration::from_secs(3);
const MIB: usize = 1 << 20;
const TWO: NodeId = NodeId(2);

#[tokio::main]
async fn main() {
    let cluster = ClusterId(Uuid::new_v4());
    let authority = Authority::new(cluster).expect("an authority");
    let chunk = Bytes::from(vec![7; MIB]);
    let handlers = Handlers::new()
        .call("take", Arc::new(|_: Received| async { Ok::<_, Refusal>(Bytes::new()) }))
        .stream("give", Arc::new(move |_: Received| stream::repeat(Ok::<_, Refusal>(chunk.clone()))));
    let caller = start(cluster, &authority, 1, Handlers::new());
    let answerer = start(cluster, &authority, 2, handlers);
    caller.set_addresses(BTreeMap::from([(TWO, answerer.local_addr().to_string())]));
    caller.call(TWO, take(0)).await.expect("an answer");

    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < FOR {
        let sent = Instant::now();
        caller.call(TWO, take(100)).await.expect("an answer");
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    let (half, most) = (times[times.len() / 2].as_micros(), times[times.len() * 99 / 100].as_micros());
    println!(
        "small calls, one at a time: {} a second, p50 {half} us, p99 {most} us",
        times.len() / FOR.as_secs() as usize
    );
    for side_by_side in [16, 64, 256] {
        let calls = calls_in(&caller, side_by_side, 100).await;
        println!("small calls, {side_by_side} at a time: {:.0} a second", calls / FOR.as_secs_f64());
    }
    for side_by_side in [1, 4] {
        let calls = calls_in(&caller, side_by_side, MIB).await;
        println!("calls of 1 MiB, {side_by_side} at a time: {:.0} MB/s", calls * 1.048_576 / FOR.as_secs_f64());
    }
    let mut given = caller.stream(TWO, Call::new("give", Bytes::new(), FOR).in_bulk()).await.expect("a stream");
    let (begun, mut chunks) = (Instant::now(), 0.0);
    while begun.elapsed() < FOR {
        given.next().await.expect("no end").expect("a chunk");
        chunks += 1.0;
    }
    println!("a stream of chunks of 1 MiB: {:.0} MB/s", chunks * 1.048_576 / begun.elapsed().as_secs_f64());
}

fn take(bytes: usize) -> Call {
    Call::new("take", Bytes::from(vec![3; bytes]), FOR)
}

/// Number of answered calls.
async fn calls_in(caller: &Transport, side_by_side: usize, bytes: usize) -> f64 {
    let begun = Instant::now();
    let body = take(bytes);
    let callers = (0..side_by_side).map(|_| {
        let (caller, body) = (caller.clone(), body.clone());
        tokio::spawn(async move {
            let mut calls = 0;
            while begun.elapsed() < FOR {
                caller.call(TWO, body.clone()).await.expect("an answer");
                calls += 1;
            }
            calls
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.expect("no panic");
    }
    f64::from(calls)
}

fn start(cluster: ClusterId, authority: &Authority, node: u64, handlers: Handlers) -> Transport {
    let (key_pem, request) = new_request().expect("a request");
    let certificate_pem = authority.issue(NodeId(node), &request, Duration::from_secs(3600)).expect("a certificate");
    let identity = Identity { authority_pem: authority.certificate_pem().to_owned(), certificate_pem, key_pem };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let runtime = Handle::current();
    let (node, patience) = (NodeId(node), Patience::default());
    let config = TransportConfig { cluster, node, listen, identity, fault_injector: None, patience, runtime };
    Transport::start(config, handlers).expect("a transport")
}
