//! Tools of a request and the choice among them.

use serde_json::{Map, Value};

use super::output::{input_schema, is_enforceable, schema_tool};
use super::thinking::AnthropicThinking;
use crate::SCHEMA_TOOL;
use crate::TOOLS_MAX;
use crate::block_writer::AnthropicDropped;
use crate::fields::{check_count, put, put_back, put_cache, typed};
use assay_node_dialects::form::{ModelRequest, ToolChoice, ToolDefinition};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

/// Longest name of a tool.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Writes `tools` and `tool_choice`.
pub(super) fn put_tools(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    options: &WriteOptions,
    thinking: &AnthropicThinking,
    dropped: &mut AnthropicDropped,
) -> Result<(), DialectError> {
    let is_own = request.extra.dialect() == Some(Dialect::Anthropic);
    let schema_tool = schema_tool(request, options)?;
    let has_schema_tool = schema_tool.is_some();
    check_count(request.tools.len(), "tools", TOOLS_MAX)?;
    let mut tools = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        if !is_hidden(tool, request, has_schema_tool) {
            tools.push(Value::Object(write_tool(tool, is_own, options, &format!("tools[{index}]"), dropped)?));
        }
    }
    let has_other_tools = !tools.is_empty();
    tools.extend(schema_tool.map(Value::Object));
    let has_tools = !tools.is_empty();
    put(body, "tools", has_tools.then_some(tools));
    if !has_tools && !is_own {
        return Ok(());
    }
    let mut choice = if has_schema_tool { schema_choice(has_other_tools) } else { own_choice(request) };
    let is_forced = choice.as_ref().is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
    if is_forced && thinking.is_on && (!is_own || has_schema_tool) {
        choice = None;
        if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_))) {
            dropped.add("tool_choice");
        }
    }
    put_parallel(&mut choice, request.parallel_tool_calls, is_own);
    put(body, "tool_choice", choice);
    Ok(())
}

/// Returns whether the model must not call the tool, which a single choice cannot say.
fn is_hidden(tool: &ToolDefinition, request: &ModelRequest, has_schema_tool: bool) -> bool {
    match &request.tool_choice {
        Some(ToolChoice::None) => has_schema_tool,
        Some(ToolChoice::Named(names)) => names.len() > 1 && !names.contains(&tool.name),
        _ => false,
    }
}

fn write_tool(
    tool: &ToolDefinition,
    is_own: bool,
    options: &WriteOptions,
    path: &str,
    dropped: &mut AnthropicDropped,
) -> Result<Map<String, Value>, DialectError> {
    if tool.name.is_empty() {
        let whole = tool.extra.for_dialect(Dialect::Anthropic).cloned();
        return whole.ok_or_else(|| DialectError::unsupported(path, "a tool that another provider runs"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !is_own && (tool.name.len() > TOOL_NAME_BYTES_MAX || !tool.name.chars().all(is_allowed)) {
        let what = format!("a name other than {TOOL_NAME_BYTES_MAX} letters, digits, `_` and `-`");
        return Err(DialectError::unsupported(format!("{path}.name"), what));
    }
    let mut written = Map::new();
    written.insert("name".into(), tool.name.clone().into());
    put(&mut written, "description", tool.description.clone());
    if is_own {
        put(&mut written, "input_schema", tool.parameters.clone());
        put(&mut written, "strict", tool.strict);
    } else {
        let no_schema = || DialectError::malformed(format!("{path}.parameters"), "a JSON schema of an object");
        let schema = input_schema(tool.parameters.as_ref()).ok_or_else(no_schema)?;
        let schema = Value::Object(schema);
        if tool.strict == Some(true) {
            let is_strict = !options.schema_as_tool && is_enforceable(&schema);
            put(&mut written, "strict", is_strict.then_some(true));
            if !is_strict {
                dropped.add("strict");
            }
        }
        written.insert("input_schema".into(), schema);
    }
    dropped.add_extra(&tool.extra);
    put_cache(&mut written, &tool.cache);
    put_back(&mut written, &tool.extra);
    Ok(written)
}

/// Choice that makes the model answer with the tool that stands for the output format, or call others before.
fn schema_choice(has_other_tools: bool) -> Option<Map<String, Value>> {
    if has_other_tools {
        return Some(typed("any"));
    }
    let mut choice = named(SCHEMA_TOOL);
    choice.insert("disable_parallel_tool_use".into(), true.into());
    Some(choice)
}

fn own_choice(request: &ModelRequest) -> Option<Map<String, Value>> {
    Some(match request.tool_choice.as_ref()? {
        ToolChoice::None => typed("none"),
        ToolChoice::Auto => typed("auto"),
        ToolChoice::Required => typed("any"),
        ToolChoice::Named(names) => match names.as_slice() {
            [name] => named(name),
            _ => typed("any"),
        },
    })
}

fn named(name: &str) -> Map<String, Value> {
    let mut choice = typed("tool");
    choice.insert("name".into(), name.into());
    choice
}

/// Says whether calls may be parallel. They may if nothing is said.
fn put_parallel(choice: &mut Option<Map<String, Value>>, parallel: Option<bool>, is_own: bool) {
    let Some(parallel) = parallel.filter(|parallel| is_own || !parallel) else { return };
    let choice = choice.get_or_insert_with(|| typed("auto"));
    if is_own || choice["type"] != "none" {
        choice.insert("disable_parallel_tool_use".into(), (!parallel).into());
    }
}
