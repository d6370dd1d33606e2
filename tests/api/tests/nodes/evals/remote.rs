//! Remote evaluations: requests to a server of the user, and the events that it sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use assay_test_api::server::TEST_KEY;
use serde_json::{Value, json};

use super::fixture::{EvalNode, EvalProject, global, id_of, means, with};

/// Upper bound of the body of a request.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Request that the server received: its line, its headers and its body.
#[derive(Clone, Debug)]
struct ReceivedRequest {
    line: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl ReceivedRequest {
    fn header(&self, wanted: &str) -> &str {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Server of remote evaluations. Its thread ends with the test's process.
struct EvalServer {
    origin: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl EvalServer {
    fn start(experiment: String) -> EvalServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let seen = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(request) = answer(stream, &experiment) {
                    seen.lock().expect("the requests").push(request);
                }
            }
        });
        EvalServer { origin, received }
    }

    fn last(&self) -> ReceivedRequest {
        self.received.lock().expect("the requests").last().cloned().expect("a request")
    }
}

fn answer(mut stream: TcpStream, experiment: &str) -> Option<ReceivedRequest> {
    let request = read(&stream)?;
    let (status, content_type, body) = match request.line.as_str() {
        "GET /list HTTP/1.1" => {
            (200, "application/json", json!({"mine": {"parameters": null, "scores": [{"name": "s"}]}}).to_string())
        }
        "POST /eval HTTP/1.1" if request.body["name"] == "unknown" => {
            (404, "application/json", json!({"error": "no such evaluation"}).to_string())
        }
        "POST /eval HTTP/1.1" => (200, "text/event-stream", events(&request.body, experiment)),
        _ => (404, "text/plain", "not found".to_owned()),
    };
    let head = format!("HTTP/1.1 {status} x\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
    Some(request)
}

fn events(body: &Value, experiment: &str) -> String {
    if body["name"] == "broken" {
        // The server of the Python SDK sends text that is no JSON.
        return "event: error\ndata: it broke\n\nevent: done\ndata: \n\n".to_owned();
    }
    let head = json!({"projectName": "evaluations", "experimentName": "remote", "experimentId": experiment,
        "projectUrl": "http://p", "experimentUrl": "http://e"});
    let progress = json!({"id": "5ca1ab1e-0000-4000-8000-000000000001", "object_type": "task", "format": "code",
        "output_type": "any", "name": "mine", "event": "json_delta", "data": "\"out\""});
    let summary = with(
        &head,
        &json!({"scores": {"s": {"name": "s", "score": 0.5, "improvements": 0, "regressions": 0}}, "metrics": {}}),
    );
    format!(
        "event: start\ndata: {head}\n\nevent: progress\ndata: {progress}\n\nevent: summary\ndata: {summary}\n\nevent: done\ndata: \n\n"
    )
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(Some(0), |(_, length)| length.parse().ok())?;
    let mut body = vec![0; length.min(BODY_BYTES_MAX)];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(ReceivedRequest { line: line.trim_end().to_owned(), headers, body })
}

#[test]
fn remote_evaluations_are_forwarded_to_listed_servers() {
    let node = EvalNode::start();
    let project = &node.project;
    let experiment = project.api("POST", "/v1/experiment", &json!({"project_id": project.id, "name": "remote"}));
    let server = EvalServer::start(id_of(&experiment));
    servers_that_are_not_listed(project, &server);
    let settings =
        json!({"settings": {"remote_eval_sources": [{"url": format!("{}/", server.origin), "name": "mine"}]}});
    project.api("PATCH", &format!("/v1/project/{}", project.id), &settings);
    lists(project, &server);
    runs(project, &server);
    failures(project, &server);
}

fn task(server: &EvalServer, name: &str) -> Value {
    json!({"inline_function": {"type": "remote_eval", "endpoint": server.origin, "eval_name": name,
        "parameters": {"a": 1, "b": 2}}, "function_type": "task"})
}

fn request(project: &EvalProject, server: &EvalServer, name: &str) -> Value {
    json!({"project_id": project.id, "data": {"data": [{"input": 1}]}, "task": task(server, name),
        "scores": [global("ExactMatch")], "parameters": {"b": 3}, "experiment_name": "wanted"})
}

fn servers_that_are_not_listed(project: &EvalProject, server: &EvalServer) {
    let (status, why) = project.refusal(&request(project, server, "mine"));
    assert!(status == 403 && why.contains("remote_eval_sources"), "{status}: {why}");
    let answer = project.send("/v1/eval/remote-list", &json!({"project_id": project.id, "url": server.origin}));
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(server.received.lock().expect("the requests").is_empty());
}

fn lists(project: &EvalProject, server: &EvalServer) {
    let listed = project.api("POST", "/v1/eval/remote-list", &json!({"project_id": project.id, "url": server.origin}));
    assert_eq!(listed["mine"]["scores"], json!([{"name": "s"}]));
    let request = server.last();
    assert_eq!(request.header("authorization"), format!("Bearer {TEST_KEY}"));
    assert_eq!((request.header("x-bt-auth-token"), request.header("x-bt-org-name")), (TEST_KEY, "default"));
}

fn runs(project: &EvalProject, server: &EvalServer) {
    let summary = project.run(&request(project, server, "mine"));
    assert_eq!((&summary["experiment_name"], &summary["comparison_experiment_name"]), (&json!("remote"), &Value::Null));
    assert_eq!(means(&summary), *json!({"s": 0.5}).as_object().expect("an object"));
    let sent = server.last();
    assert_eq!((sent.header("origin"), sent.header("x-bt-project-id")), (project.url.as_str(), project.id.as_str()));
    let expected = json!({"name": "mine", "data": {"data": [{"input": 1}]}, "project_id": project.id, "stream": true,
        "parameters": {"a": 1, "b": 3}, "experiment_name": "wanted",
        "scores": [{"name": "ExactMatch", "function_id": {"global_function": "ExactMatch"}}]});
    assert_eq!(sent.body, expected);
    let answer = project.send("/v1/eval", &with(&request(project, server, "mine"), &json!({"stream": true})));
    let text = answer.text();
    for words in ["event: start\n", "event: progress\ndata: {\"id\":\"5ca1ab1e", "event: summary\n", "event: done\n"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let listed = project.api("GET", &format!("/v1/eval?project_id={}", project.id), &Value::Null);
    let job = &listed["objects"][0];
    assert_eq!((&job["state"], &job["experiment_name"]), (&json!("completed"), &json!("remote")));
}

fn failures(project: &EvalProject, server: &EvalServer) {
    for (name, words) in [("broken", "it broke"), ("unknown", "answered 404: no such evaluation")] {
        let (status, why) = project.refusal(&request(project, server, name));
        assert!(status == 500 && why.contains(words), "{status}: {why}");
    }
}
