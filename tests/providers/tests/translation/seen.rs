//! What a client reads from an answer, by a reading of each wire format that shares no code with the gateway.

use assay_node_dialects::Dialect;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenAnswer {
    pub text: String,
    /// Names and arguments of calls, in their order.
    pub calls: Vec<(String, Value)>,
    /// Finish reason in the words of the wire format.
    pub finish: String,
    /// Tokens of the prompt, of the answer, and of the cached part of the prompt.
    pub usage: [u64; 3],
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("arguments that are no JSON: {text}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

pub fn seen_whole(dialect: Dialect, body: &Value) -> SeenAnswer {
    match dialect {
        Dialect::Chat => {
            let message = &body["choices"][0]["message"];
            let calls = list(&message["tool_calls"]).map(|call| {
                let function = &call["function"];
                (text(&function["name"]).to_owned(), arguments(text(&function["arguments"])))
            });
            SeenAnswer {
                text: text(&message["content"]).into(),
                calls: calls.collect(),
                finish: text(&body["choices"][0]["finish_reason"]).into(),
                usage: chat_usage(&body["usage"]),
            }
        }
        Dialect::Responses => seen_response(body),
        Dialect::Anthropic => {
            let blocks = || list(&body["content"]);
            let uses = blocks().filter(|block| block["type"] == "tool_use");
            SeenAnswer {
                text: blocks().filter(|block| block["type"] == "text").map(|block| text(&block["text"])).collect(),
                calls: uses.map(|block| (text(&block["name"]).into(), block["input"].clone())).collect(),
                finish: text(&body["stop_reason"]).into(),
                usage: anthropic_usage(&body["usage"]),
            }
        }
        Dialect::Gemini => {
            let mut seen = SeenAnswer::default();
            add_gemini(&mut seen, body);
            seen
        }
    }
}

fn seen_response(body: &Value) -> SeenAnswer {
    let items = || list(&body["output"]);
    let contents = items().filter(|item| item["type"] == "message").flat_map(|item| list(&item["content"]));
    let calls = items().filter(|item| item["type"] == "function_call");
    let usage = &body["usage"];
    SeenAnswer {
        text: contents.map(|part| text(&part["text"])).collect(),
        calls: calls.map(|call| (text(&call["name"]).into(), arguments(text(&call["arguments"])))).collect(),
        finish: text(&body["status"]).into(),
        usage: [
            number(&usage["input_tokens"]),
            number(&usage["output_tokens"]),
            number(&usage["input_tokens_details"]["cached_tokens"]),
        ],
    }
}

fn chat_usage(usage: &Value) -> [u64; 3] {
    let cached = &usage["prompt_tokens_details"]["cached_tokens"];
    [number(&usage["prompt_tokens"]), number(&usage["completion_tokens"]), number(cached)]
}

fn anthropic_usage(usage: &Value) -> [u64; 3] {
    let cached = number(&usage["cache_read_input_tokens"]);
    [number(&usage["input_tokens"]) + cached, number(&usage["output_tokens"]), cached]
}

fn add_gemini(seen: &mut SeenAnswer, body: &Value) {
    let candidate = &body["candidates"][0];
    for part in list(&candidate["content"]["parts"]).filter(|part| part["thought"] != true) {
        seen.text.push_str(text(&part["text"]));
        let call = &part["functionCall"];
        if !call.is_null() {
            seen.calls.push((text(&call["name"]).into(), call["args"].clone()));
        }
    }
    if let Some(finish) = candidate["finishReason"].as_str() {
        seen.finish = finish.into();
    }
    let usage = &body["usageMetadata"];
    if !usage.is_null() {
        let (input, output) = (number(&usage["promptTokenCount"]), number(&usage["candidatesTokenCount"]));
        seen.usage = [input, output, number(&usage["cachedContentTokenCount"])];
    }
}

/// Data of the events of a stream, in their order.
fn events(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start);
    let json = data.filter(|data| *data != "[DONE]");
    json.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("an event that is no JSON: {data}"))).collect()
}

pub fn seen_in_stream(dialect: Dialect, bytes: &[u8]) -> SeenAnswer {
    let mut seen = SeenAnswer::default();
    let mut pieces: Vec<(String, String)> = Vec::new();
    let events = events(bytes);
    match dialect {
        Dialect::Chat => {
            assert!(bytes.ends_with(b"data: [DONE]\n\n"), "a stream without its end");
            events.iter().for_each(|chunk| add_chat(&mut seen, &mut pieces, chunk));
        }
        Dialect::Responses => {
            let texts = events.iter().filter(|event| event["type"] == "response.output_text.delta");
            let streamed: String = texts.map(|event| text(&event["delta"])).collect();
            let last = events.last().expect("a last event");
            assert_eq!(last["type"], "response.completed");
            seen = seen_response(&last["response"]);
            assert_eq!(streamed, seen.text);
        }
        Dialect::Anthropic => {
            assert_eq!(events.last().expect("a last event")["type"], "message_stop");
            events.iter().for_each(|event| add_anthropic(&mut seen, &mut pieces, event));
        }
        Dialect::Gemini => events.iter().for_each(|chunk| add_gemini(&mut seen, chunk)),
    }
    let calls = pieces.into_iter().map(|(name, text)| (name, arguments(&text)));
    seen.calls.extend(calls);
    seen
}

fn add_chat(seen: &mut SeenAnswer, pieces: &mut Vec<(String, String)>, chunk: &Value) {
    let choice = &chunk["choices"][0];
    seen.text.push_str(text(&choice["delta"]["content"]));
    for call in list(&choice["delta"]["tool_calls"]) {
        let index = number(&call["index"]) as usize;
        if index == pieces.len() {
            pieces.push((text(&call["function"]["name"]).into(), String::new()));
        }
        pieces[index].1.push_str(text(&call["function"]["arguments"]));
    }
    if let Some(finish) = choice["finish_reason"].as_str() {
        seen.finish = finish.into();
    }
    if !chunk["usage"].is_null() {
        seen.usage = chat_usage(&chunk["usage"]);
    }
}

fn add_anthropic(seen: &mut SeenAnswer, pieces: &mut Vec<(String, String)>, event: &Value) {
    match text(&event["type"]) {
        "message_start" => seen.usage = anthropic_usage(&event["message"]["usage"]),
        "content_block_start" if event["content_block"]["type"] == "tool_use" => {
            pieces.push((text(&event["content_block"]["name"]).into(), String::new()));
        }
        "content_block_delta" => {
            let delta = &event["delta"];
            seen.text.push_str(text(&delta["text"]));
            if let (Some(json), Some(call)) = (delta["partial_json"].as_str(), pieces.last_mut()) {
                call.1.push_str(json);
            }
        }
        "message_delta" => {
            seen.finish = text(&event["delta"]["stop_reason"]).into();
            // Counts that the last event names are totals; others stay as they began.
            let usage = &event["usage"];
            seen.usage[1] = number(&usage["output_tokens"]);
            if !usage["input_tokens"].is_null() {
                seen.usage = anthropic_usage(usage);
            }
        }
        _ => {}
    }
}
