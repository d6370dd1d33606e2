//! Whole bodies around the objects of tests.

use serde_json::{Map, Value, json};

use crate::{ANTHROPIC, CHAT, CONVERSE, Format, GEMINI, RESPONSES};

/// Heads with no option, and with all.
const HEADS: [&str; 2] = ["0000", "oo12"];

/// Returns requests with the object in each place that may take it.
pub fn requests(format: Format, object: &Map<String, Value>) -> Vec<Vec<u8>> {
    let value = Value::Object(object.clone());
    let places = match format {
        CHAT => vec![
            json!({"model": "m", "messages": [value]}),
            json!({"model": "m", "messages": [{"role": "user", "content": [value]}]}),
            json!({"model": "m", "messages": [{"role": "assistant", "content": "a", "tool_calls": [value]}]}),
            json!({"model": "m", "messages": [], "tools": [value], "response_format": value}),
            with(json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}), object),
        ],
        RESPONSES => vec![
            json!({"model": "m", "input": [value]}),
            json!({"model": "m", "input": [{"type": "message", "role": "user", "content": [value]}]}),
            json!({"model": "m", "input": "a", "tools": [value], "text": {"format": value}}),
            with(json!({"model": "m", "input": "hi"}), object),
        ],
        ANTHROPIC => vec![
            json!({"model": "m", "max_tokens": 9, "messages": [value]}),
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [value]}]}),
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": [value]}]}),
            json!({"model": "m", "max_tokens": 9, "messages": [], "tools": [value], "system": [value]}),
            with(json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}), object),
        ],
        GEMINI => vec![
            json!({"contents": [value]}),
            json!({"contents": [{"role": "user", "parts": [value]}]}),
            json!({"contents": [{"role": "model", "parts": [value]}]}),
            json!({"contents": [], "tools": [{"functionDeclarations": [value]}], "generationConfig": value}),
            with(json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}), object),
        ],
        _ => return vec![seed(CHAT, "9", HEADS[0], &value)],
    };
    let heads = HEADS.iter().zip(["0", "9"]);
    places.iter().flat_map(|body| heads.clone().map(move |(head, server)| seed(format, server, head, body))).collect()
}

/// Returns answers with the object in each place that may take it.
pub fn answers(format: Format, object: &Map<String, Value>) -> Vec<Vec<u8>> {
    let value = Value::Object(object.clone());
    let places = match format {
        CHAT => vec![
            json!({"id": "c", "model": "m", "choices": [{"index": 0, "message": value, "finish_reason": "stop"}]}),
            with(json!({"id": "c", "model": "m", "choices": [{"index": 0, "message": {"content": "a"}}]}), object),
        ],
        RESPONSES => vec![
            json!({"id": "r", "model": "m", "output": [value]}),
            json!({"id": "r", "model": "m", "output": [{"type": "message", "id": "m", "role": "assistant", "content": [value]}]}),
            with(json!({"id": "r", "model": "m", "status": "completed", "output": []}), object),
        ],
        ANTHROPIC => vec![
            json!({"id": "a", "model": "m", "type": "message", "role": "assistant", "content": [value]}),
            with(json!({"id": "a", "model": "m", "type": "message", "role": "assistant", "content": []}), object),
        ],
        GEMINI => vec![
            json!({"candidates": [value]}),
            json!({"candidates": [{"content": {"role": "model", "parts": [value]}}]}),
            with(json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}), object),
        ],
        CONVERSE => vec![
            json!({"output": {"message": {"role": "assistant", "content": [value]}}, "stopReason": "end_turn"}),
            with(json!({"output": {"message": {"content": []}}, "stopReason": "end_turn"}), object),
        ],
        _ => return Vec::new(),
    };
    let server = format.number.to_string();
    let wholes = places.iter().chain([&value]);
    wholes.flat_map(|body| HEADS.map(|head| seed(CHAT, &server, head, body))).collect()
}

/// Returns short streams with the object in each place that may take it.
pub fn streams(format: Format, object: &Map<String, Value>) -> Vec<Vec<u8>> {
    let value = Value::Object(object.clone());
    let texts = match format {
        CHAT => vec![
            format!(
                "data: {}\n\ndata: [DONE]\n\n",
                json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": value}]})
            ),
            format!("data: {}\n\ndata: [DONE]\n\n", json!({"id": "c", "model": "m", "choices": [value]})),
            format!("data: {value}\n\ndata: [DONE]\n\n"),
        ],
        RESPONSES => {
            let created = json!({"type": "response.created", "response": {"id": "r", "model": "m", "output": []}});
            let added = json!({"type": "response.output_item.added", "output_index": 0, "item": value});
            let completed =
                json!({"type": "response.completed", "response": {"id": "r", "model": "m", "output": [value]}});
            vec![
                format!("data: {created}\n\ndata: {value}\n\ndata: {completed}\n\n"),
                format!("data: {created}\n\ndata: {added}\n\ndata: {completed}\n\n"),
            ]
        }
        ANTHROPIC => {
            let start = json!({"type": "message_start", "message": {"id": "a", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}});
            let block = json!({"type": "content_block_start", "index": 0, "content_block": value});
            let end = "data: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"end_turn\"}}\n\ndata: {\"type\": \"message_stop\"}\n\n";
            vec![
                format!("data: {start}\n\ndata: {value}\n\n{end}"),
                format!(
                    "data: {start}\n\ndata: {block}\n\ndata: {{\"type\": \"content_block_stop\", \"index\": 0}}\n\n{end}"
                ),
            ]
        }
        GEMINI => vec![
            format!("data: {value}\n\n"),
            format!(
                "data: {}\n\n",
                json!({"candidates": [{"content": {"role": "model", "parts": [value]}, "finishReason": "STOP"}]})
            ),
        ],
        _ => ["contentBlockStart", "contentBlockDelta", "messageStop", "metadata"]
            .map(|kind| format!("event: messageStart\ndata: {{}}\n\nevent: {kind}\ndata: {value}\n\n"))
            .to_vec(),
    };
    let mut seeds = Vec::new();
    for text in &texts {
        for (client, head) in (0..4).zip(HEADS.iter().cycle()) {
            seeds.push(format!("{client}{}{head}{text}", format.number).into_bytes());
        }
    }
    seeds
}

fn with(mut body: Value, more: &Map<String, Value>) -> Value {
    if let Value::Object(body) = &mut body {
        body.extend(more.clone());
    }
    body
}

fn seed(client: Format, server: &str, head: &str, body: &Value) -> Vec<u8> {
    format!("{}{server}{head}{body}", client.number).into_bytes()
}
