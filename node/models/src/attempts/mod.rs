//! Step machine of one call: which candidate is tried when, and what the caller gets (1.7).
//!
//! The driver reports events and executes effects; it does all IO. It begins with [`AttemptEvent::Started`].
//!
//! ```text
//! Started -> Try(0)          NotSent, Uncertain, Head(429, 5xx) -> Try(next) | WaitUntil | GiveUp
//! Head(2xx) -> Accept        FirstByte -> (no retry any more)    Finished -> Succeeded
//! Head(400, ...) -> Pass     Head(401), last -> GiveUp(ProviderAuth)
//! ```
//!
//! Each candidate is tried once, in order. Those that may recover are tried again, each after a delay of its own, as long
//! as the next attempt begins within the budget. Whether a response is passed is decided when its head arrives, so the
//! driver never keeps the body of an older one.

mod status;
mod times;

use crate::cooling::UpstreamFailure;

pub use status::{StatusClass, classify};
pub use times::{CALL_MS_MAX, CHUNK_MS, CONNECT_MS, CallTimes, FIRST_BYTE_MS_STREAM, FIRST_BYTE_MS_WHOLE};

/// Time within which calls start over (1.7).
pub const RETRY_BUDGET_MS: u64 = 45_000;
/// Attempts of one call.
pub const ATTEMPTS_MAX: u32 = 64;
const BACKOFF_MS_MIN: u64 = 200;
const BACKOFF_MS_MAX: u64 = 10_000;

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPolicy {
    /// Time from the start within which an attempt may repeat one of the same candidate.
    pub budget_ms: u64,
    /// Time from the start within which any attempt begins.
    pub total_ms: u64,
    /// Whether to try again if the upstream may have executed the request already.
    pub retry_uncertain: bool,
    /// Random number that spreads the delays of calls.
    pub jitter_seed: u64,
}

impl AttemptPolicy {
    pub fn new(retry_uncertain: bool, jitter_seed: u64) -> AttemptPolicy {
        AttemptPolicy { budget_ms: RETRY_BUDGET_MS, total_ms: CALL_MS_MAX, retry_uncertain, jitter_seed }
    }
}

/// What happened to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEvent {
    Started,
    /// The candidate began to cool since it was chosen: nothing was sent to it.
    Skipped {
        until_ms: u64,
    },
    /// The candidate cannot be sent such a request, whenever it is tried: nothing was sent to it.
    Unfit,
    /// The attempt failed before the request was sent: DNS, connect or TLS.
    NotSent,
    /// The attempt failed after the request was sent, or may have been: no head within its time, or a cut connection.
    Uncertain {
        /// Whether its time was over, instead of its connection.
        is_late: bool,
    },
    /// The head of a response arrived.
    Head {
        status: u16,
        /// Delay that its headers name.
        retry_after_ms: Option<u64>,
    },
    /// The first byte of content goes to the client now.
    FirstByte,
    /// An accepted response broke, or its stream has an error event. `status` is what that event says, if it does.
    Broken {
        status: Option<u16>,
    },
    /// An accepted response ended as it should.
    Finished,
    /// The time of [`AttemptEffect::WaitUntil`] has come.
    Woken,
    ClientGone,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEffect {
    /// Send the request to a candidate.
    Try { candidate: usize },
    /// Report [`AttemptEvent::Woken`] at this time.
    WaitUntil { at_ms: u64 },
    /// Drop the response or the connection of a candidate.
    Cancel { candidate: usize },
    /// Read the successful response of a candidate, and report its first byte and its end.
    Accept { candidate: usize },
    /// Send the response of a candidate to the client as it is; the call ends.
    Pass { candidate: usize, status: u16 },
    /// Record a failure for the cooling of a candidate.
    RecordFailure { candidate: usize, failure: UpstreamFailure },
    /// Record a success for the cooling of a candidate.
    RecordSuccess { candidate: usize },
    /// Mark the secret of a candidate as refused by its provider.
    MarkInvalid { candidate: usize },
    /// The response is complete; the call ends.
    Succeeded { candidate: usize },
    /// The call ends without a complete response.
    GiveUp(GiveUpReason),
}

/// Reason for which a call ends without a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpReason {
    /// No upstream could be reached: a 502.
    Unreachable,
    /// The upstream may have executed the request, and there is no response: a 504 if it was late, else a 502.
    Uncertain {
        is_late: bool,
    },
    /// The provider refused its secret: a 502 `provider_auth_error`.
    ProviderAuth,
    /// The upstream answered with a redirect or another status that cannot be passed: a 502.
    BadResponse {
        status: u16,
    },
    /// All upstreams cool: a 429 with `Retry-After`.
    Cooling {
        until_ms: u64,
    },
    /// The time for retries is over, and the last response is gone: this was its status, if there was one.
    Exhausted {
        status: Option<u16>,
    },
    /// The response broke after its first byte had gone to the client: an error event, no end of the stream.
    Interrupted,
    ClientGone,
}

