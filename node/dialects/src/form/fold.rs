//! Streams as whole answers, and whole answers as streams.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{
    ContentPart, Extra, ModelChoice, ModelError, ModelResponse, PartDelta, PartStart, ReasoningPart, StreamEvent,
    TextPart, ToolCallPart,
};

/// Upper bounds of an answer that a stream is folded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldLimits {
    /// Bytes of all texts, arguments, signatures, media and unknown fields.
    pub bytes_max: usize,
    /// Parts of all choices.
    pub parts_max: usize,
    pub choices_max: usize,
}

impl Default for FoldLimits {
    fn default() -> FoldLimits {
        FoldLimits { bytes_max: 64 << 20, parts_max: 100_000, choices_max: 1_024 }
    }
}

/// Events that make no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    #[error("the answer has more than {max} {of}")]
    TooMany { of: &'static str, max: usize },
    #[error("part {part} of choice {choice} does not begin after the one before it")]
    OutOfOrder { choice: u64, part: usize },
    #[error("part {part} of choice {choice} has not begun, or takes no such addition")]
    NoSuchPart { choice: u64, part: usize },
}

/// Answer that events are added to. Its choices are in the order of their indexes. What came before an error, or before the stream was cut, is kept.
#[derive(Debug, Default)]
pub struct ResponseFold {
    limits: FoldLimits,
    response: ModelResponse,
    parts: usize,
    bytes: usize,
    error: Option<ModelError>,
    is_ended: bool,
}

impl ResponseFold {
    pub fn new(limits: FoldLimits) -> ResponseFold {
        ResponseFold { limits, ..ResponseFold::default() }
    }

    /// Adds an event. One that is refused adds nothing to the answer.
    pub fn push(&mut self, event: &StreamEvent) -> Result<(), FoldError> {
        match event {
            StreamEvent::Start { id, model, created, extra } => {
                self.count_bytes(id.len() + model.len() + extra.bytes())?;
                let response = &mut self.response;
                (response.id, response.model, response.created) = (id.clone(), model.clone(), *created);
                response.extra = extra.clone();
            }
            StreamEvent::PartStart { choice, part, start } => self.start_part(*choice, *part, start)?,
            StreamEvent::PartDelta { choice, part, delta } => self.add(*choice, *part, delta)?,
            StreamEvent::PartEnd { choice, part } => {
                if self.parts_of(*choice) <= *part {
                    return Err(FoldError::NoSuchPart { choice: *choice, part: *part });
                }
            }
            StreamEvent::Logprobs { choice, logprobs } => {
                self.count_bytes(logprobs.to_string().len())?;
                let kept = &mut self.choice(*choice)?.logprobs;
                match kept {
                    Some(kept) => append(kept, logprobs),
                    None => *kept = Some(logprobs.clone()),
                }
            }
            StreamEvent::Finish { choice, reason } => self.choice(*choice)?.finish = Some(reason.clone()),
            StreamEvent::Usage(usage) => self.response.usage = Some(usage.clone()),
            StreamEvent::Error(error) => self.error = Some(error.clone()),
            StreamEvent::End => self.is_ended = true,
        }
        Ok(())
    }

    /// Returns the answer so far.
    pub fn response(&self) -> &ModelResponse {
        &self.response
    }

