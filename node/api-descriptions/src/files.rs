//! Description of files for the OpenAPI document: attachments, code of functions, and rows too many for one request.

use assay_node_files::KEY_BYTES_MAX;
use assay_node_http::openapi::{Operation, some_text, text, uuid};
use assay_node_http::requests::body::ROWS_MAX;
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

const TAG: &str = "Files";

fn of(method: &'static str, path: &str, summary: &str) -> Operation {
    Operation::new(method, path, TAG, summary)
}

fn object(needed: &[&str], fields: Value) -> Value {
    json!({"type": "object", "required": needed, "properties": fields})
}

/// Empty says nothing, as null does.
fn maybe_id() -> Value {
    json!({"anyOf": [{"type": "string", "format": "uuid", "nullable": true}, {"type": "string", "maxLength": 0}]})
}

fn status() -> Value {
    let words = json!({"type": "string", "enum": ["uploading", "done", "error"]});
    object(&["upload_status"], json!({"upload_status": words, "error_message": text()}))
}

pub fn operations() -> Vec<Operation> {
    let (url, maybe) = (json!({"type": "string", "format": "uri"}), json!({"type": "string", "nullable": true}));
    let content_type = json!({"type": "string", "nullable": true, "pattern": "^[ -~]*$"});
    let headers = json!({"type": "object", "additionalProperties": text()});
    let key = json!({"type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX});
    let asked = json!({"key": key, "filename": some_text(), "content_type": content_type, "org_id": maybe_id()});
    let mut noted = status();
    noted["properties"]["error_message"] = maybe.clone();
    let said = json!({"key": key, "status": noted, "org_id": maybe_id()});
    let kept = object(
        &["key", "bytes", "hash"],
        json!({"key": text(), "bytes": {"type": "integer", "minimum": 0}, "hash": text()}),
    );
    let look = of("get", "/attachment", "Get the download URL of an attachment and its upload status")
        .asks("key", text())
        .asks("url", text())
        .asks("org_id", uuid())
        .asks("filename", text())
        .asks("content_type", text());
    let counted = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    let rows = json!({"type": "array", "nullable": true, "items": {}, "maxItems": ROWS_MAX});
    let overflow = json!({"content_type": content_type, "size_bytes": counted, "rows": rows});
    let code = json!({"org_id": maybe_id(), "runtime_context": {"type": "object", "nullable": true}});
    let any = || json!({"type": "string", "format": "binary"});
    let bytes = |method, summary: &str| {
        of(method, "/attachment/bytes/{ticket}", summary).part("ticket", some_text()).by_ticket()
    };
    vec![
        of("post", "/attachment", "Get the upload URL of an attachment")
            .takes(object(&["key", "filename"], asked))
            .answers(object(&["signedUrl", "headers"], json!({"signedUrl": url, "headers": headers}))),
        look.answers(object(&["downloadUrl", "status"], json!({"downloadUrl": text(), "status": status()})))
            .also_refuses(&[ErrorKind::NotImplemented]),
        of("post", "/attachment/status", "Report the result of an attachment's upload")
            .takes(object(&["key", "status"], said))
            .answers(object(&["status"], json!({"status": status()}))),
        of("post", "/logs3/overflow", "Get an upload URL for rows that are too large for one request")
            .takes(object(&[], overflow))
            .answers(object(
                &["method", "signedUrl", "headers", "key"],
                json!({"method": {"type": "string", "enum": ["PUT"]}, "signedUrl": url, "headers": headers, "key": text()}),
            ))
            .also_refuses(&[ErrorKind::TooLarge]),
        of("post", "/function/code", "Get an upload URL for the code of a function")
            .takes(object(&[], code))
            .answers(object(&["url", "bundleId"], json!({"url": url, "bundleId": uuid()}))),
        bytes("put", "Upload the content of a file").takes_bytes().answers(kept),
        bytes("get", "Download the content of a file")
            .answers_as("application/octet-stream", any())
            .answers_with(206, "The requested range", "application/octet-stream", any())
            .answers_with(416, "The requested range is outside the file", "application/octet-stream", any()),
    ]
}
