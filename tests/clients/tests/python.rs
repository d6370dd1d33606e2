//! The Python SDK logs, merges, comments and reads back: from one node, and from three, another one at each request.
//! Where Python or the package index is out of reach this says "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_test_api::dev::Dev;
use assay_test_api::server::{Options, Server};
use assay_test_clients::proxy::Proxy;
use assay_test_clients::python::{Told, environment, not_covered, run, run_with};

/// Scripts, each with what it is told.
const SCRIPTS: [(&str, Told); 6] = [
    ("spans.py", Told::AppUrl),
    ("spans.py", Told::BothUrls),
    ("experiment.py", Told::AppUrl),
    ("dataset.py", Told::AppUrl),
    ("attachments.py", Told::AppUrl),
    ("exporter.py", Told::AppUrl),
];
/// Each node closes a connection behind its first answer, so that the next request is a connection of its own.
const ONE_REQUEST_A_CONNECTION: (&str, &str) = ("ASSAY_HTTP_KEEP_ALIVE_SECONDS", "0");
/// Until a node has closed behind its answer; it would hold on for longer if it kept connections.
const CLOSE_MAX: Duration = Duration::from_secs(20);
/// Connections that each node gets at the least: the scripts make more than a hundred requests.
const CARRIED_MIN: usize = 20;

/// With the service token of an owner, which a node's administrator made in this data directory.
fn failures(python: &Path, url: &str, key: &str, data_dir: &Path) -> String {
    let each =
        SCRIPTS.iter().filter_map(|(script, told)| run(python, script, &format!("{told:?}"), url, key, *told).err());
    let generated = service_token(data_dir).and_then(|token| {
        run_with(python, "generated.py", "generated", (url, key), &[("ASSAY_SERVICE_TOKEN", &token)])
    });
    each.chain(generated.err()).map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n\n")
}

fn service_token(data_dir: &Path) -> Result<String> {
    let place = data_dir.to_str().context("a path that is text")?;
    let words = ["admin", "create-service-account", "robot", "--organization", "default", "--data-dir", place];
    let made = assay_test_api::process::run(&words, &[], "")?.json()?;
    made["service_token"].as_str().map(str::to_owned).context("a token")
}

#[test]
fn the_python_sdk_reads_back_what_it_logged() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut server = Server::start(&Options::new(&data)).unwrap_or_else(|error| panic!("{error:#}"));
    let failures = failures(python, &server.url, &server.key, &data);
    assert!(server.lives(), "the server died:\n{}", server.log());
    assert!(failures.is_empty(), "{failures}\nthe server said:\n{}", server.log());
}

#[test]
fn the_python_sdk_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[ONE_REQUEST_A_CONNECTION]);
    let mut dev = dev.unwrap_or_else(|error| panic!("{error:#}"));
    let proxy = Proxy::start(&dev.urls).unwrap_or_else(|error| panic!("{error:#}"));
    closes_behind_an_answer(&proxy.url());
    let failures = failures(python, &proxy.url(), &dev.key, &data.join("node-1"));
    assert!(dev.lives(), "a node died:\n{}", dev.log());
    assert!(failures.is_empty(), "{failures}\nthe nodes said:\n{}", dev.log());
    let carried = proxy.carried();
    println!("requests of each node: {carried:?}");
    assert!(carried.iter().all(|count| *count >= CARRIED_MIN), "{carried:?}");
}

/// Without this the SDK would stay on the node that it began with.
fn closes_behind_an_answer(url: &str) {
    let address = url.strip_prefix("http://").expect("an http:// address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(CLOSE_MAX)).expect("a limit");
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("takes a request");
    let mut answer = String::new();
    let end = stream.read_to_string(&mut answer);
    assert!(end.is_ok() && answer.starts_with("HTTP/1.1 200"), "{end:?}: {answer}");
}

fn python() -> Option<&'static Path> {
    match environment() {
        Ok(python) => Some(python),
        Err(problem) => {
            not_covered("the Python SDK", &problem);
            None
        }
    }
}
