//! Sessions with scripted servers: what is sent, what is read, and what errors say.

mod support;

use std::time::Duration;

use assay_node_mcp_client::{McpAction, McpAnswer, McpFailure, McpServerSpec, McpSession, RESULT_BYTES_MAX, TOOLS_MAX};
use serde_json::{Value, json};
use support::{McpServer, ReadRequest, SESSION, ScriptedReply, TOKEN, client, result};

async fn connect(server: &McpServer) -> McpSession {
    McpSession::connect(client("mcp"), server.spec()).await.expect("a session")
}

/// A server with a reply of its own to one message.
async fn server_with(rpc: &'static str, reply: impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static) -> McpServer {
    McpServer::new(move |request| (request.rpc() == rpc).then(|| reply(request.id()))).await
}

/// Calls a tool of a server that replies so to the call.
async fn called(
    reply: impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static,
) -> Result<assay_node_mcp_client::McpToolOutcome, McpFailure> {
    let server = server_with("tools/call", reply).await;
    let session = connect(&server).await;
    let outcome = session.call("search", &json!({"q": "x"})).await;
    outcome.map_err(|error| {
        assert!(!error.to_string().contains(TOKEN), "{error}");
        assert!(!format!("{error:?}").contains(TOKEN), "{error:?}");
        assert_eq!(error.server, "docs");
        assert_eq!(error.action, McpAction::CallTool("search".to_owned()));
        error.failure
    })
}

fn text_result(id: &Value, text: &str) -> Value {
    result(id, json!({"content": [{"type": "text", "text": text}]}))
}

#[tokio::test]
async fn a_session_begins_lists_calls_and_ends() {
    let server = McpServer::new(|_| None).await;
    let session = connect(&server).await;
    let tools = session.list_tools().await.expect("tools");
    assert_eq!(tools.len(), 1);
    assert_eq!((&*tools[0].name, &*tools[0].tool), ("docs_search", "search"));
    assert_eq!(tools[0].description.as_deref(), Some("Finds."));
    assert_eq!(tools[0].input_schema["properties"]["q"]["type"], "string");
    let outcome = session.call("search", &json!({"q": "x"})).await.expect("an outcome");
    assert_eq!((outcome.content, outcome.is_error), (json!("found"), false));
    session.close().await;

    let requests = server.requests();
    let told: Vec<_> = requests.iter().map(|request| (&*request.method, request.rpc())).collect();
    let expected = [
        ("POST", "initialize"),
        ("POST", "notifications/initialized"),
        ("POST", "tools/list"),
        ("POST", "tools/call"),
        ("DELETE", ""),
    ];
    assert_eq!(told, expected);
    assert_eq!(requests[0].body["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(requests[0].body["params"]["clientInfo"]["name"], "assay");
    assert_eq!(requests[3].body["params"]["name"], "search");
    assert_eq!(requests[3].body["params"]["arguments"], json!({"q": "x"}));
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(request.target, format!("/mcp?key={TOKEN}"));
        assert_eq!(request.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
        let is_first = number == 0;
        assert_eq!(request.header("mcp-session-id"), (!is_first).then_some(SESSION));
        assert_eq!(request.header("mcp-protocol-version"), (!is_first).then_some("2025-06-18"));
    }
}

#[tokio::test]
async fn a_dropped_session_ends_on_the_server_too() {
    let server = McpServer::new(|_| None).await;
    drop(connect(&server).await);
    let ended = async {
        while !server.requests().iter().any(|request| request.method == "DELETE") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), ended).await.expect("the session ends");
}

#[tokio::test]
async fn a_server_without_sessions_gets_no_session_id_and_no_end() {
    let server = server_with("initialize", |id| {
        let told =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        ScriptedReply::stream(&[result(id, told)])
    })
    .await;
    let session = connect(&server).await;
    assert_eq!(session.list_tools().await.expect("tools").len(), 1);
    session.close().await;
    assert!(server.requests().iter().all(|request| request.header("mcp-session-id").is_none()));
    assert!(server.requests().iter().all(|request| request.method == "POST"));
}

#[tokio::test]
async fn headers_of_the_server_are_sent_and_those_of_the_protocol_are_ours() {
    let server = McpServer::new(|_| None).await;
    let mut spec = server.spec();
    for (name, value) in [("x-team", "a"), ("authorization", "Basic b"), ("mcp-session-id", "c"), ("accept", "d")] {
        spec.headers.insert(name, value.parse().expect("a value"));
    }
    spec.headers.insert("x-key", TOKEN.parse().expect("a value"));
    assert!(!format!("{spec:?}").contains(TOKEN), "{spec:?}");
    let session = McpSession::connect(client("mcp"), spec).await.expect("a session");
    assert!(!format!("{session:?}").contains(TOKEN), "{session:?}");
    let first = &server.requests()[0];
    assert_eq!(first.header("x-team"), Some("a"));
    assert_eq!(first.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(first.header("mcp-session-id"), None);
    assert_eq!(first.header("accept"), Some("application/json, text/event-stream"));
}

#[tokio::test]
async fn an_answer_comes_behind_other_messages_of_a_stream() {
    let server = server_with("tools/call", |id| {
        ScriptedReply::stream(&[
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}}),
            json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}),
            text_result(id, "found"),
        ])
    })
    .await;
    let session = connect(&server).await;
    assert_eq!(session.call("search", &Value::Null).await.expect("an outcome").content, json!("found"));
    let replies: Vec<_> = server.requests().into_iter().filter(|request| request.rpc().is_empty()).collect();
    assert_eq!(replies[0].body, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!((replies[1].id(), &replies[1].body["error"]["code"]), (&json!("r"), &json!(-32601)));
    let call = server.requests().into_iter().find(|request| request.rpc() == "tools/call").expect("a call");
    assert_eq!(call.body["params"].get("arguments"), None);
}

