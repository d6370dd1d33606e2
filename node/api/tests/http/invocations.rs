//! Functions over HTTP, with a provider that answers from a script.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{ClientResponse, connect, request};
use crate::fixture::{Fixture, KEY};
use crate::provider::ScriptedProvider;

/// Models that the scripted provider serves.
const MODEL: &str = "gpt-4o-mini";
const EMBEDDING_MODEL: &str = "text-embedding-3-small";
const INVOKE: &str = "/function/invoke";
/// Attempts to find spans, which are written beside responses.
const LOOKS_MAX: usize = 100;

struct Scripted {
    fixture: Fixture,
    provider: ScriptedProvider,
    project: String,
}

impl Scripted {
    fn open() -> Scripted {
        let fixture = Fixture::open();
        let provider = ScriptedProvider::start();
        let project = fixture.project("p");
        let secret = json!({"name": "scripted", "type": "openai", "secret": "sk-of-the-provider",
            "metadata": {"api_base": format!("{}/v1", provider.origin()), "models": [MODEL, EMBEDDING_MODEL]}});
        fixture.post("/v1/ai_secret", &secret).ok();
        Scripted { fixture, provider, project }
    }

    /// Stores a function and returns it.
    #[track_caller]
    fn function(&self, slug: &str, more: Value) -> Value {
        let mut body =
            json!({"project_id": self.project, "name": slug, "slug": slug, "function_data": {"type": "prompt"}});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        self.fixture.post("/v1/function", &body).ok()
    }

    /// Stores a prompt of one user message.
    #[track_caller]
    fn prompt(&self, slug: &str, text: &str) -> String {
        let function = self.function(slug, json!({ "prompt_data": prompt_data(text) }));
        function["id"].as_str().expect("an id").to_owned()
    }

    fn invoke(&self, body: &Value) -> ClientResponse {
        self.fixture.post(INVOKE, body)
    }

    /// Invokes with a stream, and returns its head and its events.
    fn stream(&self, body: &Value) -> (String, String) {
        let bearer = format!("Bearer {KEY}");
        let headers = [("Authorization", bearer.as_str()), ("Connection", "close")];
        let mut body = body.clone();
        body["stream"] = true.into();
        let mut connection = connect(self.fixture.address);
        connection.write_all(&request("POST", INVOKE, &headers, body.to_string().as_bytes())).expect("sent");
        let mut bytes = Vec::new();
        connection.read_to_end(&mut bytes).expect("a whole response");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_lowercase(), without_chunks(body))
    }

    /// Waits until the object has so many rows of this name that ended.
    fn spans(&self, wanted: usize) -> Vec<Value> {
        for _ in 0..LOOKS_MAX {
            let rows = self.fixture.events("project_logs", &self.project);
            if rows.iter().filter(|row| row["metrics"]["end"].is_number()).count() >= wanted {
                return rows;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("there are no {wanted} spans: {:?}", self.fixture.events("project_logs", &self.project))
    }
}

fn prompt_data(text: &str) -> Value {
    json!({
        "prompt": {"type": "chat", "messages": [{"role": "user", "content": text}]},
        "options": {"model": MODEL},
    })
}

/// Takes the lines with the lengths of chunks out of a body.
fn without_chunks(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        if length == 0 {
            break;
        }
        whole.push_str(&after[..length]);
        rest = &after[length + 2..];
    }
    whole
}

#[test]
fn a_stored_prompt_is_invoked_by_every_path() {
    let scripted = Scripted::open();
    let id = scripted.prompt("sum", "{{input.a}} and {{b}}?");
    let input = json!({"a": 1, "b": [2]});
    let answer = scripted.fixture.post(&format!("/v1/function/{id}/invoke"), &json!({ "input": input }));
    assert_eq!(answer.ok(), json!("echo: 1 and [2]?"));
    assert_eq!(answer.header("x-bt-used-endpoint"), Some("scripted"));
    assert_eq!((answer.header("x-bt-span-id"), answer.header("x-bt-span-export")), (None, None));
    let bodies = [
        json!({"function_id": id, "input": input}),
        json!({"project_name": "p", "slug": "sum", "input": input, "parent": "", "messages": [], "mcp_auth": {}}),
        json!({"project_id": scripted.project, "slug": "sum", "input": input}),
        json!({"inline_prompt": prompt_data("{{input.a}} and {{b}}?"), "input": input}),
    ];
    for body in bodies {
        assert_eq!(scripted.invoke(&body).ok(), json!("echo: 1 and [2]?"), "{body}");
    }
    let alias = json!({"function_id": id, "input": input});
    assert_eq!(scripted.fixture.post("/v1/proxy/function/invoke", &alias).ok(), json!("echo: 1 and [2]?"));
    let body = json!({"project_name": "p", "slug": "sum", "input": input});
    let wrapped = scripted.fixture.post("/v1/function", &body).ok();
    assert_eq!(wrapped["output"], "echo: 1 and [2]?");
    let metadata = &wrapped["metadata"];
    assert_eq!((&metadata["model"], &metadata["function_id"]), (&json!(MODEL), &json!(id)));
    assert!(
        metadata["tokens"].is_u64() && metadata["latency_ms"].is_u64() && metadata["version"].is_string(),
        "{metadata}"
    );
}

