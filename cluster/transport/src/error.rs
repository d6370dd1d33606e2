//! Errors of a transport that could not start, or could not accept a setting.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum TransportError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// A certificate, a key or a request that cannot be used; a key's bytes are never in here.
    #[error("{what}: {why}")]
    Certificate { what: &'static str, why: String },
}
