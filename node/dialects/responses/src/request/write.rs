//! Writing of requests.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::fields::{Fields, kept, put, put_missing, put_rest, put_some};
use super::super::items::{
    begins_item, message_mark, wrapped_content, write_call, write_input_content, write_input_part, write_reasoning,
    write_result,
};
use super::INCLUDE_LOGPROBS;
use super::settings::{write_reasoning_settings, write_text_settings};
use super::tools::{write_tool_choice, write_tools};
use assay_node_dialects::form::{
    CacheControl, ContentPart, Extra, Message, ModelRequest, ReasoningEffort, ReasoningPart, Role, ToolResultPart,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};

/// Fields of chat completions that mean the same here. `verbosity` does too, within `text`.
const SHARED_WITH_CHAT: [&str; 5] =
    ["store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"];
const CHAT_VERBOSITY: &str = "verbosity";

/// Writes the body of a request. Options about JSON schemas and `stream_options` have no meaning here.
pub fn write_request(request: &ModelRequest, options: &WriteOptions) -> Result<WrittenRequest, DialectError> {
    let mut dropped = Vec::new();
    let mut body = Fields::new();
    if !request.model.is_empty() {
        put(&mut body, "model", request.model.as_str());
    }
    let (instructions, messages) = split_instructions(&request.messages);
    put_some(&mut body, "instructions", instructions);
    let first = request.messages.len() - messages.len();
    let mut input = InputWriter { items: Vec::new(), waiting: VecDeque::new(), dropped: &mut dropped };
    for (at, message) in messages.iter().enumerate() {
        input.message(message, first + at)?;
    }
    let items = input.items;
    if !items.is_empty() {
        put(&mut body, "input", items);
    }
    let tools = write_tools(request, &mut dropped)?;
    if !tools.is_empty() {
        put(&mut body, "tools", tools);
    }
    put_some(&mut body, "tool_choice", write_tool_choice(request.tool_choice.as_ref(), &request.extra));
    put_some(&mut body, "parallel_tool_calls", request.parallel_tool_calls);
    let verbosity = chat_field(&request.extra, CHAT_VERBOSITY);
    put_some(&mut body, "text", write_text_settings(request, verbosity));
    put_some(&mut body, "reasoning", write_reasoning_settings(request));
    put_some(&mut body, "max_output_tokens", request.max_output_tokens);
    write_sampling(request, options, &mut body, &mut dropped);
    if request.stream {
        put(&mut body, "stream", true);
    }
    put_some(&mut body, "user", request.user.as_deref());
    put_some(&mut body, "metadata", request.metadata.clone());
    write_extra(request, &mut body, &mut dropped);
    Ok(WrittenRequest { body: Value::Object(body), dropped: unique(dropped) })
}

/// A first system message of one plain text is the instructions.
fn split_instructions(messages: &[Message]) -> (Option<&str>, &[Message]) {
    let [Message { role: Role::System, name: None, parts, extra }, others @ ..] = messages else {
        return (None, messages);
    };
    match parts.as_slice() {
        [ContentPart::Text(text)] if extra.is_empty() && text.extra.is_empty() && text.cache.is_none() => {
            (Some(&text.text), others)
        }
        _ => (None, messages),
    }
}

fn chat_field<'a>(extra: &'a Extra, name: &str) -> Option<&'a Value> {
    extra.for_dialect(Dialect::Chat).and_then(|fields| fields.get(name))
}

