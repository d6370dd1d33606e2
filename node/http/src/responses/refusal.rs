//! Error responses: one table from the kind of a refusal to its status and name, its body, and conversions of errors.
//!
//! Clients show the body as it is, so `Message` is a sentence for people. An internal error tells its caller less than the
//! log.

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
use serde_json::json;

use crate::responses::response_headers::ResponseHeaders;

/// Every kind of refusal that leaves this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    BadRequest,
    Unauthorized,
    /// An object that the caller may see and not change. Queries answer it for missing objects, too.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooSlow,
    Conflict,
    /// A version older than what is kept.
    Past,
    TooLarge,
    UnsupportedEncoding,
    HeadTooLarge,
    Busy,
    Internal,
    NotImplemented,
    Unavailable,
    TooLate,
    NoSpace,
}

impl Kind {
    pub const ALL: [Kind; 17] = [
        Kind::BadRequest,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::TooSlow,
        Kind::Conflict,
        Kind::Past,
        Kind::TooLarge,
        Kind::UnsupportedEncoding,
        Kind::HeadTooLarge,
        Kind::Busy,
        Kind::Internal,
        Kind::NotImplemented,
        Kind::Unavailable,
        Kind::TooLate,
        Kind::NoSpace,
    ];

    /// Returns status and name. Invisible and missing objects are answered alike: 404, and 403 by queries.
    fn row(self) -> (StatusCode, &'static str) {
        match self {
            Kind::BadRequest => (StatusCode::BAD_REQUEST, "BadRequestError"),
            Kind::Unauthorized => (StatusCode::UNAUTHORIZED, "UnauthorizedError"),
            Kind::Forbidden => (StatusCode::FORBIDDEN, "ForbiddenError"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "NotFoundError"),
            Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowedError"),
            Kind::TooSlow => (StatusCode::REQUEST_TIMEOUT, "RequestTimeoutError"),
            Kind::Conflict => (StatusCode::CONFLICT, "ConflictError"),
            Kind::Past => (StatusCode::GONE, "GoneError"),
            Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeError"),
            Kind::UnsupportedEncoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError"),
            Kind::HeadTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HeaderTooLargeError"),
            Kind::Busy => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsError"),
            Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
            Kind::NotImplemented => (StatusCode::NOT_IMPLEMENTED, "NotImplementedError"),
            Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableError"),
            Kind::TooLate => (StatusCode::GATEWAY_TIMEOUT, "GatewayTimeoutError"),
            Kind::NoSpace => (StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorageError"),
        }
    }

    pub fn status(self) -> StatusCode {
        self.row().0
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the meaning for the OpenAPI document.
    pub fn said(self) -> &'static str {
        match self {
            Kind::BadRequest => "The request is invalid; the message says where and how to correct it",
            Kind::Unauthorized => "The credential is missing or unknown",
            Kind::Forbidden => "The credential lacks the permission",
            Kind::NotFound => "The object does not exist, or is not visible to the credential",
            Kind::MethodNotAllowed => "The path does not support this method; `Allow` names those it supports",
            Kind::TooSlow => "The body arrived too slowly",
            Kind::Conflict => "The name already exists, or the idempotency key was used for another request",
            Kind::Past => "The version is older than the stored history",
            Kind::TooLarge => "The body, or a part of it, is too large",
            Kind::UnsupportedEncoding => "The encoding of the body is not supported",
            Kind::HeadTooLarge => "The head of the request is too large",
            Kind::Busy => "A limit is reached, or a budget of the node stayed full: retry after `Retry-After` seconds",
            Kind::Internal => "The server failed; its log has the details under the trace id",
            Kind::NotImplemented => "The operation is part of the API, but not supported yet",
            Kind::Unavailable => "The service is unavailable: retry in a moment. The outcome of a write is unknown",
            Kind::TooLate => "The request timed out",
            Kind::NoSpace => "The disk is full",
        }
    }

    /// Returns the seconds after which a retry makes sense, or none if it does not.
    pub fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Kind::Busy | Kind::Unavailable => Some(1),
            Kind::NoSpace => Some(30),
            _ => None,
        }
    }

    /// Returns whether the connection is closed, since the rest of the request on it is not wanted.
    fn closes(self) -> bool {
        matches!(self, Kind::TooSlow | Kind::TooLarge | Kind::HeadTooLarge)
    }
}

/// An error response of a handler. The edge adds the headers that all responses have.
#[derive(Debug)]
pub struct Refusal {
    pub kind: Kind,
    pub message: String,
    /// Methods that the path takes, for 405.
    pub allow: Option<String>,
    /// Seconds until a retry, if more is known than the table says.
    pub retry_after_seconds: Option<u64>,
    /// Headers and body, set if the edge itself refuses.
    pub headers: Option<Box<ResponseHeaders>>,
}

