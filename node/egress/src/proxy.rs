//! Outbound proxy of the server's configuration, which opens tunnels with HTTP CONNECT.

use std::fmt;
use std::net::SocketAddr;

use hyper::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::counted_socket::CountedSocket;
use crate::host::UrlHost;
use crate::url::{EgressUrl, UrlScheme};

/// Upper bound of the head of the response to CONNECT, in bytes.
const PROXY_HEAD_BYTES_MAX: usize = 16 << 10;
const READ_BYTES: usize = 1 << 10;

/// Error for an invalid proxy configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("the URL of the proxy is not of the form http://host:port")]
    Url,
    #[error("the authorization of the proxy is no header value, such as `Basic dXNlcjpwYXNz`")]
    Authorization,
}

/// Proxy for calls to public addresses. Listed targets with other addresses are called directly.
#[derive(Clone)]
pub struct OutboundProxy {
    pub(crate) host: UrlHost,
    pub(crate) port: u16,
    authorization: Option<HeaderValue>,
}

impl OutboundProxy {
    /// Creates a proxy. `authorization` is the value of the header `Proxy-Authorization`.
    pub fn new(url: &str, authorization: Option<&str>) -> Result<OutboundProxy, ProxyError> {
        let url: EgressUrl = url.parse().map_err(|_| ProxyError::Url)?;
        if url.origin().scheme != UrlScheme::Http || url.path_and_query() != "/" {
            return Err(ProxyError::Url);
        }
        let authorization = authorization.map(HeaderValue::from_str).transpose();
        let authorization = authorization.map_err(|_| ProxyError::Authorization)?;
        Ok(OutboundProxy { host: url.host().clone(), port: url.port(), authorization })
    }

    /// Requests a tunnel to a checked address. The proxy resolves no name, so it cannot be misled.
    pub(crate) async fn tunnel(&self, socket: &mut CountedSocket, target: SocketAddr) -> Result<(), String> {
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            head.extend_from_slice(b"Proxy-Authorization: ");
            head.extend_from_slice(authorization.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        socket.write_all(&head).await.map_err(|error| format!("the proxy: {error}"))?;
        let response = read_head(socket).await?;
        let line = response.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let version = words.next().unwrap_or_default();
        let status = words.next().unwrap_or_default();
        if version.starts_with(b"HTTP/1.") && status.len() == 3 && status.starts_with(b"2") {
            return Ok(());
        }
        Err(format!("the proxy refused the tunnel to {target} with status {}", String::from_utf8_lossy(status)))
    }
}

/// Reads up to the blank line. Nothing may follow, because the peer of a tunnel waits for the first byte.
async fn read_head(socket: &mut CountedSocket) -> Result<Vec<u8>, String> {
    const END: &[u8] = b"\r\n\r\n";
    let (mut head, mut part) = (Vec::new(), [0; READ_BYTES]);
    while head.len() <= PROXY_HEAD_BYTES_MAX {
        let read = socket.read(&mut part).await.map_err(|error| format!("the proxy: {error}"))?;
        if read == 0 {
            return Err("the proxy closed the connection before its response".to_owned());
        }
        head.extend_from_slice(&part[..read]);
        match head.windows(END.len()).position(|window| window == END) {
            None => {}
            Some(end) if end + END.len() == head.len() => return Ok(head),
            Some(_) => return Err("the proxy sent bytes behind its response".to_owned()),
        }
    }
    Err(format!("the head of the response of the proxy is longer than {PROXY_HEAD_BYTES_MAX} bytes"))
}

impl fmt::Debug for OutboundProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutboundProxy({}:{})", self.host, self.port)
    }
}
