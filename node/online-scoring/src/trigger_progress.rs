//! State machine of one trigger: pending, running, done, failed or cancelled, with the times of its attempts (G-45).
//!
//! ```text
//! pending --start--> running --succeed--> done
//!    ^                  |--fail--> pending until the next attempt, or failed
//!    |--postpone--------|
//! pending, running --cancel--> cancelled          failed --force--> pending
//! ```

use thiserror::Error;

/// Times from a failed attempt to the next one.
pub const RETRY_DELAYS_MS: [u64; 5] = [10_000, 60_000, 300_000, 1_800_000, 7_200_000];
/// Upper bound of the repeated attempts after errors of user code.
pub const USER_CODE_RETRIES_MAX: usize = 2;

/// Cause of a failed attempt, which decides on further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFailureCause {
    /// Provider or server that may answer later.
    Transient,
    /// Code of a user, or a result that is not valid.
    UserCode,
    /// Error that another attempt would repeat, such as a missing function.
    Permanent,
}

impl RunFailureCause {
    fn retries_max(self) -> usize {
        match self {
            RunFailureCause::Transient => RETRY_DELAYS_MS.len(),
            RunFailureCause::UserCode => USER_CODE_RETRIES_MAX,
            RunFailureCause::Permanent => 0,
        }
    }

    /// Returns the time of the next attempt after this many failed ones, or `None` if there is none.
    pub fn retry_at_ms(self, failed_attempts: u32, now_ms: u64) -> Option<u64> {
        let index = (failed_attempts as usize).checked_sub(1).filter(|index| *index < self.retries_max())?;
        RETRY_DELAYS_MS.get(index).map(|delay| now_ms.saturating_add(*delay))
    }
}

/// Phase of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPhase {
    /// Waits for its turn, or for the time of its next attempt.
    Pending {
        ready_at_ms: u64,
    },
    Running {
        since_ms: u64,
    },
    Done,
    /// Given up until a client forces another run.
    Failed,
    Cancelled,
}

/// Event in the life of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    Start,
    Succeed,
    Fail(RunFailureCause),
    /// Run that did not happen, such as one at a cap, or of a node that loses its lease.
    Postpone {
        until_ms: u64,
    },
    Cancel,
    Force,
}

/// Event that a trigger in its phase does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a trigger in the phase {phase:?} does not have the event {event:?}")]
pub struct TriggerEventError {
    pub phase: TriggerPhase,
    pub event: TriggerEvent,
}

/// Progress of one trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriggerProgress {
    pub phase: TriggerPhase,
    /// Failed attempts.
    pub attempts: u32,
}

impl TriggerProgress {
    pub fn pending(ready_at_ms: u64, attempts: u32) -> TriggerProgress {
        TriggerProgress { phase: TriggerPhase::Pending { ready_at_ms }, attempts }
    }

    pub fn is_ready(self, now_ms: u64) -> bool {
        matches!(self.phase, TriggerPhase::Pending { ready_at_ms } if ready_at_ms <= now_ms)
    }

    /// Returns the progress after an event.
    pub fn after(self, event: TriggerEvent, now_ms: u64) -> Result<TriggerProgress, TriggerEventError> {
        let phase = match (self.phase, event) {
            (TriggerPhase::Pending { .. }, TriggerEvent::Start) => TriggerPhase::Running { since_ms: now_ms },
            (TriggerPhase::Running { .. }, TriggerEvent::Succeed) => TriggerPhase::Done,
            (TriggerPhase::Running { .. }, TriggerEvent::Fail(cause)) => {
                let attempts = self.attempts.saturating_add(1);
                let retry = cause.retry_at_ms(attempts, now_ms);
                let phase = retry.map_or(TriggerPhase::Failed, |ready_at_ms| TriggerPhase::Pending { ready_at_ms });
                return Ok(TriggerProgress { phase, attempts });
            }
            (TriggerPhase::Pending { .. } | TriggerPhase::Running { .. }, TriggerEvent::Postpone { until_ms }) => {
                TriggerPhase::Pending { ready_at_ms: until_ms }
            }
            (TriggerPhase::Pending { .. } | TriggerPhase::Running { .. }, TriggerEvent::Cancel) => {
                TriggerPhase::Cancelled
            }
            (TriggerPhase::Failed, TriggerEvent::Force) => return Ok(TriggerProgress::pending(now_ms, 0)),
            (phase, event) => return Err(TriggerEventError { phase, event }),
        };
        Ok(TriggerProgress { phase, attempts: self.attempts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail_all(cause: RunFailureCause) -> (Vec<u64>, u32) {
        let (mut progress, mut now_ms, mut delays) = (TriggerProgress::pending(0, 0), 0, Vec::new());
        loop {
            progress = progress.after(TriggerEvent::Start, now_ms).expect("it is pending");
            progress = progress.after(TriggerEvent::Fail(cause), now_ms).expect("it runs");
            let TriggerPhase::Pending { ready_at_ms } = progress.phase else {
                assert_eq!(progress.phase, TriggerPhase::Failed);
                return (delays, progress.attempts);
            };
            assert!(!progress.is_ready(ready_at_ms - 1) && progress.is_ready(ready_at_ms));
            delays.push((ready_at_ms - now_ms) / 1000);
            now_ms = ready_at_ms;
        }
    }

    #[test]
    fn attempts_are_repeated_at_the_times_of_the_contract() {
        assert_eq!(fail_all(RunFailureCause::Transient), (vec![10, 60, 300, 1800, 7200], 6));
        assert_eq!(fail_all(RunFailureCause::UserCode), (vec![10, 60], 3));
        assert_eq!(fail_all(RunFailureCause::Permanent), (vec![], 1));
    }

    #[test]
    fn each_phase_has_its_events_and_no_others() {
        use TriggerPhase::{Cancelled, Done, Failed, Pending, Running};
        let phases = [Pending { ready_at_ms: 1 }, Running { since_ms: 1 }, Done, Failed, Cancelled];
        let events = [
            (TriggerEvent::Start, [Some(Running { since_ms: 5 }), None, None, None, None]),
            (TriggerEvent::Succeed, [None, Some(Done), None, None, None]),
            (TriggerEvent::Fail(RunFailureCause::Permanent), [None, Some(Failed), None, None, None]),
            (
                TriggerEvent::Postpone { until_ms: 9 },
                [Some(Pending { ready_at_ms: 9 }), Some(Pending { ready_at_ms: 9 }), None, None, None],
            ),
            (TriggerEvent::Cancel, [Some(Cancelled), Some(Cancelled), None, None, None]),
            (TriggerEvent::Force, [None, None, None, Some(Pending { ready_at_ms: 5 }), None]),
        ];
        for (event, expected) in events {
            for (phase, expected) in phases.into_iter().zip(expected) {
                let found = TriggerProgress { phase, attempts: 0 }.after(event, 5);
                assert_eq!(found.clone().ok().map(|progress| progress.phase), expected, "{phase:?} {event:?}");
                assert_eq!(found.is_err(), expected.is_none());
            }
        }
    }

    #[test]
    fn a_postponed_run_is_no_failed_attempt_and_a_forced_one_starts_again() {
        let postponed =
            TriggerProgress::pending(0, 2).after(TriggerEvent::Postpone { until_ms: 7 }, 0).expect("pending");
        assert_eq!(postponed, TriggerProgress::pending(7, 2));
        let failed = TriggerProgress { phase: TriggerPhase::Failed, attempts: 6 };
        assert_eq!(failed.after(TriggerEvent::Force, 3), Ok(TriggerProgress::pending(3, 0)));
    }
}
