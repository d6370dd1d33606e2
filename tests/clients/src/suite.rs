//! Servers for the scripts of clients, and concurrent execution of these scripts.
//!
//! A server is a single node, or several nodes behind a proxy that sends each connection to the next node.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_test_api::dev::Dev;
use assay_test_api::server::{Options, Server};

use crate::proxy::Proxy;

/// Setting that closes a connection after its first response, so that every request opens a new connection.
const ONE_REQUEST_A_CONNECTION: (&str, &str) = ("ASSAY_HTTP_KEEP_ALIVE_SECONDS", "0");
/// Time limit for a node to close a connection after its response, which a persistent connection would exceed.
const CLOSE_MAX: Duration = Duration::from_secs(20);
/// Minimum number of connections of each node. The scripts send more than a hundred requests.
const CARRIED_MIN: usize = 20;
/// Time limit for the effects of a response to become visible, chosen for a busy machine.
const VISIBLE_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Number of scripts that run concurrently, which mostly wait.
const AT_ONCE: usize = 3;

/// Addresses and credentials given to scripts.
#[derive(Debug)]
pub struct Served {
    /// Address of a node or a proxy.
    pub url: String,
    /// Addresses of all nodes.
    pub urls: Vec<String>,
    /// Addresses of the gRPC listeners for exporters, by node.
    pub otlp_urls: Vec<String>,
    pub key: String,
    /// Data directory of the first node.
    pub data_dir: PathBuf,
}

/// Run of one script, which returns its failure.
pub type Job<'a> = Box<dyn Fn() -> Result<()> + Send + Sync + 'a>;

/// Starts one node, and panics with the failures of its scripts.
pub fn on_one_node(failures: impl FnOnce(&Served) -> String) {
    on_one_node_with(&[], failures);
}

/// Starts one node with these settings, and panics with the failures of its scripts.
pub fn on_one_node_with(settings: &[&str], failures: impl FnOnce(&Served) -> String) {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().join("data");
    let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let options = Options { settings, ..Options::new(&data_dir) };
    let mut server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let (url, key) = (server.url.clone(), server.key.clone());
    let otlp_urls = Vec::from_iter(server.otlp_url.clone());
    let failures = failures(&Served { urls: vec![url.clone()], otlp_urls, url, key, data_dir });
    assert!(server.lives(), "the server died:\n{}", server.log());
    assert!(failures.is_empty(), "{failures}\nthe server said:\n{}", server.log());
}

/// Starts several nodes, and panics with the failures of their scripts.
///
/// It also panics if a node got hardly any connections.
pub fn on_nodes(nodes: usize, failures: impl FnOnce(&Served) -> String) {
    on_nodes_that_serve(nodes, CARRIED_MIN, failures);
}

/// Starts several nodes with these environment variables, and panics like [`on_nodes`].
pub fn on_nodes_with(nodes: usize, environment: &[(&str, &str)], failures: impl FnOnce(&Served) -> String) {
    on_nodes_that_carry(nodes, CARRIED_MIN, environment, failures);
}

/// Starts several nodes, and panics like [`on_nodes`] with this minimum number of connections.
pub fn on_nodes_that_serve(nodes: usize, carried_min: usize, failures: impl FnOnce(&Served) -> String) {
    on_nodes_that_carry(nodes, carried_min, &[], failures);
}

fn on_nodes_that_carry(
    nodes: usize,
    carried_min: usize,
    environment: &[(&str, &str)],
    failures: impl FnOnce(&Served) -> String,
) {
    let environment: Vec<(&str, &str)> = [ONE_REQUEST_A_CONNECTION].iter().chain(environment).copied().collect();
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_nodes(nodes, &data, &environment);
    let mut dev = dev.unwrap_or_else(|error| panic!("{error:#}"));
    let proxy = Proxy::start(&dev.urls).unwrap_or_else(|error| panic!("{error:#}"));
    closes_behind_an_answer(&proxy.url());
    let data_dir = data.join("node-1");
    let (urls, otlp_urls) = (dev.urls.clone(), dev.otlp_urls.clone());
    let failures = failures(&Served { url: proxy.url(), urls, otlp_urls, key: dev.key.clone(), data_dir });
    assert!(dev.lives(), "a node died:\n{}", dev.log());
    assert!(failures.is_empty(), "{failures}\nthe nodes said:\n{}", dev.log());
    let carried = proxy.carried();
    println!("requests of each node: {carried:?}");
    assert!(carried.iter().all(|count| *count >= carried_min), "{carried:?}");
}

/// Checks that connections are closed, because otherwise an SDK would stay on its first node.
fn closes_behind_an_answer(url: &str) {
    let address = url.strip_prefix("http://").expect("an http:// address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(CLOSE_MAX)).expect("a limit");
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("takes a request");
    let mut answer = String::new();
    let end = stream.read_to_string(&mut answer);
    assert!(end.is_ok() && answer.starts_with("HTTP/1.1 200"), "{end:?}: {answer}");
}

/// Runs all jobs, a few of them at a time, and returns the failures.
pub fn at_once(jobs: &[Job<'_>]) -> String {
    run_jobs(jobs, AT_ONCE)
}

/// Runs all jobs at the same time, and returns the failures.
pub fn all_at_once(jobs: &[Job<'_>]) -> String {
    run_jobs(jobs, jobs.len())
}

fn run_jobs(jobs: &[Job<'_>], threads: usize) -> String {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = job() {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap_or_else(PoisonError::into_inner).join("\n\n")
}

/// Returns the requirement of a test, or `None` after a message if it is unavailable.
///
/// It panics instead if `ASSAY_REQUIRE=all`.
pub fn covered<T>(what: &str, found: Result<T, String>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(problem) => {
            assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{problem}");
            // The macros would not do, because the output of a passing test is captured.
            let _ = writeln!(std::io::stderr(), "NOT COVERED: {what}: {problem}");
            None
        }
    }
}

/// Waits until an effect that continues after a response is visible.
pub fn until(what: &str, is_visible: impl Fn() -> bool) {
    let deadline = Instant::now() + VISIBLE_WITHIN;
    while !is_visible() {
        assert!(Instant::now() < deadline, "not within {VISIBLE_WITHIN:?}: {what}");
        thread::sleep(POLL);
    }
}

/// Creates a service account that is an owner, and returns its token.
pub fn service_token(data_dir: &Path) -> Result<String> {
    let place = data_dir.to_str().context("a path that is text")?;
    let words = ["admin", "create-service-account", "robot", "--organization", "default", "--data-dir", place];
    let made = assay_test_api::process::run(&words, &[], "")?.json()?;
    made["service_token"].as_str().map(str::to_owned).context("a token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_once_and_what_fails_is_said() {
        let ran = [const { AtomicUsize::new(0) }; 7];
        let ran = &ran;
        let job = |number: usize| -> Job<'_> {
            Box::new(move || {
                ran[number].fetch_add(1, Ordering::Relaxed);
                anyhow::ensure!(number % 3 != 1, "job {number} failed");
                Ok(())
            })
        };
        let failures = at_once(&(0..ran.len()).map(job).collect::<Vec<_>>());
        let mut said: Vec<&str> = failures.split("\n\n").collect();
        said.sort_unstable();
        assert_eq!(said, ["job 1 failed", "job 4 failed"]);
        assert!(ran.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{ran:?}");
    }
}
