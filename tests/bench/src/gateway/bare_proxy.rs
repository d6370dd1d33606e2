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
    let proxy = BareProxy::before(upstream)?;
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
    fn before(upstream: SocketAddr) -> anyhow::Result<Arc<BareProxy>> {
        let host = HeaderValue::try_from(upstream.to_string()).context("an address as a header")?;
        Ok(Arc::new(BareProxy { upstream, host, idle: Mutex::default() }))
    }

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

#[cfg(test)]
mod tests {
    use super::super::listener::tests::started;
    use super::super::model_server::{COUNT_PATH, tests::scripted};
    use super::super::scripts::{ScriptForm, TimeReader, WHOLE};
    use super::*;
    use crate::http::client::{Connection, Target};

    #[tokio::test]
    async fn conversations_pass_unchanged_on_one_connection_to_the_model_server() {
        let upstream = scripted().await;
        let proxy = BareProxy::before(upstream).expect("an address");
        let answering = Arc::clone(&proxy);
        let answer = move |request| Arc::clone(&answering).answered(request);
        let target = |address| Target { address, key: Some("sk-1".to_owned()) };
        let mut connection = Connection::new(&target(started(answer).await));
        for form in [ScriptForm::Chat, ScriptForm::Messages, ScriptForm::Chat] {
            let answer = connection.post(form.path(), &form.request(WHOLE, false)).await.expect("an answer");
            assert_eq!((answer.status, answer.body), (200, form.answer().to_vec()));
        }
        let (form, mut stream, mut times) = (ScriptForm::Chat, Vec::new(), 0);
        let paced = form.request("scripted-paced-1-5", true);
        connection.post_into(form.path(), &paced, &mut stream).await.expect("a stream");
        TimeReader::default().push(&stream, |_| times += 1);
        assert_eq!(times, 5);
        assert!(stream.starts_with(&form.begin()) && stream.ends_with(&form.end()));
        assert_eq!(proxy.idle.lock().expect("a pool").len(), 1);
        let count = Connection::new(&target(upstream)).get(COUNT_PATH).await.expect("a count");
        assert_eq!(count.body, b"4");
        let refused = connection.post(form.path(), &form.request(WHOLE, true)).await.expect("an answer");
        assert_eq!(refused.status, 400);
    }
}
