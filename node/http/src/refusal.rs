//! Why a request is not answered 200: one table from the kind of refusal to status and name, and the body that says so.
//!
//! Clients show the body as it is, so `Message` is a sentence for people. What is said of a fault of our own is less
//! than what is logged.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use crate::dress::Dress;

/// Every kind of refusal that leaves this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    BadRequest,
    Unauthorized,
    /// What may be seen and not be done; and by queries, whose clients know no other answer, what is not there.
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

    /// The table. What may not be seen and what is unknown are answered alike: 404, and 403 by queries.
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

    /// What it means, for the document of the API.
    pub fn said(self) -> &'static str {
        match self {
            Kind::BadRequest => "What was sent is not what is taken; the message says where and what would be right",
            Kind::Unauthorized => "No credential, or one that is not known",
            Kind::Forbidden => "The credential is not granted this",
            Kind::NotFound => "It does not exist, or the credential may not see it",
            Kind::MethodNotAllowed => "The path takes other methods, which `Allow` names",
            Kind::TooSlow => "The body came too slowly",
            Kind::Conflict => "The name is taken, or the idempotency key was used for something else",
            Kind::Past => "That version is older than what is kept",
            Kind::TooLarge => "The body, or a part of it, is larger than what is taken",
            Kind::UnsupportedEncoding => "The body's encoding is not known",
            Kind::HeadTooLarge => "The head of the request is larger than what is taken",
            Kind::Busy => {
                "A limit, or a budget of the node that stayed full for as long as the request may wait: send it again after `Retry-After` seconds"
            }
            Kind::Internal => "The server failed; its log has more under the trace id",
            Kind::NotImplemented => "It is part of the API and is not served yet",
            Kind::Unavailable => "Not now: ask again in a moment; a write may have been done or not",
            Kind::TooLate => "It took longer than it may",
            Kind::NoSpace => "The disk is full",
        }
    }

    /// Seconds after which asking again makes sense; none where it does not.
    pub fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Kind::Busy | Kind::Unavailable => Some(1),
            Kind::NoSpace => Some(30),
            _ => None,
        }
    }

    /// Whether the connection is of no further use: what is left of the request on it is not wanted.
    fn closes(self) -> bool {
        matches!(self, Kind::TooSlow | Kind::TooLarge | Kind::HeadTooLarge)
    }
}

/// A refusal on its way out of a handler. What dresses it (request id, path, CORS) is put on at the edge.
#[derive(Debug)]
pub struct Refusal {
    pub kind: Kind,
    pub message: String,
    /// For 405: what the path does take.
    pub allow: Option<String>,
    /// Where more is known than the table says.
    pub retry_after_seconds: Option<u64>,
    /// Set where the edge itself refuses, since nothing outside of it could.
    pub dress: Option<Box<Dress>>,
}

impl Refusal {
    pub fn new(kind: Kind, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: message.into(), allow: None, retry_after_seconds: None, dress: None }
    }

    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(Kind::BadRequest, message)
    }

    /// The same words for what is not there and for what may not be seen.
    pub fn not_found(what: impl fmt::Display) -> Refusal {
        Refusal::new(Kind::NotFound, format!("{what} does not exist, or this credential may not see it"))
    }

    /// Says what it was where it happened, and little to the caller.
    pub fn internal(why: impl fmt::Display) -> Refusal {
        tracing::error!(%why, "a request failed inside");
        Refusal::new(Kind::Internal, "the server failed on this request; its log has more under this trace id")
    }

    /// The answer without its dress.
    pub(crate) fn bare(&self) -> HttpResponse {
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
        match &self.dress {
            Some(dress) => dress.put_on(bare.set_body(dress.body_of(self))).map_into_boxed_body(),
            None => bare,
        }
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
