//! The MCP server on one node and on three: its protocol, its tools on real data, their sizes, and the rights of callers.

use std::path::Path;

use assay_test_api::agent_data::{AgentData, HIDDEN, HIDDEN_TEXTS, LONG_SPANS, key_without_rights};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::rows::call as api;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

/// Upper bound of a result, which the contract states.
const RESULT_BYTES_MAX: usize = 256 << 10;
/// Upper bound of a request.
const REQUEST_BYTES_MAX: usize = 1 << 20;
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

fn post(url: &str, key: Option<&str>, headers: &[(&str, &str)], body: &str) -> HttpResponse {
    let mut sent: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    sent.extend(key.map(|key| ("authorization".to_owned(), format!("Bearer {key}"))));
    let request = Request {
        method: "POST".into(),
        target: "/mcp".into(),
        headers: sent,
        body: Some(body.as_bytes().to_vec()),
        declared_length: None,
    };
    send(url, &request).unwrap_or_else(|error| panic!("{error:#}"))
}

fn body(answer: &HttpResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?} is no JSON"))
}

fn message(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Calls a tool and returns its result, whose size is checked.
fn call(url: &str, key: &str, tool: &str, arguments: Value) -> Value {
    let sent = message("tools/call", json!({"name": tool, "arguments": arguments}));
    let answer = post(url, Some(key), &[VERSION], &sent);
    assert_eq!(answer.status, 200, "{tool}: {}", answer.text());
    assert!(answer.body.len() <= RESULT_BYTES_MAX, "{tool}: {} bytes", answer.body.len());
    body(&answer)["result"].clone()
}

/// Calls a tool that succeeds, and returns its structured content.
#[track_caller]
fn result(url: &str, key: &str, tool: &str, arguments: Value) -> Value {
    let result = call(url, key, tool, arguments);
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

/// Calls a tool that fails, and returns its message.
#[track_caller]
fn refusal(url: &str, key: &str, tool: &str, arguments: Value) -> String {
    let result = call(url, key, tool, arguments);
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["content"][0]["text"].as_str().expect("a message").to_owned()
}

/// Requests that the protocol refuses, and those that need no data.
fn protocol(url: &str) {
    let ping = message("ping", json!({}));
    let without = post(url, None, &[], &ping);
    assert_eq!((without.status, without.header("www-authenticate").as_deref()), (401, Some("Bearer")));
    let session = [("cookie", "assay_session=x"), ("x-assay-console", "1")];
    assert_eq!(post(url, None, &session, &ping).status, 401, "a session of the console is no credential of a program");
    assert_eq!(post(url, Some("sk-unknown"), &[], &ping).status, 401);
    for method in ["GET", "DELETE"] {
        let request = Request { method: method.into(), target: "/mcp".into(), ..Request::default() };
        let answer = send(url, &request).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!((answer.status, answer.header("allow").as_deref()), (405, Some("POST")), "{method}");
    }
    for (origin, status) in [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("http://localhost:6274", 200),
        (url, 200),
    ] {
        assert_eq!(post(url, Some(TEST_KEY), &[("origin", origin)], &ping).status, status, "{origin}");
    }
    assert_eq!(post(url, Some(TEST_KEY), &[("accept", "text/html")], &ping).status, 406);
    let large = message("ping", json!({"x": "x".repeat(REQUEST_BYTES_MAX)}));
    assert_eq!(post(url, Some(TEST_KEY), &[], &large).status, 413);
    let invalid = post(url, Some(TEST_KEY), &[], "{");
    assert_eq!((invalid.status, &body(&invalid)["error"]["code"]), (400, &json!(-32700)));
    let unknown = post(url, Some(TEST_KEY), &[("mcp-protocol-version", "1900-01-01")], &ping);
    assert_eq!((unknown.status, &body(&unknown)["error"]["code"]), (400, &json!(-32022)));

    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begun = post(url, Some(TEST_KEY), &[], &message("initialize", params));
    assert_eq!((begun.status, &body(&begun)["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    assert_eq!(begun.header("mcp-session-id"), None, "there are no sessions");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let noted = post(url, Some(TEST_KEY), &[VERSION], &initialized);
    assert_eq!((noted.status, noted.body.len()), (202, 0));
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let found = post(url, Some(TEST_KEY), &modern, &message("server/discover", meta));
    assert_eq!((found.status, &body(&found)["result"]["supportedVersions"][0]), (200, &json!("2026-07-28")));
}

/// Calls every tool, each on the next node.
fn every_tool(urls: &[String], data: &AgentData) {
    let listed = post(&urls[0], Some(TEST_KEY), &[VERSION], &message("tools/list", json!({})));
    let listed = body(&listed)["result"]["tools"].clone();
    let names: Vec<String> = listed
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect();
    let calls = data.calls();
    for name in &names {
        assert!(calls.iter().any(|(tool, ..)| tool == name), "{name} is not called");
    }
    for (turn, (tool, arguments, text)) in calls.iter().enumerate() {
        for url in urls.iter().cycle().skip(turn).take(urls.len()) {
            let found = result(url, TEST_KEY, tool, arguments.clone()).to_string();
            assert!(found.contains(text), "{tool} at {url} lacks {text}: {found}");
        }
    }
}

/// Reads a long trace and many long rows, page by page.
fn pages(urls: &[String], data: &AgentData) {
    let (mut spans, mut cursor, mut turn) = (Vec::new(), Value::Null, 0);
    loop {
        let arguments = json!({"object_type": "project_logs", "object": "agents", "trace_id": "t0",
            "value_bytes": 16_000, "cursor": cursor});
        let page = result(&urls[turn % urls.len()], TEST_KEY, "get_trace", arguments);
        spans.extend(page["spans"].as_array().expect("spans").iter().map(|span| span["span_id"].clone()));
        (cursor, turn) = (page["cursor"].clone(), turn + 1);
        if cursor.is_null() {
            break;
        }
    }
    let wanted: Vec<Value> = (0..LONG_SPANS).map(|number| format!("t{number}").into()).collect();
    assert_eq!(spans, wanted);
    assert!(turn > 2, "the trace has several pages");

    let query = format!("SELECT id, input FROM project_logs('{}')", data.project);
    let (mut ids, mut cursor, mut turn) = (Vec::new(), Value::Null, 0);
    loop {
        let mut arguments = json!({"query": query, "limit": 40, "value_bytes": 8000});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = result(&urls[turn % urls.len()], TEST_KEY, "sql_query", arguments);
        ids.extend(
            page["rows"].as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id").to_owned()),
        );
        (cursor, turn) = (page["cursor"].clone(), turn + 1);
        if cursor.is_null() {
            break;
        }
    }
    ids.sort();
    let mut wanted: Vec<String> = (0..LONG_SPANS).map(|number| format!("t{number}")).collect();
    wanted.sort();
    assert_eq!(ids, wanted, "each row is on one page");

    let span = json!({"object_type": "project_logs", "object": "agents", "trace_id": "t7", "span_id": "t7",
        "value_bytes": 40_000});
    let found = result(&urls[0], TEST_KEY, "get_trace", span);
    assert_eq!((&found["trace_id"], found["spans"].as_array().map(Vec::len)), (&json!("t0"), Some(1)));
    assert!(found["spans"][0]["input"].as_str().is_some_and(|input| input.len() > 19_000), "the whole value is there");
    let thread = json!({"object_type": "project_logs", "object": "agents", "trace_id": "t0", "view": "thread"});
    let found = result(&urls[0], TEST_KEY, "get_trace", thread);
    assert_eq!(found["messages"][0], json!({"role": "user", "content": HIDDEN}));
}

/// Calls every tool without rights, and wrongly.
fn rights(urls: &[String], data: &AgentData, node_dir: &Path) {
    let key = key_without_rights(&urls[0], node_dir).unwrap_or_else(|error| panic!("{error:#}"));
    let key = key.as_str();
    for (turn, (tool, arguments, _)) in data.calls().into_iter().enumerate() {
        if tool == "search_docs" {
            continue;
        }
        let found = call(&urls[turn % urls.len()], key, tool, arguments).to_string();
        for text in HIDDEN_TEXTS {
            assert!(!found.contains(text), "{tool} says `{text}` to a caller without rights: {found}");
        }
    }
    let hidden = format!("SELECT * FROM dataset('{}')", data.dataset);
    let why = refusal(&urls[0], key, "sql_query", json!({ "query": hidden }));
    assert!(why.contains("Missing read access"), "{why}");
    let why = refusal(&urls[0], TEST_KEY, "sql_query", json!({"query": "SELECT id FROM nothing('x')"}));
    assert!(why.contains("nothing"), "{why}");
    let wrong = json!({"object_type": "experiment", "object": "no such", "trace_id": "t"});
    assert!(refusal(&urls[0], TEST_KEY, "get_trace", wrong).contains("no experiment `no such`"));
    let wrong = json!({"object_type": "project_logs", "object": "agents", "trace_id": "nothing"});
    assert!(refusal(&urls[0], TEST_KEY, "get_trace", wrong).contains("no trace, span or row"));
    let mine = result(&urls[0], key, "list_recent_objects", json!({"object_type": "project"}));
    assert_eq!(mine["objects"], json!([]));
}

/// Checks that each call of a tool that reads data is on record.
fn audited(url: &str) {
    let me = api(url, "POST", "/api/self/me", &json!({})).unwrap_or_else(|error| panic!("{error:#}"));
    let org = me["organizations"][0]["id"].as_str().expect("an id");
    let query = format!("SELECT details, actor FROM org_audit_logs('{org}') WHERE action = 'mcp_call' LIMIT 1000");
    let found = api(url, "POST", "/btql", &json!({ "query": query })).unwrap_or_else(|error| panic!("{error:#}"));
    let entries = found["data"].as_array().expect("rows");
    let of = |tool: &str| entries.iter().filter(|entry| entry["details"]["tool"] == tool).count();
    assert!(of("sql_query") > 2 && of("get_trace") > 2 && of("get_prompt") > 0, "{found}");
    assert_eq!(of("search_docs"), 0, "the guide is public");
    let arguments = entries.iter().find(|entry| entry["details"]["tool"] == "get_prompt").expect("a call");
    assert!(arguments["details"]["arguments"].as_str().is_some_and(|text| text.contains("prompt")), "{arguments}");
    assert_eq!(arguments["actor"]["type"], "user");
}

#[test]
fn agents_use_every_tool_on_one_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().join("data");
    let server = Server::start(&Options::new(&place)).unwrap_or_else(|error| panic!("{error:#}"));
    protocol(&server.url);
    let data = AgentData::create(&server.url).unwrap_or_else(|error| panic!("{error:#}"));
    let urls = [server.url.clone()];
    every_tool(&urls, &data);
    pages(&urls, &data);
    rights(&urls, &data, &place);
    audited(&server.url);
}

#[test]
fn agents_use_every_tool_on_three_nodes_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().join("data");
    let dev = Dev::start(&place).unwrap_or_else(|error| panic!("{error:#}"));
    for url in &dev.urls {
        protocol(url);
    }
    let data = AgentData::create(&dev.urls[0]).unwrap_or_else(|error| panic!("{error:#}"));
    every_tool(&dev.urls, &data);
    pages(&dev.urls, &data);
    rights(&dev.urls, &data, &place.join("node-1"));
    audited(&dev.urls[1]);
}