    /// Returns the error that ended the stream.
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref()
    }

    /// Returns whether the stream had its regular end.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub fn into_response(self) -> ModelResponse {
        self.response
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), FoldError> {
        let sum = self.bytes.saturating_add(bytes);
        if sum > self.limits.bytes_max {
            return Err(FoldError::TooMany { of: "bytes", max: self.limits.bytes_max });
        }
        self.bytes = sum;
        Ok(())
    }

    /// Returns where a choice is, or where it belongs.
    fn position(&self, index: u64) -> Result<usize, usize> {
        self.response.choices.binary_search_by_key(&index, |choice| choice.index)
    }

    /// Number of the parts of a choice that have begun.
    fn parts_of(&self, choice: u64) -> usize {
        self.position(choice).map_or(0, |at| self.response.choices[at].parts.len())
    }

    fn choice(&mut self, index: u64) -> Result<&mut ModelChoice, FoldError> {
        let at = match self.position(index) {
            Ok(at) => at,
            Err(_) if self.response.choices.len() == self.limits.choices_max => {
                return Err(FoldError::TooMany { of: "choices", max: self.limits.choices_max });
            }
            Err(at) => {
                let (parts, extra) = (Vec::new(), Extra::default());
                self.response.choices.insert(at, ModelChoice { index, parts, finish: None, logprobs: None, extra });
                at
            }
        };
        Ok(&mut self.response.choices[at])
    }

    fn start_part(&mut self, choice: u64, part: usize, start: &PartStart) -> Result<(), FoldError> {
        if part != self.parts_of(choice) {
            return Err(FoldError::OutOfOrder { choice, part });
        }
        if self.parts == self.limits.parts_max {
            return Err(FoldError::TooMany { of: "parts", max: self.limits.parts_max });
        }
        let new = match start {
            PartStart::Text => ContentPart::Text(TextPart::default()),
            PartStart::Refusal => ContentPart::Refusal(TextPart::default()),
            PartStart::Reasoning => ContentPart::Reasoning(ReasoningPart::default()),
            PartStart::ToolCall { id, name } => ContentPart::ToolCall(ToolCallPart {
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
                signature: None,
                cache: None,
                extra: Extra::default(),
            }),
            PartStart::Whole(part) => part.as_ref().clone(),
        };
        self.count_bytes(new.bytes())?;
        self.choice(choice)?.parts.push(new);
        self.parts += 1;
        Ok(())
    }

    fn add(&mut self, choice: u64, part: usize, delta: &PartDelta) -> Result<(), FoldError> {
        let bytes = match delta {
            PartDelta::Text(text) | PartDelta::Arguments(text) => text.len(),
            PartDelta::Signature(text) | PartDelta::Encrypted(text) => text.len(),
            PartDelta::Foreign(extra) => extra.bytes(),
        };
        let none = FoldError::NoSuchPart { choice, part };
        let at = self.position(choice).map_err(|_| none.clone())?;
        if part >= self.response.choices[at].parts.len() {
            return Err(none);
        }
        self.count_bytes(bytes)?;
        let part_of = &mut self.response.choices[at].parts[part];
        if add_to(part_of, delta) { Ok(()) } else { Err(none) }
    }
}

/// Adds to a part, and returns whether the part takes such an addition.
fn add_to(part: &mut ContentPart, delta: &PartDelta) -> bool {
    if let PartDelta::Foreign(added) = delta {
        if let Some(extra) = extra_of(part) {
            extra.append(added);
        }
        return true;
    }
    let (kept, piece) = match (part, delta) {
        (ContentPart::Text(part) | ContentPart::Refusal(part), PartDelta::Text(text)) => (&mut part.text, text),
        (ContentPart::Text(part) | ContentPart::Refusal(part), PartDelta::Signature(text)) => {
            (part.signature.get_or_insert_default(), text)
        }
        (ContentPart::Reasoning(part), PartDelta::Text(text)) => (&mut part.text, text),
        (ContentPart::Reasoning(part), PartDelta::Signature(text)) => (part.signature.get_or_insert_default(), text),
        (ContentPart::Reasoning(part), PartDelta::Encrypted(text)) => (part.encrypted.get_or_insert_default(), text),
        (ContentPart::ToolCall(part), PartDelta::Arguments(text)) => (&mut part.arguments, text),
        (ContentPart::ToolCall(part), PartDelta::Signature(text)) => (part.signature.get_or_insert_default(), text),
        _ => return false,
    };
    kept.push_str(piece);
    true
}

