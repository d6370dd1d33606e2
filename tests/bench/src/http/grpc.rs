//! A gRPC call with one message each way: an HTTP/2 frame with a prefix of five bytes, followed by a status.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use anyhow::{Context, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::Request;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// A message that is sent whole.
#[derive(Debug)]
pub struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Debug)]
pub struct Channel {
    address: SocketAddr,
    sender: SendRequest<Whole>,
}

impl Channel {
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Channel> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        // It ends with the sender; what it says then is said by the call that failed.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Channel { address, sender })
    }

    /// Sends an encoded message; an error unless it is answered with status 0.
    pub async fn call(&mut self, path: &str, metadata: &[(&str, &str)], message: &[u8]) -> anyhow::Result<()> {
        let mut body = BytesMut::with_capacity(message.len() + 5);
        body.put_u8(0);
        body.put_u32(u32::try_from(message.len())?);
        body.put_slice(message);
        let mut request = Request::post(format!("http://{}{path}", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in metadata {
            request = request.header(*name, *value);
        }
        let request = request.body(Whole(Some(body.freeze())))?;
        self.sender.ready().await?;
        let (head, mut body) = self.sender.send_request(request).await?.into_parts();
        ensure!(head.status == 200, "{path} was answered {}", head.status);
        let mut status = head.headers.get("grpc-status").cloned();
        while let Some(frame) = next(&mut body).await? {
            if let Ok(trailers) = frame.into_trailers() {
                status = trailers.get("grpc-status").cloned().or(status);
                ensure!(status.as_ref().is_some_and(|status| status == "0"), "{path}: {trailers:?}");
            }
        }
        match status {
            Some(status) if status == "0" => Ok(()),
            other => bail!("{path} ended with status {other:?}"),
        }
    }
}

async fn next(body: &mut Incoming) -> anyhow::Result<Option<Frame<Bytes>>> {
    Ok(poll_fn(|task| Pin::new(&mut *body).poll_frame(task)).await.transpose()?)
}

/// A field of bytes, as Protocol Buffers write it; numbers of fields here are below 16.
pub fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    const LENGTH_DELIMITED: u8 = 2;
    out.push(field << 3 | LENGTH_DELIMITED);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_seven_bits_at_a_time() {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, b"key");
        assert_eq!(out, b"\x0a\x03key");
        out.clear();
        put_bytes(&mut out, 2, &[7; 300]);
        assert_eq!((&out[..3], out.len()), (&[0x12, 0xac, 0x02][..], 303));
    }
}
