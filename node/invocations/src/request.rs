//! Requests to invoke a function, read from the bodies of all entry paths (functions.md 2.1 and 2.2).

use assay_node_prompts::InvokeMode;
use serde_json::{Map, Value};

use crate::error::InvokeError;

/// Default function type of global functions.
const GLOBAL_TYPE_DEFAULT: &str = "scorer";

/// Reference to a function.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionReference {
    Id(String),
    /// Slug in a project, by the project's name.
    ProjectName {
        project_name: String,
        slug: String,
    },
    ProjectId {
        project_id: String,
        slug: String,
    },
    Global {
        name: String,
        function_type: String,
    },
    /// Row of a playground.
    PromptSession {
        session_id: String,
        row_id: String,
    },
    Inline(Box<InlineFunction>),
}

/// Function that the request itself defines.
#[derive(Clone, Debug, PartialEq)]
pub struct InlineFunction {
    pub name: Option<String>,
    pub function_type: Option<String>,
    pub function_data: Value,
    pub prompt_data: Value,
}

/// Version of a stored function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionVersion {
    pub version: Option<String>,
    pub environment: Option<String>,
}

/// Arguments of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvokeArguments {
    pub input: Value,
    /// Null counts as absent, here and in all members below.
    pub expected: Value,
    pub metadata: Value,
    pub tags: Value,
    pub messages: Vec<Value>,
    pub mode: InvokeMode,
    pub is_strict: bool,
    pub overrides: Value,
    pub mcp_auth: Value,
    /// Name of the only provider secret that may be used.
    pub endpoint_name: Option<String>,
    /// Case of an evaluation, if the function is its task.
    pub task: Option<TaskArguments>,
}

/// Arguments of the task of an evaluation in addition to those of any function (F-59).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskArguments {
    pub parameters: Map<String, Value>,
    /// Number of the trial, from 0.
    pub trial_index: u32,
}

/// Request to invoke a function.
#[derive(Clone, Debug, PartialEq)]
pub struct InvokeRequest {
    pub function: FunctionReference,
    pub version: FunctionVersion,
    pub arguments: InvokeArguments,
    /// Parent of the span as a slug or an object, or null if nothing is logged.
    pub parent: Value,
    pub is_stream: bool,
}

/// Returns whether a body sent to the path for creating functions is an invocation (F-07).
pub fn is_invocation(body: &Map<String, Value>) -> bool {
    let has = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    has("slug") && body.contains_key("input") && !has("function_data") && !has("prompt_data") && !has("name")
}

impl InvokeRequest {
    /// Reads a body. `id` is the function in the path.
    pub fn read(mut body: Map<String, Value>, id: Option<&str>) -> Result<InvokeRequest, InvokeError> {
        let function = match id {
            Some(id) => FunctionReference::Id(id.to_owned()),
            None => reference(&body)?,
        };
        let version = FunctionVersion { version: text(&body, "version")?, environment: text(&body, "environment")? };
        if version.version.is_some() && version.environment.is_some() {
            let why = "`version` and `environment` exclude each other: send only one of them";
            return Err(InvokeError::invalid(why));
        }
        let mode = match text(&body, "mode")? {
            None => InvokeMode::default(),
            Some(name) => InvokeMode::parse(&name).ok_or_else(|| {
                InvokeError::invalid(format!("`mode` is `{name}`; it must be auto, json, text or parallel"))
            })?,
        };
        let messages = match taken(&mut body, "messages") {
            Value::Null => Vec::new(),
            Value::Array(messages) => messages,
            _ => return Err(InvokeError::invalid("`messages` has to be a list of messages")),
        };
        let parent = match taken(&mut body, "parent") {
            Value::String(text) if text.trim().is_empty() => Value::Null,
            parent @ (Value::Null | Value::String(_) | Value::Object(_)) => parent,
            _ => return Err(InvokeError::invalid("`parent` has to be an exported span or an object")),
        };
        let arguments = InvokeArguments {
            messages,
            mode,
            is_strict: flag(&body, "strict")?,
            endpoint_name: text(&body, "endpoint_name")?,
            overrides: object(&mut body, "overrides")?,
            mcp_auth: object(&mut body, "mcp_auth")?,
            metadata: object(&mut body, "metadata")?,
            tags: taken(&mut body, "tags"),
            expected: taken(&mut body, "expected"),
            input: taken(&mut body, "input"),
            task: None,
        };
        Ok(InvokeRequest { function, version, arguments, parent, is_stream: flag(&body, "stream")? })
    }
}

