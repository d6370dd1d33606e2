//! Error responses: a table of statuses and names, the body, and conversions from errors.
//!
//! Clients display the body unmodified, so `Message` is a sentence for people. The response to an internal error
//! reveals less than the log.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use assay_node_files::FilesError;
use assay_node_functions::FunctionsError;
use assay_node_objects::ingest::IngestError;
use assay_node_objects::{ReadError, WriteError};
use assay_node_query::AskError;
use assay_node_query::render::{FormatError, RenderError};
use assay_node_records::RecordsError;
use assay_storage_model::NotWritten;
use assay_storage_model::event::RowError;
use assay_storage_model::xact::NotAnXact;
use serde_json::{Value, json};

use crate::responses::response_headers::ResponseHeaders;

/// Header that tells generated clients whether to retry a request.
const SHOULD_RETRY: &str = "x-should-retry";

/// Kind of a refusal, which determines its status and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    BadRequest,
    Unauthorized,
    /// The caller may see the object but not change it. Queries also use it for missing objects.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooSlow,
    Conflict,
    /// The requested version is older than the stored history.
    Past,
    TooLarge,
    UnsupportedEncoding,
    HeadTooLarge,
    Busy,
    Internal,
    NotImplemented,
    /// An upstream server, such as a model server, failed or cannot be reached.
    BadGateway,
    Unavailable,
    TooLate,
    NoSpace,
}

impl ErrorKind {
    pub const ALL: [ErrorKind; 18] = [
        ErrorKind::BadRequest,
        ErrorKind::Unauthorized,
        ErrorKind::Forbidden,
        ErrorKind::NotFound,
        ErrorKind::MethodNotAllowed,
        ErrorKind::TooSlow,
        ErrorKind::Conflict,
        ErrorKind::Past,
        ErrorKind::TooLarge,
        ErrorKind::UnsupportedEncoding,
        ErrorKind::HeadTooLarge,
        ErrorKind::Busy,
        ErrorKind::Internal,
        ErrorKind::NotImplemented,
        ErrorKind::BadGateway,
        ErrorKind::Unavailable,
        ErrorKind::TooLate,
        ErrorKind::NoSpace,
    ];

    /// Returns the status and the name. Invisible and missing objects have the same status: 404, or 403 in queries.
    fn row(self) -> (StatusCode, &'static str) {
        match self {
            ErrorKind::BadRequest => (StatusCode::BAD_REQUEST, "BadRequestError"),
            ErrorKind::Unauthorized => (StatusCode::UNAUTHORIZED, "UnauthorizedError"),
            ErrorKind::Forbidden => (StatusCode::FORBIDDEN, "ForbiddenError"),
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "NotFoundError"),
            ErrorKind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowedError"),
            ErrorKind::TooSlow => (StatusCode::REQUEST_TIMEOUT, "RequestTimeoutError"),
            ErrorKind::Conflict => (StatusCode::CONFLICT, "ConflictError"),
            ErrorKind::Past => (StatusCode::GONE, "GoneError"),
            ErrorKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError"),
            ErrorKind::UnsupportedEncoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError"),
            ErrorKind::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HeaderTooLargeError"),
            ErrorKind::Busy => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsError"),
            ErrorKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
            ErrorKind::NotImplemented => (StatusCode::NOT_IMPLEMENTED, "NotImplementedError"),
            ErrorKind::BadGateway => (StatusCode::BAD_GATEWAY, "BadGatewayError"),
            ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableError"),
            ErrorKind::TooLate => (StatusCode::GATEWAY_TIMEOUT, "GatewayTimeoutError"),
            ErrorKind::NoSpace => (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorageError"),
        }
    }

