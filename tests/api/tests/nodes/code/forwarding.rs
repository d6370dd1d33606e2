//! Code functions on three nodes, of which only one has Python.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Request, request_bytes, send};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

use super::{invoke_at, invoke_request, javascript, python, with};

/// Settings of nodes 1, 2 and 3.
const SETTINGS: [&[&str]; NODES] = [&["functions.python=[\"/nonexistent/python3\"]"], &["functions.code=off"], &[]];
/// Time in which a function ends after its client has left.
const ENDS_WITHIN: Duration = Duration::from_secs(6);
/// Time in which a client learns that the node of its function has ended.
const LOST_WITHIN: Duration = Duration::from_secs(40);
/// Calls of two seconds at once. They are more than a node of the test may run for one organization.
const WAITING_CALLS: usize = 8;
/// Silence after which a test gives an answer up.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Three nodes. Only the third one has Python, and the second one runs no code.
struct UnequalNodes {
    servers: Vec<Option<Server>>,
    project: String,
    _dir: tempfile::TempDir,
}

impl UnequalNodes {
    /// Founds a cluster, and starts its nodes again with a setting each.
    fn start() -> Result<UnequalNodes> {
        let dir = tempfile::tempdir()?;
        let data = dir.path().join("data");
        let status = Dev::start(&data)?.stop()?;
        ensure!(status.success(), "the cluster was not founded: {status}");
        let servers: Result<Vec<_>> = thread::scope(|scope| {
            let starting: Vec<_> = (0..NODES)
                .map(|place| {
                    scope.spawn({
                        let data = &data;
                        move || start_node(data, place)
                    })
                })
                .collect();
            let started = starting.into_iter().map(|node| node.join().expect("the starting thread"));
            started.map(|server| server.map(Some)).collect()
        });
        let servers = servers?;
        let nodes = UnequalNodes { servers, project: String::new(), _dir: dir };
        let project = call(nodes.url(3), "POST", "/v1/project", &json!({"name": "p"}))?;
        let project = project["id"].as_str().context("an id")?.to_owned();
        Ok(UnequalNodes { project, ..nodes })
    }

    /// Returns the address of a node; they count from 1.
    fn url(&self, node: usize) -> &str {
        &self.servers[node - 1].as_ref().expect("the node runs").url
    }

    fn value(&self, node: usize, body: &Value) -> Value {
        let (status, value) = invoke_at(self.url(node), body);
        assert_eq!(status, 200, "node {node}: {value}");
        value
    }

    fn failure(&self, node: usize, body: &Value) -> Value {
        let (status, value) = invoke_at(self.url(node), body);
        assert_eq!(status, 500, "node {node}: {value}");
        value
    }

    /// Returns a metric of a node.
    fn metric(&self, node: usize, name: &str) -> u64 {
        let request = Request { method: "GET".into(), target: "/metrics".into(), ..Request::default() };
        let text = send(self.url(node), &request).expect("metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name}: {text}")).parse().expect("a number")
    }
}

fn start_node(data: &Path, place: usize) -> Result<Server> {
    let directory = data.join(format!("node-{}", place + 1));
    let known = std::fs::read_to_string(directory.join("NODE"))?;
    let address = known.split_ascii_whitespace().find(|word| word.starts_with("127.0.0.1:"));
    let mut options = Options::new(&directory);
    options.settings = SETTINGS[place].iter().map(|setting| (*setting).to_owned()).collect();
    options.settings.push("http.otlp_listen=off".to_owned());
    options.settings.push(format!("cluster.peer_address={}", address.context("the address for other nodes")?));
    options.settings.push(format!("secrets.master_key_file={}", data.join("master.key").display()));
    Server::start(&options)
}

