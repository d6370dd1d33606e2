//! Writing of streams.

use serde_json::{Value, json};

use super::error::code_of;
use super::fields::{Fields, kept, put};
use super::items::{begins_item, is_message_part, wrapped_content};
use super::response::{
    OutputItem, choice_logprobs, in_progress, is_cut, is_expressible, logprobs_of, with_error, write_content,
    write_response,
};
use assay_node_dialects::SseEvent;
use assay_node_dialects::form::{
    ContentPart, ModelChoice, ModelError, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent, TextPart,
    ToolCallPart,
};

mod fold;

pub(crate) use fold::{add_logprobs, apply_delta};

/// Writer of the events of one response. It keeps the answer, which the last event repeats.
///
/// An item is announced with its first delta, and done when another begins or the stream ends, because its status depends
/// on the end. A summary of several parts is streamed as one part, and has its parts when the item is done.
#[derive(Debug)]
pub struct ResponsesStreamWriter {
    response: ModelResponse,
    parts: Vec<WrittenPart>,
    /// Parts whose items and contents are announced.
    announced: usize,
    items: Vec<WrittenItem>,
    /// Log probabilities that no delta has carried.
    logprobs: Vec<Value>,
    sequence_number: u64,
    is_started: bool,
    is_over: bool,
    events: Vec<SseEvent>,
}

/// Part of the form, as far as it is written.
#[derive(Debug, Default)]
struct WrittenPart {
    has_summary: bool,
    is_ended: bool,
    /// Its item; none if this dialect has no equal.
    item: Option<usize>,
    content_index: usize,
}

#[derive(Debug)]
struct WrittenItem {
    item: OutputItem,
    id: Value,
    is_done: bool,
}

impl Default for ResponsesStreamWriter {
    fn default() -> ResponsesStreamWriter {
        ResponsesStreamWriter::new()
    }
}

impl ResponsesStreamWriter {
    pub fn new() -> ResponsesStreamWriter {
        let choice =
            ModelChoice { index: 0, parts: Vec::new(), finish: None, logprobs: None, extra: Default::default() };
        ResponsesStreamWriter {
            response: ModelResponse { choices: vec![choice], ..ModelResponse::default() },
            parts: Vec::new(),
            announced: 0,
            items: Vec::new(),
            logprobs: Vec::new(),
            sequence_number: 0,
            is_started: false,
            is_over: false,
            events: Vec::new(),
        }
    }

    /// Writes one event. Choices beyond the first are left out.
    pub fn write(&mut self, event: &StreamEvent) -> Vec<SseEvent> {
        if self.is_over {
            return Vec::new();
        }
        match event {
            StreamEvent::Start { id, model, created, extra } => {
                self.response.id.clone_from(id);
                self.response.model.clone_from(model);
                self.response.created = *created;
                self.response.extra = extra.clone();
                self.start();
            }
            StreamEvent::PartStart { choice: 0, part, start } if *part == self.parts.len() => self.begin(*part, start),
            StreamEvent::PartDelta { choice: 0, part, delta } if self.is_open(*part) => self.delta(*part, delta),
            StreamEvent::PartEnd { choice: 0, part } if self.is_open(*part) => self.end_part(*part),
            StreamEvent::Logprobs { choice: 0, logprobs } => {
                let content = logprobs.get("content").and_then(Value::as_array);
                self.logprobs.extend(content.into_iter().flatten().cloned());
                add_logprobs(&mut self.choice_mut().logprobs, logprobs);
            }
            StreamEvent::Finish { choice: 0, reason } => self.choice_mut().finish = Some(reason.clone()),
            StreamEvent::Usage(usage) => self.response.usage = Some(usage.clone()),
            StreamEvent::Error(error) => self.fail(error),
            StreamEvent::End => self.end(),
            _ => {}
        }
        std::mem::take(&mut self.events)
    }

    fn choice(&self) -> &ModelChoice {
        &self.response.choices[0]
    }

    fn choice_mut(&mut self) -> &mut ModelChoice {
        &mut self.response.choices[0]
    }

    fn is_open(&self, part: usize) -> bool {
        self.parts.get(part).is_some_and(|part| !part.is_ended)
    }

    fn emit(&mut self, named: &str, mut fields: Fields) {
        let mut data = Fields::new();
        put(&mut data, "type", named);
        put(&mut data, "sequence_number", self.sequence_number);
        data.append(&mut fields);
        self.sequence_number += 1;
        self.events.push(SseEvent { event: Some(named.to_owned()), data: Value::Object(data).to_string() });
    }