#[test]
fn a_streamed_prompt_has_the_events_of_the_contract() {
    let scripted = Scripted::open();
    let id = scripted.prompt("sum", "{{input}}");
    let (head, events) = scripted.stream(&json!({"function_id": id, "input": "hi"}));
    assert!(head.contains("content-type: text/event-stream") && head.contains("x-accel-buffering: no"), "{head}");
    assert!(events.starts_with("event: start\ndata: \n\nevent: text_delta\ndata: \"echo\"\n\n"), "{events}");
    assert!(events.ends_with("event: done\ndata: \n\n"), "{events}");
    let texts = events.lines().filter_map(|line| line.strip_prefix("data: \""));
    let whole: String = texts.map(|text| text.trim_end_matches('"')).collect();
    assert_eq!(whole, "echo: hi");
    // a failure before the first event has a status
    let (head, _) = scripted.stream(&json!({"function_id": id, "input": "fail 400"}));
    assert!(head.starts_with("http/1.1 400"), "{head}");
    let global = json!({"global_function": "Levenshtein", "input": {"output": "a", "expected": "a"}});
    let (_, events) = scripted.stream(&global);
    assert!(events.contains("event: json_delta\ndata: {\"name\":\"Levenshtein\",\"score\":1.0}\n\n"), "{events}");
}

#[test]
fn an_invocation_with_a_parent_is_logged_with_its_model_calls() {
    let scripted = Scripted::open();
    let id = scripted.prompt("sum", "{{input}}");
    let parent = json!({"object_type": "project_logs", "object_id": scripted.project, "row_ids":
        {"id": "otel", "span_id": "s", "root_span_id": "r"}, "propagated_event": {"metadata": {"run": 7}}});
    let body = json!({"function_id": id, "input": "hi", "parent": parent, "metadata": {"a": 1}, "tags": ["t"]});
    let answer = scripted.invoke(&body);
    answer.ok();
    let rows = scripted.spans(2);
    let span = rows.iter().find(|row| row["id"] == answer.header("x-bt-span-id").unwrap_or_default()).expect("a span");
    assert_eq!(span["span_attributes"], json!({"name": "sum", "type": "function"}));
    assert_eq!((&span["input"], &span["output"]), (&json!("hi"), &json!("echo: hi")));
    assert_eq!((&span["root_span_id"], &span["span_parents"]), (&json!("r"), &json!(["s"])));
    assert_eq!((&span["metadata"], &span["tags"]), (&json!({"a": 1, "run": 7}), &json!(["t"])));
    let model = rows.iter().find(|row| row["span_attributes"]["type"] == "llm").expect("a model call");
    assert_eq!(model["span_parents"], json!([span["span_id"]]));
    assert_eq!(model["metadata"]["prompt"]["id"], id.as_str());
    assert_eq!(model["metadata"]["prompt"]["variables"], json!({"input": "hi", "metadata": {"a": 1}, "tags": ["t"]}));
    assert_eq!(model["metadata"]["run"], 7);
    assert_eq!(model["output"][0]["message"]["content"], "echo: hi");
}

#[test]
fn a_judge_has_a_score_and_its_span_too() {
    let scripted = Scripted::open();
    // the scripted model chooses `Paris`
    let mut data = prompt_data("{{input}} {{output}}");
    data["parser"] =
        json!({"type": "llm_classifier", "use_cot": true, "choice": [], "choice_scores": {"Oslo": 0, "Paris": 0.5}});
    scripted.function("close", json!({"prompt_data": data, "function_type": "scorer"}));
    let body = json!({"project_name": "p", "slug": "close", "input": {"input": "q", "output": "o"},
        "parent": {"object_type": "project_logs", "object_id": scripted.project}});
    let answer = scripted.invoke(&body).ok();
    let expected = json!({"name": "close", "score": 0.5, "metadata": {"rationale": "Paris", "choice": "Paris"}});
    assert_eq!(answer, expected);
    let rows = scripted.spans(2);
    let span = rows.iter().find(|row| row["span_attributes"]["type"] == "score").expect("a span");
    assert_eq!(span["scores"], json!({"close": 0.5}));
    assert_eq!(span["span_attributes"]["purpose"], "scorer");
    let model = rows.iter().find(|row| row["span_attributes"]["type"] == "llm").expect("a model call");
    assert_eq!(model["span_attributes"]["purpose"], "scorer");
    // the global judges use the same way; no choice of theirs is `Paris`
    let request = json!({"global_function": "Humor", "input": {"output": "o", "model": MODEL}});
    assert!(scripted.invoke(&request).refused(500).contains("Paris"));
}

