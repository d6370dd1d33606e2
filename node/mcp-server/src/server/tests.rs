//! Tests of whole requests, over data in memory.

use std::cell::RefCell;

use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::bounds::json_len;
use crate::bounds::tests::values;
use crate::data::{RecordRequest, RowBatch, RowQuery};

/// Caller who sees the same rows and records everywhere.
#[derive(Default)]
struct SampleCaller {
    rows: Vec<Value>,
    records: Vec<Value>,
    /// Whether queries have pages.
    has_pages: bool,
    is_gone: bool,
    queries: RefCell<Vec<RowQuery>>,
}

impl ToolData for SampleCaller {
    async fn rows(&self, query: &RowQuery) -> Result<RowBatch, ToolFailure> {
        if self.is_gone {
            return Err(ToolFailure::Unauthorized("the key is gone".into()));
        }
        self.queries.borrow_mut().push(query.clone());
        let from: usize = query.cursor.as_deref().map_or(0, |cursor| cursor.parse().expect("a position"));
        let limit = usize::try_from(query.limit).expect("a small limit");
        let rows: Vec<Value> = self.rows.iter().skip(from).take(limit).cloned().collect();
        let end = from + rows.len();
        let cursor = (self.has_pages && end < self.rows.len()).then(|| end.to_string());
        Ok(RowBatch { rows, cursor, version: "7".into(), warnings: Vec::new() })
    }

    async fn records(&self, request: &RecordRequest) -> Result<Vec<Value>, ToolFailure> {
        Ok(self.records.iter().take(usize::try_from(request.limit).expect("a small limit")).cloned().collect())
    }

    async fn summary(&self, _: Uuid, _: Option<Uuid>) -> Result<Value, ToolFailure> {
        Ok(json!({"scores": self.rows}))
    }

    async fn comparison(&self, request: Map<String, Value>) -> Result<Value, ToolFailure> {
        let from: usize = request["cursor"].as_str().expect("a cursor").parse().expect("a position");
        let rows: Vec<&Value> = self.rows.iter().skip(from).take(10).collect();
        Ok(json!({"rows": rows, "total": self.rows.len(), "experiments": self.records, "truncated": false}))
    }

    async fn definition(&self, _: Uuid, _: Option<&str>, _: Option<&str>) -> Result<Value, ToolFailure> {
        Ok(json!({"prompt_data": self.rows}))
    }

    fn thread(&self, spans: &[Value]) -> Vec<Value> {
        spans.iter().map(|span| json!({"role": "user", "content": span["input"]})).collect()
    }

    fn console(&self) -> Result<String, ToolFailure> {
        Ok("https://assay.example/app/org".into())
    }
}

fn headers(version: Option<&str>) -> McpHeaders {
    McpHeaders { version: version.map(str::to_owned), ..McpHeaders::default() }
}

