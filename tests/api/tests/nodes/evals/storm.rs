//! Long evaluation on three nodes, of which the one that runs it is killed twice.
//!
//! `ASSAY_EVAL_ROWS` sets the number of its rows. A report of 10,000 is in `tests/api/reports`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server};
use assay_test_providers::Fault;
use serde_json::{Value, json};

use super::fixture::{
    EGRESS, EvalProject, assert_same_means, check_rows, echo, failing, global, id_of, numbered_case, rows_at,
    scores_by_input, send_to,
};

const ROWS: usize = 2_000;
const ROWS_VARIABLE: &str = "ASSAY_EVAL_ROWS";
const SCORERS: usize = 3;
/// Every twentieth call of one scorer fails.
const FAILING_EVERY: usize = 20;
/// Rows of one insert.
const ROWS_AT_ONCE: usize = 500;
/// Time within which a run ends, for each thousand rows.
const ENDS_WITHIN: Duration = Duration::from_secs(150);
/// Time within which another node continues, which is shorter than a lease.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(100);

/// Three nodes that can be killed and started again.
struct StormNodes {
    servers: Vec<Option<Server>>,
    directory: tempfile::TempDir,
}

impl StormNodes {
    /// Founds a cluster, and starts its nodes as processes of their own.
    fn start() -> Result<StormNodes> {
        let directory = tempfile::tempdir()?;
        let status = Dev::start(&directory.path().join("data"))?.stop()?;
        ensure!(status.success(), "the cluster was not founded: {status}");
        let data = directory.path().join("data");
        let started: Result<Vec<Server>> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..NODES)
                .map(|place| {
                    let data = &data;
                    scope.spawn(move || start_node(data, place))
                })
                .collect();
            starting.into_iter().map(|node| node.join().expect("the starting thread")).collect()
        });
        Ok(StormNodes { servers: started?.into_iter().map(Some).collect(), directory })
    }

    /// Returns the address of a node that runs, other than `but`; places count from 0.
    fn url_beside(&self, but: usize) -> &str {
        let others = self.servers.iter().enumerate().filter(|(place, _)| *place != but);
        let running = others.filter_map(|(_, server)| server.as_ref()).next();
        &running.expect("a node runs").url
    }

    fn urls(&self) -> Vec<String> {
        self.servers.iter().flatten().map(|server| server.url.clone()).collect()
    }

    /// Kills a node, and starts it again.
    fn replace(&mut self, place: usize) -> Result<()> {
        self.servers[place].take().context("the node runs")?.kill()?;
        self.servers[place] = Some(start_node(&self.directory.path().join("data"), place)?);
        Ok(())
    }
}

fn start_node(data: &Path, place: usize) -> Result<Server> {
    let directory = data.join(format!("node-{}", place + 1));
    let known = std::fs::read_to_string(directory.join("NODE"))?;
    let address = known.split_ascii_whitespace().find(|word| word.starts_with("127.0.0.1:"));
    let mut options = Options::new(&directory);
    options.settings = vec![
        "http.otlp_listen=off".to_owned(),
        format!("egress.allow={EGRESS}"),
        format!("cluster.peer_address={}", address.context("the address for other nodes")?),
        format!("secrets.master_key_file={}", data.join("master.key").display()),
    ];
    Server::start(&options)
}

#[test]
#[ignore = "takes a minute; .ci/run includes it"]
fn a_long_evaluation_survives_two_kills_of_its_node() {
    let rows = std::env::var(ROWS_VARIABLE).map_or(ROWS, |text| text.parse().expect("a number of rows"));
    storm(rows).unwrap_or_else(|error| panic!("{error:#}"));
}

/// A node that is stopped gives its evaluation away, so that nothing waits for the end of its lease.
#[test]
fn a_stopped_node_hands_its_evaluation_over() {
    hand_over().unwrap_or_else(|error| panic!("{error:#}"));
}

fn hand_over() -> Result<()> {
    const ROWS: usize = 60;
    let mut nodes = StormNodes::start()?;
    let project = EvalProject::create(nodes.url_beside(0));
    let dataset = insert_rows(&project, ROWS)?;
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(400))));
    let job = begin(&nodes, &project, (&dataset, "handed-over"), 0)?;
    wait(&nodes, 0, &job, ROWS, |state| state["progress"]["done"].as_u64() > Some(4))?;
    let stopping = nodes.servers[0].take().context("the node runs")?;
    let stopping = std::thread::spawn(move || stopping.stop());
    let begun = Instant::now();
    let state = wait(&nodes, 0, &job, ROWS, |state| state["node"] != "1")?;
    ensure!(state["node"].is_string() && state["takeovers"] == 0, "{state}");
    ensure!(begun.elapsed() < HANDED_OVER_WITHIN, "it took {:?}", begun.elapsed());
    project.provider.inject_always(None);
    let state = wait(&nodes, 0, &job, ROWS, |state| state["state"] != "running")?;
    ensure!(state["state"] == "completed" && state["takeovers"] == 0, "{state}");
    check_rows(&rows_at(nodes.url_beside(0), state["experiment_id"].as_str().context("an id")?), ROWS, SCORERS);
    let status = stopping.join().expect("the stopping thread")?;
    ensure!(status.success(), "{status}");
    Ok(())
}

