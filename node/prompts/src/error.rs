//! Errors of prompts and of answers: the problem, its position, and what is valid.

use serde_json::Value;
use thiserror::Error;

use crate::mustache::MustacheError;

/// A prompt or its arguments are wrong. The caller has to change them: HTTP status 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PromptError {
    /// A member has a value of another type.
    #[error("{path}: expected {expected}, found {found}")]
    WrongType { path: String, expected: &'static str, found: &'static str },
    /// A member has a value of the right type that is not one of the valid ones.
    #[error("{path}: {why}")]
    Invalid { path: String, why: String },
    /// A template cannot be parsed or rendered.
    #[error("{path}: {why}")]
    Template { path: String, why: String },
    /// A strict template mentions a variable that is not there. People search for this text.
    #[error("Variable '{name}' does not exist.")]
    MissingVariable { path: String, name: String },
    /// A rendered text has to be JSON.
    #[error("{path}: the rendered text is not valid JSON: {why}")]
    NotJson { path: String, why: String },
    /// More of something than is taken.
    #[error("{path}: at most {max} {what}")]
    TooMany { path: String, what: &'static str, max: usize },
    /// Neither the options nor the overrides of the prompt name a model.
    #[error("No model specified")]
    NoModel,
    /// Messages of the request have nowhere to go.
    #[error("messages: a completion prompt takes no messages; leave them out, or make it a chat prompt")]
    MessagesForCompletion,
}

impl PromptError {
    pub(crate) fn wrong_type(path: &str, expected: &'static str, found: &Value) -> PromptError {
        PromptError::WrongType { path: path.to_owned(), expected, found: kind_of(found) }
    }

    pub(crate) fn invalid(path: &str, why: impl Into<String>) -> PromptError {
        PromptError::Invalid { path: path.to_owned(), why: why.into() }
    }

    pub(crate) fn too_many(path: &str, what: &'static str, max: usize) -> PromptError {
        PromptError::TooMany { path: path.to_owned(), what, max }
    }
}

/// An answer of a model has no usable value. The invocation fails: HTTP status 500.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The answer has another shape than a message of a chat completion.
    #[error("the model's answer: {path}: expected {expected}, found {found}")]
    WrongShape { path: String, expected: &'static str, found: &'static str },
    /// There is neither a text nor a tool call.
    #[error("the model answered with neither a text nor a tool call")]
    Empty,
    /// The model refused, with its words.
    #[error("the model refused to answer: {0}")]
    Refused(String),
    /// A judge did not choose.
    #[error("the judge did not call the tool `{expected}`{}", called.as_ref().map_or(String::new(), |name| format!(" but `{name}`")))]
    NotChosen { expected: &'static str, called: Option<String> },
    /// The arguments of a judge's call cannot be read.
    #[error("the judge's choice cannot be read: {0}")]
    UnreadableChoice(String),
    /// A judge chose something that it was not offered.
    #[error("the judge chose {choice:?}, which is not one of the choices {choices:?}")]
    UnknownChoice { choice: String, choices: Vec<String> },
    /// The model calls tools again and again.
    #[error("the model still calls tools after {max} rounds")]
    TooManyRounds { max: usize },
    /// One answer has too many calls.
    #[error("the model's answer has more than {max} tool calls")]
    TooManyCalls { max: usize },
}

impl AnswerError {
    pub(crate) fn shape(path: impl Into<String>, expected: &'static str, found: Option<&Value>) -> AnswerError {
        AnswerError::WrongShape { path: path.into(), expected, found: found.map_or("nothing", kind_of) }
    }
}

/// Why a template cannot be parsed or rendered, without where it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TemplateError {
    #[error(transparent)]
    Mustache(#[from] MustacheError),
    /// A nunjucks template, with its line.
    #[error("line {line}: {why}")]
    Nunjucks { line: usize, why: String },
    #[error("Variable '{0}' does not exist.")]
    MissingVariable(String),
    /// Rendering takes too much of something.
    #[error("the template needs more than {max} {what}")]
    Limit { what: &'static str, max: usize },
}

impl TemplateError {
    pub(crate) fn at(self, path: &str) -> PromptError {
        match self {
            TemplateError::MissingVariable(name) => PromptError::MissingVariable { path: path.to_owned(), name },
            other => PromptError::Template { path: path.to_owned(), why: other.to_string() },
        }
    }
}

/// Name of the type of a JSON value, for errors.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
