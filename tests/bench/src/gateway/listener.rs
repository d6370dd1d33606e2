//! HTTP/1.1 servers that are commands of this program: the scripted model server and the bare proxy.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;

use anyhow::Context;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves each request with `answer` until the process is killed. Says where it listens on stdout.
pub async fn serve<A, F, B>(name: &str, answer: A) -> anyhow::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.context("listening")?;
    println!("{name} is ready at http://{}", listener.local_addr()?);
    serve_at(listener, answer).await
}

/// Serves the connections of a listener.
pub async fn serve_at<A, F, B>(listener: TcpListener, answer: A) -> anyhow::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            // An error here is a client that left, which is how clients of a benchmark end.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// Returns a runtime with a thread for each processor.
pub fn server_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the server's threads")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Serves from a task of the test until its runtime ends.
    pub async fn started<A, F, B>(answer: A) -> SocketAddr
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve_at(listener, answer));
        address
    }
}
