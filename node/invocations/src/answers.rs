//! Answers of models on their way: which of their pieces go out at once, and which wait for the whole answer.

use assay_node_prompts::{InvokeMode, is_structured};
use serde_json::{Map, Value};

use crate::error::{InvokeError, InvokeErrorKind};
use crate::events::InvokeEvent;
use crate::invoker::{FunctionRun, Invoker};
use crate::services::{CacheUse, ModelDelta, ModelRequest};
use assay_node_scorers::ModelOperation;

/// What becomes of the pieces of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LivePieces {
    Text,
    /// Fragments of the JSON text that the request asks for.
    Json,
    /// They wait: a call of a tool may follow, which makes something else of the answer.
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
            // a text that is no JSON becomes a JSON string
            (false, InvokeMode::Json) => LivePieces::Held,
            (false, InvokeMode::Auto | InvokeMode::Parallel) => LivePieces::Text,
        }
    }
}

/// Returns whether the value of an answer is sent as a text.
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

/// A chat request of a function.
#[derive(Clone, Debug)]
pub(crate) struct ChatCall {
    pub body: Map<String, Value>,
    pub cache: CacheUse,
    pub endpoint_name: Option<String>,
    pub prompt: Option<Value>,
    /// How the answer is streamed; none if it is needed whole only.
    pub live: Option<LivePieces>,
}

/// The message of an answer, and whether its pieces went out.
#[derive(Debug)]
pub(crate) struct ChatMessage {
    pub message: Value,
    pub is_sent: bool,
}

impl Invoker {
    /// Asks a chat model.
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
