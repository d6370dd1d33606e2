//! Events of streamed invocations, and their encoding as server-sent events (functions.md 3).

use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Comment that keeps a silent connection open.
pub const PING: &str = ": ping\n\n";
/// Upper bound of the events that wait for their reader.
pub const EVENTS_WAITING_MAX: usize = 64;

/// Event of a streamed invocation.
#[derive(Clone, Debug, PartialEq)]
pub enum InvokeEvent {
    Start,
    /// Piece of a text answer.
    TextDelta(String),
    /// Piece of the JSON text of an answer.
    JsonDelta(String),
    /// Piece of the reasoning of a model.
    ReasoningDelta(String),
    /// Event of an inner step, such as a tool call.
    Progress {
        frame: ProgressFrame,
        inner: Box<InvokeEvent>,
    },
    Error(String),
    /// Line that the code of a function wrote.
    Console {
        stream: &'static str,
        message: String,
    },
    /// End of the stream.
    Done,
}

/// Subject of a progress event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressFrame {
    /// Row id of the inner step's span, or a random id.
    pub id: String,
    pub object_type: &'static str,
    pub format: &'static str,
    pub output_type: &'static str,
    pub name: String,
}

impl InvokeEvent {
    fn name(&self) -> &'static str {
        match self {
            InvokeEvent::Start => "start",
            InvokeEvent::TextDelta(_) => "text_delta",
            InvokeEvent::JsonDelta(_) => "json_delta",
            InvokeEvent::ReasoningDelta(_) => "reasoning_delta",
            InvokeEvent::Progress { .. } => "progress",
            InvokeEvent::Error(_) => "error",
            InvokeEvent::Console { .. } => "console",
            InvokeEvent::Done => "done",
        }
    }

    fn data(&self) -> String {
        match self {
            InvokeEvent::Start | InvokeEvent::Done => String::new(),
            // Clients parse the data of a text or an error as a JSON string.
            InvokeEvent::TextDelta(text) | InvokeEvent::ReasoningDelta(text) | InvokeEvent::Error(text) => {
                Value::from(text.as_str()).to_string()
            }
            // A line break between JSON tokens may become a space, and JSON strings contain no line breaks (F-21).
            InvokeEvent::JsonDelta(fragment) => fragment.replace(['\n', '\r'], " "),
            InvokeEvent::Console { stream, message } => json!({"stream": stream, "message": message}).to_string(),
            InvokeEvent::Progress { frame, inner } => {
                let ProgressFrame { id, object_type, format, output_type, name } = frame;
                let data = json!({"id": id, "object_type": object_type, "format": format, "output_type": output_type,
                    "name": name, "event": inner.name(), "data": inner.data()});
                data.to_string()
            }
        }
    }

    /// Encodes the event as three lines: its name, its data, and an empty line.
    pub fn encode(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.name(), self.data())
    }
}

/// Sender for the events of an invocation. Events of an inner invocation become progress events of the outer one.
#[derive(Clone, Debug, Default)]
pub struct EventOutput {
    /// `None` if the caller requests no events.
    sender: Option<mpsc::Sender<InvokeEvent>>,
    frame: Option<ProgressFrame>,
}

impl EventOutput {
    pub fn new(sender: mpsc::Sender<InvokeEvent>) -> EventOutput {
        EventOutput { sender: Some(sender), frame: None }
    }

    /// Returns whether the caller requests events.
    pub fn is_wanted(&self) -> bool {
        self.sender.is_some()
    }

    /// Returns the output for an inner invocation.
    pub fn inside(&self, frame: ProgressFrame) -> EventOutput {
        EventOutput { sender: self.sender.clone(), frame: Some(frame) }
    }

    /// Sends an event. The event is lost if the reader has disconnected, which ends the invocation elsewhere.
    pub async fn send(&self, event: InvokeEvent) {
        let Some(sender) = &self.sender else { return };
        let event = match &self.frame {
            Some(frame) => InvokeEvent::Progress { frame: frame.clone(), inner: Box::new(event) },
            None => event,
        };
        drop(sender.send(event).await);
    }

    /// Sends a whole value as one event.
    pub async fn send_value(&self, value: &Value, is_text: bool) {
        let event = match value {
            Value::String(text) if is_text => InvokeEvent::TextDelta(text.clone()),
            value => InvokeEvent::JsonDelta(value.to_string()),
        };
        self.send(event).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_text_of_the_contract() {
        let frame = ProgressFrame {
            id: "i".into(),
            object_type: "tool",
            format: "code",
            output_type: "any",
            name: "calc".into(),
        };
        let progress = |inner| InvokeEvent::Progress { frame: frame.clone(), inner: Box::new(inner) };
        let about = r#""id":"i","object_type":"tool","format":"code","output_type":"any","name":"calc""#;
        let cases = [
            (InvokeEvent::Start, "event: start\ndata: \n\n".to_owned()),
            (InvokeEvent::TextDelta("Hel".into()), "event: text_delta\ndata: \"Hel\"\n\n".to_owned()),
            (InvokeEvent::TextDelta("lo\n".into()), "event: text_delta\ndata: \"lo\\n\"\n\n".to_owned()),
            (InvokeEvent::JsonDelta("{\"a\":\r\n1}".into()), "event: json_delta\ndata: {\"a\":  1}\n\n".to_owned()),
            (InvokeEvent::ReasoningDelta("hm".into()), "event: reasoning_delta\ndata: \"hm\"\n\n".to_owned()),
            (InvokeEvent::Error("a \"b\"".into()), "event: error\ndata: \"a \\\"b\\\"\"\n\n".to_owned()),
            (InvokeEvent::Done, "event: done\ndata: \n\n".to_owned()),
            (
                InvokeEvent::Console { stream: "stdout", message: "a \"b\"".into() },
                "event: console\ndata: {\"stream\":\"stdout\",\"message\":\"a \\\"b\\\"\"}\n\n".to_owned(),
            ),
            (
                progress(InvokeEvent::Start),
                format!("event: progress\ndata: {{{about},\"event\":\"start\",\"data\":\"\"}}\n\n"),
            ),
            (
                progress(InvokeEvent::JsonDelta("4".into())),
                format!("event: progress\ndata: {{{about},\"event\":\"json_delta\",\"data\":\"4\"}}\n\n"),
            ),
        ];
        for (event, text) in cases {
            assert_eq!(event.encode(), text);
        }
    }

    #[test]
    fn the_data_of_every_event_is_one_line() {
        for text in ["a\nb", "\r\n", "\u{2028}", ""] {
            for event in [
                InvokeEvent::TextDelta(text.into()),
                InvokeEvent::JsonDelta(text.into()),
                InvokeEvent::Error(text.into()),
            ] {
                assert_eq!(event.encode().lines().count(), 3, "{event:?}");
            }
        }
    }
}
