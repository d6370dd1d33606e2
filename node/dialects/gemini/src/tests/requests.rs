//! Tests of requests that are read and written again.

use serde_json::{Value, json};

use super::rewritten;
use crate::{CALL_ID_BYTES_MAX, read_request, write_request};
use assay_node_dialects::form::{ContentPart, MediaSource, OutputFormat, ReasoningEffort, Role, ToolChoice};
use assay_node_dialects::{DialectError, WriteOptions};

fn read(body: Value) -> assay_node_dialects::form::ModelRequest {
    read_request("gemini-2.5-pro", true, &body).expect("reads")
}

/// Bodies that are written as they were read.
fn bodies() -> Vec<Value> {
    vec![
        json!({ "contents": [{ "role": "user", "parts": [{ "text": "Say hi" }] }] }),
        json!({
            "systemInstruction": { "role": "system", "parts": [{ "text": "Be short." }, { "text": "Be kind." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "What is this?" },
                    { "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" }, "mediaResolution": { "level": "MEDIA_RESOLUTION_LOW" } },
                    { "inlineData": { "mimeType": "audio/wav", "data": "UklGRg==" } },
                    { "inlineData": { "mimeType": "application/pdf", "data": "JVBERi0=", "displayName": "a.pdf" } },
                    { "fileData": { "mimeType": "video/mp4", "fileUri": "gs://bucket/a.mp4" }, "videoMetadata": { "startOffset": "1s" } },
                    { "fileData": { "fileUri": "https://www.youtube.com/watch?v=x.mp4" } },
                    { "fileData": { "mimeType": "image/png", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc" } }] },
                { "role": "model", "parts": [{ "text": "thinking", "thought": true, "thoughtSignature": "c2ln" },
                    { "text": "A cat.", "thoughtSignature": "c2lnMg==" },
                    { "executableCode": { "language": "PYTHON", "code": "1" } },
                    { "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } }] },
            ],
            "safetySettings": [{ "category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE" }],
            "cachedContent": "cachedContents/abc",
            "labels": { "team": "a" },
        }),
        json!({
            "contents": [
                { "role": "user", "parts": [{ "text": "Weather in Rome and Oslo?" }] },
                { "role": "model", "parts": [
                    { "functionCall": { "name": "weather", "args": { "city": "Rome" } }, "thoughtSignature": "c2ln" },
                    { "functionCall": { "name": "weather", "args": { "city": "Oslo" } } }] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "weather", "response": { "output": "sun" } } },
                    { "functionResponse": { "name": "weather", "response": { "celsius": 4.5 },
                        "parts": [{ "inlineData": { "mimeType": "image/png", "data": "AA==" } }], "scheduling": "SILENT" } }] },
            ],
            "tools": [
                { "functionDeclarations": [
                    { "name": "weather", "description": "Weather of a city", "parameters": { "type": "OBJECT",
                        "properties": { "city": { "type": "STRING", "nullable": true, "format": "enum", "enum": ["Rome", "Oslo"] },
                            "days": { "type": "INTEGER", "format": "int32", "minimum": 1, "x-note": 1 } },
                        "required": ["city"], "propertyOrdering": ["city", "days"] }, "behavior": "NON_BLOCKING" },
                    { "name": "time", "parametersJsonSchema": { "type": "object", "properties": {}, "additionalProperties": false } },
                    { "name": "nothing" }] },
                { "googleSearch": {} },
                { "codeExecution": {} }],
            "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["weather"] },
                "retrievalConfig": { "languageCode": "en" } },
        }),
        json!({
            "contents": [],
            "toolConfig": { "functionCallingConfig": { "mode": "VALIDATED", "allowedFunctionNames": ["a"] } },
            "generationConfig": { "temperature": 0.0, "topP": 1, "topK": 40, "candidateCount": 2, "maxOutputTokens": 100,
                "stopSequences": ["a", "b"], "presencePenalty": 0.5, "frequencyPenalty": -0.5, "seed": 7,
                "responseLogprobs": true, "logprobs": 3, "responseModalities": ["TEXT", "IMAGE"],
                "imageConfig": { "aspectRatio": "1:1" }, "responseMimeType": "application/json",
                "responseSchema": { "type": "object", "properties": { "a": { "type": "string" } } },
                "thinkingConfig": { "includeThoughts": true, "thinkingBudget": -1, "new": 1 } },
        }),
        json!({ "contents": [], "generationConfig": { "responseMimeType": "application/json",
            "responseJsonSchema": { "$ref": "#/$defs/A", "$defs": { "A": { "type": "object" } } },
            "thinkingConfig": { "thinkingLevel": "LOW" } } }),
        json!({ "contents": [], "generationConfig": { "responseMimeType": "text/plain", "thinkingConfig": { "thinkingBudget": 0 } } }),
        json!({ "contents": [], "generationConfig": { "responseMimeType": "text/x.enum",
            "responseSchema": { "type": "STRING", "enum": ["a"] }, "thinkingConfig": { "thinkingBudget": 512, "thinkingLevel": "high" } } }),
        json!({ "contents": [
            { "role": "model", "parts": [{ "functionCall": { "id": "fc1", "name": "a", "args": {}, "new": 1 }, "partMetadata": {} }] },
            { "role": "user", "parts": [{ "functionResponse": { "id": "fc1", "name": "a", "response": { "error": "no" } } }], "new": true }] }),
    ]
}

#[test]
fn a_body_is_written_as_it_was_read() {
    for body in bodies() {
        assert_eq!(rewritten(&body), body);
    }
}

#[test]
fn snake_case_is_read_as_camel_case() {
    let snake = json!({
        "system_instruction": { "parts": [{ "text": "Be short." }] },
        "contents": [
            { "role": "user", "parts": [{ "inline_data": { "mime_type": "image/png", "data": "AA==" } },
                { "file_data": { "mime_type": "image/png", "file_uri": "files/a" } }] },
            { "role": "model", "parts": [{ "function_call": { "name": "a", "args": {} }, "thought_signature": "c2ln" }] },
            { "role": "function", "parts": [{ "function_response": { "name": "a", "response": {} } }] }],
        "tools": [{ "function_declarations": [{ "name": "a", "parameters_json_schema": {} }] }],
        "tool_config": { "function_calling_config": { "mode": "ANY", "allowed_function_names": ["a"] } },
        "generation_config": { "top_p": 1, "top_k": 2, "candidate_count": 1, "max_output_tokens": 5, "stop_sequences": ["x"],
            "response_mime_type": "application/json", "response_schema": { "type": "STRING" },
            "thinking_config": { "include_thoughts": true, "thinking_budget": 9 } },
    });
    let camel = json!({
        "systemInstruction": { "parts": [{ "text": "Be short." }] },
        "contents": [
            { "role": "user", "parts": [{ "inlineData": { "mimeType": "image/png", "data": "AA==" } },
                { "fileData": { "mimeType": "image/png", "fileUri": "files/a" } }] },
            { "role": "model", "parts": [{ "functionCall": { "name": "a", "args": {} }, "thoughtSignature": "c2ln" }] },
            { "role": "user", "parts": [{ "functionResponse": { "name": "a", "response": {} } }] }],
        "tools": [{ "functionDeclarations": [{ "name": "a", "parametersJsonSchema": {} }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["a"] } },
        "generationConfig": { "topP": 1, "topK": 2, "candidateCount": 1, "maxOutputTokens": 5, "stopSequences": ["x"],
            "responseMimeType": "application/json", "responseSchema": { "type": "STRING" },
            "thinkingConfig": { "includeThoughts": true, "thinkingBudget": 9 } },
    });
    assert_eq!(rewritten(&snake), camel);
}

#[test]
fn spellings_of_one_meaning_become_the_usual_one() {
    for (body, usual) in [
        (
            json!({ "contents": [{ "parts": [{ "text": "a" }] }] }),
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "a" }] }] }),
        ),
        (
            json!({ "contents": [{ "role": "user", "parts": { "text": "a" } }] }),
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "a" }] }] }),
        ),
        (
            json!({ "contents": [], "systemInstruction": "a" }),
            json!({ "contents": [], "systemInstruction": { "parts": [{ "text": "a" }] } }),
        ),
        (json!({ "contents": [{ "role": "model", "parts": [] }], "tools": null }), json!({ "contents": [] })),
        (
            json!({ "contents": [{ "role": "user", "parts": [{ "functionResponse": { "name": "a", "response": {} } }, { "text": "b" }] }] }),
            json!({ "contents": [{ "role": "user", "parts": [{ "functionResponse": { "name": "a", "response": {} } }] }, { "role": "user", "parts": [{ "text": "b" }] }] }),
        ),
        (
            json!({ "contents": [], "tools": [{ "googleSearch": {}, "functionDeclarations": [{ "name": "a" }] }, { "functionDeclarations": [{ "name": "b" }] }] }),
            json!({ "contents": [], "tools": [{ "functionDeclarations": [{ "name": "a" }, { "name": "b" }] }, { "googleSearch": {} }] }),
        ),
        (
            json!({ "contents": [{ "role": "user", "parts": [
                { "fileData": { "fileUri": "files/a" }, "inlineData.a": 1, "functionCall.a": 1 }] }] }),
            json!({ "contents": [{ "role": "user", "parts": [{ "fileData": { "fileUri": "files/a" } }] }] }),
        ),
        (
            json!({ "contents": [], "generationConfig": { "maxOutputTokens": "9", "thinkingConfig": { "includeThoughts": false } } }),
            json!({ "contents": [], "generationConfig": { "maxOutputTokens": 9 } }),
        ),
    ] {
        assert_eq!(rewritten(&body), usual);
    }
}

