//! Requests of other dialects, which are adapted to the rules of the API.

use serde_json::{Map, Value, json};

use super::{message, question, text, written};
use crate::write_request;
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, FilePart, ImageDetail, JsonSchemaFormat, MediaSource, Message, ModelRequest,
    OutputFormat, ReasoningEffort, ReasoningPart, ReasoningSettings, Role, Sampling, TextPart, ToolCallPart,
    ToolChoice, ToolDefinition, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: None,
        strict: None,
        cache: None,
        extra: Extra::default(),
    }
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

fn result(call_id: &str, name: Option<&str>, said: &str) -> ContentPart {
    ContentPart::ToolResult(ToolResultPart {
        call_id: call_id.to_owned(),
        name: name.map(str::to_owned),
        is_error: false,
        content: vec![text(said)],
        cache: None,
        extra: Extra::default(),
    })
}

fn file(source: MediaSource) -> ContentPart {
    let name = Some("a.pdf".to_owned());
    ContentPart::File(FilePart { source, name, cache: None, extra: Extra::default() })
}

fn image(source: MediaSource) -> ContentPart {
    ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() }
}

fn base64(media_type: &str, data: &str) -> MediaSource {
    MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
}

fn saying(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages, ..question() }
}

fn thinking(reasoning: ReasoningSettings) -> ModelRequest {
    ModelRequest { reasoning: Some(reasoning), ..question() }
}

fn effort(effort: ReasoningEffort) -> ReasoningSettings {
    ReasoningSettings { effort: Some(effort), ..ReasoningSettings::default() }
}

#[test]
fn instructions_are_joined_with_their_cache_marks() {
    let marked = ContentPart::Text(TextPart {
        text: "b".to_owned(),
        cache: Some(CacheControl { value: json!({"type": "ephemeral", "ttl": "1h"}) }),
        ..TextPart::default()
    });
    let request = saying(vec![
        message(Role::System, vec![text("a")]),
        message(Role::User, vec![text("hi")]),
        message(Role::Developer, vec![marked]),
    ]);
    let body = written(&request, &WriteOptions::default());
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "a"},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}])
    );
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!(body["max_tokens"], 4096);
}

#[test]
fn two_parallel_calls_and_their_results_are_one_message_each() {
    let request = saying(vec![
        message(Role::User, vec![text("weather?")]),
        message(Role::Assistant, vec![text(""), call("call.1", "w", r#"{"c":"Bonn"}"#), call("call_2", "w", "")]),
        message(Role::Tool, vec![result("call.1", None, "12")]),
        message(Role::User, vec![text("hurry")]),
        message(Role::Tool, vec![result("call_2", None, "")]),
    ]);
    assert_eq!(
        written(&request, &WriteOptions::default())["messages"],
        json!([{"role": "user", "content": "weather?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_1", "name": "w", "input": {"c": "Bonn"}},
                {"type": "tool_use", "id": "call_2", "name": "w", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "12"},
                {"type": "tool_result", "tool_use_id": "call_2"}, {"type": "text", "text": "hurry"}]}])
    );
}

#[test]
fn calls_without_ids_are_matched_by_name_and_order() {
    let request = saying(vec![
        message(Role::Assistant, vec![call("", "a", ""), call("", "b", ""), call("", "a", "")]),
        message(Role::Tool, vec![result("", Some("b"), "1"), result("", Some("a"), "2"), result("", None, "3")]),
    ]);
    let body = written(&request, &WriteOptions::default());
    let ids = |message: usize, field: &str| {
        let blocks = body["messages"][message]["content"].as_array().expect("blocks");
        blocks.iter().map(|block| block[field].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, "id"), ["toolu_0", "toolu_1", "toolu_2"]);
    assert_eq!(ids(1, "tool_use_id"), ["toolu_1", "toolu_0", "toolu_2"]);
    let alone = saying(vec![message(Role::Tool, vec![result("", Some("b"), "1")])]);
    assert!(matches!(write_request(&alone, &WriteOptions::default()), Err(DialectError::Malformed { .. })));
}

#[test]
fn signed_reasoning_is_sent_and_other_reasoning_is_not() {
    let reasoning = |signature: Option<&str>, extra: Extra| {
        let signature = signature.map(str::to_owned);
        ContentPart::Reasoning(ReasoningPart { text: "hm".to_owned(), signature, encrypted: None, extra })
    };
    let of_gemini = Extra::marked(Dialect::Gemini, Map::new());
    let parts = vec![
        reasoning(Some("sig"), Extra::default()),
        reasoning(None, Extra::default()),
        reasoning(Some("sig"), of_gemini),
        text("so"),
    ];
    let request = saying(vec![message(Role::Assistant, parts)]);
    let sent = write_request(&request, &WriteOptions::default()).expect("it can be written");
    assert_eq!(
        sent.body["messages"][0]["content"],
        json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "text", "text": "so"}])
    );
    assert_eq!(sent.dropped, ["reasoning"]);
}

