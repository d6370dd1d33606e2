//! Requests: sources of data, trials, refusals before anything is created, limits of time, and parents.

use std::time::Duration;

use assay_test_providers::Fault;
use serde_json::{Value, json};

use super::fixture::{EvalNode, EvalProject, echo, global, id_of, means, names, of_type, prompt, roots, with};

#[test]
fn evaluations_run_over_all_sources_of_data() {
    let node = EvalNode::start();
    let project = &node.project;
    inline_data(project);
    datasets(project);
    experiments(project);
    trials(project);
    parameters_and_messages(project);
    parents(project);
    failures_of_cases(project);
    refusals(project);
    time_limits(project);
}

fn inline_data(project: &EvalProject) {
    let data = json!([
        {"input": "a", "expected": "echo: a", "metadata": {"kind": 1}, "tags": ["t"]},
        {"input": "b", "expected": "other", "id": "mine"},
        "bare",
    ]);
    let request = with(
        &project.request(data, json!([global("ExactMatch")])),
        &json!({
            "experiment_name": "inline", "metadata": {"from": "test"}, "tags": ["of-run"], "is_public": false,
            "repo_info": {"commit": "c0ffee", "branch": "main"},
        }),
    );
    let summary = project.run(&request);
    assert_eq!(summary["experiment_name"], "inline");
    assert_eq!(summary["project_name"], "evaluations");
    assert_eq!(means(&summary), *json!({"ExactMatch": 1.0 / 3.0}).as_object().expect("an object"));
    let experiment = project.experiment("inline");
    let record = project.api("GET", &format!("/v1/experiment/{experiment}"), &Value::Null);
    assert_eq!((&record["metadata"], &record["commit"]), (&json!({"from": "test"}), &json!("c0ffee")));
    let rows = project.rows(&experiment);
    let roots = roots(&rows);
    assert_eq!(roots.len(), 3);
    let first = roots["a"];
    assert_eq!((&first["output"], &first["expected"]), (&json!("echo: a"), &json!("echo: a")));
    assert_eq!((&first["scores"], &first["tags"]), (&json!({"ExactMatch": 1.0}), &json!(["t"])));
    assert_eq!(first["metadata"]["kind"], 1);
    assert_eq!(roots["bare"]["scores"], json!({"ExactMatch": 0.0}));
    spans_of_a_case(&rows, first);
    // A name that exists gets a suffix.
    let again = project.run(&request)["experiment_name"].as_str().expect("a name").to_owned();
    assert!(again.starts_with("inline-") && again != "inline", "{again}");
    // The alias is the same operation.
    assert_eq!(project.send("/function/eval", &project.request(json!([1]), json!([]))).status, 200);
}

/// A case has a root, a task with its function and the model call, and a scorer.
fn spans_of_a_case(rows: &[Value], root: &Value) {
    let case: Vec<Value> = rows.iter().filter(|row| row["root_span_id"] == root["root_span_id"]).cloned().collect();
    let one = |span_type: &str| {
        let found = of_type(&case, span_type);
        assert_eq!(found.len(), 1, "{span_type}: {case:?}");
        found[0].clone()
    };
    let (task, function, model, score) = (one("task"), one("function"), one("llm"), one("score"));
    assert_eq!(task["span_parents"], json!([root["span_id"]]));
    assert_eq!(function["span_parents"], json!([task["span_id"]]));
    assert_eq!(model["span_parents"], json!([function["span_id"]]));
    assert_eq!(score["span_parents"], json!([root["span_id"]]));
    assert_eq!((&function["span_attributes"]["name"], &function["output"]), (&json!("echo"), &json!("echo: a")));
    assert_eq!(score["span_attributes"]["purpose"], "scorer");
    assert_eq!(score["scores"], json!({"ExactMatch": 1.0}));
    assert!(case.iter().all(|row| row["metrics"]["end"].is_number()), "{case:?}");
}

