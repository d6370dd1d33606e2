//! Tests of requests of other dialects that are written for Gemini.

use serde_json::{Value, json};

use super::{call, text};
use crate::{SIGNATURE_PLACEHOLDER, write_request};
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, FilePart, ImageDetail, JsonSchemaFormat, MediaSource, Message, ModelRequest,
    OutputFormat, ReasoningEffort, ReasoningPart, ReasoningSettings, Role, TextPart, ToolCallPart, ToolChoice,
    ToolDefinition, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};

fn message(role: Role, parts: Vec<ContentPart>) -> Message {
    Message { role, name: None, parts, extra: Extra::default() }
}

fn result(call_id: &str, text: &str) -> ContentPart {
    ContentPart::ToolResult(ToolResultPart {
        call_id: call_id.to_owned(),
        name: None,
        is_error: false,
        content: vec![super::text(text)],
        cache: None,
        extra: Extra::default(),
    })
}

fn written(request: &ModelRequest) -> WrittenRequest {
    write_request(request, &WriteOptions::default()).expect("writes")
}

fn with_messages(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages, ..ModelRequest::default() }
}

fn tool(name: &str, parameters: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: Some(parameters),
        strict: None,
        cache: None,
        extra: Extra::default(),
    }
}

fn conversation() -> ModelRequest {
    let calls = ["call_1", "call_2"].map(|id| ContentPart::ToolCall(call(id, "weather", r#"{"city":"Rome"}"#)));
    let mut request = with_messages(vec![
        message(Role::System, vec![text("Be short.")]),
        message(Role::User, vec![text("Weather?")]),
        message(Role::Assistant, [vec![text("")], calls.to_vec()].concat()),
        message(Role::Tool, vec![result("call_2", "sun")]),
        message(Role::Tool, vec![result("call_1", r#"{"celsius":4}"#)]),
        message(Role::Developer, vec![text("Be kind.")]),
    ]);
    request.tools = vec![
        tool(
            "weather",
            json!({ "type": "object", "properties": { "city": { "type": "string" } }, "additionalProperties": false }),
        ),
        tool("now", json!({ "type": "object", "properties": {} })),
    ];
    request.tool_choice = Some(ToolChoice::Required);
    request
}

#[test]
fn results_go_back_by_name_in_one_content() {
    assert_eq!(
        written(&conversation()).body,
        json!({
            "systemInstruction": { "parts": [{ "text": "Be short." }, { "text": "Be kind." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "Weather?" }] },
                { "role": "model", "parts": [
                    { "functionCall": { "id": "call_1", "name": "weather", "args": { "city": "Rome" } } },
                    { "functionCall": { "id": "call_2", "name": "weather", "args": { "city": "Rome" } } }] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "call_2", "name": "weather", "response": { "output": "sun" } } },
                    { "functionResponse": { "id": "call_1", "name": "weather", "response": { "celsius": 4 } } }] }],
            "tools": [{ "functionDeclarations": [
                { "name": "weather", "parameters": { "type": "OBJECT", "properties": { "city": { "type": "STRING" } } } },
                { "name": "now" }] }],
            "toolConfig": { "functionCallingConfig": { "mode": "ANY" } },
        })
    );
}

#[test]
fn the_first_call_gets_a_placeholder_where_a_signature_is_needed() {
    let options = WriteOptions { needs_call_signatures: true, omits_call_ids: true, ..WriteOptions::default() };
    let body = write_request(&conversation(), &options).expect("writes").body;
    let function = json!({ "name": "weather", "args": { "city": "Rome" } });
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{ "functionCall": function, "thoughtSignature": SIGNATURE_PLACEHOLDER }, { "functionCall": function }])
    );
    let mut signed = conversation();
    let ContentPart::ToolCall(call) = &mut signed.messages[2].parts[1] else { panic!("a call") };
    call.signature = Some("c2ln".to_owned());
    let body = write_request(&signed, &options).expect("writes").body;
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
}

