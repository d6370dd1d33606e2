//! Loop of a prompt with tools that the server runs: asks the model, runs the calls, and asks again with the results.
//!
//! A machine without IO: it says what is next, and is told what came of it.

use serde_json::{Map, Value, json};

use crate::error::AnswerError;
use crate::modes::{AnsweredCall, InvokeMode, answer_value, answered_calls, is_structured};
use crate::text::json_text;
use crate::tools::ToolCatalog;

/// Rounds in which calls are run (F-37).
pub const TOOL_ROUNDS_MAX: usize = 10;
/// Calls of one round that run at once.
pub const PARALLEL_CALLS_MAX: usize = 8;
/// Calls of one answer.
pub const CALLS_MAX: usize = 128;
/// Levels of prompts that are tools of prompts.
pub const PROMPT_DEPTH_MAX: usize = 5;

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum ToolStep<'f, F> {
    /// Send [`ToolLoop::request`], and tell [`ToolLoop::answered`] the answer.
    Ask,
    /// Run all of these, and tell [`ToolLoop::ran`] the results in this order.
    Run(Vec<ToolCall<'f, F>>),
    /// The value of the prompt.
    Finished(Value),
}

/// A call for the server to run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall<'f, F> {
    pub id: String,
    /// Name by which the model knows the tool.
    pub name: String,
    pub function: &'f F,
    /// Arguments of the call, or why they cannot be read. Such a call is not run: the error is its result.
    pub arguments: Result<Value, String>,
}

/// The loop of one invocation.
#[derive(Clone, Debug)]
pub struct ToolLoop<F> {
    request: Map<String, Value>,
    catalog: ToolCatalog<F>,
    mode: InvokeMode,
    rounds: usize,
    /// Ids of the calls whose results are awaited.
    awaited: Vec<String>,
}

impl<F> ToolLoop<F> {
    /// Adds the tools to a request. The first step is [`ToolStep::Ask`].
    pub fn new(mut request: Map<String, Value>, catalog: ToolCatalog<F>, mode: InvokeMode) -> ToolLoop<F> {
        if !catalog.is_empty() {
            match request.entry("tools").or_insert_with(|| json!([])) {
                Value::Array(tools) => tools.extend(catalog.definitions()),
                other => *other = catalog.definitions().collect(),
            }
        }
        ToolLoop { request, catalog, mode, rounds: 0, awaited: Vec::new() }
    }

    /// Returns the body of the next request to the model.
    pub fn request(&self) -> &Map<String, Value> {
        &self.request
    }

    /// Takes the `message` of an answer. It ends the loop if it has no calls, or one that is not ours to run.
    pub fn answered(&mut self, message: &Value) -> Result<ToolStep<'_, F>, AnswerError> {
        let calls = answered_calls(message)?;
        let is_ours = !calls.is_empty() && calls.iter().all(|call| self.catalog.function(&call.name).is_some());
        if !is_ours {
            let value = answer_value(message, self.mode, is_structured(&self.request))?;
            return Ok(ToolStep::Finished(value));
        }
        if self.rounds >= TOOL_ROUNDS_MAX {
            return Err(AnswerError::TooManyRounds { max: TOOL_ROUNDS_MAX });
        }
        if calls.len() > CALLS_MAX {
            return Err(AnswerError::TooManyCalls { max: CALLS_MAX });
        }
        self.rounds += 1;
        self.awaited = self.call_ids(&calls);
        let message = with_ids(message, &self.awaited);
        self.push_message(message);
        self.free_tool_choice();
        let named = calls.into_iter().zip(&self.awaited).filter_map(|(call, id)| {
            let function = self.catalog.function(&call.name)?;
            let arguments = read_arguments(&call.arguments);
            Some(ToolCall { id: id.clone(), name: call.name, function, arguments })
        });
        Ok(ToolStep::Run(named.collect()))
    }

    /// Takes the results of the calls in their order: the value of each, or the message of its error. A call that has
    /// no result has an error that says so.
    pub fn ran(&mut self, results: Vec<Result<Value, String>>) -> ToolStep<'_, F> {
        let mut results = results.into_iter();
        for id in std::mem::take(&mut self.awaited) {
            let result = results.next().unwrap_or_else(|| Err("the tool was not run".to_owned()));
            let content = match result {
                Ok(Value::String(text)) => text,
                Ok(other) => json_text(&other),
                Err(why) => format!("Error: {why}"),
            };
            self.push_message(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        ToolStep::Ask
    }

    /// Returns the ids of calls. Missing ids are made up, as results are told by them; so are those that are there twice.
    fn call_ids(&self, calls: &[AnsweredCall]) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let given = call.id.clone().filter(|id| !ids.contains(id));
            ids.push(given.unwrap_or_else(|| format!("call_{}_{index}", self.rounds)));
        }
        ids
    }

    fn push_message(&mut self, message: Value) {
        if let Value::Array(messages) = self.request.entry("messages").or_insert_with(|| json!([])) {
            messages.push(message);
        }
    }

    /// Lets the model choose after the first round: a choice that stays forced never ends.
    fn free_tool_choice(&mut self) {
        if let Some(choice) = self.request.get_mut("tool_choice")
            && !matches!(choice.as_str(), Some("auto" | "none"))
        {
            *choice = "auto".into();
        }
    }
}

/// Returns the answer as a message of the next request, with an id for each call.
fn with_ids(message: &Value, ids: &[String]) -> Value {
    let mut message = message.clone();
    if let Value::Object(members) = &mut message {
        members.entry("role").or_insert_with(|| "assistant".into());
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for (call, id) in calls.iter_mut().zip(ids) {
            if let Value::Object(call) = call {
                call.insert("id".to_owned(), id.clone().into());
                call.entry("type").or_insert_with(|| "function".into());
            }
        }
    }
    message
}

fn read_arguments(text: &str) -> Result<Value, String> {
    match text.trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str(text).map_err(|why| format!("the arguments are not valid JSON: {why}")),
    }
}

#[cfg(test)]
mod tests;
