//! Reading of streams.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::of_fields;
use super::fields::{Fields, put, rest, take, take_text, text_of};
use super::items::{MESSAGE_MARK, SUMMARY_GAP, is_message_part, mark_message, read_part, read_reasoning, wrap_content};
use super::response::{created_of, finish_of, read_output_item, take_logprobs, tidy_item};
use super::usage::read_usage;
use super::{OUTPUT_ITEMS_MAX, OUTPUT_PARTS_MAX};
use assay_node_dialects::form::{ContentPart, PartDelta, PartStart, StreamEvent};
use assay_node_dialects::{Dialect, DialectError, SseEvent};

/// Reader of the events of one response.
///
/// Fields that an item or a text has at its end only, such as annotations, come as one [`PartDelta::Foreign`] with all
/// extra fields of the part so far.
#[derive(Debug, Default)]
pub struct ResponsesStreamReader {
    is_started: bool,
    is_over: bool,
    /// Parts that were begun.
    parts: usize,
    /// Whether the part before the next one is content of a message.
    follows_message: bool,
    has_calls: bool,
    /// Items that were begun and are not done, by `output_index`.
    items: BTreeMap<u64, OpenItem>,
    events: Vec<StreamEvent>,
}

/// Item that is not done.
#[derive(Debug, Default)]
struct OpenItem {
    kind: OpenItemKind,
    /// Fields of a message that its first part is marked with.
    mark: Option<Fields>,
    /// Index of the first content that was not begun.
    next_content: u64,
    part: Option<OpenPart>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OpenItemKind {
    Message,
    Call,
    Reasoning,
    /// Item that comes whole when it is done.
    #[default]
    Foreign,
}

/// Part of the form that is not ended.
#[derive(Debug)]
struct OpenPart {
    number: usize,
    content_index: u64,
    /// Bytes of the text or of the arguments that came.
    bytes: usize,
    /// Extra fields that were sent.
    sent: Fields,
    /// What the text of reasoning is made of; the first to come wins.
    source: Option<&'static str>,
    source_index: u64,
}

impl ResponsesStreamReader {
    /// Reads one event. Unknown events have no meaning here.
    pub fn push(&mut self, event: &SseEvent) -> Result<Vec<StreamEvent>, DialectError> {
        if self.is_over || event.data.is_empty() || event.data.starts_with("[DONE]") {
            return Ok(Vec::new());
        }
        let data: Value = serde_json::from_str(&event.data).map_err(|why| stream_error(&why.to_string()))?;
        let Value::Object(mut fields) = data else { return Err(stream_error("an event is no JSON object")) };
        let named = take(&mut fields, "type").and_then(|named| named.as_str().map(str::to_owned));
        let is_error = fields.get("error").is_some_and(Value::is_object);
        let named = match named.or_else(|| event.event.clone()) {
            Some(named) => named,
            None if is_error => "error".to_owned(),
            None => return Err(stream_error("an event has no type")),
        };
        self.read(&named, fields)?;
        Ok(std::mem::take(&mut self.events))
    }

    /// Ends the input. Every event was sent when it came, so that there are none left.
    pub fn finish(&mut self) -> Vec<StreamEvent> {
        self.is_over = true;
        Vec::new()
    }

    fn read(&mut self, named: &str, mut fields: Fields) -> Result<(), DialectError> {
        let output_index = fields.get("output_index").and_then(Value::as_u64).unwrap_or_default();
        let content_index = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or_default();
        match named {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start(take(&mut fields, "response").unwrap_or_default())
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(named, take(&mut fields, "response").unwrap_or_default())
            }
            "error" => self.fail(fields),
            "response.output_item.added" => self.begin_item(output_index, take(&mut fields, "item")),
            "response.output_item.done" => self.end_item(output_index, take(&mut fields, "item")),
            "response.content_part.added" => {
                let index = content_index("content_index");
                self.begin_content(output_index, index, take(&mut fields, "part").unwrap_or_default())
            }
            "response.content_part.done" => {
                let index = content_index("content_index");
                self.end_content(output_index, index, take(&mut fields, "part").unwrap_or_default())
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let index = content_index("content_index");
                let kind = if named.contains("refusal") { "refusal" } else { "output_text" };
                self.text(output_index, index, kind, fields)
            }
            "response.function_call_arguments.delta" => {
                let delta = take_text(&mut fields, named, "delta")?.unwrap_or_default();
                self.arguments(output_index, delta)
            }
            "response.reasoning_summary_part.added" => {
                self.reasoning(output_index, "summary", content_index("summary_index"), Some(String::new()))
            }
            "response.reasoning_summary_text.delta" => {
                let index = content_index("summary_index");
                self.reasoning(output_index, "summary", index, take_text(&mut fields, named, "delta")?)
            }
            "response.reasoning_text.delta" => {
                let index = content_index("content_index");
                self.reasoning(output_index, "content", index, take_text(&mut fields, named, "delta")?)
            }
            // the others repeat what came, or tell the progress of tools that the provider runs
            _ => Ok(()),
        }
    }

