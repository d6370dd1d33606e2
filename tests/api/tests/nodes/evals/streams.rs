//! Streams of events, clients that leave, cancels, and evaluations in the background.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use assay_test_api::http::{Request, request_bytes, send};
use assay_test_api::rows::call;
use assay_test_api::server::TEST_KEY;
use assay_test_providers::Fault;
use serde_json::{Value, json};

use super::fixture::{EvalNode, EvalProject, global, means, names, of_type, send_as, with};

#[test]
fn clients_follow_an_evaluation_or_leave_it() {
    let node = EvalNode::start();
    let project = &node.project;
    events(project);
    failing_streams(project);
    clients_that_leave(project);
    background(project);
    credentials_that_end(project);
    reports(project);
}

/// Events of a text, each with its data.
fn events_of(text: &str) -> Vec<(String, String)> {
    let event = |block: &str| {
        let mut lines = block.lines();
        let name = lines.next()?.strip_prefix("event: ")?;
        Some((name.to_owned(), lines.next()?.strip_prefix("data: ").unwrap_or_default().to_owned()))
    };
    text.split("\n\n").filter_map(event).collect()
}

fn events(project: &EvalProject) {
    let request = project.request(json!(["a", {"b": 1}]), json!([global("ExactMatch")]));
    let answer = project.send("/v1/eval", &with(&request, &json!({"stream": true, "experiment_name": "streamed"})));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type").as_deref(), Some("text/event-stream"));
    let events = events_of(&answer.text());
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "progress", "progress", "summary", "done"]);
    let data = |place: usize| serde_json::from_str::<Value>(&events[place].1).expect("JSON");
    let start = data(0);
    assert_eq!((&start["project_name"], &start["experiment_name"]), (&json!("evaluations"), &json!("streamed")));
    let experiment = project.experiment("streamed");
    assert_eq!((&start["project_id"], &start["experiment_id"]), (&json!(project.id), &json!(experiment)));
    assert!(start["experiment_url"].as_str().is_some_and(|url| url.ends_with("/experiments/streamed")), "{start}");
    let progress = data(1);
    for (name, value) in [("object_type", "task"), ("format", "code"), ("output_type", "any"), ("event", "json_delta")]
    {
        assert_eq!(progress[name], value, "{progress}");
    }
    let rows = project.rows(&experiment);
    assert!(of_type(&rows, "eval").iter().any(|row| row["id"] == progress["id"]), "{progress}");
    assert_eq!(means(&data(3)), *json!({"ExactMatch": 0.0}).as_object().expect("an object"));
    assert_eq!(events[4].1, "");
}

/// An error before the first event is a status.
fn failing_streams(project: &EvalProject) {
    let request = with(&project.request(json!([1]), json!([])), &json!({"stream": true, "task": global("None")}));
    assert_eq!(project.send("/v1/eval", &request).status, 404);
}

/// A closed connection ends the run (F-60), also one that waits for a whole answer.
fn clients_that_leave(project: &EvalProject) {
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(500))));
    for stream in [true, false] {
        let data: Vec<usize> = (0..200).collect();
        let name = format!("left-{stream}");
        let body = json!({"stream": stream, "max_concurrency": 2, "experiment_name": name});
        let request = eval_request(&with(&project.request(json!(data), json!([])), &body));
        let mut connection = TcpStream::connect(address_of(&project.url)).expect("a connection");
        connection.write_all(&request_bytes(&address_of(&project.url), &request)).expect("a sent request");
        connection.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        // The run is under way.
        let job = running_job(project, &name);
        project.waited(&job, |state| state["progress"]["done"].as_u64() >= Some(1));
        if stream {
            let mut head = [0; 12];
            connection.read_exact(&mut head).expect("the begin of the answer");
            assert_eq!(&head, b"HTTP/1.1 200");
        }
        drop(connection);
        let state = project.ended(&job);
        assert_eq!(state["state"], "cancelled", "{state}");
        assert!(state["progress"]["done"].as_u64() < Some(100), "{state}");
    }
    project.provider.inject_always(None);
}

fn eval_request(body: &Value) -> Request {
    Request {
        method: "POST".into(),
        target: "/v1/eval".into(),
        headers: vec![
            ("authorization".into(), format!("Bearer {TEST_KEY}")),
            ("content-type".into(), "application/json".into()),
        ],
        body: Some(body.to_string().into_bytes()),
        declared_length: None,
    }
}

fn address_of(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}

