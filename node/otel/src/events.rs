//! Events of a span: exceptions become its error, messages its input and output, and others stay events.

use serde_json::{Map, Value, json};

use crate::conventions::{EVALUATION_EVENT, content_of_event, message_of_event, moves_to_span};
use crate::draft::Draft;
use crate::proto::{Event, KeyValue};
use crate::value;

/// Events of a span that is being converted.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    events: Vec<MessageEvent>,
    preserves: bool,
}

#[derive(Debug)]
struct MessageEvent {
    name: String,
    nanos: u64,
    attributes: Map<String, Value>,
    is_taken: bool,
}

/// Moves attributes of certain events to the span. They precede those of the span, which win.
pub(crate) fn move_to_span(events: &mut Vec<Event>, attributes: &mut Vec<KeyValue>) {
    if !events.iter().any(|event| moves_to_span(&event.name)) {
        return;
    }
    let (moved, kept) = std::mem::take(events).into_iter().partition(|event| moves_to_span(&event.name));
    *events = kept;
    let mut all: Vec<KeyValue> = Vec::new();
    for event in moved {
        all.extend(event.attributes);
    }
    all.append(attributes);
    *attributes = all;
}

impl Messages {
    pub fn of(events: Vec<Event>, depth: usize, preserves: bool) -> Result<Messages, String> {
        let mut kept = Vec::with_capacity(events.len());
        for Event { time_unix_nano: nanos, name, attributes } in events {
            let Some(attributes) = value::of_pairs(attributes, depth) else {
                return Err(format!("an attribute of the event {name:?} is nested more than {depth} levels"));
            };
            kept.push(MessageEvent { name, nanos, attributes, is_taken: false });
        }
        Ok(Messages { events: kept, preserves })
    }

    pub fn are_there(&self) -> bool {
        self.events.iter().any(|event| {
            let said = (event.name.as_str(), &event.attributes);
            message_of_event(said.0, said.1).or_else(|| content_of_event(said.0, said.1)).is_some()
        })
    }

    /// Fills fields from messages. If a field has a value, its events stay events.
    pub fn fill(&mut self, draft: &mut Draft) {
        let (wants_input, wants_output) = (draft.input.is_none(), draft.output.is_none());
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for event in &mut self.events {
            if event.name == EVALUATION_EVENT {
                score(&event.attributes, draft);
                continue;
            }
            let wanted = |is_input: bool| if is_input { wants_input } else { wants_output };
            let message = message_of_event(&event.name, &event.attributes);
            let content = content_of_event(&event.name, &event.attributes);
            if let Some((message, is_input)) = message.filter(|(_, is_input)| wanted(*is_input)) {
                if is_input { &mut input } else { &mut output }.push(message);
                event.is_taken = true;
            } else if let Some((content, is_input)) = content.filter(|(_, is_input)| wanted(*is_input)) {
                let list = if is_input { &mut input } else { &mut output };
                match content {
                    Value::Array(messages) => list.extend(messages),
                    other => list.push(other),
                }
                event.is_taken = true;
            }
        }
        for (field, list) in [(&mut draft.input, input), (&mut draft.output, output)] {
            if !list.is_empty() {
                *field = Some(Value::Array(list));
            }
        }
    }

    /// Returns the text of the last exception with its stack trace, which is removed from the event.
    pub fn exception(&mut self) -> Option<String> {
        let event = self.events.iter_mut().rfind(|event| event.name == "exception")?;
        let text = |name: &str| event.attributes.get(name).and_then(Value::as_str).map(str::to_owned);
        let (kind, message) = (text("exception.type"), text("exception.message"));
        let said: Vec<String> = [kind, message].into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let said = said.join(": ");
        let stack = text("exception.stacktrace").filter(|stack| !stack.is_empty());
        if stack.is_some() && !self.preserves {
            event.attributes.shift_remove("exception.stacktrace");
        }
        match stack {
            Some(stack) if stack.contains(&said) => Some(stack),
            Some(stack) => Some(format!("{said}\n{stack}")),
            None if said.is_empty() => None,
            None => Some(said),
        }
    }

    /// Returns the remaining events in their form in rows.
    pub fn rest(self) -> Vec<Value> {
        let preserves = self.preserves;
        let rest = self.events.into_iter().filter(|event| preserves || !event.is_taken);
        rest.map(|event| json!({ "name": event.name, "time": value::iso(event.nanos), "attributes": event.attributes }))
            .collect()
    }
}

/// Adds an evaluation as a score if it is between 0 and 1. Other scales stay in the event.
fn score(attributes: &Map<String, Value>, draft: &mut Draft) {
    let name = attributes.get("gen_ai.evaluation.name").and_then(Value::as_str);
    let score = attributes
        .get("gen_ai.evaluation.score.value")
        .filter(|score| score.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)));
    if let (Some(name), Some(score)) = (name, score) {
        draft.scores.entry(name).or_insert_with(|| score.clone());
    }
}
