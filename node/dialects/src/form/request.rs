//! Requests to a model.

use serde_json::{Map, Value};

use super::{CacheControl, ContentPart, Extra};

/// Request for an answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    pub model: String,
    /// Instructions are messages of the roles system and developer, in their order.
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDefinition>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    pub output_format: Option<OutputFormat>,
    pub sampling: Sampling,
    pub max_output_tokens: Option<u64>,
    pub stop: Vec<String>,
    pub reasoning: Option<ReasoningSettings>,
    pub stream: bool,
    /// Whether the client wants a last event with the usage; only chat completions ask.
    pub include_usage: bool,
    /// Identity of the end user, for the provider.
    pub user: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub role: Role,
    pub name: Option<String>,
    pub parts: Vec<ContentPart>,
    pub extra: Extra,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    /// Results of tools; its parts are [`ContentPart::ToolResult`].
    Tool,
}

/// Function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: Option<String>,
    /// JSON schema of the arguments.
    pub parameters: Option<Value>,
    pub strict: Option<bool>,
    pub cache: Option<CacheControl>,
    /// A tool that the provider runs, such as a web search, is here whole and has an empty name.
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    None,
    Auto,
    /// At least one call of any tool.
    Required,
    /// At least one call of these tools; most dialects name only one.
    Named(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum OutputFormat {
    Text,
    JsonObject,
    JsonSchema(Box<JsonSchemaFormat>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchemaFormat {
    pub name: Option<String>,
    pub description: Option<String>,
    pub schema: Value,
    pub strict: Option<bool>,
    pub extra: Extra,
}

/// Numbers that tune the choice of tokens. Numbers keep their JSON spelling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<Value>,
    pub top_p: Option<Value>,
    pub top_k: Option<Value>,
    pub frequency_penalty: Option<Value>,
    pub presence_penalty: Option<Value>,
    pub seed: Option<Value>,
    /// Number of answers.
    pub choices: Option<u64>,
    pub logprobs: Option<bool>,
    pub top_logprobs: Option<u64>,
    pub logit_bias: Option<Value>,
}

/// Wanted reasoning. A dialect that takes only one of effort and budget derives it from the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReasoningSettings {
    pub enabled: Option<bool>,
    pub effort: Option<ReasoningEffort>,
    pub budget_tokens: Option<u64>,
    /// Whether the answer shall contain a summary or the thoughts.
    pub include_text: Option<bool>,
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    ExtraHigh,
    Other(String),
}