    /// Emits an event about a part or its item.
    fn emit_of_item(&mut self, named: &str, item: usize, rest: Value) {
        let mut fields = Fields::new();
        put(&mut fields, "output_index", item);
        put(&mut fields, "item_id", self.items[item].id.clone());
        if let Value::Object(mut rest) = rest {
            fields.append(&mut rest);
        }
        self.emit(named, fields);
    }

    fn emit_response(&mut self, named: &str, response: Value) {
        self.emit(named, Fields::from_iter([("response".to_owned(), response)]));
    }

    fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            for named in ["response.created", "response.in_progress"] {
                self.emit_response(named, in_progress(&self.response));
            }
        }
    }

    fn begin(&mut self, number: usize, start: &PartStart) {
        let part = match start {
            PartStart::Text => ContentPart::Text(TextPart::default()),
            PartStart::Refusal => ContentPart::Refusal(TextPart::default()),
            PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
            PartStart::ToolCall { id, name } => ContentPart::ToolCall(ToolCallPart {
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
                signature: None,
                cache: None,
                extra: Default::default(),
            }),
            PartStart::Whole(part) => return self.begin_whole(number, part),
        };
        self.choice_mut().parts.push(part);
        self.parts.push(WrittenPart::default());
    }

    /// Begins a part that is there already: its text is one delta.
    fn begin_whole(&mut self, number: usize, part: &ContentPart) {
        let mut begun = part.clone();
        let delta = match &mut begun {
            ContentPart::Text(TextPart { text, .. })
            | ContentPart::Refusal(TextPart { text, .. })
            | ContentPart::Reasoning(ReasoningPart { text, .. }) => Some(PartDelta::Text(std::mem::take(text))),
            ContentPart::ToolCall(call) => Some(PartDelta::Arguments(std::mem::take(&mut call.arguments))),
            _ => None,
        };
        self.choice_mut().parts.push(begun);
        self.parts.push(WrittenPart::default());
        if let Some(delta) = delta {
            self.delta(number, &delta);
        }
    }

    fn delta(&mut self, number: usize, delta: &PartDelta) {
        match delta {
            PartDelta::Text(text) | PartDelta::Arguments(text) if !text.is_empty() => {
                self.announce(number);
                self.emit_delta(number, text);
            }
            _ => {}
        }
        apply_delta(&mut self.choice_mut().parts[number], delta);
    }

    fn emit_delta(&mut self, number: usize, delta: &str) {
        let WrittenPart { item: Some(item), content_index, .. } = self.parts[number] else { return };
        match &self.choice().parts[number] {
            ContentPart::Text(_) => {
                let logprobs = std::mem::take(&mut self.logprobs);
                let fields = json!({"content_index": content_index, "delta": delta, "logprobs": logprobs});
                self.emit_of_item("response.output_text.delta", item, fields);
            }
            ContentPart::Refusal(_) => {
                let fields = json!({"content_index": content_index, "delta": delta});
                self.emit_of_item("response.refusal.delta", item, fields);
            }
            ContentPart::Reasoning(_) => {
                if !std::mem::replace(&mut self.parts[number].has_summary, true) {
                    let part = json!({"type": "summary_text", "text": ""});
                    let fields = json!({"summary_index": 0, "part": part});
                    self.emit_of_item("response.reasoning_summary_part.added", item, fields);
                }
                let fields = json!({"summary_index": 0, "delta": delta});
                self.emit_of_item("response.reasoning_summary_text.delta", item, fields);
            }
            ContentPart::ToolCall(_) => {
                self.emit_of_item("response.function_call_arguments.delta", item, json!({"delta": delta}));
            }
            _ => {}
        }
    }

    /// Announces the items and contents up to a part. Their order is that of the parts.
    fn announce(&mut self, number: usize) {
        self.start();
        while self.announced <= number {
            self.announced += 1;
            self.announce_one(self.announced - 1);
        }
    }

    fn announce_one(&mut self, at: usize) {
        let parts = &self.response.choices[0].parts;
        let part = &parts[at];
        if !is_expressible(part) {
            return;
        }
        let before = at.checked_sub(1).map(|before| &parts[before]);
        let is_message = is_message_part(part);
        let index = match begins_item(before, part) || self.items.is_empty() {
            true => {
                let item = OutputItem { parts: at..at + 1, output_index: self.items.len() };
                let begun = item.write_begun(&self.response.id, parts);
                let id = begun.get("id").cloned().unwrap_or_default();
                let index = self.items.len();
                self.items.push(WrittenItem { item, id, is_done: false });
                self.finish_items(index);
                let fields =
                    Fields::from_iter([("output_index".to_owned(), json!(index)), ("item".to_owned(), json!(begun))]);
                self.emit("response.output_item.added", fields);
                index
            }
            false => {
                let index = self.items.len() - 1;
                self.items[index].item.parts.end = at + 1;
                self.parts[at].content_index = at - self.items[index].item.parts.start;
                index
            }
        };
        self.parts[at].item = Some(index);
        if is_message {
            let part = match &self.choice().parts[at] {
                ContentPart::Text(_) => json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []}),
                ContentPart::Refusal(_) => json!({"type": "refusal", "refusal": ""}),
                other => wrapped_content(other).cloned().unwrap_or_default(),
            };
            let fields = json!({"content_index": self.parts[at].content_index, "part": part});
            self.emit_of_item("response.content_part.added", index, fields);
        }
    }

    fn end_part(&mut self, number: usize) {
        self.announce(number);
        self.parts[number].is_ended = true;
        let WrittenPart { item: Some(item), content_index, has_summary, .. } = self.parts[number] else { return };
        let choice = &self.response.choices[0];
        let logprobs = choice_logprobs(choice);
        match &choice.parts[number] {
            ContentPart::Text(text) => {
                self.logprobs.clear();
                let logprobs = match kept(&text.extra, "logprobs") {
                    Some(logprobs) => logprobs.clone(),
                    None => logprobs_of(&choice.parts, number, logprobs).into(),
                };
                let fields = json!({"content_index": content_index, "text": text.text, "logprobs": logprobs});
                self.emit_of_item("response.output_text.done", item, fields);
            }
            ContentPart::Refusal(text) => {
                let fields = json!({"content_index": content_index, "refusal": text.text});
                self.emit_of_item("response.refusal.done", item, fields);
            }
            ContentPart::Reasoning(reasoning) if has_summary => {
                let text = json!({"summary_index": 0, "text": reasoning.text});
                let part = json!({"type": "summary_text", "text": reasoning.text});
                self.emit_of_item("response.reasoning_summary_text.done", item, text);
                let fields = json!({"summary_index": 0, "part": part});
                self.emit_of_item("response.reasoning_summary_part.done", item, fields);
            }
            ContentPart::ToolCall(call) => {
                let fields = json!({"arguments": call.arguments, "name": call.name});
                self.emit_of_item("response.function_call_arguments.done", item, fields);
            }
            _ => {}
        }
        let choice = self.choice();
        if is_message_part(&choice.parts[number]) {
            let part = write_content(&choice.parts, number, choice_logprobs(choice));
            let fields = json!({"content_index": content_index, "part": part});
            self.emit_of_item("response.content_part.done", item, fields);
        }
        self.finish_items(self.items.len().saturating_sub(1));
    }

    /// Ends the items before `end` whose parts have all ended.
    fn finish_items(&mut self, end: usize) {
        for index in 0..end {
            let WrittenItem { item, is_done, .. } = &self.items[index];
            let is_ended = self.parts[item.parts.clone()].iter().all(|part| part.is_ended);
            if !is_done && is_ended {
                self.finish_item(index, false);
            }
        }
    }

    fn finish_item(&mut self, index: usize, is_cut: bool) {
        self.items[index].is_done = true;
        let choice = self.choice();
        let logprobs = choice_logprobs(choice);
        let mut item = self.items[index].item.write(&self.response.id, &choice.parts, logprobs, is_cut);
        // the id under which the item was announced, also if the part got another one later
        put(&mut item, "id", self.items[index].id.clone());
        let fields = Fields::from_iter([("output_index".to_owned(), json!(index)), ("item".to_owned(), json!(item))]);
        self.emit("response.output_item.done", fields);
    }

    fn end(&mut self) {
        self.start();
        for number in 0..self.parts.len() {
            if self.is_open(number) {
                self.end_part(number);
            }
        }
        let is_cut = is_cut(self.choice().finish.as_ref());
        let last = self.items.len().saturating_sub(1);
        for index in 0..self.items.len() {
            if !self.items[index].is_done {
                self.finish_item(index, is_cut && index == last);
            }
        }
        let response = write_response(&self.response);
        let named = match response.get("status").and_then(Value::as_str) {
            Some("incomplete") => "response.incomplete",
            Some("failed" | "cancelled") => "response.failed",
            _ => "response.completed",
        };
        self.emit_response(named, response);
        self.is_over = true;
    }

    /// Ends the stream with an error: that of the response if it has begun.
    fn fail(&mut self, error: &ModelError) {
        match self.is_started {
            true => self.emit_response("response.failed", with_error(&self.response, error)),
            false => {
                let fields = json!({"code": code_of(error), "message": error.message, "param": error.param});
                self.emit("error", fields.as_object().cloned().unwrap_or_default());
            }
        }
        self.is_over = true;
    }
}