    fn start(&mut self, response: Value) -> Result<(), DialectError> {
        if self.is_started {
            return Ok(());
        }
        let mut fields = response.as_object().cloned().unwrap_or_default();
        for name in ["object", "status", "output", "usage"] {
            fields.shift_remove(name);
        }
        for name in ["error", "incomplete_details"] {
            take(&mut fields, name);
        }
        let id = take_text(&mut fields, "response", "id")?.unwrap_or_default();
        let model = take_text(&mut fields, "response", "model")?.unwrap_or_default();
        let created = created_of(&mut fields);
        self.is_started = true;
        self.events.push(StreamEvent::Start { id, model, created, extra: rest(fields) });
        Ok(())
    }

    /// Begins an item. A server that leaves out its announcement begins it with its first delta.
    fn begin_item(&mut self, output_index: u64, item: Option<Value>) -> Result<(), DialectError> {
        self.start(Value::Null)?;
        if self.items.contains_key(&output_index) {
            return Ok(());
        }
        if self.items.len() >= OUTPUT_ITEMS_MAX || self.parts >= OUTPUT_PARTS_MAX {
            return Err(too_many());
        }
        let Some(Value::Object(mut fields)) = item else { return Err(stream_error("an item is no object")) };
        let mut open = OpenItem::default();
        let is_untyped_message = fields.get("type").is_none_or(Value::is_null) && fields.contains_key("role");
        match text_of(&fields, "type") {
            kind if kind == Some("message") || is_untyped_message => {
                let contents = message_fields(&mut fields);
                open.kind = OpenItemKind::Message;
                open.mark = (!fields.is_empty() || self.follows_message).then_some(fields);
                self.items.insert(output_index, open);
                for (at, part) in (0..).zip(contents) {
                    self.begin_content(output_index, at, part)?;
                }
                return Ok(());
            }
            Some("function_call") => {
                let mut item = Value::Object(fields);
                tidy_status(&mut item);
                let parts = read_output_item(item, "item", None)?;
                let Some(ContentPart::ToolCall(call)) = parts.into_iter().next() else { return Ok(()) };
                self.has_calls = true;
                open.kind = OpenItemKind::Call;
                let start = PartStart::ToolCall { id: call.id, name: call.name };
                let sent = call.extra.for_dialect(Dialect::Responses).cloned().unwrap_or_default();
                open.part = Some(self.begin_part(start, 0, sent));
                self.items.insert(output_index, open);
                return self.arguments(output_index, call.arguments);
            }
            Some("reasoning") => {
                open.kind = OpenItemKind::Reasoning;
                let sent = fields.get("id").map(|id| Fields::from_iter([("id".to_owned(), id.clone())]));
                open.part = Some(self.begin_part(PartStart::Reasoning, 0, sent.unwrap_or_default()));
            }
            _ => {}
        }
        self.items.insert(output_index, open);
        Ok(())
    }

    fn begin_part(&mut self, start: PartStart, content_index: u64, sent: Fields) -> OpenPart {
        let number = self.parts;
        self.parts += 1;
        self.follows_message = matches!(start, PartStart::Text | PartStart::Refusal);
        self.events.push(StreamEvent::PartStart { choice: 0, part: number, start });
        if !sent.is_empty() {
            self.delta(number, PartDelta::Foreign(rest(sent.clone())));
        }
        OpenPart { number, content_index, bytes: 0, sent, source: None, source_index: 0 }
    }

    fn delta(&mut self, part: usize, delta: PartDelta) {
        self.events.push(StreamEvent::PartDelta { choice: 0, part, delta });
    }

    /// Ends the part of an item that is open.
    fn end_part(&mut self, item: &mut OpenItem) {
        if let Some(part) = item.part.take() {
            self.events.push(StreamEvent::PartEnd { choice: 0, part: part.number });
        }
    }

    /// Sends the extra fields of a part if there are new ones.
    fn send_extra(&mut self, part: &mut OpenPart, fields: Fields) {
        let is_news = fields.iter().any(|(name, value)| part.sent.get(name) != Some(value));
        if is_news {
            for (name, value) in fields {
                put(&mut part.sent, &name, value);
            }
            self.delta(part.number, PartDelta::Foreign(rest(part.sent.clone())));
        }
    }