#[test]
fn a_node_without_the_interpreter_passes_the_call_on() {
    let mut nodes = UnequalNodes::start().unwrap_or_else(|error| panic!("{error:#}"));
    let trial = python("handler = lambda: 1", json!({}));
    let (status, answer) = invoke_at(nodes.url(3), &trial);
    if status == 400 {
        assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{answer}");
        // To the stream itself: what a passing test prints is not shown.
        let _ = writeln!(std::io::stderr(), "NOT COVERED: forwarded functions: {}", answer["Message"]);
        return;
    }
    assert_eq!((status, answer), (200, json!(1)));
    values(&nodes);
    errors(&nodes);
    events(&nodes);
    api_of_the_caller(&nodes);
    variables(&nodes);
    bundles(&nodes);
    calls_within_calls(&nodes);
    waiting_calls_run_on_idle_nodes(&nodes);
    assert!(nodes.metric(1, "assay_function_forwarded_total") > 5);
    assert!(nodes.metric(2, "assay_function_forwarded_total") > 5);
    assert_eq!(nodes.metric(3, "assay_function_forwarded_total"), 0);
    assert!(nodes.metric(3, "assay_function_executed_for_others_total") > 10);
    a_client_that_leaves_ends_the_function(&nodes);
    the_end_of_the_executing_node_is_told(&mut nodes);
    without_an_interpreter_anywhere_the_error_names_each_node(&nodes);
}

fn values(nodes: &UnequalNodes) {
    for node in [1, 2, 3] {
        for (code, input, value) in [
            ("def handler(a, b=2):\n    return a + b", json!({"a": 1}), json!(3)),
            ("async def handler(**all):\n    return all", json!({"x": "é"}), json!({"x": "é"})),
            ("def handler():\n    pass", json!({}), json!(null)),
        ] {
            assert_eq!(nodes.value(node, &python(code, input)), value, "node {node}: {code}");
        }
        let code = "const handler = ({a}: {a: number}) => a + 1";
        assert_eq!(nodes.value(node, &javascript(code, json!({"a": 1}))), json!(2), "node {node}");
    }
    let large = "é".repeat(7 << 20);
    let body = python("def handler(text):\n    return text + '!'", json!({ "text": large }));
    assert_eq!(nodes.value(1, &body), json!(large + "!"));
}

fn errors(nodes: &UnequalNodes) {
    for node in [1, 2] {
        let code = "def handler():\n    raise ValueError('bad input')";
        let failure = nodes.failure(node, &python(code, json!({})));
        assert_eq!(
            (&failure["Message"], &failure["FunctionError"]["name"]),
            (&json!("bad input"), &json!("ValueError"))
        );
        let stack = failure["FunctionError"]["stack"].as_str().expect("a stack");
        assert!(stack.contains("line 2"), "{stack}");
        for (body, words) in [
            (python("other = 1", json!({})), "'handler' is not defined"),
            (python("import os\ndef handler():\n    os._exit(4)", json!({})), "ended its process"),
            (python("def handler():\n    return 'x' * (17 << 20)", json!({})), "at most"),
        ] {
            let failure = nodes.failure(node, &body);
            let message = failure["Message"].as_str().unwrap_or_default();
            assert!(message.contains(words), "{message}");
        }
    }
}