/// Returns the function that a body names. Some clients send several names, of which the first in order counts.
fn reference(body: &Map<String, Value>) -> Result<FunctionReference, InvokeError> {
    if let Some(id) = text(body, "function_id")? {
        return Ok(FunctionReference::Id(id));
    }
    let slug = text(body, "slug")?;
    if let (Some(project_name), Some(slug)) = (text(body, "project_name")?, &slug) {
        return Ok(FunctionReference::ProjectName { project_name, slug: slug.clone() });
    }
    if let (Some(project_id), Some(slug)) = (text(body, "project_id")?, slug) {
        return Ok(FunctionReference::ProjectId { project_id, slug });
    }
    let function_type = text(body, "function_type")?;
    if let Some(name) = text(body, "global_function")? {
        let function_type = function_type.unwrap_or_else(|| GLOBAL_TYPE_DEFAULT.to_owned());
        return Ok(FunctionReference::Global { name, function_type });
    }
    if let (Some(session_id), Some(row_id)) =
        (text(body, "prompt_session_id")?, text(body, "prompt_session_function_id")?)
    {
        return Ok(FunctionReference::PromptSession { session_id, row_id });
    }
    inline(body, function_type)?.ok_or_else(|| {
        InvokeError::invalid(
            "the request names no function: send `function_id`, `project_name` or `project_id` with `slug`, \
             `global_function`, `inline_prompt`, or `prompt_session_id` with `prompt_session_function_id`",
        )
    })
}

fn inline(body: &Map<String, Value>, function_type: Option<String>) -> Result<Option<FunctionReference>, InvokeError> {
    let member = |name: &str| body.get(name).filter(|value| !value.is_null()).cloned();
    let (function_data, prompt_data) =
        match (member("inline_context"), member("code"), member("inline_function"), member("inline_prompt")) {
            (Some(context), Some(code), _, _) => {
                let data = serde_json::json!({"type": "inline", "runtime_context": context, "code": code});
                (serde_json::json!({"type": "code", "data": data}), Value::Null)
            }
            (_, _, Some(function), prompt) => (function, prompt.unwrap_or_default()),
            (_, _, None, Some(prompt)) => (serde_json::json!({"type": "prompt"}), prompt),
            _ => return Ok(None),
        };
    let inline = InlineFunction { name: text(body, "name")?, function_type, function_data, prompt_data };
    Ok(Some(FunctionReference::Inline(Box::new(inline))))
}

fn taken(body: &mut Map<String, Value>, name: &str) -> Value {
    body.get_mut(name).map(Value::take).unwrap_or_default()
}

/// Takes an object from the body. An empty object counts as absent.
fn object(body: &mut Map<String, Value>, name: &str) -> Result<Value, InvokeError> {
    match taken(body, name) {
        Value::Object(members) if members.is_empty() => Ok(Value::Null),
        value @ (Value::Null | Value::Object(_)) => Ok(value),
        _ => Err(InvokeError::invalid(format!("`{name}` has to be an object"))),
    }
}

