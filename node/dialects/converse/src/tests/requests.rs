//! Requests in the internal form, and the bodies that are sent.

use serde_json::{Map, Value, json};

use crate::{uses_json_tool, write_request};
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, FilePart, JsonSchemaFormat, MediaSource, Message, ModelRequest, OutputFormat,
    ReasoningEffort, ReasoningPart, ReasoningSettings, Role, Sampling, TextPart, ToolCallPart, ToolChoice,
    ToolDefinition, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

const CLAUDE: &str = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";

fn text(text: &str) -> ContentPart {
    ContentPart::Text(TextPart { text: text.to_owned(), ..TextPart::default() })
}

fn message(role: Role, parts: Vec<ContentPart>) -> Message {
    Message { role, name: None, parts, extra: Extra::default() }
}

fn asking(parts: Vec<ContentPart>) -> ModelRequest {
    ModelRequest { model: CLAUDE.to_owned(), messages: vec![message(Role::User, parts)], ..ModelRequest::default() }
}

fn hi() -> ModelRequest {
    asking(vec![text("hi")])
}

fn call(id: &str, name: &str, arguments: &str) -> ContentPart {
    ContentPart::ToolCall(ToolCallPart {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
        cache: None,
        extra: Extra::default(),
    })
}

fn result(id: &str, name: Option<&str>, content: Vec<ContentPart>) -> ContentPart {
    ContentPart::ToolResult(ToolResultPart {
        call_id: id.to_owned(),
        name: name.map(str::to_owned),
        is_error: false,
        content,
        cache: None,
        extra: Extra::default(),
    })
}

fn image(source: MediaSource) -> ContentPart {
    ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() }
}

fn base64(media_type: &str, data: &str) -> MediaSource {
    MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
}

fn file(name: &str, source: MediaSource) -> ContentPart {
    ContentPart::File(FilePart { source, name: Some(name.to_owned()), cache: None, extra: Extra::default() })
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: Some(format!("does {name}")),
        parameters: Some(json!({"properties": {"city": {"type": "string"}}})),
        strict: None,
        cache: None,
        extra: Extra::default(),
    }
}

fn cache(value: Value) -> Option<CacheControl> {
    Some(CacheControl { value })
}

fn written(request: &ModelRequest) -> (Value, Vec<String>) {
    with_options(request, &WriteOptions::default())
}

fn with_options(request: &ModelRequest, options: &WriteOptions) -> (Value, Vec<String>) {
    let written = write_request(request, options).expect("a request that can be sent");
    (written.body, written.dropped)
}

fn refused(request: &ModelRequest) -> String {
    let why = write_request(request, &WriteOptions::default()).expect_err("a request that cannot be sent");
    assert!(matches!(why, DialectError::Malformed { .. } | DialectError::Unsupported { .. }));
    why.to_string()
}

#[test]
fn instructions_are_joined_and_the_model_is_not_in_the_body() {
    let mut request = hi();
    request.messages.insert(0, message(Role::System, vec![text("be brief")]));
    request.messages.push(message(Role::Developer, vec![text("be kind")]));
    request.max_output_tokens = Some(100);
    request.stop = vec!["END".to_owned(), " ".to_owned()];
    request.sampling = Sampling { temperature: Some(json!(0.5)), ..Sampling::default() };
    let (body, dropped) = written(&request);
    let expected = json!({
        "system": [{"text": "be brief"}, {"text": "be kind"}],
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "stopSequences": ["END"]},
    });
    assert_eq!((body, dropped), (expected, vec!["stop".to_owned()]));
}