fn datasets(project: &EvalProject) {
    let dataset = id_of(&project.api("POST", "/v1/dataset", &json!({"project_id": project.id, "name": "questions"})));
    let insert = |events: Value| {
        project.api("POST", &format!("/v1/dataset/{dataset}/insert"), &json!({ "events": events }));
    };
    let row =
        |id: usize| json!({"id": format!("r{id}"), "input": format!("q{id}"), "expected": format!("echo: q{id}")});
    // More rows than one page has.
    insert((0..1_200).map(row).collect());
    let newest = project.api("POST", &format!("/v1/dataset/{dataset}/fetch"), &json!({"limit": 1}));
    let version = newest["events"][0]["_xact_id"].clone();
    insert(json!([{"id": "late", "input": "late"}]));
    let run = |data: Value| {
        let body = json!({"project_id": project.id, "data": data, "task": global("ValidJSON"), "scores": [],
            "max_concurrency": null});
        let name = project.run(&body)["experiment_name"].as_str().expect("a name").to_owned();
        let experiment = project.experiment(&name);
        (experiment.clone(), of_type(&project.rows(&experiment), "eval").len())
    };
    let (experiment, rows) = run(json!({"dataset_id": dataset}));
    assert_eq!(rows, 1_201);
    let record = project.api("GET", &format!("/v1/experiment/{experiment}"), &Value::Null);
    assert_eq!(record["dataset_id"], json!(dataset));
    assert!(record["dataset_version"].is_string(), "{record}");
    assert_eq!(run(json!({"project_name": "evaluations", "dataset_name": "questions"})).1, 1_201);
    assert_eq!(run(json!({"dataset_id": dataset, "dataset_version": version})).1, 1_200);
    let filter = json!({"filter": {"op": "eq", "left": {"op": "ident", "name": ["input"]},
        "right": {"op": "literal", "value": "q7"}}});
    let (experiment, rows) = run(json!({"dataset_id": dataset, "_internal_btql": filter}));
    assert_eq!(rows, 1);
    let found = project.rows(&experiment);
    let root = of_type(&found, "eval")[0];
    assert_eq!((&root["origin"]["object_id"], &root["origin"]["id"]), (&json!(dataset), &json!("r7")));
    assert_eq!(run(json!({"dataset_id": dataset, "_internal_btql": {"limit": 5}})).1, 5);
    environments(project, &dataset, &version);
}

fn environments(project: &EvalProject, dataset: &str, version: &Value) {
    project.api("POST", "/environment", &json!({"name": "Staging", "slug": "staging"}));
    let data = json!({"dataset_id": dataset, "dataset_environment": "staging", "_internal_btql": {"limit": 2_000}});
    let body = json!({"project_id": project.id, "data": data, "task": global("ValidJSON"), "scores": [],
        "max_concurrency": null});
    let (status, why) = project.refusal(&body);
    assert_eq!(status, 404, "{why}");
    let pin = json!({"environment_slug": "staging", "object_version": version});
    project.api("POST", &format!("/environment-object/dataset/{dataset}"), &pin);
    let name = project.run(&body)["experiment_name"].as_str().expect("a name").to_owned();
    assert_eq!(of_type(&project.rows(&project.experiment(&name)), "eval").len(), 1_200);
}

/// Rows of another experiment are data, and its outputs are expected.
fn experiments(project: &EvalProject) {
    let request = project.request(json!(["x", {"input": "y", "expected": "z"}]), json!([]));
    project.run(&with(&request, &json!({"experiment_name": "first"})));
    for data in [json!({"experiment_name": "first"}), json!({"experiment_id": project.experiment("first")})] {
        let body = json!({"project_id": project.id, "data": data, "task": echo(), "scores": [global("ExactMatch")]});
        let summary = project.run(&body);
        let rows = project.rows(&project.experiment(summary["experiment_name"].as_str().expect("a name")));
        let roots = roots(&rows);
        assert_eq!((&roots["x"]["expected"], &roots["x"]["scores"]["ExactMatch"]), (&json!("echo: x"), &json!(1.0)));
        assert_eq!((&roots["y"]["expected"], &roots["y"]["scores"]["ExactMatch"]), (&json!("z"), &json!(0.0)));
        assert_eq!(roots["x"]["origin"]["object_type"], "experiment");
    }
}

fn trials(project: &EvalProject) {
    let request = project.request(json!(["a", "b"]), json!([global("ValidJSON")]));
    let summary = project.run(&with(&request, &json!({"trial_count": 3, "max_concurrency": 2})));
    let rows = project.rows(&project.experiment(summary["experiment_name"].as_str().expect("a name")));
    let roots = of_type(&rows, "eval");
    assert_eq!(roots.len(), 6);
    assert_eq!(roots.iter().filter(|row| row["input"] == "a").count(), 3);
    assert_eq!(summary["statistics"]["rows"], 6);
}

fn parameters_and_messages(project: &EvalProject) {
    let task = prompt("{{parameters.word}} {{input.question}} {{expected}}", &json!({}));
    let case =
        json!([{"input": {"question": "q", "messages": [{"role": "user", "content": "last"}]}, "expected": "e"}]);
    let body = json!({"project_id": project.id, "data": {"data": case}, "task": task, "scores": [],
        "parameters": {"word": "p"}});
    let output = |more: Value| {
        let summary = project.run(&with(&body, &more));
        let rows = project.rows(&project.experiment(summary["experiment_name"].as_str().expect("a name")));
        of_type(&rows, "eval")[0]["output"].clone()
    };
    assert_eq!(output(json!({})), "echo: p q e");
    assert_eq!(output(json!({"extra_messages": "input.messages"})), "echo: last");
}

