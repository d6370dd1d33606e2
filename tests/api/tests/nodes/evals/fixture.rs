//! Nodes with a project and a scripted model, and requests to run evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server, TEST_KEY};
use assay_test_providers::ProviderServer;
use serde_json::{Map, Value, json};

/// Setting that lets the nodes call the scripted model on this machine.
pub const EGRESS: &str = r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models", "functions", "evals"]}]"#;
/// Time within which an evaluation of a test ends.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

/// Project on a node, with a model whose answers are scripted.
#[derive(Debug)]
pub struct EvalProject {
    pub url: String,
    pub id: String,
    pub provider: ProviderServer,
}

/// One node with a project.
#[derive(Debug)]
pub struct EvalNode {
    pub project: EvalProject,
    _server: Server,
    _dir: tempfile::TempDir,
}

/// Three nodes with a project.
#[derive(Debug)]
pub struct EvalCluster {
    pub nodes: Dev,
    pub project: EvalProject,
    _dir: tempfile::TempDir,
}

impl EvalNode {
    pub fn start() -> EvalNode {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&dir.path().join("data"));
        options.settings = vec![format!("egress.allow={EGRESS}"), "http.otlp_listen=off".to_owned()];
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        let project = EvalProject::create(&server.url);
        EvalNode { project, _server: server, _dir: dir }
    }
}

impl EvalCluster {
    pub fn start() -> EvalCluster {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = [("ASSAY_EGRESS_ALLOW", EGRESS)];
        let nodes = Dev::start_with(&dir.path().join("data"), &settings).unwrap_or_else(|error| panic!("{error:#}"));
        let project = EvalProject::create(&nodes.urls[0]);
        EvalCluster { nodes, project, _dir: dir }
    }

    /// Returns the number of the node that runs an evaluation, from 1.
    pub fn node_of(&self, job: &str) -> usize {
        let state = self.state_at(0, job);
        let node = state["node"].as_str().unwrap_or_else(|| panic!("no node: {state}"));
        node.parse().unwrap_or_else(|_| panic!("a node has the name {node}"))
    }

    /// Returns the state of an evaluation from the first node, beginning at `place`, that answers.
    pub fn state_at(&self, place: usize, job: &str) -> Value {
        let deadline = Instant::now() + ENDS_WITHIN;
        for url in self.nodes.urls.iter().cycle().skip(place) {
            if let Ok(state) = call(url, "GET", &format!("/v1/eval/{job}"), &Value::Null) {
                return state;
            }
            assert!(Instant::now() < deadline, "no node answers for the evaluation {job}");
            std::thread::sleep(POLL);
        }
        unreachable!("the cycle has no end")
    }
}

impl EvalProject {
    pub fn create(url: &str) -> EvalProject {
        let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
        let spec = json!({"format": "openai", "flavor": "chat"});
        let metadata = json!({"api_base": format!("{}/v1", provider.origin()), "customModels": {"scripted": spec},
            "excludeDefaultModels": true});
        let secret = json!({"name": "scripted", "type": "openai", "secret": "sk-of-scripted", "metadata": metadata});
        call(url, "POST", "/v1/ai_secret", &secret).expect("a secret");
        let project = call(url, "POST", "/v1/project", &json!({"name": "evaluations"})).expect("a project");
        EvalProject { url: url.to_owned(), id: id_of(&project), provider }
    }

