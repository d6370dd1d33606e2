//! Tools of a request, the choice among them, and JSON answers.

use serde_json::{Map, Value, json};

use crate::TOOLS_MAX;
use crate::blocks::ConverseBlockWriter;
use assay_node_dialects::form::{JsonSchemaFormat, ModelRequest, OutputFormat, ToolChoice, ToolDefinition};
use assay_node_dialects::{DialectError, WriteOptions};

/// Longest name of a tool.
const TOOL_NAME_BYTES_MAX: usize = 64;
/// Name of the tool whose input is the answer where the model has no response format.
const JSON_TOOL: &str = "json";
const JSON_TOOL_DESCRIPTION: &str = "Output the result in JSON format";
/// Tool of a request that has none, but a history with calls.
const NO_TOOL: &str = "none_available";
const NO_TOOL_DESCRIPTION: &str = "Do not call this tool. No tools are available.";

/// Returns whether the written request forces the tool `json`, whose input is the text of the answer. Readers leave its calls
/// as they are; the gateway makes them text for all formats alike.
pub fn uses_json_tool(request: &ModelRequest, options: &WriteOptions) -> bool {
    let is_forced_elsewhere = matches!(request.tool_choice, Some(ToolChoice::Named(_)));
    match &request.output_format {
        None | Some(OutputFormat::Text) => false,
        Some(OutputFormat::JsonObject) => !is_forced_elsewhere,
        Some(OutputFormat::JsonSchema(_)) => options.schema_as_tool && !is_forced_elsewhere,
    }
}

/// Returns the schema that the API enforces itself, if the request has one.
pub(super) fn native_schema<'a>(request: &'a ModelRequest, options: &WriteOptions) -> Option<&'a JsonSchemaFormat> {
    match &request.output_format {
        Some(OutputFormat::JsonSchema(format)) if !options.schema_as_tool => Some(format),
        _ => None,
    }
}

/// Returns whether the request asks for JSON and forces another tool, so that the format has no effect.
pub(super) fn is_unanswered(request: &ModelRequest, options: &WriteOptions) -> bool {
    let asks = !matches!(request.output_format, None | Some(OutputFormat::Text));
    asks && native_schema(request, options).is_none() && !uses_json_tool(request, options)
}

/// Writes `toolConfig`, if the request needs it.
pub(super) fn tool_config(
    request: &ModelRequest,
    options: &WriteOptions,
    thinks: bool,
    writer: &mut ConverseBlockWriter,
) -> Result<Option<Value>, DialectError> {
    if request.tools.len() > TOOLS_MAX {
        return Err(DialectError::unsupported("tools", format!("more than {TOOLS_MAX} tools")));
    }
    let is_json = uses_json_tool(request, options);
    let mut tools = Vec::new();
    for (index, tool) in request.tools.iter().enumerate().filter(|(_, tool)| is_offered(tool, request)) {
        tools.push(write_tool(tool, &format!("tools[{index}]"), writer)?);
        tools.extend(writer.cache_point(tool.cache.as_ref()));
    }
    let has_tools = !tools.is_empty();
    if is_json {
        tools.push(json_tool(request)?);
    }
    if tools.is_empty() && writer.has_tool_blocks {
        tools.push(tool_spec(NO_TOOL, Some(NO_TOOL_DESCRIPTION), json!({"type": "object", "properties": {}})));
    }
    writer.dropped.add_if("parallel_tool_calls", request.parallel_tool_calls == Some(false) && has_tools);
    if tools.is_empty() {
        return Ok(None);
    }
    let choice = match &request.tool_choice {
        _ if is_json && has_tools => Some(json!({"any": {}})),
        _ if is_json => Some(json!({"tool": {"name": JSON_TOOL}})),
        _ if !has_tools => None,
        Some(ToolChoice::Required) => Some(json!({"any": {}})),
        Some(ToolChoice::Named(names)) => match names.as_slice() {
            [name] => Some(json!({"tool": {"name": name}})),
            _ => Some(json!({"any": {}})),
        },
        Some(ToolChoice::Auto) => Some(json!({"auto": {}})),
        Some(ToolChoice::None) | None => None,
    };
    let is_forced = choice.as_ref().is_some_and(|choice| choice.get("auto").is_none());
    let mut config = Map::from_iter([("tools".to_owned(), tools.into())]);
    if is_forced && thinks {
        writer.dropped.add_if("tool_choice", !is_json);
    } else if let Some(choice) = choice {
        config.insert("toolChoice".to_owned(), choice);
    }
    Ok(Some(Value::Object(config)))
}

/// Returns whether the model may call the tool. The API has no choice of none, and none of several.
fn is_offered(tool: &ToolDefinition, request: &ModelRequest) -> bool {
    match &request.tool_choice {
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Named(names)) => names.len() < 2 || names.contains(&tool.name),
        _ => true,
    }
}

fn write_tool(tool: &ToolDefinition, path: &str, writer: &mut ConverseBlockWriter) -> Result<Value, DialectError> {
    if tool.name.is_empty() {
        return Err(DialectError::unsupported(path, "a tool that another provider runs"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if tool.name.len() > TOOL_NAME_BYTES_MAX || !tool.name.chars().all(is_allowed) {
        let what = format!("a name other than {TOOL_NAME_BYTES_MAX} letters, digits, `_` and `-`");
        return Err(DialectError::unsupported(format!("{path}.name"), what));
    }
    writer.dropped.add_extra(&tool.extra);
    writer.dropped.add_if("strict", tool.strict == Some(true));
    let no_schema = || DialectError::malformed(format!("{path}.parameters"), "a JSON schema of an object");
    let schema = object_schema(tool.parameters.as_ref()).ok_or_else(no_schema)?;
    Ok(tool_spec(&tool.name, tool.description.as_deref(), schema))
}

fn tool_spec(name: &str, description: Option<&str>, schema: Value) -> Value {
    let mut spec = json!({"name": name});
    if let Some(description) = description.filter(|description| !description.is_empty()) {
        spec["description"] = description.into();
    }
    spec["inputSchema"] = json!({"json": schema});
    json!({"toolSpec": spec})
}

/// Returns a schema that names its type, as the API requires. None of one that is no object.
fn object_schema(schema: Option<&Value>) -> Option<Value> {
    let empty = Value::Object(Map::new());
    let fields = schema.filter(|schema| !schema.is_null()).unwrap_or(&empty).as_object()?;
    let mut named = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    named.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    Some(Value::Object(named))
}

/// Writes the tool that stands for the output format.
fn json_tool(request: &ModelRequest) -> Result<Value, DialectError> {
    if request.tools.iter().any(|tool| tool.name == JSON_TOOL) {
        return Err(DialectError::unsupported("tools", "a tool named json beside a JSON response format"));
    }
    let (description, schema) = match &request.output_format {
        Some(OutputFormat::JsonSchema(format)) => (format.description.as_deref(), Some(&format.schema)),
        _ => (None, None),
    };
    let schema = object_schema(schema).filter(|schema| schema["type"] == "object");
    let schema =
        schema.ok_or_else(|| DialectError::unsupported("response_format", "a schema of other values than objects"))?;
    Ok(tool_spec(JSON_TOOL, Some(description.unwrap_or(JSON_TOOL_DESCRIPTION)), schema))
}
