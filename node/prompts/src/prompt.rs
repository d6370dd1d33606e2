//! The stored form of a prompt, `prompt_data`: its members, with the path of the one that is wrong. Unknown members are
//! ignored here and kept in storage.

use serde_json::{Map, Value};

use crate::error::PromptError;
use crate::judge::Judge;
use crate::template::TemplateFormat;

/// Messages of a prompt, and of a request.
pub const MESSAGES_MAX: usize = 10_000;
/// Path of the stored form in errors.
pub(crate) const ROOT: &str = "prompt_data";
/// Roles that messages may have.
pub const ROLES: [&str; 7] = ["system", "developer", "user", "assistant", "tool", "function", "model"];

/// A prompt, read from its stored form.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub body: PromptBody,
    pub model: Option<String>,
    /// Name of the AI secret that the options ask for.
    pub endpoint_name: Option<String>,
    pub params: Map<String, Value>,
    pub template_format: TemplateFormat,
    /// Judge of an LLM scorer or classifier.
    pub judge: Option<Judge>,
    /// References to the functions that the server runs as tools.
    pub tool_functions: Vec<Value>,
    /// MCP servers by their names.
    pub mcp: Map<String, Value>,
    /// Preprocessor that makes the thread variables.
    pub preprocessor: Option<Value>,
}

/// What is sent, before it is rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptBody {
    Chat {
        messages: Vec<Value>,
        /// Template of a JSON array of tools.
        tools: Option<String>,
    },
    Completion {
        content: String,
    },
}

impl Prompt {
    /// Reads `prompt_data`.
    pub fn read(prompt_data: &Value) -> Result<Prompt, PromptError> {
        let Value::Object(data) = prompt_data else {
            return Err(PromptError::wrong_type(ROOT, "an object", prompt_data));
        };
        let options = PromptMember::of(data, ROOT, "options").object()?;
        let options_path = format!("{ROOT}.options");
        let option = |name| PromptMember::of(&options, &options_path, name);
        Ok(Prompt {
            body: read_body(PromptMember::of(data, ROOT, "prompt"))?,
            model: option("model").text()?.filter(|model| !model.is_empty()),
            endpoint_name: option("endpoint_name").text()?.filter(|name| !name.is_empty()),
            params: option("params").object()?,
            template_format: TemplateFormat::of(data.get("template_format")),
            judge: Judge::read(data.get("parser").unwrap_or(&Value::Null))?,
            tool_functions: PromptMember::of(data, ROOT, "tool_functions").list()?,
            mcp: PromptMember::of(data, ROOT, "mcp").object()?,
            preprocessor: data.get("preprocessor").filter(|value| !value.is_null()).cloned(),
        })
    }
}

fn read_body(member: PromptMember<'_>) -> Result<PromptBody, PromptError> {
    let path = member.path.clone();
    let prompt = member.object()?;
    let member = |name| PromptMember::of(&prompt, &path, name);
    match member("type").text()?.as_deref() {
        Some("completion") => Ok(PromptBody::Completion { content: member("content").text()?.unwrap_or_default() }),
        // a stored prompt may be null, and is a chat without messages then
        Some("chat") | None => {
            let messages = member("messages").list()?;
            if messages.len() > MESSAGES_MAX {
                return Err(PromptError::too_many(&format!("{path}.messages"), "messages", MESSAGES_MAX));
            }
            Ok(PromptBody::Chat { messages, tools: member("tools").text()? })
        }
        Some(other) => Err(PromptError::invalid(
            &format!("{path}.type"),
            format!("{other:?} is not a type of prompt: write `chat` or `completion`"),
        )),
    }
}

/// A member of an object with its path. Null is read as absent.
pub(crate) struct PromptMember<'v> {
    pub value: Option<&'v Value>,
    pub path: String,
}

impl<'v> PromptMember<'v> {
    pub fn of(object: &'v Map<String, Value>, path: &str, name: &str) -> PromptMember<'v> {
        let value = object.get(name).filter(|value| !value.is_null());
        PromptMember { value, path: format!("{path}.{name}") }
    }

    pub fn text(&self) -> Result<Option<String>, PromptError> {
        match self.value {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(PromptError::wrong_type(&self.path, "a string", other)),
        }
    }

    pub fn truth(&self) -> Result<bool, PromptError> {
        match self.value {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(*truth),
            Some(other) => Err(PromptError::wrong_type(&self.path, "a boolean", other)),
        }
    }

    pub fn object(&self) -> Result<Map<String, Value>, PromptError> {
        match self.value {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(other) => Err(PromptError::wrong_type(&self.path, "an object", other)),
        }
    }

    pub fn list(&self) -> Result<Vec<Value>, PromptError> {
        match self.value {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(other) => Err(PromptError::wrong_type(&self.path, "an array", other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_types_are_named_by_their_path() {
        let cases = [
            (json!(1), "prompt_data: expected an object, found a number"),
            (json!({"prompt": []}), "prompt_data.prompt: expected an object, found an array"),
            (
                json!({"prompt": {"type": "x"}}),
                "prompt_data.prompt.type: \"x\" is not a type of prompt: write `chat` or `completion`",
            ),
            (json!({"prompt": {"messages": {}}}), "prompt_data.prompt.messages: expected an array, found an object"),
            (json!({"prompt": {"tools": []}}), "prompt_data.prompt.tools: expected a string, found an array"),
            (
                json!({"prompt": {"type": "completion", "content": 1}}),
                "prompt_data.prompt.content: expected a string, found a number",
            ),
            (json!({"options": "x"}), "prompt_data.options: expected an object, found a string"),
            (json!({"options": {"model": 1}}), "prompt_data.options.model: expected a string, found a number"),
            (json!({"options": {"params": true}}), "prompt_data.options.params: expected an object, found a boolean"),
            (json!({"tool_functions": {}}), "prompt_data.tool_functions: expected an array, found an object"),
            (json!({"parser": 1}), "prompt_data.parser: expected an object, found a number"),
        ];
        for (data, expected) in cases {
            assert_eq!(Prompt::read(&data).expect_err(expected).to_string(), expected);
        }
    }

    #[test]
    fn absent_null_and_unknown_members_are_fine() {
        let data = json!({
            "prompt": null, "options": {"position": "0|a", "model": "", "params": null}, "parser": null, "mcp": null,
            "template_format": "other", "origin": {"prompt_id": "x"}, "tool_functions": null, "new": 1,
        });
        let prompt = Prompt::read(&data).expect("a prompt");
        assert_eq!(prompt.body, PromptBody::Chat { messages: vec![], tools: None });
        assert_eq!((prompt.model, prompt.template_format), (None, TemplateFormat::Mustache));
        assert_eq!(
            Prompt::read(&json!({"template_format": "none"})).map(|one| one.template_format),
            Ok(TemplateFormat::None)
        );
    }
}
