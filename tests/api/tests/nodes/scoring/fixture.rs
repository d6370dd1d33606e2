//! Nodes with a project, and its rules and rows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

/// Time within which a score has to come.
const SCORED_WITHIN: Duration = Duration::from_secs(60);
/// Time in which a score that must not come would have come.
pub const QUIET: Duration = Duration::from_millis(1500);
const POLL: Duration = Duration::from_millis(50);
/// Setting that lets a node call a scripted model on this machine.
pub const EGRESS: &str = r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#;

/// Project whose rows are scored.
#[derive(Clone, Debug)]
pub struct ScoringProject {
    pub url: String,
    pub id: String,
}

/// One node with a project.
#[derive(Debug)]
pub struct ScoringNode {
    pub server: Server,
    pub project: ScoringProject,
    _dir: tempfile::TempDir,
}

/// Three nodes with a project.
#[derive(Debug)]
pub struct ScoringCluster {
    pub nodes: Dev,
    pub project: ScoringProject,
    _dir: tempfile::TempDir,
}

impl ScoringNode {
    pub fn start(settings: &[&str]) -> ScoringNode {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new(&dir.path().join("data"));
        options.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        options.settings.push("http.otlp_listen=off".to_owned());
        let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
        let project = ScoringProject::create(&server.url, "scored");
        ScoringNode { server, project, _dir: dir }
    }

    /// Gives the node a model whose answers are scripted, with a price of a million tokens in US dollars.
    pub fn provider(&self, origin: &str, price: f64) {
        let spec = json!({"format": "openai", "flavor": "chat", "input_cost_per_mil_tokens": price,
            "output_cost_per_mil_tokens": price});
        let metadata = json!({"api_base": format!("{origin}/v1"), "customModels": {"scripted": spec},
            "excludeDefaultModels": true});
        let secret = json!({"name": "scripted", "type": "openai", "secret": "sk-of-scripted", "metadata": metadata});
        call(&self.server.url, "POST", "/v1/ai_secret", &secret).expect("a secret");
    }

    /// Returns another project of the node.
    pub fn another(&self, name: &str) -> ScoringProject {
        ScoringProject::create(&self.server.url, name)
    }
}

impl ScoringCluster {
    pub fn start() -> ScoringCluster {
        let dir = tempfile::tempdir().expect("a directory");
        let nodes = Dev::start_with(&dir.path().join("data"), &[]).unwrap_or_else(|error| panic!("{error:#}"));
        let project = ScoringProject::create(&nodes.urls[0], "scored");
        ScoringCluster { nodes, project, _dir: dir }
    }
}

/// Sends a request with the test key.
pub fn send_to(url: &str, method: &str, target: &str, body: &Value) -> HttpResponse {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {TEST_KEY}"))],
        body: (method != "GET").then(|| body.to_string().into_bytes()),
        declared_length: None,
    };
    send(url, &request).expect("an answer")
}

/// Returns a global scorer as rules name it.
pub fn scorer(name: &str) -> Value {
    json!({"type": "global", "name": name, "function_type": "scorer"})
}

/// Returns a rule for all spans with these functions and more members.
pub fn online(scorers: Value, more: Value) -> Value {
    let mut online = json!({"sampling_rate": 1, "scorers": scorers});
    online.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    online
}

/// Returns a finished row.
pub fn row(id: &str, output: &str, expected: &str) -> Value {
    json!({"id": id, "span_id": id, "root_span_id": id, "input": format!("input of {id}"), "output": output,
        "expected": expected, "metrics": {"start": 1, "end": 2}})
}

impl ScoringProject {
    pub fn create(url: &str, name: &str) -> ScoringProject {
        let made = call(url, "POST", "/v1/project", &json!({"name": name})).expect("a project");
        ScoringProject { url: url.to_owned(), id: made["id"].as_str().expect("an id").to_owned() }
    }

    /// Returns the same project at another node.
    pub fn at(&self, url: &str) -> ScoringProject {
        ScoringProject { url: url.to_owned(), id: self.id.clone() }
    }

