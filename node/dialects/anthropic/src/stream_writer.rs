//! Events of the form to events of the API's streams.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};

use super::answer_blocks::{answer_blocks, call_id};
use super::error::{error_status, write_error};
use super::fields::{put, put_back, typed};
use super::response::put_stop_reason;
use super::usage::{unknown_usage, write_usage};
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, ModelError, ModelErrorKind, PartDelta, PartStart, StreamEvent, TokenUsage,
};
use assay_node_dialects::{Dialect, SseEvent};

/// Upper bound of events that wait for the end of an earlier part, because blocks do not overlap here.
pub const WAITING_EVENTS_MAX: usize = 1 << 16;

/// Writer of one stream.
///
/// `message_start` waits for the event after the start, which may be the usage. A part that starts while another one is
/// open waits for its end.
#[derive(Debug, Default)]
pub struct AnthropicStreamWriter {
    answer_id: String,
    is_own: bool,
    message: Option<Map<String, Value>>,
    is_started: bool,
    is_over: bool,
    usage: Option<TokenUsage>,
    finish: Option<FinishReason>,
    live: Option<LiveBlock>,
    waiting: BTreeMap<usize, VecDeque<WaitingBlockEvent>>,
    waiting_events: usize,
    blocks: usize,
}

/// Part that is being written.
#[derive(Debug)]
struct LiveBlock {
    part: usize,
    start: PartStart,
    /// Other fields of the block, known before it is sent.
    extra: Map<String, Value>,
    /// Index of the block, if it was sent.
    index: Option<usize>,
    encrypted: String,
}

/// Event of a part that waits for the end of another.
#[derive(Debug)]
enum WaitingBlockEvent {
    Start(PartStart),
    Delta(PartDelta),
    End,
}

impl AnthropicStreamWriter {
    pub fn new() -> AnthropicStreamWriter {
        AnthropicStreamWriter::default()
    }

