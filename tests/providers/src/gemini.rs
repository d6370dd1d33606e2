//! Contents as Google Gemini writes them.

use serde_json::{Value, json};

use crate::chat::{list, text};
use crate::script::{Prompt, PromptImage, PromptTool, SIGNATURE, ScriptedAnswer, embedding, pieces};
use crate::sse::WireEvent;

/// Returns a member by its name in camel case, or in snake case, which clients mix.
fn member<'a>(of: &'a Value, camel: &str) -> &'a Value {
    let snake = camel.chars().fold(String::new(), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    });
    of.get(camel).or_else(|| of.get(snake)).unwrap_or(&Value::Null)
}

/// Reads a request; the model and whether to stream are in its path.
pub(crate) fn read(model: &str, stream: bool, body: &Value) -> Prompt {
    let calling = member(member(body, "toolConfig"), "functionCallingConfig");
    let generation = member(body, "generationConfig");
    let schema = [member(generation, "responseJsonSchema"), member(generation, "responseSchema")];
    let declared = list(&body["tools"]).flat_map(|tool| list(member(tool, "functionDeclarations")));
    let mut prompt = Prompt {
        model: model.into(),
        instructions: texts(member(body, "systemInstruction")),
        tools: declared.map(read_tool).collect(),
        forced_tool: list(member(calling, "allowedFunctionNames")).next().map(text),
        no_tools: calling["mode"] == "NONE",
        schema: schema.into_iter().find(|schema| !schema.is_null()).cloned(),
        stream,
        ..Prompt::default()
    };
    for content in list(&body["contents"]).filter(|content| content["role"] != "model") {
        let results: Vec<_> =
            list(&content["parts"]).filter(|part| !member(part, "functionResponse").is_null()).collect();
        if results.is_empty() {
            (prompt.texts, prompt.images) = (texts(content), images(content));
            prompt.results.clear();
        }
        prompt.results.extend(results.iter().map(|part| result_text(&member(part, "functionResponse")["response"])));
    }
    prompt
}

fn read_tool(declared: &Value) -> PromptTool {
    let parameters = [member(declared, "parametersJsonSchema"), &declared["parameters"]];
    let parameters = parameters.into_iter().find(|schema| !schema.is_null()).cloned().unwrap_or_default();
    PromptTool { name: text(&declared["name"]), parameters }
}

/// Text of a result, which clients put below one of these names.
fn result_text(response: &Value) -> String {
    let inner = ["result", "output", "content"].into_iter().find_map(|name| response.get(name)).unwrap_or(response);
    inner.as_str().map_or_else(|| inner.to_string(), str::to_owned)
}

fn texts(content: &Value) -> Vec<String> {
    list(&content["parts"]).filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

fn images(content: &Value) -> Vec<PromptImage> {
    let image = |part: &Value| {
        let inline = member(part, "inlineData");
        match member(member(part, "fileData"), "fileUri").as_str() {
            Some(uri) => Some(PromptImage::Url(uri.into())),
            None if inline.is_null() => None,
            None => {
                Some(PromptImage::Base64 { media_type: text(member(inline, "mimeType")), data: text(&inline["data"]) })
            }
        }
    };
    list(&content["parts"]).filter_map(image).collect()
}

fn calls(answer: &ScriptedAnswer) -> Vec<Value> {
    let call = |(index, call): (usize, &crate::script::ScriptedCall)| {
        let mut part = json!({"functionCall": {"name": call.name, "args": call.arguments}});
        // Only the first of parallel calls is signed.
        if index == 0 {
            part["thoughtSignature"] = json!(SIGNATURE);
        }
        part
    };
    answer.calls.iter().enumerate().map(call).collect()
}

fn chunk(prompt: &Prompt, parts: Vec<Value>, answer: Option<&ScriptedAnswer>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut whole = json!({"responseId": "resp_1", "modelVersion": prompt.model});
    if let Some(answer) = answer {
        candidate["finishReason"] = json!("STOP");
        whole["usageMetadata"] = usage(answer);
    }
    whole["candidates"] = json!([candidate]);
    whole
}

fn usage(answer: &ScriptedAnswer) -> Value {
    let mut usage = json!({"promptTokenCount": answer.input_tokens, "candidatesTokenCount": answer.output_tokens,
        "totalTokenCount": answer.input_tokens + answer.output_tokens});
    if answer.cached_tokens > 0 {
        usage["cachedContentTokenCount"] = json!(answer.cached_tokens);
    }
    usage
}

pub(crate) fn whole(prompt: &Prompt, answer: &ScriptedAnswer) -> Value {
    let mut parts: Vec<Value> =
        answer.reasoning.iter().map(|thought| json!({"text": thought, "thought": true})).collect();
    parts.extend(answer.text.iter().map(|text| json!({"text": text})));
    parts.extend(calls(answer));
    chunk(prompt, parts, Some(answer))
}

pub(crate) fn stream(prompt: &Prompt, answer: &ScriptedAnswer) -> Vec<WireEvent> {
    let thoughts = pieces(answer.reasoning.as_deref().unwrap_or_default());
    let mut parts: Vec<Value> = thoughts.iter().map(|piece| json!({"text": piece, "thought": true})).collect();
    let texts = pieces(answer.text.as_deref().unwrap_or_default());
    parts.extend(texts.iter().map(|piece| json!({"text": piece})));
    parts.extend(calls(answer));
    let last = parts.len().saturating_sub(1);
    let chunks = parts.into_iter().enumerate();
    chunks.map(|(at, part)| WireEvent::data(&chunk(prompt, vec![part], (at == last).then_some(answer)))).collect()
}

pub(crate) fn error(status: u16) -> Value {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": format!("scripted error {status}"), "status": name}})
}

/// `embedContent`, and `batchEmbedContents` for several texts.
pub(crate) fn embeddings(verb: &str, body: &Value) -> Value {
    let values = |content: &Value| json!({"values": embedding(&texts(content).concat())});
    match verb {
        "embedContent" => json!({"embedding": values(&body["content"])}),
        _ => json!({"embeddings": list(&body["requests"]).map(|one| values(&one["content"])).collect::<Vec<_>>()}),
    }
}
