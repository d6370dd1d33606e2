//! Tools and the choice among them.

use serde_json::{Value, json};

use super::super::TOOLS_MAX;
use super::super::fields::{
    Fields, object, put, put_rest, put_some, rest, take, take_flag, take_list, take_needed_text, take_text, text_of,
    typed, within,
};
use assay_node_dialects::form::{Extra, ModelRequest, ToolChoice, ToolDefinition};
use assay_node_dialects::{Dialect, DialectError};

pub(super) fn read_tools(fields: &mut Fields) -> Result<Vec<ToolDefinition>, DialectError> {
    let tools = take_list(fields, "", "tools", TOOLS_MAX)?.unwrap_or_default();
    tools.into_iter().enumerate().map(|(at, tool)| read_tool(tool, &format!("tools[{at}]"))).collect()
}

fn read_tool(tool: Value, path: &str) -> Result<ToolDefinition, DialectError> {
    let mut fields = object(tool, path)?;
    match text_of(&fields, "type") {
        Some("function") => {
            fields.shift_remove("type");
            let name = take_needed_text(&mut fields, path, "name")?;
            if name.is_empty() {
                return Err(DialectError::malformed(within(path, "name"), "the name of a function"));
            }
            Ok(ToolDefinition {
                name,
                description: take_text(&mut fields, path, "description")?,
                parameters: take(&mut fields, "parameters"),
                strict: take_flag(&mut fields, path, "strict")?,
                cache: None,
                extra: rest(fields),
            })
        }
        Some(_) => Ok(ToolDefinition {
            name: String::new(),
            description: None,
            parameters: None,
            strict: None,
            cache: None,
            extra: rest(fields),
        }),
        None => Err(DialectError::malformed(format!("{path}.type"), "the type of a tool")),
    }
}

/// Writes the tools. `strict` is the default of this dialect and not of the others, so it is written for them.
pub(super) fn write_tools(request: &ModelRequest, dropped: &mut Vec<String>) -> Result<Vec<Value>, DialectError> {
    let is_own = request.extra.for_dialect(Dialect::Responses).is_some();
    let mut tools = Vec::with_capacity(request.tools.len());
    for (at, tool) in request.tools.iter().enumerate() {
        let own = tool.extra.for_dialect(Dialect::Responses);
        if tool.name.is_empty() {
            let own = own.ok_or_else(|| DialectError::unsupported(format!("tools[{at}]"), "a tool of a provider"))?;
            tools.push(Value::Object(own.clone()));
            continue;
        }
        let mut fields = typed("function");
        put(&mut fields, "name", tool.name.as_str());
        put_some(&mut fields, "description", tool.description.as_deref());
        put_some(&mut fields, "parameters", tool.parameters.clone());
        put_some(&mut fields, "strict", tool.strict.or((!is_own).then_some(false)));
        put_rest(&mut fields, &tool.extra);
        dropped.extend(tool.extra.dropped_by(Dialect::Responses).map(str::to_owned));
        dropped.extend(tool.cache.iter().map(|_| "cache_control".to_owned()));
        tools.push(Value::Object(fields));
    }
    Ok(tools)
}

/// Reads the choice. One that the form cannot express stays in the field.
pub(super) fn read_tool_choice(fields: &mut Fields) -> Result<Option<ToolChoice>, DialectError> {
    let choice = match fields.get("tool_choice") {
        Some(Value::String(choice)) => match choice.as_str() {
            "none" => Some(ToolChoice::None),
            "auto" => Some(ToolChoice::Auto),
            "required" => Some(ToolChoice::Required),
            _ => return Err(DialectError::malformed("tool_choice", "none, auto, required or an object")),
        },
        Some(Value::Object(choice)) => read_named(choice),
        Some(Value::Null) | None => {
            fields.shift_remove("tool_choice");
            return Ok(None);
        }
        Some(_) => return Err(DialectError::malformed("tool_choice", "none, auto, required or an object")),
    };
    if choice.is_some() {
        fields.shift_remove("tool_choice");
    }
    Ok(choice)
}

/// Functions of which at least one shall be called; none for choices without an equal in the form.
fn read_named(choice: &Fields) -> Option<ToolChoice> {
    let name = |tool: &Fields| {
        let is_plain = tool.len() == 2 && text_of(tool, "type") == Some("function");
        text_of(tool, "name").filter(|_| is_plain).map(str::to_owned)
    };
    if let Some(name) = name(choice) {
        return Some(ToolChoice::Named(vec![name]));
    }
    let is_required = choice.len() == 3
        && text_of(choice, "type") == Some("allowed_tools")
        && text_of(choice, "mode") == Some("required");
    let tools = choice.get("tools")?.as_array().filter(|tools| is_required && tools.len() <= TOOLS_MAX)?;
    let names = tools.iter().map(|tool| tool.as_object().and_then(name)).collect::<Option<Vec<_>>>()?;
    (!names.is_empty()).then_some(ToolChoice::Named(names))
}

pub(super) fn write_tool_choice(choice: Option<&ToolChoice>, extra: &Extra) -> Option<Value> {
    let function = |name: &String| json!({"type": "function", "name": name});
    match choice {
        None => super::super::fields::kept(extra, "tool_choice").cloned(),
        Some(ToolChoice::None) => Some("none".into()),
        Some(ToolChoice::Auto) => Some("auto".into()),
        Some(ToolChoice::Named(names)) => match names.as_slice() {
            [] => Some("required".into()),
            [name] => Some(function(name)),
            names => {
                let tools: Vec<_> = names.iter().map(function).collect();
                Some(json!({"type": "allowed_tools", "mode": "required", "tools": tools}))
            }
        },
        Some(ToolChoice::Required) => Some("required".into()),
    }
}
