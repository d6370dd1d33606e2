//! Description of the MCP server for the OpenAPI document.

use assay_node_http::openapi::{Operation, text};
use assay_node_mcp_server::BATCH_MESSAGES_MAX;
use serde_json::json;

use crate::{MCP_PATH, METADATA_PATH};

/// Largest integer that all clients represent exactly.
const INTEGER_MAX: i64 = (1 << 53) - 1;
/// Tag of the operations.
const TAG: &str = "MCP";

/// Describes `/mcp` and its metadata.
pub fn operations() -> Vec<Operation> {
    let id = json!({"anyOf": [
        {"type": "string"}, {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX},
    ]});
    let message = json!({"type": "object", "required": ["jsonrpc", "method"], "properties": {
        "jsonrpc": {"type": "string", "enum": ["2.0"]}, "id": id, "method": text(),
        "params": {"type": "object", "nullable": true},
    }});
    // Clients of older protocol versions send batches. Each element is answered by itself, also an invalid one.
    let batch = json!({"type": "array", "minItems": 1, "maxItems": BATCH_MESSAGES_MAX, "items": {}});
    let response = json!({"type": "object", "required": ["jsonrpc"]});
    let responses = json!({"type": "array", "items": response});
    let metadata = json!({
        "type": "object", "required": ["resource", "authorization_servers"], "properties": {
            "resource": text(), "authorization_servers": {"type": "array", "items": text()},
        },
    });
    let described = |path: String| {
        Operation::new("get", path, "Logins", "Get the metadata of the MCP server as an OAuth resource (RFC 9728)")
            .public()
            .answers(metadata.clone())
    };
    let error = json!({"type": "object", "required": ["jsonrpc", "error"]});
    let json_error = |operation: Operation, status, about: &str| {
        operation.answers_with(status, about, "application/json", error.clone())
    };
    let call = Operation::new("post", MCP_PATH, TAG, "Send a message of the Model Context Protocol")
        .takes(json!({"anyOf": [message, batch]}))
        .answers(json!({"anyOf": [response, responses]}));
    let call = json_error(call, 400, "The message is invalid, or its protocol version is not supported");
    let call = json_error(call, 404, "The method does not exist");
    let call = json_error(call, 406, "The client does not accept JSON");
    let call = call.answers_nothing_with(202, "A notification was received");
    vec![call, described(METADATA_PATH.to_owned()), described(format!("{METADATA_PATH}{MCP_PATH}"))]
}
