//! Tests of requests.

use super::*;
use assay_node_dialects::DialectError;
use assay_node_dialects::form::{ContentPart, MediaSource, OutputFormat, ReasoningEffort, Role, ToolChoice};

/// Bodies that are written as they were read.
fn bodies() -> Vec<Value> {
    [plain_bodies(), tool_bodies(), answer_bodies()].concat()
}

fn plain_bodies() -> Vec<Value> {
    vec![
        json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "hi" }] }),
        json!({
            "model": "gpt-4o", "temperature": 0.0, "top_p": 1, "top_k": 40, "frequency_penalty": 0.5,
            "presence_penalty": -1, "seed": 7, "n": 2, "logprobs": true, "top_logprobs": 3, "logit_bias": { "5": -100 },
            "max_tokens": 10, "stop": ["a", "b"], "user": "u", "metadata": { "a": "b" }, "store": true,
            "service_tier": "flex", "guided_json": { "type": "object" }, "reasoning_effort": "xhigh",
            "parallel_tool_calls": false,
            "messages": [
                { "role": "system", "content": "Be brief.", "cache_control": { "type": "ephemeral" } },
                { "role": "developer", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
                { "role": "user", "name": "ann", "content": "hi", "unknown": [1] },
            ],
        }),
        request_of(json!({ "role": "user", "content": [
            { "type": "text", "text": "a", "cache_control": { "type": "ephemeral", "ttl": "1h" }, "x": 1 },
            { "type": "image_url", "image_url": { "url": "https://a.example/i.png", "detail": "low", "format": "x" } },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBO", "detail": "ultra" } },
            { "type": "image_url", "image_url": { "url": "data:text/plain,hello" } },
            { "type": "image_url", "image_url": { "url": "https://a.example/paper.PDF?x=1" } },
            { "type": "input_audio", "input_audio": { "data": "UklG", "format": "wav" } },
            { "type": "input_audio", "input_audio": { "data": "SUQz", "format": "mp3", "rate": 1 } },
            { "type": "audio_url", "audio_url": { "url": "https://a.example/a.ogg" } },
            { "type": "file", "file": { "file_id": "file-1" } },
            { "type": "file", "file": { "file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf" } },
            { "type": "file", "file": { "file_data": "data:application/pdf;base64,JVBE" } },
            { "type": "file", "file": { "file_data": "JVBE", "filename": "a.pdf", "x": 1 } },
            { "type": "file", "file": { "file_data": "https://a.example/a.pdf" } },
            { "type": "video_url", "video_url": { "url": "https://a.example/a.mp4" } },
        ] })),
    ]
}

fn tool_bodies() -> Vec<Value> {
    let tool = json!({
        "type": "function",
        "function": {
            "name": "weather", "description": "Says the weather", "strict": true, "x": 1,
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        },
        "cache_control": { "type": "ephemeral" },
        "y": { "z": null },
    });
    let calls = json!([
        { "id": "call_a", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Bonn\"}" } },
        { "id": "call_b", "type": "function", "index": 1, "function": { "name": "weather", "arguments": "{}", "u": 1 },
          "extra_content": { "google": { "thought_signature": "c2ln", "other": 1 }, "more": 2 } },
        { "id": "call_c", "type": "custom", "custom": { "name": "shell", "input": "ls" } },
    ]);
    vec![
        json!({
            "model": "m", "tools": [tool, { "type": "custom", "custom": { "name": "shell" } }],
            "tool_choice": { "type": "function", "function": { "name": "weather" } },
            "messages": [
                { "role": "assistant", "content": null, "tool_calls": calls },
                { "role": "tool", "tool_call_id": "call_a", "content": "sunny" },
                { "role": "tool", "tool_call_id": "call_b", "name": "weather", "cache_control": { "type": "ephemeral" },
                  "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            ],
        }),
        json!({
            "model": "m", "functions": [{ "name": "f", "parameters": { "type": "object" }, "x": 1 }],
            "function_call": { "name": "f" },
            "messages": [
                { "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{}" } },
                { "role": "function", "name": "f", "content": "1" },
            ],
        }),
        json!({ "model": "m", "messages": [], "tool_choice": { "type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{ "type": "function", "function": { "name": "f" } }] } } }),
        json!({ "model": "m", "messages": [], "max_completion_tokens": 5,
            "response_format": { "type": "json_object", "schema": { "type": "object" } } }),
        json!({ "model": "m", "messages": [], "response_format": { "type": "json_schema", "json_schema": {
            "name": "a", "description": "d", "schema": { "type": "object" }, "strict": true, "x": 1 } } }),
        json!({ "model": "m", "messages": [], "response_format": { "type": "grammar", "value": "x" } }),
    ]
}

fn answer_bodies() -> Vec<Value> {
    vec![
        request_of(json!({ "role": "assistant", "content": "a", "refusal": "no", "audio": { "id": "x" },
            "reasoning": [{ "id": "sig", "content": "thought", "x": 1 }, { "content": "more" }] })),
        request_of(json!({ "role": "assistant", "content": "a", "reasoning": "thought" })),
        request_of(json!({ "role": "assistant", "content": "a", "reasoning_content": "thought" })),
        request_of(json!({ "role": "assistant", "content": "a", "reasoning": "t", "reasoning_content": "t" })),
        request_of(json!({ "role": "assistant", "content": "a", "reasoning": "t", "reasoning_content": "u" })),
        request_of(json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": "t" }] }, { "type": "text", "text": "a" },
            { "type": "refusal", "refusal": "no" },
        ] })),
        request_of(json!({ "role": "assistant", "content": "a",
            "extra_content": { "google": { "thought_signature": "s" } },
            "images": [{ "type": "image_url", "index": 0, "image_url": { "url": "data:image/png;base64,AA" } }] })),
    ]
}

