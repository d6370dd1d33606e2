//! Description of invocations for the OpenAPI document.

use assay_node_http::openapi::{Operation, uuid};
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

use super::PATHS;

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
    let (any, object) = (json!({}), json!({"type": "object", "nullable": true}));
    let flag = json!({"type": "boolean", "nullable": true});
    let text = json!({"type": "string", "nullable": true});
    json!({"type": "object", "properties": {
        "input": any, "expected": any, "metadata": object, "tags": any,
        "messages": {"type": "array", "items": {}, "nullable": true}, "parent": any, "stream": flag,
        "mode": {"type": "string", "enum": ["auto", "parallel", "json", "text", null], "nullable": true},
        "strict": flag, "overrides": object, "mcp_auth": object, "version": text, "environment": text,
        "endpoint_name": text,
    }})
}

pub fn operations() -> Vec<Operation> {
    let by_body = PATHS.into_iter().map(|path| {
        described(
            Operation::new("post", path, TAG, "Invoke the function that the body names")
                .takes(json!({"type": "object"})),
        )
    });
    let by_id = Operation::new("post", "/v1/function/{id}/invoke", TAG, "Invoke a function by its id");
    by_body.chain([described(by_id.part("id", uuid()).takes(arguments()))]).collect()
}
