//! Messages of a prompt: their texts are rendered, and parts with attachments are expanded.

use serde_json::{Map, Value};

use crate::attachments::{ATTACHMENTS_MAX, AttachmentSlot, RenderedPart, file_part, image_parts};
use crate::error::PromptError;
use crate::prompt::{MESSAGES_MAX, ROLES};
use crate::template::TextRenderer;

/// Messages that are rendered, and the attachments that they wait for.
#[derive(Debug, Default)]
pub(crate) struct RenderedMessages {
    pub messages: Vec<Value>,
    pub slots: Vec<AttachmentSlot>,
}

impl RenderedMessages {
    /// Renders a message of the prompt and appends it.
    pub fn push(&mut self, message: &Value, path: &str, renderer: &mut TextRenderer<'_>) -> Result<(), PromptError> {
        let mut message = checked(message, path)?.clone();
        if let Some(content) = message.shift_remove("content")
            && let Some(content) = self.content(&content, &format!("{path}.content"), renderer)?
        {
            // content stays behind the role, where readers expect it
            message.insert("content".to_owned(), content);
        }
        if let Some(Value::String(id)) = message.get("tool_call_id") {
            let id = renderer.render(&format!("{path}.tool_call_id"), id)?;
            message.insert("tool_call_id".to_owned(), id.into());
        }
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            for (index, call) in calls.iter_mut().enumerate() {
                render_call(call, &format!("{path}.tool_calls[{index}]"), renderer)?;
            }
        }
        self.messages.push(Value::Object(message));
        Ok(())
    }

    /// Appends messages of a request as they are. Their system messages are left out if the prompt has one.
    pub fn extend(&mut self, messages: &[Value]) -> Result<(), PromptError> {
        if self.messages.len() + messages.len() > MESSAGES_MAX {
            return Err(PromptError::too_many("messages", "messages", MESSAGES_MAX));
        }
        let has_system = self.messages.iter().any(|message| role_of(message) == "system");
        for (index, message) in messages.iter().enumerate() {
            checked(message, &format!("messages[{index}]"))?;
            if !(has_system && role_of(message) == "system") {
                self.messages.push(message.clone());
            }
        }
        Ok(())
    }

    /// Returns the rendered content; none if there is nothing to send.
    fn content(
        &mut self,
        content: &Value,
        path: &str,
        renderer: &mut TextRenderer<'_>,
    ) -> Result<Option<Value>, PromptError> {
        match content {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => Ok(Some(Value::String(renderer.render(path, text)?))),
            Value::Array(parts) => {
                let mut rendered = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    for RenderedPart { part, slot } in render_part(part, &format!("{path}[{index}]"), renderer)? {
                        if let Some(AttachmentSlot { reference, pointer }) = slot {
                            let message = self.messages.len();
                            let pointer = format!("/{message}/content/{}{pointer}", rendered.len());
                            self.slots.push(AttachmentSlot { reference, pointer });
                        }
                        rendered.push(part);
                    }
                    if self.slots.len() > ATTACHMENTS_MAX {
                        return Err(PromptError::too_many(path, "attachments", ATTACHMENTS_MAX));
                    }
                }
                Ok(Some(Value::Array(rendered)))
            }
            other => Err(PromptError::wrong_type(path, "a string or an array of parts", other)),
        }
    }
}

pub(crate) fn role_of(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the members of a message with a valid role.
fn checked<'m>(message: &'m Value, path: &str) -> Result<&'m Map<String, Value>, PromptError> {
    let Value::Object(members) = message else {
        return Err(PromptError::wrong_type(path, "an object", message));
    };
    match members.get("role") {
        Some(Value::String(role)) if ROLES.contains(&role.as_str()) => Ok(members),
        Some(Value::String(role)) => {
            let why = format!("{role:?} is not a role: write one of {}", ROLES.join(", "));
            Err(PromptError::invalid(&format!("{path}.role"), why))
        }
        other => Err(PromptError::wrong_type(&format!("{path}.role"), "a string", other.unwrap_or(&Value::Null))),
    }
}

fn render_part(part: &Value, path: &str, renderer: &mut TextRenderer<'_>) -> Result<Vec<RenderedPart>, PromptError> {
    let Value::Object(members) = part else {
        return Err(PromptError::wrong_type(path, "an object", part));
    };
    match members.get("type").and_then(Value::as_str) {
        Some("text") => {
            let mut members = members.clone();
            let text = match members.get("text") {
                Some(Value::String(text)) => renderer.render(&format!("{path}.text"), text)?,
                None => String::new(),
                Some(other) => return Err(PromptError::wrong_type(&format!("{path}.text"), "a string", other)),
            };
            members.insert("text".to_owned(), text.into());
            Ok(vec![RenderedPart::plain(Value::Object(members))])
        }
        Some("image_url") => image_parts(members, path, renderer),
        Some("file") => Ok(vec![file_part(members, path, renderer)?]),
        // parts of newer clients go to the model as they are
        _ => Ok(vec![RenderedPart::plain(part.clone())]),
    }
}

fn render_call(call: &mut Value, path: &str, renderer: &mut TextRenderer<'_>) -> Result<(), PromptError> {
    for pointer in ["/id", "/function/name", "/function/arguments"] {
        if let Some(Value::String(template)) = call.pointer_mut(pointer) {
            *template = renderer.render(&format!("{path}{}", pointer.replace('/', ".")), template)?;
        }
    }
    Ok(())
}
