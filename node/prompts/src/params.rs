//! Params of a prompt as those of a chat request.

use serde_json::{Map, Value};

use crate::error::PromptError;
use crate::prompt::ROOT;
use crate::template::TextRenderer;

/// Levels of a response schema that are rendered.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// Whether a model call may be answered from the cache of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptCacheMode {
    #[default]
    Auto,
    Never,
}

/// How params are named for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParamNames {
    /// `topP`, `topK` and `maxOutputTokens` become `top_p`, `top_k` and `max_tokens`.
    #[default]
    OpenAi,
    /// Names of Google's format are left (F-04).
    Google,
}

/// Names of Google's format, and those of OpenAI's.
const RENAMED: [(&str, &str); 3] = [("topP", "top_p"), ("topK", "top_k"), ("maxOutputTokens", "max_tokens")];
/// Params that the request has from elsewhere.
const OWNED: [&str; 3] = ["model", "messages", "use_cache"];

/// Returns the params of the request. Nulls are left out: providers refuse some of them.
pub(crate) fn request_params(
    params: &Map<String, Value>,
    names: ParamNames,
    renderer: &mut TextRenderer<'_>,
) -> Result<Map<String, Value>, PromptError> {
    let mut request = Map::new();
    for (name, value) in params {
        if value.is_null() || OWNED.contains(&name.as_str()) {
            continue;
        }
        let renamed = RENAMED.iter().find(|(google, _)| google == name && names == ParamNames::OpenAi);
        match renamed {
            // a param that has the right name already wins
            Some((_, other)) if params.get(*other).is_some_and(|value| !value.is_null()) => {}
            Some((_, other)) => drop(request.insert((*other).to_owned(), value.clone())),
            None => drop(request.insert(name.clone(), value.clone())),
        }
    }
    if let Some(schema) =
        request.get_mut("response_format").and_then(|format| format.pointer_mut("/json_schema/schema"))
    {
        render_schema(schema, renderer)?;
    }
    Ok(request)
}

/// Reads `use_cache`.
pub(crate) fn cache_mode(params: &Map<String, Value>) -> Result<PromptCacheMode, PromptError> {
    match params.get("use_cache") {
        None | Some(Value::Null | Value::Bool(true)) => Ok(PromptCacheMode::Auto),
        Some(Value::Bool(false)) => Ok(PromptCacheMode::Never),
        Some(other) => Err(PromptError::wrong_type(&format!("{ROOT}.options.params.use_cache"), "a boolean", other)),
    }
}

/// Renders a response schema: an object with templates in it, or a template of the object's text.
fn render_schema(schema: &mut Value, renderer: &mut TextRenderer<'_>) -> Result<(), PromptError> {
    let path = format!("{ROOT}.options.params.response_format.json_schema.schema");
    let Value::String(template) = schema else {
        return render_texts(schema, &path, 0, renderer);
    };
    let text = renderer.render(&path, template)?;
    *schema = match text.trim() {
        "" => Value::Null,
        text => serde_json::from_str(text).map_err(|why| PromptError::NotJson { path, why: why.to_string() })?,
    };
    Ok(())
}

fn render_texts(
    value: &mut Value,
    path: &str,
    depth: usize,
    renderer: &mut TextRenderer<'_>,
) -> Result<(), PromptError> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(PromptError::too_many(path, "levels in a schema", SCHEMA_DEPTH_MAX));
    }
    match value {
        Value::String(template) => *template = renderer.render(path, template)?,
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                render_texts(item, &format!("{path}[{index}]"), depth + 1, renderer)?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                render_texts(member, &format!("{path}.{name}"), depth + 1, renderer)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}
