//! Handlers for temporary credentials of the AI gateway: `POST /v1/proxy/credentials` and its aliases (G-01, G-24).
//!
//! Gateway clients expect a 400 in plain text for an invalid request. Refusals that any request can get, such as for an
//! unknown credential, have the usual form.

use assay_node_auth::{LoggingTarget, TemporaryLogging, TemporaryTerms};
use assay_node_http::openapi::{Operation, text};
use assay_node_http::requests::caller::ModelClientCall;
use assay_node_http::requests::error_texts::kind_of;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_headers::MeantAsText;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{HttpResponse, Payload, header};
use assay_node_identity::{NewTemporary, TEMPORARY_SECONDS_DEFAULT, TEMPORARY_SECONDS_MAX};
use assay_node_otel::Parent;
use serde_json::{Map, Value, json};

use crate::route_table::{Routes, at, post};

/// Paths of the operation. The first path is canonical.
const PATHS: [&str; 4] =
    ["/v1/proxy/credentials", "/v1/proxy/v1/credentials", "/gateway/credentials", "/gateway/v1/credentials"];
/// Upper bound of the bytes in the name of a model.
const MODEL_BYTES_MAX: usize = 1024;
/// Upper bound of the bytes in the name of a project or in a parent of spans.
const TARGET_BYTES_MAX: usize = 4096;

/// Upper bound of floats that represent every whole number exactly.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

const MODEL: &str = "model";
const TTL: &str = "ttl_seconds";
const LOGGING: &str = "logging";
const PROJECT_NAME: &str = "logging.project_name";
const PARENT: &str = "logging.parent";
const COMPRESS_AUDIO: &str = "logging.compress_audio";
const MAX_REQUESTS: &str = "max_requests";
/// Upper bound of [`MAX_REQUESTS`].
const REQUESTS_MAX: u64 = 1_000_000_000;
const MAX_COST: &str = "max_cost";

pub fn register(config: &mut Routes<'_>) {
    for path in PATHS {
        config.service(at(path).route(post().to(issue)));
    }
}

/// Issues a temporary credential. The response contains its only copy.
pub async fn issue(ModelClientCall(call): ModelClientCall, payload: Payload) -> HandlerResult {
    let issued = async {
        let wanted = new_temporary(&call.small_body(payload).await?.object().await?)?;
        Ok::<_, Refusal>(call.edge.identity.issue_temporary(&call.principal, wanted).await?)
    };
    match issued.await {
        Ok(key) => json(&json!({"key": key.expose()})),
        Err(refusal) => in_plain_text(refusal),
    }
}

/// Turns the refusal of an invalid request into a plain text response, and returns other refusals as errors.
fn in_plain_text(refusal: Refusal) -> HandlerResult {
    match refusal.kind {
        ErrorKind::BadRequest | ErrorKind::Forbidden | ErrorKind::NotFound | ErrorKind::Conflict => {
            let mut response = HttpResponse::BadRequest();
            response.insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"));
            let mut response = response.body(refusal.message);
            response.extensions_mut().insert(MeantAsText);
            Ok(response)
        }
        _ => Err(refusal),
    }
}

fn new_temporary(body: &Map<String, Value>) -> Result<NewTemporary, Refusal> {
    let terms = TemporaryTerms {
        model: named(body, MODEL, MODEL_BYTES_MAX)?,
        logging: logging(body)?,
        max_requests: number(body, MAX_REQUESTS, &format!("a whole number from 1 to {REQUESTS_MAX}"), |number| {
            whole(number).filter(|count| (1..=REQUESTS_MAX).contains(count))
        })?,
        max_cost: number(body, MAX_COST, "a number of US dollars above 0", |number| {
            number.as_f64().filter(|dollars| *dollars > 0.0)
        })?,
    };
    let seconds = number(body, TTL, &format!("a number from 1 to {TEMPORARY_SECONDS_MAX}"), |number| {
        let is_valid = |seconds: &f64| (1.0..=f64::from(TEMPORARY_SECONDS_MAX)).contains(seconds);
        // The fraction of a second is dropped.
        number.as_f64().filter(is_valid).map(|seconds| seconds as u32)
    })?;
    Ok(NewTemporary { terms, seconds: seconds.unwrap_or(TEMPORARY_SECONDS_DEFAULT) })
}

