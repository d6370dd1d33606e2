//! Requests for JSON.

use serde_json::{Value, json};

use super::question;
use crate::{AnthropicReadOptions, write_request};
use assay_node_dialects::form::{
    Extra, JsonSchemaFormat, ModelRequest, OutputFormat, ReasoningEffort, ReasoningSettings, ToolChoice, ToolDefinition,
};
use assay_node_dialects::{DialectError, WriteOptions};

fn asking(schema: Value) -> ModelRequest {
    let format = JsonSchemaFormat {
        name: Some("city".to_owned()),
        description: None,
        schema,
        strict: Some(true),
        extra: Extra::default(),
    };
    ModelRequest { output_format: Some(OutputFormat::JsonSchema(Box::new(format))), ..question() }
}

fn closed() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "additionalProperties": false})
}

/// Body, and whether the answer is read from the tool.
fn sent(request: &ModelRequest, options: &WriteOptions) -> (Value, bool) {
    let body = write_request(request, options).expect("it can be written").body;
    (body, AnthropicReadOptions::for_request(request, options).schema_tool)
}

fn user_tool(name: &str) -> ToolDefinition {
    let name = name.to_owned();
    ToolDefinition { name, description: None, parameters: None, strict: None, cache: None, extra: Extra::default() }
}

fn as_tool() -> WriteOptions {
    WriteOptions { schema_as_tool: true, ..WriteOptions::default() }
}

#[test]
fn a_closed_schema_is_enforced_by_the_api() {
    let (body, has_tool) = sent(&asking(closed()), &WriteOptions::default());
    assert_eq!(body["output_config"], json!({"format": {"type": "json_schema", "schema": closed()}}));
    assert!(!has_tool && body.get("tools").is_none());
}

#[test]
fn a_schema_is_a_forced_tool_where_the_api_does_not_take_it() {
    let open = json!({"properties": {"name": {"type": "string"}}});
    for (schema, options) in [(closed(), as_tool()), (open, WriteOptions::default())] {
        let (body, has_tool) = sent(&asking(schema), &options);
        assert_eq!(body["tools"][0]["name"], "json");
        assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "json", "disable_parallel_tool_use": true}));
        assert!(has_tool && body.get("output_config").is_none());
    }
}

#[test]
fn any_object_is_asked_for_with_a_tool() {
    let request = ModelRequest { output_format: Some(OutputFormat::JsonObject), ..question() };
    let (body, has_tool) = sent(&request, &WriteOptions::default());
    let tool =
        json!({"name": "json", "description": "Output the result in JSON format", "input_schema": {"type": "object"}});
    assert_eq!((body["tools"].clone(), has_tool), (json!([tool]), true));
    let text = ModelRequest { output_format: Some(OutputFormat::Text), ..question() };
    assert!(!sent(&text, &as_tool()).1);
}

#[test]
fn other_tools_may_be_called_before_the_answer() {
    let with_tools = |choice: Option<ToolChoice>| ModelRequest {
        tools: vec![user_tool("a")],
        tool_choice: choice,
        ..asking(closed())
    };
    let (body, has_tool) = sent(&with_tools(None), &as_tool());
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]), (Some(2), &json!({"type": "any"})));
    assert!(has_tool);
    let (body, _) = sent(&with_tools(Some(ToolChoice::None)), &as_tool());
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]["name"]), (Some(1), &json!("json")));
    let (body, has_tool) = sent(&with_tools(Some(ToolChoice::Named(vec!["a".to_owned()]))), &as_tool());
    assert_eq!((body["tools"].as_array().map(Vec::len), &body["tool_choice"]["name"]), (Some(1), &json!("a")));
    assert!(!has_tool);
}

#[test]
fn the_tool_is_not_forced_beside_reasoning() {
    let effort = Some(ReasoningEffort::Low);
    let request = ModelRequest {
        reasoning: Some(ReasoningSettings { effort, ..ReasoningSettings::default() }),
        ..asking(closed())
    };
    let (body, has_tool) = sent(&request, &as_tool());
    assert_eq!((body["tools"][0]["name"].clone(), body.get("tool_choice"), has_tool), (json!("json"), None, true));
}

#[test]
fn a_schema_that_no_tool_can_have_is_refused() {
    for request in [
        asking(json!({"type": "array", "items": {}})),
        asking(json!(true)),
        ModelRequest { tools: vec![user_tool("json")], ..asking(closed()) },
    ] {
        let error = write_request(&request, &as_tool()).expect_err("it cannot be expressed");
        assert!(matches!(error, DialectError::Unsupported { .. }));
    }
}

#[test]
fn only_closed_schemas_of_known_keywords_are_enforced() {
    let inner = |schema: Value| json!({"type": "object", "properties": {"a": schema}, "additionalProperties": false});
    let list = json!({"type": "array", "items": closed(), "minItems": 1});
    let defined = |target: Value| {
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "additionalProperties": false,
            "$defs": {"b": target}})
    };
    let mut deep = closed();
    for _ in 0..80 {
        deep = inner(deep);
    }
    for (schema, is_enforced) in [
        (inner(list), true),
        (inner(json!({"anyOf": [{"type": "null"}, {"enum": ["a", 1]}, {"const": true}]})), true),
        (inner(json!({"type": "string", "format": "date-time", "description": "d"})), true),
        (defined(closed()), true),
        (inner(json!({"type": ["object", "null"]})), false),
        (inner(json!({"type": "integer", "minimum": 1})), false),
        (inner(json!({"type": "string", "format": "color"})), false),
        (inner(json!({"type": "array", "items": {}, "minItems": 2})), false),
        (inner(json!({"enum": [{"a": 1}]})), false),
        (inner(json!({"allOf": [{"$ref": "#/$defs/b"}]})), false),
        (inner(json!({"$ref": "https://a.example"})), false),
        (defined(json!({"$ref": "#/$defs/b"})), false),
        (defined(json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]})), false),
        (deep, false),
    ] {
        let request = asking(schema.clone());
        let has_tool = AnthropicReadOptions::for_request(&request, &WriteOptions::default()).schema_tool;
        assert_eq!(!has_tool, is_enforced, "{schema}");
    }
}
