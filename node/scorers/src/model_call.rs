//! Requests to a model, and what is read from its responses.

use serde_json::{Map, Value, json};

use crate::arguments::ScorerArguments;
use crate::error::ScorerError;

/// Operation of the gateway that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOperation {
    ChatCompletions,
    Embeddings,
    Moderations,
}

/// Request to a model: an operation, and its body in OpenAI's form.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    pub operation: ModelOperation,
    pub body: Value,
}

/// Models for calls that name none (F-53).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultModels {
    pub chat: String,
    pub embedding: String,
    /// Model for facets that name none, or a model of the hosted service.
    pub facet: Option<String>,
}

impl Default for DefaultModels {
    fn default() -> DefaultModels {
        DefaultModels { chat: "gpt-5-mini".to_owned(), embedding: "text-embedding-ada-002".to_owned(), facet: None }
    }
}

/// Options of chat requests that arguments pass on.
pub(crate) const CHAT_OPTIONS: [&str; 5] =
    ["temperature", "max_tokens", "reasoning_effort", "reasoning_enabled", "reasoning_budget"];

/// Tool that a model has to call, whose arguments are the result.
#[derive(Debug)]
pub(crate) struct ForcedTool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// What the model has to do, before the data.
    pub(crate) instructions: &'static str,
    pub(crate) parameters: fn() -> Value,
}

/// Model and options of the chat requests of one run.
#[derive(Clone, Debug)]
pub(crate) struct ChatOptions {
    model: String,
    options: Map<String, Value>,
}

impl ChatOptions {
    pub(crate) fn new(
        scorer: &'static str,
        arguments: &ScorerArguments<'_>,
        models: &DefaultModels,
    ) -> Result<ChatOptions, ScorerError> {
        let model = arguments.text(scorer, "model")?.unwrap_or(&models.chat).to_owned();
        let given = CHAT_OPTIONS.iter().filter_map(|name| Some(((*name).to_owned(), arguments.get(name)?.clone())));
        Ok(ChatOptions { model, options: given.collect() })
    }

    /// Returns a request that forces one call of the tool. Each part of the data is between tags of its name.
    pub(crate) fn call(&self, tool: &ForcedTool, data: &[(&str, &str)]) -> ModelCall {
        let mut prompt = tool.instructions.to_owned();
        for (name, text) in data {
            prompt.push_str(&format!("\n\n<{name}>\n{text}\n</{name}>"));
        }
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("messages".to_owned(), json!([{"role": "user", "content": prompt}]));
        let function = json!({"name": tool.name, "description": tool.description, "parameters": (tool.parameters)()});
        body.insert("tools".to_owned(), json!([{"type": "function", "function": function}]));
        body.insert("tool_choice".to_owned(), json!({"type": "function", "function": {"name": tool.name}}));
        body.extend(self.options.clone());
        ModelCall { operation: ModelOperation::ChatCompletions, body: Value::Object(body) }
    }
}

/// Returns the arguments of the call that a request forced.
pub(crate) fn tool_arguments(scorer: &'static str, tool: &ForcedTool, response: &Value) -> Result<Value, ScorerError> {
    const FUNCTION: &str = "choices.0.message.tool_calls.0.function";
    let function = &response["choices"][0]["message"]["tool_calls"][0]["function"];
    if function["name"].as_str() != Some(tool.name) {
        return Err(ScorerError::response(scorer, format!("{FUNCTION}.name"), "the name of the forced tool"));
    }
    let arguments = function["arguments"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let arguments = arguments.filter(Value::is_object);
    arguments
        .ok_or_else(|| ScorerError::response(scorer, format!("{FUNCTION}.arguments"), "the JSON text of an object"))
}

/// Returns a list within the arguments of a tool call.
pub(crate) fn tool_list<'a>(
    scorer: &'static str,
    arguments: &'a Value,
    name: &str,
) -> Result<&'a [Value], ScorerError> {
    arguments[name].as_array().map(Vec::as_slice).ok_or_else(|| ScorerError::response(scorer, name, "an array"))
}

/// Returns a list of texts within the arguments of a tool call.
pub(crate) fn tool_texts(scorer: &'static str, arguments: &Value, name: &str) -> Result<Vec<String>, ScorerError> {
    let texts = tool_list(scorer, arguments, name)?.iter().map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or_else(|| ScorerError::response(scorer, name, "an array of strings"))
}

/// Returns a verdict of a model: 0, 1, or a number between them.
pub(crate) fn verdict(scorer: &'static str, holder: &Value, name: &str) -> Result<f64, ScorerError> {
    let number = holder[name].as_f64().or(holder[name].as_bool().map(f64::from));
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| ScorerError::response(scorer, name, "0 or 1"))
}

/// Returns the mean of the verdicts in a list; 0 for none.
pub(crate) fn mean_verdict(scorer: &'static str, items: &[Value], name: &str) -> Result<f64, ScorerError> {
    let verdicts: Vec<f64> = items.iter().map(|item| verdict(scorer, item, name)).collect::<Result<_, _>>()?;
    Ok(if verdicts.is_empty() { 0.0 } else { verdicts.iter().sum::<f64>() / verdicts.len() as f64 })
}
