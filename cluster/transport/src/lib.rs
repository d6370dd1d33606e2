//! How the nodes of a cluster speak to each other: calls and streams of bytes, by the name of a service.
//!
//! Owns sockets, TLS, certificates, deadlines and flow control; the only crate that names tonic. Must never know what
//! the bytes mean, which replica is where, or who leads: it is told addresses and carries what it is given.
//!
//! ```text
//!   call(node, Call) ──> peer ──> lane (control | bulk) ──> connection ──TLS 1.3──> server ──> serve ──> Handler
//!                          fault_injection, before and after                                 checks, deadline, panics
//! ```
//! A lane is one connection, so that a heartbeat never stands behind a snapshot. It is made when it is first needed,
//! greeted once, pinged while it is idle, and made anew when it broke. Messages have the framing of gRPC; inside, each
//! is a frame of ours (`frame`), and every request says in headers for whom it is and from whom (`call_headers`).
//!
//! # What holds
//!
//! - T1: a handler hears a call only if cluster, receiver and sender are proven: the receiver's name by its certificate
//!   to the caller, the sender's by its certificate to the receiver, and the cluster by both. Addresses that were mixed
//!   up reach nobody. Open calls alone come without a sender. A relayed call names its origin; the relay is proven.
//! - T2: `NotReached` means that no handler heard it. What is not certain is `Lost`, or a refusal that says so.
//! - T3: every wait has an end: the caller's time, which travels along, so that the receiver lets go as well.
//! - T4: a peer is gone after two seconds of silence, counted from when all that was written must have reached it; a
//!   connection that moves data stays, however slowly.
//! - T5: a reader that does not read holds its sender back, and nobody else. Large bodies wait for their turn at their
//!   sender; a node that has no room for one refuses it.
//! - T6: a stream is whole only if the sender said so.
//!
//! Nothing is retried: who knows what a call means decides that. Two exceptions: what was surely never heard, and calls
//! that say that they may be heard twice. Both go through another node where the direct path is down (`reachability`, `relay`).

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
