//! JSON answers: a schema that the API enforces, or a forced tool whose input is the answer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::SCHEMA_TOOL;
use assay_node_dialects::form::{JsonSchemaFormat, ModelRequest, OutputFormat, ToolChoice};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

/// Upper bound of nested schemas; deeper ones are sent as a tool.
const SCHEMA_DEPTH_MAX: usize = 64;
const TOOL_DESCRIPTION: &str = "Output the result in JSON format";
/// Keywords that do not change what is valid, or that the API takes with any value.
const FREE_KEYWORDS: [&str; 9] =
    ["type", "required", "title", "description", "default", "$schema", "$id", "examples", "$comment"];
/// Formats of texts that the API enforces.
const FORMATS: [&str; 10] =
    ["uuid", "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"];

/// How the answer to a request is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnthropicReadOptions {
    /// The input of the tool `json` is the text of the answer.
    pub schema_tool: bool,
}

impl AnthropicReadOptions {
    /// Options for the answer to what [`super::write_request`] writes.
    pub fn for_request(request: &ModelRequest, options: &WriteOptions) -> AnthropicReadOptions {
        AnthropicReadOptions { schema_tool: schema_tool_of(request, options).is_some() }
    }
}

/// Returns the schema that the API enforces itself, if the request has one.
pub(super) fn native_schema<'a>(request: &'a ModelRequest, options: &WriteOptions) -> Option<&'a JsonSchemaFormat> {
    let Some(OutputFormat::JsonSchema(format)) = &request.output_format else { return None };
    let is_own = request.extra.dialect() == Some(Dialect::Anthropic);
    let is_native = !options.schema_as_tool && (is_own || is_enforceable(&format.schema));
    is_native.then_some(format)
}

/// Returns description and schema of the tool that stands for the output format, if the request needs it.
fn schema_tool_of<'a>(request: &'a ModelRequest, options: &WriteOptions) -> Option<(&'a str, Option<&'a Value>)> {
    let is_forced_elsewhere = matches!(request.tool_choice, Some(ToolChoice::Named(_)));
    match &request.output_format {
        None | Some(OutputFormat::Text) => None,
        Some(_) if is_forced_elsewhere && native_schema(request, options).is_none() => None,
        Some(OutputFormat::JsonObject) => Some((TOOL_DESCRIPTION, None)),
        Some(OutputFormat::JsonSchema(format)) => {
            let description = format.description.as_deref().unwrap_or(TOOL_DESCRIPTION);
            native_schema(request, options).is_none().then_some((description, Some(&format.schema)))
        }
    }
}

/// Returns whether the request asks for JSON and forces another tool, so that the format has no effect.
pub(super) fn is_unanswered(request: &ModelRequest, options: &WriteOptions) -> bool {
    let asks = !matches!(request.output_format, None | Some(OutputFormat::Text));
    asks && native_schema(request, options).is_none() && schema_tool_of(request, options).is_none()
}

/// Writes the tool that stands for the output format.
pub(super) fn schema_tool(
    request: &ModelRequest,
    options: &WriteOptions,
) -> Result<Option<Map<String, Value>>, DialectError> {
    let Some((description, schema)) = schema_tool_of(request, options) else { return Ok(None) };
    if request.tools.iter().any(|tool| tool.name == SCHEMA_TOOL) {
        return Err(DialectError::unsupported("tools", "a tool named json beside a JSON response format"));
    }
    let schema = input_schema(schema).filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"));
    let schema =
        schema.ok_or_else(|| DialectError::unsupported("response_format", "a schema of other values than objects"))?;
    Ok(Some(Map::from_iter([
        ("name".to_owned(), Value::from(SCHEMA_TOOL)),
        ("description".to_owned(), Value::from(description)),
        ("input_schema".to_owned(), Value::Object(schema)),
    ])))
}

/// Returns a schema that names its type, as the API requires. None of one that is no object.
pub(super) fn input_schema(schema: Option<&Value>) -> Option<Map<String, Value>> {
    let empty = Value::Object(Map::new());
    let fields = schema.unwrap_or(&empty).as_object()?;
    let mut named = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    named.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    Some(named)
}

/// Returns whether the API enforces the schema: objects are closed, and only some keywords are used.
pub(super) fn is_enforceable(schema: &Value) -> bool {
    EnforceableSchemaWalk { root: schema, open: Vec::new(), done: BTreeSet::new() }.takes(schema, 0)
}

/// Walk through a schema and the definitions it refers to.
struct EnforceableSchemaWalk<'a> {
    root: &'a Value,
    /// References that are followed now; one to them is recursive, which the API refuses.
    open: Vec<&'a str>,
    done: BTreeSet<&'a str>,
}

impl<'a> EnforceableSchemaWalk<'a> {
    fn takes(&mut self, schema: &'a Value, depth: usize) -> bool {
        let Some(fields) = schema.as_object().filter(|_| depth < SCHEMA_DEPTH_MAX) else { return false };
        let is_object = fields.contains_key("properties") || names_object(fields.get("type"));
        let is_closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
        (is_closed || !is_object) && fields.iter().all(|(keyword, value)| self.takes_keyword(keyword, value, depth))
    }

    fn takes_keyword(&mut self, keyword: &str, value: &'a Value, depth: usize) -> bool {
        let is_plain = |value: &Value| !value.is_array() && !value.is_object();
        match keyword {
            "properties" | "$defs" | "definitions" => {
                value.as_object().is_some_and(|schemas| schemas.values().all(|schema| self.takes(schema, depth + 1)))
            }
            "items" => self.takes(value, depth + 1),
            "anyOf" => {
                value.as_array().is_some_and(|schemas| schemas.iter().all(|schema| self.takes(schema, depth + 1)))
            }
            "allOf" => value.as_array().is_some_and(|schemas| {
                schemas.iter().all(|schema| schema.get("$ref").is_none() && self.takes(schema, depth + 1))
            }),
            "enum" => value.as_array().is_some_and(|values| values.iter().all(is_plain)),
            "const" => is_plain(value),
            "additionalProperties" => *value == Value::Bool(false),
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            "minItems" => value.as_u64().is_some_and(|count| count <= 1),
            "$ref" => value.as_str().is_some_and(|reference| self.takes_reference(reference, depth)),
            keyword => FREE_KEYWORDS.contains(&keyword),
        }
    }

    fn takes_reference(&mut self, reference: &'a str, depth: usize) -> bool {
        if self.done.contains(reference) {
            return true;
        }
        let target = reference.strip_prefix('#').filter(|pointer| !pointer.is_empty());
        let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) else { return false };
        if self.open.contains(&reference) {
            return false;
        }
        self.open.push(reference);
        let takes = self.takes(target, depth + 1);
        self.open.pop();
        if takes {
            self.done.insert(reference);
        }
        takes
    }
}

fn names_object(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => false,
    }
}
