//! Media by URL: a GET that follows a few redirects, each checked like a separate call.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, StatusCode};
use tokio::time::Instant;

use crate::call::{EgressOptions, EgressRequest};
use crate::client::EgressClient;
use crate::error::{EgressError, EgressFailure};
use crate::purpose::EgressPurpose;
use crate::url::EgressUrl;

pub const MEDIA_REDIRECTS_MAX: usize = 3;
/// Time limit for all redirects and the body together.
pub const MEDIA_TIME_MAX: Duration = Duration::from_secs(30);

/// Headers that are also sent to another origin. All others may be credentials.
const HARMLESS: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// Last response of a fetch, with its complete body.
#[derive(Clone)]
pub struct MediaResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// URL of the response after all redirects.
    pub url: EgressUrl,
}

impl std::fmt::Debug for MediaResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MediaResponse {{ status: {}, body_bytes: {}, {:?} }}", self.status, self.body.len(), self.url)
    }
}

impl EgressClient {
    /// Fetches media. The purpose of the call is always media, independent of the options.
    pub async fn fetch_media(
        &self,
        url: EgressUrl,
        headers: HeaderMap,
        options: &EgressOptions,
    ) -> Result<MediaResponse, EgressError> {
        let until = Instant::now() + MEDIA_TIME_MAX.min(options.times.total);
        let mut options = EgressOptions { purpose: EgressPurpose::Media, ..options.clone() };
        let mut request = EgressRequest { method: Method::GET, url, headers, body: Bytes::new() };
        for redirects in 0..=MEDIA_REDIRECTS_MAX {
            options.times.total = until.saturating_duration_since(Instant::now());
            let sent = self.send(&request, &options).await;
            let response = sent.map_err(|error| if redirects == 0 { error } else { error.behind_response() })?;
            let location = response.headers.get(header::LOCATION).filter(|_| is_redirect(response.status));
            let Some(location) = location else {
                let body = response.body.collect().await?;
                let EgressRequest { url, .. } = request;
                return Ok(MediaResponse { status: response.status, headers: response.headers, body, url });
            };
            let failed = |why: String| {
                let why = format!("{}: a redirect leads nowhere: {why}", request.url.origin());
                EgressError::cut(EgressFailure::Redirects, why)
            };
            let location = location.to_str().map_err(|error| failed(error.to_string()))?;
            let next = request.url.join(location).map_err(|error| failed(error.to_string()))?;
            if next.origin() != request.url.origin() {
                request.headers = harmless(&request.headers);
                // The certificates of the call are only for the first origin.
                options.tls = None;
            }
            request.url = next;
        }
        let why = format!("{}: more than {MEDIA_REDIRECTS_MAX} redirects", request.url.origin());
        Err(EgressError::cut(EgressFailure::Redirects, why))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| HARMLESS.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
