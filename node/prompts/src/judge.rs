//! Judges: prompts that make a model choose one of several answers, and the value of the choice.

use serde_json::{Map, Value, json};

use crate::error::{AnswerError, PromptError};
use crate::messages::role_of;
use crate::prompt::{PromptMember, ROOT};

/// Name of the tool by which a judge chooses.
pub const SELECT_CHOICE: &str = "select_choice";
/// Times that a judge is asked, the first one included (F-34).
pub const JUDGE_ATTEMPTS_MAX: usize = 2;
/// Choices of one judge.
pub const CHOICES_MAX: usize = 1000;
/// Choice of a judge that is allowed to find none that fits.
pub const NO_MATCH: &str = "No match";
/// Choice of a judge that is allowed to give no judgement.
pub const SKIP: &str = "Skip";

/// The `parser` of a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Judge {
    /// The judge reasons before it chooses.
    pub use_cot: bool,
    /// Choices with their scores, in the order in which the model sees them.
    choices: Vec<JudgeChoice>,
}

#[derive(Clone, Debug, PartialEq)]
struct JudgeChoice {
    name: String,
    score: Option<Value>,
    /// One of those that are allowed beside the author's.
    is_special: bool,
}

/// How a judge is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JudgeForm {
    /// By a tool that it has to call.
    #[default]
    Tool,
    /// By a schema of its answer, where the model has no tools (F-35).
    ResponseFormat,
}

/// What a judge chose.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeVerdict {
    pub choice: String,
    /// Score of the choice, null if it has none.
    pub score: Value,
    /// How the judge came to its choice.
    pub rationale: Option<String>,
    is_special: bool,
}

impl Judge {
    /// Reads the `parser` of a prompt. Parsers of other types have no effect.
    pub fn read(parser: &Value) -> Result<Option<Judge>, PromptError> {
        let path = format!("{ROOT}.parser");
        let parser = match parser {
            Value::Null => return Ok(None),
            Value::Object(parser) => parser,
            other => return Err(PromptError::wrong_type(&path, "an object", other)),
        };
        if parser.get("type").and_then(Value::as_str) != Some("llm_classifier") {
            return Ok(None);
        }
        let member = |name| PromptMember::of(parser, &path, name);
        let mut choices = read_choices(&member("choice_scores"), &member("choice"))?;
        for (allowed, name) in [("allow_no_match", NO_MATCH), ("allow_skip", SKIP)] {
            if member(allowed).truth()? && choices.iter().all(|choice| choice.name != name) {
                choices.push(JudgeChoice { name: name.to_owned(), score: None, is_special: true });
            }
        }
        match choices.len() {
            0 => Err(PromptError::invalid(&path, "a judge has one choice or more: write `choice_scores` or `choice`")),
            1..=CHOICES_MAX => Ok(Some(Judge { use_cot: member("use_cot").truth()?, choices })),
            _ => Err(PromptError::too_many(&path, "choices", CHOICES_MAX)),
        }
    }

    /// Returns the choices in the order in which the model sees them.
    pub fn choices(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().map(|choice| choice.name.as_str())
    }

    /// Adds the question to a request: an instruction, and the tool or the schema of the answer.
    pub(crate) fn ask(&self, body: &mut Map<String, Value>, form: JudgeForm) {
        if let Some(Value::Array(messages)) = body.get_mut("messages") {
            instruct(messages, &self.instruction(form));
        }
        for replaced in ["tools", "tool_choice", "response_format"] {
            body.shift_remove(replaced);
        }
        match form {
            JudgeForm::Tool => {
                let description = "Selects the choice that answers the question.";
                let function = json!({
                    "name": SELECT_CHOICE, "description": description, "parameters": self.parameters(),
                });
                body.insert("tools".to_owned(), json!([{"type": "function", "function": function}]));
                let forced = json!({"type": "function", "function": {"name": SELECT_CHOICE}});
                body.insert("tool_choice".to_owned(), forced);
            }
            JudgeForm::ResponseFormat => {
                let schema = json!({"name": SELECT_CHOICE, "schema": self.parameters(), "strict": true});
                body.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
            }
        }
    }

    /// Returns the instruction for the model (F-33).
    fn instruction(&self, form: JudgeForm) -> String {
        let choices = self.choices.iter().map(|choice| format!("{:?}", choice.name)).collect::<Vec<_>>().join(", ");
        let (how, there) = match form {
            JudgeForm::Tool => (format!("Answer by calling the tool `{SELECT_CHOICE}`"), "of the call"),
            JudgeForm::ResponseFormat => ("Answer with a JSON object".to_owned(), "of the object"),
        };
        let reasons = match self.use_cot {
            true => format!(" First reason step by step in `reasons` {there}, and only then decide on the choice."),
            false => String::new(),
        };
        format!("{how} with exactly one of these choices: {choices}.{reasons}")
    }

