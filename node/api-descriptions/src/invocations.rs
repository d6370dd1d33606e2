//! Description of invocations for the OpenAPI document.

use assay_node_http::openapi::Operation;
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

/// Paths whose bodies name the function.
pub const INVOKE_PATHS: [&str; 3] = ["/function/invoke", "/v1/proxy/function/invoke", "/proxy/function/invoke"];

const TAG: &str = "Functions";
const REFUSALS: [ErrorKind; 7] = [
    ErrorKind::NotFound,
    ErrorKind::TooLarge,
    ErrorKind::UnsupportedEncoding,
    ErrorKind::Internal,
    ErrorKind::NotImplemented,
    ErrorKind::BadGateway,
    ErrorKind::TooLate,
];

fn described(operation: Operation) -> Operation {
    operation
        .reads_header("x-bt-project-id", "Project of execution, whose AI secrets are used; else that of the function")
        .reads_header("x-bt-endpoint-name", "Name of the only AI secret that may be used")
        .reads_header("x-bt-parent", "Where the invocation is logged, if the body has no `parent`")
        .sends_header("x-bt-span-id", "Id of the logged row")
        .sends_header("x-bt-span-export", "The logged span, as a parent of others")
        .sends_header("x-bt-used-endpoint", "Name of the AI secret that served the latest model call")
        .sends_header("x-bt-cached", "`HIT` if the cache answered the latest model call, else `MISS`")
        .answers(json!({}))
        .answers_as("text/event-stream", json!({"type": "string"}))
        .also_refuses(&REFUSALS)
}

fn arguments() -> Value {
    let any = json!({"nullable": true});
    let object = json!({"type": "object", "nullable": true, "additionalProperties": any});
    let flag = json!({"type": "boolean", "nullable": true});
    let maybe_text = json!({"type": "string", "nullable": true});
    let token = json!({"type": "object", "properties": {"oauth_token": {"type": "string"}}});
    json!({"type": "object", "properties": {
        "input": any, "expected": any, "metadata": object,
        "tags": {"type": "array", "nullable": true, "items": {"type": "string"}},
        "messages": {"type": "array", "items": {"type": "object"}},
        "parent": parent(), "stream": flag,
        "mode": {"type": "string", "enum": ["auto", "parallel", "json", "text", null], "nullable": true},
        "strict": flag, "overrides": object, "mcp_auth": {"type": "object", "additionalProperties": token},
        "version": {"type": "string"}, "environment": maybe_text, "endpoint_name": maybe_text,
    }})
}

/// Describes the parent of spans, which is an object or an exported span.
pub(crate) fn parent() -> Value {
    let text = json!({"type": "string"});
    let ids = json!({"type": "object", "nullable": true, "required": ["id", "span_id", "root_span_id"],
        "properties": {"id": text, "span_id": text, "root_span_id": text}});
    let event = json!({"type": "object", "nullable": true, "additionalProperties": {"nullable": true}});
    let object_type = json!({"type": "string", "enum": ["project_logs", "experiment", "playground_logs"]});
    let object = json!({"type": "object", "required": ["object_type", "object_id"], "properties": {
        "object_type": object_type, "object_id": text, "row_ids": ids, "propagated_event": event}});
    json!({"anyOf": [object, text]})
}

pub fn operations() -> Vec<Operation> {
    let by_body = INVOKE_PATHS.into_iter().map(|path| {
        described(
            Operation::new("post", path, TAG, "Invoke the function that the body names")
                .takes(json!({"type": "object"})),
        )
    });
    let by_id = Operation::new("post", "/v1/function/{id}/invoke", TAG, "Invoke a function by its id");
    by_body.chain([described(by_id.of("function").takes(arguments())), sandbox_list()]).collect()
}

fn sandbox_list() -> Operation {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "required": ["provider"],
        "properties": {"provider": text, "snapshot_ref": text, "bundle_id": text}});
    let runtime = json!({"type": "string", "enum": ["node", "python"]});
    let context =
        json!({"type": "object", "required": ["runtime"], "properties": {"runtime": runtime, "version": text}});
    let evaluator = json!({"type": "object"});
    Operation::new("post", "/function/sandbox-list", TAG, "List the evaluators in an uploaded bundle")
        .takes(json!({"type": "object", "required": ["sandbox_spec", "runtime_context"], "properties": {
            "sandbox_spec": spec, "runtime_context": context, "bundle_id": text, "project_id": text,
            "entrypoints": {"type": "array", "items": text}}}))
        .answers(json!({"type": "object", "additionalProperties": evaluator}))
        .also_refuses(&REFUSALS)
}