fn logging(body: &Map<String, Value>) -> Result<Option<TemporaryLogging>, Refusal> {
    let fields = match body.get(LOGGING) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(fields)) => fields,
        Some(other) => return Err(wrong(LOGGING, "an object", other)),
    };
    let project = named(fields, PROJECT_NAME, TARGET_BYTES_MAX)?;
    let parent = named(fields, PARENT, TARGET_BYTES_MAX)?;
    let target = match (project, parent) {
        (Some(name), None) => LoggingTarget::ProjectName(name),
        (None, Some(parent)) => {
            Parent::parse(&parent).map_err(|why| Refusal::bad(format!("`{PARENT}`: {why}")))?;
            LoggingTarget::Parent(parent)
        }
        (None, None) => return Err(Refusal::bad(format!("`{PROJECT_NAME}` is missing: add it or `{PARENT}`"))),
        (Some(_), Some(_)) => {
            return Err(Refusal::bad(format!(
                "`{PROJECT_NAME}` and `{PARENT}` exclude each other: send only one of them"
            )));
        }
    };
    let compress_audio = match member(fields, COMPRESS_AUDIO) {
        None => true,
        Some(Value::Bool(compress)) => *compress,
        Some(other) => return Err(wrong(COMPRESS_AUDIO, "true or false", other)),
    };
    Ok(Some(TemporaryLogging { target, compress_audio }))
}

/// Returns the member at the end of a path, or `None` if it is absent or null.
fn member<'b>(fields: &'b Map<String, Value>, path: &str) -> Option<&'b Value> {
    let name = path.rsplit('.').next().unwrap_or(path);
    fields.get(name).filter(|value| !value.is_null())
}

/// Returns the text of a member, which must be neither empty nor too long.
fn named(fields: &Map<String, Value>, path: &str, bytes_max: usize) -> Result<Option<String>, Refusal> {
    match member(fields, path) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Err(Refusal::bad(format!("`{path}` is empty"))),
        Some(Value::String(text)) if text.len() > bytes_max => {
            let bytes = text.len();
            Err(Refusal::bad(format!("`{path}` has {bytes} bytes: the maximum is {bytes_max}")))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(path, "a string", other)),
    }
}

fn number<T>(
    fields: &Map<String, Value>,
    path: &str,
    wanted: &str,
    read: impl Fn(&serde_json::Number) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    match member(fields, path) {
        None => Ok(None),
        Some(Value::Number(number)) => match read(number) {
            Some(value) => Ok(Some(value)),
            None => Err(Refusal::bad(format!("`{path}` has to be {wanted}, not {number}"))),
        },
        Some(other) => Err(wrong(path, wanted, other)),
    }
}

/// Returns a whole number, which may have float notation.
fn whole(number: &serde_json::Number) -> Option<u64> {
    let is_whole = |float: &f64| float.fract() == 0.0 && (0.0..WHOLE_FLOAT_MAX).contains(float);
    number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|float| float as u64))
}

