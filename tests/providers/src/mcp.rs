//! MCP server over streamable HTTP, without sessions and events: its one tool says how the weather is in a city.

use serde_json::{Value, json};

/// Path of the server.
pub(crate) const PATH: &str = "/mcp";
const PROTOCOL: &str = "2025-06-18";
const TOOL: &str = "forecast";
/// Status of a message that has no answer.
const ACCEPTED: u16 = 202;

/// Returns the status and the answer to a message of a client; null if it has none.
pub(crate) fn answer(method: &str, message: &Value) -> (u16, Value) {
    if method != "POST" {
        // there is no stream to open and no session to end
        return (405, Value::Null);
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": PROTOCOL, "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }),
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
            json!({"tools": [{"name": TOOL, "description": "Tells the weather in a city.", "inputSchema": schema}]})
        }
        "tools/call" if message["params"]["name"] == TOOL => {
            let city = message["params"]["arguments"]["city"].as_str().unwrap_or("no city");
            json!({"content": [{"type": "text", "text": format!("Sunny in {city}.")}]})
        }
        "tools/call" => return (200, error(message, "there is no such tool")),
        _ if message["id"].is_null() => return (ACCEPTED, Value::Null),
        _ => return (200, error(message, "there is no such method")),
    };
    (200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn error(message: &Value, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": why}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_listed_and_called() {
        let result = |method: &str, params: Value| {
            answer("POST", &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).1
        };
        assert_eq!(result("tools/list", json!({}))["result"]["tools"][0]["name"], TOOL);
        let called = result("tools/call", json!({"name": TOOL, "arguments": {"city": "Oslo"}}));
        assert_eq!((&called["id"], &called["result"]["content"][0]["text"]), (&json!(7), &json!("Sunny in Oslo.")));
        assert_eq!(result("tools/call", json!({"name": "other"}))["error"]["code"], -32601);
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(answer("POST", &told), (ACCEPTED, Value::Null));
        assert_eq!(answer("GET", &Value::Null).0, 405);
    }
}