fn write_sampling(request: &ModelRequest, options: &WriteOptions, body: &mut Fields, dropped: &mut Vec<String>) {
    let sampling = &request.sampling;
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref());
    let is_tunable = !options.is_reasoning_model || effort == Some(&ReasoningEffort::None);
    for (name, value) in [("temperature", &sampling.temperature), ("top_p", &sampling.top_p)] {
        match value {
            Some(value) if is_tunable => put(body, name, value.clone()),
            Some(_) => dropped.push(name.to_owned()),
            None => {}
        }
    }
    put_some(body, "top_logprobs", sampling.top_logprobs);
    if sampling.logprobs == Some(true) {
        let kept = kept(&request.extra, "include").and_then(Value::as_array);
        let mut include = kept.cloned().unwrap_or_default();
        if !include.iter().any(|one| one == INCLUDE_LOGPROBS) {
            include.push(INCLUDE_LOGPROBS.into());
        }
        put(body, "include", include);
    }
    let without = [
        ("top_k", sampling.top_k.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("seed", sampling.seed.is_some()),
        ("n", sampling.choices.is_some_and(|choices| choices != 1)),
        ("logit_bias", sampling.logit_bias.is_some()),
        ("stop", !request.stop.is_empty()),
    ];
    dropped.extend(without.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| (*name).to_owned()));
}

/// Own fields, those that chat completions share, and names of the others.
fn write_extra(request: &ModelRequest, body: &mut Fields, dropped: &mut Vec<String>) {
    let extra = &request.extra;
    put_rest(body, extra);
    for name in SHARED_WITH_CHAT {
        put_some(body, name, chat_field(extra, name).cloned());
    }
    // responses are stored by default here, and nowhere else
    if extra.for_dialect(Dialect::Responses).is_none() {
        put_missing(body, "store", || json!(false));
    }
    let is_shared = |name: &&str| SHARED_WITH_CHAT.contains(name) || *name == CHAT_VERBOSITY;
    let is_chat = extra.for_dialect(Dialect::Chat).is_some();
    dropped
        .extend(extra.dropped_by(Dialect::Responses).filter(|name| !(is_chat && is_shared(name))).map(str::to_owned));
    let reasoning = request.reasoning.as_ref().map(|reasoning| &reasoning.extra);
    dropped.extend(reasoning.into_iter().flat_map(|extra| extra.dropped_by(Dialect::Responses)).map(str::to_owned));
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

/// Writer of the items of `input`.
struct InputWriter<'a> {
    items: Vec<Value>,
    /// Names and made-up ids of calls without an id, whose results have none either.
    waiting: VecDeque<(String, String)>,
    dropped: &'a mut Vec<String>,
}

/// Content of a message that is being written, up to the next item.
#[derive(Default)]
struct OpenContent {
    content: Vec<Value>,
    mark: Option<Fields>,
}