    /// Writes one event. Only the first choice is written, as answers have no others here.
    pub fn write(&mut self, event: &StreamEvent) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if self.is_over {
            return events;
        }
        match event {
            StreamEvent::Start { id, model, extra, .. } => self.start(id, model, extra),
            StreamEvent::Usage(usage) => {
                self.usage = Some(usage.clone());
                self.send_start(&mut events);
            }
            StreamEvent::Finish { choice: 0, reason } => self.finish = Some(reason.clone()),
            StreamEvent::PartStart { choice: 0, part, start } => {
                self.take(*part, WaitingBlockEvent::Start(start.clone()), &mut events);
            }
            StreamEvent::PartDelta { choice: 0, part, delta } => {
                self.take(*part, WaitingBlockEvent::Delta(delta.clone()), &mut events);
            }
            StreamEvent::PartEnd { choice: 0, part } => self.take(*part, WaitingBlockEvent::End, &mut events),
            StreamEvent::Error(error) => self.fail(error, &mut events),
            StreamEvent::End => self.end(&mut events),
            StreamEvent::PartStart { .. }
            | StreamEvent::PartDelta { .. }
            | StreamEvent::PartEnd { .. }
            | StreamEvent::Finish { .. }
            | StreamEvent::Logprobs { .. } => {}
        }
        events
    }

    fn start(&mut self, id: &str, model: &str, extra: &Extra) {
        if self.is_started || self.message.is_some() {
            return;
        }
        self.answer_id = id.to_owned();
        self.is_own = extra.dialect() == Some(Dialect::Anthropic);
        let mut message = Map::from_iter([("id".to_owned(), Value::from(id))]);
        message.extend(typed("message"));
        message.insert("role".into(), "assistant".into());
        message.insert("model".into(), model.into());
        message.insert("content".into(), Value::Array(Vec::new()));
        put_stop_reason(&mut message, None, self.is_own);
        put_back(&mut message, extra);
        self.message = Some(message);
    }

    fn send_start(&mut self, events: &mut Vec<SseEvent>) {
        if self.is_started {
            return;
        }
        self.start("", "", &Extra::default());
        self.is_started = true;
        let Some(mut message) = self.message.take() else { return };
        message.insert("usage".into(), self.usage.as_ref().map_or_else(unknown_usage, write_usage).into());
        let mut event = typed("message_start");
        event.insert("message".into(), message.into());
        events.push(sse("message_start", event));
    }

    /// Writes an event of the part whose turn it is, or keeps it.
    fn take(&mut self, part: usize, event: WaitingBlockEvent, events: &mut Vec<SseEvent>) {
        self.send_start(events);
        let is_start = matches!(event, WaitingBlockEvent::Start(_));
        if self.live.as_ref().is_some_and(|live| live.part == part) || (self.live.is_none() && is_start) {
            self.write_part(part, event, events);
            self.write_waiting(events);
            return;
        }
        if is_start {
            self.waiting.entry(part).or_default();
        }
        let Some(queue) = self.waiting.get_mut(&part) else { return };
        queue.push_back(event);
        self.waiting_events += 1;
        if self.waiting_events > WAITING_EVENTS_MAX {
            let message = format!("more than {WAITING_EVENTS_MAX} events of parts that overlap");
            let error =
                ModelError { kind: ModelErrorKind::Server, message, code: None, param: None, extra: Extra::default() };
            self.fail(&error, events);
        }
    }

    /// Writes parts that waited, until one is not complete.
    fn write_waiting(&mut self, events: &mut Vec<SseEvent>) {
        while self.live.is_none() {
            let Some((part, queue)) = self.waiting.pop_first() else { return };
            self.waiting_events = self.waiting_events.saturating_sub(queue.len());
            queue.into_iter().for_each(|event| self.write_part(part, event, events));
        }
    }

    fn write_part(&mut self, part: usize, event: WaitingBlockEvent, events: &mut Vec<SseEvent>) {
        match event {
            WaitingBlockEvent::Start(PartStart::Whole(whole)) => self.write_whole(part, &whole, events),
            WaitingBlockEvent::Start(start) if self.live.is_none() => {
                self.live = Some(LiveBlock { part, start, extra: Map::new(), index: None, encrypted: String::new() });
            }
            WaitingBlockEvent::Start(_) => {}
            WaitingBlockEvent::Delta(delta) => self.write_delta(delta, events),
            WaitingBlockEvent::End => self.end_block(events),
        }
    }

    /// Writes a part that came whole. Its end, which follows, ends the block.
    fn write_whole(&mut self, part: usize, whole: &ContentPart, events: &mut Vec<SseEvent>) {
        let (start, deltas) = match whole {
            ContentPart::Text(text) | ContentPart::Refusal(text) => {
                (PartStart::Text, vec![PartDelta::Foreign(text.extra.clone()), PartDelta::Text(text.text.clone())])
            }
            ContentPart::ToolCall(call) => (
                PartStart::ToolCall { id: call.id.clone(), name: call.name.clone() },
                vec![PartDelta::Foreign(call.extra.clone()), PartDelta::Arguments(call.arguments.clone())],
            ),
            ContentPart::Reasoning(reasoning) => {
                let mut deltas = vec![PartDelta::Foreign(reasoning.extra.clone())];
                deltas.extend((!reasoning.text.is_empty()).then(|| PartDelta::Text(reasoning.text.clone())));
                deltas.extend(reasoning.signature.clone().map(PartDelta::Signature));
                deltas.extend(reasoning.encrypted.clone().map(PartDelta::Encrypted));
                (PartStart::Reasoning, deltas)
            }
            other => {
                for block in answer_blocks(other, &self.answer_id, part) {
                    let index = self.send_block(block, events);
                    events.push(stop(index));
                }
                // the end of a part without a block to come writes nothing
                let start = PartStart::Whole(Box::new(other.clone()));
                (start, Vec::new())
            }
        };
        self.live = Some(LiveBlock { part, start, extra: Map::new(), index: None, encrypted: String::new() });
        deltas.into_iter().for_each(|delta| self.write_delta(delta, events));
    }

    fn write_delta(&mut self, delta: PartDelta, events: &mut Vec<SseEvent>) {
        let Some(live) = &mut self.live else { return };
        let is_reasoning = live.start == PartStart::Reasoning;
        match delta {
            PartDelta::Text(text) => {
                let (kind, name) = if is_reasoning { ("thinking_delta", "thinking") } else { ("text_delta", "text") };
                self.send_delta(kind, name, text.into(), events);
            }
            PartDelta::Arguments(json) => self.send_delta("input_json_delta", "partial_json", json.into(), events),
            PartDelta::Signature(signature) if is_reasoning => {
                self.send_delta("signature_delta", "signature", signature.into(), events);
            }
            PartDelta::Encrypted(encrypted) if is_reasoning => live.encrypted.push_str(&encrypted),
            // the API has no signatures of texts and calls
            PartDelta::Signature(_) | PartDelta::Encrypted(_) => {}
            PartDelta::Foreign(extra) => {
                let Some(fields) = extra.for_dialect(Dialect::Anthropic) else { return };
                for (name, value) in fields.clone() {
                    self.write_extra(name, value, events);
                }
            }
        }
    }

    /// Writes a field of this API only: citations one by one, others with the start of the block.
    fn write_extra(&mut self, name: String, value: Value, events: &mut Vec<SseEvent>) {
        let Some(live) = &mut self.live else { return };
        match value {
            Value::Array(citations) if name == "citations" && !citations.is_empty() => {
                for citation in citations {
                    self.send_delta("citations_delta", "citation", citation, events);
                }
            }
            value if live.index.is_none() => {
                live.extra.insert(name, value);
            }
            _ => {}
        }
    }

    fn send_delta(&mut self, kind: &'static str, name: &str, value: Value, events: &mut Vec<SseEvent>) {
        let Some(index) = self.open_block(events) else { return };
        let mut delta = typed(kind);
        delta.insert(name.to_owned(), value);
        let mut event = numbered("content_block_delta", index);
        event.insert("delta".into(), delta.into());
        events.push(sse("content_block_delta", event));
    }

    /// Sends the start of the block unless that was done, and returns its index.
    fn open_block(&mut self, events: &mut Vec<SseEvent>) -> Option<usize> {
        let live = self.live.as_mut()?;
        if live.index.is_some() {
            return live.index;
        }
        let mut block = match &live.start {
            PartStart::Text | PartStart::Refusal => {
                let mut block = typed("text");
                block.insert("text".into(), "".into());
                block
            }
            PartStart::Reasoning => {
                let mut block = typed("thinking");
                block.insert("thinking".into(), "".into());
                block.insert("signature".into(), "".into());
                block
            }
            PartStart::ToolCall { id, name } => {
                let mut block = typed("tool_use");
                block.insert("id".into(), call_id(id, &self.answer_id, live.part).into());
                block.insert("name".into(), name.clone().into());
                block.insert("input".into(), Value::Object(Map::new()));
                block
            }
            PartStart::Whole(_) => return None,
        };
        block.extend(std::mem::take(&mut live.extra));
        let index = self.send_block(block.into(), events);
        self.live.as_mut()?.index = Some(index);
        Some(index)
    }

    fn send_block(&mut self, block: Value, events: &mut Vec<SseEvent>) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        let mut event = numbered("content_block_start", index);
        event.insert("content_block".into(), block);
        events.push(sse("content_block_start", event));
        index
    }

    /// Ends the block. Encrypted reasoning is a block of its own.
    fn end_block(&mut self, events: &mut Vec<SseEvent>) {
        let Some(live) = &mut self.live else { return };
        let encrypted = std::mem::take(&mut live.encrypted);
        if encrypted.is_empty() || live.index.is_some() {
            let index = self.open_block(events);
            events.extend(index.map(stop));
        }
        let extra = self.live.take().map(|live| live.extra).unwrap_or_default();
        if !encrypted.is_empty() {
            let mut block = typed("redacted_thinking");
            block.insert("data".into(), encrypted.into());
            block.extend(extra);
            let index = self.send_block(block.into(), events);
            events.push(stop(index));
        }
    }

    fn end(&mut self, events: &mut Vec<SseEvent>) {
        self.send_start(events);
        while self.live.is_some() || !self.waiting.is_empty() {
            self.end_block(events);
            self.write_waiting(events);
        }
        let mut delta = Map::new();
        put_stop_reason(&mut delta, self.finish.as_ref(), self.is_own);
        let mut event = typed("message_delta");
        put(&mut event, "delta", Some(delta));
        put(&mut event, "usage", Some(self.usage.as_ref().map_or_else(unknown_usage, write_usage)));
        events.push(sse("message_delta", event));
        events.push(sse("message_stop", typed("message_stop")));
        self.is_over = true;
    }

    fn fail(&mut self, error: &ModelError, events: &mut Vec<SseEvent>) {
        let data = write_error(error_status(error), error);
        events.push(SseEvent { event: Some("error".to_owned()), data: data.to_string() });
        self.is_over = true;
    }
}

fn numbered(kind: &str, index: usize) -> Map<String, Value> {
    let mut event = typed(kind);
    event.insert("index".into(), index.into());
    event
}

fn stop(index: usize) -> SseEvent {
    sse("content_block_stop", numbered("content_block_stop", index))
}

fn sse(kind: &str, event: Map<String, Value>) -> SseEvent {
    SseEvent { event: Some(kind.to_owned()), data: Value::Object(event).to_string() }
}