    /// Stores a function, and returns it as rules name it.
    pub fn function(&self, name: &str, function_type: &str, data: Value, prompt: Value) -> Value {
        let body = json!({"project_id": self.id, "name": name, "slug": name.to_lowercase(),
            "function_type": function_type, "function_data": data, "prompt_data": prompt});
        let made = call(&self.url, "POST", "/v1/function", &body).expect("a function");
        json!({"type": "function", "id": made["id"]})
    }

    /// Stores a judge with the choices `good` and `bad`, and returns it as rules name it.
    pub fn judge(&self, name: &str, text: &str) -> Value {
        let prompt = json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": text}]},
            "options": {"model": "scripted"},
            "parser": {"type": "llm_classifier", "use_cot": false, "choice_scores": {"good": 1, "bad": 0}}});
        self.function(name, "scorer", json!({"type": "prompt"}), prompt)
    }

    /// Creates a rule, and returns its id.
    pub fn rule(&self, name: &str, online: Value) -> String {
        let body = json!({"project_id": self.id, "name": name, "score_type": "online", "config": {"online": online}});
        let made = call(&self.url, "POST", "/v1/project_score", &body).expect("a rule");
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Changes the configuration of a rule.
    pub fn change(&self, rule: &str, online: Value) {
        let body = json!({"config": {"online": online}});
        call(&self.url, "PATCH", &format!("/v1/project_score/{rule}"), &body).expect("a changed rule");
    }

    pub fn delete(&self, rule: &str) {
        call(&self.url, "DELETE", &format!("/v1/project_score/{rule}"), &Value::Null).expect("a deleted rule");
    }

    pub fn insert(&self, rows: Value) {
        let answer = self.try_insert(rows);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    pub fn try_insert(&self, rows: Value) -> HttpResponse {
        let target = format!("/v1/project_logs/{}/insert", self.id);
        send_to(&self.url, "POST", &target, &json!({ "events": rows }))
    }

    /// Returns all rows by their ids.
    pub fn rows(&self) -> BTreeMap<String, Value> {
        let query = format!("select: * | from: project_logs('{}') spans | limit: 5000", self.id);
        let answer = call(&self.url, "POST", "/btql", &json!({"query": query})).expect("rows");
        let rows = answer["data"].as_array().expect("rows").iter();
        rows.map(|row| (row["id"].as_str().expect("an id").to_owned(), row.clone())).collect()
    }

    pub fn row(&self, id: &str) -> Value {
        self.rows().get(id).cloned().unwrap_or_default()
    }

    /// Returns the spans of scoring below a row.
    pub fn spans_below(&self, span_id: &str) -> Vec<Value> {
        let is_below =
            |row: &Value| row["span_attributes"]["purpose"] == "scorer" && row["span_parents"] == json!([span_id]);
        self.rows().into_values().filter(is_below).collect()
    }

    /// Waits until a condition on the rows holds, and returns them.
    pub fn wait(&self, what: &str, is_so: impl Fn(&BTreeMap<String, Value>) -> bool) -> BTreeMap<String, Value> {
        let deadline = Instant::now() + SCORED_WITHIN;
        loop {
            let rows = self.rows();
            if is_so(&rows) {
                return rows;
            }
            assert!(Instant::now() < deadline, "{what}: {}", serde_json::to_string_pretty(&rows).unwrap_or_default());
            std::thread::sleep(POLL);
        }
    }

    /// Waits until a row has a score.
    pub fn scored(&self, id: &str, name: &str, score: f64) -> Value {
        let found = self.wait(&format!("{name} of {id} is {score}"), |rows| {
            rows.get(id).is_some_and(|row| row["scores"][name].as_f64() == Some(score))
        });
        found[id].clone()
    }

    pub fn status(&self, rule: &str) -> Value {
        call(&self.url, "GET", &format!("/v1/project_score/{rule}/status"), &Value::Null).expect("a state")
    }

    /// Waits until the state of a rule satisfies a condition.
    pub fn wait_status(&self, rule: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SCORED_WITHIN;
        loop {
            let status = self.status(rule);
            if is_so(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "{status}");
            std::thread::sleep(POLL);
        }
    }
}

/// Returns the trigger of a function in the state of a row.
pub fn trigger<'r>(row: &'r Value, key: &str) -> &'r Value {
    &row["_async_scoring_state"]["triggered_functions"][key]
}