impl InputWriter<'_> {
    fn message(&mut self, message: &Message, at: usize) -> Result<(), DialectError> {
        self.drop_names(&message.extra, None);
        if message.name.is_some() {
            self.dropped.push("name".to_owned());
        }
        let (role, text_type) = match message.role {
            Role::System => ("system", "input_text"),
            Role::Developer => ("developer", "input_text"),
            Role::User => ("user", "input_text"),
            Role::Assistant => ("assistant", "output_text"),
            // texts beside results have no other role
            Role::Tool => ("user", "input_text"),
        };
        let has_items = matches!(message.role, Role::Assistant | Role::Tool);
        let mut open = OpenContent::default();
        let mut before = None;
        for (part_at, part) in message.parts.iter().enumerate() {
            let path = format!("messages[{at}].parts[{part_at}]");
            self.drop_names_of_part(part);
            let is_item = match part {
                ContentPart::ToolCall(_) | ContentPart::ToolResult(_) | ContentPart::Reasoning(_) => true,
                ContentPart::Foreign { from: Dialect::Responses, .. } => has_items && wrapped_content(part).is_none(),
                _ => false,
            };
            if is_item || (message.role == Role::Assistant && begins_item(before, part)) {
                self.flush(role, &mut open, message);
                open.mark = message_mark(part).cloned();
            }
            if is_item {
                self.item(part, &path)?;
            } else if let Some(content) = wrapped_content(part) {
                open.content.push(content.clone());
            } else {
                open.content.push(write_input_part(part, text_type, &path)?);
            }
            before = Some(part);
        }
        self.flush(role, &mut open, message);
        if message.parts.is_empty() {
            let rest = message.extra.for_dialect(Dialect::Responses);
            self.items.push(write_input_content(role, Vec::new(), rest));
        }
        Ok(())
    }

    /// Ends the content that is open. Fields of a message of the assistant are at its first part.
    fn flush(&mut self, role: &str, open: &mut OpenContent, message: &Message) {
        let OpenContent { content, mark } = std::mem::take(open);
        if !content.is_empty() {
            let rest = mark.as_ref().or_else(|| message.extra.for_dialect(Dialect::Responses));
            self.items.push(write_input_content(role, content, rest));
        }
    }

    fn item(&mut self, part: &ContentPart, path: &str) -> Result<(), DialectError> {
        match part {
            ContentPart::ToolCall(call) => {
                let id = match call.id.is_empty() {
                    true => {
                        let id = format!("call_{}", self.items.len());
                        self.waiting.push_back((call.name.clone(), id.clone()));
                        id
                    }
                    false => call.id.clone(),
                };
                self.items.push(Value::Object(write_call(call, &id)));
            }
            ContentPart::ToolResult(result) => {
                let id = self.id_of_result(result, path)?;
                self.items.push(write_result(result, &id, path)?);
            }
            ContentPart::Reasoning(reasoning) => self.reasoning(reasoning),
            ContentPart::Foreign { part, .. } => self.items.push(part.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Id of the call that a result belongs to: the first of its name that waits, if there are no ids.
    fn id_of_result(&mut self, result: &ToolResultPart, path: &str) -> Result<String, DialectError> {
        if !result.call_id.is_empty() {
            return Ok(result.call_id.clone());
        }
        let is_of = |(name, _): &(String, String)| result.name.as_ref().is_none_or(|of| of == name);
        let at = self.waiting.iter().position(is_of);
        let found = at.and_then(|at| self.waiting.remove(at));
        found.map(|(_, id)| id).ok_or_else(|| DialectError::unsupported(path, "a result without a call"))
    }

    /// Writes reasoning that the provider can recognize. It refuses other reasoning.
    fn reasoning(&mut self, reasoning: &ReasoningPart) {
        let is_own = reasoning.extra.for_dialect(Dialect::Responses).is_some();
        match is_own || reasoning.encrypted.is_some() {
            true => {
                let mut item = write_reasoning(reasoning);
                if kept(&reasoning.extra, "signature").is_none() {
                    item.shift_remove("signature");
                }
                self.items.push(Value::Object(item));
            }
            false => self.dropped.push("reasoning".to_owned()),
        }
    }

    fn drop_names(&mut self, extra: &Extra, cache: Option<&CacheControl>) {
        self.dropped.extend(extra.dropped_by(Dialect::Responses).map(str::to_owned));
        self.dropped.extend(cache.map(|_| "cache_control".to_owned()));
    }

    fn drop_names_of_part(&mut self, part: &ContentPart) {
        match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => self.drop_names(&text.extra, text.cache.as_ref()),
            ContentPart::Image { extra, cache, .. } | ContentPart::Audio { extra, cache, .. } => {
                self.drop_names(extra, cache.as_ref());
            }
            ContentPart::File(file) => self.drop_names(&file.extra, file.cache.as_ref()),
            ContentPart::ToolCall(call) => self.drop_names(&call.extra, call.cache.as_ref()),
            ContentPart::ToolResult(result) => {
                self.drop_names(&result.extra, result.cache.as_ref());
                if result.is_error {
                    self.dropped.push("is_error".to_owned());
                }
                for part in &result.content {
                    if let ContentPart::Text(text) = part {
                        self.drop_names(&text.extra, text.cache.as_ref());
                    }
                }
            }
            ContentPart::Reasoning(reasoning) => self.drop_names(&reasoning.extra, None),
            ContentPart::Foreign { .. } => {}
        }
    }
}
