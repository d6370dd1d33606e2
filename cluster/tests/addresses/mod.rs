//! Addresses for nodes that start later than their address is chosen.

use std::sync::atomic::{AtomicU16, Ordering};

const FIRST_PORT: u16 = 20_000;

/// Returns an address that no other test of this crate uses.
///
/// Each process has its own loopback host. On a shared host, an outgoing connection or another test may take the port
/// before the node listens.
pub fn unused() -> String {
    static PORT: AtomicU16 = AtomicU16::new(FIRST_PORT);
    // Process ids have 22 bits at most.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}:{}", 64 + high, PORT.fetch_add(1, Ordering::Relaxed))
}
