//! Description of rows for the OpenAPI document: schemas written by hand, as `event::fields` of the model checks them.

use assay_node_http::openapi::{Operation, maybe_version, pascal, reference, text, uuid};
use assay_node_http::requests::body::ROWS_MAX;
use assay_node_http::responses::refusal::ErrorKind;
use assay_storage_model::ObjectKind;
use assay_storage_model::command::ROWS_PER_WRITE_MAX;
use assay_storage_model::event::{ARRAY_DELETES_MAX, ID_BYTES_MAX, MERGE_PATHS_MAX};
use serde_json::{Map, Value, json};

const REPEATED: (&str, &str) =
    ("Idempotency-Key", "A repeated key with the same body has no further effect; with another body it is refused");
const VERSION: (&str, &str) = ("x-bt-version", "Version of the object at which the page was read");

/// Describes the routes of rows of one kind of object.
pub fn rows(path: &str, kind: ObjectKind) -> Vec<Operation> {
    let (name, tag, of) = names(kind);
    let at = |what: &str| format!("{path}/{{id}}/{what}");
    let (event, row, item) = (format!("Insert{name}Event"), format!("{name}Event"), format!("Feedback{name}Item"));
    let list = |name: &str, item: &str| {
        let items = json!({"type": "array", "items": reference(item), "maxItems": ROWS_PER_WRITE_MAX});
        json!({"type": "object", "required": [name], "properties": {name: items}})
    };
    let insert = Operation::new("post", at("insert"), tag, format!("Write rows of {of}"))
        .of(id_of(kind))
        .reads_header(REPEATED.0, REPEATED.1)
        .with(&event, inserted(kind))
        .takes(list("events", &event))
        .with("InsertedRows", inserted_rows())
        .answers(reference("InsertedRows"));
    let page = |operation: Operation| {
        let events = json!({"type": "array", "items": reference(&row)});
        let cursor = json!({"type": "string", "nullable": true});
        let properties = json!({"events": events, "cursor": cursor});
        let answer = json!({"type": "object", "required": ["events", "cursor"], "properties": properties});
        operation
            .of(id_of(kind))
            .with(&row, fetched(kind))
            .answers(answer)
            .sends_header(VERSION.0, VERSION.1)
            .also_refuses(&[ErrorKind::Past])
    };
    let by_body = Operation::new("post", at("fetch"), tag, format!("Read rows of {of}, newest first, page by page"));
    let by_body = page(by_body).with("FetchEvents", fetch_body()).may_take(reference("FetchEvents"));
    let mut by_query = page(Operation::new(
        "get",
        at("fetch"),
        tag,
        format!("Read rows of {of} with POST, newest first, page by page"),
    ));
    for (name, schema) in fetch_fields() {
        by_query = by_query.asks(name, schema);
    }
    let said = json!({"type": "object", "required": ["status"],
        "properties": {"status": {"type": "string", "enum": ["success"]}}});
    let feedback = Operation::new("post", at("feedback"), tag, format!("Add feedback to rows of {of}"))
        .of(id_of(kind))
        .reads_header(REPEATED.0, REPEATED.1)
        .with(&item, feedback_item(kind))
        .takes(list("feedback", &item))
        .answers(said);
    vec![insert, by_body, by_query, feedback]
}

/// Describes the routes that write to several objects.
pub fn operations() -> Vec<Operation> {
    let row = json!({"type": "object", "additionalProperties": {"nullable": true}});
    let logs = json!({"type": "object", "required": ["rows"], "properties": {
        "rows": {"type": "array", "items": row, "maxItems": ROWS_MAX},
        "api_version": {"nullable": true},
    }});
    let cross = Operation::new("post", "/v1/insert", "CrossObject", "Write rows and feedback of several objects");
    let logged = Operation::new("post", "/logs3", "CrossObject", "Write rows that each name their object");
    vec![
        cross.reads_header(REPEATED.0, REPEATED.1).takes(crossed()).answers(crossed_rows()),
        logged
            .reads_header(REPEATED.0, REPEATED.1)
            .takes(logs)
            .answers(reference("InsertedRows"))
            .also_refuses(&[ErrorKind::NotImplemented]),
    ]
}