/// Returns the evaluation with this name, once it is there.
fn running_job(project: &EvalProject, name: &str) -> String {
    for _ in 0..200 {
        let listed = project.api("GET", &format!("/v1/eval?project_id={}", project.id), &Value::Null);
        let jobs = listed["objects"].as_array().cloned().unwrap_or_default();
        if let Some(job) = jobs.iter().find(|job| job["name"] == name) {
            return job["id"].as_str().expect("an id").to_owned();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the evaluation {name} does not start")
}

fn background(project: &EvalProject) {
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(300))));
    let data: Vec<usize> = (0..100).collect();
    let more = json!({"max_concurrency": 2, "experiment_name": "behind"});
    let job = project.begin(&with(&project.request(json!(data), json!([])), &more));
    let id = job["job_id"].as_str().expect("an id");
    assert_eq!((&job["state"], &job["progress"]["cases"]), (&json!("running"), &json!(100)));
    assert!(job["status_url"].as_str().is_some_and(|url| url.ends_with(&format!("/v1/eval/{id}"))), "{job}");
    let state = project.waited(id, |state| state["progress"]["done"].as_u64() >= Some(2));
    assert_eq!((&state["summary"], &state["node"]), (&Value::Null, &json!("1")));
    let answer = report(project, id);
    assert_eq!(answer.0, 409, "{}", answer.1);
    let cancelled = project.api("POST", &format!("/v1/eval/{id}/cancel"), &json!({}));
    assert_eq!(cancelled["is_cancelled"], true);
    let state = project.ended(id);
    project.provider.inject_always(None);
    assert_eq!(state["state"], "cancelled");
    assert!(state["summary"]["experiment_name"] == "behind" && state["ended"].is_string(), "{state}");
    // Cases under way have an error, and the others were never written.
    let rows = project.rows(&project.experiment("behind"));
    let roots = of_type(&rows, "eval");
    let cut = roots.iter().filter(|row| row["error"].as_str().is_some_and(|why| why.contains("cancelled"))).count();
    assert!(cut <= 2 && roots.len() < 100, "{cut} of {}", roots.len());
    assert_eq!(state["progress"]["done"], json!(roots.len()));
    // A second cancel changes nothing.
    assert_eq!(project.api("POST", &format!("/v1/eval/{id}/cancel"), &json!({}))["state"], "cancelled");
    let missing = "/v1/eval/00000000-0000-4000-8000-00000000abcd";
    assert!(call(&project.url, "GET", missing, &Value::Null).is_err_and(|why| why.to_string().contains("404")));
}

/// The rights of an evaluation end with the credential that started it.
fn credentials_that_end(project: &EvalProject) {
    let key = project.api("POST", "/v1/api_key", &json!({"name": "short"}));
    project.provider.inject_always(Some(Fault::SlowFirstByte(Duration::from_millis(300))));
    let data: Vec<usize> = (0..200).collect();
    let body = with(&project.request(json!(data), json!([])), &json!({"max_concurrency": 2, "background": true}));
    let answer = send_as(key["key"].as_str().expect("a key"), &project.url, "/v1/eval", &body);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let job: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let id = job["id"].as_str().expect("an id");
    project.waited(id, |state| state["progress"]["done"].as_u64() >= Some(1));
    project.api("DELETE", &format!("/v1/api_key/{}", key["id"].as_str().expect("an id")), &Value::Null);
    let state = project.ended(id);
    project.provider.inject_always(None);
    assert_eq!(state["state"], "failed", "{}", state["error"]);
    assert!(state["error"].as_str().is_some_and(|why| why.contains("credential that started")), "{state}");
    assert!(state["progress"]["done"].as_u64() < Some(200), "{state}");
}

fn report(project: &EvalProject, id: &str) -> (u16, String) {
    let request = Request {
        method: "GET".into(),
        target: format!("/v1/eval/{id}/report"),
        headers: vec![("authorization".into(), format!("Bearer {TEST_KEY}"))],
        ..Request::default()
    };
    let answer = send(&project.url, &request).expect("an answer");
    (answer.status, answer.text())
}

/// The report compares with the base, and says what the numbers are worth.
fn reports(project: &EvalProject) {
    let data = |better: bool| -> Value {
        let word = |number: usize| format!("w{number}");
        let expected = |number: usize| if better || number == 0 { format!("echo: w{number}") } else { "no".into() };
        (0..12).map(|number| json!({"input": word(number), "expected": expected(number)})).collect()
    };
    let run = |name: &str, better: bool, more: Value| {
        let request = project.request(data(better), json!([global("ExactMatch")]));
        let job = project.begin(&with(&with(&request, &json!({"experiment_name": name})), &more));
        project.ended(job["id"].as_str().expect("an id"))
    };
    run("before", false, json!({}));
    let state = run("after", true, json!({"base_experiment_name": "before"}));
    let summary = &state["summary"];
    assert_eq!(summary["comparison_experiment_name"], "before");
    assert_eq!(summary["scores"]["ExactMatch"]["improvements"], 11);
    // Clients refuse further members of an entry.
    let entry = summary["scores"]["ExactMatch"].as_object().expect("an entry");
    assert_eq!(names(entry), ["diff", "improvements", "name", "regressions", "score"]);
    let statistics = &summary["statistics"]["scores"][0];
    assert_eq!((&statistics["name"], &statistics["change"]["verdict"]), (&json!("ExactMatch"), &json!("up")));
    let interval = statistics["change"]["interval"].as_array().expect("an interval");
    assert!(interval[0].as_f64() > Some(0.5) && interval[1].as_f64() <= Some(1.0), "{interval:?}");
    let (status, text) = report(project, state["id"].as_str().expect("an id"));
    assert_eq!(status, 200, "{text}");
    assert!(text.starts_with("## Evaluation [<code>after</code>]("), "{text}");
    for words in [
        "**1 better, 0 worse, 0 undecided** compared with [<code>before</code>](",
        "| <code>ExactMatch</code> | 1.000 | 0.083 | +0.917 |",
        "12 rows, 0 errors",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Metrics that are zero in both experiments say nothing.
    assert!(text.contains("duration") && !text.contains("tool&#95;calls"), "{text}");
    // The operation of experiments has the same numbers.
    let id = state["experiment_id"].as_str().expect("an id");
    let again = project.api("GET", &format!("/v1/experiment/{id}/summarize?summarize_scores=true"), &Value::Null);
    assert_eq!(again["statistics"]["scores"], summary["statistics"]["scores"]);
}