#[test]
fn the_form_says_what_a_request_means() {
    let bodies = bodies();
    let request = read(bodies[1].clone());
    assert!(request.stream && request.model == "gemini-2.5-pro");
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant]);
    let kinds = &request.messages[1].parts;
    assert!(
        matches!(&kinds[1], ContentPart::Image { source: MediaSource::Base64 { media_type, .. }, .. } if media_type == "image/png")
    );
    assert!(matches!(&kinds[2], ContentPart::Audio { .. }));
    assert!(matches!(&kinds[3], ContentPart::File(file) if file.name.as_deref() == Some("a.pdf")));
    assert!(matches!(&kinds[4], ContentPart::File(file) if matches!(file.source, MediaSource::FileId(_))));
    assert!(matches!(&kinds[5], ContentPart::File(file) if matches!(file.source, MediaSource::Url(_))));
    assert!(matches!(&kinds[6], ContentPart::Image { source: MediaSource::FileId(_), .. }));
    assert!(
        matches!(&request.messages[2].parts[0], ContentPart::Reasoning(one) if one.signature.as_deref() == Some("c2ln"))
    );

    let request = read(bodies[2].clone());
    assert_eq!(request.tool_choice, Some(ToolChoice::Named(vec!["weather".to_owned()])));
    let parameters = request.tools[0].parameters.as_ref().expect("parameters");
    assert_eq!(parameters["properties"]["city"], json!({ "type": ["string", "null"], "enum": ["Rome", "Oslo", null] }));
    assert!(request.tools[3].name.is_empty() && request.tools.len() == 5);

    let request = read(bodies[3].clone());
    assert_eq!((request.tool_choice, request.max_output_tokens), (Some(ToolChoice::Auto), Some(100)));
    let reasoning = request.reasoning.expect("reasoning");
    assert_eq!((reasoning.enabled, reasoning.budget_tokens, reasoning.include_text), (Some(true), None, Some(true)));
    let Some(OutputFormat::JsonSchema(format)) = request.output_format else { panic!("a schema") };
    assert_eq!(format.schema, json!({ "type": "object", "properties": { "a": { "type": "string" } } }));
    assert_eq!(read(bodies[4].clone()).reasoning.and_then(|one| one.effort), Some(ReasoningEffort::Low));
}