#[test]
fn a_body_is_written_as_it_was_read() {
    for body in bodies() {
        assert_eq!(rewritten(&body), body);
    }
}

#[test]
fn a_normal_form_is_chosen_where_several_mean_the_same() {
    let table = [
        (json!({ "stop": "x" }), json!({ "stop": ["x"] })),
        (json!({ "stop": null, "temperature": null, "tools": null }), json!({})),
        (json!({ "tool_choice": "any" }), json!({ "tool_choice": "required" })),
        (json!({ "response_format": { "type": "text" } }), json!({})),
        (json!({ "max_tokens": 5, "max_completion_tokens": 9 }), json!({ "max_completion_tokens": 9 })),
        (json!({ "max_tokens": 5.0 }), json!({ "max_tokens": 5 })),
        (json!({ "stream": false, "use_cache": true }), json!({})),
    ];
    for (given, expected) in table {
        let with = |members: &Value| {
            let mut body = json!({ "model": "m", "messages": [] });
            body.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
            body
        };
        assert_eq!(rewritten(&with(&given)), with(&expected), "{given}");
    }
    let messages = [
        (json!({ "role": "assistant" }), json!({ "role": "assistant", "content": "" })),
        (
            json!({ "role": "assistant", "content": null, "reasoning": "thought" }),
            json!({ "role": "assistant", "content": "", "reasoning": "thought" }),
        ),
        (json!({ "role": "user", "content": ["a"] }), json!({ "role": "user", "content": "a" })),
        (
            json!({ "role": "assistant", "content": "", "tool_calls": [
                { "id": "a", "function": { "name": "f", "arguments": { "x": 1 } } }] }),
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"x\":1}" } }] }),
        ),
        (
            json!({ "role": "user", "content": [{ "type": "image_url", "image_url": "data:application/pdf;base64,JV" }] }),
            json!({ "role": "user", "content": [{ "type": "file", "file": {
                "filename": "file.pdf", "file_data": "data:application/pdf;base64,JV" } }] }),
        ),
    ];
    for (given, expected) in messages {
        assert_eq!(rewritten(&request_of(given)), request_of(expected));
    }
}