fn wrong(path: &str, wanted: &str, found: &Value) -> Refusal {
    Refusal::bad(format!("`{path}` has to be {wanted}, not {}", kind_of(found)))
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let logging = json!({
        "type": "object", "nullable": true,
        "properties": {
            "project_name": {"type": "string", "nullable": true, "minLength": 1, "maxLength": TARGET_BYTES_MAX},
            "parent": {"type": "string", "nullable": true, "minLength": 1, "maxLength": TARGET_BYTES_MAX},
            "compress_audio": {"type": "boolean", "nullable": true, "default": true},
        },
    });
    let body = json!({"type": "object", "properties": {
        "model": {"type": "string", "nullable": true, "minLength": 1, "maxLength": MODEL_BYTES_MAX},
        "ttl_seconds": {
            "type": "number", "nullable": true, "minimum": 1, "maximum": TEMPORARY_SECONDS_MAX,
            "default": TEMPORARY_SECONDS_DEFAULT,
        },
        "logging": logging,
        "max_requests": {"type": "integer", "minimum": 1, "maximum": REQUESTS_MAX, "nullable": true},
        "max_cost": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "nullable": true},
    }});
    let issued = json!({"type": "object", "required": ["key"], "properties": {"key": text()}});
    let described = |path: &str| {
        Operation::new("post", path, "Models", "Issue a temporary credential for calls of models")
            .takes(body.clone())
            .answers(issued.clone())
            .answers_with(400, "The credential was not issued; the text says why", "text/plain", text())
    };
    PATHS.into_iter().map(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<NewTemporary, String> {
        new_temporary(body.as_object().expect("an object")).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_request_names_terms_and_a_lifetime() {
        let none = NewTemporary { terms: TemporaryTerms::default(), seconds: 600 };
        assert_eq!(read(&json!({})), Ok(none.clone()));
        let nulls = json!({"model": null, "ttl_seconds": null, "logging": null, "max_requests": null, "other": 1});
        assert_eq!(read(&nulls), Ok(none));
        let all = json!({
            "model": "gpt-4o", "ttl_seconds": 60.9, "logging": {"project_name": "p", "compress_audio": false},
            "max_requests": 3.0, "max_cost": 0.25,
        });
        let logging = TemporaryLogging { target: LoggingTarget::ProjectName("p".into()), compress_audio: false };
        let terms = TemporaryTerms {
            model: Some("gpt-4o".into()),
            logging: Some(logging),
            max_requests: Some(3),
            max_cost: Some(0.25),
        };
        assert_eq!(read(&all), Ok(NewTemporary { terms, seconds: 60 }));
        let by_parent = read(&json!({"ttl_seconds": 86_400, "logging": {"parent": "project_name:p"}})).expect("valid");
        let logging = TemporaryLogging { target: LoggingTarget::Parent("project_name:p".into()), compress_audio: true };
        assert_eq!((by_parent.seconds, by_parent.terms.logging), (86_400, Some(logging)));
    }

    #[test]
    fn a_refusal_names_the_field() {
        for (body, expected) in [
            (json!({"model": 1}), "`model` has to be a string, not a number"),
            (json!({"model": ""}), "`model` is empty"),
            (json!({"model": "x".repeat(1025)}), "`model` has 1025 bytes: the maximum is 1024"),
            (json!({"ttl_seconds": 86_401}), "`ttl_seconds` has to be a number from 1 to 86400, not 86401"),
            (json!({"ttl_seconds": 0}), "`ttl_seconds` has to be a number from 1 to 86400, not 0"),
            (json!({"ttl_seconds": "60"}), "`ttl_seconds` has to be a number from 1 to 86400, not a string"),
            (json!({"logging": "p"}), "`logging` has to be an object, not a string"),
            (json!({"logging": {}}), "`logging.project_name` is missing: add it or `logging.parent`"),
            (json!({"logging": {"project_name": 1}}), "`logging.project_name` has to be a string, not a number"),
            (
                json!({"logging": {"project_name": "p", "compress_audio": 1}}),
                "`logging.compress_audio` has to be true or false, not a number",
            ),
            (
                json!({"logging": {"project_name": "p", "parent": "project_id:1"}}),
                "`logging.project_name` and `logging.parent` exclude each other: send only one of them",
            ),
            (json!({"max_requests": 0}), "`max_requests` has to be a whole number from 1 to 1000000000, not 0"),
            (json!({"max_requests": 1.5}), "`max_requests` has to be a whole number from 1 to 1000000000, not 1.5"),
            (
                json!({"max_requests": 1_000_000_001}),
                "`max_requests` has to be a whole number from 1 to 1000000000, not 1000000001",
            ),
            (json!({"max_cost": 0}), "`max_cost` has to be a number of US dollars above 0, not 0"),
            (json!({"max_cost": true}), "`max_cost` has to be a number of US dollars above 0, not a boolean"),
        ] {
            assert_eq!(read(&body), Err(expected.to_owned()), "{body}");
        }
        let parent = read(&json!({"logging": {"parent": "nowhere"}})).expect_err("not a parent");
        assert!(parent.starts_with("`logging.parent`: "), "{parent}");
    }

    #[test]
    fn refusals_of_the_request_are_plain_text() {
        let refused = in_plain_text(Refusal::new(ErrorKind::Forbidden, "why")).expect("a response");
        assert_eq!(refused.status().as_u16(), 400);
        assert_eq!(refused.headers().get("content-type").expect("a type"), "text/plain; charset=utf-8");
        for kind in [ErrorKind::Unauthorized, ErrorKind::Busy, ErrorKind::Unavailable, ErrorKind::TooSlow] {
            assert_eq!(in_plain_text(Refusal::new(kind, "why")).expect_err("as everywhere").kind, kind);
        }
    }
}
