//! When this node last heard from the catalog's majority: on that hangs whether it may say who may do what.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Without a word from the catalog for this long, a node answers 503 where access is decided.
pub const CATALOG_SILENCE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct CatalogHeard {
    /// When a fence of the catalog last passed.
    last: watch::Sender<Option<Instant>>,
    opened: Instant,
}

impl Default for CatalogHeard {
    fn default() -> CatalogHeard {
        CatalogHeard { last: watch::Sender::new(None), opened: Instant::now() }
    }
}

impl CatalogHeard {
    pub fn now(&self) {
        self.last.send_replace(Some(Instant::now()));
    }

    pub fn is_fresh(&self) -> bool {
        self.last.borrow().is_some_and(|heard| heard.elapsed() < CATALOG_SILENCE_MAX)
    }

    /// Returns when something was heard, or when that can no longer be put down to the start: a node that has started is
    /// given as long to hear first as it would be trusted after it had heard.
    pub async fn first(&self) {
        let mut heard = self.last.subscribe();
        let first = heard.wait_for(Option::is_some);
        let until = tokio::time::Instant::from_std(self.opened + CATALOG_SILENCE_MAX);
        let _ = tokio::time::timeout_at(until, first).await;
    }
}
