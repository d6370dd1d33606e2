//! Assembly of one chat request from a prompt and the arguments of an invocation.

use serde_json::{Map, Value, json};

use crate::attachments::{AttachmentReference, AttachmentSlot};
use crate::error::PromptError;
use crate::judge::JudgeForm;
use crate::messages::RenderedMessages;
use crate::params::{ParamNames, PromptCacheMode, cache_mode, request_params};
use crate::prompt::{Prompt, PromptBody, ROOT};
use crate::template::TextRenderer;

/// Tools that the text of a prompt defines.
pub const TOOLS_MAX: usize = 1000;

/// What an invocation adds to its prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptInvocation {
    /// Variables of the templates, an object.
    pub variables: Value,
    /// Messages to append, which are not rendered.
    pub messages: Vec<Value>,
    /// Refuse templates that mention variables that are not there.
    pub is_strict: bool,
    pub param_names: ParamNames,
    /// How a judge is asked, if the prompt has one.
    pub judge_form: JudgeForm,
}

/// A chat request that waits for its attachments.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatDraft {
    body: Map<String, Value>,
    slots: Vec<AttachmentSlot>,
    cache: PromptCacheMode,
    endpoint_name: Option<String>,
}

/// A chat request for the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// `model`, `messages`, `tools` and params, as in the API of chat completions.
    pub body: Map<String, Value>,
    pub cache: PromptCacheMode,
    /// Name of the AI secret that the prompt asks for.
    pub endpoint_name: Option<String>,
}

/// Makes the chat request of a prompt. A completion prompt is one user message (F-26).
pub fn assemble(prompt: &Prompt, invocation: &PromptInvocation) -> Result<ChatDraft, PromptError> {
    let model = prompt.model.clone().ok_or(PromptError::NoModel)?;
    let renderer = TextRenderer::new(prompt.template_format, &invocation.variables, invocation.is_strict);
    let mut renderer = if prompt.judge.is_some() { renderer.with_transcripts() } else { renderer };
    let (messages, tools) = match &prompt.body {
        PromptBody::Chat { messages, tools } => {
            let mut rendered = RenderedMessages::default();
            for (index, message) in messages.iter().enumerate() {
                rendered.push(message, &format!("{ROOT}.prompt.messages[{index}]"), &mut renderer)?;
            }
            rendered.extend(&invocation.messages)?;
            (rendered, read_tools(tools.as_deref().unwrap_or_default(), &mut renderer)?)
        }
        PromptBody::Completion { .. } if !invocation.messages.is_empty() => {
            return Err(PromptError::MessagesForCompletion);
        }
        PromptBody::Completion { content } => {
            let text = renderer.render(&format!("{ROOT}.prompt.content"), content)?;
            let messages = vec![json!({"role": "user", "content": text})];
            (RenderedMessages { messages, slots: Vec::new() }, Vec::new())
        }
    };
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("messages".to_owned(), messages.messages.into());
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    for (name, value) in request_params(&prompt.params, invocation.param_names, &mut renderer)? {
        body.entry(name).or_insert(value);
    }
    if let Some(judge) = &prompt.judge {
        judge.ask(&mut body, invocation.judge_form);
    }
    let (slots, endpoint_name) = (messages.slots, prompt.endpoint_name.clone());
    Ok(ChatDraft { body, slots, cache: cache_mode(&prompt.params)?, endpoint_name })
}

impl ChatDraft {
    /// Returns the attachments whose bytes the request needs, in the order in which [`ChatDraft::fill`] takes them.
    pub fn attachments(&self) -> impl ExactSizeIterator<Item = &AttachmentReference> {
        self.slots.iter().map(|slot| &slot.reference)
    }

    /// Makes the request. `data_url` is asked for the `data:` URL of each attachment in turn.
    pub fn fill<E>(
        self,
        mut data_url: impl FnMut(&AttachmentReference) -> Result<String, E>,
    ) -> Result<ChatRequest, E> {
        let mut body = self.body;
        if let Some(mut messages) = body.get_mut("messages").map(Value::take) {
            for slot in &self.slots {
                let place =
                    messages.pointer_mut(&slot.pointer).expect("a slot points into the messages of its request");
                *place = Value::String(data_url(&slot.reference)?);
            }
            body.insert("messages".to_owned(), messages);
        }
        Ok(ChatRequest { body, cache: self.cache, endpoint_name: self.endpoint_name })
    }
}

/// Returns the tools that the text of a prompt defines.
fn read_tools(template: &str, renderer: &mut TextRenderer<'_>) -> Result<Vec<Value>, PromptError> {
    let path = format!("{ROOT}.prompt.tools");
    let template = template.trim();
    if template.is_empty() {
        return Ok(Vec::new());
    }
    let text = renderer.render(&path, template)?;
    let not_json = |why: serde_json::Error| PromptError::NotJson { path: path.clone(), why: why.to_string() };
    let tools = match serde_json::from_str(&text).map_err(not_json)? {
        Value::Array(tools) => tools,
        other => return Err(PromptError::wrong_type(&path, "an array", &other)),
    };
    if tools.len() > TOOLS_MAX {
        return Err(PromptError::too_many(&path, "tools", TOOLS_MAX));
    }
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Value::Object(_) = tool else { return Err(PromptError::wrong_type(&path, "an object", tool)) };
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            return Err(PromptError::invalid(&format!("{path}.type"), "a tool has the type `function`"));
        }
        let name = tool.pointer("/function/name").unwrap_or(&Value::Null);
        if name.as_str().is_none_or(str::is_empty) {
            return Err(PromptError::wrong_type(&format!("{path}.function.name"), "a string that is not empty", name));
        }
    }
    Ok(tools)
}
