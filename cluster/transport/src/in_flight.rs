//! How much is under way, for one who waits until nothing is.

use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Counter(watch::Sender<usize>);

/// Counts until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(watch::Sender<usize>);

impl Counter {
    pub(crate) fn new() -> Counter {
        Counter(watch::Sender::new(0))
    }

    pub(crate) fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count += 1);
        UnderWay(self.0.clone())
    }

    pub(crate) async fn until_none(&self) {
        // Fails only without a sender, and one is in `self`.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
