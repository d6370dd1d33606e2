//! Streams for clients of chat completions (G-29): one id, time and model in all chunks, the role once a choice, and
//! tool calls counted from 0.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::put_signature;
use super::response::{call_id, finish_name};
use super::usage::write_usage;
use super::{errors, parts, reasoning, tools};
use assay_node_dialects::form::{ContentPart, FinishReason, PartDelta, PartStart, StreamEvent, TokenUsage};
use assay_node_dialects::{Dialect, SseEvent};

/// What the client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatStreamOptions {
    /// A last chunk has the usage (G-33).
    pub include_usage: bool,
    /// Calls are the legacy `function_call`; see [`super::asks_for_function_call`].
    pub function_call: bool,
}

/// Writer of a stream of chunks.
#[derive(Debug)]
pub struct ChatStreamWriter {
    options: ChatStreamOptions,
    id: String,
    model: String,
    created: u64,
    /// Members of the first chunk that only chat has.
    first: Map<String, Value>,
    choices: BTreeMap<u64, ChatChoiceWriter>,
    usage: Option<TokenUsage>,
    is_ended: bool,
}

#[derive(Debug, Default)]
struct ChatChoiceWriter {
    has_role: bool,
    calls: usize,
    parts: BTreeMap<usize, ChatPartWriter>,
}

#[derive(Debug)]
struct ChatPartWriter {
    kind: ChatPartKind,
    /// Pieces of a signature, which is sent whole.
    signature: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatPartKind {
    Text,
    Refusal,
    Reasoning,
    /// Call with its number.
    Call(usize),
    /// The only call of a legacy answer.
    LegacyCall,
    /// Part that chunks cannot carry, or that is already whole.
    Silent,
}

impl ChatStreamWriter {
    pub fn new(options: ChatStreamOptions) -> ChatStreamWriter {
        ChatStreamWriter {
            options,
            id: String::new(),
            model: String::new(),
            created: 0,
            first: Map::new(),
            choices: BTreeMap::new(),
            usage: None,
            is_ended: false,
        }
    }

    /// Writes what an event means for the client. Nothing follows the end or an error.
    pub fn write(&mut self, event: &StreamEvent) -> Vec<SseEvent> {
        if self.is_ended {
            return Vec::new();
        }
        match event {
            StreamEvent::Start { id, model, created, extra } => {
                (self.id, self.model, self.created) = (id.clone(), model.clone(), created.unwrap_or_default());
                self.first = extra.for_dialect(Dialect::Chat).cloned().unwrap_or_default();
                Vec::new()
            }
            StreamEvent::PartStart { choice, part, start } => self.start_part(*choice, *part, start),
            StreamEvent::PartDelta { choice, part, delta } => self.part_delta(*choice, *part, delta),
            StreamEvent::PartEnd { choice, part } => self.end_part(*choice, *part),
            StreamEvent::Logprobs { choice, logprobs } => {
                vec![self.chunk(*choice, Map::new(), Some(logprobs.clone()), None)]
            }
            StreamEvent::Finish { choice, reason } => self.finish(*choice, reason),
            StreamEvent::Usage(usage) => {
                self.usage = Some(usage.clone());
                Vec::new()
            }
            StreamEvent::Error(error) => {
                self.is_ended = true;
                let status = errors::error_status(error);
                vec![SseEvent::of_data(errors::write_error(status, error).to_string())]
            }
            StreamEvent::End => {
                self.is_ended = true;
                let usage = self.usage.take().filter(|_| self.options.include_usage);
                let usage = usage.map(|usage| self.data(json!([]), write_usage(&usage)));
                usage.into_iter().chain([SseEvent::of_data("[DONE]")]).collect()
            }
        }
    }

