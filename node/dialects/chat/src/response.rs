//! Answers of chat completions.

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, put_extra, put_signature};
use super::usage::{read_usage, write_usage};
use super::{messages, reasoning, tools};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, ModelChoice, ModelResponse, TextPart};
use assay_node_dialects::{Dialect, DialectError};

/// Upper bound of the choices of an answer.
pub const CHAT_CHOICES_MAX: usize = 1_024;

const OBJECT: &str = "chat.completion";

/// Reads a whole answer.
pub fn read_response(body: &Value) -> Result<ModelResponse, DialectError> {
    if !body.is_object() {
        return Err(DialectError::malformed("body", "an object"));
    }
    let mut fields = ChatFields::of("", body.clone())?;
    if fields.get("object").is_some_and(|object| object == OBJECT) {
        fields.take("object");
    }
    let (id, model) = (fields.text("id")?.unwrap_or_default(), fields.text("model")?.unwrap_or_default());
    let created = fields.count("created")?;
    let values = fields.list("choices")?.ok_or_else(|| DialectError::malformed("choices", "a list"))?;
    if values.len() > CHAT_CHOICES_MAX {
        return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "choices", max: CHAT_CHOICES_MAX });
    }
    let choices = values.into_iter().enumerate().map(|(at, choice)| read_choice(choice, at, &id));
    let choices = choices.collect::<Result<Vec<_>, _>>()?;
    let usage = fields.get("usage").and_then(read_usage);
    if usage.is_some() || fields.get("usage").is_some_and(Value::is_null) {
        fields.take("usage");
    }
    Ok(ModelResponse { id, model, created, choices, usage, extra: fields.into_extra() })
}

fn read_choice(value: Value, at: usize, id: &str) -> Result<ModelChoice, DialectError> {
    let mut fields = ChatFields::of(format!("choices[{at}]"), value)?;
    let index = fields.count("index")?.unwrap_or(at as u64);
    let path = fields.path_of("message");
    let mut message = fields.object("message")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    if message.get("role").is_some_and(|role| role == "assistant") {
        message.take("role");
    }
    let mut parts = messages::take_answer(&mut message, call_id(id, index, 0))?;
    let mut calls = 0;
    for part in &mut parts {
        if let ContentPart::ToolCall(call) = part {
            if call.id.is_empty() {
                call.id = call_id(id, index, calls);
            }
            calls += 1;
        }
    }
    take_annotations(&mut message, &mut parts);
    fields.put_rest("message", message);
    let finish = take_finish(&mut fields, calls > 0)?;
    let logprobs = fields.take("logprobs");
    Ok(ModelChoice { index, parts, finish, logprobs, extra: fields.into_extra() })
}

/// Makes up the id of a call that a server gave none. It is stable and at most 40 characters long.
pub(super) fn call_id(response_id: &str, choice: u64, call: usize) -> String {
    /// Characters that are taken from the end of the id of the answer, where it differs from others.
    const UNIQUE_CHARS_MAX: usize = 16;
    let unique: Vec<char> = response_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let unique: String = unique[unique.len().saturating_sub(UNIQUE_CHARS_MAX)..].iter().collect();
    let id = format!("call_{unique}_{choice}_{call}");
    id.chars().take(40).collect()
}

/// Moves annotations, such as citations, to the last text, as a stream does.
fn take_annotations(message: &mut ChatFields, parts: &mut [ContentPart]) {
    let Some(ContentPart::Text(text)) = parts.iter_mut().rfind(|part| matches!(part, ContentPart::Text(_))) else {
        return;
    };
    if text.extra.is_empty()
        && let Some(annotations) = message.take("annotations")
    {
        let fields = Map::from_iter([("annotations".to_owned(), annotations)]);
        text.extra = Extra::of(Dialect::Chat, fields);
    }
}

/// Takes the reason of the end. If the form's name differs from the server's, the server's stays.
fn take_finish(fields: &mut ChatFields, has_calls: bool) -> Result<Option<FinishReason>, DialectError> {
    let Some(word) = fields.text("finish_reason")? else { return Ok(None) };
    let stop = fields.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
    let reason = finish_of(&word, has_calls, stop);
    let has_legacy_name = word == "function_call";
    if finish_name(&reason) != word && !has_legacy_name {
        fields.put("finish_reason", Value::String(word));
    }
    Ok(Some(reason))
}

