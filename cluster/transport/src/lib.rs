//! Transport between the nodes of a cluster: calls and streams of bytes, by the name of a service.
//!
//! The crate owns sockets, TLS, certificates, deadlines and flow control. No other crate names tonic. The transport
//! carries bytes between addresses that it is given. Contents, the location of replicas and leadership are opaque to
//! it.
//!
//! ```text
//!   call(node, Call) ──> peer ──> lane (control | bulk) ──> connection ──TLS 1.3──> server ──> serve ──> Handler
//!                          fault_injection, before and after                                 checks, deadline, panics
//! ```
//! A lane is one connection, so that a heartbeat never waits behind a snapshot. It is made on first use, greeted once,
//! pinged while idle, and made again after a break. Messages use the framing of gRPC. Each message contains one frame
//! of this crate (`frame`), and the headers of every request name receiver and sender (`call_headers`).
//!
//! # Guarantees
//!
//! - T1: a handler gets a call only if cluster, receiver and sender are authenticated. The receiver proves its name to
//!   the caller by its certificate, the sender to the receiver, and both prove the cluster. Calls to a wrong address
//!   fail. Only open calls come without a sender. A relayed call names its origin, and its relay is authenticated.
//! - T2: `NotReached` means that no handler got the call. An uncertain outcome is `Lost`, or a refusal with such a
//!   code.
//! - T3: every wait ends at the caller's time limit. The limit is sent along, so that the receiver stops as well.
//! - T4: a peer counts as gone after two seconds of silence. Silence starts when all written bytes must have reached
//!   the peer. A connection that moves data stays, however slowly.
//! - T5: a slow reader blocks only its own sender. Large bodies wait at their sender, and a node without space for one
//!   refuses it.
//! - T6: a stream is complete only if the sender marked its end.
//!
//! The transport does not retry, because the caller decides on retries by the meaning of the call. Two kinds of calls
//! are exceptions: those that were certainly not received, and those marked as repeatable. Both go through another node
//! if the direct path is down (`reachability`, `relay`).

mod call;
mod call_headers;
mod certificate_authority;
mod certificate_names;
mod connection;
mod error;
mod fault_injection;
mod frame;
mod handlers;
mod identity;
mod in_flight;
mod join;
mod lane;
mod peer;
mod peer_counters;
mod reachability;
mod refusal;
mod relay;
mod serve_request;
mod server;
mod socket;
mod transport;

pub use call::{Address, ByteStream, Call, CallError, Lane, Processes};
pub use certificate_authority::{Authority, CertificateRequest, new_request};
pub use error::TransportError;
pub use fault_injection::{CallFaults, FaultInjector};
pub use frame::MESSAGE_BYTES_MAX;
pub use handlers::{Handler, Handlers, Received, StreamHandler};
pub use identity::{Identity, split_certificates};
pub use join::join_call;
pub use peer_counters::PeerCounts;
pub use reachability::Patience;
pub use refusal::{Refusal, RefusalCode};
pub use relay::{RELAY_CALL, RELAY_DELIVER};
pub use transport::{SHUTDOWN_WITHIN, Transport, TransportConfig};