fn storm(rows: usize) -> Result<()> {
    let mut nodes = StormNodes::start()?;
    let mut project = EvalProject::create(nodes.url_beside(NODES));
    let dataset = insert_rows(&project, rows)?;
    let undisturbed = begin(&nodes, &project, (&dataset, "undisturbed"), 0)?;
    let undisturbed = wait(&nodes, NODES, &undisturbed, rows, |state| state["state"] != "running")?;
    ensure!(undisturbed["state"] == "completed", "{undisturbed}");
    ensure!(undisturbed["progress"]["scorer_errors"] == rows.div_ceil(FAILING_EVERY), "{undisturbed}");
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(20))));
    let job = begin(&nodes, &project, (&dataset, "disturbed"), 1)?;
    for (number, share) in [(1, 5), (2, 2)] {
        let done = rows / share;
        let state = wait(&nodes, NODES, &job, rows, |state| state["progress"]["done"].as_u64() >= Some(done as u64))?;
        ensure!(state["state"] == "running", "it ended before kill {number}: {state}");
        progress_is_known_everywhere(&nodes, &job)?;
        let place = state["node"].as_str().and_then(|node| node.parse::<usize>().ok()).context("a node")? - 1;
        nodes.replace(place)?;
        wait(&nodes, place, &job, rows, |state| state["takeovers"].as_u64() >= Some(number))?;
    }
    project.provider.inject_always(None);
    let disturbed = wait(&nodes, NODES, &job, rows, |state| state["state"] != "running")?;
    ensure!(disturbed["state"] == "completed", "{disturbed}");
    ensure!(disturbed["progress"] == undisturbed["progress"], "{disturbed}\n{undisturbed}");
    project.url = nodes.url_beside(NODES).to_owned();
    assert_same_means(&disturbed["summary"], &undisturbed["summary"]);
    let rows_of = |state: &Value| rows_at(&project.url, state["experiment_id"].as_str().expect("an id"));
    let (before, after) = (rows_of(&undisturbed), rows_of(&disturbed));
    check_rows(&before, rows, SCORERS);
    check_rows(&after, rows, SCORERS);
    assert_eq!(scores_by_input(&after), scores_by_input(&before));
    cancel_from_another_node(&nodes, &project, &dataset, rows)
}

fn insert_rows(project: &EvalProject, rows: usize) -> Result<String> {
    let dataset = call(&project.url, "POST", "/v1/dataset", &json!({"project_id": project.id, "name": "storm"}))?;
    let dataset = id_of(&dataset);
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        let events = (first..rows.min(first + ROWS_AT_ONCE)).map(|number| numbered_case(number, FAILING_EVERY));
        let body = json!({"events": events.collect::<Vec<_>>()});
        call(&project.url, "POST", &format!("/v1/dataset/{dataset}/insert"), &body)?;
    }
    Ok(dataset)
}

fn begin(nodes: &StormNodes, project: &EvalProject, (dataset, name): (&str, &str), place: usize) -> Result<String> {
    let body = json!({"project_id": project.id, "data": {"dataset_id": dataset}, "task": echo(),
        "scores": [global("ExactMatch"), global("Levenshtein"), failing()], "experiment_name": name,
        "background": true, "max_concurrency": 16});
    let answer = send_to(&nodes.urls()[place], "/v1/eval", &body);
    ensure!(answer.status == 202, "{}", answer.text());
    Ok(id_of(&serde_json::from_slice(&answer.body)?))
}

/// Waits for a state of an evaluation, which nodes other than `but` answer.
fn wait(nodes: &StormNodes, but: usize, job: &str, rows: usize, is_there: impl Fn(&Value) -> bool) -> Result<Value> {
    let deadline = Instant::now() + ENDS_WITHIN.mul_f64(rows.max(1_000) as f64 / 1_000.0);
    loop {
        let state = call(nodes.url_beside(but), "GET", &format!("/v1/eval/{job}"), &Value::Null);
        match state {
            Ok(state) if is_there(&state) => return Ok(state),
            _ if Instant::now() < deadline => std::thread::sleep(POLL),
            last => return last.and_then(|state| Err(anyhow::anyhow!("the evaluation does not get there: {state}"))),
        }
    }
}

fn progress_is_known_everywhere(nodes: &StormNodes, job: &str) -> Result<()> {
    for url in nodes.urls() {
        let state = call(&url, "GET", &format!("/v1/eval/{job}"), &Value::Null)?;
        ensure!(state["progress"]["done"].as_u64() > Some(0), "{url}: {state}");
    }
    Ok(())
}

fn cancel_from_another_node(nodes: &StormNodes, project: &EvalProject, dataset: &str, rows: usize) -> Result<()> {
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(50))));
    let job = begin(nodes, project, (dataset, "cancelled"), 0)?;
    wait(nodes, NODES, &job, rows, |state| state["progress"]["done"].as_u64() > Some(0))?;
    call(&nodes.urls()[2], "POST", &format!("/v1/eval/{job}/cancel"), &json!({}))?;
    let state = wait(nodes, NODES, &job, rows, |state| state["state"] != "running")?;
    ensure!(state["state"] == "cancelled", "{state}");
    ensure!(state["progress"]["done"].as_u64() < Some(rows as u64), "{state}");
    Ok(())
}