impl GiveUpReason {
    /// Returns the status and the error code of the response; `None` if there is none to send.
    pub fn response(self) -> Option<(u16, &'static str)> {
        match self {
            GiveUpReason::Unreachable => Some((502, "upstream_unreachable")),
            GiveUpReason::Uncertain { is_late: true } => Some((504, "upstream_timeout")),
            GiveUpReason::Uncertain { is_late: false } => Some((502, "upstream_disconnected")),
            GiveUpReason::ProviderAuth => Some((502, "provider_auth_error")),
            GiveUpReason::Cooling { .. } => Some((429, "rate_limit_exceeded")),
            GiveUpReason::BadResponse { status } | GiveUpReason::Exhausted { status: Some(status) } => {
                let is_passed = (400..600).contains(&status) && classify(status) != StatusClass::ProviderAuth;
                Some((if is_passed { status } else { 502 }, "upstream_error"))
            }
            GiveUpReason::Exhausted { status: None } => Some((502, "upstream_error")),
            GiveUpReason::Interrupted | GiveUpReason::ClientGone => None,
        }
    }
}

/// Event that does not fit the state of a call: an error of the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event {event:?} is not valid in the state {state}")]
pub struct AttemptError {
    pub event: AttemptEvent,
    pub state: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Ready,
    /// An attempt has no head yet.
    InFlight(usize),
    /// A response was accepted, and nothing of it went to the client.
    Accepted(usize),
    /// The client has a part of the response.
    Delivering(usize),
    Waiting {
        until_ms: u64,
    },
    Ended,
}

/// Whether a candidate is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateFate {
    New,
    /// Not before this time.
    Again {
        from_ms: u64,
    },
    Closed,
}

/// Why the latest attempt failed, and what the caller gets if it was the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastResort {
    Response { candidate: usize, status: u16 },
    Reason(GiveUpReason),
}

/// State of one call.
#[derive(Clone, Debug)]
pub struct AttemptMachine {
    policy: AttemptPolicy,
    started_ms: u64,
    fates: Vec<CandidateFate>,
    state: CallState,
    attempts: u32,
    failures: u32,
    last: GiveUpReason,
}

impl AttemptMachine {
    /// Returns the machine of a call with a number of candidates, at least one.
    pub fn new(policy: AttemptPolicy, candidates: usize, now_ms: u64) -> AttemptMachine {
        AttemptMachine {
            policy,
            started_ms: now_ms,
            fates: vec![CandidateFate::New; candidates],
            state: CallState::Ready,
            attempts: 0,
            failures: 0,
            last: GiveUpReason::Unreachable,
        }
    }

