//! Description of the gateway's routes for the OpenAPI document.

use assay_node_http::openapi::{Operation, some_text};
use serde_json::{Value, json};

use assay_node_gateway::paths::{PREFIXES, ROOT_PATHS};

const TAG: &str = "Gateway";
/// Statuses of errors. Bodies have the form of the client's model API.
const FAILURES: [(u16, &str); 18] = [
    (400, "The request is invalid, or cannot be sent to this model"),
    (401, "The credential is missing or unknown"),
    (402, "The account of the provider secret has no credit"),
    (403, "The credential lacks the permission"),
    (404, "No provider secret serves the model, or the path does not exist"),
    (405, "The path does not support this method"),
    (408, "The body arrived too slowly"),
    (409, "The model server reports a conflict"),
    (413, "The body is too large"),
    (415, "The encoding of the body is not supported"),
    (422, "The model server cannot process the request"),
    (429, "A limit or a budget is reached, or all servers of the model are at their limits"),
    (500, "The server, or the model server, failed"),
    (501, "The operation is part of the API, but not supported yet"),
    (502, "No model server could be reached, or the provider refused its secret"),
    (503, "The service, or the model server, is unavailable"),
    (504, "The model server did not answer in time"),
    (529, "The model server is overloaded"),
];

/// Paths of calls below a prefix, with what they are.
const CALLS: [(&str, &str); 4] = [
    ("chat/completions", "Call a model in the format of OpenAI's chat completions"),
    ("completions", "Call a model in the format of OpenAI's text completions"),
    ("auto", "Call a chat or completion model, by what the catalog says of it"),
    ("embeddings", "Make embeddings in the format of OpenAI"),
];

fn described(operation: Operation) -> Operation {
    let mut operation = operation
        .reads_header(
            "x-bt-parent",
            "Where the call is logged: `project_id:`, `project_name:`, `experiment_id:` or an exported span",
        )
        .reads_header("x-bt-project-id", "Project whose provider secrets are used besides those of the organization")
        .reads_header("x-bt-endpoint-name", "Name of the only provider secret that may be used")
        .sends_header("x-bt-request-id", "Id of the call")
        .sends_header("x-bt-used-endpoint", "Name of the provider secret that served the call")
        .sends_header("x-bt-used-model", "Name of the model at its server")
        .sends_header("x-bt-attempts", "Number of requests to model servers")
        .sends_header("x-bt-cost", "Cost in USD, of responses that are no streams")
        .sends_header("x-bt-span-id", "Id of the logged row")
        .sends_header("x-bt-span-export", "The logged span, as a parent of others");
    for (status, about) in FAILURES {
        operation = operation.answers_with(status, about, "application/json", error());
    }
    operation
}

/// Errors have the form of the model API that the client speaks.
fn error() -> Value {
    json!({"type": "object"})
}

fn call(path: impl Into<String>, summary: &str) -> Operation {
    described(
        Operation::new("post", path, TAG, summary)
            .takes(json!({}))
            .answers(json!({}))
            .answers_as("text/event-stream", json!({"type": "string"})),
    )
}

fn any_path(method: &'static str, path: String) -> Operation {
    let summary = match method {
        "get" => "List the models that the caller can use, or get one",
        _ => "Call a model at any other path of a model API",
    };
    let operation = Operation::new(method, path, TAG, summary).part("path+", some_text());
    let operation = operation.answers(json!({}));
    described(match method {
        "get" => operation,
        _ => operation.takes(json!({})).answers_as("text/event-stream", json!({"type": "string"})),
    })
}

pub fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for prefix in PREFIXES {
        for (path, summary) in CALLS {
            all.push(call(format!("{prefix}/{path}"), summary));
        }
        let greeting = Operation::new("get", prefix, TAG, "A greeting").public();
        all.push(greeting.answers_as("text/plain", json!({"type": "string"})));
        all.push(any_path("get", format!("{prefix}/{{path+}}")));
        all.push(any_path("post", format!("{prefix}/{{path+}}")));
    }
    for path in ROOT_PATHS {
        if path.ends_with("/models") {
            let list = Operation::new("get", path, TAG, "List the models that the caller can use");
            all.push(described(list.answers(json!({"type": "object"}))));
            all.push(any_path("get", format!("{path}/{{path+}}")));
            all.push(any_path("post", format!("{path}/{{path+}}")));
        } else {
            all.push(call(path, "Call a model in the format of a model API, without a prefix"));
        }
    }
    all
}
