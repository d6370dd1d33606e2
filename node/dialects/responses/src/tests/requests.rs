//! Facts about requests.

use serde_json::{Value, json};

use super::super::{read_request, refuse_stateful, write_request};
use super::normal::normal_request;
use super::{call, text};
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, FilePart, MediaSource, Message, ModelRequest, OutputFormat, ReasoningEffort,
    ReasoningPart, ReasoningSettings, Role, Sampling, TextPart, ToolChoice, ToolDefinition, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};

fn written(request: &ModelRequest) -> WrittenRequest {
    write_request(request, &WriteOptions::default()).expect("writes")
}

fn message(role: Role, parts: Vec<ContentPart>) -> Message {
    Message { role, name: None, parts, extra: Extra::default() }
}

fn bodies() -> Vec<Value> {
    vec![
        json!({"model": "gpt-5", "input": "hi"}),
        json!({"model": "gpt-5", "instructions": "Be brief.", "input": [{"role": "user", "content": "hi"}], "stream": true,
            "store": false, "previous_response_id": "resp_1", "background": false, "include": ["file_search_call.results"],
            "truncation": "auto", "metadata": {"a": "b"}, "user": "u", "prompt_cache_key": "k", "service_tier": "flex",
            "temperature": 0.5, "top_p": 1, "max_output_tokens": 100, "parallel_tool_calls": false, "x": null}),
        json!({"model": "gpt-5", "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b", "x": 1}]},
            {"type": "message", "role": "user", "id": "msg_0", "status": "completed", "content": [
                {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "original"},
                {"type": "input_image", "file_id": "file_1", "detail": "auto"},
                {"type": "input_file", "file_id": "file_2"},
                {"type": "input_file", "file_url": "https://a/b.pdf", "x": 2},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3", "y": 1}},
                {"type": "input_smell", "data": "AAAA"}]}]}),
        json!({"model": "gpt-5", "input": [
            {"role": "user", "content": "weather?"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "think"}], "encrypted_content": "e"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
             "content": [{"type": "output_text", "text": "I look.", "annotations": [{"type": "url_citation", "url": "u"}]},
                         {"type": "refusal", "refusal": "no"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "rain", "id": "fco_1"},
            {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "sun"},
                {"type": "input_image", "image_url": "https://a/b.png"}]},
            {"role": "assistant", "content": "It rains."}, {"role": "assistant", "content": "It shines."},
            {"type": "item_reference", "id": "msg_9"}, {"id": "msg_10"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
            {"type": "message", "role": "assistant", "content": [{"type": "output_smell", "data": "A"}], "id": "msg_11"},
            {"role": "assistant", "content": [], "id": "msg_12"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]},
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}]}),
        json!({"model": "gpt-5", "input": "hi", "reasoning": {"effort": "high", "summary": "detailed", "x": 1},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true, "description": "d", "x": 1},
                     "verbosity": "low"},
            "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true, "defer_loading": true},
                      {"type": "function", "name": "g"}, {"type": "web_search", "filters": {}}],
            "tool_choice": {"type": "function", "name": "f"}}),
        json!({"input": "hi", "text": {"format": {"type": "text", "x": 1}}, "tool_choice": "required", "prompt": {"id": "p"}}),
        json!({"input": "hi", "text": {"format": {"type": "grammar", "syntax": "lark"}}, "tool_choice": {"type": "web_search"}}),
        json!({"input": "hi", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}}),
        json!({"input": "hi", "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [
            {"type": "function", "name": "f"}, {"type": "function", "name": "g"}]}}),
        json!({"input": "hi", "top_logprobs": 2, "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}),
    ]
}

#[test]
fn a_body_is_read_and_written_without_loss() {
    for body in bodies() {
        let request = read_request(&body).expect("reads");
        let WrittenRequest { body: written, dropped } = written(&request);
        assert_eq!(normal_request(&written), normal_request(&body));
        assert_eq!(dropped, [""; 0]);
        assert_eq!(read_request(&written).expect("reads again"), request);
    }
}

