//! Contact with the catalog's majority: a node without it must not decide what principals may do.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Without a word from the catalog for this long, a node answers 503 where access is decided.
pub const CATALOG_SILENCE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct CatalogHeard {
    /// When the last fence of the catalog that passed was asked for: what was acknowledged since may not be here.
    last: watch::Sender<Option<Instant>>,
    opened: Instant,
}

impl Default for CatalogHeard {
    fn default() -> CatalogHeard {
        CatalogHeard { last: watch::Sender::new(None), opened: Instant::now() }
    }
}

impl CatalogHeard {
    /// A fence passed that was asked for then. It may have waited long, or this node been stopped before it took the answer:
    /// what counts is what is known for sure, which is nothing of the time since.
    pub fn as_of(&self, asked: Instant) {
        self.last.send_modify(|last| *last = (*last).max(Some(asked)));
    }

    /// Forgets the contact: the catalog here is no longer to be relied on.
    pub fn forget(&self) {
        self.last.send_replace(None);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_says_nothing_of_the_time_behind_its_question() {
        let heard = CatalogHeard::default();
        assert!(!heard.is_fresh(), "nothing was heard yet");
        let before = |time: Duration| Instant::now().checked_sub(time).expect("the machine has run for a while");
        heard.as_of(before(CATALOG_SILENCE_MAX));
        assert!(!heard.is_fresh(), "it was answered now and asked long ago");
        heard.as_of(before(CATALOG_SILENCE_MAX / 2));
        assert!(heard.is_fresh());
        heard.as_of(before(CATALOG_SILENCE_MAX * 2));
        assert!(heard.is_fresh(), "an answer that comes late takes back nothing");
    }
}
