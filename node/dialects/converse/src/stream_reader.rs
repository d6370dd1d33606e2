//! Events of the API's streams to events of the form.

use std::collections::BTreeMap;

use serde_json::Value;

use super::BLOCKS_MAX;
use super::error::{UNKNOWN_ERROR_STATUS, read_error};
use super::event_stream::EXCEPTION_EVENT;
use super::response::{ConverseAnswer, read_stop_reason};
use super::usage::read_usage;
use assay_node_dialects::form::{Extra, PartDelta, PartStart, StreamEvent};
use assay_node_dialects::{DialectError, SseEvent};

/// Reader of one stream. Its events come from messages, see [`super::EventStreamMessage::event`].
#[derive(Debug, Default)]
pub struct ConverseStreamReader {
    answer: ConverseAnswer,
    is_started: bool,
    has_finished: bool,
    is_over: bool,
    has_calls: bool,
    /// Blocks that are not complete, by their index.
    blocks: BTreeMap<u64, OpenBlock>,
    next_part: usize,
}

/// Part that is being read.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    part: usize,
    kind: OpenBlockKind,
    is_empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlockKind {
    Text,
    Reasoning,
    Call,
    /// Block that the form does not have.
    Skipped,
}

impl ConverseStreamReader {
    pub fn new(answer: ConverseAnswer) -> ConverseStreamReader {
        ConverseStreamReader { answer, ..ConverseStreamReader::default() }
    }

