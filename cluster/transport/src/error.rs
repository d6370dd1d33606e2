//! Errors of the start of a transport and of its settings.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum TransportError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// Invalid certificate, key or request. The message never contains the bytes of a key.
    #[error("{what}: {why}")]
    Certificate { what: &'static str, why: String },
}
