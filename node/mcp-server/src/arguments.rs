//! Arguments of tools. One declaration gives both the schema for agents and the check.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::data::ToolFailure;

/// Upper bound of a name or id.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// Declared argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub name: &'static str,
    about: &'static str,
    kind: ArgumentKind,
    is_required: bool,
}

/// Values of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentKind {
    Text {
        bytes_max: usize,
    },
    Choice(&'static [&'static str]),
    /// Integer. Without a default, the tool chooses.
    Number {
        least: u64,
        most: u64,
        default: Option<u64>,
    },
}

impl Argument {
    pub const fn required(name: &'static str, kind: ArgumentKind, about: &'static str) -> Argument {
        Argument { name, about, kind, is_required: true }
    }

    pub const fn optional(name: &'static str, kind: ArgumentKind, about: &'static str) -> Argument {
        Argument { name, about, kind, is_required: false }
    }

    fn schema(&self) -> Value {
        let about = self.about;
        match self.kind {
            ArgumentKind::Text { .. } => json!({"type": "string", "minLength": 1, "description": about}),
            ArgumentKind::Choice(words) => json!({"type": "string", "enum": words, "description": about}),
            ArgumentKind::Number { least, most, default } => {
                let mut schema = json!({"type": "integer", "minimum": least, "maximum": most});
                if let Some(default) = default {
                    schema["default"] = default.into();
                }
                schema["description"] = about.into();
                schema
            }
        }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let name = self.name;
        match (self.kind, value) {
            (ArgumentKind::Text { .. }, Value::String(text)) if text.trim().is_empty() => {
                Err(format!("`{name}` is empty; it should be a text: {}", self.about))
            }
            (ArgumentKind::Text { bytes_max }, Value::String(text)) if text.len() > bytes_max => {
                Err(format!("`{name}` has {} bytes; the maximum is {bytes_max}", text.len()))
            }
            (ArgumentKind::Text { .. }, Value::String(_)) => Ok(()),
            (ArgumentKind::Choice(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(()),
            (ArgumentKind::Choice(words), other) => {
                Err(format!("`{name}` is {}; it must be one of {}", said(other), words.join(", ")))
            }
            (ArgumentKind::Number { least, most, .. }, other) => match other.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("`{name}` is {}; it should be an integer from {least} to {most}", said(other))),
            },
            (ArgumentKind::Text { .. }, other) => {
                Err(format!("`{name}` is {}; it should be a text: {}", said(other), self.about))
            }
        }
    }
}

/// Returns a short form of a value for messages.
fn said(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        other => {
            let text = other.to_string();
            let short: String = text.chars().take(60).collect();
            if short == text { text } else { format!("{short}…") }
        }
    }
}