/// Reason that a word stands for. A `stop` after calls is one for calls: servers say it after a forced call.
pub(super) fn finish_of(word: &str, has_calls: bool, stop: Option<String>) -> FinishReason {
    match word {
        "stop" if has_calls => FinishReason::ToolCalls,
        "stop" if stop.is_some() => FinishReason::StopSequence(stop),
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Returns the word for a reason: `stop` for those that chat has no name for (G-28).
pub(super) fn finish_name(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop | FinishReason::StopSequence(_) | FinishReason::Pause | FinishReason::Other(_) => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
    }
}

/// Makes the first call of each choice a legacy `function_call`, for clients that asked with `functions`.
/// Other calls are left out, because the form has only one.
pub fn use_function_call(response: &mut ModelResponse) {
    for choice in &mut response.choices {
        let mut is_first = true;
        choice.parts.retain_mut(|part| match part {
            ContentPart::ToolCall(call) => {
                call.extra = std::mem::take(&mut call.extra).spelled(tools::LEGACY);
                std::mem::take(&mut is_first)
            }
            _ => true,
        });
    }
}

/// Writes a whole answer.
pub fn write_response(response: &ModelResponse) -> Value {
    let mut map = Map::new();
    map.insert("id".to_owned(), Value::String(response.id.clone()));
    map.insert("object".to_owned(), Value::from(OBJECT));
    map.insert("created".to_owned(), json!(response.created.unwrap_or_default()));
    map.insert("model".to_owned(), Value::String(response.model.clone()));
    let choices = response.choices.iter().map(|choice| write_choice(choice, &response.id));
    map.insert("choices".to_owned(), choices.collect());
    if let Some(usage) = &response.usage {
        map.insert("usage".to_owned(), write_usage(usage));
    }
    put_extra_over(&mut map, &response.extra, "object");
    Value::Object(map)
}

/// Adds kept members. One of them wins over the written one, because the server said another word.
fn put_extra_over(map: &mut Map<String, Value>, extra: &Extra, winner: &str) {
    if let Some(word) = extra.for_dialect(Dialect::Chat).and_then(|kept| kept.get(winner)) {
        map.insert(winner.to_owned(), word.clone());
    }
    put_extra(map, extra);
}

fn write_choice(choice: &ModelChoice, id: &str) -> Value {
    let mut map = Map::new();
    map.insert("index".to_owned(), json!(choice.index));
    map.insert("message".to_owned(), Value::Object(write_message(choice, id)));
    map.insert("logprobs".to_owned(), choice.logprobs.clone().unwrap_or_default());
    let is_legacy = choice.parts.iter().any(tools::is_legacy_call);
    let finish = choice.finish.as_ref().map(|reason| match finish_name(reason) {
        "tool_calls" if is_legacy => "function_call",
        word => word,
    });
    map.insert("finish_reason".to_owned(), finish.map_or(Value::Null, Value::from));
    put_extra_over(&mut map, &choice.extra, "finish_reason");
    Value::Object(map)
}

fn write_message(choice: &ModelChoice, id: &str) -> Map<String, Value> {
    let mut content: Option<String> = None;
    let mut message = Map::new();
    let mut signature = None;
    message.insert("role".to_owned(), Value::from("assistant"));
    message.insert("content".to_owned(), Value::Null);
    for part in &choice.parts {
        match part {
            ContentPart::Text(text) => {
                content.get_or_insert_default().push_str(&text.text);
                signature = text.signature.as_ref().or(signature);
            }
            ContentPart::Foreign { from: Dialect::Chat, part: Value::Object(fields) }
                if !fields.contains_key("type") && tools::other_call(part).is_none() =>
            {
                put_extra(&mut message, &Extra::of(Dialect::Chat, fields.clone()));
            }
            _ => {}
        }
    }
    let answer: Vec<ContentPart> = choice.parts.iter().filter_map(answer_part).collect();
    let mut calls = 0;
    messages::put_answer_members(&mut message, answer.iter(), |_| {
        calls += 1;
        call_id(id, choice.index, calls - 1)
    });
    if content.is_none() && message.len() <= 2 {
        content = Some(String::new());
    }
    message.insert("content".to_owned(), content.map_or(Value::Null, Value::String));
    put_signature(&mut message, signature);
    for part in &choice.parts {
        if let ContentPart::Text(TextPart { extra, .. }) = part {
            put_extra(&mut message, extra);
        }
    }
    message
}

/// Returns a part as an answer has it: refusals and images beside the content, and reasoning of Mistral as a list.
fn answer_part(part: &ContentPart) -> Option<ContentPart> {
    let mut part = part.clone();
    match &mut part {
        ContentPart::Text(_) | ContentPart::File(_) | ContentPart::Audio { .. } => return None,
        ContentPart::Refusal(refusal) => refusal.extra = Extra::default(),
        ContentPart::Image { extra, .. } => *extra = std::mem::take(extra).spelled(super::parts::LISTED_IMAGE),
        ContentPart::Reasoning(part) if reasoning::is_spelled_thinking(part) => part.extra = Extra::default(),
        _ => {}
    }
    Some(part)
}
