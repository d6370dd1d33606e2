//! Value of a prompt: what an answer of a model is in each mode of invocation.

use serde_json::{Map, Value, json};

use crate::error::AnswerError;
use crate::text::json_text;

/// Mode of an invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvokeMode {
    #[default]
    Auto,
    Parallel,
    Json,
    Text,
}

impl InvokeMode {
    /// Returns the mode of this name. The default has the name `auto`.
    pub fn parse(name: &str) -> Option<InvokeMode> {
        match name {
            "auto" => Some(InvokeMode::Auto),
            "parallel" => Some(InvokeMode::Parallel),
            "json" => Some(InvokeMode::Json),
            "text" => Some(InvokeMode::Text),
            _ => None,
        }
    }
}

/// Returns whether a request asks for JSON by its `response_format`.
pub fn is_structured(body: &Map<String, Value>) -> bool {
    let format = body.get("response_format").and_then(|format| format.get("type")).and_then(Value::as_str);
    matches!(format, Some("json_object" | "json_schema"))
}

/// Returns the value of the `message` of a chat completion.
pub fn answer_value(message: &Value, mode: InvokeMode, is_structured: bool) -> Result<Value, AnswerError> {
    if !message.is_object() {
        return Err(AnswerError::shape("message", "an object", Some(message)));
    }
    let calls = answered_calls(message)?;
    if let Some(first) = calls.first() {
        return Ok(match mode {
            InvokeMode::Auto | InvokeMode::Json => parsed_arguments(&first.arguments),
            InvokeMode::Text => first.arguments.clone().into(),
            InvokeMode::Parallel => calls.iter().map(AnsweredCall::value).collect(),
        });
    }
    let text = answered_text(message)?;
    Ok(match mode {
        InvokeMode::Text => text.into(),
        InvokeMode::Json => parsed_or_text(text),
        InvokeMode::Auto | InvokeMode::Parallel if is_structured => parsed_or_text(text),
        InvokeMode::Auto | InvokeMode::Parallel => text.into(),
    })
}

/// Returns the value of code or of a global function in a mode.
pub fn code_value(value: Value, mode: InvokeMode) -> Value {
    match (mode, value) {
        (InvokeMode::Text, Value::String(text)) => text.into(),
        (InvokeMode::Text, other) => json_text(&other).into(),
        (_, value) => value,
    }
}

/// A tool call of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnsweredCall {
    /// Id of the call; some providers give none.
    pub id: Option<String>,
    pub name: String,
    /// Text of the arguments, as the model wrote it.
    pub arguments: String,
}

impl AnsweredCall {
    /// Returns the item for this call in the mode `parallel` (F-14).
    fn value(&self) -> Value {
        json!({"id": self.id, "name": self.name, "arguments": parsed_arguments(&self.arguments)})
    }
}

/// Returns the tool calls of an answer.
pub(crate) fn answered_calls(message: &Value) -> Result<Vec<AnsweredCall>, AnswerError> {
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(calls)) => calls,
        other => return Err(AnswerError::shape("message.tool_calls", "an array", other)),
    };
    let read = |(index, call): (usize, &Value)| {
        let path = |name: &str| format!("message.tool_calls[{index}].function.{name}");
        let name = call.pointer("/function/name");
        let Some(name) = name.and_then(Value::as_str) else {
            return Err(AnswerError::shape(path("name"), "a string", name));
        };
        let arguments = match call.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other @ Value::Object(_)) => json_text(other),
            other => return Err(AnswerError::shape(path("arguments"), "a string", other)),
        };
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        Ok(AnsweredCall { id, name: name.to_owned(), arguments })
    };
    calls.iter().enumerate().map(read).collect()
}

/// Returns the arguments of a call. What is not JSON is the text itself; no text means no arguments.
fn parsed_arguments(arguments: &str) -> Value {
    match arguments.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| arguments.into()),
    }
}

/// Never loses an answer: what is not JSON is a text (F-15).
fn parsed_or_text(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or_else(|_| text.into())
}