/// Returns the JSON schema of the arguments of a tool.
pub(crate) fn schema_of(arguments: &[Argument]) -> Value {
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name.to_owned(), argument.schema())).collect();
    let required: Vec<&str> =
        arguments.iter().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Checked arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    declared: &'static [Argument],
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Checks the arguments of a call. Null means that an argument is missing.
    pub fn check(declared: &'static [Argument], values: &'a Map<String, Value>) -> Result<Arguments<'a>, ToolFailure> {
        let unknown = values.keys().find(|name| declared.iter().all(|argument| argument.name != name.as_str()));
        if let Some(unknown) = unknown {
            let known: Vec<&str> = declared.iter().map(|argument| argument.name).collect();
            let unknown: String = unknown.chars().take(60).collect();
            let why = format!("there is no argument `{unknown}`; the arguments are {}", known.join(", "));
            return Err(ToolFailure::Refused(why));
        }
        for argument in declared {
            match values.get(argument.name).filter(|value| !value.is_null()) {
                Some(value) => argument.check(value).map_err(ToolFailure::Refused)?,
                None if argument.is_required => {
                    let why = format!("`{}` is missing: {}", argument.name, argument.about);
                    return Err(ToolFailure::Refused(why));
                }
                None => {}
            }
        }
        Ok(Arguments { declared, values })
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).and_then(Value::as_str)
    }

    /// Returns a required text, which the check has found.
    pub fn required(&self, name: &str) -> &'a str {
        self.text(name).unwrap_or_default()
    }

    /// Returns a number of the call, if it has one.
    pub fn given(&self, name: &str) -> Option<u64> {
        self.values.get(name).and_then(Value::as_u64)
    }

    /// Returns a number, or its declared default.
    pub fn number(&self, name: &str) -> u64 {
        let declared = self.declared.iter().find(|argument| argument.name == name);
        let default = declared.and_then(|argument| match argument.kind {
            ArgumentKind::Number { default, .. } => default,
            _ => None,
        });
        self.given(name).or(default).unwrap_or_default()
    }

    /// Returns a position in a list, which the previous page gave.
    pub fn offset(&self, name: &str) -> Result<usize, ToolFailure> {
        let Some(text) = self.text(name) else { return Ok(0) };
        let wrong = |_| ToolFailure::refused("`cursor` is not the cursor of a previous page of this tool");
        text.parse::<usize>().map_err(wrong)
    }

    /// Returns an id.
    pub fn id(&self, name: &str) -> Result<Option<Uuid>, ToolFailure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = |_| ToolFailure::refused(format!("`{name}` has to be a UUID"));
        Uuid::parse_str(text).map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[Argument] = &[
        Argument::required("name", ArgumentKind::Text { bytes_max: 5 }, "Name."),
        Argument::optional("kind", ArgumentKind::Choice(&["a", "b"]), "Kind."),
        Argument::optional("limit", ArgumentKind::Number { least: 1, most: 9, default: Some(4) }, "Limit."),
        Argument::optional("cursor", ArgumentKind::Text { bytes_max: 9 }, "Cursor."),
    ];

    fn refusal(values: Value) -> String {
        let Value::Object(values) = values else { panic!("an object") };
        match Arguments::check(DECLARED, &values) {
            Err(ToolFailure::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn right_arguments_are_read_with_their_defaults() {
        let values = json!({"name": "x", "kind": null, "cursor": "3"});
        let read = Arguments::check(DECLARED, values.as_object().expect("an object")).expect("they are right");
        assert_eq!((read.required("name"), read.text("kind"), read.number("limit")), ("x", None, 4));
        assert_eq!(read.offset("cursor"), Ok(3));
        assert!(read.id("name").is_err() && read.id("kind") == Ok(None));
    }

    #[test]
    fn a_refusal_says_what_would_be_right() {
        for (values, words) in [
            (json!({}), "`name` is missing: Name."),
            (json!({"name": null}), "`name` is missing"),
            (json!({"name": " "}), "`name` is empty"),
            (json!({"name": 3}), "`name` is 3; it should be a text"),
            (json!({"name": "long name"}), "`name` has 9 bytes; the maximum is 5"),
            (json!({"name": "x", "kind": "c"}), "`kind` is \"c\"; it must be one of a, b"),
            (json!({"name": "x", "kind": []}), "`kind` is a list"),
            (json!({"name": "x", "limit": 0}), "`limit` is 0; it should be an integer from 1 to 9"),
            (json!({"name": "x", "limit": "4"}), "`limit` is \"4\"; it should be an integer"),
            (json!({"name": "x", "more": 1}), "no argument `more`; the arguments are name, kind, limit, cursor"),
        ] {
            let why = refusal(values.clone());
            assert!(why.contains(words), "{values}: {why}");
        }
    }

    #[test]
    fn the_schema_says_what_the_check_wants() {
        let schema = schema_of(DECLARED);
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(schema["properties"]["kind"]["enum"], json!(["a", "b"]));
        assert_eq!(schema["properties"]["limit"]["default"], 4);
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema_of(&[])["required"], Value::Null);
    }
}