    pub fn status(self) -> StatusCode {
        self.row().0
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the description for the OpenAPI document.
    pub fn said(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "The request is invalid; the message says where and how to correct it",
            ErrorKind::Unauthorized => "The credential is missing or unknown",
            ErrorKind::Forbidden => "The credential lacks the permission",
            ErrorKind::NotFound => "The object does not exist, or is not visible to the credential",
            ErrorKind::MethodNotAllowed => "The path does not support this method; `Allow` names those it supports",
            ErrorKind::TooSlow => "The body arrived too slowly",
            ErrorKind::Conflict => {
                "The name already exists, the idempotency key was used for another request, or the query was cancelled"
            }
            ErrorKind::Past => "The version is older than the stored history",
            ErrorKind::TooLarge => "The body, or a part of it, is too large",
            ErrorKind::UnsupportedEncoding => "The encoding of the body is not supported",
            ErrorKind::HeadTooLarge => "The head of the request is too large",
            ErrorKind::Busy => {
                "A limit is reached, or a budget of the node stayed full: retry after `Retry-After` seconds"
            }
            ErrorKind::Internal => "The server failed; its log has the details under the trace id",
            ErrorKind::NotImplemented => "The operation is part of the API, but not supported yet",
            ErrorKind::BadGateway => "A server that this one asked failed, or could not be reached",
            ErrorKind::Unavailable => {
                "The service is unavailable: retry in a moment. The outcome of a write is unknown"
            }
            ErrorKind::TooLate => "The request timed out",
            ErrorKind::NoSpace => "The disk is full",
        }
    }

    /// Returns the delay after which a retry makes sense, or `None` if it does not.
    pub fn retry_after_seconds(self) -> Option<u64> {
        match self {
            ErrorKind::Busy | ErrorKind::Unavailable => Some(1),
            ErrorKind::NoSpace => Some(30),
            _ => None,
        }
    }

    /// Returns whether the connection is closed, because the rest of the request is not read.
    fn closes(self) -> bool {
        matches!(self, ErrorKind::TooSlow | ErrorKind::TooLarge | ErrorKind::HeadTooLarge)
    }
}

/// Error response of a handler. The edge adds the common headers.
#[derive(Debug)]
pub struct Refusal {
    pub kind: ErrorKind,
    pub message: String,
    /// Methods that the path supports, for a 405.
    pub allow: Option<String>,
    /// Seconds until a retry, which override [`ErrorKind::retry_after_seconds`].
    pub retry_after_seconds: Option<u64>,
    /// Whether clients are told not to retry, because a retry would have the same result.
    pub is_final: bool,
    /// Challenge in `WWW-Authenticate` of a 401, if it is not that of a bearer token alone.
    pub challenge: Option<Box<str>>,
    /// Headers of the response, set if the edge itself refuses the request.
    pub headers: Option<Box<ResponseHeaders>>,
    /// Further members of the body, such as the error of a function.
    pub details: Option<Box<Value>>,
}

impl Refusal {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        let message = message.into();
        Refusal {
            kind,
            message,
            allow: None,
            retry_after_seconds: None,
            is_final: false,
            challenge: None,
            headers: None,
            details: None,
        }
    }

    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorKind::BadRequest, message)
    }

    /// Refuses a missing or invisible object. The message does not reveal which.
    pub fn not_found(what: impl fmt::Display) -> Refusal {
        Refusal::new(ErrorKind::NotFound, format!("{what} does not exist, or this credential may not see it"))
    }

    /// Logs an internal error. The message for the caller does not contain it.
    pub fn internal(why: impl fmt::Display) -> Refusal {
        tracing::error!(%why, "a request failed with an internal error");
        Refusal::new(
            ErrorKind::Internal,
            "the server failed on this request; its log has the details under this trace id",
        )
    }

    /// Returns the response without the common headers.
    pub fn bare(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.kind.status());
        if let Some(seconds) = self.retry_after_seconds.or(self.kind.retry_after_seconds()) {
            answer.insert_header((header::RETRY_AFTER, seconds.to_string()));
        }
        if self.kind == ErrorKind::Unauthorized {
            let challenge = self.challenge.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
            let challenge = challenge.unwrap_or(HeaderValue::from_static("Bearer"));
            answer.insert_header((header::WWW_AUTHENTICATE, challenge));
        }
        if let Some(allow) = &self.allow {
            answer.insert_header((header::ALLOW, allow.as_str()));
        }
        if self.is_final {
            answer.insert_header((SHOULD_RETRY, "false"));
        }
        if self.kind.closes() {
            answer.force_close();
        }
        answer.finish()
    }

    /// Returns the body of the response (client-wire.md 11.2).
    pub fn body(&self, trace: &str, path: &str) -> String {
        let (code, message) = (self.kind.name(), &self.message);
        let mut body =
            json!({"Code": code, "Message": message, "InternalTraceId": trace, "Path": path, "Service": "api"});
        if let (Value::Object(members), Some(Value::Object(details))) = (&mut body, self.details.as_deref()) {
            members.extend(details.clone());
        }
        body.to_string()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.kind.status()
    }

    fn error_response(&self) -> HttpResponse {
        let bare = self.bare();
        match &self.headers {
            Some(headers) => headers.put_on(bare.set_body(headers.body_of(self))).map_into_boxed_body(),
            None => bare,
        }
    }
}

