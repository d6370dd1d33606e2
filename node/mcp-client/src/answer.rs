//! Answers of servers as tools and outcomes. Pure; what a server sends beyond them is passed over.

use serde_json::{Map, Value, json};

use crate::error::{McpAnswer, McpFailure};
use crate::spec::{McpToken, RESULT_BYTES_MAX};

/// Result of a call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct McpToolOutcome {
    /// A text; the structured content of the result; or a list of its blocks, if not all of them are texts.
    pub content: Value,
    /// Whether the tool itself failed. Its content says why, for the model.
    pub is_error: bool,
}

/// Tool as a server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Value,
    /// Bytes of the whole description, as JSON.
    pub(crate) bytes: usize,
}

/// Reads a page of a list of tools: the tools, and the cursor of the next page. Tools without a name are passed over.
pub(crate) fn read_tools(result: &Value) -> Result<(Vec<ListedTool>, Option<String>), McpFailure> {
    let tools = result.get("tools").and_then(Value::as_array);
    let tools = tools.ok_or(McpFailure::Invalid("it has no list `tools`"))?;
    let cursor = result.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    Ok((tools.iter().filter_map(read_tool).collect(), cursor.map(str::to_owned)))
}

fn read_tool(tool: &Value) -> Option<ListedTool> {
    let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
    let schema = tool.get("inputSchema").filter(|schema| schema.is_object());
    let mut schema = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    // Providers of models refuse an object without the member.
    if schema.get("type").is_none_or(|kind| kind == "object") && schema.get("properties").is_none() {
        schema["properties"] = Value::Object(Map::new());
    }
    let described = ["description", "title"].iter().filter_map(|member| tool.get(member).and_then(Value::as_str));
    let description = described.map(str::trim).find(|text| !text.is_empty());
    Some(ListedTool {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        input_schema: schema,
        bytes: tool.to_string().len(),
    })
}

/// Reads the result of a call.
pub(crate) fn read_outcome(result: &Value, token: Option<&McpToken>) -> Result<McpToolOutcome, McpFailure> {
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let blocks = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if !result.is_object() {
        return Err(McpFailure::Invalid("the result is not an object"));
    }
    let texts = blocks.iter().map(block_text).collect::<Option<Vec<_>>>();
    // An error is said in words, also by tools with structured results.
    let structured = structured.filter(|_| !is_error || blocks.is_empty());
    let mut content = match (structured, texts) {
        (Some(structured), _) => structured.clone(),
        (None, Some(texts)) => Value::from(texts.join("\n")),
        (None, None) => Value::from(blocks.to_vec()),
    };
    let bytes = content.as_str().map_or_else(|| content.to_string().len(), str::len);
    if bytes > RESULT_BYTES_MAX {
        return Err(McpFailure::Large { bytes_max: RESULT_BYTES_MAX, subject: McpAnswer::Result });
    }
    if let Some(token) = token {
        remove_token(&mut content, token);
    }
    Ok(McpToolOutcome { content, is_error })
}

fn block_text(block: &Value) -> Option<&str> {
    block.get("text").and_then(Value::as_str).filter(|_| block.get("type").is_some_and(|kind| kind == "text"))
}

/// Removes a token that the server repeats: outcomes are logged. The value comes from a parser that bounds its depth.
fn remove_token(value: &mut Value, token: &McpToken) {
    match value {
        Value::String(text) => {
            if let Some(clean) = token.removed_from(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_token(item, token)),
        Value::Object(members) => {
            if members.keys().any(|name| token.removed_from(name).is_some()) {
                let renamed = std::mem::take(members).into_iter();
                let renamed = renamed.map(|(name, value)| (token.removed_from(&name).unwrap_or(name), value));
                *members = renamed.collect();
            }
            members.values_mut().for_each(|member| remove_token(member, token));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_tools_is_read_leniently() {
        let page = json!({
            "tools": [
                {"name": "search", "description": "Finds.", "inputSchema": {"type": "object", "properties": {"q": {}}}},
                {"name": "now", "title": "Clock", "inputSchema": {"type": "object"}},
                {"name": "odd", "inputSchema": null},
                {"name": ""},
                {"description": "no name"},
                7,
            ],
            "nextCursor": "2",
        });
        let (tools, cursor) = read_tools(&page).expect("a page");
        let told: Vec<_> = tools.iter().map(|tool| (&*tool.name, tool.description.as_deref())).collect();
        assert_eq!(told, [("search", Some("Finds.")), ("now", Some("Clock")), ("odd", None)]);
        assert_eq!(tools[0].input_schema, json!({"type": "object", "properties": {"q": {}}}));
        assert_eq!(tools[1].input_schema, json!({"type": "object", "properties": {}}));
        assert_eq!(tools[2].input_schema, json!({"type": "object", "properties": {}}));
        assert_eq!(cursor.as_deref(), Some("2"));
        assert!(read_tools(&json!({"tools": 1})).is_err());
    }

    #[test]
    fn a_result_is_a_text_its_structure_or_its_blocks() {
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let cases = [
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), json!("a\nb"), false),
            (json!({"content": [], "isError": true}), json!(""), true),
            (json!({}), json!(""), false),
            (
                json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"n": 1}}),
                json!({"n": 1}),
                false,
            ),
            (
                json!({"content": [{"type": "text", "text": "no"}], "structuredContent": {"n": 1}, "isError": true}),
                json!("no"),
                true,
            ),
            (
                json!({"content": [{"type": "text", "text": "a"}, image]}),
                json!([{"type": "text", "text": "a"}, image]),
                false,
            ),
        ];
        for (result, content, is_error) in cases {
            assert_eq!(read_outcome(&result, None), Ok(McpToolOutcome { content, is_error }), "{result}");
        }
        assert!(read_outcome(&json!([]), None).is_err());
    }

    #[test]
    fn a_result_is_bounded() {
        let large = json!({"content": [{"type": "text", "text": "a".repeat(RESULT_BYTES_MAX + 1)}]});
        let failure = McpFailure::Large { bytes_max: RESULT_BYTES_MAX, subject: McpAnswer::Result };
        assert_eq!(read_outcome(&large, None), Err(failure));
        let just = json!({"content": [{"type": "text", "text": "a".repeat(RESULT_BYTES_MAX)}]});
        assert!(read_outcome(&just, None).is_ok());
    }

    #[test]
    fn a_token_that_the_server_repeats_is_removed() {
        let token = McpToken::new("s3cret".to_owned()).expect("a token");
        let result = json!({"structuredContent": {"headers": ["Bearer s3cret"], "s3cret": 1}});
        let outcome = read_outcome(&result, Some(&token)).expect("a result");
        assert_eq!(outcome.content, json!({"headers": ["Bearer [TOKEN]"], "[TOKEN]": 1}));
        assert_eq!(format!("{token:?}"), "McpToken(..)");
    }
}
