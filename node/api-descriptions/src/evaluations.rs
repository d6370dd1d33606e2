//! Description of evaluations for the OpenAPI document.

use assay_node_http::openapi::{Operation, objects, reference, text, uuid};
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

use crate::invocations::parent;
use crate::summaries::{of_experiment, with_entries};

const TAG: &str = "Evals";
const REFUSALS: [ErrorKind; 8] = [
    ErrorKind::NotFound,
    ErrorKind::Conflict,
    ErrorKind::TooLarge,
    ErrorKind::UnsupportedEncoding,
    ErrorKind::Internal,
    ErrorKind::NotImplemented,
    ErrorKind::BadGateway,
    ErrorKind::TooLate,
];

/// Returns the operations of evaluations.
pub fn operations() -> Vec<Operation> {
    let start = |path: &str| {
        with_entries(Operation::new("post", path, TAG, "Run a task and scorers over data"))
            .with("EvalFunction", function())
            .takes(request())
            .answers(of_experiment())
            .answers_as("text/event-stream", text())
            .answers_with(202, "The evaluation runs in the background", "application/json", job())
            .sends_header("x-assay-eval-id", "Id of the evaluation, on streams")
            .also_refuses(&REFUSALS)
    };
    let mut with_summary = job();
    let mut summary = of_experiment();
    summary["nullable"] = true.into();
    with_summary["properties"]["summary"] = summary;
    vec![
        start("/v1/eval"),
        start("/function/eval"),
        Operation::new("get", "/v1/eval", TAG, "List the evaluations of a project, newest first")
            .must_ask("project_id", uuid())
            .asks("limit", json!({"type": "integer", "minimum": 1, "maximum": 1000}))
            .answers(objects(&job())),
        with_entries(Operation::new("get", "/v1/eval/{id}", TAG, "Get the state of an evaluation"))
            .of("eval")
            .answers(with_summary)
            .also_refuses(&[ErrorKind::TooLarge]),
        Operation::new("post", "/v1/eval/remote-list", TAG, "List the evaluations of a server that the project names")
            .takes(json!({"type": "object", "required": ["project_id", "url"],
                "properties": {"project_id": uuid(), "url": text()}}))
            .answers(json!({"type": "object", "additionalProperties": {"type": "object"}}))
            .also_refuses(&[ErrorKind::NotFound, ErrorKind::BadGateway]),
        Operation::new("post", "/v1/eval/{id}/cancel", TAG, "Cancel an evaluation").of("eval").answers(job()),
        Operation::new("get", "/v1/eval/{id}/report", TAG, "Get the report of an evaluation as Markdown")
            .of("eval")
            .answers_as("text/markdown", text())
            .also_refuses(&[ErrorKind::Conflict, ErrorKind::TooLarge]),
    ]
}

fn job() -> Value {
    let (maybe_text, count) = (json!({"type": "string", "nullable": true}), json!({"type": "integer", "minimum": 0}));
    let maybe_id = json!({"type": "string", "format": "uuid", "nullable": true});
    let (time, url) = (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "uri"}));
    let maybe_time = json!({"type": "string", "format": "date-time", "nullable": true});
    let states = json!({"type": "string", "enum": ["running", "completed", "timed_out", "cancelled", "failed"]});
    let kinds = json!({"type": "string", "enum": ["project_logs", "experiment", "playground_logs"]});
    let progress = json!({"type": "object", "required": ["cases", "done", "errors", "scorer_errors", "unwritten"],
        "properties": {"cases": count, "done": count, "errors": count, "scorer_errors": count, "unwritten": count}});
    json!({"type": "object", "required": ["id", "project_id", "state", "progress"], "properties": {
        "id": uuid(), "job_id": uuid(), "project_id": uuid(), "name": text(), "experiment_id": maybe_id,
        "experiment_name": maybe_text, "object_type": kinds, "object_id": uuid(), "state": states,
        "is_cancelled": {"type": "boolean"}, "error": maybe_text, "progress": progress, "node": maybe_text,
        "takeovers": count, "started": time, "ended": maybe_time, "status_url": url, "cancel_url": url,
        "report_url": url,
    }})
}

