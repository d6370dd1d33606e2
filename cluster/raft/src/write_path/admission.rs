//! Admission of writes by a node. Memory and disk space decide for all groups at once.
//!
//! The upkeep measures several times a second. Between two measurements every entry reduces the remaining space, so
//! that a fast writer cannot exceed the limit.

use assay_storage_model::NotWritten;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Time that a write without a deadline waits for its turn and for memory before it is refused.
pub const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Disk bytes per byte of an entry until its seal has released the log: the log, the segment, and some for rewriting
/// both.
const DISK_BYTES_PER_BYTE: i64 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionState {
    Open,
    /// Memory is exhausted, so writes wait for a seal.
    Wait,
    /// The disk is full, so writes are refused.
    NoSpace(String),
}

#[derive(Debug)]
pub struct Admission {
    state: watch::Sender<AdmissionState>,
    /// Bytes that may be written before the disk counts as full.
    free_bytes: AtomicI64,
}

impl Default for Admission {
    fn default() -> Self {
        Admission { state: watch::Sender::new(AdmissionState::Open), free_bytes: AtomicI64::new(i64::MAX) }
    }
}

impl Admission {
    /// Sets the bytes that may be written until the next measurement. Each call discards the bytes counted since the
    /// last one.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.free_bytes.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Release);
    }

    pub fn set_state(&self, state: AdmissionState) {
        self.state.send_if_modified(|current| {
            let changed = *current != state;
            *current = state;
            changed
        });
    }

    /// Waits until an entry of `bytes` may be proposed. Reports busy if there is no memory before the deadline.
    pub(crate) async fn pass(&self, bytes: usize, until: Instant) -> Result<(), NotWritten> {
        let mut state = self.state.subscribe();
        let open = state.wait_for(|state| *state != AdmissionState::Wait);
        match timeout_at(until, open).await {
            Err(_) => return Err(NotWritten::busy("memory is exhausted, and sealing does not keep up")),
            Ok(Err(_)) => return Err(NotWritten::Closing),
            Ok(Ok(state)) => {
                if let AdmissionState::NoSpace(why) = &*state {
                    return Err(NotWritten::NoSpace(why.clone()));
                }
            }
        }
        let wanted = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(DISK_BYTES_PER_BYTE);
        if self.free_bytes.load(Ordering::Acquire) < wanted {
            return Err(NotWritten::NoSpace("the free memory is reserved for earlier writes".into()));
        }
        self.free_bytes.fetch_sub(wanted, Ordering::AcqRel);
        Ok(())
    }

    /// Waits briefly for memory for entries of another replica, and returns whether there is some.
    ///
    /// A full disk is no reason to refuse such entries, because there is reserved space for them.
    pub(crate) async fn memory_is_open(&self, wait: Duration) -> bool {
        let mut state = self.state.subscribe();
        matches!(tokio::time::timeout(wait, state.wait_for(|state| *state != AdmissionState::Wait)).await, Ok(Ok(_)))
    }

    /// Returns the refusal of writes that cannot succeed now.
    pub(crate) fn refusal(&self) -> Option<NotWritten> {
        match &*self.state.borrow() {
            AdmissionState::NoSpace(why) => Some(NotWritten::NoSpace(why.clone())),
            AdmissionState::Open | AdmissionState::Wait => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn soon() -> Instant {
        Instant::now() + WRITE_WAIT_MAX
    }

    #[tokio::test]
    async fn a_full_disk_refuses_at_once_and_an_emptied_one_lets_in() {
        let admission = Admission::default();
        admission.set_state(AdmissionState::NoSpace("full".into()));
        assert_eq!(admission.pass(1, soon()).await, Err(NotWritten::NoSpace("full".into())));
        assert!(admission.refusal().is_some());
        admission.set_state(AdmissionState::Open);
        assert_eq!((admission.pass(1, soon()).await, admission.refusal()), (Ok(()), None));
    }

    #[tokio::test]
    async fn between_two_measures_the_free_bytes_are_counted_down() {
        let admission = Admission::default();
        admission.set_free_bytes(1_000);
        assert_eq!(admission.pass(200, soon()).await, Ok(()));
        admission.set_state(AdmissionState::Open);
        assert!(matches!(admission.pass(200, soon()).await, Err(NotWritten::NoSpace(_))));
    }

    #[tokio::test]
    async fn without_memory_writes_wait_for_it() {
        let admission = Arc::new(Admission::default());
        admission.set_state(AdmissionState::Wait);
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.pass(1, soon()).await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        admission.set_state(AdmissionState::Open);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
