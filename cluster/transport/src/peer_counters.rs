//! Counters of a peer, over both lanes and all connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Calls to one peer and its network traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Calls and streams that were begun.
    pub calls: u64,
    /// Calls and streams that ended in an error, including streams that broke off later.
    pub failures: u64,
    /// Bytes on the wire, including TLS and HTTP/2.
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub connections_made: u64,
    /// Whether a connection is open now, in either lane.
    pub connected: bool,
    /// Calls and streams that reached the peer through another node.
    pub relayed: u64,
    /// Time of the last received bytes, over a connection of this node or through another node.
    pub last_heard: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Traffic {
    calls: AtomicU64,
    failures: AtomicU64,
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
    connections_made: AtomicU64,
    relayed: AtomicU64,
    last_heard: Mutex<Option<Instant>>,
}

impl Traffic {
    pub(crate) fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections_made.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn relayed(&self) {
        self.relayed.fetch_add(1, Ordering::Relaxed);
        *self.last_heard.lock() = Some(Instant::now());
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self, bytes: usize, at: Instant) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
        *self.last_heard.lock() = Some(at);
    }

    pub(crate) fn read(&self, connected: bool) -> PeerCounts {
        PeerCounts {
            calls: self.calls.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            connections_made: self.connections_made.load(Ordering::Relaxed),
            connected,
            relayed: self.relayed.load(Ordering::Relaxed),
            last_heard: *self.last_heard.lock(),
        }
    }
}