fn ask(headers: &McpHeaders, body: &Value, data: &SampleCaller) -> McpReply {
    block_on(answer(headers, body, data)).expect("the credential is valid")
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn call(name: &str, arguments: Value) -> Value {
    request("tools/call", json!({"name": name, "arguments": arguments}))
}

/// Calls a tool and returns its result.
fn called(data: &SampleCaller, name: &str, arguments: Value) -> Value {
    let reply = ask(&headers(Some("2025-11-25")), &call(name, arguments), data);
    let body = reply.body.expect("a body");
    assert!(json_len(&body) <= RESULT_BYTES_MAX, "{name}: {} bytes", json_len(&body));
    body["result"].clone()
}

const ID: &str = "5ca1ab1e-0000-4000-8000-000000000001";
const OTHER: &str = "5ca1ab1e-0000-4000-8000-000000000002";

/// Returns right arguments of each tool.
fn right_arguments(name: &str) -> Value {
    match name {
        "sql_query" => json!({"query": "SELECT 1", "limit": 1000, "value_bytes": 32768}),
        "infer_schema" => json!({"object_type": "dataset", "object": ID}),
        "list_recent_objects" => json!({"object_type": "project", "limit": 100}),
        "resolve_object" => json!({"object_type": "prompt", "object": "name"}),
        "get_trace" => {
            json!({"object_type": "project_logs", "object": "p", "trace_id": "t", "value_bytes": 60000})
        }
        "summarize_experiment" => json!({"experiment": ID, "base": OTHER}),
        "compare_experiments" => json!({"experiment": ID, "base": OTHER, "limit": 50}),
        "get_prompt" => json!({"prompt": ID}),
        "list_automations" => json!({"project": ID}),
        "generate_permalink" => json!({"object_type": "project", "object": ID}),
        "search_docs" => json!({"page": "query-language"}),
        other => panic!("{other} has no arguments here"),
    }
}

#[test]
fn a_handshake_agrees_on_a_version_and_lists_all_tools() {
    let data = SampleCaller::default();
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}});
    let reply = ask(&headers(None), &request("initialize", params), &data);
    let result = &reply.body.as_ref().expect("a body")["result"];
    assert_eq!((reply.status, &result["protocolVersion"]), (200, &json!("2025-06-18")));
    assert!(result["instructions"].as_str().is_some_and(|text| text.contains("read-only")), "{result}");
    assert_eq!(result["resultType"], Value::Null);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(ask(&headers(Some("2025-06-18")), &initialized, &data), McpReply::accepted());
    let listed = ask(&headers(Some("2025-06-18")), &request("tools/list", json!({})), &data);
    let tools = listed.body.expect("a body")["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().expect("a list").iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, crate::tool_names());
    for tool in tools.as_array().expect("a list") {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert!(json_len(tool) < 6 << 10, "{} takes much of the agent's context", tool["name"]);
    }
}

#[test]
fn a_modern_client_needs_no_handshake() {
    let data = SampleCaller::default();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern = |method: &str| McpHeaders { method: Some(method.into()), ..headers(Some("2026-07-28")) };
    let asked = |method: &str| ask(&modern(method), &request(method, json!({"_meta": meta})), &data);
    let discovered = asked("server/discover").body.expect("a body")["result"].clone();
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    assert_eq!((&discovered["resultType"], &discovered["cacheScope"]), (&json!("complete"), &json!("public")));
    let listed = asked("tools/list").body.expect("a body")["result"].clone();
    assert_eq!((&listed["resultType"], listed["ttlMs"].is_u64()), (&json!("complete"), true));
    assert_eq!(listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "assay");
    for method in ["initialize", "ping", "resources/list"] {
        let reply = asked(method);
        assert_eq!(reply.status, 404, "{method}");
        assert_eq!(reply.body.expect("a body")["error"]["code"], -32601, "{method}");
    }
    let without = ask(&modern("tools/list"), &request("tools/list", json!({})), &data);
    assert_eq!((without.status, &without.body.expect("a body")["error"]["code"]), (400, &json!(-32602)));
}

#[test]
fn an_unknown_version_is_refused_with_those_that_are_known() {
    let data = SampleCaller::default();
    let reply = ask(&headers(Some("1900-01-01")), &request("ping", json!({})), &data);
    let error = &reply.body.as_ref().expect("a body")["error"];
    assert_eq!((reply.status, &error["code"]), (400, &json!(-32022)));
    assert_eq!(error["data"]["supported"], json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]));
}

#[test]
fn lists_of_messages_belong_to_the_oldest_version() {
    let data = SampleCaller::default();
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let both = ask(&headers(None), &json!([ping(1), note, ping(2)]), &data);
    let ids: Vec<Value> =
        both.body.expect("a body").as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    assert_eq!((both.status, ids), (200, vec![json!(1), json!(2)]));
    assert_eq!(ask(&headers(None), &json!([note]), &data), McpReply::accepted());
    let many: Vec<Value> = (0..=BATCH_MESSAGES_MAX as u64).map(ping).collect();
    for (version, body) in [
        (Some("2025-06-18"), json!([ping(1)])),
        (None, json!([])),
        (None, json!(many)),
        (None, json!([ping(1), {"jsonrpc": "2.0", "id": 2, "method": "initialize"}])),
    ] {
        let reply = ask(&headers(version), &body, &data);
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.body.expect("a body")["error"]["code"], -32600);
    }
}