#[test]
fn neighbours_of_one_role_are_joined_and_results_come_first() {
    let mut request = hi();
    request.tools = vec![tool("a"), tool("b")];
    request.messages.extend([
        message(Role::Assistant, vec![text("so"), call("c/1", "a", r#"{"city":"Oslo"}"#), call("c2", "b", "")]),
        message(Role::User, vec![text("and?"), text(" \n")]),
        message(Role::Tool, vec![result("c/1", None, vec![text("rain")])]),
        message(Role::Tool, vec![result("c2", None, vec![image(base64("image/png", "aGk="))])]),
    ]);
    let (body, _) = written(&request);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [
                {"text": "so"},
                {"toolUse": {"toolUseId": "c_1", "name": "a", "input": {"city": "Oslo"}}},
                {"toolUse": {"toolUseId": "c2", "name": "b", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "c_1", "content": [{"text": "rain"}]}},
                {"toolResult": {"toolUseId": "c2", "content": [
                    {"image": {"format": "png", "source": {"bytes": "aGk="}}}]}},
                {"text": "and?"},
            ]},
        ])
    );
}

#[test]
fn long_ids_are_cut_alike_in_calls_and_results() {
    let id = "x".repeat(100);
    let mut request = hi();
    request.messages.push(message(Role::Assistant, vec![call(&id, "a", "{}")]));
    request.messages.push(message(Role::Tool, vec![result(&id, None, Vec::new())]));
    let (body, _) = written(&request);
    let called = body["messages"][1]["content"][0]["toolUse"]["toolUseId"].as_str().expect("an id");
    assert_eq!(called.len(), 64);
    assert_eq!(body["messages"][2]["content"][0]["toolResult"]["toolUseId"], called);
}

#[test]
fn calls_without_ids_meet_their_results_by_name() {
    let mut request = hi();
    request.messages.push(message(Role::Assistant, vec![call("", "a", "{}"), call("", "b", "{}")]));
    request.messages.push(message(Role::Tool, vec![result("", Some("b"), Vec::new()), result("", None, Vec::new())]));
    let (body, _) = written(&request);
    let results = &body["messages"][2]["content"];
    assert_eq!(results[0]["toolResult"]["toolUseId"], "tooluse_1");
    assert_eq!(results[1]["toolResult"]["toolUseId"], "tooluse_0");
}

#[test]
fn media_have_formats_and_bytes() {
    for (part, expected) in [
        (image(base64("image/jpg", "eA==")), json!({"image": {"format": "jpeg", "source": {"bytes": "eA=="}}})),
        (
            image(MediaSource::Url("data:image/webp;base64,eA==".into())),
            json!({"image": {"format": "webp", "source": {"bytes": "eA=="}}}),
        ),
        (
            image(MediaSource::Url("s3://bucket/a/b.JPG".into())),
            json!({"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a/b.JPG"}}}}),
        ),
        (
            file("The report: 1.pdf", base64("application/pdf", "eA==")),
            json!({"document": {"format": "pdf", "name": "The report- 1", "source": {"bytes": "eA=="}}}),
        ),
        (
            file("", MediaSource::Text("hi".into())),
            json!({"document": {"format": "txt", "name": "document", "source": {"bytes": "aGk="}}}),
        ),
        (
            file("a.json", base64("application/json; charset=utf-8", "e30=")),
            json!({"document": {"format": "txt", "name": "a", "source": {"bytes": "e30="}}}),
        ),
        (file("a.gif", base64("image/gif", "eA==")), json!({"image": {"format": "gif", "source": {"bytes": "eA=="}}})),
        (file("a", base64("video/mp4", "eA==")), json!({"video": {"format": "mp4", "source": {"bytes": "eA=="}}})),
        (
            ContentPart::Audio { source: base64("audio/wav", "eA=="), cache: None, extra: Extra::default() },
            json!({"audio": {"format": "wav", "source": {"bytes": "eA=="}}}),
        ),
    ] {
        let (body, dropped) = written(&asking(vec![part]));
        assert_eq!(body["messages"][0]["content"], json!([expected]));
        assert!(dropped.is_empty());
    }
}

#[test]
fn names_of_documents_are_unique() {
    let document = || file("a.pdf", base64("application/pdf", "eA=="));
    let (body, _) = written(&asking(vec![document(), document()]));
    let names: Vec<_> = (0..2).map(|at| body["messages"][0]["content"][at]["document"]["name"].clone()).collect();
    assert_eq!(names, ["a", "a (2)"]);
}

