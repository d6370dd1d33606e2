//! Functions for invocations, with the names, types and spans from their stored form.

use serde_json::{Map, Value, json};

use crate::error::InvokeError;
use crate::events::ProgressFrame;
use crate::request::InlineFunction;

/// Default name of an inline function.
const INLINE_NAME: &str = "inline function";
/// Function types that clients know in progress events.
const PROGRESS_TYPES: [&str; 10] = [
    "prompt",
    "tool",
    "scorer",
    "task",
    "workflow",
    "custom_view",
    "preprocessor",
    "facet",
    "classifier",
    "parameters",
];

/// Resolved function at one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokedFunction {
    /// `None` for functions that are not stored.
    pub id: Option<String>,
    pub project_id: Option<String>,
    pub version: Option<String>,
    pub name: String,
    pub slug: String,
    pub description: Option<String>,
    pub function_type: Option<String>,
    pub function_data: Value,
    pub prompt_data: Value,
    pub function_schema: Value,
}

/// Kind of a function, which determines how it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionKind {
    Prompt,
    Global { name: String, function_type: String, config: Map<String, Value> },
    Code,
    Facet,
}

impl InvokedFunction {
    /// Reads a function from its stored row.
    pub fn of_row(mut row: Value) -> InvokedFunction {
        let mut taken = |name: &str| row.get_mut(name).map(Value::take).unwrap_or_default();
        let mut text = |name: &str| match taken(name) {
            Value::String(text) => Some(text),
            _ => None,
        };
        InvokedFunction {
            id: text("id"),
            project_id: text("project_id"),
            version: text("_xact_id"),
            name: text("name").unwrap_or_default(),
            slug: text("slug").unwrap_or_default(),
            description: text("description"),
            function_type: text("function_type"),
            function_data: taken("function_data"),
            prompt_data: taken("prompt_data"),
            function_schema: taken("function_schema"),
        }
    }

    pub fn inline(inline: InlineFunction) -> InvokedFunction {
        InvokedFunction {
            name: inline.name.unwrap_or_else(|| INLINE_NAME.to_owned()),
            function_type: inline.function_type,
            function_data: inline.function_data,
            prompt_data: inline.prompt_data,
            ..InvokedFunction::default()
        }
    }

    pub fn global(name: &str, function_type: &str) -> InvokedFunction {
        InvokedFunction {
            name: name.to_owned(),
            slug: name.to_owned(),
            function_type: Some(function_type.to_owned()),
            function_data: json!({"type": "global", "name": name, "function_type": function_type}),
            ..InvokedFunction::default()
        }
    }

    /// Returns the kind of the function, or an error if it cannot be invoked.
    pub fn kind(&self) -> Result<FunctionKind, InvokeError> {
        if let Some(kind @ ("custom_view" | "parameters" | "sandbox")) = self.function_type.as_deref() {
            return Err(InvokeError::invalid(format!("functions of the type `{kind}` cannot be invoked")));
        }
        let text = |name: &str| self.function_data.get(name).and_then(Value::as_str);
        match text("type") {
            None if self.function_data.is_null() => Ok(FunctionKind::Prompt),
            Some("prompt") => Ok(FunctionKind::Prompt),
            Some("code") => Ok(FunctionKind::Code),
            Some("facet") => Ok(FunctionKind::Facet),
            Some("global") => Ok(FunctionKind::Global {
                name: text("name").unwrap_or_default().to_owned(),
                function_type: text("function_type").unwrap_or("scorer").to_owned(),
                config: self.function_data.get("config").and_then(Value::as_object).cloned().unwrap_or_default(),
            }),
            Some(other) => Err(InvokeError::invalid(format!("a function of the kind `{other}` cannot be invoked"))),
            None => Err(InvokeError::invalid("`function_data` has no `type`")),
        }
    }

    /// Returns whether the results of the function are scores.
    pub fn is_scorer(&self) -> bool {
        self.function_type.as_deref() == Some("scorer")
    }

    /// Returns whether the results of the function are classes or tags.
    pub fn is_classifier(&self) -> bool {
        matches!(self.function_type.as_deref(), Some("classifier" | "tag"))
    }

    /// Returns the type of the function's span (F-19).
    pub fn span_type(&self) -> &'static str {
        match self.function_type.as_deref() {
            Some("scorer") => "score",
            Some("classifier" | "tag") => "classifier",
            Some("tool") => "tool",
            Some("task") => "task",
            Some("preprocessor") => "preprocessor",
            Some("facet") => "facet",
            _ => "function",
        }
    }

    /// Returns the subject of the function's progress events.
    pub fn progress_frame(&self, id: String) -> ProgressFrame {
        let is_prompt = matches!(self.kind(), Ok(FunctionKind::Prompt));
        let function_type = self.function_type.as_deref();
        let object_type = PROGRESS_TYPES.into_iter().find(|known| Some(*known) == function_type);
        let output_type = match function_type {
            Some("scorer") => "score",
            Some("classifier" | "tag") => "classification",
            Some("facet") => "facet",
            _ if is_prompt => "completion",
            _ => "any",
        };
        ProgressFrame {
            id,
            object_type: object_type.unwrap_or(if is_prompt { "prompt" } else { "tool" }),
            format: match self.kind() {
                Ok(FunctionKind::Prompt) => "llm",
                Ok(FunctionKind::Code) => "code",
                _ => "global",
            },
            output_type,
            name: self.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_runs() {
        let function = |data: Value, function_type: Value| {
            InvokedFunction::of_row(json!({"id": "i", "_xact_id": "7", "name": "n", "function_data": data,
                "function_type": function_type}))
        };
        let prompt = function(json!({"type": "prompt"}), Value::Null);
        assert_eq!((prompt.kind(), prompt.span_type()), (Ok(FunctionKind::Prompt), "function"));
        assert_eq!(prompt.version.as_deref(), Some("7"));
        assert_eq!(function(Value::Null, json!("scorer")).span_type(), "score");
        let global = json!({"type": "global", "name": "Humor", "config": {"model": "m"}});
        let Ok(FunctionKind::Global { name, function_type, config }) = function(global, Value::Null).kind() else {
            panic!("a global function")
        };
        assert_eq!((name.as_str(), function_type.as_str(), &config["model"]), ("Humor", "scorer", &json!("m")));
        assert_eq!(function(json!({"type": "code"}), Value::Null).kind(), Ok(FunctionKind::Code));
        for (data, function_type) in [
            (json!({"type": "topic_map"}), Value::Null),
            (json!({}), Value::Null),
            (json!({"type": "prompt"}), json!("parameters")),
        ] {
            assert!(function(data, function_type).kind().is_err());
        }
    }

    #[test]
    fn progress_has_only_the_words_that_clients_know() {
        let of = |function_type: Value| {
            let row = json!({"name": "n", "function_data": {"type": "prompt"}, "function_type": function_type});
            let frame = InvokedFunction::of_row(row).progress_frame("i".into());
            (frame.object_type, frame.format, frame.output_type)
        };
        assert_eq!(of(Value::Null), ("prompt", "llm", "completion"));
        assert_eq!(of(json!("llm")), ("prompt", "llm", "completion"));
        assert_eq!(of(json!("scorer")), ("scorer", "llm", "score"));
        assert_eq!(of(json!("tag")), ("prompt", "llm", "classification"));
    }
}
