//! Tools of a chat request, the choice among them, and their calls.

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, put_extra, put_signature, put_some, take_signature};
use super::parts::{put_cache, take_cache};
use assay_node_dialects::form::{ContentPart, ToolCallPart, ToolChoice, ToolDefinition};
use assay_node_dialects::{Dialect, DialectError};

/// Spelling of tools and calls in the legacy form: `functions` and `function_call`.
pub(super) const LEGACY: &str = "functions";

/// Member of a foreign part that is a call of another type than a function.
const OTHER_CALL: &str = "tool_call";

pub(super) fn read_tool(value: Value, path: String) -> Result<ToolDefinition, DialectError> {
    let mut fields = ChatFields::of(path, value)?;
    if fields.get("type").is_some_and(|kind| kind != "function") {
        let extra = fields.into_extra();
        return Ok(ToolDefinition {
            name: String::new(),
            description: None,
            parameters: None,
            strict: None,
            cache: None,
            extra,
        });
    }
    fields.take("type");
    let path = fields.path_of("function");
    let mut function = fields.object("function")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    let mut tool = read_function(&mut function)?;
    tool.cache = take_cache(&mut fields);
    fields.put_rest("function", function);
    tool.extra = fields.into_extra();
    Ok(tool)
}

/// Reads a member of the legacy list `functions`.
pub(super) fn read_legacy_tool(value: Value, path: String) -> Result<ToolDefinition, DialectError> {
    let mut fields = ChatFields::of(path, value)?;
    let mut tool = read_function(&mut fields)?;
    tool.extra = fields.into_extra().spelled(LEGACY);
    Ok(tool)
}

fn read_function(fields: &mut ChatFields) -> Result<ToolDefinition, DialectError> {
    let name = fields.required_text("name")?;
    if name.is_empty() {
        return Err(DialectError::malformed(fields.path_of("name"), "a name"));
    }
    let (description, parameters) = (fields.text("description")?, fields.take("parameters"));
    let strict = fields.boolean("strict")?;
    Ok(ToolDefinition { name, description, parameters, strict, cache: None, extra: Default::default() })
}

pub(super) fn is_legacy_tool(tool: &ToolDefinition) -> bool {
    tool.extra.spelling() == Some(LEGACY)
}

pub(super) fn write_tool(tool: &ToolDefinition, path: &str) -> Result<Value, DialectError> {
    if tool.name.is_empty() {
        let Some(whole) = tool.extra.for_dialect(Dialect::Chat) else {
            return Err(DialectError::unsupported(path, "a tool that another provider runs"));
        };
        return Ok(Value::Object(whole.clone()));
    }
    let mut function = Map::new();
    function.insert("name".to_owned(), Value::String(tool.name.clone()));
    put_some(&mut function, "description", tool.description.clone());
    put_some(&mut function, "parameters", tool.parameters.clone());
    put_some(&mut function, "strict", tool.strict);
    if is_legacy_tool(tool) {
        put_extra(&mut function, &tool.extra);
        return Ok(Value::Object(function));
    }
    let mut map = Map::new();
    map.insert("type".to_owned(), Value::String("function".to_owned()));
    map.insert("function".to_owned(), Value::Object(function));
    put_cache(&mut map, tool.cache.as_ref());
    put_extra(&mut map, &tool.extra);
    Ok(Value::Object(map))
}

/// Reads the choice among tools. A choice that the form cannot say stays in the fields.
pub(super) fn take_tool_choice(fields: &mut ChatFields) -> Result<Option<ToolChoice>, DialectError> {
    let path = fields.path_of("tool_choice");
    let Some(value) = fields.take("tool_choice") else { return Ok(None) };
    match &value {
        Value::String(word) => match word.as_str() {
            "none" => Ok(Some(ToolChoice::None)),
            "auto" => Ok(Some(ToolChoice::Auto)),
            "required" | "any" => Ok(Some(ToolChoice::Required)),
            _ => Err(DialectError::malformed(path, "none, auto, required or an object")),
        },
        Value::Object(choice) => {
            let named = named_tools(choice);
            let rest = if named.is_some() { unknown_members(choice) } else { choice.clone() };
            if !rest.is_empty() {
                fields.put("tool_choice", Value::Object(rest));
            }
            Ok(named.map(ToolChoice::Named))
        }
        _ => Err(DialectError::malformed(path, "none, auto, required or an object")),
    }
}

/// Returns the functions of which one must be called.
fn named_tools(choice: &Map<String, Value>) -> Option<Vec<String>> {
    let function = |of: &Value| Some(of.get("function")?.get("name")?.as_str()?.to_owned());
    match choice.get("type")?.as_str()? {
        "function" => Some(vec![function(&Value::Object(choice.clone()))?]),
        "allowed_tools" => {
            let allowed = choice.get("allowed_tools")?;
            let tools = allowed.get("tools")?.as_array().filter(|tools| !tools.is_empty())?;
            let is_required = allowed.get("mode")? == "required";
            is_required.then(|| tools.iter().map(function).collect::<Option<Vec<_>>>())?
        }
        _ => None,
    }
}

/// Returns the members of a choice of one function that have no meaning in the form.
fn unknown_members(choice: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = choice.clone();
    for known in ["type", "allowed_tools"] {
        rest.shift_remove(known);
    }
    if let Some(function) = rest.get_mut("function").and_then(Value::as_object_mut) {
        function.shift_remove("name");
        if function.is_empty() {
            rest.shift_remove("function");
        }
    }
    rest
}