/// Returns a string of the body. An empty string counts as absent.
fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, InvokeError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(InvokeError::invalid(format!("`{name}` has to be a string"))),
    }
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, InvokeError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(InvokeError::invalid(format!("`{name}` has to be true or false"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<InvokeRequest, String> {
        let Value::Object(body) = body else { panic!("an object") };
        InvokeRequest::read(body, None).map_err(|error| error.message)
    }

    #[test]
    fn a_function_has_names_of_many_kinds_and_the_first_counts() {
        let id = |id: &str| FunctionReference::Id(id.to_owned());
        let cases = [
            (json!({"function_id": "f", "slug": "s", "project_name": "p"}), id("f")),
            (
                json!({"function_id": null, "slug": "s", "project_name": "p", "project_id": "i"}),
                FunctionReference::ProjectName { project_name: "p".into(), slug: "s".into() },
            ),
            (
                json!({"slug": "s", "project_id": "i", "global_function": "Humor"}),
                FunctionReference::ProjectId { project_id: "i".into(), slug: "s".into() },
            ),
            (
                json!({"global_function": "Humor"}),
                FunctionReference::Global { name: "Humor".into(), function_type: "scorer".into() },
            ),
            (
                json!({"global_function": "thread", "function_type": "preprocessor"}),
                FunctionReference::Global { name: "thread".into(), function_type: "preprocessor".into() },
            ),
            (
                json!({"prompt_session_id": "a", "prompt_session_function_id": "b"}),
                FunctionReference::PromptSession { session_id: "a".into(), row_id: "b".into() },
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(read(body.clone()).map(|request| request.function), Ok(expected), "{body}");
        }
        let prompt = json!({"prompt": {"type": "chat", "messages": []}});
        let Ok(FunctionReference::Inline(inline)) =
            read(json!({"inline_prompt": prompt, "name": "n"})).map(|request| request.function)
        else {
            panic!("an inline prompt")
        };
        assert_eq!((inline.name.as_deref(), &inline.prompt_data), (Some("n"), &prompt));
        let code = read(json!({"inline_context": {"runtime": "node"}, "code": "x"})).map(|request| request.function);
        let Ok(FunctionReference::Inline(inline)) = code else { panic!("inline code") };
        assert_eq!(inline.function_data["type"], "code");
        assert!(read(json!({"input": 1})).expect_err("no name").contains("names no function"));
        assert!(read(json!({"slug": "s"})).is_err());
    }

    #[test]
    fn empty_members_count_as_absent() {
        let body = json!({"function_id": "f", "expected": null, "messages": [], "mcp_auth": {}, "parent": "",
            "version": "", "mode": null, "stream": null, "metadata": {}, "api_version": 1});
        let request = read(body).expect("a request");
        assert_eq!(request.arguments, InvokeArguments::default());
        assert_eq!((request.parent, request.version), (Value::Null, FunctionVersion::default()));
    }

    #[test]
    fn a_wrong_member_is_named() {
        for (member, value, words) in [
            ("mode", json!("xml"), "`mode` is `xml`"),
            ("messages", json!({}), "`messages` has to be a list"),
            ("stream", json!("yes"), "`stream` has to be true or false"),
            ("overrides", json!([]), "`overrides` has to be an object"),
            ("parent", json!(1), "`parent` has to be"),
        ] {
            let why = read(json!({"function_id": "f", member: value})).expect_err(words);
            assert!(why.contains(words), "{why}");
        }
        let both = read(json!({"function_id": "f", "version": "1", "environment": "e"})).expect_err("both");
        assert!(both.contains("exclude each other"), "{both}");
    }

    #[test]
    fn a_body_with_a_definition_is_no_invocation() {
        let is = |body: Value| is_invocation(body.as_object().expect("an object"));
        assert!(is(json!({"project_name": "p", "slug": "s", "input": null})));
        for body in [
            json!({"slug": "s", "input": 1, "name": "n"}),
            json!({"slug": "s", "input": 1, "prompt_data": {}}),
            json!({"slug": "s"}),
            json!({"input": 1}),
        ] {
            assert!(!is(body.clone()), "{body}");
        }
    }
}