#[test]
fn choices_of_tools_are_modes() {
    for (choice, calling) in [
        (ToolChoice::Auto, json!({ "mode": "AUTO" })),
        (ToolChoice::None, json!({ "mode": "NONE" })),
        (ToolChoice::Required, json!({ "mode": "ANY" })),
        (ToolChoice::Named(vec!["a".to_owned()]), json!({ "mode": "ANY", "allowedFunctionNames": ["a"] })),
    ] {
        let request = ModelRequest { tool_choice: Some(choice), ..ModelRequest::default() };
        assert_eq!(written(&request).body["toolConfig"], json!({ "functionCallingConfig": calling }));
    }
}

#[test]
fn media_are_inline_or_by_their_address() {
    let source = |source| ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() };
    let file = |source| {
        ContentPart::File(FilePart { source, name: Some("a".to_owned()), cache: None, extra: Extra::default() })
    };
    let base64 = |media_type: &str| MediaSource::Base64 { media_type: media_type.to_owned(), data: "AA==".to_owned() };
    for (part, expected) in [
        (source(base64("image/png")), json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } })),
        (
            source(MediaSource::Url("data:image/gif;base64,AA==".to_owned())),
            json!({ "inlineData": { "mimeType": "image/gif", "data": "AA==" } }),
        ),
        (
            source(MediaSource::Url("data:image/gif;base64,-_8".to_owned())),
            json!({ "inlineData": { "mimeType": "image/gif", "data": "+/8=" } }),
        ),
        (
            source(MediaSource::Url("https://a.example/b.JPG".to_owned())),
            json!({ "fileData": { "mimeType": "image/jpeg", "fileUri": "https://a.example/b.JPG" } }),
        ),
        (file(base64("application/pdf")), json!({ "inlineData": { "mimeType": "application/pdf", "data": "AA==" } })),
        (file(MediaSource::FileId("files/a".to_owned())), json!({ "fileData": { "fileUri": "files/a" } })),
        (file(MediaSource::Text("words".to_owned())), json!({ "text": "words" })),
    ] {
        let body = written(&with_messages(vec![message(Role::User, vec![part])])).body;
        assert_eq!(body["contents"][0]["parts"][0], expected);
    }
}

