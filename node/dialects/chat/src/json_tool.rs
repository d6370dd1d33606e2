//! Answers of a JSON schema that came as the call of a tool, because the server has no such format.

use assay_node_dialects::form::{
    ContentPart, FinishReason, ModelResponse, PartDelta, PartStart, StreamEvent, TextPart,
};

/// Name of the tool whose arguments are the answer.
pub const JSON_TOOL: &str = "json";

/// Makes calls of [`JSON_TOOL`] the text of the answer.
pub fn text_of_json_tool(response: &mut ModelResponse) {
    for choice in &mut response.choices {
        let mut is_found = false;
        for part in &mut choice.parts {
            if let ContentPart::ToolCall(call) = part
                && call.name == JSON_TOOL
            {
                let text = std::mem::take(&mut call.arguments);
                *part = ContentPart::Text(TextPart { text, ..TextPart::default() });
                is_found = true;
            }
        }
        if is_found && choice.finish == Some(FinishReason::ToolCalls) {
            choice.finish = Some(FinishReason::Stop);
        }
    }
}

/// Makes calls of [`JSON_TOOL`] in a stream its text.
#[derive(Debug, Default)]
pub struct JsonToolStream {
    /// Choice and part of the calls, at most one a choice.
    calls: Vec<(u64, usize)>,
}

impl JsonToolStream {
    /// Returns an event as the client shall see it.
    pub fn map(&mut self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::PartStart { choice, part, start: PartStart::ToolCall { name, .. } }
                if name == JSON_TOOL && !self.calls.iter().any(|(of, _)| *of == choice) =>
            {
                self.calls.push((choice, part));
                StreamEvent::PartStart { choice, part, start: PartStart::Text }
            }
            StreamEvent::PartDelta { choice, part, delta: PartDelta::Arguments(text) }
                if self.calls.contains(&(choice, part)) =>
            {
                StreamEvent::PartDelta { choice, part, delta: PartDelta::Text(text) }
            }
            StreamEvent::Finish { choice, reason: FinishReason::ToolCalls }
                if self.calls.iter().any(|(of, _)| *of == choice) =>
            {
                StreamEvent::Finish { choice, reason: FinishReason::Stop }
            }
            event => event,
        }
    }
}