fn answered_text(message: &Value) -> Result<String, AnswerError> {
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|refusal| !refusal.is_empty());
    match (message.get("content"), refusal) {
        (Some(Value::String(text)), _) => Ok(text.clone()),
        (Some(Value::Array(parts)), _) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
            if texts.is_empty() { Err(AnswerError::Empty) } else { Ok(texts.concat()) }
        }
        (None | Some(Value::Null), Some(refusal)) => Err(AnswerError::Refused(refusal.to_owned())),
        (None | Some(Value::Null), None) => Err(AnswerError::Empty),
        (other, _) => Err(AnswerError::shape("message.content", "a string or an array of parts", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_calls_have_a_value_in_each_mode() {
        let call = |id: &str, arguments: &str| json!({"id": id, "function": {"name": "f", "arguments": arguments}});
        let calls = json!({"content": null, "tool_calls": [call("1", "{\"a\":1}"), call("", "{broken")]});
        let broken = json!({"tool_calls": [call("1", "{broken")]});
        let none = json!({"tool_calls": [call("1", "")]});
        let text = json!({"content": "10", "tool_calls": []});
        let prose = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let (auto, parallel, json, raw) = (InvokeMode::Auto, InvokeMode::Parallel, InvokeMode::Json, InvokeMode::Text);
        let cases = [
            // text that looks like JSON stays a text
            (&text, auto, false, json!("10")),
            (&text, auto, true, json!(10)),
            (&text, parallel, false, json!("10")),
            (&text, json, false, json!(10)),
            (&text, raw, true, json!("10")),
            (&prose, json, false, json!("ab")),
            (&prose, auto, true, json!("ab")),
            (&calls, auto, false, json!({"a": 1})),
            (&calls, json, true, json!({"a": 1})),
            (&calls, raw, false, json!("{\"a\":1}")),
            (
                &calls,
                parallel,
                false,
                json!([{"id": "1", "name": "f", "arguments": {"a": 1}}, {"id": null, "name": "f", "arguments": "{broken"}]),
            ),
            (&broken, auto, false, json!("{broken")),
            (&none, auto, false, json!({})),
        ];
        for (message, mode, structured, expected) in cases {
            assert_eq!(answer_value(message, mode, structured), Ok(expected), "{message} {mode:?}");
        }
    }

    #[test]
    fn an_answer_without_a_value_says_why() {
        let cases = [
            (json!("x"), "the model's answer: message: expected an object, found a string"),
            (json!({"content": null}), "the model answered with neither a text nor a tool call"),
            (json!({}), "the model answered with neither a text nor a tool call"),
            (json!({"content": null, "refusal": "no"}), "the model refused to answer: no"),
            (
                json!({"content": 1}),
                "the model's answer: message.content: expected a string or an array of parts, found a number",
            ),
            (json!({"tool_calls": {}}), "the model's answer: message.tool_calls: expected an array, found an object"),
            (
                json!({"tool_calls": [{}]}),
                "the model's answer: message.tool_calls[0].function.name: expected a string, found nothing",
            ),
        ];
        for (message, expected) in cases {
            let why = answer_value(&message, InvokeMode::Auto, false).expect_err(expected);
            assert_eq!(why.to_string(), expected);
        }
    }

    #[test]
    fn values_of_code_are_texts_only_in_the_mode_for_it() {
        assert_eq!(code_value(json!({"a": 1.0}), InvokeMode::Text), json!("{\"a\":1}"));
        assert_eq!(code_value(json!("a"), InvokeMode::Text), json!("a"));
        assert_eq!(code_value(json!("1"), InvokeMode::Json), json!("1"));
        assert_eq!(InvokeMode::parse("parallel"), Some(InvokeMode::Parallel));
        assert_eq!(InvokeMode::parse("other"), None);
    }

    #[test]
    fn a_response_format_of_text_is_not_structured() {
        let body = |kind: &str| Map::from_iter([("response_format".to_owned(), json!({"type": kind}))]);
        assert!(is_structured(&body("json_object")) && is_structured(&body("json_schema")));
        assert!(!is_structured(&body("text")) && !is_structured(&Map::new()));
    }
}
