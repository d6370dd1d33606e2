//! Connection of object stores to the client for outbound calls.
//!
//! The client of a store may call the endpoint of the store and nothing else. The operator names it in the settings of
//! the process, so it may be private and without TLS.

use std::fmt;

use assay_node_egress::{
    EgressBody, EgressClient, EgressError, EgressOptions, EgressProgress, EgressPurpose, EgressRequest, EgressTimes,
    EgressUrl, UrlError,
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

/// Chunks of a response that may wait for their reader.
const WAITING_CHUNKS_MAX: usize = 4;

/// Creates connections of a store with one client.
#[derive(Clone, Debug)]
pub(crate) struct EgressConnector {
    pub client: EgressClient,
    pub times: EgressTimes,
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
        let url: EgressUrl = head
            .uri
            .to_string()
            .parse()
            .map_err(|why: UrlError| HttpError::new(HttpErrorKind::Unknown, CallFailure(why.to_string())))?;
        let mut headers = head.headers;
        // The client of outbound calls sets these itself.
        headers.remove("host");
        headers.remove("content-length");
        let request = EgressRequest { method: head.method, url, headers, body };
        let mut options = EgressOptions::new(EgressPurpose::Backups, Uuid::nil());
        options.times = self.times;
        options.response_bytes_max = (2 * CHUNK_BYTES_MAX) as u64;
        let response = self.client.send(&request, &options).await.map_err(failed)?;
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
    HttpResponseBody::new(StreamBody::new(chunks.map(|chunk| chunk.map(http_body::Frame::data))))
}

fn failed(why: EgressError) -> HttpError {
    let kind = match why.progress() {
        EgressProgress::NothingSent => HttpErrorKind::Connect,
        _ => HttpErrorKind::Timeout,
    };
    HttpError::new(kind, CallFailure(why.operator_reason().to_owned()))
}

/// Reason why a call failed, for the operator.
#[derive(Debug)]
struct CallFailure(String);

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CallFailure {}