    /// Returns the schema of the answer. The reasons come first, so that the model thinks before it decides.
    fn parameters(&self) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        if self.use_cot {
            let description = "Reasoning, step by step, that leads to the choice. It does not begin with the choice.";
            properties.insert("reasons".to_owned(), json!({"type": "string", "description": description}));
            required.push("reasons");
        }
        let choices: Vec<&str> = self.choices().collect();
        let choice = json!({"type": "string", "description": "The choice.", "enum": choices});
        properties.insert("choice".to_owned(), choice);
        required.push("choice");
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Reads what the judge chose from the `message` of its answer. On an error the judge is asked once more (F-34).
    pub fn verdict(&self, message: &Value, form: JudgeForm) -> Result<JudgeVerdict, AnswerError> {
        let arguments = match form {
            JudgeForm::Tool => called_arguments(message)?,
            JudgeForm::ResponseFormat => message.get("content").unwrap_or(&Value::Null),
        };
        let arguments: Value = match arguments {
            Value::String(text) => {
                serde_json::from_str(text).map_err(|why| AnswerError::UnreadableChoice(why.to_string()))?
            }
            other => other.clone(),
        };
        let Some(choice) = arguments.get("choice").and_then(Value::as_str).map(str::trim) else {
            return Err(AnswerError::UnreadableChoice("the arguments have no text `choice`".to_owned()));
        };
        let Some(known) = self.choices.iter().find(|known| known.name.trim() == choice) else {
            let choices = self.choices().map(str::to_owned).collect();
            return Err(AnswerError::UnknownChoice { choice: choice.to_owned(), choices });
        };
        let reasons = arguments.get("reasons").and_then(Value::as_str);
        Ok(JudgeVerdict {
            choice: known.name.clone(),
            score: known.score.clone().unwrap_or(Value::Null),
            rationale: reasons.map(str::to_owned),
            is_special: known.is_special,
        })
    }
}

impl JudgeVerdict {
    /// Returns the value of a scorer of this name.
    pub fn score_value(&self, function_name: &str) -> Value {
        let mut metadata = self.metadata();
        metadata.insert("choice".to_owned(), self.choice.clone().into());
        json!({"name": function_name, "score": self.score, "metadata": metadata})
    }

    /// Returns the value of a classifier of this name, null if the judge found no match (F-36).
    pub fn classification_value(&self, function_name: &str) -> Value {
        match self.is_special {
            true => Value::Null,
            false => json!({
                "name": function_name, "id": self.choice, "label": self.choice, "metadata": self.metadata(),
            }),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        self.rationale.iter().map(|rationale| ("rationale".to_owned(), rationale.clone().into())).collect()
    }
}

/// Returns the author's choices: those with scores, or else those without. An empty list beside scores is normal.
fn read_choices(scores: &PromptMember<'_>, names: &PromptMember<'_>) -> Result<Vec<JudgeChoice>, PromptError> {
    let mut choices = Vec::new();
    for (name, score) in scores.object()? {
        if score.as_f64().is_none_or(|score| !(0.0..=1.0).contains(&score)) {
            let why = format!("{score} is not a score: write a number from 0 to 1");
            return Err(PromptError::invalid(&format!("{}.{name}", scores.path), why));
        }
        choices.push(JudgeChoice { name, score: Some(score), is_special: false });
    }
    if choices.is_empty() {
        for (index, name) in names.list()?.into_iter().enumerate() {
            let path = format!("{}[{index}]", names.path);
            let Value::String(name) = name else { return Err(PromptError::wrong_type(&path, "a string", &name)) };
            choices.push(JudgeChoice { name, score: None, is_special: false });
        }
    }
    Ok(choices)
}

/// Appends the instruction to the last user message, or as a new one.
fn instruct(messages: &mut Vec<Value>, instruction: &str) {
    let last = messages.iter_mut().rev().find(|message| role_of(message) == "user");
    match last.and_then(Value::as_object_mut) {
        None => messages.push(json!({"role": "user", "content": instruction})),
        Some(message) => match message.entry("content").or_insert(Value::Null) {
            Value::String(text) => {
                text.push('\n');
                text.push_str(instruction);
            }
            Value::Array(parts) => parts.push(json!({"type": "text", "text": instruction})),
            other => *other = instruction.into(),
        },
    }
}

/// Returns the arguments of the first call, which has to be that of the judge's tool.
fn called_arguments(message: &Value) -> Result<&Value, AnswerError> {
    let Some(call) = message.pointer("/tool_calls/0/function") else {
        return Err(AnswerError::NotChosen { expected: SELECT_CHOICE, called: None });
    };
    match call.get("name").and_then(Value::as_str) {
        Some(SELECT_CHOICE) => Ok(call.get("arguments").unwrap_or(&Value::Null)),
        other => {
            let called = Some(other.unwrap_or_default().to_owned());
            Err(AnswerError::NotChosen { expected: SELECT_CHOICE, called })
        }
    }
}

#[cfg(test)]
mod tests;
