//! Prompts of Langfuse: each version with its labels.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::error::ImportError;
use crate::fields::{list, object, text, texts};
use crate::item::{NeutralItem, NeutralPrompt};
use crate::source::{SourcePage, SourceTask};

/// Label that the server itself keeps on the newest version.
const LATEST: &str = "latest";
/// Parameters of models that Assay knows by the same name.
const PARAMETERS: [&str; 8] = [
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "stop",
];

/// Adds a task for each version on a page of the list, oldest first.
pub(super) fn list_page(body: &Value, page: &mut SourcePage) {
    for prompt in list(body, "data") {
        let Some(name) = text(prompt, "name") else { continue };
        let mut versions: Vec<u64> = list(prompt, "versions").iter().filter_map(Value::as_u64).collect();
        versions.sort_unstable();
        for version in versions {
            let about = json!({"name": name, "version": version.to_string()});
            page.next.push(SourceTask::about("prompt", about));
        }
    }
}

/// Adds a version of a prompt.
pub(super) fn version(task: &SourceTask, body: &Value, page: &mut SourcePage) -> Result<(), ImportError> {
    let prompt = match body.get("prompt") {
        Some(Value::String(content)) => json!({"type": "completion", "content": content}),
        Some(Value::Array(messages)) => {
            let messages: Vec<Value> = messages.iter().filter_map(|message| chat_message(message, page)).collect();
            json!({"type": "chat", "messages": messages})
        }
        _ => {
            let why = "it has no prompt".to_owned();
            return Err(ImportError::Malformed { source_name: NAME, what: task.to_string(), why });
        }
    };
    let config = object(body, "config").cloned().unwrap_or_default();
    let mut data = json!({"prompt": prompt});
    let parameters = config.iter().filter(|(name, _)| PARAMETERS.contains(&name.as_str()));
    let parameters: Map<String, Value> = parameters.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(model) = config.get("model").and_then(Value::as_str) {
        data["options"] = json!({"model": model, "params": parameters});
    } else if !parameters.is_empty() {
        data["options"] = json!({"params": parameters});
    }
    let mut metadata = Map::new();
    if !config.is_empty() {
        metadata.insert("config".to_owned(), Value::Object(config));
    }
    if let Some(message) = text(body, "commitMessage") {
        metadata.insert("commit_message".to_owned(), Value::from(message));
    }
    page.items.push(NeutralItem::Prompt(Box::new(NeutralPrompt {
        name: task.text("name").to_owned(),
        description: None,
        version: task.text("version").to_owned(),
        prompt_data: data,
        tags: texts(body, "tags"),
        labels: texts(body, "labels").into_iter().filter(|label| label != LATEST).collect(),
        metadata,
    })));
    Ok(())
}

/// Converts a message. A placeholder, which stands for several messages, becomes a variable in one message.
fn chat_message(message: &Value, page: &mut SourcePage) -> Option<Value> {
    if text(message, "type") == Some("placeholder") {
        page.note("placeholders for messages in prompts, which become a variable in a message");
        return Some(json!({"role": "user", "content": format!("{{{{{}}}}}", text(message, "name")?)}));
    }
    let role = text(message, "role")?;
    Some(json!({"role": role, "content": message.get("content").cloned().unwrap_or_default()}))
}