#[test]
fn a_prompt_uses_prompts_and_global_functions_as_tools() {
    let scripted = Scripted::open();
    let tool = scripted.prompt("weather", "weather in {{input}}");
    let mut data = prompt_data("{{input}}");
    data["tool_functions"] = json!([{"type": "function", "id": tool}]);
    scripted.function("asks", json!({ "prompt_data": data }));
    let body = json!({"project_name": "p", "slug": "asks", "input": "q"});
    assert_eq!(scripted.invoke(&body).ok(), json!("results: echo: weather in Paris"));
    let (_, events) = scripted.stream(&body);
    assert!(
        events.contains("event: progress\ndata: {\"id\":\"") && events.contains("\"name\":\"weather\""),
        "{events}"
    );
    assert!(events.contains("event: text_delta\ndata: \"results: echo: weather in Paris\""), "{events}");
    // this server runs no code
    let code = json!({"type": "code", "data": {"type": "inline", "code": "x",
        "runtime_context": {"runtime": "node", "version": "20"}}});
    let code = scripted.function("code", json!({"function_data": code, "function_type": "tool"}));
    let refused = scripted.invoke(&json!({"function_id": code["id"], "input": 1})).refused(400);
    assert_eq!(refused, "this server runs no code functions: functions.code is off");
}

#[test]
fn global_scorers_are_computed_or_call_models() {
    let scripted = Scripted::open();
    let score = |name: &str, input: Value| scripted.invoke(&json!({"global_function": name, "input": input}));
    let answer = score("Levenshtein", json!({"output": "abc", "expected": "abd"})).ok();
    assert_eq!(answer["name"], "Levenshtein");
    assert!(answer["score"].as_f64().is_some_and(|score| (score - 2.0 / 3.0).abs() < 1e-9), "{answer}");
    let input = json!({"output": "abc", "expected": "abc", "model": EMBEDDING_MODEL});
    assert_eq!(score("EmbeddingSimilarity", input).ok()["score"], 1.0);
    assert!(score("Levenstein", json!({})).refused(404).contains("did you mean `Levenshtein`?"));
    assert!(score("Levenshtein", json!({"output": "a"})).refused(400).contains("needs `expected`"));
    score("Levenshtein", json!("a")).refused(400);
    let facet = json!({"global_function": "Task", "function_type": "facet", "input": {}});
    scripted.invoke(&facet).refused(400);
}

#[test]
fn errors_have_the_statuses_of_the_contract() {
    let scripted = Scripted::open();
    let id = scripted.prompt("sum", "{{input}} {{other}}");
    let invoke = |more: Value| {
        let mut body = json!({"function_id": id, "input": "hi"});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        scripted.invoke(&body)
    };
    let refused = invoke(json!({"strict": true})).refused(400);
    assert_eq!(refused, "Variable 'other' does not exist.");
    invoke(json!({"version": "1", "environment": "e"})).refused(400);
    invoke(json!({"environment": "e"})).refused(404);
    invoke(json!({"mode": "xml"})).refused(400);
    assert!(invoke(json!({"overrides": {"model": "no-such-model"}})).refused(400).contains("no-such-model"));
    let other = json!({"project_name": "p", "slug": "none", "input": 1});
    scripted.invoke(&other).refused(404);
    scripted.invoke(&json!({"input": 1})).refused(400);
    let data = json!({"prompt": {"type": "chat", "messages": []}});
    let refused = scripted.invoke(&json!({"inline_prompt": data})).refused(400);
    assert_eq!(refused, "No model specified");
    let refused = scripted.invoke(&json!({"inline_prompt": prompt_data("fail 401")})).refused(400);
    assert!(refused.contains("`scripted`"), "{refused}");
    scripted.fixture.knock("POST", INVOKE).refused(401);
    let sent = scripted.provider.requests();
    assert!(sent.iter().all(|request| request["use_cache"].is_null()));
}

#[test]
fn the_thread_of_a_trace_is_an_array_of_messages() {
    let scripted = Scripted::open();
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let events = json!([
        {"id": "a", "span_id": "a", "root_span_id": "it's", "input": "q", "output": "a"},
        {"id": "b", "span_id": "b", "root_span_id": "it's", "span_parents": ["a"], "span_attributes": {"type": "llm"},
            "input": [message("system", "s"), message("user", "q")], "output": [{"message": message("assistant", "a")}]},
        {"id": "c", "span_id": "c", "root_span_id": "other", "input": "elsewhere"},
    ]);
    scripted.fixture.post(&format!("/v1/project_logs/{}/insert", scripted.project), &json!({ "events": events })).ok();
    for name in ["thread", "project_default"] {
        let trace = json!({"object_type": "project_logs", "object_id": scripted.project, "root_span_id": "it's"});
        let body = json!({"global_function": name, "function_type": "preprocessor", "input": {"trace_ref": trace}, "mode": "json"});
        let thread = scripted.invoke(&body).ok();
        let mut found: Vec<&Value> = thread.as_array().expect("an array").iter().collect();
        found.sort_by_key(|message| message["role"].as_str().unwrap_or_default().to_owned());
        assert_eq!(json!(found), json!([message("assistant", "a"), message("system", "s"), message("user", "q")]));
    }
    let body = json!({"global_function": "thread", "function_type": "preprocessor", "input": {}});
    assert!(scripted.invoke(&body).refused(400).contains("trace_ref"));
}
