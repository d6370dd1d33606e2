//! What every answer wears, whoever made it: the request's id, and what browsers want to know.

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::admin::Apart;
use crate::cors::Asked;
use crate::refusal::Refusal;

/// A page, also where it says that something was refused.
pub const HTML: &str = "text/html; charset=utf-8";
pub const TRACE_ID: HeaderName = HeaderName::from_static("x-bt-internal-trace-id");

/// Taken from a request before it is served.
#[derive(Clone, Debug)]
pub struct Dress {
    /// Ours, never the caller's: logs must not be led astray.
    pub trace: String,
    pub path: String,
    /// None where nothing is for browsers.
    asked: Option<Asked>,
}

/// Whether nothing at this path is for browsers, so that no page of another origin is allowed to ask for it.
fn is_apart(path: &str) -> bool {
    path.trim_matches('/').eq_ignore_ascii_case("metrics")
}

impl Dress {
    pub fn of(request: &ServiceRequest) -> Dress {
        Dress {
            trace: Uuid::new_v4().simple().to_string(),
            path: request.path().to_owned(),
            asked: (request.app_data::<Apart>().is_none() && !is_apart(request.path()))
                .then(|| Asked::of(request.headers(), request.method() == Method::OPTIONS)),
        }
    }

    pub fn is_for_browsers(&self) -> bool {
        self.asked.is_some()
    }

    pub fn body_of(&self, refusal: &Refusal) -> String {
        refusal.body(&self.trace, &self.path)
    }

    pub fn put_on<B>(&self, mut answer: HttpResponse<B>) -> HttpResponse<B> {
        let is_error = answer.status().is_client_error() || answer.status().is_server_error();
        // The framework's own refusals say that they are text; pages and what is not JSON say what they are.
        let of_ours = |known: &HeaderValue| !known.as_bytes().starts_with(b"text/plain");
        if is_error && !answer.headers().get(header::CONTENT_TYPE).is_some_and(of_ours) {
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        self.put_on_headers(answer.headers_mut());
        answer
    }

    pub fn put_on_headers(&self, headers: &mut HeaderMap) {
        if let Some(asked) = &self.asked {
            asked.answer(headers);
        }
        if let Ok(trace) = HeaderValue::from_str(&self.trace) {
            headers.insert(TRACE_ID, trace);
        }
        // Answers hold what a team's applications said.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
}