    fn start_part(&mut self, choice: u64, part: usize, start: &PartStart) -> Vec<SseEvent> {
        let (kind, deltas) = match start {
            PartStart::Text => (ChatPartKind::Text, Vec::new()),
            PartStart::Refusal => (ChatPartKind::Refusal, Vec::new()),
            PartStart::Reasoning => (ChatPartKind::Reasoning, Vec::new()),
            PartStart::ToolCall { id, name } => self.start_call(choice, id, name, ""),
            PartStart::Whole(whole) => self.whole(choice, whole),
        };
        let writer = self.choices.entry(choice).or_default();
        writer.parts.insert(part, ChatPartWriter { kind, signature: None });
        deltas.into_iter().map(|delta| self.chunk(choice, delta, None, None)).collect()
    }

    /// Begins a call. A legacy answer has only one, and others are left out.
    fn start_call(
        &mut self,
        choice: u64,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> (ChatPartKind, Vec<Map<String, Value>>) {
        let writer = self.choices.entry(choice).or_default();
        let index = writer.calls;
        writer.calls += 1;
        let function = json!({ "name": name, "arguments": arguments });
        if self.options.function_call {
            return match index {
                0 => (ChatPartKind::LegacyCall, vec![delta_of("function_call", function)]),
                _ => (ChatPartKind::Silent, Vec::new()),
            };
        }
        let id = if id.is_empty() { call_id(&self.id, choice, index) } else { id.to_owned() };
        let call = json!([{ "index": index, "id": id, "type": "function", "function": function }]);
        (ChatPartKind::Call(index), vec![delta_of("tool_calls", call)])
    }

    /// Writes a part that comes whole.
    fn whole(&mut self, choice: u64, part: &ContentPart) -> (ChatPartKind, Vec<Map<String, Value>>) {
        let text = |name: &str, text: &str| vec![delta_of(name, json!(text))];
        match part {
            ContentPart::Text(part) => {
                let mut deltas = text("content", &part.text);
                put_signature(&mut deltas[0], part.signature.as_ref());
                (ChatPartKind::Text, deltas)
            }
            ContentPart::Refusal(part) => (ChatPartKind::Refusal, text("refusal", &part.text)),
            ContentPart::Reasoning(part) => {
                let mut entry = json!({ "content": part.text });
                for (name, value) in [("id", &part.signature), (reasoning::ENCRYPTED, &part.encrypted)] {
                    if let Some(value) = value {
                        entry[name] = json!(value);
                    }
                }
                let mut delta = reasoning::delta(&part.text);
                delta.insert("reasoning".to_owned(), entry);
                (ChatPartKind::Reasoning, vec![delta])
            }
            ContentPart::ToolCall(call) => {
                let (kind, mut deltas) = self.start_call(choice, &call.id, &call.name, &call.arguments);
                if let (ChatPartKind::Call(index), Some(signature)) = (kind, &call.signature) {
                    deltas.push(call_signature(index, signature));
                }
                (kind, deltas)
            }
            ContentPart::Image { .. } => {
                let images = parts::write_listed_image(part).map(|image| delta_of("images", json!([image])));
                (ChatPartKind::Silent, images.into_iter().collect())
            }
            part => {
                let Some(call) = tools::other_call(part).filter(|_| !self.options.function_call) else {
                    return (ChatPartKind::Silent, Vec::new());
                };
                let writer = self.choices.entry(choice).or_default();
                let mut call = call.clone();
                call.insert("index".to_owned(), json!(writer.calls));
                writer.calls += 1;
                (ChatPartKind::Silent, vec![delta_of("tool_calls", json!([call]))])
            }
        }
    }

    fn part_delta(&mut self, choice: u64, part: usize, delta: &PartDelta) -> Vec<SseEvent> {
        let Some(writer) = self.choices.get_mut(&choice).and_then(|choice| choice.parts.get_mut(&part)) else {
            return Vec::new();
        };
        let delta = match (writer.kind, delta) {
            (ChatPartKind::Silent, _) => return Vec::new(),
            (_, PartDelta::Signature(piece)) => {
                writer.signature.get_or_insert_default().push_str(piece);
                return Vec::new();
            }
            (ChatPartKind::Text, PartDelta::Text(text)) => delta_of("content", json!(text)),
            (ChatPartKind::Refusal, PartDelta::Text(text)) => delta_of("refusal", json!(text)),
            (ChatPartKind::Reasoning, PartDelta::Text(text)) => reasoning::delta(text),
            (ChatPartKind::Reasoning, PartDelta::Encrypted(text)) => {
                delta_of("reasoning", json!({ reasoning::ENCRYPTED: text }))
            }
            (ChatPartKind::Call(index), PartDelta::Arguments(text)) => {
                delta_of("tool_calls", json!([{ "index": index, "function": { "arguments": text } }]))
            }
            (ChatPartKind::LegacyCall, PartDelta::Arguments(text)) => {
                delta_of("function_call", json!({ "arguments": text }))
            }
            (kind, PartDelta::Foreign(extra)) => match (extra.for_dialect(Dialect::Chat), kind) {
                (None, _) | (_, ChatPartKind::LegacyCall) => return Vec::new(),
                (Some(fields), ChatPartKind::Call(index)) => {
                    let mut call = fields.clone();
                    call.insert("index".to_owned(), json!(index));
                    delta_of("tool_calls", json!([call]))
                }
                (Some(fields), _) => fields.clone(),
            },
            _ => return Vec::new(),
        };
        vec![self.chunk(choice, delta, None, None)]
    }

    fn end_part(&mut self, choice: u64, part: usize) -> Vec<SseEvent> {
        let writer = self.choices.get_mut(&choice).and_then(|choice| choice.parts.remove(&part));
        let Some(ChatPartWriter { kind, signature: Some(signature) }) = writer else { return Vec::new() };
        let delta = match kind {
            ChatPartKind::Reasoning => delta_of("reasoning", json!({ "id": signature })),
            ChatPartKind::Call(index) => call_signature(index, &signature),
            ChatPartKind::Text => {
                let mut delta = Map::new();
                put_signature(&mut delta, Some(&signature));
                delta
            }
            _ => return Vec::new(),
        };
        vec![self.chunk(choice, delta, None, None)]
    }

    fn finish(&mut self, choice: u64, reason: &FinishReason) -> Vec<SseEvent> {
        let open: Vec<usize> = self.choices.entry(choice).or_default().parts.keys().copied().collect();
        let mut events: Vec<SseEvent> = open.into_iter().flat_map(|part| self.end_part(choice, part)).collect();
        let word = match finish_name(reason) {
            "tool_calls" if self.options.function_call => "function_call",
            word => word,
        };
        events.push(self.chunk(choice, Map::new(), None, Some(word)));
        events
    }

    fn chunk(
        &mut self,
        choice: u64,
        mut delta: Map<String, Value>,
        logprobs: Option<Value>,
        finish: Option<&str>,
    ) -> SseEvent {
        let writer = self.choices.entry(choice).or_default();
        if !std::mem::replace(&mut writer.has_role, true) {
            // an answer without any content has an empty one
            if delta.is_empty() {
                delta.insert("content".to_owned(), json!(""));
            }
            delta.shift_insert(0, "role".to_owned(), json!("assistant"));
        }
        let choices = json!([{ "index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish }]);
        self.data(choices, Value::Null)
    }

    fn data(&mut self, choices: Value, usage: Value) -> SseEvent {
        let mut map = Map::new();
        map.insert("id".to_owned(), json!(self.id));
        map.insert("object".to_owned(), json!("chat.completion.chunk"));
        map.insert("created".to_owned(), json!(self.created));
        map.insert("model".to_owned(), json!(self.model));
        map.insert("choices".to_owned(), choices);
        if self.options.include_usage {
            map.insert("usage".to_owned(), usage);
        }
        for (name, value) in std::mem::take(&mut self.first) {
            map.entry(name).or_insert(value);
        }
        SseEvent::of_data(Value::Object(map).to_string())
    }
}

fn delta_of(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// Returns the chunk's change that adds a signature to a call. OpenAI's Python SDK takes no change of a call without
/// `function`.
fn call_signature(index: usize, signature: &str) -> Map<String, Value> {
    let function = json!({ "arguments": "" });
    let mut call = Map::from_iter([("index".to_owned(), json!(index)), ("function".to_owned(), function)]);
    put_signature(&mut call, Some(&signature.to_owned()));
    delta_of("tool_calls", json!([call]))
}
