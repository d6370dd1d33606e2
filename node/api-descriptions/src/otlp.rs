//! Description of the OTLP routes for the OpenAPI document.

use assay_node_http::openapi::Operation;
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::json;

const TAG: &str = "OpenTelemetry";
const PROTOBUF: &str = "application/x-protobuf";

/// Refusals that are sent in OpenTelemetry's form.
const OWN: [ErrorKind; 9] = [
    ErrorKind::BadRequest,
    ErrorKind::Forbidden,
    ErrorKind::NotFound,
    ErrorKind::Conflict,
    ErrorKind::TooLarge,
    ErrorKind::Busy,
    ErrorKind::Internal,
    ErrorKind::Unavailable,
    ErrorKind::TooSlow,
];

pub fn operations() -> Vec<Operation> {
    let export = |path: &str, summary: &str, list: &str, rejected: &str| {
        let body = json!({"type": "object", "properties": {list: {"type": "array", "nullable": true, "items": {"type": "object"}}}});
        let partial =
            json!({"type": "object", "properties": {rejected: {"type": "string"}, "errorMessage": {"type": "string"}}});
        let answer = json!({"type": "object", "properties": {"partialSuccess": partial}});
        let status =
            json!({"type": "object", "properties": {"code": {"type": "integer"}, "message": {"type": "string"}}});
        let binary = json!({"type": "string", "format": "binary"});
        let operation = Operation::new("post", path, TAG, summary)
            .takes_either(body)
            .answers(answer)
            .answers_as(PROTOBUF, binary.clone());
        let told = |operation: Operation, kind: ErrorKind| operation.answers_with_either(kind, &status, &binary);
        OWN.into_iter().fold(operation, told)
    };
    let three = |before: &str, also: &str| {
        let at = |rest: &str| format!("{before}/v1/{rest}");
        let also = |summary: &str| format!("{summary}{also}");
        vec![
            export(&at("traces"), &also("Write spans"), "resourceSpans", "rejectedSpans").reads_header(
                "x-bt-parent",
                "Destination of spans that do not name one: `project_name:<name>`, `project_id:<id>`, \
                 `experiment_id:<id>`, `playground_id:<id>`, or an exported span",
            ),
            export(
                &at("logs"),
                &also("Accept and drop logs; the response reports them as rejected"),
                "resourceLogs",
                "rejectedLogRecords",
            ),
            export(
                &at("metrics"),
                &also("Accept and drop metrics; the response reports them as rejected"),
                "resourceMetrics",
                "rejectedDataPoints",
            ),
        ]
    };
    [three("/otel", ""), three("", ", at the path that exporters append to an origin")].concat()
}