#[tokio::test]
async fn a_failed_tool_has_an_outcome() {
    let failed = json!({"content": [{"type": "text", "text": "no such page"}], "isError": true});
    let outcome = called(move |id| ScriptedReply::json(&result(id, failed.clone()))).await.expect("an outcome");
    assert_eq!((outcome.content, outcome.is_error), (json!("no such page"), true));
}

#[tokio::test]
async fn results_with_unknown_blocks_are_read() {
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "hologram", "x": 1}]);
    let content = json!({"content": blocks});
    let outcome = called(move |id| ScriptedReply::json(&result(id, content.clone()))).await.expect("an outcome");
    assert_eq!(outcome.content, blocks);
    let structured = json!({"content": [], "structuredContent": {"rows": [1, 2]}});
    let outcome = called(move |id| ScriptedReply::json(&result(id, structured.clone()))).await.expect("an outcome");
    assert_eq!(outcome.content, json!({"rows": [1, 2]}));
}

#[tokio::test]
async fn failures_of_calls_are_told_apart() {
    let large = "a".repeat(RESULT_BYTES_MAX + 1);
    let larger = "a".repeat(4 * RESULT_BYTES_MAX);
    let too_large = McpFailure::Large { bytes_max: RESULT_BYTES_MAX, subject: McpAnswer::Result };
    let (large_text, larger_text) = (large.clone(), larger.clone());
    let reported =
        |id: &Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": format!("no {TOKEN}")}});
    type Script = Box<dyn Fn(&Value) -> ScriptedReply + Send + Sync>;
    let cases: Vec<(Script, McpFailure)> = vec![
        (Box::new(move |id| ScriptedReply::json(&text_result(id, &large))), too_large.clone()),
        (Box::new(move |id| ScriptedReply::json(&text_result(id, &larger))), too_large.clone()),
        (Box::new(move |id| ScriptedReply::stream(&[text_result(id, &large_text)])), too_large.clone()),
        (Box::new(move |id| ScriptedReply::stream(&[text_result(id, &larger_text)])), too_large),
        (
            Box::new(move |id| ScriptedReply::json(&reported(id))),
            McpFailure::Reported { code: -32602, message: "no [TOKEN]".to_owned() },
        ),
        (
            Box::new(move |_| ScriptedReply::new(400, "application/json", reported(&Value::Null).to_string())),
            McpFailure::Reported { code: -32602, message: "no [TOKEN]".to_owned() },
        ),
        (
            Box::new(|_| ScriptedReply::new(307, "", "").with_header("Location", "http://127.0.0.1:1/")),
            McpFailure::Redirect,
        ),
        (
            Box::new(|_| ScriptedReply::new(401, "application/json", "{}").with_header("WWW-Authenticate", "Bearer x")),
            McpFailure::Unauthorized { status: 401 },
        ),
        (Box::new(|_| ScriptedReply::new(403, "", "")), McpFailure::Unauthorized { status: 403 }),
        (Box::new(|_| ScriptedReply::new(500, "text/html", "<html>")), McpFailure::Status { status: 500 }),
        (Box::new(|_| ScriptedReply::new(200, "text/html", "<html>")), McpFailure::ContentType),
        (Box::new(|_| ScriptedReply::new(200, "", "{}")), McpFailure::ContentType),
        (
            Box::new(|_| ScriptedReply::new(200, "application/json", "{}")),
            McpFailure::Invalid("it is no message of JSON-RPC 2.0"),
        ),
        (
            Box::new(|_| ScriptedReply::new(200, "text/event-stream", "data: x\n\n")),
            McpFailure::Invalid("it is no message of JSON-RPC 2.0"),
        ),
        (Box::new(|_| ScriptedReply::stream(&[])), McpFailure::Cut),
        (Box::new(|id| ScriptedReply::json(&text_result(id, "x")).cut()), McpFailure::Cut),
    ];
    for (number, (reply, expected)) in cases.into_iter().enumerate() {
        assert_eq!(called(reply).await, Err(expected), "case {number}");
    }
}