/// With a parent, no experiment is created.
fn parents(project: &EvalProject) {
    let session = json!({"project_id": project.id, "name": "playground"});
    let session = id_of(&project.api("POST", "/v1/prompt_session", &session));
    let request = project.request(json!(["a", "b"]), json!([global("ExactMatch")]));
    let parent = json!({"parent": {"object_type": "playground_logs", "object_id": session,
        "propagated_event": {"metadata": {"run": 7}}}});
    let before = project.api("GET", "/v1/experiment?limit=1000", &Value::Null)["objects"].as_array().map(Vec::len);
    let summary = project.run(&with(&request, &parent));
    assert_eq!(means(&summary), *json!({"ExactMatch": 0.0}).as_object().expect("an object"));
    let after = project.api("GET", "/v1/experiment?limit=1000", &Value::Null)["objects"].as_array().map(Vec::len);
    assert_eq!(before, after);
    let query = format!("select: * | from: playground_logs('{session}') spans | limit: 100");
    let rows = project.api("POST", "/btql", &json!({"query": query}));
    let rows = rows["data"].as_array().cloned().expect("rows");
    assert_eq!(of_type(&rows, "eval").len(), 2);
    assert!(rows.iter().all(|row| row["metadata"]["run"] == 7), "{rows:?}");
}

/// Errors of one case do not stop the run.
fn failures_of_cases(project: &EvalProject) {
    let data = json!(["ok", "fail 400", {"input": {"a": 1}, "expected": "x"}]);
    let broken = prompt("fail 400", &json!({"name": "broken", "function_type": "scorer"}));
    let scores = json!([global("ExactMatch"), global("NumericDiff"), broken]);
    let job = project.begin(&with(&project.request(data, scores), &json!({"experiment_name": "failures"})));
    let state = project.ended(job["id"].as_str().expect("an id"));
    assert_eq!(state["state"], "completed");
    assert_eq!(state["progress"]["errors"], 1);
    // Two cases have scorers, two of which fail in each.
    assert_eq!(state["progress"]["scorer_errors"], 4);
    let rows = project.rows(&project.experiment("failures"));
    let roots = roots(&rows);
    assert!(roots["fail 400"]["error"].is_string() && roots["fail 400"]["scores"].is_null(), "{}", roots["fail 400"]);
    let errors = roots["ok"]["metadata"]["scorer_errors"].as_object().expect("errors");
    assert_eq!(names(errors), ["NumericDiff", "broken"]);
    assert_eq!(roots["ok"]["scores"], json!({"ExactMatch": 0.0}));
}

/// Everything is checked before anything is created.
fn refusals(project: &EvalProject) {
    let count = || project.api("GET", "/v1/experiment?limit=1000", &Value::Null)["objects"].as_array().map(Vec::len);
    let before = count();
    let request = project.request(json!(["a"]), json!([]));
    let missing = "00000000-0000-4000-8000-00000000abcd";
    for (more, status, words) in [
        (json!({"task": {"function_id": missing}}), 404, "`task`"),
        (json!({"scores": [global("ExactMatch"), global("Unknown")]}), 404, "`scores.1`"),
        (json!({"scores": [{"project_name": "evaluations", "slug": "none"}]}), 404, "`scores.0`"),
        (json!({"data": {"dataset_id": missing}}), 404, "dataset"),
        (json!({"data": {"dataset_id": "x"}}), 400, "data.dataset_id"),
        (json!({"project_id": missing}), 404, "project"),
        (json!({"task": {"global_function": "ExactMatch", "function_type": "tool"}}), 404, "tool"),
        (json!({"scores": [prompt("x", &json!({"function_type": "tool"}))]}), 400, "tool"),
        (json!({"scores": null}), 400, "scores"),
        (json!({"trial_count": 0}), 400, "trial_count"),
        (json!({"timeout": -1}), 400, "timeout"),
        (json!({"background": 1}), 400, "background"),
        (json!({"data": {"data": [{"input": 1, "tags": 5}]}}), 400, "tags"),
        (json!({"base_experiment_name": "none"}), 400, "base experiment"),
        (json!({"task": {"inline_function": {"type": "graph", "nodes": {}, "edges": {}}}}), 400, "`task`"),
        (json!({"parent": {"object_type": "playground_logs", "object_id": missing}}), 404, "prompt_session"),
    ] {
        let (found, why) = project.refusal(&with(&request, &more));
        assert_eq!(found, status, "{more}: {why}");
        assert!(why.to_lowercase().contains(words), "{more}: {why}");
    }
    assert_eq!(count(), before);
}

/// Cases that are not done within the time of the run have an error.
fn time_limits(project: &EvalProject) {
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(700))));
    let request = project.request(json!(["a", "b", "c", "d"]), json!([]));
    let limits = json!({"timeout": 1_200, "max_concurrency": 1, "experiment_name": "late"});
    let summary = project.run(&with(&request, &limits));
    project.provider.inject_always(None);
    let rows = project.rows(&project.experiment("late"));
    let roots = of_type(&rows, "eval");
    let late = roots.iter().filter(|row| row["error"].as_str().is_some_and(|why| why.contains("time limit of 1200")));
    assert_eq!((roots.len(), late.count()), (4, 3));
    assert_eq!(summary["statistics"]["errors"], 3);
    let listed = project.api("GET", &format!("/v1/eval?project_id={}&limit=1", project.id), &Value::Null);
    assert_eq!(listed["objects"][0]["state"], "timed_out");
}