#[test]
fn errors_of_the_protocol_are_told_from_errors_of_tools() {
    let data = SampleCaller::default();
    let asked = |body: &Value| {
        let reply = ask(&headers(Some("2025-11-25")), body, &data);
        (reply.status, reply.body.expect("a body"))
    };
    let (status, body) = asked(&call("no_such_tool", json!({})));
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32602)));
    assert!(body["error"]["message"].as_str().is_some_and(|why| why.contains("sql_query")), "{body}");
    let (_, body) = asked(&request("tools/call", json!({"name": "sql_query", "arguments": [1]})));
    assert_eq!(body["error"]["code"], -32602);
    let (_, body) = asked(&request("no/such/method", json!({})));
    assert_eq!(body["error"]["code"], -32601);
    let (status, body) = asked(&json!({"jsonrpc": "2.0", "id": 1}));
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32600)));
    let result = called(&data, "sql_query", json!({}));
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().is_some_and(|why| why.contains("`query` is missing")), "{result}");
    let (_, body) = asked(&request("tools/list", json!({"cursor": "99"})));
    assert_eq!(body["error"]["code"], -32602);
}

#[test]
fn a_credential_that_is_gone_refuses_the_request() {
    let data = SampleCaller { is_gone: true, ..SampleCaller::default() };
    let failed = block_on(answer(&headers(None), &call("sql_query", json!({"query": "x"})), &data));
    assert_eq!(failed, Err(ToolFailure::Unauthorized("the key is gone".into())));
}

#[test]
fn tools_are_listed_page_by_page() {
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let message = request("tools/list", json!({"cursor": cursor}));
        let Ok(Message::Request(request)) = Message::read(&message) else { panic!("a request") };
        let page = listed(&TOOLS, &request, 4).expect("a page");
        names.extend(page["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(names, crate::tool_names());
}

#[test]
fn older_clients_get_no_structured_content() {
    let data = SampleCaller { rows: vec![json!({"a": 1})], ..SampleCaller::default() };
    let body = call("btql_query", json!({"query": "x"}));
    let old = ask(&headers(None), &body, &data).body.expect("a body")["result"].clone();
    let new = ask(&headers(Some("2025-06-18")), &body, &data).body.expect("a body")["result"].clone();
    assert_eq!((&old["structuredContent"], &new["structuredContent"]["rows"]), (&Value::Null, &json!([{"a": 1}])));
    let text = old["content"][1]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), new["structuredContent"]);
    assert!(old["content"][0]["text"].as_str().is_some_and(|note| note.contains("data only")));
}