impl Refusal {
    pub fn new(kind: Kind, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: message.into(), allow: None, retry_after_seconds: None, headers: None }
    }

    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(Kind::BadRequest, message)
    }

    /// Refuses a missing or invisible object, in the same words.
    pub fn not_found(what: impl fmt::Display) -> Refusal {
        Refusal::new(Kind::NotFound, format!("{what} does not exist, or this credential may not see it"))
    }

    /// Logs an internal error and tells the caller little about it.
    pub fn internal(why: impl fmt::Display) -> Refusal {
        tracing::error!(%why, "a request failed with an internal error");
        Refusal::new(Kind::Internal, "the server failed on this request; its log has the details under this trace id")
    }

    /// Returns the response without the headers that all responses have.
    pub fn bare(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.kind.status());
        if let Some(seconds) = self.retry_after_seconds.or(self.kind.retry_after_seconds()) {
            answer.insert_header((header::RETRY_AFTER, seconds.to_string()));
        }
        if self.kind == Kind::Unauthorized {
            answer.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if let Some(allow) = &self.allow {
            answer.insert_header((header::ALLOW, allow.as_str()));
        }
        if self.kind.closes() {
            answer.force_close();
        }
        answer.finish()
    }

    /// client-wire.md 11.2.
    pub fn body(&self, trace: &str, path: &str) -> String {
        let (code, message) = (self.kind.name(), &self.message);
        json!({"Code": code, "Message": message, "InternalTraceId": trace, "Path": path, "Service": "api"}).to_string()
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
            RecordsError::BadRequest(_) => Kind::BadRequest,
            RecordsError::Unauthenticated(_) => Kind::Unauthorized,
            RecordsError::Forbidden(_) => Kind::Forbidden,
            RecordsError::NotServed(_) => Kind::NotImplemented,
            RecordsError::NotFound(_) => Kind::NotFound,
            RecordsError::Taken(_) => Kind::Conflict,
            RecordsError::TooLarge(_) => Kind::TooLarge,
            RecordsError::Busy(_) => Kind::Busy,
            RecordsError::Unavailable(_) | RecordsError::Unknown(_) => Kind::Unavailable,
            RecordsError::NoSpace(_) => Kind::NoSpace,
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
            WriteError::Row { .. } => Kind::BadRequest,
            WriteError::TooLarge { .. } => Kind::TooLarge,
            WriteError::Gone { .. } => Kind::NotFound,
            WriteError::KeyReused { .. } => Kind::Conflict,
            WriteError::NotWritten { why: NotWritten::Busy(_), .. } => Kind::Busy,
            WriteError::NotWritten { why: NotWritten::NoSpace(_), .. } => Kind::NoSpace,
            WriteError::NotWritten { .. } | WriteError::Unknown { .. } => Kind::Unavailable,
        };
        Refusal { retry_after_seconds, ..Refusal::new(kind, error.to_string()) }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        let kind = match &error {
            ReadError::BadRequest(_) => Kind::BadRequest,
            ReadError::Gone { .. } => Kind::NotFound,
            ReadError::Past { .. } => Kind::Past,
            ReadError::Busy { .. } => Kind::Busy,
            ReadError::NoSpace(_) => Kind::NoSpace,
            ReadError::Unavailable(_) => Kind::Unavailable,
            ReadError::Damaged(_) | ReadError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<FilesError> for Refusal {
    fn from(error: FilesError) -> Refusal {
        match error {
            FilesError::BadRequest(why) => Refusal::bad(why),
            FilesError::TooLarge(why) => Refusal::new(Kind::TooLarge, why),
            FilesError::Write(why) => why.into(),
            FilesError::Read(why) => why.into(),
            FilesError::Changed => Refusal::new(Kind::Unavailable, error.to_string()),
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
            AskError::BadRequest(_) => Kind::BadRequest,
            AskError::Gone { .. } => Kind::Forbidden,
            AskError::Past { .. } => Kind::Past,
            AskError::TooMuch(_) => Kind::TooLarge,
            AskError::Busy(_) => Kind::Busy,
            AskError::Refused { retry_after_seconds, .. } => {
                let refusal = Refusal::new(Kind::Busy, error.to_string());
                return Refusal { retry_after_seconds: Some(*retry_after_seconds), ..refusal };
            }
            AskError::NotServed(_) => Kind::NotImplemented,
            AskError::Unavailable(_) => Kind::Unavailable,
            AskError::TooLate(_) => Kind::TooLate,
            AskError::NoSpace(_) => Kind::NoSpace,
            AskError::Damaged(_) | AskError::Internal(_) => return Refusal::internal(error),
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<RenderError> for Refusal {
    fn from(why: RenderError) -> Refusal {
        match why {
            RenderError::Query(why) => why.into(),
            // A value that does not have its column's kinds is a fault of this program; these are limits of the format.
            RenderError::Format(FormatError::Beyond { .. } | FormatError::TooLong { .. }) => {
                Refusal::bad(why.to_string())
            }
            RenderError::NoMemory(why) => Refusal::new(Kind::Busy, why),
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
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert!(kind.status().is_client_error() || kind.status().is_server_error(), "{kind:?}");
            assert!(Kind::ALL[..place].iter().all(|other| other.row() != kind.row()), "{kind:?}");
        }
    }

    #[test]
    fn what_may_be_asked_again_says_when() {
        for kind in Kind::ALL {
            let wants = [429, 503, 507].contains(&kind.status().as_u16());
            let answer = Refusal::new(kind, "").error_response();
            assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), wants, "{kind:?}");
        }
    }

    #[test]
    fn who_knows_when_says_when() {
        let refusal = Refusal { retry_after_seconds: Some(40), ..Refusal::new(Kind::Busy, "") };
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
