//! Headers of every response: trace id, CORS, and caching.

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::responses::cors::CorsRequest;
use crate::responses::refusal::Refusal;
use crate::server::admin::Apart;

/// Content type of HTML pages.
pub const HTML: &str = "text/html; charset=utf-8";
pub const TRACE_ID: HeaderName = HeaderName::from_static("x-bt-internal-trace-id");

/// Headers of a response, derived from its request.
#[derive(Clone, Debug)]
pub struct ResponseHeaders {
    /// Trace id of the request. It never comes from the caller, who could mislead the log with it.
    pub trace: String,
    pub path: String,
    /// CORS headers of the request, or `None` for paths that pages of other origins may not read.
    cors: Option<CorsRequest>,
}

/// Returns whether pages of other origins may not read a path, as for metrics and the console.
fn is_apart(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    path.trim_matches('/').eq_ignore_ascii_case("metrics") || ["app", "console"].contains(&first)
}

/// Response extension for an error response that is intentionally plain text.
#[derive(Clone, Copy, Debug)]
pub struct MeantAsText;

/// Response extension for a response with its own caching headers. It must contain no data of an organization.
#[derive(Clone, Copy, Debug)]
pub struct OwnCaching;

impl ResponseHeaders {
    pub fn of(request: &ServiceRequest) -> ResponseHeaders {
        ResponseHeaders {
            trace: Uuid::new_v4().simple().to_string(),
            path: request.path().to_owned(),
            cors: (request.app_data::<Apart>().is_none() && !is_apart(request.path()))
                .then(|| CorsRequest::of(request.headers(), request.method() == Method::OPTIONS)),
        }
    }

    pub fn is_for_browsers(&self) -> bool {
        self.cors.is_some()
    }

    pub fn body_of(&self, refusal: &Refusal) -> String {
        refusal.body(&self.trace, &self.path)
    }

    pub fn put_on<B>(&self, mut answer: HttpResponse<B>) -> HttpResponse<B> {
        let is_error = answer.status().is_client_error() || answer.status().is_server_error();
        // Errors of the framework claim to be plain text, although their body becomes JSON.
        let of_ours = |known: &HeaderValue| !known.as_bytes().starts_with(b"text/plain");
        let is_meant = answer.extensions().get::<MeantAsText>().is_some();
        if is_error && !is_meant && !answer.headers().get(header::CONTENT_TYPE).is_some_and(of_ours) {
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let is_own = answer.extensions().get::<OwnCaching>().is_some();
        let caching = answer.headers().get(header::CACHE_CONTROL).filter(|_| is_own).cloned();
        self.put_on_headers(answer.headers_mut());
        if let Some(caching) = caching {
            answer.headers_mut().insert(header::CACHE_CONTROL, caching);
        }
        answer
    }

    pub fn put_on_headers(&self, headers: &mut HeaderMap) {
        if let Some(cors) = &self.cors {
            cors.answer(headers);
        }
        if let Ok(trace) = HeaderValue::from_str(&self.trace) {
            headers.insert(TRACE_ID, trace);
        }
        // Most responses contain private data. Responses to model calls have their own caching headers.
        let is_of_cache = headers.contains_key("x-bt-cached");
        if !is_of_cache || !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
}