    /// Reads one event. Events of unknown types are ignored.
    pub fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        let mut events = Vec::new();
        let kind = event.event.as_deref().unwrap_or_default();
        if self.is_over || kind == "initial-response" {
            return Ok(events);
        }
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|why| DialectError::Stream(format!("the data of an event is no JSON: {why}")))?;
        match kind {
            "messageStart" => self.start(&mut events),
            "contentBlockStart" => self.start_block(&data, &mut events)?,
            "contentBlockDelta" => self.read_delta(&data, &mut events)?,
            "contentBlockStop" => {
                let index = index_of(&data, kind)?;
                if let Some(block) = self.blocks.remove(&index) {
                    end_block(block, &mut events);
                }
            }
            "messageStop" => {
                self.end_blocks(&mut events);
                self.start(&mut events);
                self.has_finished = true;
                let reason = data["stopReason"].as_str().unwrap_or_default();
                events.push(StreamEvent::Finish { choice: 0, reason: read_stop_reason(reason, self.has_calls) });
            }
            "metadata" => {
                let usage = data.get("usage").filter(|usage| usage.is_object());
                events.extend(usage.map(|usage| StreamEvent::Usage(read_usage(usage))));
                // nothing comes after it
                if self.has_finished {
                    self.is_over = true;
                    events.push(StreamEvent::End);
                }
            }
            EXCEPTION_EVENT => {
                self.is_over = true;
                events.push(StreamEvent::Error(read_error(UNKNOWN_ERROR_STATUS, &data)));
            }
            _ => {}
        }
        Ok(events)
    }

    /// Ends the input. The answer is whole if it said why it ended, even if its usage is missing.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if !self.is_over {
            self.is_over = true;
            self.end_blocks(&mut events);
            if self.has_finished {
                events.push(StreamEvent::End);
            }
        }
        events
    }

    fn start(&mut self, events: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.is_started, true) {
            let ConverseAnswer { id, model } = self.answer.clone();
            events.push(StreamEvent::Start { id, model, created: None, extra: Extra::default() });
        }
    }

    fn start_block(&mut self, data: &Value, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let index = index_of(data, "contentBlockStart")?;
        let start = &data["start"];
        if self.blocks.contains_key(&index) {
            return Err(DialectError::Stream(format!("block {index} starts twice")));
        }
        if let Some(call) = start.get("toolUse").filter(|call| call.get("type").is_none()) {
            let required = |name: &str| {
                let text = call.get(name).and_then(Value::as_str).map(str::to_owned);
                let path = || format!("contentBlockStart.start.toolUse.{name}");
                text.ok_or_else(|| DialectError::malformed(path(), "a string"))
            };
            let start = PartStart::ToolCall { id: required("toolUseId")?, name: required("name")? };
            self.has_calls = true;
            self.open(index, OpenBlockKind::Call, Some(start), events)?;
        } else if start.as_object().is_some_and(|start| !start.is_empty() && !start.contains_key("text")) {
            self.open(index, OpenBlockKind::Skipped, None, events)?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        index: u64,
        kind: OpenBlockKind,
        start: Option<PartStart>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<OpenBlock, DialectError> {
        self.start(events);
        if self.next_part >= BLOCKS_MAX || self.blocks.len() >= BLOCKS_MAX {
            return Err(DialectError::Stream(format!("the answer has more than {BLOCKS_MAX} blocks")));
        }
        let block = OpenBlock { part: self.next_part, kind, is_empty: true };
        if let Some(start) = start {
            self.next_part += 1;
            events.push(StreamEvent::PartStart { choice: 0, part: block.part, start });
        }
        self.blocks.insert(index, block);
        Ok(block)
    }

    fn read_delta(&mut self, data: &Value, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let index = index_of(data, "contentBlockDelta")?;
        let delta = data["delta"].as_object();
        let (name, value) = match delta.and_then(|delta| delta.iter().next()) {
            Some((name, value)) => (name.as_str(), value),
            None => return Err(DialectError::malformed("contentBlockDelta.delta", "an object with one member")),
        };
        match name {
            "text" => {
                let deltas = [value.as_str().map(|text| PartDelta::Text(text.to_owned()))];
                self.add(index, OpenBlockKind::Text, deltas, events)
            }
            "reasoningContent" => {
                let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
                let deltas = [
                    text("text").map(PartDelta::Text),
                    text("signature").map(PartDelta::Signature),
                    text("redactedContent").map(PartDelta::Encrypted),
                ];
                self.add(index, OpenBlockKind::Reasoning, deltas, events)
            }
            "toolUse" => {
                let input = value.get("input").and_then(Value::as_str);
                let Some(block) = self.blocks.get_mut(&index) else {
                    return Err(DialectError::Stream(format!("block {index} has not started")));
                };
                if let Some(input) = input.filter(|input| block.kind == OpenBlockKind::Call && !input.is_empty()) {
                    block.is_empty = false;
                    let delta = PartDelta::Arguments(input.to_owned());
                    events.push(StreamEvent::PartDelta { choice: 0, part: block.part, delta });
                }
                Ok(())
            }
            // sources of citations, and what the API may add
            _ => Ok(()),
        }
    }

    /// Adds to a block, which starts with its first delta. One of another kind ends it.
    fn add(
        &mut self,
        index: u64,
        kind: OpenBlockKind,
        deltas: impl IntoIterator<Item = Option<PartDelta>>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), DialectError> {
        let block = match self.blocks.get(&index) {
            Some(block) if block.kind == kind || block.kind == OpenBlockKind::Skipped => *block,
            other => {
                if let Some(block) = other {
                    end_block(*block, events);
                }
                let start = if kind == OpenBlockKind::Text { PartStart::Text } else { PartStart::Reasoning };
                self.open(index, kind, Some(start), events)?
            }
        };
        let is_said = |delta: &PartDelta| match delta {
            PartDelta::Text(text) | PartDelta::Signature(text) | PartDelta::Encrypted(text) => !text.is_empty(),
            PartDelta::Arguments(_) | PartDelta::Foreign(_) => true,
        };
        if block.kind == kind {
            let deltas = deltas.into_iter().flatten().filter(is_said);
            events.extend(deltas.map(|delta| StreamEvent::PartDelta { choice: 0, part: block.part, delta }));
        }
        Ok(())
    }

    fn end_blocks(&mut self, events: &mut Vec<StreamEvent>) {
        std::mem::take(&mut self.blocks).into_values().for_each(|block| end_block(block, events));
    }
}

fn end_block(block: OpenBlock, events: &mut Vec<StreamEvent>) {
    let OpenBlock { part, kind, is_empty } = block;
    if kind == OpenBlockKind::Call && is_empty {
        events.push(StreamEvent::PartDelta { choice: 0, part, delta: PartDelta::Arguments("{}".to_owned()) });
    }
    if kind != OpenBlockKind::Skipped {
        events.push(StreamEvent::PartEnd { choice: 0, part });
    }
}

fn index_of(data: &Value, kind: &str) -> Result<u64, DialectError> {
    let index = data.get("contentBlockIndex").and_then(Value::as_u64);
    index.ok_or_else(|| DialectError::malformed(format!("{kind}.contentBlockIndex"), "a whole number from 0"))
}
