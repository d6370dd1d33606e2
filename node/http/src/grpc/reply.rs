//! Replies to calls: a message followed by a status, or only a status.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use super::status::{GrpcStatus, well};

pub const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const ACCEPTED: &str = "grpc-accept-encoding";
const PREFIX_BYTES: usize = 5;

/// Reply of a service to a call.
#[derive(Debug)]
pub struct GrpcReply {
    pub metadata: HeaderMap,
    pub said: Result<Bytes, GrpcStatus>,
}

/// Body of a reply: a framed message, then the trailers.
#[derive(Debug)]
pub struct GrpcBody {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl GrpcReply {
    pub fn response(self) -> Response<GrpcBody> {
        let mut headers = self.metadata;
        headers.insert(CONTENT_TYPE, GRPC);
        headers.insert(ACCEPTED, HeaderValue::from_static("identity,gzip"));
        let framed = self.said.and_then(|message| framed(&message));
        let body = match framed {
            Ok(framed) => GrpcBody { data: Some(framed), trailers: Some(well()) },
            Err(status) => {
                status.put_on(&mut headers);
                GrpcBody::NONE
            }
        };
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }
}

/// Returns the response to a client that does not speak gRPC.
pub fn no_grpc() -> Response<GrpcBody> {
    let mut response = Response::new(GrpcBody::NONE);
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response
}

fn framed(message: &[u8]) -> Result<Bytes, GrpcStatus> {
    let bytes = u32::try_from(message.len());
    let bytes = bytes.map_err(|_| {
        GrpcStatus::new(super::status::GrpcCode(13), "the response is larger than the maximum of a message")
    })?;
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(bytes);
    framed.put_slice(message);
    Ok(framed.freeze())
}

impl GrpcBody {
    const NONE: GrpcBody = GrpcBody { data: None, trailers: None };
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }
}