impl From<RecordsError> for Refusal {
    fn from(error: RecordsError) -> Refusal {
        let kind = match &error {
            RecordsError::BadRequest(_) => ErrorKind::BadRequest,
            RecordsError::Unauthenticated(_) => ErrorKind::Unauthorized,
            RecordsError::Forbidden(_) => ErrorKind::Forbidden,
            RecordsError::NotServed(_) => ErrorKind::NotImplemented,
            RecordsError::NotFound(_) => ErrorKind::NotFound,
            RecordsError::Taken(_) => ErrorKind::Conflict,
            RecordsError::TooLarge(_) => ErrorKind::TooLarge,
            RecordsError::Busy(_) => ErrorKind::Busy,
            RecordsError::Unavailable(_) | RecordsError::Unknown(_) => ErrorKind::Unavailable,
            RecordsError::NoSpace(_) => ErrorKind::NoSpace,
            RecordsError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Refusal {
        let retry_after_seconds = match &error {
            WriteError::NotWritten { why: NotWritten::Busy(_), retry_after } => Some(retry_after.as_secs().max(1)),
            _ => None,
        };
        let kind = match &error {
            WriteError::Row { .. } => ErrorKind::BadRequest,
            WriteError::Forbidden { .. } => ErrorKind::Forbidden,
            WriteError::TooLarge { .. } => ErrorKind::TooLarge,
            WriteError::Gone { .. } => ErrorKind::NotFound,
            WriteError::KeyReused { .. } => ErrorKind::Conflict,
            WriteError::NotWritten { why: NotWritten::Busy(_), .. } => ErrorKind::Busy,
            WriteError::NotWritten { why: NotWritten::NoSpace(_), .. } => ErrorKind::NoSpace,
            WriteError::NotWritten { .. } | WriteError::Unknown { .. } => ErrorKind::Unavailable,
        };
        Refusal { retry_after_seconds, ..Refusal::new(kind, error.to_string()) }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        let kind = match &error {
            ReadError::BadRequest(_) => ErrorKind::BadRequest,
            ReadError::Gone { .. } => ErrorKind::NotFound,
            ReadError::Past { .. } => ErrorKind::Past,
            ReadError::Busy { .. } => ErrorKind::Busy,
            ReadError::NoSpace(_) => ErrorKind::NoSpace,
            ReadError::Unavailable(_) => ErrorKind::Unavailable,
            ReadError::Damaged(_) | ReadError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<FilesError> for Refusal {
    fn from(error: FilesError) -> Refusal {
        match error {
            FilesError::BadRequest(why) => Refusal::bad(why),
            FilesError::TooLarge(why) => Refusal::new(ErrorKind::TooLarge, why),
            FilesError::Write(why) => why.into(),
            FilesError::Read(why) => why.into(),
            FilesError::Changed => Refusal::new(ErrorKind::Unavailable, error.to_string()),
            FilesError::Damaged(_) => Refusal::internal(error),
        }
    }
}

impl From<FunctionsError> for Refusal {
    fn from(error: FunctionsError) -> Refusal {
        match error {
            FunctionsError::Records(why) => why.into(),
            FunctionsError::Read(why) => why.into(),
            FunctionsError::Write(why) => why.into(),
            FunctionsError::Row { .. } => Refusal::bad(error.to_string()),
            FunctionsError::Internal(_) => Refusal::internal(error),
        }
    }
}

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Refusal {
        let kind = match &error {
            AskError::BadRequest(_) => ErrorKind::BadRequest,
            AskError::Gone { .. } => ErrorKind::Forbidden,
            AskError::Cancelled => ErrorKind::Conflict,
            AskError::Past { .. } => ErrorKind::Past,
            AskError::TooMuch(_) => ErrorKind::TooLarge,
            AskError::Busy(_) => ErrorKind::Busy,
            AskError::Refused { retry_after_seconds, .. } => {
                let refusal = Refusal::new(ErrorKind::Busy, error.to_string());
                return Refusal { retry_after_seconds: Some(*retry_after_seconds), ..refusal };
            }
            AskError::NotServed(_) => ErrorKind::NotImplemented,
            AskError::Unavailable(_) => ErrorKind::Unavailable,
            AskError::TooLate(_) => ErrorKind::TooLate,
            AskError::NoSpace(_) => ErrorKind::NoSpace,
            AskError::Damaged(_) | AskError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<RenderError> for Refusal {
    fn from(why: RenderError) -> Refusal {
        match why {
            RenderError::Query(why) => why.into(),
            // These are limits of the format. Any other format error is a fault of this program.
            RenderError::Format(FormatError::Beyond { .. } | FormatError::TooLong { .. }) => {
                Refusal::bad(why.to_string())
            }
            RenderError::NoMemory(why) => Refusal::new(ErrorKind::Busy, why),
            RenderError::Format(_)
            | RenderError::Envelope(_)
            | RenderError::Compression(_)
            | RenderError::Task(_)
            | RenderError::Internal(_) => Refusal::internal(why),
        }
    }
}

impl From<IngestError> for Refusal {
    fn from(error: IngestError) -> Refusal {
        Refusal::bad(error.to_string())
    }
}

impl From<RowError> for Refusal {
    fn from(error: RowError) -> Refusal {
        Refusal::bad(error.to_string())
    }
}

impl From<NotAnXact> for Refusal {
    fn from(error: NotAnXact) -> Refusal {
        Refusal::bad(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_an_error_with_a_name_of_its_own() {
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert!(kind.status().is_client_error() || kind.status().is_server_error(), "{kind:?}");
            assert!(ErrorKind::ALL[..place].iter().all(|other| other.row() != kind.row()), "{kind:?}");
        }
    }

    #[test]
    fn what_may_be_asked_again_says_when() {
        for kind in ErrorKind::ALL {
            let wants = [429, 503, 507].contains(&kind.status().as_u16());
            let answer = Refusal::new(kind, "").error_response();
            assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), wants, "{kind:?}");
        }
    }

    #[test]
    fn who_knows_when_says_when() {
        let refusal = Refusal { retry_after_seconds: Some(40), ..Refusal::new(ErrorKind::Busy, "") };
        let answer = refusal.error_response();
        assert_eq!(answer.headers().get(header::RETRY_AFTER), Some(&HeaderValue::from_static("40")));
    }

    #[test]
    fn the_body_names_what_people_ask_for() {
        let body = Refusal::bad("no \"name\"").body("t1", "/v1/project");
        let said: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            said,
            json!({"Code": "BadRequestError", "Message": "no \"name\"", "InternalTraceId": "t1", "Path": "/v1/project",
                "Service": "api"})
        );
    }
}
