//! New connections to checked addresses: TCP or a proxy tunnel, then TLS, then HTTP/1.1.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::address::{AddressClass, CheckedForms};
use crate::call::{HEADERS_MAX, WholeBody};
use crate::counted_socket::{CountedSocket, WrittenBytes};
use crate::host::UrlHost;
use crate::proxy::OutboundProxy;
use crate::resolver::NameResolver;
use crate::url::UrlOrigin;

/// Upper bound of the addresses of a host that are tried.
const ADDRESSES_TRIED_MAX: usize = 4;
/// Upper bound of the head of a response, in bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 64 << 10;
/// Upper bound of the bytes that are read ahead. It is at least the largest head.
const READ_BUFFER_BYTES_MAX: usize = 128 << 10;

/// Connection with or without TLS.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Open connection. Dropping it closes it at once.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    pub(crate) requests: SendRequest<WholeBody>,
    pub(crate) written: WrittenBytes,
    pub(crate) opened: Instant,
    /// Thread that opened the connection.
    pub(crate) thread: ThreadId,
    driver: AbortHandle,
}

#[cfg(test)]
impl HttpConnection {
    pub(crate) fn of_parts(requests: SendRequest<WholeBody>, driver: AbortHandle) -> HttpConnection {
        let written = WrittenBytes::default();
        HttpConnection { requests, written, opened: Instant::now(), thread: thread::current().id(), driver }
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Target of a new connection, with the means to reach it.
#[derive(Debug)]
pub(crate) struct DialTarget<'a> {
    pub(crate) origin: &'a UrlOrigin,
    /// Addresses that passed the policy, at least one.
    pub(crate) addresses: &'a [SocketAddr],
    /// TLS configuration for https.
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) proxy: Option<&'a OutboundProxy>,
    pub(crate) resolver: &'a dyn NameResolver,
    pub(crate) until: Instant,
}

impl DialTarget<'_> {
    /// Opens a connection for HTTP.
    pub(crate) async fn dial(&self) -> Result<HttpConnection, String> {
        self.first(|address| self.dial_address(address).boxed()).await
    }

    /// Opens a connection without TLS and HTTP.
    pub(crate) async fn open(&self) -> Result<CountedSocket, String> {
        self.first(|address| self.socket(address).boxed()).await
    }

    /// Tries the addresses in order. Each attempt gets an equal part of the remaining time.
    ///
    /// The futures are boxed, because a handshake is large.
    async fn first<'a, C>(
        &self,
        attempt: impl Fn(SocketAddr) -> BoxFuture<'a, Result<C, String>>,
    ) -> Result<C, String> {
        let tried = &self.addresses[..self.addresses.len().min(ADDRESSES_TRIED_MAX)];
        let mut reasons = Vec::new();
        for (index, address) in tried.iter().enumerate() {
            let until = part_of(self.until, tried.len() - index);
            match timeout_at(until, attempt(*address)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(why)) => reasons.push(format!("{address}: {why}")),
                Err(_) => reasons.push(format!("{address}: no connection in time")),
            }
        }
        Err(reasons.join("; "))
    }

    async fn dial_address(&self, address: SocketAddr) -> Result<HttpConnection, String> {
        let socket = self.socket(address).await?;
        let written = socket.written();
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(socket),
            Some(config) => {
                let name = server_name(&self.origin.host)?;
                let secured = TlsConnector::from(Arc::clone(config)).connect(name, socket).await;
                Box::new(secured.map_err(|error| format!("TLS with {}: {error}", self.origin.host))?)
            }
        };
        let made = Builder::new()
            .max_headers(HEADERS_MAX)
            .max_header_size(RESPONSE_HEAD_BYTES_MAX)
            .max_buf_size(READ_BUFFER_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await;
        let (requests, driver) = made.map_err(|error| error.to_string())?;
        // The waiting call receives any error of the connection.
        let driver = tokio::spawn(driver.map(drop)).abort_handle();
        Ok(HttpConnection { requests, written, opened: Instant::now(), thread: thread::current().id(), driver })
    }

    async fn socket(&self, address: SocketAddr) -> Result<CountedSocket, String> {
        let is_public = CheckedForms::of(address.ip()).class() == AddressClass::Public;
        let Some(proxy) = self.proxy.filter(|_| is_public) else { return connect(address).await };
        let proxies = addresses_of(&proxy.host, self.resolver).await.map_err(|why| format!("the proxy: {why}"))?;
        let mut last = "the proxy has no address".to_owned();
        let tried = &proxies[..proxies.len().min(ADDRESSES_TRIED_MAX)];
        for (index, ip) in tried.iter().enumerate() {
            let until = part_of(self.until, tried.len() - index);
            match timeout_at(until, connect(SocketAddr::new(*ip, proxy.port))).await {
                Ok(Ok(mut socket)) => {
                    proxy.tunnel(&mut socket, address).await?;
                    return Ok(socket);
                }
                Ok(Err(why)) => last = format!("the proxy: {why}"),
                Err(_) => last = "the proxy: no connection in time".to_owned(),
            }
        }
        Err(last)
    }
}

/// Returns all addresses of a host.
pub(crate) async fn addresses_of(host: &UrlHost, resolver: &dyn NameResolver) -> Result<Vec<IpAddr>, String> {
    match host {
        UrlHost::Address(address) => Ok(vec![*address]),
        UrlHost::Name(name) => {
            resolver.resolve(name.as_str()).await.map_err(|error| format!("resolving {}: {error}", name.as_str()))
        }
    }
}

async fn connect(address: SocketAddr) -> Result<CountedSocket, String> {
    let socket = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    socket.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(CountedSocket::new(socket))
}

/// Returns the end of the next of `parts` equal parts of the remaining time.
fn part_of(until: Instant, parts: usize) -> Instant {
    let now = Instant::now();
    let parts = u32::try_from(parts).expect("at most ADDRESSES_TRIED_MAX");
    now + until.saturating_duration_since(now) / parts
}

fn server_name(host: &UrlHost) -> Result<ServerName<'static>, String> {
    match host {
        UrlHost::Address(address) => Ok(ServerName::IpAddress((*address).into())),
        UrlHost::Name(name) => {
            let name = name.as_str().to_owned();
            ServerName::try_from(name).map_err(|error| format!("the host is no name for TLS: {error}"))
        }
    }
}
