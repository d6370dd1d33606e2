//! Evaluations on three nodes: any node answers for them, and others continue those of a node that is gone.

use std::time::Duration;

use assay_test_api::rows::call;
use assay_test_providers::Fault;
use serde_json::{Value, json};

use super::fixture::{
    EvalCluster, assert_same_means, check_rows, failing, global, numbered_case, rows_at, scores_by_input, send_to, with,
};

const CASES: usize = 60;

#[test]
fn an_evaluation_outlives_its_node() {
    let cluster = EvalCluster::start();
    every_node_answers(&cluster);
    a_killed_node_is_replaced(&cluster);
}

fn data() -> Value {
    (0..CASES).map(|number| numbered_case(number, 10)).collect()
}

fn scores() -> Value {
    json!([global("ExactMatch"), global("Levenshtein"), failing()])
}

/// Starts an evaluation in the background at a node, and returns its id.
fn begin(cluster: &EvalCluster, place: usize, name: &str, more: &Value) -> String {
    let request =
        with(&cluster.project.request(data(), scores()), &json!({"experiment_name": name, "background": true}));
    let answer = send_to(&cluster.nodes.urls[place], "/v1/eval", &with(&request, more));
    assert_eq!(answer.status, 202, "{}", answer.text());
    let job: Value = serde_json::from_slice(&answer.body).expect("JSON");
    job["id"].as_str().expect("an id").to_owned()
}

fn every_node_answers(cluster: &EvalCluster) {
    let provider = &cluster.project.provider;
    provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(200))));
    let job = begin(cluster, 0, "watched", &json!({"max_concurrency": 2}));
    for url in &cluster.nodes.urls {
        let state = call(url, "GET", &format!("/v1/eval/{job}"), &Value::Null).expect("a state");
        assert_eq!((&state["state"], &state["node"]), (&json!("running"), &json!("1")), "{state}");
        let listed = call(url, "GET", &format!("/v1/eval?project_id={}", cluster.project.id), &Value::Null);
        assert_eq!(listed.expect("a list")["objects"][0]["id"], json!(job));
    }
    // A node that does not run it cancels it.
    let cancelled = call(&cluster.nodes.urls[1], "POST", &format!("/v1/eval/{job}/cancel"), &json!({}));
    assert_eq!(cancelled.expect("a state")["is_cancelled"], true);
    provider.inject_always(None);
    let state = ended(cluster, &job);
    assert_eq!(state["state"], "cancelled", "{state}");
    assert!(state["progress"]["done"].as_u64() < Some(CASES as u64), "{state}");
}

fn ended(cluster: &EvalCluster, job: &str) -> Value {
    loop {
        let state = cluster.state_at(1, job);
        if state["state"] != "running" {
            return state;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn a_killed_node_is_replaced(cluster: &EvalCluster) {
    let job = begin(cluster, 1, "undisturbed", &json!({}));
    let undisturbed = ended(cluster, &job);
    assert_eq!(undisturbed["state"], "completed", "{undisturbed}");
    cluster.project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(200))));
    let job = begin(cluster, 0, "disturbed", &json!({"max_concurrency": 4}));
    while cluster.state_at(1, &job)["progress"]["done"].as_u64() < Some(5) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let node = cluster.node_of(&job);
    assert_eq!(node, 1);
    cluster.nodes.kill(node).expect("a killed node");
    cluster.project.provider.inject_always(None);
    let disturbed = ended(cluster, &job);
    assert_eq!((&disturbed["state"], &disturbed["takeovers"]), (&json!("completed"), &json!(1)), "{disturbed}");
    assert_ne!(disturbed["node"], json!("1"));
    assert_eq!(disturbed["progress"], undisturbed["progress"]);
    assert_same_means(&disturbed["summary"], &undisturbed["summary"]);
    let rows = rows_at(&cluster.nodes.urls[1], disturbed["experiment_id"].as_str().expect("an id"));
    let before = rows_at(&cluster.nodes.urls[1], undisturbed["experiment_id"].as_str().expect("an id"));
    check_rows(&rows, CASES, 3);
    assert_eq!(undisturbed["progress"]["scorer_errors"], CASES / 10);
    assert_eq!(scores_by_input(&rows), scores_by_input(&before));
}
