//! The two sides that every client is tried against: one node, and three behind a proxy that gives each request to another one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use assay_test_api::dev::Dev;
use assay_test_api::server::{Options, Server};

use crate::proxy::Proxy;

/// Each node closes a connection behind its first answer, so that the next request is a connection of its own.
const ONE_REQUEST_A_CONNECTION: (&str, &str) = ("ASSAY_HTTP_KEEP_ALIVE_SECONDS", "0");
/// Until a node has closed behind its answer; it would hold on for longer if it kept connections.
const CLOSE_MAX: Duration = Duration::from_secs(20);
/// Connections that each node gets at the least: clients make more than a hundred requests.
const CARRIED_MIN: usize = 20;

/// `failures` is told an address, a key and the data directory of a node, and says what failed.
pub fn on_one_node(failures: impl FnOnce(&str, &str, &Path) -> String) {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut server = Server::start(&Options::new(&data)).unwrap_or_else(|error| panic!("{error:#}"));
    let failures = failures(&server.url, &server.key, &data);
    assert!(server.lives(), "the server died:\n{}", server.log());
    assert!(failures.is_empty(), "{failures}\nthe server said:\n{}", server.log());
}

pub fn on_three_nodes_in_turn(failures: impl FnOnce(&str, &str, &Path) -> String) {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[ONE_REQUEST_A_CONNECTION]);
    let mut dev = dev.unwrap_or_else(|error| panic!("{error:#}"));
    let proxy = Proxy::start(&dev.urls).unwrap_or_else(|error| panic!("{error:#}"));
    closes_behind_an_answer(&proxy.url());
    let failures = failures(&proxy.url(), &dev.key, &data.join("node-1"));
    assert!(dev.lives(), "a node died:\n{}", dev.log());
    assert!(failures.is_empty(), "{failures}\nthe nodes said:\n{}", dev.log());
    let carried = proxy.carried();
    println!("requests of each node: {carried:?}");
    assert!(carried.iter().all(|count| *count >= CARRIED_MIN), "{carried:?}");
}

/// Without this a client would stay on the node that it began with.
fn closes_behind_an_answer(url: &str) {
    let address = url.strip_prefix("http://").expect("an http:// address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(CLOSE_MAX)).expect("a limit");
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("takes a request");
    let mut answer = String::new();
    let end = stream.read_to_string(&mut answer);
    assert!(end.is_ok() && answer.starts_with("HTTP/1.1 200"), "{end:?}: {answer}");
}
