//! State machine of a call: order of attempts, and response for the caller (1.7).
//!
//! The driver reports events and executes effects. It does all input and output, and begins with
//! [`AttemptEvent::Started`].
//!
//! ```text
//! Started -> Try(0)          NotSent, Uncertain, Head(429, 5xx) -> Try(next) | WaitUntil | GiveUp
//! Head(2xx) -> Accept        FirstByte -> (no retry any more)    Finished -> Succeeded
//! Head(400, ...) -> Pass     Head(401), last -> GiveUp(ProviderAuth)
//! ```
//!
//! Each candidate is tried once, in order. Candidates that may recover are tried again, each after its own delay. Such
//! an attempt must begin within the budget. The machine decides about passing a response when its head arrives. So the
//! driver never keeps the body of an older response.

mod status;
mod times;

use crate::cooling::UpstreamFailure;

pub use status::{StatusClass, classify};
pub use times::{CALL_MS_MAX, CHUNK_MS, CONNECT_MS, CallTimes, FIRST_BYTE_MS_STREAM, FIRST_BYTE_MS_WHOLE};

/// Time since the start within which retries may begin (1.7).
pub const RETRY_BUDGET_MS: u64 = 45_000;
/// Upper bound of the attempts of one call.
pub const ATTEMPTS_MAX: u32 = 64;
const BACKOFF_MS_MIN: u64 = 200;
const BACKOFF_MS_MAX: u64 = 10_000;

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPolicy {
    /// Time since the start within which a candidate may be tried again.
    pub budget_ms: u64,
    /// Time since the start within which any attempt must begin.
    pub total_ms: u64,
    /// Whether to try again if the upstream may already have executed the request.
    pub retry_uncertain: bool,
    /// Random number that spreads the retry delays of calls.
    pub jitter_seed: u64,
}

impl AttemptPolicy {
    pub fn new(retry_uncertain: bool, jitter_seed: u64) -> AttemptPolicy {
        AttemptPolicy { budget_ms: RETRY_BUDGET_MS, total_ms: CALL_MS_MAX, retry_uncertain, jitter_seed }
    }
}

/// Event of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEvent {
    Started,
    /// The candidate began to cool after the resolution, so nothing was sent to it.
    Skipped {
        until_ms: u64,
    },
    /// The candidate can never take this request, so nothing was sent to it.
    Unfit,
    /// The attempt failed before the request was sent, during DNS, connect or TLS.
    NotSent,
    /// The attempt failed after the request may have been sent, by a timeout or a lost connection.
    Uncertain {
        /// Whether the attempt timed out.
        is_late: bool,
    },
    /// The head of a response arrived.
    Head {
        status: u16,
        /// Delay according to the headers of the response.
        retry_after_ms: Option<u64>,
    },
    /// The first byte of content is sent to the client now.
    FirstByte,
    /// An accepted response broke or its stream contains an error event, which may name a `status`.
    Broken {
        status: Option<u16>,
    },
    /// An accepted response is complete.
    Finished,
    /// The time of [`AttemptEffect::WaitUntil`] is reached.
    Woken,
    ClientGone,
}

/// Next action of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEffect {
    /// The driver sends the request to a candidate.
    Try { candidate: usize },
    /// The driver reports [`AttemptEvent::Woken`] at this time.
    WaitUntil { at_ms: u64 },
    /// The driver drops the response or the connection of a candidate.
    Cancel { candidate: usize },
    /// The driver reads the successful response of a candidate, and reports its first byte and its end.
    Accept { candidate: usize },
    /// The driver sends the unchanged response of a candidate to the client. The call ends.
    Pass { candidate: usize, status: u16 },
    /// The driver records a failure for the cooling of a candidate.
    RecordFailure { candidate: usize, failure: UpstreamFailure },
    /// The driver records a success for the cooling of a candidate.
    RecordSuccess { candidate: usize },
    /// The driver marks the secret of a candidate as refused by its provider.
    MarkInvalid { candidate: usize },
    /// The response is complete, and the call ends.
    Succeeded { candidate: usize },
    /// The call ends without a complete response.
    GiveUp(GiveUpReason),
}

/// Reason why a call ends without a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpReason {
    /// No upstream is reachable. The status is 502.
    Unreachable,
    /// The upstream may have executed the request without a response. The status is 504 after a timeout, else 502.
    Uncertain {
        is_late: bool,
    },
    /// The provider refused its secret. The status is 502 with `provider_auth_error`.
    ProviderAuth,
    /// The upstream sent a redirect or another status that cannot be passed. The status is 502.
    BadResponse {
        status: u16,
    },
    /// All upstreams cool. The status is 429 with `Retry-After`.
    Cooling {
        until_ms: u64,
    },
    /// The time for retries is over, and the last response is gone. `status` is that of the last response, if any.
    Exhausted {
        status: Option<u16>,
    },
    /// The response broke after its first byte. The client receives an error event and no end of the stream.
    Interrupted,
    ClientGone,
}

impl GiveUpReason {
    /// Returns the status and the error code of the response, or `None` if no response can be sent.
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

/// Error for an event that does not fit the state of a call, which is a bug in the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event {event:?} is not valid in the state {state}")]
pub struct AttemptError {
    pub event: AttemptEvent,
    pub state: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Ready,
    /// An attempt has no response head yet.
    InFlight(usize),
    /// A response was accepted, and nothing of it has been sent to the client.
    Accepted(usize),
    /// A part of the response has been sent to the client.
    Delivering(usize),
    Waiting {
        until_ms: u64,
    },
    Ended,
}

/// Decision whether a candidate is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateFate {
    New,
    /// The candidate may be tried again from this time on.
    Again {
        from_ms: u64,
    },
    Closed,
}

/// Outcome of the latest failed attempt, which the caller gets if no further attempt follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastResort {
    Response { candidate: usize, status: u16 },
    Reason(GiveUpReason),
}

/// State machine of one call.
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
    /// Creates the machine of a call with the given number of candidates.
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

    /// Returns the number of attempts for `x-bt-attempts`, including attempts that failed before sending.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub fn is_ended(&self) -> bool {
        self.state == CallState::Ended
    }

    /// Handles an event and returns the effects in order of execution. The last one determines how the call continues.
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
            // An error event with a success status carries no information.
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
                // The upstream works, because it refuses only this request.
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

    /// Handles an error event before the first byte of content. Its response has status 200 and is not passed.
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
        // Skipped attempts count here, too, so that every call ends.
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

    /// Returns when a candidate may be tried again after a failure.
    ///
    /// The upstream may name the delay. Otherwise, the delay doubles with each failure, and is multiplied by a factor
    /// from 0.5 to 1.5.
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