fn extra_of(part: &mut ContentPart) -> Option<&mut Extra> {
    match part {
        ContentPart::Text(part) | ContentPart::Refusal(part) => Some(&mut part.extra),
        ContentPart::Image { extra, .. } | ContentPart::Audio { extra, .. } => Some(extra),
        ContentPart::File(part) => Some(&mut part.extra),
        ContentPart::ToolCall(part) => Some(&mut part.extra),
        ContentPart::ToolResult(part) => Some(&mut part.extra),
        ContentPart::Reasoning(part) => Some(&mut part.extra),
        ContentPart::Foreign { .. } => None,
    }
}

/// Appends the lists of an object to those of another. Other values replace the earlier ones.
fn append(kept: &mut Value, added: &Value) {
    match (kept, added) {
        (Value::Object(kept), Value::Object(added)) => {
            for (name, value) in added {
                match (kept.get_mut(name), value) {
                    (Some(Value::Array(kept)), Value::Array(added)) => kept.extend(added.iter().cloned()),
                    (Some(_), Value::Null) => {}
                    _ => {
                        kept.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (kept, added) => *kept = added.clone(),
    }
}

/// Makes the events of a whole answer, for a server that does not stream. Folding them gives the answer again, if its
/// choices are in the order of their indexes, without the unknown fields of choices, for which streams have no event.
pub fn unfold(response: &ModelResponse) -> Vec<StreamEvent> {
    let ModelResponse { id, model, created, choices, usage, extra } = response;
    let start = StreamEvent::Start { id: id.clone(), model: model.clone(), created: *created, extra: extra.clone() };
    let mut events = vec![start];
    for choice in choices {
        let logprobs = choice.logprobs.clone();
        events.extend(logprobs.map(|logprobs| StreamEvent::Logprobs { choice: choice.index, logprobs }));
        for (part, content) in choice.parts.iter().enumerate() {
            unfold_part(choice.index, part, content, &mut events);
        }
        let reason = choice.finish.clone();
        events.extend(reason.map(|reason| StreamEvent::Finish { choice: choice.index, reason }));
    }
    events.extend(usage.clone().map(StreamEvent::Usage));
    events.push(StreamEvent::End);
    events
}

fn unfold_part(choice: u64, part: usize, content: &ContentPart, events: &mut Vec<StreamEvent>) {
    let text = |text: &String| (!text.is_empty()).then(|| PartDelta::Text(text.clone()));
    let signature = |signature: &Option<String>| signature.clone().map(PartDelta::Signature);
    let foreign = |extra: &Extra| (*extra != Extra::default()).then(|| PartDelta::Foreign(extra.clone()));
    let (start, deltas) = match content {
        ContentPart::Text(of) if of.cache.is_none() => {
            (PartStart::Text, vec![text(&of.text), signature(&of.signature), foreign(&of.extra)])
        }
        ContentPart::Refusal(of) if of.cache.is_none() => {
            (PartStart::Refusal, vec![text(&of.text), signature(&of.signature), foreign(&of.extra)])
        }
        ContentPart::Reasoning(of) => {
            let encrypted = of.encrypted.clone().map(PartDelta::Encrypted);
            (PartStart::Reasoning, vec![text(&of.text), encrypted, signature(&of.signature), foreign(&of.extra)])
        }
        ContentPart::ToolCall(of) if of.cache.is_none() => {
            let arguments = (!of.arguments.is_empty()).then(|| PartDelta::Arguments(of.arguments.clone()));
            let start = PartStart::ToolCall { id: of.id.clone(), name: of.name.clone() };
            (start, vec![arguments, signature(&of.signature), foreign(&of.extra)])
        }
        whole => (PartStart::Whole(Box::new(whole.clone())), Vec::new()),
    };
    events.push(StreamEvent::PartStart { choice, part, start });
    events.extend(deltas.into_iter().flatten().map(|delta| StreamEvent::PartDelta { choice, part, delta }));
    events.push(StreamEvent::PartEnd { choice, part });
}
