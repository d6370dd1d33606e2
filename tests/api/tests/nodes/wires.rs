//! Langfuse's API on three nodes, another node at each request: scores before and after their spans, prompts that are
//! changed concurrently, runs of datasets, and what is refused.

use std::thread;

use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process;
use assay_test_api::rows::call as api;
use assay_test_api::server::TEST_KEY;
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";
/// Number of versions that are created concurrently.
const VERSIONS: usize = 6;

/// Project of a pair of keys on several nodes.
struct Wire<'a> {
    urls: &'a [String],
    project: String,
    secret: String,
}

/// Encodes the user and password of Basic authentication.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encode = |part: &[u8]| {
        let bits = part.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        let letter = |place: usize| match place <= part.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]),
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    };
    text.as_bytes().chunks(3).map(encode).collect()
}

impl Wire<'_> {
    fn send(&self, turn: usize, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
        let pair = base64(&format!("pk-lf-{}:{}", self.project, self.secret));
        let request = Request {
            method: method.into(),
            target: format!("/api/public/{path}"),
            headers: vec![
                ("authorization".into(), format!("Basic {pair}")),
                ("content-type".into(), "application/json".into()),
            ],
            body: body.map(|body| body.to_string().into_bytes()),
            declared_length: None,
        };
        send(&self.urls[turn % self.urls.len()], &request).unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Sends a request that succeeds.
    #[track_caller]
    fn call(&self, turn: usize, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.send(turn, method, path, body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{method} {path}: {}", answer.text()))
    }

    /// Sends a request that fails, and returns its message.
    #[track_caller]
    fn refusal(&self, method: &str, path: &str, body: Option<&Value>, status: u16) -> String {
        let answer = self.send(0, method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        body["message"].as_str().expect("a message").to_owned()
    }

    fn rows(&self, turn: usize, filter: &str) -> Vec<Value> {
        let query = format!("select: * | from: project_logs('{}') | filter: {filter}", self.project);
        let body = json!({ "query": query });
        let found = api(&self.urls[turn % self.urls.len()], "POST", "/btql", &body);
        found.unwrap_or_else(|error| panic!("{error:#}"))["data"].as_array().expect("rows").clone()
    }
}

fn export(attributes: &[(&str, Value)]) -> Value {
    let attributes: Vec<_> =
        attributes.iter().map(|(name, value)| json!({"key": name, "value": {"stringValue": value}})).collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": TRACE, "spanId": SPAN, "name": "answer", "startTimeUnixNano": "1767225600000000000",
        "endTimeUnixNano": "1767225602000000000", "attributes": attributes,
    }]}]}]})
}

fn score(name: &str, value: Value, observation: Option<&str>) -> Value {
    json!({"id": name, "traceId": TRACE, "observationId": observation, "name": name, "value": value})
}