/// Returns the kind in the names of schemas, as a tag, and in a sentence.
fn names(kind: ObjectKind) -> (String, &'static str, &'static str) {
    let (tag, of) = match kind {
        ObjectKind::ProjectLogs => ("Logs", "a project's logs"),
        ObjectKind::Experiment => ("Experiments", "an experiment"),
        ObjectKind::Dataset => ("Datasets", "a dataset"),
        ObjectKind::PlaygroundLogs => ("Playgrounds", "a playground"),
        ObjectKind::ProjectPrompts => ("Prompts", "a project's prompts"),
        ObjectKind::AuditLog => ("AuditLogs", "an organization's audit log"),
        ObjectKind::Files => ("Files", "an organization's files"),
    };
    (pascal(kind.name()), tag, of)
}

fn id_of(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Experiment => "experiment",
        ObjectKind::Dataset => "dataset",
        ObjectKind::PlaygroundLogs => "prompt_session",
        ObjectKind::ProjectLogs | ObjectKind::ProjectPrompts => "project",
        ObjectKind::AuditLog | ObjectKind::Files => "organization",
    }
}

/// Returns the body of `POST /v1/insert`: the parts of each object, by its id.
fn crossed() -> Value {
    let mut body = Map::new();
    for kind in [ObjectKind::Experiment, ObjectKind::Dataset, ObjectKind::ProjectLogs] {
        let name = pascal(kind.name());
        let list = |item: String| json!({"type": "array", "nullable": true, "items": reference(&item)});
        let part = json!({"type": "object", "properties": {
            "events": list(format!("Insert{name}Event")), "feedback": list(format!("Feedback{name}Item")),
        }});
        body.insert(kind.name().into(), json!({"type": "object", "nullable": true, "additionalProperties": part}));
    }
    json!({"type": "object", "properties": body})
}

fn crossed_rows() -> Value {
    let by_id = json!({"type": "object", "additionalProperties": reference("InsertedRows")});
    json!({"type": "object", "properties": {"experiment": by_id, "dataset": by_id, "project_logs": by_id}})
}

fn inserted_rows() -> Value {
    json!({"type": "object", "required": ["row_ids"], "properties": {"row_ids": {"type": "array", "items": text()}}})
}

fn fetch_fields() -> Vec<(&'static str, Value)> {
    let text = json!({"type": "string", "nullable": true});
    let limit = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    let staleness = json!({"type": "string", "nullable": true, "enum": ["ok", null]});
    vec![
        ("limit", limit),
        ("cursor", text.clone()),
        ("max_xact_id", maybe_version()),
        ("max_root_span_id", text),
        ("version", maybe_version()),
        ("staleness", staleness),
    ]
}

fn fetch_body() -> Value {
    let properties: Map<_, _> = fetch_fields().into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": properties})
}

fn id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": ID_BYTES_MAX})
}

fn any() -> Value {
    json!({"nullable": true})
}

fn open() -> Value {
    json!({"type": "object", "nullable": true, "additionalProperties": any()})
}

fn optional(kind: &str) -> Value {
    json!({"type": kind, "nullable": true})
}

fn optional_texts() -> Value {
    json!({"type": "array", "nullable": true, "items": text()})
}

fn optional_tags() -> Value {
    json!({"type": "array", "nullable": true, "items": text(), "uniqueItems": true})
}

fn optional_time() -> Value {
    json!({"type": "string", "nullable": true, "format": "date-time"})
}

fn scores() -> Value {
    let score = json!({"type": "number", "nullable": true, "minimum": 0, "maximum": 1});
    json!({"type": "object", "nullable": true, "additionalProperties": score})
}