#[test]
fn calls_made_at_once_are_in_one_message_with_what_led_to_them() {
    let request = read_request(&bodies()[3]).expect("reads");
    let kinds = request.messages[1].parts.iter().map(|part| match part {
        ContentPart::Reasoning(part) => format!("reasoning {} {:?}", part.text, part.encrypted),
        ContentPart::Text(part) => part.text.clone(),
        ContentPart::Refusal(part) => format!("refusal {}", part.text),
        ContentPart::ToolCall(part) => format!("{} {} {}", part.id, part.name, part.arguments),
        _ => String::new(),
    });
    let expected = ["reasoning think Some(\"e\")", "I look.", "refusal no", "call_1 f {\"a\":1}", "call_2 g {}"];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let roles: Vec<_> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles[..6], [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant, Role::Assistant]);
    let ContentPart::ToolResult(result) = &request.messages[2].parts[0] else { panic!("is a result") };
    assert_eq!((result.call_id.as_str(), &result.content), ("call_1", &vec![text("rain")]));
}

#[test]
fn settings_have_their_fields_in_the_form() {
    let request = read_request(&bodies()[4]).expect("reads");
    let reasoning = request.reasoning.expect("has reasoning");
    assert_eq!((reasoning.effort, reasoning.include_text), (Some(ReasoningEffort::High), Some(true)));
    let Some(OutputFormat::JsonSchema(schema)) = request.output_format else { panic!("has a schema") };
    assert_eq!((schema.name.as_deref(), schema.strict), (Some("n"), Some(true)));
    assert_eq!(request.tool_choice, Some(ToolChoice::Named(vec!["f".into()])));
    assert_eq!(request.tools[0].name, "f");
    assert_eq!(request.tools[2].name, "");
    let named = read_request(&bodies()[8]).expect("reads").tool_choice;
    assert_eq!(named, Some(ToolChoice::Named(vec!["f".into(), "g".into()])));
    assert_eq!(read_request(&bodies()[9]).expect("reads").sampling.logprobs, Some(true));
}

#[test]
fn a_malformed_body_says_where() {
    let table = [
        (json!([]), "the body: expected an object"),
        (json!({"input": 1}), "input: expected a text or a list of items"),
        (
            json!({"input": [{"role": "robot", "content": ""}]}),
            "input[0].role: expected user, assistant, system or developer",
        ),
        (
            json!({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}]}),
            "input[0].content[0].text: expected a text",
        ),
        (json!({"input": [{"type": "function_call", "name": "f"}]}), "input[0].call_id: expected a text"),
        (json!({"input": [{}]}), "input[0].type: expected the type of an item"),
        (json!({"input": "hi", "temperature": "1"}), "temperature: expected a number"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "message", "role": "user", "content": []}]}]}),
            "input[0].content[0].type: expected the type of a content part",
        ),
        (json!({"tools": [{"name": "f"}]}), "tools[0].type: expected the type of a tool"),
        (json!({"tools": [{"type": "function", "name": ""}]}), "tools[0].name: expected the name of a function"),
        (json!({"tool_choice": "some"}), "tool_choice: expected none, auto, required or an object"),
        (json!({"max_output_tokens": -1}), "max_output_tokens: expected a whole number from 0"),
        (json!({"text": {"format": {"type": "json_schema"}}}), "text.format.schema: expected a JSON schema"),
    ];
    for (body, expected) in table {
        assert_eq!(read_request(&body).expect_err("is malformed").to_string(), expected);
    }
    let many = json!({"input": vec![json!({"role": "user", "content": ""}); 20_001]});
    assert!(matches!(read_request(&many), Err(DialectError::TooMany { max: 20_000, .. })));
}