#[test]
fn what_changes_the_meaning_is_refused_with_its_path() {
    let image = |source| ContentPart::Image { source, detail: None, cache: None, extra: Extra::default() };
    let foreign = ContentPart::Foreign { from: Dialect::Anthropic, part: json!({}) };
    let of_tool = |mut request: ModelRequest, tool| {
        request.tools = vec![tool];
        request
    };
    let mut provider_tool = tool("", json!({}));
    provider_tool.extra =
        Extra::of(Dialect::Anthropic, json!({ "type": "web_search" }).as_object().expect("fields").clone());
    let of_part = |part| with_messages(vec![message(Role::User, vec![text("a"), part])]);
    let recursive = json!({ "$ref": "#" });
    for (request, path) in [
        (of_part(image(MediaSource::FileId("file-abc".to_owned()))), "messages[0].parts[1]"),
        (of_part(image(MediaSource::Url("data:image/svg+xml,<svg/>".to_owned()))), "messages[0].parts[1]"),
        (of_part(foreign), "messages[0].parts[1]"),
        (of_tool(ModelRequest::default(), provider_tool), "tools[0]"),
        (of_tool(ModelRequest::default(), tool("a", recursive)), "tools[0].parameters.$ref.$ref"),
    ] {
        match write_request(&request, &WriteOptions::default()) {
            Err(DialectError::Unsupported { path: found, .. }) => assert_eq!(found, path),
            other => panic!("{other:?}"),
        }
    }
    for (request, path) in [
        (with_messages(vec![message(Role::Tool, vec![result("lost", "a")])]), "messages[0].parts[0].call_id"),
        (of_part(ContentPart::ToolCall(call("a", "a", "[]"))), "messages[0].parts[1].arguments"),
    ] {
        match write_request(&request, &WriteOptions::default()) {
            Err(DialectError::Malformed { path: found, .. }) => assert_eq!(found, path),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_only_tunes_is_dropped_and_named() {
    let cache = Some(CacheControl { value: json!({ "type": "ephemeral" }) });
    let reasoning =
        ReasoningPart { text: "hm".to_owned(), signature: Some("other".to_owned()), ..ReasoningPart::default() };
    let source = MediaSource::Url("https://a.example/b".to_owned());
    let image = ContentPart::Image { source, detail: Some(ImageDetail::Low), cache: None, extra: Extra::default() };
    let mut request = with_messages(vec![
        Message {
            name: Some("Ann".to_owned()),
            ..message(
                Role::User,
                vec![ContentPart::Text(TextPart { text: "a".to_owned(), cache, ..TextPart::default() }), image],
            )
        },
        message(Role::Assistant, vec![ContentPart::Reasoning(reasoning), text("b")]),
    ]);
    request.tools = vec![ToolDefinition { strict: Some(true), ..tool("a", json!({})) }];
    request.sampling.logit_bias = Some(json!({}));
    request.sampling.seed = Some(json!(1_u64 << 40));
    request.parallel_tool_calls = Some(false);
    request.user = Some("u".to_owned());
    request.metadata = Some(serde_json::Map::new());
    request.extra = Extra::of(Dialect::Chat, json!({ "store": true }).as_object().expect("fields").clone());
    let WrittenRequest { body, dropped } = written(&request);
    assert_eq!(
        dropped,
        [
            "cache_control",
            "detail",
            "name",
            "reasoning",
            "strict",
            "seed",
            "logit_bias",
            "parallel_tool_calls",
            "user",
            "metadata",
            "store"
        ]
    );
    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "b" }]));
    assert!(body.get("generationConfig").is_none());
}

#[test]
fn reasoning_becomes_a_budget_or_a_level() {
    let settings = |enabled, effort, budget_tokens| ReasoningSettings {
        enabled,
        effort,
        budget_tokens,
        ..ReasoningSettings::default()
    };
    let effort = |effort| settings(None, Some(effort), None);
    for (reasoning, budget, level) in [
        (effort(ReasoningEffort::None), json!({ "thinkingBudget": 0 }), json!({ "thinkingLevel": "low" })),
        (
            effort(ReasoningEffort::Low),
            json!({ "thinkingBudget": 1024, "includeThoughts": true }),
            json!({ "thinkingLevel": "low", "includeThoughts": true }),
        ),
        (
            effort(ReasoningEffort::Medium),
            json!({ "thinkingBudget": 8192, "includeThoughts": true }),
            json!({ "thinkingLevel": "medium", "includeThoughts": true }),
        ),
        (
            effort(ReasoningEffort::ExtraHigh),
            json!({ "thinkingBudget": 24576, "includeThoughts": true }),
            json!({ "thinkingLevel": "high", "includeThoughts": true }),
        ),
        (
            settings(Some(true), None, None),
            json!({ "thinkingBudget": -1, "includeThoughts": true }),
            json!({ "includeThoughts": true }),
        ),
        (settings(Some(false), None, None), json!({ "thinkingBudget": 0 }), json!({ "thinkingLevel": "low" })),
        (
            settings(Some(true), Some(ReasoningEffort::High), Some(77)),
            json!({ "thinkingBudget": 77, "includeThoughts": true }),
            json!({ "thinkingBudget": 77, "includeThoughts": true }),
        ),
    ] {
        let request = ModelRequest { reasoning: Some(reasoning), ..ModelRequest::default() };
        assert_eq!(written(&request).body["generationConfig"]["thinkingConfig"], budget);
        let options = WriteOptions { takes_thinking_level: true, ..WriteOptions::default() };
        let body = write_request(&request, &options).expect("writes").body;
        assert_eq!(body["generationConfig"]["thinkingConfig"], level);
    }
    let request =
        ModelRequest { reasoning: Some(effort(ReasoningEffort::Other("max".to_owned()))), ..ModelRequest::default() };
    assert_eq!(written(&request).dropped, ["reasoning_effort"]);
}

