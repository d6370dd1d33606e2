//! Responses as OpenAI writes them.

use serde_json::{Value, json};

use crate::chat::{image_of_url, list, read_tool, text};
use crate::script::{Prompt, PromptImage, ScriptedAnswer, pieces};
use crate::sse::WireEvent;

pub(crate) fn read(body: &Value) -> Prompt {
    let choice = &body["tool_choice"];
    let format = &body["text"]["format"];
    let mut prompt = Prompt {
        model: text(&body["model"]),
        instructions: body["instructions"].as_str().map(str::to_owned).into_iter().collect(),
        tools: list(&body["tools"]).map(read_tool).collect(),
        forced_tool: (choice["type"] == "function").then(|| text(&choice["name"])),
        no_tools: choice == "none",
        schema: (format["type"] == "json_schema").then(|| format["schema"].clone()),
        stream: body["stream"] == true,
        ..Prompt::default()
    };
    if let Some(input) = body["input"].as_str() {
        prompt.texts = vec![input.into()];
    }
    for item in list(&body["input"]) {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call_output"), _) => prompt.results.push(output_text(&item["output"])),
            (_, Some("system" | "developer")) => prompt.instructions.extend(texts(&item["content"])),
            (_, Some("user")) => {
                (prompt.texts, prompt.images) = (texts(&item["content"]), images(&item["content"]));
                prompt.results.clear();
            }
            _ => {}
        }
    }
    prompt
}

fn output_text(output: &Value) -> String {
    texts(output).concat()
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => list(parts).filter_map(|part| part["text"].as_str().map(str::to_owned)).collect(),
    }
}

fn images(content: &Value) -> Vec<PromptImage> {
    list(content).filter_map(|part| part["image_url"].as_str()).map(image_of_url).collect()
}

fn items(answer: &ScriptedAnswer, status: &str) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(thought) = &answer.reasoning {
        items.push(json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}));
    }
    if let Some(text) = &answer.text {
        items.push(json!({"id": "msg_1", "type": "message", "role": "assistant", "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}]}));
    }
    items.extend(answer.calls.iter().enumerate().map(|(index, call)| {
        json!({"id": format!("fc_{}", index + 1), "type": "function_call", "status": status, "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string()})
    }));
    items
}

fn response(prompt: &Prompt, status: &str, output: Vec<Value>, usage: Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_764_000_000, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "max_output_tokens": null, "model": prompt.model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null, "temperature": 1.0, "top_p": 1.0,
        "reasoning": {"effort": null, "summary": null}, "store": false, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "truncation": "disabled", "usage": usage, "user": null, "metadata": {},
    })
}

pub(crate) fn whole(prompt: &Prompt, answer: &ScriptedAnswer) -> Value {
    let usage = json!({
        "input_tokens": answer.input_tokens, "input_tokens_details": {"cached_tokens": answer.cached_tokens},
        "output_tokens": answer.output_tokens, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    });
    response(prompt, "completed", items(answer, "completed"), usage)
}

pub(crate) fn stream(prompt: &Prompt, answer: &ScriptedAnswer) -> Vec<WireEvent> {
    let mut events: Vec<(&str, Value)> = Vec::new();
    let begun = response(prompt, "in_progress", Vec::new(), Value::Null);
    events.push(("response.created", json!({"response": begun})));
    events.push(("response.in_progress", json!({"response": begun})));
    for (index, item) in items(answer, "completed").into_iter().enumerate() {
        item_events(&mut events, index, &item);
    }
    events.push(("response.completed", json!({"response": whole(prompt, answer)})));
    let numbered = events.into_iter().enumerate().map(|(number, (name, mut data))| {
        (data["type"], data["sequence_number"]) = (json!(name), json!(number));
        WireEvent::named(name, &data)
    });
    numbered.collect()
}

/// Events of one item: it is added empty, filled piece by piece, and done.
fn item_events(events: &mut Vec<(&'static str, Value)>, index: usize, item: &Value) {
    let id = &item["id"];
    let at = |mut data: Value| {
        (data["item_id"], data["output_index"]) = (id.clone(), json!(index));
        data
    };
    let mut empty = item.clone();
    match item["type"].as_str() {
        Some("message") => {
            (empty["content"], empty["status"]) = (json!([]), json!("in_progress"));
            events.push(("response.output_item.added", json!({"output_index": index, "item": empty})));
            let part = &item["content"][0];
            let begun = json!({"type": "output_text", "text": "", "annotations": []});
            events.push(("response.content_part.added", at(json!({"content_index": 0, "part": begun}))));
            for piece in pieces(&text(&part["text"])) {
                events.push((
                    "response.output_text.delta",
                    at(json!({"content_index": 0, "delta": piece, "logprobs": []})),
                ));
            }
            let done = json!({"content_index": 0, "text": part["text"], "logprobs": []});
            events.push(("response.output_text.done", at(done)));
            events.push(("response.content_part.done", at(json!({"content_index": 0, "part": part}))));
        }
        Some("reasoning") => {
            empty["summary"] = json!([]);
            events.push(("response.output_item.added", json!({"output_index": index, "item": empty})));
            let part = &item["summary"][0];
            let begun = json!({"type": "summary_text", "text": ""});
            events.push(("response.reasoning_summary_part.added", at(json!({"summary_index": 0, "part": begun}))));
            for piece in pieces(&text(&part["text"])) {
                let delta = json!({"summary_index": 0, "delta": piece});
                events.push(("response.reasoning_summary_text.delta", at(delta)));
            }
            let done = json!({"summary_index": 0, "text": part["text"]});
            events.push(("response.reasoning_summary_text.done", at(done)));
            events.push(("response.reasoning_summary_part.done", at(json!({"summary_index": 0, "part": part}))));
        }
        _ => {
            (empty["arguments"], empty["status"]) = (json!(""), json!("in_progress"));
            events.push(("response.output_item.added", json!({"output_index": index, "item": empty})));
            for piece in pieces(&text(&item["arguments"])) {
                events.push(("response.function_call_arguments.delta", at(json!({"delta": piece}))));
            }
            let done = json!({"name": item["name"], "arguments": item["arguments"]});
            events.push(("response.function_call_arguments.done", at(done)));
        }
    }
    events.push(("response.output_item.done", json!({"output_index": index, "item": item})));
}