fn events(nodes: &UnequalNodes) {
    let code = "import sys\ndef handler(lines):\n    for line in range(lines): print(f'line {line}')\n    \
        print('end', file=sys.stderr)\n    return 'value'";
    let body = with(python(code, json!({"lines": 500})), json!({"stream": true}));
    let text = send(nodes.url(1), &invoke_request(&body)).expect("an answer").text();
    let console = text.lines().filter_map(|line| {
        let data: Value = serde_json::from_str(line.strip_prefix("data: {").map(|_| &line[6..])?).ok()?;
        (data["stream"] == "stdout").then(|| data["message"].as_str().unwrap_or_default().to_owned())
    });
    let expected: Vec<String> = (0..500).map(|line| format!("line {line}")).collect();
    assert_eq!(console.collect::<Vec<_>>(), expected);
    for line in
        ["{\"stream\":\"stderr\",\"message\":\"end\"}\n", "event: json_delta\ndata: \"value\"\n", "event: done\n"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Code that calls the API with the credential of the invocation.
const ASKS: &str = "import json, os, urllib.request, urllib.error\ndef ask(path, body=None):\n    \
    headers = {'Authorization': 'Bearer ' + os.environ['BRAINTRUST_API_KEY'], 'Content-Type': 'application/json'}\n    \
    data = None if body is None else json.dumps(body).encode()\n    \
    request = urllib.request.Request(os.environ['BRAINTRUST_API_URL'] + path, data, headers)\n    \
    try:\n        return json.load(urllib.request.urlopen(request))\n    \
    except urllib.error.HTTPError as error:\n        return {'status': error.code, **json.load(error)}\n";

fn api_of_the_caller(nodes: &UnequalNodes) {
    let me = call(nodes.url(3), "POST", "/api/self/me", &json!({})).expect("the caller");
    let code = format!("{ASKS}def handler(path, body=None):\n    return ask(path, body)");
    for node in [1, 2] {
        let ask = |path: &str, body: Value| nodes.value(node, &python(&code, json!({"path": path, "body": body})));
        assert_eq!(ask("/api/self/me", json!({}))["id"], me["id"]);
        assert_eq!(ask("/v1/project", Value::Null)["objects"][0]["name"], "p");
        assert_eq!(ask("/v1/api_key", Value::Null)["status"], 403, "it does not administer");
    }
}

/// Variables are read where the code runs, and one that was just written counts.
fn variables(nodes: &UnequalNodes) {
    for value in ["first", "second"] {
        let variable =
            json!({"object_type": "project", "object_id": nodes.project, "name": "GREETING", "value": value});
        call(nodes.url(1), "PUT", "/v1/env_var", &variable).expect("a variable");
        let function = json!({"project_id": nodes.project, "name": "greets", "slug": "greets", "function_data": {
            "type": "code", "data": {"type": "inline", "runtime_context": {"runtime": "python", "version": "3.11"},
                "code": "import os\ndef handler():\n    return os.environ['GREETING']"}}});
        call(nodes.url(1), "PUT", "/v1/function", &function).expect("a function");
        assert_eq!(nodes.value(2, &json!({"project_name": "p", "slug": "greets", "input": {}})), value);
    }
}

/// A bundle is read by the node that runs it.
fn bundles(nodes: &UnequalNodes) {
    let context = json!({"runtime": "node", "version": "20"});
    let slot = call(nodes.url(2), "POST", "/function/code", &json!({"runtime_context": context})).expect("a slot");
    let url = slot["url"].as_str().expect("an address");
    let code = "const {projects} = require('braintrust');\nconst key = process.env.OPENAI_API_KEY;\n\
        projects.create({name: 'p'}).tools.create({name: 't', handler: ({a}) => [a + 1, key === process.env.BRAINTRUST_API_KEY]});";
    let upload = Request {
        method: "PUT".into(),
        target: url.strip_prefix(nodes.url(2)).expect("the same node").to_owned(),
        body: Some(code.as_bytes().to_vec()),
        ..Request::default()
    };
    let uploaded = send(nodes.url(2), &upload).expect("an answer");
    assert_eq!(uploaded.status, 200, "{}", uploaded.text());
    let function = json!({"project_id": nodes.project, "name": "bundled", "slug": "bundled", "function_data": {
        "type": "code", "data": {"type": "bundle", "runtime_context": context, "bundle_id": slot["bundleId"],
            "location": {"type": "function", "index": 0}}}});
    call(nodes.url(2), "POST", "/v1/function", &function).expect("a function");
    for node in [1, 2, 3] {
        let value = nodes.value(node, &json!({"project_name": "p", "slug": "bundled", "input": {"a": 1}}));
        assert_eq!(value, json!([2, true]), "node {node}");
    }
}

/// Calls within calls keep their depth, wherever they run.
fn calls_within_calls(nodes: &UnequalNodes) {
    let code = format!(
        "{ASKS}def handler(n):\n    if n == 0:\n        return 0\n    \
        value = ask('/function/invoke', {{'project_name': 'p', 'slug': 'within', 'input': {{'n': n - 1}}}})\n    \
        return value + 1 if isinstance(value, int) else value.get('Message', '') if isinstance(value, dict) else value"
    );
    let function = json!({"project_id": nodes.project, "name": "within", "slug": "within", "function_data": {
        "type": "code", "data": {"type": "inline", "runtime_context": {"runtime": "python", "version": "3.11"},
            "code": code}}});
    call(nodes.url(1), "POST", "/v1/function", &function).expect("a function");
    let within = |n: u32| nodes.value(1, &json!({"project_name": "p", "slug": "within", "input": {"n": n}}));
    assert_eq!(within(3), json!(3));
    let refused = within(9);
    assert!(refused.as_str().is_some_and(|why| why.contains("more than 5 levels deep")), "{refused}");
}

/// Calls that node 1 could run, and that would wait there for one another.
fn waiting_calls_run_on_idle_nodes(nodes: &UnequalNodes) {
    let before = nodes.metric(1, "assay_function_forwarded_total");
    let code = "const handler = async ({n}) => { await new Promise((done) => setTimeout(done, 2000)); return n; }";
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..WAITING_CALLS)
            .map(|n| scope.spawn(move || nodes.value(1, &javascript(code, json!({ "n": n })))))
            .collect();
        for (n, call) in waiting.into_iter().enumerate() {
            assert_eq!(call.join().expect("a call"), json!(n));
        }
    });
    assert!(nodes.metric(1, "assay_function_forwarded_total") > before, "no call left the busy node");
}

