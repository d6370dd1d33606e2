//! Transport between the nodes of a cluster: calls and streams of bytes, by the name of a service.
//!
//! Owns sockets, TLS, certificates, deadlines and flow control; the only crate that names tonic. Contents, the location
//! of replicas and leadership are opaque to it: it is given addresses and carries bytes.
//!
//! ```text
//!   call(node, Call) ──> peer ──> lane (control | bulk) ──> connection ──TLS 1.3──> server ──> serve ──> Handler
//!                          fault_injection, before and after                                 checks, deadline, panics
//! ```
//! A lane is one connection, so that a heartbeat never waits behind a snapshot. It is made on first use, greeted once,
//! pinged while it is idle, and made anew when it broke. Messages have the framing of gRPC; inside, each is a frame of
//! ours (`frame`), and every request names receiver and sender in headers (`call_headers`).
//!
//! # What holds
//!
//! - T1: a handler gets a call only if cluster, receiver and sender are authenticated: the receiver's name by its
//!   certificate to the caller, the sender's by its certificate to the receiver, and the cluster by both. Calls to
//!   mixed-up addresses fail. Only open calls come without a sender. A relayed call names its origin; the relay is
//!   authenticated.
//! - T2: `NotReached` means that no handler got it. An uncertain outcome is `Lost`, or a refusal with such a code.
//! - T3: every wait has an end: the caller's time limit, which is sent along, so that the receiver stops as well.
//! - T4: a peer is gone after two seconds of silence, counted from when all that was written must have reached it; a
//!   connection that moves data stays, however slowly.
//! - T5: a slow reader blocks its own sender only. Large bodies wait for their turn at their sender; a node without
//!   space for one refuses it.
//! - T6: a stream is whole only if the sender marked its end.
//!
//! There are no retries: the caller decides on them by the meaning of the call. Two exceptions: calls that surely were
//! not received, and calls marked as repeatable. Both go through another node if the direct path is down
//! (`reachability`, `relay`).

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
