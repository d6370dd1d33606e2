//! Nodes that run on a directory of their own, and requests to them in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::rows::{call, knock};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Setting by which writes are sealed at the next upkeep round, which runs all the time.
pub const SEALS: (&str, &str) = ("ASSAY_STORE_SEAL_AGE_SECONDS", "0");
/// A debug build on a machine that does other things.
const SEALED_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Nodes {
    pub dev: Dev,
    dir: TempDir,
    turn: AtomicUsize,
}

impl Nodes {
    /// Starts nodes with environment variables.
    pub fn start(count: usize, settings: &[(&str, &str)]) -> Result<Nodes> {
        let dir = tempfile::tempdir()?;
        let dev = Dev::start_nodes(count, &dir.path().join("data"), settings)?;
        Ok(Nodes { dev, dir, turn: AtomicUsize::new(0) })
    }

    /// Stopped, and started again on what they have.
    pub fn again(self, settings: &[(&str, &str)]) -> Result<Nodes> {
        let Nodes { dev, dir, turn } = self;
        let count = dev.urls.len();
        let status = dev.stop()?;
        ensure!(status.success(), "the nodes ended with {status}");
        let dev = Dev::start_nodes(count, &dir.path().join("data"), settings)?;
        Ok(Nodes { dev, dir, turn })
    }

    /// Restarts like `again`, after a SIGKILL to all of them.
    pub fn again_after_a_kill(self, settings: &[(&str, &str)]) -> Result<Nodes> {
        let Nodes { dev, dir, turn } = self;
        let count = dev.urls.len();
        dev.kill_all();
        let dev = Dev::start_nodes(count, &dir.path().join("data"), settings)?;
        Ok(Nodes { dev, dir, turn })
    }

    /// Returns the address of the next node.
    pub fn url(&self) -> &str {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.dev.urls[turn % self.dev.urls.len()]
    }

    /// The JSON of a 200.
    pub fn call(&self, method: &str, target: &str, body: &Value) -> Result<Value> {
        call(self.url(), method, target, body)
    }

    /// A new project; its id.
    pub fn project(&self, name: &str) -> Result<String> {
        let made = self.call("POST", "/v1/project", &json!({"name": name}))?;
        Ok(made["id"].as_str().context("an id")?.to_owned())
    }

    /// Creates another organization besides that of the tests' key; returns the key of its owner.
    pub fn organization(&self, name: &str) -> Result<String> {
        let node = self.dir.path().join("data/node-1");
        let node = node.to_str().context("a path that is text")?;
        let owner = format!("owner@{name}.example");
        let words = ["admin", "create-organization", name, "--owner", &owner, "--data-dir", node];
        let made = run(&words, &[], "")?.json()?;
        Ok(made["api_key"].as_str().context("a key")?.to_owned())
    }

    pub fn insert(&self, project: &str, rows: &[Value]) -> Result<()> {
        insert(self.url(), project, rows)
    }

    /// Returns the response of the next node.
    pub fn ask(&self, body: &Value) -> Result<HttpResponse> {
        ask(self.url(), body)
    }

    /// The envelope of a 200.
    pub fn asked(&self, body: &Value) -> Result<Value> {
        asked(self.url(), body)
    }

    /// Waits until no node has rows that are in no segment.
    pub fn sealed(&self) -> Result<()> {
        let deadline = Instant::now() + SEALED_MAX;
        for url in &self.dev.urls {
            while gauge(url, "assay_memory_table_bytes")? + gauge(url, "assay_sealing")? > 0.0 {
                ensure!(Instant::now() < deadline, "{url} has rows in memory after {SEALED_MAX:?}");
                std::thread::sleep(POLL);
            }
            ensure!(gauge(url, "assay_segments")? > 0.0, "{url} has no segment");
        }
        Ok(())
    }
}

/// Returns the sum of all lines of a metric.
pub fn counted(url: &str, name: &str) -> Result<f64> {
    let (status, text) = knock(url, "/metrics")?;
    ensure!(status == 200, "/metrics at {url}: {status}");
    let values = text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
    values.map(|value| value.parse::<f64>().context("a number")).sum()
}

fn gauge(url: &str, name: &str) -> Result<f64> {
    let (status, text) = knock(url, "/metrics")?;
    ensure!(status == 200, "/metrics at {url}: {status}");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.with_context(|| format!("no {name} at {url}"))?.parse().context("a number")
}

pub fn request(body: &Value) -> Request {
    Request {
        method: "POST".into(),
        target: "/btql".into(),
        headers: vec![
            ("authorization".into(), format!("Bearer {}", assay_test_api::server::TEST_KEY)),
            ("content-type".into(), "application/json".into()),
        ],
        body: Some(body.to_string().into_bytes()),
        declared_length: None,
    }
}

pub fn ask(url: &str, body: &Value) -> Result<HttpResponse> {
    send(url, &request(body))
}

pub fn asked(url: &str, body: &Value) -> Result<Value> {
    let answer = ask(url, body)?;
    if answer.status != 200 {
        bail!("{url} answered {body}: {} {}", answer.status, answer.text());
    }
    serde_json::from_slice(&answer.body).context("no JSON")
}

pub fn insert(url: &str, project: &str, rows: &[Value]) -> Result<()> {
    call(url, "POST", &format!("/v1/project_logs/{project}/insert"), &json!({"events": rows})).map(drop)
}

/// `project_logs('a', 'b')`, with what follows the names.
pub fn logs(projects: &[String], shape: &str) -> String {
    let names: Vec<String> = projects.iter().map(|id| format!("'{id}'")).collect();
    format!("project_logs({}, shape => '{shape}')", names.join(", "))
}

/// Ends a failed test with its error, and the output of the nodes.
pub fn held(nodes: &Nodes, result: Result<()>) {
    result.unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", nodes.dev.log()));
}