/// Sends scores before and after their span, and the span twice.
fn scores_and_spans(wire: &Wire<'_>) {
    let early = json!([score("early", json!(0.5), Some(SPAN)), score("whole", json!(1), None), {"name": "no target"}]);
    let answer = wire.send(0, "POST", "scores", Some(&early));
    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!((answer.status, &body["accepted"], &body["rejected"]), (207, &json!(2), &json!(1)), "{body}");
    assert_eq!(wire.call(1, "GET", "traces", None)["data"], json!([]), "a score alone is no trace");

    let attributes = [
        ("langfuse.observation.type", json!("generation")),
        ("langfuse.observation.model.name", json!("m")),
        ("langfuse.observation.usage_details", json!("{\"input\":3,\"output\":4}")),
        ("user.id", json!("u")),
        ("session.id", json!("s")),
    ];
    for turn in 1..3 {
        assert_eq!(wire.call(turn, "POST", "otel/v1/traces", Some(&export(&attributes))), json!({}));
    }
    let late = json!({"batch": [
        {"id": "e1", "type": "score-create", "timestamp": "2026-01-01T00:00:00Z",
            "body": score("late", json!("good"), Some(SPAN))},
        {"id": "e2", "type": "dance", "timestamp": "2026-01-01T00:00:00Z", "body": {}},
    ]});
    let answer = wire.call(2, "POST", "ingestion", Some(&late));
    assert_eq!((&answer["successes"][0]["id"], &answer["errors"][0]["id"]), (&json!("e1"), &json!("e2")), "{answer}");

    let row = &wire.rows(0, &format!("span_id = '{SPAN}'"))[0];
    assert_eq!((&row["scores"], &row["span_parents"]), (&json!({"early": 0.5}), &json!([TRACE])), "{row}");
    assert_eq!(row["metadata"]["langfuse"]["scores"], json!({"late": "good"}));
    let trace = wire.call(1, "GET", &format!("traces/{TRACE}"), None);
    assert_eq!((&trace["userId"], &trace["sessionId"], &trace["name"]), (&json!("u"), &json!("s"), &json!("answer")));
    assert_eq!(trace["observations"].as_array().map(Vec::len), Some(1), "{trace}");
    assert_eq!(trace["scores"].as_array().map(Vec::len), Some(3));
    assert_eq!(trace["observations"][0]["usageDetails"], json!({"input": 3, "output": 4, "total": 7}));
    let listed = wire.call(2, "GET", "traces?userId=u&limit=1", None);
    assert_eq!((&listed["data"][0]["id"], &listed["meta"]["totalItems"]), (&json!(TRACE), &json!(1)), "{listed}");
    assert_eq!(wire.call(0, "GET", "sessions/s", None)["traces"][0]["id"], json!(TRACE));
    let observations = wire.call(1, "GET", &format!("v2/observations?traceId={TRACE}&type=GENERATION"), None);
    assert_eq!((&observations["data"][0]["id"], &observations["data"][0]["userId"]), (&json!(SPAN), &json!("u")));
    assert_eq!(wire.call(0, "GET", &format!("observations/{SPAN}"), None)["model"], "m");
    let scores = wire.call(2, "GET", &format!("v3/scores?traceId={TRACE}&name=late,whole"), None);
    assert_eq!(scores["data"].as_array().map(Vec::len), Some(2), "{scores}");
    assert_eq!(wire.call(0, "GET", "v2/scores/early", None)["value"], json!(0.5));

    wire.call(1, "DELETE", "scores/early", None);
    wire.refusal("GET", "v2/scores/early", None, 404);
    assert_eq!(wire.rows(2, &format!("span_id = '{SPAN}'"))[0]["scores"]["early"], Value::Null);
}

/// Creates versions of a prompt at all nodes at once.
fn concurrent_prompts(wire: &Wire<'_>) {
    let create = |number: usize| {
        let body = json!({"name": "a/b", "prompt": format!("text {number}"), "labels": [format!("l{number}")]});
        wire.call(number, "POST", "v2/prompts", Some(&body))["version"].as_u64().expect("a version")
    };
    let mut versions: Vec<u64> = thread::scope(|scope| {
        let each: Vec<_> = (0..VERSIONS).map(|number| scope.spawn(move || create(number))).collect();
        each.into_iter().map(|one| one.join().expect("a version")).collect()
    });
    versions.sort_unstable();
    assert_eq!(versions, (1..=VERSIONS as u64).collect::<Vec<_>>(), "no version is lost");
    for number in 0..VERSIONS {
        let found = wire.call(number + 1, "GET", &format!("v2/prompts/a%2Fb?label=l{number}"), None);
        assert_eq!(found["prompt"], json!(format!("text {number}")), "{found}");
    }
    let labels = json!({"newLabels": ["production"]});
    wire.call(0, "PATCH", "v2/prompts/a%2Fb/versions/1", Some(&labels));
    assert_eq!(wire.call(1, "GET", "v2/prompts/a%2Fb", None)["version"], json!(1));
    let listed = wire.call(2, "GET", "v2/prompts", None);
    assert_eq!(listed["data"][0]["versions"].as_array().map(Vec::len), Some(VERSIONS));
    wire.refusal("GET", "v2/prompts/a%2Fb?version=99", None, 404);
    wire.refusal("GET", "v2/prompts/other", None, 404);
}