#[test]
fn formats_of_the_answer_are_media_types_with_a_schema() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"], "additionalProperties": false });
    let format = JsonSchemaFormat {
        name: Some("n".to_owned()),
        description: None,
        schema: schema.clone(),
        strict: Some(true),
        extra: Extra::default(),
    };
    let of_format = |format| ModelRequest { output_format: Some(format), ..ModelRequest::default() };
    for (format, expected) in [
        (OutputFormat::Text, json!({ "responseMimeType": "text/plain" })),
        (OutputFormat::JsonObject, json!({ "responseMimeType": "application/json" })),
        (
            OutputFormat::JsonSchema(Box::new(format.clone())),
            json!({ "responseMimeType": "application/json", "responseSchema": { "type": "OBJECT", "properties": { "a": { "nullable": true, "type": "STRING" } }, "required": ["a"] } }),
        ),
    ] {
        assert_eq!(written(&of_format(format)).body["generationConfig"], expected);
    }
    let options = WriteOptions { takes_json_schema: true, ..WriteOptions::default() };
    let mut request = of_format(OutputFormat::JsonSchema(Box::new(format)));
    request.tools = vec![tool("a", schema.clone())];
    let body = write_request(&request, &options).expect("writes").body;
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"], schema);
}

#[test]
fn results_with_media_have_parts_and_errors_are_told() {
    let image = ContentPart::Image {
        source: MediaSource::Base64 { media_type: "image/png".to_owned(), data: "AA==".to_owned() },
        detail: None,
        cache: None,
        extra: Extra::default(),
    };
    let failed = ToolResultPart {
        call_id: "a".to_owned(),
        name: Some("look".to_owned()),
        is_error: true,
        content: vec![text("one"), image, text("two")],
        cache: None,
        extra: Extra::default(),
    };
    let body = written(&with_messages(vec![message(Role::Tool, vec![ContentPart::ToolResult(failed)])])).body;
    assert_eq!(
        body["contents"][0]["parts"][0]["functionResponse"],
        json!({ "id": "a", "name": "look", "response": { "error": "one\ntwo" }, "parts": [{ "inlineData": { "mimeType": "image/png", "data": "AA==" } }] })
    );
}

#[test]
fn alternatives_of_arguments_are_kept_and_no_arguments_left_out() {
    let one_of = json!({ "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "b": { "type": "string" } } }] });
    let empty = json!({ "type": "object", "additionalProperties": false });
    let request = ModelRequest { tools: vec![tool("a", one_of), tool("b", empty)], ..ModelRequest::default() };
    let body = written(&request).body;
    let functions = &body["tools"][0]["functionDeclarations"];
    assert_eq!(functions[0]["parameters"]["anyOf"].as_array().map(Vec::len), Some(2));
    assert_eq!(functions[1], json!({ "name": "b" }));
}

/// A made-up id comes back from a client that had no other.
#[test]
fn made_up_ids_are_never_sent() {
    let body = json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "a" } }] } }] });
    let response = crate::read_response(&body).expect("reads");
    let parts = response.choices[0].parts.clone();
    let ContentPart::ToolCall(ToolCallPart { id, .. }) = parts[0].clone() else { panic!("a call") };
    let request = with_messages(vec![message(Role::Assistant, parts), message(Role::Tool, vec![result(&id, "b")])]);
    let body = written(&request).body;
    assert_eq!(body["contents"][0]["parts"], json!([{ "functionCall": { "name": "a", "args": {} } }]));
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{ "functionResponse": { "name": "a", "response": { "output": "b" } } }])
    );
}
