//! Answers and streams of the scripted model servers, in every format.

use serde_json::{Value, json};

use crate::script::{Prompt, PromptTool, ScriptedAnswer, answer};
use crate::sse::WireEvent;
use crate::{anthropic, bedrock, chat, gemini, responses};

/// Number of the format of Anthropic's messages by InvokeModel.
const BEDROCK_ANTHROPIC: usize = 5;

fn prompts() -> Vec<Prompt> {
    let tools = ["weather", "time"].map(|name| PromptTool {
        name: name.to_owned(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    });
    let prompt =
        |model: &str| Prompt {
            model: model.to_owned(), texts: vec!["hello wörld 🦀".to_owned()], ..Prompt::default()
        };
    vec![
        prompt("m"),
        prompt("m-cached-reasoning"),
        Prompt { tools: tools.to_vec(), ..prompt("m-reasoning") },
        Prompt { tools: tools.to_vec(), forced_tool: Some("time".to_owned()), ..prompt("m") },
        Prompt { tools: tools.to_vec(), results: vec!["12".to_owned()], ..prompt("m-cached") },
        Prompt { schema: Some(json!({"type": "object", "properties": {"a": {"type": "string"}}})), ..prompt("m") },
    ]
}

fn answered() -> Vec<(Prompt, ScriptedAnswer)> {
    prompts().into_iter().filter_map(|prompt| answer(&prompt).ok().map(|answer| (prompt, answer))).collect()
}

/// Returns whole answers, and errors.
pub fn answers() -> Vec<Vec<u8>> {
    let mut bodies: Vec<(usize, Value)> = Vec::new();
    for (prompt, answer) in &answered() {
        bodies.push((0, chat::whole(prompt, answer)));
        bodies.push((1, responses::whole(prompt, answer)));
        bodies.push((2, anthropic::whole(prompt, answer)));
        bodies.push((3, gemini::whole(prompt, answer)));
        bodies.push((4, bedrock::whole(answer)));
    }
    bodies.push((0, chat::completion(&json!({"model": "m"}), &answered()[0].1)));
    bodies.push((0, chat::embeddings(&json!({"model": "m", "input": ["a", "b"]}))));
    for status in [400, 401, 404, 429, 500, 529] {
        let errors = [chat::error(status), chat::error(status), anthropic::error(status), gemini::error(status)];
        bodies.extend(errors.into_iter().enumerate());
        bodies.push((4, bedrock::error(status)));
    }
    bodies.iter().map(|(server, body)| format!("0{server}0011{body}").into_bytes()).collect()
}

/// Returns streams, for each format of a client.
pub fn streams() -> Vec<Vec<u8>> {
    let mut streams: Vec<(usize, Vec<WireEvent>)> = Vec::new();
    for (prompt, answer) in &answered() {
        let body = json!({"stream_options": {"include_usage": true}});
        streams.push((0, chat::stream(&body, prompt, answer)));
        streams.push((1, responses::stream(prompt, answer)));
        streams.push((2, anthropic::stream(prompt, answer)));
        streams.push((3, gemini::stream(prompt, answer)));
        streams.push((4, bedrock::stream(answer)));
        streams.push((BEDROCK_ANTHROPIC, anthropic::stream(prompt, answer)));
    }
    let mut seeds = Vec::new();
    for (server, events) in &streams {
        let bytes: Vec<u8> = events.iter().flat_map(|event| event.0.clone()).collect();
        seeds.extend((0..4).map(|client| [format!("{client}{server}0023").as_bytes(), &bytes].concat()));
    }
    seeds
}