    /// Returns how often a request was sent or was to be, for `x-bt-attempts`.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub fn is_ended(&self) -> bool {
        self.state == CallState::Ended
    }

    /// Takes an event and returns what to do, in this order. The last effect says how the call goes on.
    pub fn step(&mut self, now_ms: u64, event: AttemptEvent) -> Result<Vec<AttemptEffect>, AttemptError> {
        use AttemptEvent as E;
        let mut effects = Vec::new();
        match (self.state, event) {
            (CallState::Ready, E::Started) => self.go_on(now_ms, None, &mut effects),
            (CallState::InFlight(candidate), E::Skipped { until_ms }) => {
                self.attempts -= 1;
                self.fates[candidate] = CandidateFate::Again { from_ms: until_ms };
                self.after_failure(now_ms, LastResort::Reason(GiveUpReason::Cooling { until_ms }), &mut effects);
            }
            (CallState::InFlight(candidate), E::Unfit) => {
                self.attempts -= 1;
                self.fates[candidate] = CandidateFate::Closed;
                self.failures += 1;
                self.go_on(now_ms, Some(LastResort::Reason(self.last)), &mut effects);
            }
            (CallState::InFlight(candidate), E::NotSent) => {
                effects.push(AttemptEffect::RecordFailure { candidate, failure: UpstreamFailure::Unavailable });
                self.fates[candidate] = self.again(now_ms, None);
                self.after_failure(now_ms, LastResort::Reason(GiveUpReason::Unreachable), &mut effects);
            }
            (CallState::InFlight(candidate), E::Uncertain { is_late }) => {
                self.uncertain(now_ms, candidate, is_late, &mut effects);
            }
            (CallState::InFlight(candidate), E::Head { status, retry_after_ms }) => {
                self.head(now_ms, candidate, status, retry_after_ms, &mut effects);
            }
            (CallState::Accepted(candidate), E::FirstByte) => self.state = CallState::Delivering(candidate),
            // an error event that names a status of success says nothing
            (CallState::Accepted(candidate), E::Broken { status: Some(status @ 300..) }) => {
                self.broken(now_ms, candidate, status, &mut effects);
            }
            (CallState::Accepted(candidate), E::Broken { .. }) => {
                self.uncertain(now_ms, candidate, false, &mut effects)
            }
            (CallState::Delivering(candidate), E::Broken { status }) => {
                if let Some(failure) = status.and_then(|status| status::failure(status, None)) {
                    effects.push(AttemptEffect::RecordFailure { candidate, failure });
                }
                effects.push(AttemptEffect::Cancel { candidate });
                self.give_up(GiveUpReason::Interrupted, &mut effects);
            }
            (CallState::Accepted(candidate) | CallState::Delivering(candidate), E::Finished) => {
                effects.push(AttemptEffect::RecordSuccess { candidate });
                effects.push(AttemptEffect::Succeeded { candidate });
                self.state = CallState::Ended;
            }
            (CallState::Waiting { until_ms }, E::Woken) if now_ms < until_ms => {
                effects.push(AttemptEffect::WaitUntil { at_ms: until_ms });
            }
            (CallState::Waiting { .. }, E::Woken) => self.go_on(now_ms, None, &mut effects),
            (CallState::Ended, _) | (_, E::Started) => return Err(self.unexpected(event)),
            (state, E::ClientGone) => {
                let (CallState::InFlight(candidate)
                | CallState::Accepted(candidate)
                | CallState::Delivering(candidate)) = state
                else {
                    self.give_up(GiveUpReason::ClientGone, &mut effects);
                    return Ok(effects);
                };
                effects.push(AttemptEffect::Cancel { candidate });
                self.give_up(GiveUpReason::ClientGone, &mut effects);
            }
            _ => return Err(self.unexpected(event)),
        }
        Ok(effects)
    }

    fn unexpected(&self, event: AttemptEvent) -> AttemptError {
        let state = match self.state {
            CallState::Ready => "ready",
            CallState::InFlight(_) => "in flight",
            CallState::Accepted(_) => "accepted",
            CallState::Delivering(_) => "delivering",
            CallState::Waiting { .. } => "waiting",
            CallState::Ended => "ended",
        };
        AttemptError { event, state }
    }

    fn head(
        &mut self,
        now_ms: u64,
        candidate: usize,
        status: u16,
        retry_after_ms: Option<u64>,
        effects: &mut Vec<AttemptEffect>,
    ) {
        let response = LastResort::Response { candidate, status };
        let (fate, resort) = match classify(status) {
            StatusClass::Success => {
                effects.push(AttemptEffect::Accept { candidate });
                self.state = CallState::Accepted(candidate);
                return;
            }
            StatusClass::ClientError => {
                // the upstream works: the request is what it refuses
                effects.push(AttemptEffect::RecordSuccess { candidate });
                effects.push(AttemptEffect::Pass { candidate, status });
                self.state = CallState::Ended;
                return;
            }
            StatusClass::Retryable => (self.again(now_ms, retry_after_ms), response),
            StatusClass::ProviderAuth => {
                effects.push(AttemptEffect::MarkInvalid { candidate });
                (CandidateFate::Closed, LastResort::Reason(GiveUpReason::ProviderAuth))
            }
            StatusClass::NotThere => (CandidateFate::Closed, response),
            StatusClass::BadResponse => {
                (CandidateFate::Closed, LastResort::Reason(GiveUpReason::BadResponse { status }))
            }
        };
        if let Some(failure) = status::failure(status, retry_after_ms) {
            effects.push(AttemptEffect::RecordFailure { candidate, failure });
        }
        if matches!(resort, LastResort::Reason(_)) {
            effects.push(AttemptEffect::Cancel { candidate });
        }
        self.fates[candidate] = fate;
        self.after_failure(now_ms, resort, effects);
    }

    /// Handles an error event before the first byte of content. Its response has the status 200 and is not passed.
    fn broken(&mut self, now_ms: u64, candidate: usize, status: u16, effects: &mut Vec<AttemptEffect>) {
        if let Some(failure) = status::failure(status, None) {
            effects.push(AttemptEffect::RecordFailure { candidate, failure });
        }
        let class = classify(status);
        if class == StatusClass::ProviderAuth {
            effects.push(AttemptEffect::MarkInvalid { candidate });
        }
        let reason = match class {
            StatusClass::ProviderAuth => GiveUpReason::ProviderAuth,
            _ => GiveUpReason::BadResponse { status },
        };
        if class == StatusClass::ClientError {
            effects.push(AttemptEffect::Cancel { candidate });
            self.give_up(reason, effects);
            return;
        }
        self.fates[candidate] = match class {
            StatusClass::Retryable => self.again(now_ms, None),
            _ => CandidateFate::Closed,
        };
        effects.push(AttemptEffect::Cancel { candidate });
        self.after_failure(now_ms, LastResort::Reason(reason), effects);
    }

    fn uncertain(&mut self, now_ms: u64, candidate: usize, is_late: bool, effects: &mut Vec<AttemptEffect>) {
        effects.push(AttemptEffect::Cancel { candidate });
        if !self.policy.retry_uncertain {
            self.give_up(GiveUpReason::Uncertain { is_late }, effects);
            return;
        }
        self.fates[candidate] = self.again(now_ms, None);
        self.after_failure(now_ms, LastResort::Reason(GiveUpReason::Uncertain { is_late }), effects);
    }

    fn after_failure(&mut self, now_ms: u64, resort: LastResort, effects: &mut Vec<AttemptEffect>) {
        self.last = match resort {
            LastResort::Response { status, .. } => GiveUpReason::Exhausted { status: Some(status) },
            LastResort::Reason(reason) => reason,
        };
        self.failures += 1;
        self.go_on(now_ms, Some(resort), effects);
    }

    /// Tries the next candidate, waits for one, or ends the call.
    fn go_on(&mut self, now_ms: u64, resort: Option<LastResort>, effects: &mut Vec<AttemptEffect>) {
        let next = self.next(now_ms);
        if let (Some(_), Some(LastResort::Response { candidate, .. })) = (next, resort) {
            effects.push(AttemptEffect::Cancel { candidate });
        }
        match (next, resort) {
            (Some(NextStep::Try(candidate)), _) => {
                self.attempts += 1;
                self.state = CallState::InFlight(candidate);
                effects.push(AttemptEffect::Try { candidate });
            }
            (Some(NextStep::Wait(until_ms)), _) => {
                self.state = CallState::Waiting { until_ms };
                effects.push(AttemptEffect::WaitUntil { at_ms: until_ms });
            }
            (None, Some(LastResort::Response { candidate, status })) => {
                effects.push(AttemptEffect::Pass { candidate, status });
                self.state = CallState::Ended;
            }
            (None, Some(LastResort::Reason(reason))) => self.give_up(reason, effects),
            (None, None) => self.give_up(self.last, effects),
        }
    }

    fn give_up(&mut self, reason: GiveUpReason, effects: &mut Vec<AttemptEffect>) {
        self.state = CallState::Ended;
        effects.push(AttemptEffect::GiveUp(reason));
    }

    fn next(&self, now_ms: u64) -> Option<NextStep> {
        // skipped attempts count as well, so that a call ends in any case
        if self.attempts >= ATTEMPTS_MAX || self.failures >= ATTEMPTS_MAX {
            return None;
        }
        if now_ms > self.started_ms.saturating_add(self.policy.total_ms) {
            return None;
        }
        if let Some(candidate) = self.fates.iter().position(|fate| *fate == CandidateFate::New) {
            return Some(NextStep::Try(candidate));
        }
        let end_ms = self.started_ms.saturating_add(self.policy.budget_ms.min(self.policy.total_ms));
        let mut earliest: Option<u64> = None;
        for (candidate, fate) in self.fates.iter().enumerate() {
            let CandidateFate::Again { from_ms } = *fate else { continue };
            if from_ms <= now_ms && now_ms <= end_ms {
                return Some(NextStep::Try(candidate));
            }
            earliest = Some(earliest.map_or(from_ms, |other| other.min(from_ms)));
        }
        earliest.filter(|at_ms| *at_ms > now_ms && *at_ms <= end_ms).map(NextStep::Wait)
    }

    /// Delay after a failure: what the upstream names, else doubling with each failure of the call, times 0.5 to 1.5.
    fn again(&self, now_ms: u64, retry_after_ms: Option<u64>) -> CandidateFate {
        let doubled = (BACKOFF_MS_MIN << self.failures.min(16)).min(BACKOFF_MS_MAX);
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.policy.jitter_seed.to_le_bytes());
        bytes[8..].copy_from_slice(&self.failures.to_le_bytes());
        let spread = u64::from(blake3::hash(&bytes).as_bytes()[0]);
        let delay = retry_after_ms.unwrap_or(doubled / 2 + doubled * spread / 255);
        CandidateFate::Again { from_ms: now_ms.saturating_add(delay.max(1)) }
    }
}

#[derive(Clone, Copy, Debug)]
enum NextStep {
    Try(usize),
    Wait(u64),
}

#[cfg(test)]
mod tests;
