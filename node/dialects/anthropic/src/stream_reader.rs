//! Events of the API's streams to events of the form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::block_reader::{read_block, read_content};
use super::error::read_error;
use super::fields::{check_count, extra, object, put, require_text, take, take_text};
use super::request::AnthropicReadOptions;
use super::response::read_stop_reason;
use super::usage::read_usage;
use super::{BLOCKS_MAX, SCHEMA_TOOL};
use assay_node_dialects::form::{ContentPart, Extra, FinishReason, PartDelta, PartStart, StreamEvent};
use assay_node_dialects::{Dialect, DialectError, SseEvent};

/// Upper bound of bytes that are kept back: texts until it is clear whether they are the answer, and blocks that the
/// form takes whole.
pub const HELD_BYTES_MAX: usize = 16 << 20;
/// Status of an error in a stream whose type is not known.
const UNKNOWN_ERROR_STATUS: u16 = 500;

/// Reader of one stream.
#[derive(Debug, Default)]
pub struct AnthropicStreamReader {
    options: AnthropicReadOptions,
    is_started: bool,
    is_over: bool,
    /// Blocks that are not complete, by their index.
    blocks: BTreeMap<u64, ReadBlock>,
    blocks_started: usize,
    next_part: usize,
    held_bytes: usize,
    /// Usage as it came; later fields replace earlier ones.
    usage: Map<String, Value>,
    /// Texts that are the answer unless the tool `json` is called.
    held_texts: Vec<PartDelta>,
    has_schema_answer: bool,
    has_calls: bool,
}

/// Block that is being read.
#[derive(Debug)]
enum ReadBlock {
    Part {
        part: usize,
        kind: ReadBlockKind,
        is_empty: bool,
    },
    /// Text of a request for JSON, held back.
    HeldText,
    /// Block that the form takes whole, and the JSON text of its input.
    Whole {
        block: Map<String, Value>,
        input: String,
    },
    /// Second answer in JSON.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadBlockKind {
    Text,
    Reasoning,
    Call,
    /// Call of the tool `json`, whose input is the text of the answer.
    SchemaAnswer,
}

impl AnthropicStreamReader {
    /// Reads the answer to a request as it was written.
    pub fn with_options(options: AnthropicReadOptions) -> AnthropicStreamReader {
        AnthropicStreamReader { options, ..AnthropicStreamReader::default() }
    }