#[test]
fn rows_that_do_not_fit_follow_on_the_next_page() {
    let long = "x".repeat(9000);
    let rows: Vec<Value> = (0..40).map(|number| json!({"number": number, "long": long})).collect();
    let data = SampleCaller { rows, has_pages: true, ..SampleCaller::default() };
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut arguments = json!({"query": "x", "value_bytes": 10000, "limit": 30});
        if !cursor.is_null() {
            arguments["cursor"] = cursor.clone();
        }
        let result = called(&data, "sql_query", arguments)["structuredContent"].clone();
        seen.extend(result["rows"].as_array().expect("rows").iter().map(|row| row["number"].clone()));
        cursor = result["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, (0..40).map(Value::from).collect::<Vec<_>>());
    let versions: Vec<Option<String>> = data.queries.borrow().iter().map(|query| query.version.clone()).collect();
    assert!(versions.contains(&Some("7".into())), "the second read is of the same version: {versions:?}");
    let data = SampleCaller { has_pages: false, ..data };
    let result = called(&data, "sql_query", json!({"query": "x", "value_bytes": 10000}))["structuredContent"].clone();
    assert_eq!(result["cursor"], Value::Null);
    assert!(result["notes"][0].as_str().is_some_and(|note| note.contains("did not fit")), "{}", result["notes"]);
}

#[test]
fn a_trace_is_a_transcript_or_a_thread() {
    let span = |id: &str, parent: &str, start: u64| {
        json!({"id": id, "span_id": id, "root_span_id": "t", "span_parents": [parent], "metrics": {"start": start},
            "span_attributes": {"name": id, "type": "llm"}, "input": format!("in {id}"), "output": "o".repeat(5000)})
    };
    let rows = vec![span("b", "a", 2), span("a", "", 1)];
    let data = SampleCaller { rows, ..SampleCaller::default() };
    let arguments = json!({"object_type": "project_logs", "object": "p", "trace_id": "t"});
    let result = called(&data, "get_trace", arguments.clone());
    let text = result["content"][1]["text"].as_str().expect("a text");
    assert!(text.starts_with("trace \"t\", 2 spans read\n- llm \"a\""), "{text}");
    assert!(text.contains("\n  - llm \"b\"") && text.contains("pass `span_id`"), "{text}");
    assert_eq!(result["structuredContent"]["spans"][1]["depth"], 1);
    let mut thread = arguments;
    thread["view"] = "thread".into();
    let result = called(&data, "get_trace", thread)["structuredContent"].clone();
    assert_eq!(result["messages"], json!([{"role": "user", "content": "in a"}, {"role": "user", "content": "in b"}]));
    let query = data.queries.borrow().last().cloned().expect("a query");
    assert_eq!((query.preview, query.is_whole), (None, true));
}

#[test]
fn calls_for_the_audit_log_are_those_that_read() {
    let body = json!([
        call("sql_query", json!({"query": "x"})),
        call("btql_query", json!({})),
        call("search_docs", json!({})),
        call("unknown", json!({})),
        request("tools/list", json!({})),
    ]);
    let tools: Vec<&str> = summary_of(&body).iter().map(|call| call.tool).collect();
    assert_eq!(tools, ["sql_query", "sql_query"]);
    let single = call("get_trace", json!({"trace_id": "t"}));
    assert_eq!(summary_of(&single)[0].arguments.expect("arguments")["trace_id"], "t");
}

/// Checks a value against the parts of a schema that this crate uses.
fn fits(schema: &Value, value: &Value) -> bool {
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("{other} is not checked"),
    };
    let types = match &schema["type"] {
        Value::Null => true,
        Value::String(name) => is_type(name),
        Value::Array(names) => names.iter().any(|name| is_type(name.as_str().expect("a name"))),
        other => panic!("{other} is no type"),
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let members = schema["properties"].as_object().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    types
        && required.into_iter().all(|name| value.get(name.as_str().expect("a name")).is_some())
        && members.into_iter().all(|(name, schema)| value.get(name).is_none_or(|value| fits(schema, value)))
        && (schema["items"].is_null() || items.into_iter().all(|item| fits(&schema["items"], item)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_answer_fits_its_size_and_its_schema(
        parts in vec(values(), 1..30), times in 1_usize..60, has_pages in any::<bool>(),
    ) {
        let rows: Vec<Value> = parts.iter().enumerate().map(|(index, part)| {
            let long = part.to_string().repeat(times);
            json!({"id": index.to_string(), "span_id": index.to_string(), "root_span_id": "t", "name": [part, "b"],
                "count": index, "input": part, "output": long, "metadata": {"x": part, "y": long}, "error": long})
        }).collect();
        let records: Vec<Value> = rows.iter().map(|row| {
            let mut record = row.clone();
            record["id"] = ID.into();
            record["config"] = row["metadata"].clone();
            record["name"] = row["output"].clone();
            record
        }).collect();
        let data = SampleCaller { rows, records, has_pages, ..SampleCaller::default() };
        for tool in &TOOLS {
            let result = called(&data, tool.name, right_arguments(tool.name));
            prop_assert_eq!(&result["isError"], &json!(false), "{}: {}", tool.name, result);
            let schema = &tool.definition()["outputSchema"];
            prop_assert!(fits(schema, &result["structuredContent"]), "{}: {}", tool.name, result);
        }
    }
}