/// A function that writes a row again and again stops soon after its client has left.
fn a_client_that_leaves_ends_the_function(nodes: &UnequalNodes) {
    let code = format!(
        "{ASKS}import time\ndef handler(project):\n    print('started')\n    while True:\n        \
        ask(f'/v1/project_logs/{{project}}/insert', {{'events': [{{'input': 'alive'}}]}})\n        time.sleep(0.2)"
    );
    let body = with(python(&code, json!({"project": nodes.project})), json!({"stream": true}));
    let mut stream = open(nodes.url(1), &body);
    read_until(&mut stream, "started");
    let rows = || {
        let query = json!({"query": format!("select count(1) as n from project_logs('{}')", nodes.project)});
        let answer = call(nodes.url(3), "POST", "/btql", &query).expect("rows");
        answer["data"][0]["n"].as_u64().expect("a number")
    };
    let deadline = Instant::now() + SILENCE_MAX;
    while rows() < 2 {
        assert!(Instant::now() < deadline, "the function does not run");
        thread::sleep(Duration::from_millis(100));
    }
    drop(stream);
    thread::sleep(ENDS_WITHIN);
    let at_its_end = rows();
    thread::sleep(Duration::from_secs(2));
    assert_eq!(rows(), at_its_end, "the function runs on");
}

fn the_end_of_the_executing_node_is_told(nodes: &mut UnequalNodes) {
    let code = "import time\ndef handler():\n    print('started')\n    time.sleep(600)";
    let body = with(python(code, json!({})), json!({"stream": true}));
    let mut stream = open(nodes.url(1), &body);
    read_until(&mut stream, "started");
    let began = Instant::now();
    nodes.servers[2].take().expect("the node runs").kill().expect("killed");
    let text = read_until(&mut stream, "event: error");
    let text = if text.contains("may have run") { text } else { read_until(&mut stream, "may have run") };
    assert!(text.contains("node 3"), "{text}");
    assert!(began.elapsed() < LOST_WITHIN, "{:?}", began.elapsed());
}

fn without_an_interpreter_anywhere_the_error_names_each_node(nodes: &UnequalNodes) {
    // The other nodes may have heard the third one a moment ago.
    let deadline = Instant::now() + SILENCE_MAX;
    let refused = loop {
        let (status, answer) = invoke_at(nodes.url(2), &python("handler = lambda: 1", json!({})));
        if status == 400 || Instant::now() > deadline {
            break (status, answer);
        }
        thread::sleep(Duration::from_millis(200));
    };
    let (status, answer) = refused;
    assert_eq!(status, 400, "{answer}");
    let message = answer["Message"].as_str().unwrap_or_default();
    for words in ["functions.code is off", "node 1: there is no python", "node 3: "] {
        assert!(message.contains(words), "{message}");
    }
}

/// Sends an invocation, and returns the connection before its answer.
fn open(url: &str, body: &Value) -> TcpStream {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("the node accepts");
    stream.set_read_timeout(Some(SILENCE_MAX)).expect("a timeout");
    stream.write_all(&request_bytes(address, &invoke_request(body))).expect("sent");
    stream
}

/// Reads an answer until it has a text, and returns what was read.
fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = String::from_utf8_lossy(&bytes).into_owned();
        if read.contains(wanted) {
            return read;
        }
        let count = stream.read(&mut piece).expect("the answer goes on");
        assert!(count > 0, "the answer ended without {wanted:?}: {read}");
        bytes.extend_from_slice(&piece[..count]);
    }
}
