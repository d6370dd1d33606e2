//! Client for all outbound HTTP calls, to models, webhooks, MCP servers and media.
//!
//! It is protected against forged requests to targets that only the server can reach.
//!
//! ```text
//! URL -> normal form -> resolver -> policy on all addresses -> pool or new connection
//!     -> TLS -> HTTP/1.1 -> body in chunks
//! ```
//! The policy does no input or output. The client connects only to addresses that passed the policy, and resolves a
//! name only once per call.

mod address;
mod call;
mod client;
mod counted_socket;
mod dial;
mod error;
mod host;
mod ipv4_spelling;
mod media;
mod network;
mod policy;
mod pool;
mod proxy;
mod purpose;
mod resolver;
mod response;
mod settings;
mod tls;
mod url;

pub use address::{AddressClass, CheckedForms, class_of};
pub use call::{
    BETWEEN_CHUNKS, CALL_MAX, CONNECT_MAX, EgressOptions, EgressRequest, EgressTimes, FIRST_BYTE_STREAM,
    FIRST_BYTE_WHOLE, REQUEST_HEAD_BYTES_MAX, RESPONSE_BYTES_MAX, RequestDeparture, TIME_LIMIT_MAX,
};
pub use client::{EgressClient, EgressConfig};
pub use error::{EgressError, EgressFailure, EgressProgress, UNREACHABLE, UrlError};
pub use host::{HostName, UrlHost};
pub use hyper::header::{HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode};
pub use media::{MEDIA_REDIRECTS_MAX, MEDIA_TIME_MAX, MediaResponse};
pub use network::{IpNetwork, NetworkError, PortRange};
pub use policy::{ADDRESSES_MAX, EgressPolicy, EgressRefusal};
pub use pool::{PoolCounts, PoolLimits};
pub use proxy::{OutboundProxy, ProxyError};
pub use purpose::EgressPurpose;
pub use resolver::{NameResolver, SystemResolver};
pub use response::{EgressBody, EgressResponse};
pub use settings::{ALLOW_ENTRIES_MAX, AllowEntry, EgressSettings, OwnEndpoints, PORT_RANGES_MAX, SettingsError};
pub use tls::{ClientIdentity, TlsError, TlsOptions, TrustedRoots};
pub use url::{EgressUrl, URL_BYTES_MAX, UrlOrigin, UrlScheme};
