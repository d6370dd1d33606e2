//! Streams of chat completions.
//!
//! Parts follow each other: one ends where another begins. The end of a choice is told when its last chunk is sure to
//! have come, since some servers repeat the reason in every chunk.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::errors::read_stream_error;
use super::fields::{ChatFields, take_signature};
use super::response::{CHAT_CHOICES_MAX, call_id, finish_of};
use super::usage::read_usage;
use super::{messages, parts, reasoning, tools};
use assay_node_dialects::form::{ContentPart, Extra, PartDelta, PartStart, StreamEvent};
use assay_node_dialects::{Dialect, DialectError, SseEvent};

/// Upper bound of the tool calls of a choice of a stream.
pub const CHAT_STREAM_CALLS_MAX: usize = 1_024;

/// Upper bound of the input of a call that is no function's, which is held until it is whole.
const OTHER_CALL_BYTES_MAX: usize = 1 << 20;

/// Reader of a stream of chunks.
#[derive(Debug, Default)]
pub struct ChatStreamReader {
    id: String,
    is_started: bool,
    is_ended: bool,
    /// Members of chunks before the first one with a choice, such as Azure's filter results.
    early: Map<String, Value>,
    choices: BTreeMap<u64, ChatChoiceReader>,
}

#[derive(Debug, Default)]
struct ChatChoiceReader {
    parts: usize,
    open: Option<OpenChatPart>,
    calls: Vec<ChatCallReader>,
    /// Members of deltas that wait for a text to belong to.
    foreign: Map<String, Value>,
    finish: Option<(String, Option<String>)>,
    is_finished: bool,
}

#[derive(Debug)]
struct ChatCallReader {
    index: Option<u64>,
    id: String,
}

#[derive(Debug, PartialEq)]
enum OpenChatPart {
    Text,
    Refusal,
    Reasoning {
        is_signed: bool,
    },
    /// The last function that was called.
    Call,
    /// The last call of another type.
    OtherCall(Value),
}

/// Events of one choice that a chunk leads to.
struct ChatChoiceEvents<'a> {
    choice: u64,
    events: &'a mut Vec<StreamEvent>,
}

impl ChatStreamReader {
    /// Reads one event of the server.
    pub fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        let data = event.data.trim();
        let mut events = Vec::new();
        if self.is_ended || data.is_empty() {
            return Ok(events);
        }
        if data == "[DONE]" {
            self.start(ChatFields::of("", json!({}))?, &mut events)?;
            self.end_choices(&mut events);
            events.push(StreamEvent::End);
            self.is_ended = true;
            return Ok(events);
        }
        let chunk: Value =
            serde_json::from_str(data).map_err(|error| DialectError::Stream(format!("a chunk is no JSON: {error}")))?;
        let names_error = chunk.get("error").is_some_and(|error| !error.is_null());
        if names_error || chunk["object"] == "error" || event.event.as_deref() == Some("error") {
            self.is_ended = true;
            return Ok(vec![StreamEvent::Error(read_stream_error(&chunk))]);
        }
        let mut fields = ChatFields::of("", chunk)?;
        let choices = fields.list("choices")?.unwrap_or_default();
        let usage = fields.take("usage").as_ref().and_then(read_usage);
        if choices.is_empty() && usage.is_none() {
            if !self.is_started {
                self.early.extend(fields.into_map());
            }
            return Ok(events);
        }
        self.start(fields, &mut events)?;
        let is_usage_only = choices.is_empty();
        for (at, choice) in choices.into_iter().enumerate() {
            self.read_choice(choice, at, &mut events)?;
        }
        if is_usage_only {
            self.end_choices(&mut events);
        }
        events.extend(usage.map(StreamEvent::Usage));
        Ok(events)
    }

    /// Ends the input. Returns ends of choices that the server told, but no end of a stream that was cut.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.is_ended, true) {
            self.end_choices(&mut events);
        }
        events
    }

    fn start(&mut self, chunk: ChatFields, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        if std::mem::replace(&mut self.is_started, true) {
            return Ok(());
        }
        let mut all = std::mem::take(&mut self.early);
        // Azure's first chunk has empty names
        all.retain(|name, value| !(["id", "model"].contains(&name.as_str()) && value == ""));
        all.extend(chunk.into_map());
        let mut fields = ChatFields::of("", Value::Object(all))?;
        fields.take("object");
        self.id = fields.text("id")?.unwrap_or_default();
        let (model, created) = (fields.text("model")?.unwrap_or_default(), fields.count("created")?);
        let extra = fields.into_extra();
        events.push(StreamEvent::Start { id: self.id.clone(), model, created, extra });
        Ok(())
    }

    fn end_choices(&mut self, events: &mut Vec<StreamEvent>) {
        for (choice, reader) in &mut self.choices {
            let mut events = ChatChoiceEvents { choice: *choice, events };
            if let Some((word, stop)) = reader.finish.take()
                && !std::mem::replace(&mut reader.is_finished, true)
            {
                reader.close(&mut events);
                let reason = finish_of(&word, !reader.calls.is_empty(), stop);
                events.events.push(StreamEvent::Finish { choice: *choice, reason });
            }
        }
    }

    fn read_choice(&mut self, value: Value, at: usize, events: &mut Vec<StreamEvent>) -> Result<(), DialectError> {
        let mut fields = ChatFields::of(format!("choices[{at}]"), value)?;
        let choice = fields.count("index")?.unwrap_or(0);
        if !self.choices.contains_key(&choice) && self.choices.len() == CHAT_CHOICES_MAX {
            return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "choices", max: CHAT_CHOICES_MAX });
        }
        let reader = self.choices.entry(choice).or_default();
        let mut events = ChatChoiceEvents { choice, events };
        if let Some(logprobs) = fields.take("logprobs") {
            events.events.push(StreamEvent::Logprobs { choice, logprobs });
        }
        if let Some(delta) = fields.object("delta")?
            && !reader.is_finished
        {
            reader.read_delta(delta, &self.id, &mut events)?;
        }
        if let Some(word) = fields.text("finish_reason")?.filter(|word| !word.is_empty()) {
            let stop = fields.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
            reader.finish = Some((word, stop));
        }
        Ok(())
    }
}