#[test]
fn members_have_their_meaning_in_the_form() {
    let all = bodies();
    let request = read_request(&all[1]).expect("reads");
    assert_eq!(
        request.messages.iter().map(|message| message.role).collect::<Vec<_>>(),
        [Role::System, Role::Developer, Role::User]
    );
    assert_eq!(request.max_output_tokens, Some(10));
    assert_eq!(request.reasoning.expect("set").effort, Some(ReasoningEffort::ExtraHigh));
    let names: Vec<_> =
        request.extra.for_dialect(assay_node_dialects::Dialect::Chat).expect("kept").keys().cloned().collect();
    assert_eq!(names, ["store", "service_tier", "guided_json"]);
    let parts = read_request(&all[2]).expect("reads").messages.remove(0).parts;
    let base64 = |media: &str, data: &str| MediaSource::Base64 { media_type: media.into(), data: data.into() };
    let sources: Vec<MediaSource> = parts
        .iter()
        .filter_map(|part| match part {
            ContentPart::Image { source, .. } | ContentPart::Audio { source, .. } => Some(source.clone()),
            ContentPart::File(file) => Some(file.source.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        sources,
        [
            MediaSource::Url("https://a.example/i.png".into()),
            base64("image/png", "iVBO"),
            MediaSource::Url("data:text/plain,hello".into()),
            MediaSource::Url("https://a.example/paper.PDF?x=1".into()),
            base64("audio/wav", "UklG"),
            base64("audio/mpeg", "SUQz"),
            MediaSource::Url("https://a.example/a.ogg".into()),
            MediaSource::FileId("file-1".into()),
            base64("application/pdf", "JVBE"),
            base64("application/pdf", "JVBE"),
            base64("application/pdf", "JVBE"),
            MediaSource::Url("https://a.example/a.pdf".into()),
        ]
    );
    let request = read_request(&all[3]).expect("reads");
    assert_eq!(request.tool_choice, Some(ToolChoice::Named(vec!["weather".into()])));
    let ContentPart::ToolCall(call) = &request.messages[0].parts[1] else { panic!("a call") };
    assert_eq!((call.id.as_str(), call.signature.as_deref()), ("call_b", Some("c2ln")));
    assert!(matches!(read_request(&all[7]).expect("reads").output_format, Some(OutputFormat::JsonSchema(_))));
}

#[test]
fn legacy_calls_and_results_get_ids_that_match() {
    let request = read_request(&bodies()[4]).expect("reads");
    assert!(asks_for_function_call(&request));
    assert_eq!(request.parallel_tool_calls, Some(false), "the legacy form has one call");
    let ContentPart::ToolCall(call) = &request.messages[0].parts[0] else { panic!("a call") };
    let ContentPart::ToolResult(result) = &request.messages[1].parts[0] else { panic!("a result") };
    assert_eq!((&call.id, result.name.as_deref()), (&result.call_id, Some("f")));
}

#[test]
fn calls_without_ids_get_them() {
    let mut request = read_request(&bodies()[3]).expect("reads");
    request.messages.remove(2);
    for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
        match part {
            ContentPart::ToolCall(call) => call.id.clear(),
            ContentPart::ToolResult(result) => {
                result.call_id.clear();
                result.name = Some("weather".into());
            }
            _ => {}
        }
    }
    let body = write_request(&request, &WriteOptions::default()).expect("writes").body;
    assert_eq!(body["messages"][0]["tool_calls"][0]["id"], "call_0");
    assert_eq!(body["messages"][0]["tool_calls"][1]["id"], "call_1");
    assert_eq!(body["messages"][1]["tool_call_id"], "call_0");
    request.messages.remove(0);
    let error = write_request(&request, &WriteOptions::default()).expect_err("has no call");
    assert_eq!(error.to_string(), "messages[0]: a tool result without its call cannot be sent to this model");
}

#[test]
fn a_bad_body_is_refused_with_its_path() {
    let table = [
        (json!([]), "body: expected an object"),
        (json!({ "messages": [] }), "model: expected a text"),
        (json!({ "model": "m" }), "messages: expected a list"),
        (json!({ "model": "m", "messages": [1] }), "messages[0]: expected an object"),
        (
            request_of(json!({ "role": "x" })),
            "messages[0].role: expected system, developer, user, assistant, tool or function",
        ),
        (
            request_of(json!({ "role": "user", "content": 1 })),
            "messages[0].content: expected a text or a list of parts",
        ),
        (
            request_of(json!({ "role": "user", "content": [{ "type": "text" }] })),
            "messages[0].content[0].text: expected a text",
        ),
        (request_of(json!({ "role": "tool", "content": "" })), "messages[0].tool_call_id: expected a text"),
        (json!({ "model": "m", "messages": [], "n": 1.5 }), "n: expected a whole number that is not negative"),
        (json!({ "model": "m", "messages": [], "tools": [{}] }), "tools[0].function: expected an object"),
        (
            json!({ "model": "m", "messages": [], "tool_choice": 1 }),
            "tool_choice: expected none, auto, required or an object",
        ),
        (json!({ "model": "m", "messages": [], "temperature": "1" }), "temperature: expected a number"),
    ];
    for (body, expected) in table {
        assert_eq!(read_request(&body).expect_err("is bad").to_string(), expected);
    }
}

#[test]
fn what_chat_cannot_say_is_refused_or_named() {
    let mut request = read_request(&request_of(json!({ "role": "user", "content": "a" }))).expect("reads");
    request.sampling.top_k = Some(json!(4));
    request.extra = assay_node_dialects::form::Extra::of(
        assay_node_dialects::Dialect::Gemini,
        json!({ "safetySettings": [] }).as_object().expect("an object").clone(),
    );
    let written = write_request(&request, &WriteOptions::default()).expect("writes");
    assert_eq!(written.dropped, ["safetySettings", "top_k"]);
    assert_eq!(written.body, request_of(json!({ "role": "user", "content": "a" })));
    let foreign = ContentPart::Foreign {
        from: assay_node_dialects::Dialect::Anthropic,
        part: json!({ "type": "search_result" }),
    };
    let file = |source| {
        ContentPart::File(assay_node_dialects::form::FilePart {
            source,
            name: None,
            cache: None,
            extra: Default::default(),
        })
    };
    let image = |source| ContentPart::Image { source, detail: None, cache: None, extra: Default::default() };
    let refused = [foreign, file(MediaSource::Url("https://a.example".into())), image(MediaSource::FileId("f".into()))];
    for part in refused {
        request.messages[0].parts = vec![part];
        let error = write_request(&request, &WriteOptions::default()).expect_err("chat has none");
        assert!(
            matches!(&error, DialectError::Unsupported { path, .. } if path == "messages[0].content[0]"),
            "{error}"
        );
    }
    request.messages[0].parts = vec![file(MediaSource::Text("a document".into()))];
    let written = write_request(&request, &WriteOptions::default()).expect("writes");
    assert_eq!(written.body["messages"][0]["content"], json!([{ "type": "text", "text": "a document" }]));
}
