//! Connection of object stores to the client for outbound calls.
//!
//! The client of a store may call the endpoint of the store and nothing else. The operator names it in the settings of
//! the process, so it may be private and without TLS.

use assay_node_egress::{
    EgressBody, EgressClient, EgressError, EgressFailure, EgressOptions, EgressPurpose, EgressRequest, EgressResponse,
    EgressUrl, StatusCode, UrlError,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::CHUNK_BYTES_MAX;
use crate::attempts::{PassingFailure, request_times};

/// Chunks of a response that may wait for their reader.
const WAITING_CHUNKS_MAX: usize = 4;
/// Bytes of the body of an error that are shown.
const SHOWN_BYTES_MAX: usize = 300;

/// Creates connections of a store with one client.
#[derive(Clone, Debug)]
pub(crate) struct EgressConnector {
    pub client: EgressClient,
}

impl HttpConnector for EgressConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for EgressConnector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let url: EgressUrl =
            head.uri.to_string().parse().map_err(|why: UrlError| HttpError::new(HttpErrorKind::Unknown, why))?;
        let mut headers = head.headers;
        // The client of outbound calls sets these itself.
        headers.remove("host");
        headers.remove("content-length");
        let mut options = EgressOptions::new(EgressPurpose::Backups, Uuid::nil());
        options.times = request_times(body.len() as u64);
        let request = EgressRequest { method: head.method, url, headers, body };
        options.response_bytes_max = (2 * CHUNK_BYTES_MAX) as u64;
        let response = self.client.send(&request, &options).await.map_err(failed)?;
        if asks_for_repetition(response.status) {
            return Err(unavailable(response).await);
        }
        let mut answer = http::Response::new(body_of(response.body));
        *answer.status_mut() = response.status;
        *answer.headers_mut() = response.headers;
        Ok(answer)
    }
}

/// Returns the body of a response as the object store reads it.
fn body_of(mut body: EgressBody) -> HttpResponseBody {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, HttpError>>(WAITING_CHUNKS_MAX);
    tokio::spawn(async move {
        loop {
            let next = match body.next().await {
                Ok(Some(chunk)) => Ok(chunk),
                Ok(None) => return,
                Err(why) => Err(failed(why)),
            };
            let is_over = next.is_err();
            if sender.send(next).await.is_err() || is_over {
                return;
            }
        }
    });
    let chunks = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    // A body may be asked again after its end.
    let chunks = chunks.fuse();
    HttpResponseBody::new(StreamBody::new(chunks.map(|chunk| chunk.map(http_body::Frame::data))))
}

/// Returns whether the server could not answer now.
fn asks_for_repetition(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

async fn unavailable(response: EgressResponse) -> HttpError {
    let status = response.status;
    let body = response.body.collect().await.unwrap_or_default();
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]);
    passing(format!("status {status}: {}", shown.trim()))
}

fn failed(why: EgressError) -> HttpError {
    let text = why.operator_reason().to_owned();
    match why.failure() {
        EgressFailure::Refused | EgressFailure::BodyLarge | EgressFailure::Redirects => {
            HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(text))
        }
        _ => passing(text),
    }
}

fn passing(why: String) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, PassingFailure(why))
}