#[tokio::test]
async fn a_slow_call_ends_in_its_time_and_the_session_goes_on() {
    let server = McpServer::new(|request| {
        let is_slow = request.body["params"]["name"] == "slow";
        is_slow.then(|| support::usual(request).after(Duration::from_secs(60)))
    })
    .await;
    let spec = McpServerSpec { call_time: Duration::from_millis(300), ..server.spec() };
    let session = McpSession::connect(client("mcp"), spec).await.expect("a session");
    let error = session.call("slow", &Value::Null).await.expect_err("it is late");
    assert_eq!(error.failure, McpFailure::Late);
    assert_eq!(
        error.to_string(),
        "MCP server `docs`: the call of the tool `slow` failed: no answer within the time limit: try again, or ask \
         the tool for less"
    );
    assert!(session.call("search", &Value::Null).await.is_ok());
}

#[tokio::test]
async fn calls_run_at_once() {
    let server = server_with("tools/call", |id| {
        ScriptedReply::json(&text_result(id, "found")).after(Duration::from_millis(200))
    })
    .await;
    let session = connect(&server).await;
    let begun = std::time::Instant::now();
    let calls = (0..4).map(|_| session.call("search", &Value::Null));
    assert!(futures::future::join_all(calls).await.into_iter().all(|outcome| outcome.is_ok()));
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn arguments_are_an_object() {
    let server = McpServer::new(|_| None).await;
    let session = connect(&server).await;
    let error = session.call("search", &json!([1])).await.expect_err("a list is no object");
    assert_eq!(error.failure, McpFailure::Arguments);
}

fn page(id: &Value, tools: impl Iterator<Item = Value>, cursor: Option<&str>) -> ScriptedReply {
    ScriptedReply::json(&result(id, json!({"tools": tools.collect::<Vec<_>>(), "nextCursor": cursor})))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

#[tokio::test]
async fn pages_are_followed_and_tools_are_those_enabled() {
    let server = McpServer::new(|request: &ReadRequest| {
        (request.rpc() == "tools/list").then(|| match request.body["params"]["cursor"].as_str() {
            None => page(request.id(), ["a.b", "c"].into_iter().map(tool), Some("2")),
            Some("2") => page(request.id(), ["a b", "c"].into_iter().map(tool), Some("3")),
            _ => page(request.id(), ["d"].into_iter().map(tool), None),
        })
    })
    .await;
    let listed = async |enabled_tools: Option<Vec<String>>| {
        let spec = McpServerSpec { enabled_tools, ..server.spec() };
        let session = McpSession::connect(client("mcp"), spec).await.expect("a session");
        let tools = session.list_tools().await.expect("tools");
        tools.into_iter().map(|tool| (tool.name, tool.tool)).collect::<Vec<_>>()
    };
    let pair = |name: &str, tool: &str| (name.to_owned(), tool.to_owned());
    let all = [pair("docs_a_b", "a.b"), pair("docs_c", "c"), pair("docs_a_b_2", "a b"), pair("docs_d", "d")];
    assert_eq!(listed(None).await, all);
    let enabled = Some(vec!["d".to_owned(), "a b".to_owned(), "absent".to_owned()]);
    assert_eq!(listed(enabled).await, [pair("docs_a_b", "a b"), pair("docs_d", "d")]);
    assert_eq!(listed(Some(vec![])).await, []);
}

#[tokio::test]
async fn lists_of_tools_are_bounded() {
    let failure = async |reply: fn(&Value) -> ScriptedReply| {
        let server = server_with("tools/list", reply).await;
        let error = connect(&server).await.list_tools().await.expect_err("the list is refused");
        assert_eq!(error.action, McpAction::ListTools);
        error.failure
    };
    let many = |id: &Value| page(id, (0..=TOOLS_MAX).map(|number| tool(&format!("t{number}"))), None);
    assert_eq!(failure(many).await, McpFailure::TooManyTools { max: TOOLS_MAX });
    let endless = |id: &Value| page(id, ["a"].into_iter().map(tool), Some("again"));
    assert_eq!(failure(endless).await, McpFailure::Invalid("the list of tools does not end"));
    let large = |id: &Value| {
        let described = json!({"name": "a", "description": "d".repeat(300 << 10), "inputSchema": {}});
        page(id, std::iter::once(described), Some("again"))
    };
    assert!(matches!(failure(large).await, McpFailure::Large { subject: McpAnswer::ToolList, .. }));
    let larger = |id: &Value| {
        let described = json!({"name": "a", "description": "d".repeat(2 << 20), "inputSchema": {}});
        page(id, std::iter::once(described), None)
    };
    assert!(matches!(failure(larger).await, McpFailure::Large { subject: McpAnswer::ToolList, .. }));
}

#[tokio::test]
async fn failures_of_connections_say_what_to_do() {
    let cases = [
        (
            ScriptedReply::new(401, "", ""),
            "the server refused the credentials with 401: pass a valid `oauth_token` for its URL in `mcp_auth`",
        ),
        (
            ScriptedReply::new(302, "", "").with_header("Location", "/other"),
            "the server answered with a redirect, which is not followed: use the URL that it leads to",
        ),
        (
            ScriptedReply::new(200, "text/html", "<html>"),
            "the answer is neither JSON nor an event stream: check that the URL is that of an MCP server over HTTP",
        ),
        (
            ScriptedReply::new(404, "", ""),
            "the server answered with the status 404: check that its URL is that of an MCP server over HTTP",
        ),
        (
            ScriptedReply::new(200, "application/json", "a".repeat(300 << 10)),
            "the answer has more than 262144 bytes, which is the limit: check that the URL is that of an MCP server over HTTP",
        ),
    ];
    for (reply, expected) in cases {
        let server = server_with("initialize", move |_| reply.clone()).await;
        let error = McpSession::connect(client("mcp"), server.spec()).await.expect_err(expected);
        assert_eq!(error.to_string(), format!("MCP server `docs`: the connection failed: {expected}"));
    }
    let refusal = |id: &Value| {
        let error = json!({"code": -32000, "message": format!("{TOKEN} {}", "long ".repeat(100))});
        ScriptedReply::json(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    };
    let server = server_with("initialize", refusal).await;
    let error = McpSession::connect(client("mcp"), server.spec()).await.expect_err("it refuses").to_string();
    assert!(error.contains("the server reports the error -32000: [TOKEN] long") && error.ends_with('…'), "{error}");
}

#[tokio::test]
async fn a_refused_notification_fails_the_connection() {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}}).to_string();
    let cases = [
        (ScriptedReply::new(403, "", ""), McpFailure::Unauthorized { status: 403 }),
        (ScriptedReply::new(400, "application/json", error), McpFailure::Status { status: 400 }),
    ];
    for (reply, expected) in cases {
        let server = server_with("notifications/initialized", move |_| reply.clone()).await;
        let error = McpSession::connect(client("mcp"), server.spec()).await.expect_err("it refuses");
        assert_eq!(error.failure, expected);
    }
}

#[tokio::test]
async fn a_target_that_is_not_allowed_reads_like_one_that_does_not_listen() {
    let server = McpServer::new(|_| None).await;
    let refused = McpSession::connect(client("models"), server.spec()).await.expect_err("it is not allowed");
    let url = "http://127.0.0.1:1/mcp".parse().expect("a URL");
    let closed = McpSession::connect(client("mcp"), McpServerSpec { url, ..server.spec() }).await;
    let closed = closed.expect_err("nobody listens");
    assert_eq!(refused, closed);
    assert_eq!(refused.failure, McpFailure::Unreachable);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_session_that_the_server_forgot_begins_anew() {
    let server = McpServer::new({
        let calls = std::sync::atomic::AtomicUsize::new(0);
        move |request| {
            let is_call = request.rpc() == "tools/call";
            let is_first = is_call && calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            is_first.then(|| ScriptedReply::new(404, "", ""))
        }
    })
    .await;
    let session = connect(&server).await;
    assert_eq!(session.call("search", &Value::Null).await.expect("an outcome").content, json!("found"));
    let begun = server.requests().iter().filter(|request| request.rpc() == "initialize").count();
    assert_eq!(begun, 2);
}
