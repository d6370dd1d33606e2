//! Counter of operations in flight, for a shutdown that waits until there are none.

use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct InFlightCounter(watch::Sender<usize>);

/// Operation in flight, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(watch::Sender<usize>);

impl InFlightCounter {
    pub(crate) fn new() -> InFlightCounter {
        InFlightCounter(watch::Sender::new(0))
    }

    pub(crate) fn begin(&self) -> InFlight {
        self.0.send_modify(|count| *count += 1);
        InFlight(self.0.clone())
    }

    pub(crate) async fn until_none(&self) {
        // This fails only without a sender, and `self` holds one.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