fn request() -> Value {
    let any = json!({"nullable": true});
    let object = json!({"type": "object", "nullable": true, "additionalProperties": any});
    let flag = json!({"type": "boolean", "nullable": true});
    let maybe_text = json!({"type": "string", "nullable": true});
    let number = json!({"type": "number", "nullable": true});
    let token = json!({"type": "object", "properties": {"oauth_token": {"type": "string"}}});
    json!({"type": "object", "required": ["project_id", "data", "task", "scores"], "properties": {
        "project_id": uuid(), "data": data(), "name": text(), "parameters": object,
        "task": reference("EvalFunction"), "scores": {"type": "array", "items": reference("EvalFunction")},
        "experiment_name": text(), "metadata": object, "parent": parent(), "stream": flag, "background": flag,
        "trial_count": number, "is_public": flag, "timeout": number, "max_concurrency": number,
        "base_experiment_name": maybe_text, "base_experiment_id": maybe_text,
        "git_metadata_settings": git_settings(), "repo_info": repo_info(), "strict": flag, "stop_token": maybe_text, "extra_messages": text(),
        "tags": {"type": "array", "nullable": true, "items": text()}, "endpoint_name": maybe_text,
        "mcp_auth": {"type": "object", "additionalProperties": token},
    }})
}

fn git_settings() -> Value {
    let fields = json!([
        "commit",
        "branch",
        "tag",
        "dirty",
        "author_name",
        "author_email",
        "commit_message",
        "commit_time",
        "git_diff"
    ]);
    json!({"type": "object", "nullable": true, "required": ["collect"], "properties": {
        "collect": {"type": "string", "enum": ["all", "none", "some"]},
        "fields": {"type": "array", "items": {"type": "string", "enum": fields}},
    }})
}

fn repo_info() -> Value {
    let text = json!({"type": "string", "nullable": true});
    json!({"type": "object", "nullable": true, "properties": {
        "commit": text, "branch": text, "tag": text, "dirty": {"type": "boolean", "nullable": true},
        "author_name": text, "author_email": text, "commit_message": text, "commit_time": text, "git_diff": text,
    }})
}

/// Describes a reference to a function, which has one of several forms.
fn function() -> Value {
    let object = json!({"type": "object", "nullable": true});
    json!({"type": "object", "properties": {
        "function_id": text(), "project_name": text(), "project_id": text(), "slug": text(), "version": text(),
        "environment": text(), "global_function": text(), "function_type": text(), "prompt_session_id": text(),
        "prompt_session_function_id": text(), "inline_context": object, "code": text(), "name": text(),
        "inline_function": object, "inline_prompt": object,
    }})
}

fn data() -> Value {
    let (maybe_text, object) =
        (json!({"type": "string", "nullable": true}), json!({"type": "object", "nullable": true}));
    let dataset = json!({"type": "object", "required": ["dataset_id"], "properties": {"dataset_id": text(),
        "dataset_version": maybe_text, "dataset_environment": maybe_text, "_internal_btql": object}});
    let named = json!({"type": "object", "required": ["project_name", "dataset_name"], "properties": {
        "project_name": text(), "dataset_name": text(), "dataset_version": maybe_text,
        "dataset_environment": maybe_text, "_internal_btql": object}});
    let list = json!({"type": "object", "required": ["data"],
        "properties": {"data": {"type": "array", "items": {"nullable": true}}}});
    let experiment = json!({"type": "object", "properties": {"experiment_id": maybe_text,
        "experiment_name": maybe_text, "project_name": maybe_text, "_internal_btql": object}});
    json!({"anyOf": [dataset, named, list, experiment]})
}