#[test]
fn what_cannot_be_sent_is_refused_with_its_path() {
    let path = "messages[0].content[0]";
    for (part, expected) in [
        (image(MediaSource::Url("https://a/b.png".into())), "a URL other than"),
        (image(base64("image/tiff", "")), "an image of the type image/tiff"),
        (image(MediaSource::FileId("file-1".into())), "stored by another provider"),
        (image(MediaSource::Url("s3://bucket/a".into())), "S3"),
        (file("a", base64("application/zip", "")), "application/zip"),
        (call("c", "a", "[1]"), "the JSON text of an object"),
        (call("c", "a", "{"), "the JSON text of an object"),
        (result("", None, Vec::new()), "an earlier message"),
        (result("c", None, vec![call("c", "a", "")]), "content[0]"),
        (ContentPart::Foreign { from: Dialect::Anthropic, part: json!({}) }, "only Anthropic has"),
    ] {
        let why = refused(&asking(vec![part]));
        assert!(why.starts_with(path) && why.contains(expected), "{why}");
    }
    let mut request = hi();
    request.tools = vec![tool("a.b")];
    assert!(refused(&request).starts_with("tools[0].name"));
    request.tools = vec![ToolDefinition { name: String::new(), ..tool("") }];
    assert!(refused(&request).contains("another provider runs"));
    request.tools = vec![ToolDefinition { parameters: Some(json!([])), ..tool("a") }];
    assert!(refused(&request).starts_with("tools[0].parameters"));
}

#[test]
fn each_choice_of_tools_has_its_form() {
    let spec = |name: &str| {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        json!({"toolSpec": {"name": name, "description": format!("does {name}"), "inputSchema": {"json": schema}}})
    };
    let both = json!([spec("a"), spec("b")]);
    for (choice, expected) in [
        (None, json!({"tools": both})),
        (Some(ToolChoice::Auto), json!({"tools": both, "toolChoice": {"auto": {}}})),
        (Some(ToolChoice::Required), json!({"tools": both, "toolChoice": {"any": {}}})),
        (Some(ToolChoice::Named(vec!["b".into()])), json!({"tools": both, "toolChoice": {"tool": {"name": "b"}}})),
        (Some(ToolChoice::Named(vec!["a".into(), "b".into()])), json!({"tools": both, "toolChoice": {"any": {}}})),
        (Some(ToolChoice::None), Value::Null),
    ] {
        let request = ModelRequest { tools: vec![tool("a"), tool("b")], tool_choice: choice.clone(), ..hi() };
        assert_eq!(written(&request).0["toolConfig"], expected, "{choice:?}");
    }
}

#[test]
fn a_history_with_calls_always_has_a_tool() {
    let mut request = hi();
    request.messages.push(message(Role::Assistant, vec![call("c", "a", "{}")]));
    request.messages.push(message(Role::Tool, vec![result("c", None, vec![text("x")])]));
    for tools in [Vec::new(), vec![tool("a")]] {
        request.tools = tools;
        request.tool_choice = Some(ToolChoice::None);
        let (body, _) = written(&request);
        assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["name"], "none_available");
        assert_eq!(body["toolConfig"].get("toolChoice"), None);
    }
}

#[test]
fn marks_of_caches_become_cache_points() {
    let marked = |ttl: Option<&str>| {
        let mut value = json!({"type": "ephemeral"});
        if let Some(ttl) = ttl {
            value["ttl"] = ttl.into();
        }
        ContentPart::Text(TextPart { text: "long".into(), cache: cache(value), ..TextPart::default() })
    };
    let mut request = asking(vec![marked(Some("1h")), text("hi")]);
    request.messages.insert(0, message(Role::System, vec![marked(None)]));
    request.tools = vec![ToolDefinition { cache: cache(json!({"type": "ephemeral"})), ..tool("a") }];
    let (body, _) = written(&request);
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(body["system"], json!([{"text": "long"}, point]));
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"text": "long"}, {"cachePoint": {"type": "default", "ttl": "1h"}}, {"text": "hi"}])
    );
    assert_eq!(body["toolConfig"]["tools"][1], point);
    let options = WriteOptions { refuses_cache_control: true, ..WriteOptions::default() };
    let (body, dropped) = with_options(&request, &options);
    assert!(!body.to_string().contains("cachePoint"));
    assert_eq!(dropped, ["cache_control"]);
}

