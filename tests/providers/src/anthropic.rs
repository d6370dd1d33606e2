//! Messages as Anthropic writes them.

use serde_json::{Value, json};

use crate::chat::{list, text};
use crate::script::{Prompt, PromptImage, PromptTool, SIGNATURE, ScriptedAnswer, pieces};
use crate::sse::WireEvent;

pub(crate) fn read(body: &Value) -> Prompt {
    let choice = &body["tool_choice"];
    let mut prompt = Prompt {
        model: text(&body["model"]),
        instructions: texts(&body["system"]),
        tools: list(&body["tools"]).map(read_tool).collect(),
        forced_tool: (choice["type"] == "tool").then(|| text(&choice["name"])),
        no_tools: choice["type"] == "none",
        schema: schema(body),
        stream: body["stream"] == true,
        ..Prompt::default()
    };
    for message in list(&body["messages"]).filter(|message| message["role"] == "user") {
        let results: Vec<_> = list(&message["content"]).filter(|part| part["type"] == "tool_result").collect();
        if results.is_empty() {
            (prompt.texts, prompt.images) = (texts(&message["content"]), images(&message["content"]));
            prompt.results.clear();
        }
        prompt.results.extend(results.iter().map(|result| texts(&result["content"]).concat()));
    }
    prompt
}

fn schema(body: &Value) -> Option<Value> {
    let format =
        [&body["output_config"]["format"], &body["output_format"]].into_iter().find(|format| !format.is_null());
    format.map(|format| format["schema"].clone())
}

fn read_tool(tool: &Value) -> PromptTool {
    PromptTool { name: text(&tool["name"]), parameters: tool["input_schema"].clone() }
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => list(parts).filter_map(|part| part["text"].as_str().map(str::to_owned)).collect(),
    }
}

fn images(content: &Value) -> Vec<PromptImage> {
    let sources = list(content).filter(|part| part["type"] == "image").map(|part| &part["source"]);
    let image = |source: &Value| match source["url"].as_str() {
        Some(url) => PromptImage::Url(url.into()),
        None => PromptImage::Base64 { media_type: text(&source["media_type"]), data: text(&source["data"]) },
    };
    sources.map(image).collect()
}

fn blocks(answer: &ScriptedAnswer) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(thinking) = &answer.reasoning {
        blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    if let Some(text) = &answer.text {
        blocks.push(json!({"type": "text", "text": text}));
    }
    blocks.extend(
        answer
            .calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})),
    );
    blocks
}

fn stop_reason(answer: &ScriptedAnswer) -> &'static str {
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

/// The tokens that were not cached are counted apart from those that were.
fn usage(answer: &ScriptedAnswer, output: u64) -> Value {
    let cached = answer.cached_tokens;
    json!({"input_tokens": answer.input_tokens - cached, "output_tokens": output,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached})
}

pub(crate) fn whole(prompt: &Prompt, answer: &ScriptedAnswer) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": prompt.model, "content": blocks(answer),
        "stop_reason": stop_reason(answer), "stop_sequence": null, "usage": usage(answer, answer.output_tokens),
    })
}

pub(crate) fn stream(prompt: &Prompt, answer: &ScriptedAnswer) -> Vec<WireEvent> {
    let event = |name: &str, mut data: Value| {
        data["type"] = name.into();
        WireEvent::named(name, &data)
    };
    let mut started = whole(prompt, answer);
    (started["content"], started["stop_reason"], started["usage"]) = (json!([]), Value::Null, usage(answer, 1));
    let mut events = vec![event("message_start", json!({"message": started})), event("ping", json!({}))];
    for (index, block) in blocks(answer).iter().enumerate() {
        let delta = |delta: Value| event("content_block_delta", json!({"index": index, "delta": delta}));
        let (empty, deltas): (Value, Vec<Value>) = match block["type"].as_str() {
            Some("thinking") => {
                let thinking = pieces(&text(&block["thinking"]));
                let mut deltas: Vec<_> =
                    thinking.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
                deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
                (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
            }
            Some("text") => {
                let texts = pieces(&text(&block["text"]));
                let deltas = texts.iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
                (json!({"type": "text", "text": ""}), deltas)
            }
            _ => {
                let input = pieces(&block["input"].to_string());
                let deltas = input.iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
                let start = json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
                (start, deltas.collect())
            }
        };
        events.push(event("content_block_start", json!({"index": index, "content_block": empty})));
        events.extend(deltas.into_iter().map(delta));
        events.push(event("content_block_stop", json!({"index": index})));
    }
    let ended = json!({"delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
        "usage": {"output_tokens": answer.output_tokens}});
    events.push(event("message_delta", ended));
    events.push(event("message_stop", json!({})));
    events
}

pub(crate) fn error(status: u16) -> Value {
    let kind = match status {
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": format!("scripted error {status}")}})
}
