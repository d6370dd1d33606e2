//! Models as Amazon Bedrock serves them: Converse, and Anthropic's messages by InvokeModel.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::chat::{list, text};
use crate::event_stream::event;
use crate::script::{Prompt, PromptImage, PromptTool, SIGNATURE, ScriptedAnswer, pieces};
use crate::sse::WireEvent;

/// Reads a request of Converse; the model and whether to stream are in its path.
pub(crate) fn read(model: &str, stream: bool, body: &Value) -> Prompt {
    let tools = &body["toolConfig"];
    let schema = body.pointer("/outputConfig/textFormat/structure/jsonSchema/schema");
    let specs = list(&tools["tools"]).map(|tool| &tool["toolSpec"]).filter(|spec| !spec.is_null());
    let mut prompt = Prompt {
        model: model.into(),
        instructions: texts(&body["system"]),
        tools: specs.map(read_tool).collect(),
        forced_tool: tools["toolChoice"]["tool"]["name"].as_str().map(str::to_owned),
        schema: schema.and_then(Value::as_str).and_then(|schema| serde_json::from_str(schema).ok()),
        stream,
        ..Prompt::default()
    };
    for message in list(&body["messages"]).filter(|message| message["role"] == "user") {
        let blocks = || list(&message["content"]);
        let results: Vec<_> = blocks().map(|block| &block["toolResult"]).filter(|result| !result.is_null()).collect();
        if results.is_empty() {
            (prompt.texts, prompt.images) = (texts(&message["content"]), blocks().filter_map(image).collect());
            prompt.results.clear();
        }
        prompt.results.extend(results.iter().map(|result| texts(&result["content"]).concat()));
    }
    prompt
}

fn read_tool(spec: &Value) -> PromptTool {
    PromptTool { name: text(&spec["name"]), parameters: spec["inputSchema"]["json"].clone() }
}

fn texts(content: &Value) -> Vec<String> {
    list(content).filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

fn image(block: &Value) -> Option<PromptImage> {
    let image = block.get("image")?;
    let media_type = format!("image/{}", image["format"].as_str()?);
    Some(PromptImage::Base64 { media_type, data: text(&image["source"]["bytes"]) })
}

fn blocks(answer: &ScriptedAnswer) -> Vec<Value> {
    let thought =
        |text: &String| json!({"reasoningContent": {"reasoningText": {"text": text, "signature": SIGNATURE}}});
    let mut blocks: Vec<Value> = answer.reasoning.iter().map(thought).collect();
    blocks.extend(answer.text.iter().map(|text| json!({"text": text})));
    let call = |call: &crate::script::ScriptedCall| json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}});
    blocks.extend(answer.calls.iter().map(call));
    blocks
}

fn stop_reason(answer: &ScriptedAnswer) -> &'static str {
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

/// The tokens that were not cached are counted apart from those that were.
fn usage(answer: &ScriptedAnswer) -> Value {
    let cached = answer.cached_tokens;
    json!({"inputTokens": answer.input_tokens - cached, "outputTokens": answer.output_tokens,
        "totalTokens": answer.input_tokens + answer.output_tokens, "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": 0})
}

pub(crate) fn whole(answer: &ScriptedAnswer) -> Value {
    json!({
        "metrics": {"latencyMs": 1}, "output": {"message": {"content": blocks(answer), "role": "assistant"}},
        "stopReason": stop_reason(answer), "usage": usage(answer),
    })
}

/// Texts have no start, as at Bedrock, and each event is padded.
pub(crate) fn stream(answer: &ScriptedAnswer) -> Vec<WireEvent> {
    let padded = |kind: &str, mut payload: Value| {
        payload["p"] = json!("abcdefgh");
        event(kind, &payload)
    };
    let mut events = vec![padded("messageStart", json!({"role": "assistant"}))];
    for (index, block) in blocks(answer).iter().enumerate() {
        let deltas: Vec<Value> = if let Some(said) = block["text"].as_str() {
            pieces(said).iter().map(|piece| json!({"text": piece})).collect()
        } else if let Some(call) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            events.push(padded("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
            pieces(&call["input"].to_string()).iter().map(|piece| json!({"toolUse": {"input": piece}})).collect()
        } else {
            let thought = pieces(&text(&block["reasoningContent"]["reasoningText"]["text"]));
            let signature = json!({"reasoningContent": {"signature": SIGNATURE}});
            let pieces = thought.iter().map(|piece| json!({"reasoningContent": {"text": piece}}));
            pieces.chain([signature]).collect()
        };
        let delta = |delta| padded("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}));
        events.extend(deltas.into_iter().map(delta));
        events.push(padded("contentBlockStop", json!({"contentBlockIndex": index})));
    }
    events.push(padded("messageStop", json!({"stopReason": stop_reason(answer)})));
    events.push(padded("metadata", json!({"metrics": {"latencyMs": 1}, "usage": usage(answer)})));
    events
}

pub(crate) fn error(status: u16) -> Value {
    json!({"message": format!("scripted error {status}")})
}

/// Name of an error, which is in a header.
pub(crate) fn error_type(status: u16) -> &'static str {
    match status {
        400 => "ValidationException",
        403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        _ => "InternalServerException",
    }
}

/// Returns why a cloud refuses a body of Anthropic's, if it does. The model is in the path there.
pub(crate) fn anthropic_refusal(body: &Value, version: &str, has_mode: bool) -> Option<String> {
    let none = Map::new();
    let fields = body.as_object().unwrap_or(&none);
    if fields.get("anthropic_version").is_none_or(|named| named != version) {
        return Some(format!("anthropic_version: expected {version}"));
    }
    let refused = if has_mode { &["model"][..] } else { &["model", "stream"] };
    refused
        .iter()
        .find(|name| fields.contains_key(**name))
        .map(|name| format!("{name}: Extra inputs are not permitted"))
}

/// Packs an event of Anthropic's stream as InvokeModel does.
pub(crate) fn chunk(inner: &WireEvent) -> WireEvent {
    event("chunk", &json!({"bytes": STANDARD.encode(inner.sent()), "p": "abcd"}))
}