#[test]
fn a_schema_is_enforced_or_is_a_tool() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = JsonSchemaFormat {
        name: Some("answer".into()),
        description: None,
        schema: schema.clone(),
        strict: Some(true),
        extra: Extra::default(),
    };
    let mut request = ModelRequest { output_format: Some(OutputFormat::JsonSchema(Box::new(format))), ..hi() };
    let (body, _) = written(&request);
    let expected = json!({"schema": schema.to_string(), "name": "answer"});
    assert_eq!(
        body["outputConfig"],
        json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": expected}}})
    );
    assert!(!uses_json_tool(&request, &WriteOptions::default()));
    let options = WriteOptions { schema_as_tool: true, ..WriteOptions::default() };
    let (body, _) = with_options(&request, &options);
    assert!(uses_json_tool(&request, &options));
    assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"], schema);
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": "json"}}));
    request.tools = vec![tool("a")];
    assert_eq!(with_options(&request, &options).0["toolConfig"]["toolChoice"], json!({"any": {}}));
    request.tools = vec![tool("json")];
    assert!(write_request(&request, &options).is_err());
    request.tools = vec![tool("a")];
    request.tool_choice = Some(ToolChoice::Named(vec!["a".into()]));
    let (_, dropped) = with_options(&request, &options);
    assert_eq!(dropped, ["response_format"]);
    let request = ModelRequest { output_format: Some(OutputFormat::JsonObject), ..hi() };
    assert!(uses_json_tool(&request, &WriteOptions::default()));
    assert_eq!(written(&request).0["toolConfig"]["tools"][0]["toolSpec"]["name"], "json");
}

fn reasoning(settings: ReasoningSettings) -> ModelRequest {
    ModelRequest { reasoning: Some(settings), ..hi() }
}

#[test]
fn reasoning_is_asked_for_as_the_model_takes_it() {
    let effort = |effort| ReasoningSettings { effort: Some(effort), ..ReasoningSettings::default() };
    let budget = |tokens| ReasoningSettings { budget_tokens: Some(tokens), ..ReasoningSettings::default() };
    let enabled = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    let off = ReasoningSettings { enabled: Some(false), ..ReasoningSettings::default() };
    for (model, settings, fields, max_tokens) in [
        (CLAUDE, effort(ReasoningEffort::Medium), enabled(5000), json!(10_000)),
        (CLAUDE, effort(ReasoningEffort::ExtraHigh), enabled(10_000), json!(15_000)),
        (CLAUDE, budget(20_000), enabled(20_000), json!(30_000)),
        (CLAUDE, budget(10), enabled(1024), json!(10_000)),
        (CLAUDE, off.clone(), json!({"thinking": {"type": "disabled"}}), json!(10_000)),
        (CLAUDE, ReasoningSettings::default(), Value::Null, json!(10_000)),
        (
            "openai.gpt-oss-120b-1:0",
            effort(ReasoningEffort::Minimal),
            json!({"reasoning_effort": "low"}),
            json!(10_000),
        ),
        ("openai.gpt-oss-120b-1:0", off, Value::Null, json!(10_000)),
        ("amazon.nova-pro-v1:0", effort(ReasoningEffort::High), Value::Null, json!(10_000)),
    ] {
        let request = ModelRequest { model: model.into(), max_output_tokens: Some(10_000), ..reasoning(settings) };
        let (body, _) = written(&request);
        assert_eq!(body["additionalModelRequestFields"], fields, "{model} {:?}", request.reasoning);
        assert_eq!(body["inferenceConfig"]["maxTokens"], max_tokens, "{model} {:?}", request.reasoning);
    }
    let options = WriteOptions { adaptive_thinking: true, ..WriteOptions::default() };
    let (body, _) = with_options(&reasoning(effort(ReasoningEffort::High)), &options);
    assert_eq!(body["additionalModelRequestFields"], json!({"thinking": {"type": "adaptive"}}));
    assert_eq!(body["outputConfig"], json!({"effort": "high"}));
    let options = WriteOptions { model_max_output_tokens: Some(8000), ..WriteOptions::default() };
    let (body, _) = with_options(&reasoning(budget(32_000)), &options);
    assert_eq!(body["additionalModelRequestFields"], enabled(5332));
    assert_eq!(body["inferenceConfig"]["maxTokens"], 8000);
}

