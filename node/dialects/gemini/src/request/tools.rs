//! Tools and the choice among them.

use serde_json::{Map, Value, json};

use super::UnsentNames;
use crate::TOOLS_MAX;
use crate::fields::{GeminiFields, put_back, too_many};
use crate::schema::{from_openapi, to_openapi};
use assay_node_dialects::form::{ModelRequest, ToolChoice, ToolDefinition};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

/// Spelling of a mode of calling that the form has no choice for.
pub(super) const MODE: &str = "mode";
/// Names of the field with the schema of the arguments, and of its form as a whole JSON schema.
const PARAMETERS: &str = "parameters";
const JSON_SCHEMA: &str = "parametersJsonSchema";

/// Takes the tools: each declared function, then the tools that the provider runs.
pub(super) fn read_tools(body: &mut GeminiFields) -> Result<Vec<ToolDefinition>, DialectError> {
    let (mut tools, mut others) = (Vec::new(), Vec::new());
    for (index, tool) in body.list("tools", TOOLS_MAX)?.into_iter().enumerate() {
        let path = format!("tools[{index}]");
        let mut tool = GeminiFields::of(tool, &path)?;
        for (at, function) in tool.list("functionDeclarations", TOOLS_MAX)?.into_iter().enumerate() {
            tools.push(read_declaration(function, &format!("{path}.functionDeclarations[{at}]"))?);
        }
        let extra = tool.extra();
        if !extra.is_empty() {
            let name = String::new();
            let (description, parameters, strict, cache) = (None, None, None, None);
            others.push(ToolDefinition { name, description, parameters, strict, cache, extra });
        }
        if tools.len() > TOOLS_MAX {
            return Err(too_many("function declarations", TOOLS_MAX));
        }
    }
    tools.append(&mut others);
    Ok(tools)
}

fn read_declaration(function: Value, path: &str) -> Result<ToolDefinition, DialectError> {
    let mut function = GeminiFields::of(function, path)?;
    let name = function.text("name")?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| DialectError::malformed(function.path_of("name"), "the name of a function"))?;
    let description = function.text("description")?;
    let (parameters, spelling) = if let Some(schema) = function.take(JSON_SCHEMA) {
        (Some(schema), Some((JSON_SCHEMA, json!(true))))
    } else if let Some(schema) = function.take(PARAMETERS) {
        (Some(from_openapi(&schema, &function.path_of(PARAMETERS))?), Some((PARAMETERS, schema)))
    } else {
        (None, None)
    };
    let mut extra = function.extra();
    if let Some((name, value)) = spelling {
        extra = extra.with_field_spelling(Dialect::Gemini, name, value);
    }
    Ok(ToolDefinition { name, description, parameters, strict: None, cache: None, extra })
}

/// Takes the choice among the tools, and returns its spelling if it is not the usual one.
pub(super) fn read_choice(body: &mut GeminiFields, request: &mut ModelRequest) -> Result<Option<Value>, DialectError> {
    let Some(mut settings) = body.object("toolConfig")? else { return Ok(None) };
    let mut spelling = None;
    if let Some(mut calling) = settings.object("functionCallingConfig")? {
        let path = calling.path_of(MODE);
        if let Some(mode) = calling.text(MODE)? {
            let names = match mode.to_ascii_uppercase().as_str() {
                "ANY" => calling.texts("allowedFunctionNames", TOOLS_MAX)?,
                _ => Vec::new(),
            };
            let choice = choice_of(&mode, names)
                .ok_or_else(|| DialectError::malformed(path, "`AUTO`, `ANY`, `NONE` or `VALIDATED`"))?;
            spelling = (mode_of(&choice) != mode).then(|| json!(mode));
            request.tool_choice = Some(choice);
        }
        calling.rest_into(&mut settings, "functionCallingConfig");
    }
    settings.rest_into(body, "toolConfig");
    Ok(spelling)
}

fn choice_of(mode: &str, names: Vec<String>) -> Option<ToolChoice> {
    match mode.to_ascii_uppercase().as_str() {
        "AUTO" | "VALIDATED" | "MODE_UNSPECIFIED" => Some(ToolChoice::Auto),
        "NONE" => Some(ToolChoice::None),
        "ANY" if names.is_empty() => Some(ToolChoice::Required),
        "ANY" => Some(ToolChoice::Named(names)),
        _ => None,
    }
}

fn mode_of(choice: &ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::None => "NONE",
        ToolChoice::Required | ToolChoice::Named(_) => "ANY",
    }
}

pub(super) fn write_tools(
    tools: &[ToolDefinition],
    options: &WriteOptions,
    dropped: &mut UnsentNames,
) -> Result<Vec<Value>, DialectError> {
    let (mut functions, mut others) = (Vec::new(), Vec::new());
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        dropped.add_if(tool.cache.is_some(), "cache_control");
        if tool.name.is_empty() {
            let own = tool.extra.for_dialect(Dialect::Gemini);
            let own = own.ok_or_else(|| DialectError::unsupported(path, "a tool that another provider runs"))?;
            others.push(Value::Object(own.clone()));
            continue;
        }
        dropped.add_extra(&tool.extra);
        dropped.add_if(tool.strict == Some(true), "strict");
        functions.push(write_declaration(tool, options, &path)?);
    }
    let declared = (!functions.is_empty()).then(|| json!({ "functionDeclarations": functions }));
    Ok(declared.into_iter().chain(others).collect())
}

fn write_declaration(tool: &ToolDefinition, options: &WriteOptions, path: &str) -> Result<Value, DialectError> {
    let mut function = Map::from_iter([("name".to_owned(), json!(tool.name))]);
    if let Some(description) = &tool.description {
        function.insert("description".to_owned(), json!(description));
    }
    if let Some(schema) = &tool.parameters {
        let path = format!("{path}.parameters");
        let spelled = tool.extra.field_spelling(Dialect::Gemini, PARAMETERS);
        if options.takes_json_schema && spelled.is_none()
            || tool.extra.field_spelling(Dialect::Gemini, JSON_SCHEMA).is_some()
        {
            function.insert(JSON_SCHEMA.to_owned(), schema.clone());
        } else if let Some(spelled) = spelled.filter(|spelled| from_openapi(spelled, &path).as_ref() == Ok(schema)) {
            function.insert(PARAMETERS.to_owned(), spelled.clone());
        } else {
            let schema = to_openapi(schema, &path)?;
            if has_arguments(&schema) {
                function.insert(PARAMETERS.to_owned(), schema);
            }
        }
    }
    put_back(&mut function, &tool.extra);
    Ok(Value::Object(function))
}

/// Whether a schema has arguments. Servers refuse an object without properties where a function has none.
fn has_arguments(schema: &Value) -> bool {
    let is_object = schema.get("type").is_none_or(|kind| kind == "OBJECT");
    let has_properties = schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    has_properties || !is_object || schema.get("anyOf").is_some()
}

pub(super) fn write_choice(request: &ModelRequest) -> Option<Value> {
    let choice = request.tool_choice.as_ref()?;
    let usual = mode_of(choice);
    let spelled = request.extra.field_spelling(Dialect::Gemini, MODE).and_then(Value::as_str);
    // a choice that was changed after it was read is not what was spelled
    let mode = spelled.filter(|mode| choice_of(mode, Vec::new()).is_some_and(|read| mode_of(&read) == usual));
    let mut calling = Map::from_iter([("mode".to_owned(), json!(mode.unwrap_or(usual)))]);
    if let ToolChoice::Named(names) = choice {
        calling.insert("allowedFunctionNames".to_owned(), json!(names));
    }
    Some(json!({ "functionCallingConfig": calling }))
}
