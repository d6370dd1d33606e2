//! The bare proxy: the least that any HTTP proxy in front of a model server does. It reads the head of a request, sends
//! it on a kept connection, and passes both bodies on as they come.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Task, Poll};

use anyhow::Context;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::listener::{serve, server_runtime};

/// Connections that are kept for later requests.
const IDLE_MAX: usize = 4096;

/// Serves until it is killed.
pub fn run(upstream: SocketAddr) -> anyhow::Result<()> {
    let host = HeaderValue::try_from(upstream.to_string()).context("an address as a header")?;
    let proxy = Arc::new(BareProxy { upstream, host, idle: Mutex::default() });
    server_runtime()?.block_on(serve("The bare proxy", move |request| {
        let proxy = Arc::clone(&proxy);
        async move { proxy.answered(request).await }
    }))
}

#[derive(Debug)]
struct BareProxy {
    upstream: SocketAddr,
    host: HeaderValue,
    idle: Mutex<Vec<SendRequest<Incoming>>>,
}

impl BareProxy {
    async fn answered(self: Arc<Self>, request: Request<Incoming>) -> Response<ForwardedBody> {
        match Arc::clone(&self).forwarded(request).await {
            Ok(response) => response,
            Err(why) => {
                eprintln!("a request was not forwarded: {why:#}");
                let mut response = Response::new(ForwardedBody { body: None, connection: None, proxy: self });
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            }
        }
    }

    async fn forwarded(self: Arc<Self>, mut request: Request<Incoming>) -> anyhow::Result<Response<ForwardedBody>> {
        let headers = request.headers_mut();
        headers.remove(header::CONNECTION);
        headers.insert(header::HOST, self.host.clone());
        let mut connection = self.connection().await?;
        let mut response = connection.send_request(request).await.context("the model server did not answer")?;
        response.headers_mut().remove(header::CONNECTION);
        Ok(response.map(|body| ForwardedBody { body: Some(body), connection: Some(connection), proxy: self }))
    }

    async fn connection(&self) -> anyhow::Result<SendRequest<Incoming>> {
        loop {
            // Ends: each turn takes a connection away.
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut kept) = kept else { break };
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
        let stream = TcpStream::connect(self.upstream).await.context("connecting to the model server")?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection; what it says then is said by the request that failed.
        tokio::spawn(async move { drop(driver.await) });
        Ok(connection)
    }

    fn keep(&self, connection: SendRequest<Incoming>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}

/// Body of the model server. Its connection is kept once it has ended.
#[derive(Debug)]
struct ForwardedBody {
    /// None if there is no answer, and behind the end.
    body: Option<Incoming>,
    connection: Option<SendRequest<Incoming>>,
    proxy: Arc<BareProxy>,
}

impl ForwardedBody {
    fn end(&mut self) {
        self.body = None;
        if let Some(connection) = self.connection.take() {
            self.proxy.keep(connection);
        }
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(&mut *body).poll_frame(task);
        let is_over = body.is_end_stream();
        if is_over || matches!(frame, Poll::Ready(None)) {
            self.end();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