#[test]
fn settings_that_thinking_refuses_are_dropped() {
    let settings = ReasoningSettings { budget_tokens: Some(2000), ..ReasoningSettings::default() };
    let mut request = reasoning(settings);
    request.tools = vec![tool("a")];
    request.tool_choice = Some(ToolChoice::Required);
    request.sampling = Sampling {
        temperature: Some(json!(0.2)),
        top_p: Some(json!(0.9)),
        top_k: Some(json!(5)),
        ..Sampling::default()
    };
    let (body, dropped) = written(&request);
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 4096}));
    assert_eq!(body["toolConfig"].get("toolChoice"), None);
    assert_eq!(dropped, ["tool_choice", "temperature", "top_p", "top_k"]);
}

#[test]
fn signed_reasoning_is_replayed_and_other_is_dropped() {
    let part = |signature: Option<&str>, encrypted: Option<&str>, extra: Extra| {
        ContentPart::Reasoning(ReasoningPart {
            text: if encrypted.is_some() { String::new() } else { "hm".into() },
            signature: signature.map(str::to_owned),
            encrypted: encrypted.map(str::to_owned),
            extra,
        })
    };
    let none = Extra::default;
    let signed = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}});
    for (part, expected) in [
        (part(Some("s"), None, none()), Some(signed)),
        (part(None, Some("ZQ=="), none()), Some(json!({"reasoningContent": {"redactedContent": "ZQ=="}}))),
        (part(None, None, none()), None),
        (part(Some("s"), None, Extra::marked(Dialect::Gemini, Map::new())), None),
    ] {
        let mut request = hi();
        request.messages.push(message(Role::Assistant, vec![part, text("so")]));
        let (body, dropped) = written(&request);
        let content: Vec<Value> = expected.into_iter().chain([json!({"text": "so"})]).collect();
        assert_eq!(dropped.is_empty(), content.len() == 2);
        assert_eq!(body["messages"][1]["content"], json!(content));
    }
}

#[test]
fn tuning_that_the_api_does_not_have_is_dropped_by_name() {
    let mut request = hi();
    request.sampling = Sampling {
        temperature: Some(json!(1.7)),
        top_p: Some(json!(0.9)),
        top_k: Some(json!(5)),
        frequency_penalty: Some(json!(1)),
        presence_penalty: Some(json!(1)),
        seed: Some(json!(1)),
        choices: Some(2),
        logprobs: Some(true),
        top_logprobs: Some(2),
        logit_bias: Some(json!({})),
    };
    request.user = Some("u".into());
    request.metadata = Some(Map::new());
    request.extra = Extra::of(Dialect::Chat, Map::from_iter([("store".to_owned(), json!(true))]));
    let (body, dropped) = written(&request);
    assert_eq!(body["inferenceConfig"], json!({"temperature": 1}));
    assert_eq!(body["additionalModelRequestFields"], json!({"top_k": 5}));
    let names = [
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "n",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "user",
        "metadata",
        "store",
    ];
    assert_eq!(dropped, names);
    request.model = "meta.llama3-3-70b-instruct-v1:0".into();
    let (body, dropped) = written(&request);
    assert_eq!(body["inferenceConfig"], json!({"temperature": 1, "topP": 0.9}));
    assert!(dropped.contains(&"top_k".to_owned()) && !dropped.contains(&"top_p".to_owned()));
}
