//! Streaming of model answers: which pieces are sent at once, and which wait for the whole answer.

use assay_node_prompts::{InvokeMode, is_structured};
use serde_json::{Map, Value};

use crate::error::{InvokeError, InvokeErrorKind};
use crate::events::InvokeEvent;
use crate::invoker::{FunctionRun, Invoker};
use crate::services::{CacheUse, ModelDelta, ModelRequest};
use assay_node_scorers::ModelOperation;

/// Treatment of the pieces of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LivePieces {
    Text,
    /// Pieces are sent as fragments of the requested JSON text.
    Json,
    /// Pieces wait for the whole answer, because a later tool call may change the value.
    Held,
}

impl LivePieces {
    /// Returns how the answer to a request is streamed.
    pub fn of(request: &Map<String, Value>, mode: InvokeMode) -> LivePieces {
        let has_tools = request.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        match (has_tools, mode) {
            (true, _) => LivePieces::Held,
            (false, InvokeMode::Text) => LivePieces::Text,
            (false, _) if is_structured(request) => LivePieces::Json,
            // A text that is not JSON becomes a JSON string.
            (false, InvokeMode::Json) => LivePieces::Held,
            (false, InvokeMode::Auto | InvokeMode::Parallel) => LivePieces::Text,
        }
    }
}

/// Returns whether the value of an answer is sent as text.
pub(crate) fn is_text_answer(request: &Map<String, Value>, message: &Value, mode: InvokeMode) -> bool {
    match mode {
        InvokeMode::Text => true,
        InvokeMode::Json => false,
        InvokeMode::Auto | InvokeMode::Parallel => !has_calls(message) && !is_structured(request),
    }
}

pub(crate) fn has_calls(message: &Value) -> bool {
    message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// Chat request of a function.
#[derive(Clone, Debug)]
pub(crate) struct ChatCall {
    pub body: Map<String, Value>,
    pub cache: CacheUse,
    pub endpoint_name: Option<String>,
    pub prompt: Option<Value>,
    /// Treatment of the pieces, or `None` if only the whole answer is needed.
    pub live: Option<LivePieces>,
}

/// Message of an answer, and whether its pieces were sent.
#[derive(Debug)]
pub(crate) struct ChatMessage {
    pub message: Value,
    pub is_sent: bool,
}

impl Invoker {
    /// Calls a chat model, and sends the pieces of its answer as events.
    pub(crate) async fn ask(&self, run: &FunctionRun, call: ChatCall) -> Result<ChatMessage, InvokeError> {
        let request = ModelRequest {
            operation: ModelOperation::ChatCompletions,
            body: call.body,
            is_stream: call.live.is_some() && run.output.is_wanted(),
            cache: call.cache,
            endpoint_name: call.endpoint_name,
            scope: run.scope.clone(),
            prompt: call.prompt,
        };
        let mut answer = self.services.call(request).await?;
        let mut is_sent = false;
        while let Some(delta) = answer.next().await? {
            let event = match (delta, call.live) {
                (ModelDelta::Reasoning(text), _) => InvokeEvent::ReasoningDelta(text),
                (ModelDelta::Text(text), Some(LivePieces::Text)) => InvokeEvent::TextDelta(text),
                (ModelDelta::Text(text), Some(LivePieces::Json)) => InvokeEvent::JsonDelta(text),
                (ModelDelta::Text(_), Some(LivePieces::Held) | None) => continue,
            };
            is_sent |= !matches!(event, InvokeEvent::ReasoningDelta(_));
            run.output.send(event).await;
        }
        let mut response = answer.into_response();
        run.note_usage(&response);
        match response.pointer_mut("/choices/0/message").map(Value::take) {
            Some(message @ Value::Object(_)) => Ok(ChatMessage { message, is_sent }),
            _ => Err(InvokeError::new(InvokeErrorKind::Failed, "the model's answer has no message")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_go_out_when_nothing_else_can_become_of_them() {
        let (auto, parallel, json, text) = (InvokeMode::Auto, InvokeMode::Parallel, InvokeMode::Json, InvokeMode::Text);
        let structured = json!({"response_format": {"type": "json_object"}});
        let tools = json!({"tools": [{}]});
        let cases = [
            (json!({}), auto, LivePieces::Text),
            (json!({"tools": []}), parallel, LivePieces::Text),
            (json!({}), json, LivePieces::Held),
            (structured.clone(), auto, LivePieces::Json),
            (structured.clone(), json, LivePieces::Json),
            (structured, text, LivePieces::Text),
            (tools.clone(), auto, LivePieces::Held),
            (tools, text, LivePieces::Held),
        ];
        for (request, mode, expected) in cases {
            let found = LivePieces::of(request.as_object().expect("an object"), mode);
            assert_eq!(found, expected, "{request} {mode:?}");
        }
    }
}