#[test]
fn media_are_images_pdfs_and_texts() {
    for (part, block) in [
        (
            image(MediaSource::Url("https://a.example/b.png".to_owned())),
            json!({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}),
        ),
        (
            image(MediaSource::Url("data:image/png;base64,aGk=".to_owned())),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
        ),
        (
            image(MediaSource::Url("data:image/png;name=b;base64,aGk=".to_owned())),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}),
        ),
        (
            file(base64("image/webp", "aGk=")),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}}),
        ),
        (
            file(base64("application/pdf", "aGk=")),
            json!({"type": "document", "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}}),
        ),
        (
            file(base64("text/csv; charset=utf-8", "aGk=")),
            json!({"type": "document", "title": "a.pdf",
                "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
        ),
        (
            file(MediaSource::Text("hi".to_owned())),
            json!({"type": "document", "title": "a.pdf",
                "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
        ),
    ] {
        let request = saying(vec![message(Role::User, vec![part])]);
        assert_eq!(written(&request, &WriteOptions::default())["messages"][0]["content"], json!([block]));
    }
}

#[test]
fn what_changes_the_meaning_is_refused_with_its_path() {
    let one = |part: ContentPart| saying(vec![message(Role::User, vec![text("see"), part])]);
    let with_tool = |tool: ToolDefinition| ModelRequest { tools: vec![tool], ..question() };
    let audio = base64("audio/wav", "aGk=");
    let hosted = Extra::of(Dialect::Responses, Map::from_iter([("type".to_owned(), json!("web_search"))]));
    for (request, path) in [
        (one(ContentPart::Audio { source: audio, cache: None, extra: Extra::default() }), "messages[0].content[1]"),
        (one(image(base64("image/tiff", "aGk="))), "messages[0].content[1]"),
        (one(image(MediaSource::FileId("file-1".to_owned()))), "messages[0].content[1]"),
        (one(file(base64("application/zip", "aGk="))), "messages[0].content[1]"),
        (one(file(MediaSource::Url("gs://a/b".to_owned()))), "messages[0].content[1]"),
        (one(ContentPart::Foreign { from: Dialect::Gemini, part: json!({}) }), "messages[0].content[1]"),
        (saying(vec![message(Role::System, vec![image(base64("image/png", "aGk="))])]), "messages[0].content[0]"),
        (with_tool(tool("a.b")), "tools[0].name"),
        (with_tool(tool(&"a".repeat(65))), "tools[0].name"),
        (with_tool(ToolDefinition { extra: hosted, ..tool("") }), "tools[0]"),
    ] {
        let error = write_request(&request, &WriteOptions::default()).expect_err("it cannot be expressed");
        assert!(matches!(&error, DialectError::Unsupported { path: found, .. } if found == path), "{error}");
    }
    let cut = saying(vec![message(Role::Assistant, vec![call("c", "a", r#"{"b"#)])]);
    let error = write_request(&cut, &WriteOptions::default()).expect_err("the arguments are cut");
    assert!(matches!(&error, DialectError::Malformed { path, .. } if path == "messages[0].content[0].arguments"));
}

#[test]
fn the_choice_of_a_tool_is_translated() {
    let both = |choice: Option<ToolChoice>, parallel: Option<bool>| {
        let request = ModelRequest {
            tools: vec![tool("a"), tool("b"), tool("c")],
            tool_choice: choice,
            parallel_tool_calls: parallel,
            ..question()
        };
        let body = written(&request, &WriteOptions::default());
        (body.get("tool_choice").cloned().unwrap_or_default(), body["tools"].as_array().map_or(0, Vec::len))
    };
    let named = |names: &[&str]| Some(ToolChoice::Named(names.iter().map(|name| (*name).to_owned()).collect()));
    for (choice, parallel, expected, tools) in [
        (None, None, Value::Null, 3),
        (None, Some(true), Value::Null, 3),
        (None, Some(false), json!({"type": "auto", "disable_parallel_tool_use": true}), 3),
        (Some(ToolChoice::None), Some(false), json!({"type": "none"}), 3),
        (Some(ToolChoice::Auto), None, json!({"type": "auto"}), 3),
        (Some(ToolChoice::Required), Some(false), json!({"type": "any", "disable_parallel_tool_use": true}), 3),
        (named(&["b"]), None, json!({"type": "tool", "name": "b"}), 3),
        (named(&["b", "c"]), None, json!({"type": "any"}), 2),
    ] {
        assert_eq!(both(choice.clone(), parallel), (expected, tools), "{choice:?} {parallel:?}");
    }
    let without_tools = ModelRequest { tool_choice: Some(ToolChoice::Auto), ..question() };
    assert_eq!(written(&without_tools, &WriteOptions::default()).get("tool_choice"), None);
}

#[test]
fn an_effort_becomes_a_budget_below_the_bound_of_tokens() {
    for (settings, max, model_max, budget, max_tokens) in [
        (effort(ReasoningEffort::Low), Some(10_000), None, 2_000, 10_000),
        (effort(ReasoningEffort::Medium), Some(10_000), None, 5_000, 10_000),
        (effort(ReasoningEffort::High), Some(10_000), None, 8_000, 10_000),
        (effort(ReasoningEffort::ExtraHigh), Some(10_000), None, 10_000, 15_000),
        (effort(ReasoningEffort::Minimal), Some(100), None, 1_024, 1_536),
        (effort(ReasoningEffort::High), None, Some(64_000), 51_200, 64_000),
        (effort(ReasoningEffort::ExtraHigh), None, Some(64_000), 42_666, 64_000),
        (effort(ReasoningEffort::High), None, None, 3_276, 4_096),
        (
            ReasoningSettings { budget_tokens: Some(3_000), ..effort(ReasoningEffort::Low) },
            Some(2_000),
            None,
            3_000,
            4_500,
        ),
        (
            ReasoningSettings { budget_tokens: Some(50_000), ..ReasoningSettings::default() },
            Some(9),
            Some(64_000),
            50_000,
            64_000,
        ),
        (ReasoningSettings { budget_tokens: Some(5), ..ReasoningSettings::default() }, Some(2_000), None, 1_024, 2_000),
        (ReasoningSettings { enabled: Some(true), ..ReasoningSettings::default() }, Some(4_000), None, 2_000, 4_000),
    ] {
        let request = ModelRequest { max_output_tokens: max, ..thinking(settings.clone()) };
        let options = WriteOptions { model_max_output_tokens: model_max, ..WriteOptions::default() };
        let body = written(&request, &options);
        assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": budget}), "{settings:?}");
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(max_tokens), &json!(1)), "{settings:?}");
    }
}

#[test]
fn reasoning_is_switched_off_or_left_alone() {
    for settings in [
        effort(ReasoningEffort::None),
        ReasoningSettings { enabled: Some(false), ..effort(ReasoningEffort::High) },
        ReasoningSettings { budget_tokens: Some(0), ..ReasoningSettings::default() },
    ] {
        let body = written(&thinking(settings), &WriteOptions::default());
        assert_eq!((&body["thinking"], body.get("temperature")), (&json!({"type": "disabled"}), None));
    }
    let body = written(&thinking(ReasoningSettings::default()), &WriteOptions::default());
    assert_eq!(body.get("thinking"), None);
}

#[test]
fn reasoning_forces_neither_a_tool_nor_numbers() {
    let request = ModelRequest {
        tools: vec![tool("a")],
        tool_choice: Some(ToolChoice::Required),
        sampling: Sampling {
            temperature: Some(json!(0.2)),
            top_p: Some(json!(0.5)),
            top_k: Some(json!(3)),
            ..Sampling::default()
        },
        ..thinking(effort(ReasoningEffort::Low))
    };
    let sent = write_request(&request, &WriteOptions::default()).expect("it can be written");
    assert_eq!(sent.dropped, ["tool_choice", "temperature", "top_p", "top_k"]);
    assert_eq!(sent.body["temperature"], 1);
    for name in ["tool_choice", "top_p", "top_k"] {
        assert_eq!(sent.body.get(name), None);
    }
}

#[test]
fn a_call_without_its_reasoning_switches_reasoning_off() {
    let signed = ReasoningPart { text: "hm".to_owned(), signature: Some("s".to_owned()), ..ReasoningPart::default() };
    let replay = |parts: Vec<ContentPart>| ModelRequest {
        messages: vec![
            message(Role::User, vec![text("hi")]),
            message(Role::Assistant, parts),
            message(Role::Tool, vec![result("c", None, "1")]),
        ],
        ..thinking(effort(ReasoningEffort::Low))
    };
    let sent = write_request(&replay(vec![call("c", "a", "")]), &WriteOptions::default()).expect("it can be written");
    assert_eq!((sent.body.get("thinking"), sent.dropped), (None, vec!["reasoning".to_owned()]));
    let parts = vec![ContentPart::Reasoning(signed), call("c", "a", "")];
    let sent = write_request(&replay(parts), &WriteOptions::default()).expect("it can be written");
    assert!(sent.body.get("thinking").is_some() && sent.dropped.is_empty());
}

#[test]
fn a_model_that_adapts_its_reasoning_gets_an_effort_and_no_numbers() {
    let request = ModelRequest {
        sampling: Sampling { temperature: Some(json!(0)), ..Sampling::default() },
        ..thinking(effort(ReasoningEffort::ExtraHigh))
    };
    let options = WriteOptions { adaptive_thinking: true, ..WriteOptions::default() };
    let sent = write_request(&request, &options).expect("it can be written");
    assert_eq!(sent.body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(sent.body["output_config"], json!({"effort": "xhigh"}));
    assert_eq!((sent.body.get("temperature"), sent.dropped), (None, vec!["temperature".to_owned()]));
}

#[test]
fn what_only_tunes_the_answer_is_named() {
    let of_chat = |name: &str| Extra::of(Dialect::Chat, Map::from_iter([(name.to_owned(), json!(1))]));
    let request = ModelRequest {
        sampling: Sampling {
            temperature: Some(json!(1.5)),
            top_p: Some(json!(0.9)),
            top_k: None,
            frequency_penalty: Some(json!(1)),
            presence_penalty: Some(json!(1)),
            seed: Some(json!(1)),
            choices: Some(2),
            logprobs: Some(true),
            top_logprobs: Some(2),
            logit_bias: Some(json!({})),
        },
        stop: vec!["\n".to_owned(), "END".to_owned()],
        user: Some("u".repeat(300)),
        metadata: Some(Map::new()),
        messages: vec![Message {
            role: Role::User,
            name: Some("Ada".to_owned()),
            parts: vec![ContentPart::Image {
                source: MediaSource::Url("https://a.example".to_owned()),
                detail: Some(ImageDetail::High),
                cache: None,
                extra: Extra::default(),
            }],
            extra: of_chat("weight"),
        }],
        extra: of_chat("store"),
        ..question()
    };
    let sent = write_request(&request, &WriteOptions::default()).expect("it can be written");
    assert_eq!(
        sent.dropped,
        [
            "weight",
            "name",
            "image_url.detail",
            "frequency_penalty",
            "presence_penalty",
            "seed",
            "n",
            "logprobs",
            "top_logprobs",
            "logit_bias",
            "temperature",
            "top_p",
            "stop",
            "user",
            "metadata",
            "store"
        ]
    );
    assert_eq!((&sent.body["temperature"], &sent.body["stop_sequences"]), (&json!(1), &json!(["END"])));
    assert_eq!(sent.body.get("top_p"), None);
}

#[test]
fn a_user_is_passed_on() {
    let body = written(&ModelRequest { user: Some("u".to_owned()), ..question() }, &WriteOptions::default());
    assert_eq!(body["metadata"], json!({"user_id": "u"}));
}

#[test]
fn a_tool_gets_a_schema_of_an_object() {
    let strict =
        ToolDefinition { strict: Some(true), parameters: Some(json!({"additionalProperties": false})), ..tool("b") };
    let loose = ToolDefinition { strict: Some(true), parameters: Some(json!({"properties": {}})), ..tool("c") };
    let request = ModelRequest { tools: vec![tool("a"), strict, loose], ..question() };
    let sent = write_request(&request, &WriteOptions::default()).expect("it can be written");
    assert_eq!(
        sent.body["tools"],
        json!([{"name": "a", "input_schema": {"type": "object"}},
            {"name": "b", "strict": true, "input_schema": {"type": "object", "additionalProperties": false}},
            {"name": "c", "input_schema": {"type": "object", "properties": {}}}])
    );
    assert_eq!(sent.dropped, ["strict"]);
}

#[test]
fn a_format_beside_a_forced_tool_is_named() {
    let format = JsonSchemaFormat {
        name: None,
        description: None,
        schema: json!({"properties": {}}),
        strict: None,
        extra: Extra::default(),
    };
    let request = ModelRequest {
        tools: vec![tool("a")],
        tool_choice: Some(ToolChoice::Named(vec!["a".to_owned()])),
        output_format: Some(OutputFormat::JsonSchema(Box::new(format))),
        ..question()
    };
    let sent = write_request(&request, &WriteOptions::default()).expect("it can be written");
    assert_eq!(
        (sent.body["tools"].as_array().map(Vec::len), sent.dropped),
        (Some(1), vec!["response_format".to_owned()])
    );
}