pub(super) fn write_tool_choice(choice: &ToolChoice) -> Value {
    let function = |name: &String| json!({ "type": "function", "function": { "name": name } });
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(names) => match names.as_slice() {
            [name] => function(name),
            names => {
                let tools: Vec<Value> = names.iter().map(function).collect();
                json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required", "tools": tools } })
            }
        },
    }
}

/// Reads the legacy choice `function_call` of a request.
pub(super) fn take_legacy_choice(fields: &mut ChatFields) -> Result<Option<ToolChoice>, DialectError> {
    let path = fields.path_of("function_call");
    match fields.take("function_call") {
        None => Ok(None),
        Some(Value::String(word)) if word == "none" => Ok(Some(ToolChoice::None)),
        Some(Value::String(word)) if word == "auto" => Ok(Some(ToolChoice::Auto)),
        Some(Value::Object(choice)) if choice.get("name").is_some_and(Value::is_string) => {
            let name = choice.get("name").and_then(Value::as_str).unwrap_or_default();
            Ok(Some(ToolChoice::Named(vec![name.to_owned()])))
        }
        Some(_) => Err(DialectError::malformed(path, "none, auto or the name of a function")),
    }
}

pub(super) fn write_legacy_choice(choice: &ToolChoice, path: &str) -> Result<Value, DialectError> {
    match choice {
        ToolChoice::None => Ok(json!("none")),
        ToolChoice::Auto => Ok(json!("auto")),
        ToolChoice::Named(names) if names.len() == 1 => Ok(json!({ "name": names[0] })),
        _ => Err(DialectError::unsupported(path, "a choice among several functions")),
    }
}

/// Reads a call. One of another type than a function is kept whole.
pub(super) fn read_tool_call(value: Value, path: String) -> Result<ContentPart, DialectError> {
    let mut fields = ChatFields::of(path, value)?;
    if fields.get("type").is_some_and(|kind| !kind.is_null() && kind != "function") {
        let part = keep_call(Value::Object(fields.into_map()));
        return Ok(ContentPart::Foreign { from: Dialect::Chat, part });
    }
    fields.take("type");
    let id = fields.text("id")?.unwrap_or_default();
    let path = fields.path_of("function");
    let mut function = fields.object("function")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    let name = function.required_text("name")?;
    let arguments = take_arguments(&mut function)?;
    fields.put_rest("function", function);
    let (signature, cache) = (take_signature(&mut fields), take_cache(&mut fields));
    Ok(ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature, cache, extra: fields.into_extra() }))
}

/// Makes the foreign part that keeps a call of another type.
pub(super) fn keep_call(call: Value) -> Value {
    json!({ OTHER_CALL: call })
}

/// Takes the arguments, which some servers send as an object instead of its JSON text.
pub(super) fn take_arguments(function: &mut ChatFields) -> Result<String, DialectError> {
    match function.take("arguments") {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(object @ Value::Object(_)) => Ok(object.to_string()),
        Some(_) => Err(DialectError::malformed(function.path_of("arguments"), "a JSON text")),
    }
}

/// Reads the legacy call of a message, which has no id.
pub(super) fn take_legacy_call(fields: &mut ChatFields, id: String) -> Result<Option<ContentPart>, DialectError> {
    let Some(mut call) = fields.object("function_call")? else { return Ok(None) };
    let (name, arguments) = (call.required_text("name")?, take_arguments(&mut call)?);
    let extra = call.into_extra().spelled(LEGACY);
    Ok(Some(ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature: None, cache: None, extra })))
}

pub(super) fn is_legacy_call(part: &ContentPart) -> bool {
    matches!(part, ContentPart::ToolCall(call) if call.extra.spelling() == Some(LEGACY))
}

/// Returns the call of another type that a foreign part keeps.
pub(super) fn other_call(part: &ContentPart) -> Option<&Map<String, Value>> {
    match part {
        ContentPart::Foreign { from: Dialect::Chat, part } if part.get("type").is_none() => {
            part.get(OTHER_CALL)?.as_object()
        }
        _ => None,
    }
}

/// Puts calls into a message. `made_up_id` makes the id of a call that has none.
pub(super) fn put_calls<'a>(
    map: &mut Map<String, Value>,
    parts: impl Iterator<Item = &'a ContentPart>,
    mut made_up_id: impl FnMut(&ToolCallPart) -> String,
) {
    let mut calls = Vec::new();
    for part in parts {
        match part {
            ContentPart::ToolCall(call) if is_legacy_call(part) => {
                let mut legacy = Map::new();
                legacy.insert("name".to_owned(), Value::String(call.name.clone()));
                legacy.insert("arguments".to_owned(), Value::String(call.arguments.clone()));
                put_extra(&mut legacy, &call.extra);
                map.insert("function_call".to_owned(), Value::Object(legacy));
            }
            ContentPart::ToolCall(call) => {
                let id = if call.id.is_empty() { made_up_id(call) } else { call.id.clone() };
                calls.push(write_tool_call(call, id));
            }
            part => calls.extend(other_call(part).map(|call| Value::Object(call.clone()))),
        }
    }
    if !calls.is_empty() {
        map.insert("tool_calls".to_owned(), Value::Array(calls));
    }
}

fn write_tool_call(call: &ToolCallPart, id: String) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    let mut map = Map::new();
    map.insert("id".to_owned(), Value::String(id));
    map.insert("type".to_owned(), Value::String("function".to_owned()));
    map.insert("function".to_owned(), function);
    put_signature(&mut map, call.signature.as_ref());
    put_cache(&mut map, call.cache.as_ref());
    put_extra(&mut map, &call.extra);
    Value::Object(map)
}