impl ChatChoiceReader {
    fn read_delta(
        &mut self,
        mut delta: ChatFields,
        id: &str,
        events: &mut ChatChoiceEvents<'_>,
    ) -> Result<(), DialectError> {
        delta.take("role");
        self.read_reasoning(&mut delta, events)?;
        let path = delta.path_of("content");
        match delta.take("content") {
            None => {}
            Some(Value::String(text)) => self.text(OpenChatPart::Text, text, events),
            Some(content) => {
                for part in parts::read_content(content, &path)? {
                    self.whole(part, events);
                }
            }
        }
        if let Some(text) = delta.text("refusal")? {
            self.text(OpenChatPart::Refusal, text, events);
        }
        if let Some(images) = delta.list("images")? {
            for image in messages::read_images(images, &delta.path_of("images"))? {
                self.whole(image, events);
            }
        }
        if let Some(signature) = take_signature(&mut delta) {
            self.open(OpenChatPart::Text, events);
            self.delta(PartDelta::Signature(signature), events);
        }
        let path = delta.path_of("tool_calls");
        for (at, call) in delta.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
            self.read_call(ChatFields::of(format!("{path}[{at}]"), call)?, id, events)?;
        }
        if let Some(mut call) = delta.object("function_call")? {
            let (name, arguments) = (call.text("name")?, tools::take_arguments(&mut call)?);
            if self.calls.is_empty() {
                self.start_call(None, call_id(id, events.choice, 0), name.unwrap_or_default(), events)?;
            }
            self.arguments(arguments, events);
        }
        self.foreign.extend(delta.into_map().into_iter().filter(|(_, value)| !is_empty(value)));
        let is_text = matches!(self.open, Some(OpenChatPart::Text | OpenChatPart::Refusal));
        if is_text && !self.foreign.is_empty() {
            let fields = std::mem::take(&mut self.foreign);
            self.delta(PartDelta::Foreign(Extra::of(Dialect::Chat, fields)), events);
        }
        Ok(())
    }

    /// Reads reasoning in any of its spellings. Some servers send the same text under both names.
    fn read_reasoning(
        &mut self,
        delta: &mut ChatFields,
        events: &mut ChatChoiceEvents<'_>,
    ) -> Result<(), DialectError> {
        let old = delta.take_text("reasoning_content").unwrap_or_default();
        let new = match delta.get("reasoning") {
            Some(Value::Array(_) | Value::Object(_)) => delta.take("reasoning").unwrap_or_default(),
            _ => Value::String(delta.take_text("reasoning").unwrap_or_default()),
        };
        let entries = match new {
            Value::Array(entries) => entries,
            Value::String(new) => vec![Value::String(if new.is_empty() { old } else { new })],
            entry => vec![entry],
        };
        for entry in entries {
            if let Value::String(text) = entry {
                self.thought(text, events);
                continue;
            }
            let mut entry = ChatFields::of(delta.path_of("reasoning"), entry)?;
            self.thought(entry.text("content")?.unwrap_or_default(), events);
            let (signature, encrypted) = (entry.text("id")?, entry.text(reasoning::ENCRYPTED)?);
            if let Some(encrypted) = encrypted {
                self.open_reasoning(events);
                self.delta(PartDelta::Encrypted(encrypted), events);
            }
            if let Some(signature) = signature {
                self.open_reasoning(events);
                self.delta(PartDelta::Signature(signature), events);
                self.open = Some(OpenChatPart::Reasoning { is_signed: true });
            }
        }
        Ok(())
    }

    /// Adds to reasoning. A signature ended the one before.
    fn thought(&mut self, text: String, events: &mut ChatChoiceEvents<'_>) {
        if text.is_empty() {
            return;
        }
        if self.open == Some(OpenChatPart::Reasoning { is_signed: true }) {
            self.close(events);
        }
        self.open_reasoning(events);
        self.delta(PartDelta::Text(text), events);
    }

    fn open_reasoning(&mut self, events: &mut ChatChoiceEvents<'_>) {
        if !matches!(self.open, Some(OpenChatPart::Reasoning { .. })) {
            self.open(OpenChatPart::Reasoning { is_signed: false }, events);
        }
    }

    fn text(&mut self, kind: OpenChatPart, text: String, events: &mut ChatChoiceEvents<'_>) {
        if !text.is_empty() {
            self.open(kind, events);
            self.delta(PartDelta::Text(text), events);
        }
    }

    /// Adds a piece of a content that is a list.
    fn whole(&mut self, part: ContentPart, events: &mut ChatChoiceEvents<'_>) {
        match part {
            ContentPart::Text(part) => {
                self.text(OpenChatPart::Text, part.text, events);
                if let Some(signature) = part.signature {
                    self.open(OpenChatPart::Text, events);
                    self.delta(PartDelta::Signature(signature), events);
                }
            }
            ContentPart::Reasoning(part) => self.thought(part.text, events),
            part => {
                self.close(events);
                self.add(PartStart::Whole(Box::new(part)), events);
                self.end_part(events);
            }
        }
    }

    fn read_call(
        &mut self,
        mut call: ChatFields,
        response_id: &str,
        events: &mut ChatChoiceEvents<'_>,
    ) -> Result<(), DialectError> {
        let (index, id) = (call.count("index")?, call.text("id")?.unwrap_or_default());
        let signature = take_signature(&mut call);
        let kind = call.text("type")?;
        if kind.as_deref().is_some_and(|kind| kind != "function") || call.get("custom").is_some() {
            return self.read_other_call(call, kind, index, id, events);
        }
        let function = call.path_of("function");
        let mut function = call.object("function")?.map_or_else(|| ChatFields::of(function, json!({})), Ok)?;
        let (name, arguments) = (function.text("name")?, tools::take_arguments(&mut function)?);
        if self.is_new_call(index, &id, name.is_some()) {
            let made_up = call_id(response_id, events.choice, self.calls.len());
            let id = if id.is_empty() { made_up } else { id };
            let path = function.path_of("name");
            let name = name.ok_or_else(|| DialectError::malformed(path, "a name"))?;
            self.start_call(index, id, name, events)?;
        } else if self.is_earlier_call(index) {
            if arguments.is_empty() {
                return Ok(());
            }
            let message = "arguments of a tool call continue after the next call began";
            return Err(DialectError::Stream(message.to_owned()));
        }
        if matches!(self.open, Some(OpenChatPart::OtherCall(_))) {
            return Err(DialectError::Stream("a call changes its type to \"function\"".to_owned()));
        }
        self.arguments(arguments, events);
        if let Some(signature) = signature {
            self.delta(PartDelta::Signature(signature), events);
        }
        call.put_rest("function", function);
        let rest: Map<String, Value> = call.into_map().into_iter().filter(|(_, value)| !is_empty(value)).collect();
        if !rest.is_empty() {
            self.delta(PartDelta::Foreign(Extra::of(Dialect::Chat, rest)), events);
        }
        Ok(())
    }

    /// Returns whether a piece begins a call. Some servers leave out the index, or give all calls the same one.
    fn is_new_call(&self, index: Option<u64>, id: &str, has_name: bool) -> bool {
        let known = self.calls.iter().rfind(|call| index.is_none() || call.index == index);
        match known {
            None => true,
            Some(call) => has_name && !id.is_empty() && call.id != id,
        }
    }

    /// Returns whether a piece belongs to a call before the open one.
    fn is_earlier_call(&self, index: Option<u64>) -> bool {
        let is_open = matches!(self.open, Some(OpenChatPart::Call | OpenChatPart::OtherCall(_)));
        let is_last = index.is_none() || self.calls.last().is_some_and(|last| last.index == index);
        !(is_open && is_last)
    }

    /// Collects a call of another type than a function, which the form takes only whole.
    fn read_other_call(
        &mut self,
        mut call: ChatFields,
        kind: Option<String>,
        index: Option<u64>,
        id: String,
        events: &mut ChatChoiceEvents<'_>,
    ) -> Result<(), DialectError> {
        let kind = kind.unwrap_or_else(|| "custom".to_owned());
        let mut piece = call.object(&kind)?.map(ChatFields::into_map).unwrap_or_default();
        let input = piece.shift_remove("input").and_then(|input| input.as_str().map(str::to_owned)).unwrap_or_default();
        if self.is_new_call(index, &id, !piece.is_empty()) {
            self.close(events);
            self.add_call(index, id.clone())?;
            piece.insert("input".to_owned(), json!(""));
            let whole = json!({ "id": id, "type": kind.clone(), kind.clone(): piece });
            self.open = Some(OpenChatPart::OtherCall(whole));
        }
        let Some(OpenChatPart::OtherCall(whole)) = &mut self.open else {
            return Err(DialectError::Stream(format!("a piece of a call of the type {kind:?} is without its start")));
        };
        let Some(Value::String(text)) = whole.get_mut(&kind).and_then(|call| call.get_mut("input")) else {
            return Err(DialectError::Stream(format!("a call changes its type to {kind:?}")));
        };
        if text.len() + input.len() > OTHER_CALL_BYTES_MAX {
            let message = format!("the input of a call is larger than {OTHER_CALL_BYTES_MAX} bytes");
            return Err(DialectError::Stream(message));
        }
        text.push_str(&input);
        Ok(())
    }

    fn add_call(&mut self, index: Option<u64>, id: String) -> Result<(), DialectError> {
        if self.calls.len() == CHAT_STREAM_CALLS_MAX {
            let max = CHAT_STREAM_CALLS_MAX;
            return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "tool calls", max });
        }
        self.calls.push(ChatCallReader { index, id });
        Ok(())
    }

    fn start_call(
        &mut self,
        index: Option<u64>,
        id: String,
        name: String,
        events: &mut ChatChoiceEvents<'_>,
    ) -> Result<(), DialectError> {
        self.close(events);
        self.add_call(index, id.clone())?;
        self.add(PartStart::ToolCall { id, name }, events);
        self.open = Some(OpenChatPart::Call);
        Ok(())
    }

    fn arguments(&mut self, arguments: String, events: &mut ChatChoiceEvents<'_>) {
        if !arguments.is_empty() {
            self.delta(PartDelta::Arguments(arguments), events);
        }
    }

    /// Continues the open part if it is of the kind, or begins another one.
    fn open(&mut self, kind: OpenChatPart, events: &mut ChatChoiceEvents<'_>) {
        if self.open.as_ref() == Some(&kind) {
            return;
        }
        self.close(events);
        let start = match kind {
            OpenChatPart::Refusal => PartStart::Refusal,
            OpenChatPart::Reasoning { .. } => PartStart::Reasoning,
            _ => PartStart::Text,
        };
        self.add(start, events);
        self.open = Some(kind);
    }

    fn close(&mut self, events: &mut ChatChoiceEvents<'_>) {
        match self.open.take() {
            None => {}
            Some(OpenChatPart::OtherCall(call)) => {
                let part = ContentPart::Foreign { from: Dialect::Chat, part: tools::keep_call(call) };
                self.add(PartStart::Whole(Box::new(part)), events);
                self.end_part(events);
            }
            Some(_) => self.end_part(events),
        }
    }

    fn add(&mut self, start: PartStart, events: &mut ChatChoiceEvents<'_>) {
        events.events.push(StreamEvent::PartStart { choice: events.choice, part: self.parts, start });
        self.parts += 1;
    }

    fn end_part(&self, events: &mut ChatChoiceEvents<'_>) {
        events.events.push(StreamEvent::PartEnd { choice: events.choice, part: self.parts - 1 });
    }

    /// Adds to the part that began last.
    fn delta(&self, delta: PartDelta, events: &mut ChatChoiceEvents<'_>) {
        events.events.push(StreamEvent::PartDelta { choice: events.choice, part: self.parts - 1, delta });
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