    fn begin_content(&mut self, output_index: u64, content_index: u64, part: Value) -> Result<(), DialectError> {
        let Some(mut item) = self.items.remove(&output_index) else {
            self.begin_item(output_index, Some(json!({"type": "message"})))?;
            return self.begin_content(output_index, content_index, part);
        };
        if item.kind == OpenItemKind::Message && content_index >= item.next_content {
            let start = match part.get("type").and_then(Value::as_str) {
                Some("output_text" | "text") => Some((PartStart::Text, "text")),
                Some("refusal") => Some((PartStart::Refusal, "refusal")),
                // it comes whole when it is done
                _ => None,
            };
            if let Some((start, name)) = start {
                if self.parts >= OUTPUT_PARTS_MAX {
                    return Err(too_many());
                }
                self.end_part(&mut item);
                item.next_content = content_index.saturating_add(1);
                let sent = item.mark.take().map(|mark| Fields::from_iter([(MESSAGE_MARK.to_owned(), json!(mark))]));
                let mut open = self.begin_part(start, content_index, sent.unwrap_or_default());
                if let Some(text) = part.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                    open.bytes = text.len();
                    self.delta(open.number, PartDelta::Text(text.to_owned()));
                }
                item.part = Some(open);
            }
        }
        self.items.insert(output_index, item);
        Ok(())
    }

    fn text(
        &mut self,
        output_index: u64,
        content_index: u64,
        kind: &str,
        mut fields: Fields,
    ) -> Result<(), DialectError> {
        let text = take_text(&mut fields, kind, "delta")?.unwrap_or_default();
        let empty = match kind {
            "refusal" => json!({"type": "refusal", "refusal": ""}),
            _ => json!({"type": "output_text", "text": ""}),
        };
        self.begin_content(output_index, content_index, empty)?;
        if let Some(Value::Array(logprobs)) = take(&mut fields, "logprobs") {
            self.logprobs(logprobs);
        }
        let is_open = |part: &OpenPart| part.content_index == content_index;
        if self.open_part(output_index, OpenItemKind::Message).is_some_and(|part| is_open(part)) {
            self.append(output_index, text, PartDelta::Text);
        }
        Ok(())
    }

    fn logprobs(&mut self, logprobs: Vec<Value>) {
        if !logprobs.is_empty() {
            let logprobs = json!({"content": logprobs, "refusal": null});
            self.events.push(StreamEvent::Logprobs { choice: 0, logprobs });
        }
    }

    fn arguments(&mut self, output_index: u64, arguments: String) -> Result<(), DialectError> {
        if self.open_part(output_index, OpenItemKind::Call).is_none() {
            return Err(stream_error("arguments came before their call"));
        }
        self.append(output_index, arguments, PartDelta::Arguments);
        Ok(())
    }

    fn open_part(&mut self, output_index: u64, kind: OpenItemKind) -> Option<&mut OpenPart> {
        self.items.get_mut(&output_index).filter(|item| item.kind == kind)?.part.as_mut()
    }

    fn append(&mut self, output_index: u64, text: String, delta: impl Fn(String) -> PartDelta) {
        let open = self.items.get_mut(&output_index).and_then(|item| item.part.as_mut());
        if let Some(open) = open.filter(|_| !text.is_empty()) {
            open.bytes += text.len();
            let number = open.number;
            self.delta(number, delta(text));
        }
    }

    /// Text of a summary or of the content of reasoning. Only the first of both is the text of the form.
    fn reasoning(
        &mut self,
        output_index: u64,
        source: &'static str,
        index: u64,
        text: Option<String>,
    ) -> Result<(), DialectError> {
        self.begin_item(output_index, Some(json!({"type": "reasoning"})))?;
        let open = self.open_part(output_index, OpenItemKind::Reasoning);
        let (Some(open), Some(text)) = (open, text) else { return Ok(()) };
        if *open.source.get_or_insert(source) != source {
            return Ok(());
        }
        let is_next = index > open.source_index;
        open.source_index = index.max(open.source_index);
        let text = if is_next { format!("{SUMMARY_GAP}{text}") } else { text };
        self.append(output_index, text, PartDelta::Text);
        Ok(())
    }

    /// Ends a content. Its part stays open for what the end of the item brings.
    fn end_content(&mut self, output_index: u64, content_index: u64, part: Value) -> Result<(), DialectError> {
        self.begin_content(output_index, content_index, part.clone())?;
        let Some(mut item) = self.items.remove(&output_index) else { return Ok(()) };
        if item.kind == OpenItemKind::Message {
            let is_open = item.part.as_ref().is_some_and(|open| open.content_index == content_index);
            match item.part.take() {
                Some(open) if is_open => item.part = Some(self.complete_content(open, part)?),
                open => {
                    item.part = open;
                    if content_index >= item.next_content {
                        item.next_content = content_index.saturating_add(1);
                        self.foreign_content(&mut item, part)?;
                    }
                }
            }
        }
        self.items.insert(output_index, item);
        Ok(())
    }

    /// Sends what a finished content has beyond its deltas.
    fn complete_content(&mut self, mut open: OpenPart, mut part: Value) -> Result<OpenPart, DialectError> {
        if let Some(fields) = part.as_object_mut() {
            take_logprobs(fields);
        }
        if let ContentPart::Text(text) | ContentPart::Refusal(text) = read_part(part, "part")? {
            self.send_missing(&mut open, &text.text, PartDelta::Text);
            let fields = text.extra.for_dialect(Dialect::Responses).cloned().unwrap_or_default();
            if let Some(signature) = text.signature.filter(|_| !open.sent.contains_key("extra_content")) {
                self.delta(open.number, PartDelta::Signature(signature));
            }
            self.send_extra(&mut open, fields);
        }
        Ok(open)
    }

    /// Sends the end of a text whose deltas did not come.
    fn send_missing(&mut self, open: &mut OpenPart, text: &str, delta: impl Fn(String) -> PartDelta) {
        if let Some(missing) = text.get(open.bytes..).filter(|missing| !missing.is_empty()) {
            open.bytes = text.len();
            self.delta(open.number, delta(missing.to_owned()));
        }
    }

    fn foreign_content(&mut self, item: &mut OpenItem, part: Value) -> Result<(), DialectError> {
        self.end_part(item);
        let mut part = wrap_content(read_part(part, "part")?);
        if let Some(mark) = item.mark.take() {
            mark_message(&mut part, mark);
        }
        self.whole(part);
        Ok(())
    }

    fn whole(&mut self, part: ContentPart) {
        self.follows_message = is_message_part(&part);
        let number = self.parts;
        self.parts += 1;
        self.events.push(StreamEvent::PartStart { choice: 0, part: number, start: PartStart::Whole(Box::new(part)) });
        self.events.push(StreamEvent::PartEnd { choice: 0, part: number });
    }

    fn end_item(&mut self, output_index: u64, item: Option<Value>) -> Result<(), DialectError> {
        let Some(item) = item else { return Err(stream_error("an item is no object")) };
        self.begin_item(output_index, Some(item.clone()))?;
        let Some(mut open) = self.items.remove(&output_index) else { return Ok(()) };
        match open.kind {
            OpenItemKind::Message => self.end_message(output_index, open, item),
            OpenItemKind::Call | OpenItemKind::Reasoning => {
                // A server that ends another item under this index has nothing to add to this one.
                let kind = if open.kind == OpenItemKind::Call { "function_call" } else { "reasoning" };
                let is_same = item.get("type").is_some_and(|ended| ended == kind);
                if let Some(mut part) = open.part.take() {
                    if is_same {
                        self.end_made(&mut part, item)?;
                    }
                    open.part = Some(part);
                }
                self.end_part(&mut open);
                Ok(())
            }
            OpenItemKind::Foreign => {
                self.whole(ContentPart::Foreign { from: Dialect::Responses, part: item });
                Ok(())
            }
        }
    }

    /// Sends what a finished call or reasoning has beyond its deltas.
    fn end_made(&mut self, open: &mut OpenPart, mut item: Value) -> Result<(), DialectError> {
        tidy_status(&mut item);
        let (extra, signature) = if item.get("type").is_some_and(|kind| kind == "reasoning") {
            let Value::Object(fields) = item else { return Ok(()) };
            let reasoning = read_reasoning(fields, "item")?;
            if open.bytes == 0 {
                self.send_missing(open, &reasoning.text, PartDelta::Text);
            }
            if let Some(encrypted) = reasoning.encrypted {
                self.delta(open.number, PartDelta::Encrypted(encrypted));
            }
            (reasoning.extra, reasoning.signature)
        } else {
            let mut parts = read_output_item(item, "item", None)?;
            let Some(ContentPart::ToolCall(call)) = parts.pop() else { return Ok(()) };
            self.send_missing(open, &call.arguments, PartDelta::Arguments);
            (call.extra, call.signature)
        };
        if let Some(signature) = signature {
            self.delta(open.number, PartDelta::Signature(signature));
        }
        let fields = extra.for_dialect(Dialect::Responses).cloned().unwrap_or_default();
        self.send_extra(open, fields);
        Ok(())
    }

    fn end_message(&mut self, output_index: u64, mut open: OpenItem, item: Value) -> Result<(), DialectError> {
        let Value::Object(mut fields) = item else { return Ok(()) };
        let is_empty = match fields.get("content") {
            Some(Value::Array(contents)) => contents.is_empty(),
            content => !content.is_some_and(Value::is_string),
        };
        if is_empty && open.next_content == 0 {
            self.whole(ContentPart::Foreign { from: Dialect::Responses, part: Value::Object(fields) });
            return Ok(());
        }
        let contents = message_fields(&mut fields);
        // a server that sends no ends of contents, or no contents at all
        let begun = open.part.as_ref().map_or(open.next_content, |part| part.content_index);
        self.items.insert(output_index, open);
        for (at, part) in (0..).zip(contents).skip_while(|(at, _)| *at < begun) {
            self.end_content(output_index, at, part)?;
        }
        open = self.items.remove(&output_index).unwrap_or_default();
        if let Some(mut part) = open.part.take() {
            let is_first = part.sent.contains_key(MESSAGE_MARK) || open.next_content == 1;
            if is_first && !fields.is_empty() {
                self.send_extra(&mut part, Fields::from_iter([(MESSAGE_MARK.to_owned(), Value::Object(fields))]));
            }
            open.part = Some(part);
        }
        self.end_part(&mut open);
        Ok(())
    }

    fn end(&mut self, named: &str, response: Value) -> Result<(), DialectError> {
        if !self.is_started {
            self.start(response.clone())?;
        }
        let mut fields = response.as_object().cloned().unwrap_or_default();
        if named == "response.failed" {
            let error = take(&mut fields, "error").and_then(|error| error.as_object().cloned());
            return self.fail(error.unwrap_or_default());
        }
        let output = fields.shift_remove("output").and_then(|output| output.as_array().cloned()).unwrap_or_default();
        let open: Vec<u64> = self.items.keys().copied().collect();
        match self.parts == 0 && open.is_empty() {
            // a server that streams nothing but the end
            true => {
                for (at, item) in (0..).zip(output.into_iter().take(OUTPUT_ITEMS_MAX)) {
                    self.end_item(at, Some(item))?;
                }
            }
            false => {
                for index in open {
                    if let Some(mut item) = self.items.remove(&index) {
                        self.end_part(&mut item);
                    }
                }
            }
        }
        let reason = finish_of(&mut fields, self.has_calls);
        self.events.push(StreamEvent::Finish { choice: 0, reason });
        if let Some(usage) = take(&mut fields, "usage") {
            self.events.push(StreamEvent::Usage(read_usage(usage)?));
        }
        self.events.push(StreamEvent::End);
        self.is_over = true;
        Ok(())
    }

    /// Ends the stream with an error, whose fields are in the event or in an object of it.
    fn fail(&mut self, mut fields: Fields) -> Result<(), DialectError> {
        fields.shift_remove("sequence_number");
        let inner = take(&mut fields, "error").and_then(|error| error.as_object().cloned());
        self.events.push(StreamEvent::Error(of_fields(inner.unwrap_or(fields), None)));
        self.is_over = true;
        Ok(())
    }
}

fn too_many() -> DialectError {
    DialectError::TooMany { dialect: Dialect::Responses, of: "parts of an answer", max: OUTPUT_PARTS_MAX }
}

fn stream_error(why: &str) -> DialectError {
    DialectError::Stream(why.to_owned())
}

/// Takes the contents of a message, and leaves the fields that the form does not have.
fn message_fields(fields: &mut Fields) -> Vec<Value> {
    for name in ["type", "role"] {
        fields.shift_remove(name);
    }
    if matches!(text_of(fields, "status"), Some("in_progress" | "completed" | "incomplete")) {
        fields.shift_remove("status");
    }
    match fields.shift_remove("content") {
        Some(Value::Array(contents)) => contents,
        // as in a whole response
        Some(Value::String(text)) => vec![json!({"type": "output_text", "text": text})],
        _ => Vec::new(),
    }
}

/// Takes the status of a call, which the writer knows from the course of the stream.
fn tidy_status(item: &mut Value) {
    for status in ["in_progress", "completed", "incomplete"] {
        tidy_item(item, status, &mut Vec::new());
    }
}