#[test]
fn results_find_their_calls_by_name_and_order() {
    let request = read(bodies()[2].clone());
    let ids: Vec<&str> = request.messages[1]
        .parts
        .iter()
        .map(|part| match part {
            ContentPart::ToolCall(call) => call.id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() <= CALL_ID_BYTES_MAX));
    assert_eq!(request.messages[2].role, Role::Tool);
    for (part, id) in request.messages[2].parts.iter().zip(&ids) {
        let ContentPart::ToolResult(result) = part else { panic!("{part:?}") };
        assert_eq!((result.call_id.as_str(), result.name.as_deref()), (*id, Some("weather")));
    }
    assert_eq!(read(bodies()[2].clone()), request, "ids are stable");
}

#[test]
fn made_up_ids_differ_between_answers_and_stay_within_one() {
    let mut body = bodies()[2].clone();
    let calls = body["contents"][1].clone();
    body["contents"].as_array_mut().expect("a list").push(calls);
    let request = read(body);
    let mut ids: Vec<String> = Vec::new();
    for part in request.messages.iter().flat_map(|message| &message.parts) {
        if let ContentPart::ToolCall(call) = part {
            ids.push(call.id.clone());
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn ids_of_the_server_are_kept_unless_the_route_refuses_them() {
    let body = bodies().pop().expect("a body");
    let request = read(body);
    let options = WriteOptions { omits_call_ids: true, ..WriteOptions::default() };
    let written = write_request(&request, &options).expect("writes").body;
    assert!(!written.to_string().contains("fc1"), "{written}");
}

#[test]
fn a_result_without_an_id_gets_that_of_its_call() {
    let body = |result: Value| {
        json!({ "contents": [
            { "role": "model", "parts": [{ "functionCall": { "id": "x", "name": "a", "args": {} } }] },
            { "role": "user", "parts": [{ "functionResponse": result }] }] })
    };
    let without = body(json!({ "name": "a", "response": {} }));
    assert_eq!(rewritten(&without), body(json!({ "id": "x", "name": "a", "response": {} })));
}

#[test]
fn responses_of_functions_are_texts_and_come_back() {
    for (response, text, is_error) in [
        (json!({ "output": "sun" }), "sun", false),
        (json!({ "output": "" }), "", false),
        (json!({ "output": "{\"a\":1}" }), r#"{"output":"{\"a\":1}"}"#, false),
        (json!({ "output": 5 }), r#"{"output":5}"#, false),
        (json!({ "output": "a", "b": 1 }), r#"{"output":"a","b":1}"#, false),
        (json!({ "result": "a" }), r#"{"result":"a"}"#, false),
        (json!({}), "{}", false),
        (json!({ "error": "no" }), "no", true),
        (json!({ "error": { "code": 5 } }), r#"{"error":{"code":5}}"#, true),
        (json!({ "error": "{\"error\":1}" }), r#"{"error":"{\"error\":1}"}"#, true),
        (json!({ "error": "a", "b": 1 }), r#"{"error":"a","b":1}"#, false),
    ] {
        let body = json!({ "contents": [{ "role": "user", "parts": [{ "functionResponse": { "name": "a", "response": response } }] }] });
        let request = read(body.clone());
        let ContentPart::ToolResult(result) = &request.messages[0].parts[0] else { panic!("a result") };
        assert_eq!((result.content.as_slice(), result.is_error), ([super::text(text)].as_slice(), is_error));
        assert_eq!(rewritten(&body), body);
    }
}

#[test]
fn a_malformed_body_is_refused_with_its_path() {
    for (body, path) in [
        (json!([]), ""),
        (json!({ "contents": {} }), "contents"),
        (json!({ "contents": [1] }), "contents[0]"),
        (json!({ "contents": [{ "role": "system" }] }), "contents[0].role"),
        (json!({ "contents": [{ "parts": [{ "text": 1 }] }] }), "contents[0].parts[0].text"),
        (json!({ "contents": [{ "parts": [{ "inlineData": {} }] }] }), "contents[0].parts[0].inlineData.data"),
        (
            json!({ "contents": [{ "role": "model", "parts": [{ "functionCall": { "name": "a", "args": [] } }] }] }),
            "contents[0].parts[0].functionCall.args",
        ),
        (
            json!({ "contents": [{ "parts": [{ "functionResponse": { "response": {} } }] }] }),
            "contents[0].parts[0].functionResponse.name",
        ),
        (json!({ "tools": [{ "functionDeclarations": [{}] }] }), "tools[0].functionDeclarations[0].name"),
        (
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "MAYBE" } } }),
            "toolConfig.functionCallingConfig.mode",
        ),
        (json!({ "generationConfig": { "temperature": "0" } }), "generationConfig.temperature"),
        (
            json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": -2 } } }),
            "generationConfig.thinkingConfig.thinkingBudget",
        ),
    ] {
        match read_request("m", false, &body) {
            Err(DialectError::Malformed { path: found, .. }) => assert_eq!(found, path),
            other => panic!("{body}: {other:?}"),
        }
    }
}