    pub fn api(&self, method: &str, target: &str, body: &Value) -> Value {
        call(&self.url, method, target, body).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Returns a request over a list of data, with a task that repeats its input.
    pub fn request(&self, data: Value, scores: Value) -> Value {
        json!({"project_id": self.id, "data": {"data": data}, "task": echo(), "scores": scores})
    }

    pub fn send(&self, target: &str, body: &Value) -> HttpResponse {
        send_to(&self.url, target, body)
    }

    /// Runs an evaluation to its end, and returns the summary.
    pub fn run(&self, body: &Value) -> Value {
        let answer = self.send("/v1/eval", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// Returns the status and the message of a refused request.
    pub fn refusal(&self, body: &Value) -> (u16, String) {
        let answer = self.send("/v1/eval", body);
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        (answer.status, said["Message"].as_str().unwrap_or_default().to_owned())
    }

    /// Starts an evaluation in the background, and returns its state.
    pub fn begin(&self, body: &Value) -> Value {
        let answer = self.send("/v1/eval", &with(body, &json!({"background": true})));
        assert_eq!(answer.status, 202, "{}", answer.text());
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// Waits for the end of an evaluation, and returns its state.
    pub fn ended(&self, job: &str) -> Value {
        self.waited(job, |state| state["state"] != "running")
    }

    /// Waits until the state of an evaluation has a property.
    pub fn waited(&self, job: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + ENDS_WITHIN;
        loop {
            let state = self.api("GET", &format!("/v1/eval/{job}"), &Value::Null);
            if is_there(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "the evaluation does not get there: {state}");
            std::thread::sleep(POLL);
        }
    }

    /// Returns all rows of an experiment.
    pub fn rows(&self, experiment: &str) -> Vec<Value> {
        rows_at(&self.url, experiment)
    }

    /// Returns the id of the newest experiment with this name.
    pub fn experiment(&self, name: &str) -> String {
        let target = format!("/v1/experiment?project_id={}&experiment_name={name}", self.id);
        let found = self.api("GET", &target, &Value::Null);
        id_of(&found["objects"][0])
    }
}

pub fn send_to(url: &str, target: &str, body: &Value) -> HttpResponse {
    send_as(TEST_KEY, url, target, body)
}

/// Sends a request with a key.
pub fn send_as(key: &str, url: &str, target: &str, body: &Value) -> HttpResponse {
    let request = Request {
        method: "POST".into(),
        target: target.into(),
        headers: vec![
            ("authorization".into(), format!("Bearer {key}")),
            ("content-type".into(), "application/json".into()),
        ],
        body: Some(body.to_string().into_bytes()),
        declared_length: None,
    };
    send(url, &request).unwrap_or_else(|error| panic!("{error:#}"))
}

pub fn rows_at(url: &str, experiment: &str) -> Vec<Value> {
    let (mut rows, mut body) = (Vec::new(), json!({"limit": 1000}));
    loop {
        let target = format!("/v1/experiment/{experiment}/fetch");
        let mut page = call(url, "POST", &target, &body).unwrap_or_else(|error| panic!("{error:#}"));
        let Value::Array(events) = page["events"].take() else { panic!("no rows") };
        rows.extend(events);
        match page["cursor"].as_str() {
            Some(cursor) if !cursor.is_empty() => body["cursor"] = json!(cursor),
            _ => return rows,
        }
    }
}

/// Task that answers `echo: ` with its input.
pub fn echo() -> Value {
    prompt("{{input}}", &json!({"name": "echo"}))
}

/// Inline prompt for the scripted model.
pub fn prompt(text: &str, more: &Value) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    let data = json!({"prompt": {"type": "chat", "messages": messages}, "options": {"model": "scripted"}});
    with(&json!({"inline_prompt": data}), more)
}

/// Scorer that gives 1, or fails if the metadata of the case say so.
pub fn failing() -> Value {
    let mut scorer = prompt("{{metadata.word}}", &json!({"name": "failing", "function_type": "scorer"}));
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}}});
    scorer["inline_prompt"]["options"]["params"] =
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "score", "schema": schema}}});
    scorer
}

/// Case whose scorer [`failing`] fails for each number that a divisor divides.
pub fn numbered_case(number: usize, divisor: usize) -> Value {
    let word = if number.is_multiple_of(divisor) { "fail 400" } else { "ok" };
    let expected = if number.is_multiple_of(3) { "other".to_owned() } else { format!("echo: {number}") };
    json!({"input": number.to_string(), "expected": expected, "metadata": {"word": word}})
}

pub fn global(name: &str) -> Value {
    json!({"global_function": name})
}

/// Returns an object with further members.
pub fn with(object: &Value, members: &Value) -> Value {
    let mut all = object.clone();
    for (name, value) in members.as_object().expect("members") {
        all[name] = value.clone();
    }
    all
}

pub fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id: {object}")).to_owned()
}

/// Returns the names of members in order.
pub fn names(members: &Map<String, Value>) -> Vec<&str> {
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Returns the rows of a type of span.
pub fn of_type<'r>(rows: &'r [Value], span_type: &str) -> Vec<&'r Value> {
    rows.iter().filter(|row| row["span_attributes"]["type"] == span_type).collect()
}

/// Returns the root rows by their input.
pub fn roots(rows: &[Value]) -> BTreeMap<String, &Value> {
    let roots = of_type(rows, "eval").into_iter();
    roots.map(|row| (row["input"].as_str().map_or_else(|| row["input"].to_string(), str::to_owned), row)).collect()
}

/// Returns the means of the scores of a summary.
pub fn means(summary: &Value) -> Map<String, Value> {
    let scores = summary["scores"].as_object().cloned().unwrap_or_default();
    scores.into_iter().map(|(name, score)| (name, score["score"].clone())).collect()
}

/// Checks that two summaries have the same means, up to the last digits of a sum, which depend on the order of its rows.
pub fn assert_same_means(summary: &Value, other: &Value) {
    let rounded = |summary: &Value| {
        let scores = means(summary).into_iter();
        scores.map(|(name, score)| (name, format!("{:.12}", score.as_f64().expect("a mean")))).collect::<Vec<_>>()
    };
    assert_eq!(rounded(summary), rounded(other));
}

/// Checks that every case has one root, one task, and each of its scorers once.
pub fn check_rows(rows: &[Value], cases: usize, scorers: usize) {
    let inputs: BTreeSet<String> = of_type(rows, "eval").iter().map(|row| row["input"].to_string()).collect();
    assert_eq!((of_type(rows, "eval").len(), inputs.len()), (cases, cases));
    assert_eq!(of_type(rows, "task").len(), cases);
    assert_eq!(of_type(rows, "score").len(), scorers * cases);
    assert!(of_type(rows, "eval").iter().all(|row| row["metrics"]["end"].is_number()));
}

/// Returns the scores and the errors of scorers of all cases.
pub fn scores_by_input(rows: &[Value]) -> BTreeMap<String, (Value, Value)> {
    let roots = of_type(rows, "eval").into_iter();
    let scored = |row: &Value| (row["scores"].clone(), row["metadata"]["scorer_errors"].clone());
    roots.map(|row| (row["input"].to_string(), scored(row))).collect()
}