    /// Reads one event. Events of unknown types are ignored, as the API demands of its clients.
    pub fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        if self.is_over || event.data.trim().is_empty() {
            return Ok(Vec::new());
        }
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|why| DialectError::Stream(format!("the data of an event is no JSON: {why}")))?;
        let mut fields = object(&data, "event")?;
        let kind = match take_text(&mut fields, "event", "type")? {
            Some(kind) => kind,
            None => event.event.clone().unwrap_or_default(),
        };
        let mut events = Vec::new();
        match kind.as_str() {
            "message_start" => self.start(&fields, &mut events)?,
            "content_block_start" => self.start_block(&fields, &mut events)?,
            "content_block_delta" => self.read_delta(&fields, &mut events)?,
            "content_block_stop" => {
                let index = index_of(&fields, &kind)?;
                let block = self.blocks.remove(&index).ok_or_else(|| unknown_block(index))?;
                self.end_block(block, &mut events)?;
            }
            "message_delta" => self.read_message_delta(&mut fields, &mut events)?,
            "message_stop" => {
                events = self.finish();
                events.push(StreamEvent::End);
            }
            "error" => {
                self.is_over = true;
                events.push(StreamEvent::Error(read_error(UNKNOWN_ERROR_STATUS, &data)));
            }
            _ => {}
        }
        Ok(events)
    }

    /// Ends parts that are still open.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if !self.is_over {
            self.is_over = true;
            for block in std::mem::take(&mut self.blocks).into_values() {
                if let ReadBlock::Part { part, .. } = block {
                    events.push(StreamEvent::PartEnd { choice: 0, part });
                }
            }
            self.release_texts(&mut events);
        }
        events
    }

    fn start(&mut self, fields: &Map<String, Value>, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        if std::mem::replace(&mut self.is_started, true) {
            return Err(DialectError::Stream("a second message_start".to_owned()));
        }
        let path = "message_start.message";
        let mut message = object(fields.get("message").unwrap_or(&Value::Null), path)?;
        let id = take_text(&mut message, path, "id")?.unwrap_or_default();
        let model = take_text(&mut message, path, "model")?.unwrap_or_default();
        let usage = take(&mut message, "usage");
        let content = take(&mut message, "content");
        for name in ["type", "role", "stop_reason", "stop_sequence"] {
            message.shift_remove(name);
        }
        let extra = Extra::marked(Dialect::Anthropic, message);
        events.push(StreamEvent::Start { id, model, created: None, extra });
        self.read_usage_so_far(usage, events)?;
        let parts = content.map(|content| read_content(&content, "message_start.message.content")).transpose()?;
        for part in parts.unwrap_or_default() {
            self.push_whole(part, events);
        }
        Ok(())
    }

    fn push_whole(&mut self, part: ContentPart, events: &mut Vec<StreamEvent>) {
        let number = self.open_part(PartStart::Whole(Box::new(part)), events);
        events.push(StreamEvent::PartEnd { choice: 0, part: number });
    }

    fn open_part(&mut self, start: PartStart, events: &mut Vec<StreamEvent>) -> usize {
        let part = self.next_part;
        self.next_part += 1;
        events.push(StreamEvent::PartStart { choice: 0, part, start });
        part
    }

    fn read_usage_so_far(&mut self, usage: Option<Value>, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let Some(usage) = usage else { return Ok(()) };
        let usage = object(&usage, "usage")?;
        let known = usage.into_iter().filter(|(name, value)| !value.is_null() || !self.usage.contains_key(name));
        self.usage.extend(known.collect::<Vec<_>>());
        events.push(StreamEvent::Usage(read_usage(&Value::Object(self.usage.clone()), "usage")?));
        Ok(())
    }

    fn start_block(&mut self, fields: &Map<String, Value>, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let path = "content_block_start";
        let index = index_of(fields, path)?;
        check_count(self.blocks_started + 1, "blocks of content", BLOCKS_MAX)?;
        self.blocks_started += 1;
        let path = "content_block_start.content_block";
        let whole = object(fields.get("content_block").unwrap_or(&Value::Null), path)?;
        let mut block = whole.clone();
        let read = match require_text(&mut block, path, "type")?.as_str() {
            "text" => self.start_text(block, path, events)?,
            "thinking" => {
                let part = self.open_part(PartStart::Reasoning, events);
                let text = take_text(&mut block, path, "thinking")?.unwrap_or_default();
                let signature = take_text(&mut block, path, "signature")?.unwrap_or_default();
                push_extra(part, block, events);
                push_text(part, PartDelta::Text(text), events);
                push_text(part, PartDelta::Signature(signature), events);
                ReadBlock::Part { part, kind: ReadBlockKind::Reasoning, is_empty: false }
            }
            "redacted_thinking" => {
                let part = self.open_part(PartStart::Reasoning, events);
                let encrypted = require_text(&mut block, path, "data")?;
                push_extra(part, block, events);
                push_text(part, PartDelta::Encrypted(encrypted), events);
                ReadBlock::Part { part, kind: ReadBlockKind::Reasoning, is_empty: false }
            }
            "tool_use" => self.start_call(block, path, events)?,
            _ => ReadBlock::Whole { block: whole, input: String::new() },
        };
        match self.blocks.insert(index, read) {
            None => Ok(()),
            Some(_) => Err(DialectError::Stream(format!("block {index} starts twice"))),
        }
    }

    fn start_text(
        &mut self,
        mut block: Map<String, Value>,
        path: &str,
        events: &mut Vec<StreamEvent>,
    ) -> Result<ReadBlock, DialectError> {
        let text = take_text(&mut block, path, "text")?.unwrap_or_default();
        if self.options.schema_tool {
            self.hold_text(text)?;
            return Ok(ReadBlock::HeldText);
        }
        let part = self.open_part(PartStart::Text, events);
        push_extra(part, block, events);
        push_text(part, PartDelta::Text(text), events);
        Ok(ReadBlock::Part { part, kind: ReadBlockKind::Text, is_empty: false })
    }

    fn start_call(
        &mut self,
        mut block: Map<String, Value>,
        path: &str,
        events: &mut Vec<StreamEvent>,
    ) -> Result<ReadBlock, DialectError> {
        let id = require_text(&mut block, path, "id")?;
        let name = require_text(&mut block, path, "name")?;
        // a server that has the whole input already may send no deltas
        let is_said = |input: &Value| input.as_object().is_none_or(|input| !input.is_empty());
        let input = take(&mut block, "input").filter(is_said).map(|input| input.to_string());
        let is_empty = input.is_none();
        let input = input.unwrap_or_default();
        if self.options.schema_tool && name == SCHEMA_TOOL {
            if std::mem::replace(&mut self.has_schema_answer, true) {
                return Ok(ReadBlock::Ignored);
            }
            self.held_texts.clear();
            let part = self.open_part(PartStart::Text, events);
            push_text(part, PartDelta::Text(input), events);
            return Ok(ReadBlock::Part { part, kind: ReadBlockKind::SchemaAnswer, is_empty });
        }
        self.has_calls = true;
        let part = self.open_part(PartStart::ToolCall { id, name }, events);
        push_extra(part, block, events);
        push_text(part, PartDelta::Arguments(input), events);
        Ok(ReadBlock::Part { part, kind: ReadBlockKind::Call, is_empty })
    }

    fn read_delta(&mut self, fields: &Map<String, Value>, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let index = index_of(fields, "content_block_delta")?;
        let path = "content_block_delta.delta";
        let mut delta = object(fields.get("delta").unwrap_or(&Value::Null), path)?;
        let kind = require_text(&mut delta, path, "type")?;
        let block = self.blocks.get_mut(&index).ok_or_else(|| unknown_block(index))?;
        match (block, kind.as_str()) {
            (
                ReadBlock::Part { part, kind: kind @ (ReadBlockKind::Call | ReadBlockKind::SchemaAnswer), is_empty },
                "input_json_delta",
            ) => {
                let json = require_text(&mut delta, path, "partial_json")?;
                *is_empty &= json.is_empty();
                let is_text = *kind == ReadBlockKind::SchemaAnswer;
                push_text(*part, if is_text { PartDelta::Text(json) } else { PartDelta::Arguments(json) }, events);
            }
            (ReadBlock::Part { part, kind: ReadBlockKind::Text, .. }, "text_delta") => {
                push_text(*part, PartDelta::Text(require_text(&mut delta, path, "text")?), events);
            }
            (ReadBlock::Part { part, kind: ReadBlockKind::Reasoning, .. }, "thinking_delta") => {
                push_text(*part, PartDelta::Text(require_text(&mut delta, path, "thinking")?), events);
            }
            (ReadBlock::Part { part, kind: ReadBlockKind::Reasoning, .. }, "signature_delta") => {
                push_text(*part, PartDelta::Signature(require_text(&mut delta, path, "signature")?), events);
            }
            (ReadBlock::Part { part, kind: ReadBlockKind::Text, .. }, "citations_delta") => {
                let citations = take(&mut delta, "citation").into_iter().collect::<Vec<_>>();
                push_extra(*part, Map::from_iter([("citations".to_owned(), citations.into())]), events);
            }
            (ReadBlock::HeldText, "text_delta") => {
                let text = require_text(&mut delta, path, "text")?;
                self.hold_text(text)?;
            }
            (ReadBlock::Whole { block, input }, _) => {
                let added = add_to_whole(block, input, delta);
                self.hold(added)?;
            }
            // the API may add kinds of deltas
            (ReadBlock::Part { .. } | ReadBlock::HeldText | ReadBlock::Ignored, _) => {}
        }
        Ok(())
    }

    fn hold_text(&mut self, text: String) -> Result<(), DialectError> {
        if text.is_empty() || self.has_schema_answer {
            return Ok(());
        }
        self.hold(text.len())?;
        self.held_texts.push(PartDelta::Text(text));
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Result<(), DialectError> {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        check_count(self.held_bytes, "bytes that are kept back", HELD_BYTES_MAX)
    }

    fn end_block(&mut self, block: ReadBlock, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        match block {
            ReadBlock::Part { part, kind, is_empty } => {
                let no_input = || "{}".to_owned();
                match kind {
                    ReadBlockKind::Call if is_empty => push_text(part, PartDelta::Arguments(no_input()), events),
                    ReadBlockKind::SchemaAnswer if is_empty => push_text(part, PartDelta::Text(no_input()), events),
                    _ => {}
                }
                events.push(StreamEvent::PartEnd { choice: 0, part });
            }
            ReadBlock::Whole { mut block, input } => {
                let value = (!input.is_empty()).then(|| serde_json::from_str(&input).unwrap_or(Value::String(input)));
                put(&mut block, "input", value);
                let part = read_block(&Value::Object(block), "content_block")?;
                self.push_whole(part, events);
            }
            ReadBlock::HeldText | ReadBlock::Ignored => {}
        }
        Ok(())
    }

    fn read_message_delta(
        &mut self,
        fields: &mut Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), DialectError> {
        let path = "message_delta.delta";
        let mut delta = match take(fields, "delta") {
            None => Map::new(),
            Some(delta) => object(&delta, path)?,
        };
        let sequence = take_text(&mut delta, path, "stop_sequence")?;
        if let Some(reason) = take_text(&mut delta, path, "stop_reason")? {
            self.release_texts(events);
            let reason = match read_stop_reason(reason, sequence) {
                FinishReason::ToolCalls if self.has_schema_answer && !self.has_calls => FinishReason::Stop,
                reason => reason,
            };
            events.push(StreamEvent::Finish { choice: 0, reason });
        }
        self.read_usage_so_far(take(fields, "usage"), events)
    }

    /// Sends texts that turned out to be the answer.
    fn release_texts(&mut self, events: &mut Vec<StreamEvent>) {
        if self.held_texts.is_empty() {
            return;
        }
        let deltas = std::mem::take(&mut self.held_texts);
        let part = self.open_part(PartStart::Text, events);
        events.extend(deltas.into_iter().map(|delta| StreamEvent::PartDelta { choice: 0, part, delta }));
        events.push(StreamEvent::PartEnd { choice: 0, part });
    }
}

