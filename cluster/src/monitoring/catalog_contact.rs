//! Contact with the catalog's majority. A node without it must not decide on permissions.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Time without contact to the catalog after which a node answers 503 to requests that need authorization.
pub const CATALOG_SILENCE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct CatalogHeard {
    /// Start of the latest successful fence of the catalog. Changes acknowledged later may be missing here.
    last: watch::Sender<Option<Instant>>,
    opened: Instant,
}

impl Default for CatalogHeard {
    fn default() -> CatalogHeard {
        CatalogHeard { last: watch::Sender::new(None), opened: Instant::now() }
    }
}

impl CatalogHeard {
    /// Records a successful fence that was requested at this time.
    ///
    /// The fence may have waited long, or this node may have been paused before it processed the response. Only changes
    /// before the request are therefore certain.
    pub fn as_of(&self, asked: Instant) {
        self.last.send_modify(|last| *last = (*last).max(Some(asked)));
    }

    /// Forgets the contact, because the catalog here is no longer reliable.
    pub fn forget(&self) {
        self.last.send_replace(None);
    }

    pub fn is_fresh(&self) -> bool {
        self.last.borrow().is_some_and(|heard| heard.elapsed() < CATALOG_SILENCE_MAX)
    }

    /// Waits for the first contact, or until its absence is no longer explained by the start.
    ///
    /// A started node gets as long for it as a contact remains valid.
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