fn chat_like() -> ModelRequest {
    let fields = json!({"verbosity": "low", "service_tier": "flex", "logit": 1});
    ModelRequest {
        model: "gpt-5-codex".into(),
        messages: vec![
            message(Role::System, vec![text("Be brief.")]),
            message(Role::System, vec![text("Be kind.")]),
            message(
                Role::User,
                vec![
                    text("a"),
                    ContentPart::Image {
                        source: MediaSource::Base64 { media_type: "image/png".into(), data: "AA".into() },
                        detail: None,
                        cache: Some(CacheControl { value: json!({"type": "ephemeral"}) }),
                        extra: Extra::default(),
                    },
                ],
            ),
            message(
                Role::Assistant,
                vec![
                    ContentPart::Reasoning(ReasoningPart {
                        text: "t".into(),
                        signature: Some("s".into()),
                        ..Default::default()
                    }),
                    text("b"),
                    ContentPart::ToolCall(call("call_1", "f", "{}")),
                    ContentPart::ToolCall(call("", "g", "{}")),
                ],
            ),
            message(Role::Tool, vec![result("call_1", None)]),
            message(Role::Tool, vec![result("", Some("g"))]),
        ],
        tools: vec![ToolDefinition {
            name: "f".into(),
            description: None,
            parameters: Some(json!({})),
            strict: None,
            cache: None,
            extra: Extra::default(),
        }],
        tool_choice: Some(ToolChoice::Named(vec!["f".into()])),
        sampling: Sampling {
            temperature: Some(json!(0)),
            seed: Some(json!(1)),
            logprobs: Some(true),
            choices: Some(2),
            ..Default::default()
        },
        stop: vec!["x".into()],
        reasoning: Some(ReasoningSettings {
            budget_tokens: Some(5_000),
            include_text: Some(true),
            ..Default::default()
        }),
        max_output_tokens: Some(10_000),
        extra: Extra::of(Dialect::Chat, fields.as_object().expect("is an object").clone()),
        ..ModelRequest::default()
    }
}

fn result(id: &str, name: Option<&str>) -> ContentPart {
    ContentPart::ToolResult(ToolResultPart {
        call_id: id.into(),
        name: name.map(str::to_owned),
        is_error: true,
        content: vec![text("r")],
        cache: None,
        extra: Extra::default(),
    })
}

#[test]
fn a_request_of_another_dialect_is_written_in_full_and_stays_unstored() {
    let WrittenRequest { body, dropped } = written(&chat_like());
    let expected = json!({
        "model": "gpt-5-codex", "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "system", "content": "Be kind."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
            {"type": "message", "role": "assistant", "content": "b"},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_4", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "r"},
            {"type": "function_call_output", "call_id": "call_4", "output": "r"}],
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": false}],
        "tool_choice": {"type": "function", "name": "f"}, "text": {"verbosity": "low"},
        "reasoning": {"effort": "medium", "summary": "auto"}, "max_output_tokens": 10_000, "temperature": 0,
        "include": ["message.output_text.logprobs"], "service_tier": "flex", "store": false,
    });
    assert_eq!(body, expected);
    assert_eq!(dropped, ["cache_control", "reasoning", "is_error", "seed", "n", "stop", "logit"]);
}

#[test]
fn a_reasoning_model_gets_no_temperature_unless_it_does_not_reason() {
    let options = WriteOptions { is_reasoning_model: true, ..WriteOptions::default() };
    let mut request = read_request(&json!({"input": "hi", "temperature": 1, "top_p": 1})).expect("reads");
    let reasoning = write_request(&request, &options).expect("writes");
    assert_eq!((reasoning.body.get("temperature"), reasoning.dropped.len()), (None, 2));
    request.reasoning = Some(ReasoningSettings { effort: Some(ReasoningEffort::None), ..Default::default() });
    let body = write_request(&request, &options).expect("writes").body;
    assert_eq!((&body["temperature"], &body["reasoning"]["effort"]), (&json!(1), &json!("none")));
}

#[test]
fn an_effort_follows_from_a_budget() {
    let table = [
        (Some(0), None, "none"),
        (Some(2_000), Some(10_000), "low"),
        (Some(8_000), Some(10_000), "high"),
        (Some(1_024), None, "low"),
        (Some(10_000), None, "medium"),
        (Some(30_000), None, "high"),
    ];
    for (budget_tokens, max_output_tokens, effort) in table {
        let reasoning = Some(ReasoningSettings { budget_tokens, ..Default::default() });
        let request = ModelRequest { reasoning, max_output_tokens, ..ModelRequest::default() };
        assert_eq!(written(&request).body["reasoning"], json!({"effort": effort}));
    }
}

