//! Chat completions, completions and embeddings as OpenAI and servers like it write them.

use serde_json::{Value, json};

use crate::script::{Prompt, PromptImage, PromptTool, ScriptedAnswer, embedding, pieces};
use crate::sse::WireEvent;

const CREATED: u64 = 1_764_000_000;

pub(crate) fn read(body: &Value) -> Prompt {
    let mut prompt = Prompt {
        model: text(&body["model"]),
        tools: list(&body["tools"]).map(|tool| read_tool(&tool["function"])).collect(),
        forced_tool: body["tool_choice"]["function"]["name"].as_str().map(str::to_owned),
        no_tools: body["tool_choice"] == "none",
        schema: body["response_format"].get("json_schema").map(|format| format["schema"].clone()),
        stream: body["stream"] == true,
        ..Prompt::default()
    };
    for message in list(&body["messages"]) {
        let content = &message["content"];
        match message["role"].as_str().unwrap_or_default() {
            "system" | "developer" => prompt.instructions.extend(texts(content)),
            "user" => {
                (prompt.texts, prompt.images, prompt.results) = (texts(content), images(content), Vec::new());
            }
            "tool" => prompt.results.push(texts(content).concat()),
            _ => {}
        }
    }
    prompt
}

pub(crate) fn read_tool(function: &Value) -> PromptTool {
    PromptTool { name: text(&function["name"]), parameters: function["parameters"].clone() }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => list(parts).filter_map(|part| part["text"].as_str().map(str::to_owned)).collect(),
    }
}

fn images(content: &Value) -> Vec<PromptImage> {
    list(content).filter_map(|part| part["image_url"]["url"].as_str()).map(image_of_url).collect()
}

pub(crate) fn image_of_url(url: &str) -> PromptImage {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => PromptImage::Base64 { media_type: media_type.into(), data: data.into() },
        None => PromptImage::Url(url.into()),
    }
}

pub(crate) fn whole(prompt: &Prompt, answer: &ScriptedAnswer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null});
    if let Some(reasoning) = &answer.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if !answer.calls.is_empty() {
        message["tool_calls"] = calls(answer).into();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": prompt.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer)}],
        "usage": usage(answer), "system_fingerprint": "fp_1",
    })
}

fn calls(answer: &ScriptedAnswer) -> Vec<Value> {
    let call = |call: &crate::script::ScriptedCall| {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        json!({"id": call.id, "type": "function", "function": function})
    };
    answer.calls.iter().map(call).collect()
}

fn finish(answer: &ScriptedAnswer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(answer: &ScriptedAnswer) -> Value {
    json!({
        "prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

pub(crate) fn stream(body: &Value, prompt: &Prompt, answer: &ScriptedAnswer) -> Vec<WireEvent> {
    let chunk = |choices: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": prompt.model,
            "choices": choices})
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]));
    let mut chunks = vec![delta(json!({"role": "assistant", "content": ""}))];
    let thoughts = pieces(answer.reasoning.as_deref().unwrap_or_default());
    chunks.extend(thoughts.iter().map(|piece| delta(json!({"reasoning_content": piece}))));
    let texts = pieces(answer.text.as_deref().unwrap_or_default());
    chunks.extend(texts.iter().map(|piece| delta(json!({"content": piece}))));
    for (index, call) in answer.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        chunks.push(delta(
            json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}),
        ));
        chunks.extend(
            pieces(&call.arguments.to_string())
                .iter()
                .map(|piece| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))),
        );
    }
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish(answer)}])));
    if body["stream_options"]["include_usage"] == true {
        let mut last = chunk(json!([]));
        last["usage"] = usage(answer);
        chunks.push(last);
    }
    chunks.iter().map(WireEvent::data).chain([WireEvent::raw("[DONE]")]).collect()
}

pub(crate) fn error(status: u16) -> Value {
    let kind = match status {
        401 => "invalid_api_key",
        404 => "model_not_found",
        429 => "rate_limit_exceeded",
        _ => "scripted_error",
    };
    json!({"error": {"message": format!("scripted error {status}"), "type": "scripted", "param": null, "code": kind}})
}

/// Text completions, of which only the answer has a shape of its own.
pub(crate) fn completion(body: &Value, answer: &ScriptedAnswer) -> Value {
    let text = answer.text.as_deref().unwrap_or_default();
    json!({
        "id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": body["model"],
        "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": "stop"}], "usage": usage(answer),
    })
}

pub(crate) fn read_completion(body: &Value) -> Prompt {
    let texts = match &body["prompt"] {
        Value::String(text) => vec![text.clone()],
        prompts => list(prompts).map(text).collect(),
    };
    Prompt { model: text(&body["model"]), texts, ..Prompt::default() }
}

pub(crate) fn embeddings(body: &Value) -> Value {
    let inputs: Vec<String> = match &body["input"] {
        Value::String(text) => vec![text.clone()],
        inputs => list(inputs).map(text).collect(),
    };
    let tokens: usize = inputs.iter().map(|text| text.split_whitespace().count()).sum();
    let vector =
        |(index, text): (usize, &String)| json!({"object": "embedding", "index": index, "embedding": embedding(text)});
    json!({
        "object": "list", "model": body["model"], "data": inputs.iter().enumerate().map(vector).collect::<Vec<_>>(),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })
}