/// Adds a delta to a block that the form takes whole, and returns how many bytes that are. Texts are appended.
fn add_to_whole(block: &mut Map<String, Value>, input: &mut String, delta: Map<String, Value>) -> usize {
    let mut added = 0;
    for (name, value) in delta {
        match (block.get_mut(&name), value) {
            (_, Value::String(json)) if name == "partial_json" => {
                added += json.len();
                input.push_str(&json);
            }
            (Some(Value::String(text)), Value::String(more)) => {
                added += more.len();
                text.push_str(&more);
            }
            (_, value) => {
                added += value.to_string().len();
                block.insert(name, value);
            }
        }
    }
    added
}

fn index_of(fields: &Map<String, Value>, kind: &str) -> Result<u64, DialectError> {
    let index = fields.get("index").and_then(Value::as_u64);
    index.ok_or_else(|| DialectError::malformed(format!("{kind}.index"), "a whole number from 0"))
}

fn unknown_block(index: u64) -> DialectError {
    DialectError::Stream(format!("block {index} has not started"))
}

/// Adds a piece of text. An empty one says nothing.
fn push_text(part: usize, delta: PartDelta, events: &mut Vec<StreamEvent>) {
    let is_empty = match &delta {
        PartDelta::Text(text) | PartDelta::Arguments(text) | PartDelta::Signature(text) => text.is_empty(),
        PartDelta::Encrypted(_) | PartDelta::Foreign(_) => false,
    };
    if !is_empty {
        events.push(StreamEvent::PartDelta { choice: 0, part, delta });
    }
}

fn push_extra(part: usize, fields: Map<String, Value>, events: &mut Vec<StreamEvent>) {
    if !fields.is_empty() {
        events.push(StreamEvent::PartDelta { choice: 0, part, delta: PartDelta::Foreign(extra(fields)) });
    }
}