/// A metric that no JSON number can say is a text.
fn metrics() -> Value {
    let odd = json!({"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]});
    let metric = json!({"anyOf": [optional("number"), odd]});
    let properties = json!({"caller_functionname": any(), "caller_filename": any(), "caller_lineno": any()});
    json!({"type": "object", "nullable": true, "properties": properties, "additionalProperties": metric})
}

/// The numbers of scores and metrics as they are sent: true and false are kept as 1 and 0.
fn or_booleans(mut numbers: Value) -> Value {
    let number = numbers["additionalProperties"].take();
    let mut any = match number.get("anyOf") {
        Some(Value::Array(several)) => several.clone(),
        _ => vec![number],
    };
    any.push(json!({"type": "boolean"}));
    numbers["additionalProperties"] = json!({"anyOf": any});
    numbers
}

fn attributes() -> Value {
    let text = optional("string");
    let properties = json!({"name": text, "type": text, "purpose": text, "log_level": text});
    json!({"type": "object", "nullable": true, "properties": properties, "additionalProperties": any()})
}

fn origin() -> Value {
    let types = ["project_logs", "experiment", "dataset", "prompt", "function", "prompt_session"];
    json!({
        "type": "object", "nullable": true, "required": ["object_type", "object_id", "id"],
        "properties": {
            "object_type": {"type": "string", "enum": types}, "object_id": uuid(), "id": id(),
            "_xact_id": optional("string"), "created": optional("string"),
        },
    })
}

fn facets() -> Value {
    json!({"type": "object", "nullable": true, "additionalProperties": optional("string")})
}

fn classifications() -> Value {
    let one = json!({
        "type": "object", "required": ["id"],
        "properties": {
            "id": text(), "label": optional("string"), "confidence": optional("number"), "metadata": open(), "source": open(),
        },
    });
    let list = json!({"type": "array", "nullable": true, "items": one});
    json!({"type": "object", "nullable": true, "additionalProperties": list})
}

/// Returns the fields of rows of a kind, whether they are sent or read.
fn said(kind: ObjectKind) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, schema: Value| drop(fields.insert(name.to_owned(), schema));
    put("input", any());
    put("expected", any());
    if kind != ObjectKind::Dataset {
        put("output", any());
        put("error", any());
        put("scores", scores());
        put("metrics", metrics());
        put("context", open());
        put("span_attributes", attributes());
    }
    put("metadata", open());
    put("tags", optional_tags());
    put("origin", origin());
    put("facets", facets());
    put("classifications", classifications());
    fields
}

fn inserted(kind: ObjectKind) -> Value {
    let mut fields = said(kind);
    for name in ["scores", "metrics"] {
        if let Some(numbers) = fields.get_mut(name) {
            *numbers = or_booleans(numbers.take());
        }
    }
    let mut put = |name: &str, schema: Value| drop(fields.insert(name.to_owned(), schema));
    for name in ["id", "span_id", "root_span_id", "_parent_id"] {
        put(name, json!({"type": "string", "nullable": true, "minLength": 1, "maxLength": ID_BYTES_MAX}));
    }
    put("created", optional_time());
    put("span_parents", json!({"type": "array", "nullable": true, "items": id()}));
    put("_object_delete", optional("boolean"));
    put("_is_merge", optional("boolean"));
    let path = json!({"type": "array", "items": text(), "minItems": 1});
    put("_merge_paths", json!({"type": "array", "nullable": true, "items": path, "maxItems": MERGE_PATHS_MAX}));
    let taken = json!({"type": "object", "required": ["path", "delete"],
        "properties": {"path": path, "delete": {"type": "array", "items": any()}}});
    put("_array_delete", json!({"type": "array", "nullable": true, "items": taken, "maxItems": ARRAY_DELETES_MAX}));
    put("_audit_source", optional("string"));
    put("_audit_metadata", open());
    json!({"type": "object", "properties": fields})
}

fn fetched(kind: ObjectKind) -> Value {
    let mut fields = said(kind);
    let mut required = Vec::new();
    let mut always = |name: &str, schema: Value| {
        fields.insert(name.to_owned(), schema);
        required.push(Value::from(name));
    };
    for name in ["id", "_xact_id", "_pagination_key", "span_id", "root_span_id"] {
        always(name, text());
    }
    always("created", json!({"type": "string", "format": "date-time"}));
    always("project_id", uuid());
    match kind {
        ObjectKind::Experiment => always("experiment_id", uuid()),
        ObjectKind::Dataset => always("dataset_id", uuid()),
        ObjectKind::ProjectLogs
        | ObjectKind::PlaygroundLogs
        | ObjectKind::ProjectPrompts
        | ObjectKind::AuditLog
        | ObjectKind::Files => {
            always("org_id", uuid());
            always("log_id", json!({"type": "string", "enum": ["g"]}));
        }
    }
    always("span_parents", optional_texts());
    always("is_root", json!({"type": "boolean"}));
    let notes = json!({"type": "array", "nullable": true, "items": any()});
    always("comments", notes.clone());
    always("audit_data", notes);
    json!({"type": "object", "required": required, "properties": fields})
}

fn feedback_item(kind: ObjectKind) -> Value {
    let mut fields = Map::from_iter([("id".to_owned(), id())]);
    let mut put = |name: &str, schema: Value| drop(fields.insert(name.to_owned(), schema));
    put("comment", optional("string"));
    put("metadata", open());
    put("source", json!({"type": "string", "nullable": true, "enum": ["app", "api", "external", null]}));
    put("tags", optional_tags());
    put("expected", any());
    if kind != ObjectKind::Dataset {
        put("scores", or_booleans(scores()));
    }
    json!({"type": "object", "required": ["id"], "properties": fields})
}