/// Links a trace to an item of a run.
fn runs(wire: &Wire<'_>) {
    let dataset = wire.call(0, "POST", "v2/datasets", Some(&json!({"name": "d e", "metadata": "text"})));
    assert_eq!(wire.call(1, "GET", "v2/datasets/d%20e", None), dataset);
    let item =
        json!({"datasetName": "d e", "id": "item", "input": {"q": 1}, "expectedOutput": 2, "metadata": {"a": 1}});
    wire.call(2, "POST", "dataset-items", Some(&item));
    let found = wire.call(0, "GET", "dataset-items/item", None);
    assert_eq!(
        (&found["input"], &found["expectedOutput"], &found["metadata"]),
        (&json!({"q": 1}), &json!(2), &json!({"a": 1}))
    );
    let link = json!({"runName": "run", "datasetItemId": "item", "traceId": TRACE, "observationId": SPAN});
    let linked = wire.call(1, "POST", "dataset-run-items", Some(&link));
    let run = wire.call(2, "GET", "datasets/d%20e/runs/run", None);
    assert_eq!((&run["datasetRunItems"][0]["traceId"], &run["id"]), (&json!(TRACE), &linked["datasetRunId"]), "{run}");
    assert_eq!(wire.call(0, "GET", "datasets/d%20e/runs", None)["meta"]["totalItems"], json!(1));
    let after = json!({"traceId": TRACE, "name": "graded", "value": 0.25});
    wire.call(1, "POST", "scores", Some(&after));
    let query = format!("select: * | from: experiment('{}')", run["id"].as_str().expect("an id"));
    let rows =
        api(&wire.urls[2], "POST", "/btql", &json!({ "query": query })).unwrap_or_else(|error| panic!("{error:#}"));
    let row = &rows["data"][0];
    assert_eq!((&row["expected"], &row["input"]), (&json!(2), &json!({"q": 1})), "{row}");
    let score = |name: &str| row["scores"][name].as_f64();
    assert_eq!((score("graded"), score("whole")), (Some(0.25), Some(1.0)), "{row}");
    wire.call(2, "DELETE", "dataset-items/item", None);
    wire.refusal("GET", "dataset-items/item", None, 404);
}

fn refusals(wire: &Wire<'_>) {
    assert_eq!(wire.call(0, "GET", "health", None)["status"], "OK");
    assert_eq!(wire.call(1, "GET", "projects", None)["data"][0]["id"], json!(wire.project));
    assert!(wire.refusal("GET", "comments", None, 501).contains("no equivalent"));
    assert!(wire.refusal("GET", "traces?filter=%5B%5D", None, 400).contains("`filter`"));
    wire.refusal("GET", "nothing", None, 404);
    wire.refusal("PUT", "dataset-items", None, 405);
    wire.refusal("POST", "v2/prompts", Some(&json!({"name": "x"})), 400);
    let foreign = Wire { urls: wire.urls, project: uuid_like('0'), secret: wire.secret.clone() };
    for path in ["projects", "traces", "v2/datasets/d%20e"] {
        let status = foreign.send(0, "GET", path, None).status;
        assert!([403, 404].contains(&status), "{path}: {status}");
    }
    let unknown = Wire { urls: wire.urls, project: wire.project.clone(), secret: "sk-unknown".into() };
    unknown.refusal("GET", "traces", None, 401);
}

fn uuid_like(digit: char) -> String {
    let part = |count: usize| digit.to_string().repeat(count);
    format!("{}-{}-4{}-8{}-{}", part(8), part(4), part(3), part(3), part(12))
}

#[test]
fn langfuse_applications_use_any_of_three_nodes() {
    let dir = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    let project = api(&dev.urls[0], "POST", "/v1/project", &json!({"name": "moved"})).expect("a project");
    let project = project["id"].as_str().expect("an id").to_owned();
    let node = dir.path().join("data").join("node-1");
    let place = node.to_str().expect("a path that is text");
    let words =
        ["admin", "create-langfuse-key", "bot", "--organization", "default", "--project", "moved", "--data-dir", place];
    let made = process::run(&words, &[], "").and_then(|run| run.json()).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(made["public_key"], json!(format!("pk-lf-{project}")));
    let secret = made["secret_key"].as_str().expect("a secret key").to_owned();
    let wire = Wire { urls: &dev.urls, project, secret };
    scores_and_spans(&wire);
    concurrent_prompts(&wire);
    runs(&wire);
    refusals(&wire);

    let second = ["admin", "create-organization", "second", "--owner", "b@example.com", "--data-dir", place];
    process::run(&second, &[], "").unwrap_or_else(|error| panic!("{error:#}"));
    assert!(wire.refusal("GET", "traces", None, 404).contains("`wires.langfuse`"), "several organizations turn it off");
    let phoenix = Request {
        method: "POST".into(),
        target: "/v1/traces".into(),
        headers: vec![("authorization".into(), format!("Bearer {TEST_KEY}")), ("x-project-name".into(), "shop".into())],
        body: Some(export(&[]).to_string().into_bytes()),
        declared_length: None,
    };
    let refused = send(&dev.urls[0], &phoenix).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(refused.status == 400 && refused.text().contains("`wires.phoenix`"), "{}", refused.text());
}