#[test]
fn what_changes_the_meaning_is_refused() {
    let foreign = ContentPart::Foreign { from: Dialect::Anthropic, part: json!({}) };
    let sound = ContentPart::Audio { source: MediaSource::Url("u".into()), cache: None, extra: Extra::default() };
    let image =
        ContentPart::Image { source: MediaSource::Url("u".into()), detail: None, cache: None, extra: Extra::default() };
    for (role, part) in
        [(Role::User, foreign.clone()), (Role::Assistant, foreign), (Role::User, sound), (Role::Assistant, image)]
    {
        let request = ModelRequest { messages: vec![message(role, vec![part])], ..ModelRequest::default() };
        let error = write_request(&request, &WriteOptions::default()).expect_err("is refused");
        assert!(matches!(&error, DialectError::Unsupported { path, .. } if path == "messages[0].parts[0]"), "{error}");
    }
    let fields = json!({"type": "web_search_20250305", "name": "web_search"});
    let extra = Extra::of(Dialect::Anthropic, fields.as_object().expect("is an object").clone());
    let tool =
        ToolDefinition { name: String::new(), description: None, parameters: None, strict: None, cache: None, extra };
    let request = ModelRequest { tools: vec![tool], ..ModelRequest::default() };
    assert!(matches!(write_request(&request, &WriteOptions::default()), Err(DialectError::Unsupported { .. })));
}

#[test]
fn a_document_of_text_becomes_a_text_and_bytes_get_a_name() {
    let file = |source| ContentPart::File(FilePart { source, name: None, cache: None, extra: Extra::default() });
    let parts = vec![
        file(MediaSource::Text("doc".into())),
        file(MediaSource::Base64 { media_type: "application/pdf".into(), data: "AA".into() }),
        ContentPart::Refusal(TextPart { text: "no".into(), ..TextPart::default() }),
    ];
    let request = ModelRequest { messages: vec![message(Role::User, parts)], ..ModelRequest::default() };
    let expected = json!([
        {"type": "input_text", "text": "doc"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "file.pdf"},
        {"type": "input_text", "text": "no"}]);
    assert_eq!(written(&request).body["input"][0]["content"], expected);
    let bare = json!({"input": [{"role": "user", "content": [{"type": "input_file", "filename": "a.csv", "file_data": "AA"}]}]});
    let ContentPart::File(file) = &read_request(&bare).expect("reads").messages[0].parts[0] else {
        panic!("is a file")
    };
    assert_eq!(file.source, MediaSource::Base64 { media_type: "text/csv".into(), data: "AA".into() });
}

#[test]
fn state_on_the_server_is_refused_for_others() {
    let table = [
        (json!({"input": "hi"}), None),
        (json!({"input": "hi", "store": false, "background": null, "previous_response_id": null}), None),
        (json!({"input": "hi", "store": true}), Some("store")),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), Some("input")),
        (json!({"input": "hi", "background": true}), Some("background")),
        (json!({"input": "hi", "previous_response_id": "resp_1"}), Some("previous_response_id")),
        (json!({"input": "hi", "conversation": "conv_1"}), Some("conversation")),
        (json!({"prompt": {"id": "p"}}), Some("prompt")),
        (json!({"input": "hi", "tool_choice": {"type": "web_search"}}), Some("tool_choice")),
        (json!({"input": "hi", "tool_choice": "auto"}), None),
        (json!({"input": "hi", "text": {"format": {"type": "grammar"}}}), Some("text.format")),
        (json!({"input": "hi", "text": {"format": {"type": "text", "x": 1}}}), None),
    ];
    for (body, expected) in table {
        let refused = refuse_stateful(&read_request(&body).expect("reads")).err();
        let path = refused.map(|error| match error {
            DialectError::Unsupported { path, .. } => path,
            other => panic!("{other}"),
        });
        assert_eq!(path.as_deref(), expected, "{body}");
    }
}

#[test]
fn a_signature_of_gemini_survives_in_a_call() {
    let extra_content = json!({"google": {"thought_signature": "s"}});
    let body = json!({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "extra_content": extra_content}]});
    let request = read_request(&body).expect("reads");
    let ContentPart::ToolCall(call) = &request.messages[0].parts[0] else { panic!("is a call") };
    assert_eq!(call.signature.as_deref(), Some("s"));
    assert_eq!(written(&request).body, body);
}
