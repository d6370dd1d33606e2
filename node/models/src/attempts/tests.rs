//! Tests of the state machine against the tables of the contract.

use super::AttemptEffect as F;
use super::AttemptEvent as E;
use super::*;

const NOW: u64 = 1_795_737_600_000;

fn machine(candidates: usize) -> AttemptMachine {
    let mut machine = AttemptMachine::new(AttemptPolicy::new(true, 7), candidates, NOW);
    let first = machine.step(NOW, E::Started).expect("it starts");
    assert_eq!(first, [F::Try { candidate: 0 }]);
    machine
}

fn head(status: u16) -> E {
    E::Head { status, retry_after_ms: None }
}

/// Returns the last effect of a step.
fn last(machine: &mut AttemptMachine, now_ms: u64, event: E) -> F {
    *machine.step(now_ms, event).expect("a valid event").last().expect("an effect")
}

#[test]
fn a_call_without_failures_has_one_attempt() {
    let mut machine = machine(2);
    assert_eq!(machine.step(NOW, head(200)), Ok(vec![F::Accept { candidate: 0 }]));
    assert_eq!(machine.step(NOW, E::FirstByte), Ok(vec![]));
    let end = vec![F::RecordSuccess { candidate: 0 }, F::Succeeded { candidate: 0 }];
    assert_eq!(machine.step(NOW, E::Finished), Ok(end));
    assert!(machine.is_ended() && machine.attempts() == 1);
}

#[test]
fn errors_of_the_client_pass_at_once() {
    for status in [400, 409, 413, 422] {
        let effects = machine(3).step(NOW, head(status)).expect("a valid event");
        assert_eq!(effects.last(), Some(&F::Pass { candidate: 0, status }), "{status}");
    }
}

#[test]
fn retryable_failures_go_to_the_next_candidate_and_are_recorded() {
    let unavailable = UpstreamFailure::Unavailable;
    for (event, failure) in [
        (E::NotSent, Some(unavailable)),
        (E::Uncertain { is_late: true }, None),
        (head(408), None),
        (head(500), Some(unavailable)),
        (head(503), Some(unavailable)),
        (head(529), Some(unavailable)),
        (
            E::Head { status: 429, retry_after_ms: Some(9) },
            Some(UpstreamFailure::RateLimited { retry_after_ms: Some(9) }),
        ),
        (head(404), None),
        (head(302), None),
    ] {
        let effects = machine(2).step(NOW, event).expect("a valid event");
        assert_eq!(effects.last(), Some(&F::Try { candidate: 1 }), "{event:?}");
        let recorded = effects.iter().find_map(|effect| match effect {
            F::RecordFailure { candidate: 0, failure } => Some(*failure),
            _ => None,
        });
        assert_eq!(recorded, failure, "{event:?}");
        assert_eq!(effects.contains(&F::Cancel { candidate: 0 }), event != E::NotSent, "{event:?}");
    }
}

#[test]
fn a_refused_secret_is_marked_and_at_last_the_caller_is_not_blamed() {
    let mut machine = machine(2);
    let effects = machine.step(NOW, head(401)).expect("a valid event");
    assert_eq!(effects.first(), Some(&F::MarkInvalid { candidate: 0 }));
    assert_eq!(last(&mut machine, NOW, head(403)), F::GiveUp(GiveUpReason::ProviderAuth));
}

#[test]
fn the_last_404_passes() {
    let mut machine = machine(2);
    assert_eq!(last(&mut machine, NOW, head(404)), F::Try { candidate: 1 });
    assert_eq!(last(&mut machine, NOW, head(404)), F::Pass { candidate: 1, status: 404 });
    assert!(machine.is_ended());
}

#[test]
fn exhausted_candidates_are_tried_again_after_a_delay_if_they_may_recover() {
    let mut machine = machine(2);
    assert_eq!(last(&mut machine, NOW, head(404)), F::Try { candidate: 1 });
    let F::WaitUntil { at_ms } = last(&mut machine, NOW, head(503)) else { panic!("it waits") };
    assert!((NOW + 100..=NOW + 600).contains(&at_ms), "{}", at_ms - NOW);
    assert_eq!(last(&mut machine, at_ms - 1, E::Woken), F::WaitUntil { at_ms }, "too early");
    assert_eq!(last(&mut machine, at_ms, E::Woken), F::Try { candidate: 1 }, "the first one has no such model");
    assert_eq!(last(&mut machine, at_ms, head(200)), F::Accept { candidate: 1 });
    assert_eq!(machine.attempts(), 3);
}

#[test]
fn a_delay_that_an_upstream_names_is_kept() {
    let mut machine = machine(1);
    let limited = |delay| E::Head { status: 429, retry_after_ms: Some(delay) };
    assert_eq!(last(&mut machine, NOW, limited(30_000)), F::WaitUntil { at_ms: NOW + 30_000 });
    assert_eq!(last(&mut machine, NOW + 30_000, E::Woken), F::Try { candidate: 0 });
    let beyond = last(&mut machine, NOW + 31_000, limited(30_000));
    assert_eq!(beyond, F::Pass { candidate: 0, status: 429 }, "the wait would end after the budget");
}

#[test]
fn the_budget_does_not_keep_a_call_from_its_other_candidates() {
    let mut machine = machine(2);
    // The first attempt gets no response head within 120 seconds.
    assert_eq!(last(&mut machine, NOW + 120_000, E::Uncertain { is_late: true }), F::Try { candidate: 1 });
    let effect = last(&mut machine, NOW + 121_000, E::Uncertain { is_late: true });
    assert_eq!(effect, F::GiveUp(GiveUpReason::Uncertain { is_late: true }), "but nothing starts over");
    let mut late = self::machine(2);
    let effect = last(&mut late, NOW + CALL_MS_MAX + 1, head(500));
    assert_eq!(effect, F::Pass { candidate: 0, status: 500 }, "no call is longer");
}

#[test]
fn uncertain_requests_are_repeated_only_if_allowed() {
    let careful = AttemptPolicy::new(false, 7);
    for with_head in [false, true] {
        let mut machine = AttemptMachine::new(careful, 3, NOW);
        machine.step(NOW, E::Started).expect("it starts");
        let event = if with_head { E::Broken { status: None } } else { E::Uncertain { is_late: true } };
        if with_head {
            machine.step(NOW, head(200)).expect("a head");
        }
        let effects = machine.step(NOW, event).expect("a valid event");
        assert_eq!(effects, [F::Cancel { candidate: 0 }, F::GiveUp(GiveUpReason::Uncertain { is_late: !with_head })]);
    }
    // An unsent or refused request is not uncertain.
    let mut machine = AttemptMachine::new(careful, 3, NOW);
    machine.step(NOW, E::Started).expect("it starts");
    assert_eq!(last(&mut machine, NOW, E::NotSent), F::Try { candidate: 1 });
    assert_eq!(last(&mut machine, NOW, head(503)), F::Try { candidate: 2 });
}

#[test]
fn nothing_is_repeated_after_the_first_byte() {
    let mut machine = machine(2);
    machine.step(NOW, head(200)).expect("a head");
    machine.step(NOW, E::FirstByte).expect("a byte");
    let effects = machine.step(NOW, E::Broken { status: Some(529) }).expect("a valid event");
    let failure = F::RecordFailure { candidate: 0, failure: UpstreamFailure::Unavailable };
    assert_eq!(effects, [failure, F::Cancel { candidate: 0 }, F::GiveUp(GiveUpReason::Interrupted)]);
}

#[test]
fn an_error_event_before_the_first_byte_is_like_its_status() {
    for (status, expected) in [
        (529, F::Try { candidate: 1 }),
        (429, F::Try { candidate: 1 }),
        (404, F::Try { candidate: 1 }),
        (401, F::Try { candidate: 1 }),
        (400, F::GiveUp(GiveUpReason::BadResponse { status: 400 })),
        (200, F::Try { candidate: 1 }),
    ] {
        let mut machine = machine(2);
        machine.step(NOW, head(200)).expect("a head");
        assert_eq!(last(&mut machine, NOW, E::Broken { status: Some(status) }), expected, "{status}");
    }
}

#[test]
fn a_candidate_that_began_to_cool_is_skipped_and_awaited() {
    let mut machine = machine(2);
    let skipped = |until| E::Skipped { until_ms: NOW + until };
    assert_eq!(last(&mut machine, NOW, skipped(9_000)), F::Try { candidate: 1 });
    assert_eq!(last(&mut machine, NOW, skipped(5_000)), F::WaitUntil { at_ms: NOW + 5_000 });
    assert_eq!(machine.attempts(), 0, "nothing was sent");
    assert_eq!(last(&mut machine, NOW + 5_000, E::Woken), F::Try { candidate: 1 });
    let mut only = self::machine(1);
    let until_ms = NOW + 60_000;
    assert_eq!(last(&mut only, NOW, E::Skipped { until_ms }), F::GiveUp(GiveUpReason::Cooling { until_ms }));
}

#[test]
fn waking_too_late_ends_the_call() {
    let mut machine = machine(1);
    last(&mut machine, NOW, head(503));
    let effect = last(&mut machine, NOW + RETRY_BUDGET_MS + 1, E::Woken);
    assert_eq!(effect, F::GiveUp(GiveUpReason::Exhausted { status: Some(503) }));
}

#[test]
fn a_client_that_goes_ends_the_call_in_any_state() {
    let gone = F::GiveUp(GiveUpReason::ClientGone);
    let cancel = F::Cancel { candidate: 0 };
    assert_eq!(machine(1).step(NOW, E::ClientGone), Ok(vec![cancel, gone]));
    let mut waiting = machine(1);
    last(&mut waiting, NOW, head(503));
    assert_eq!(waiting.step(NOW, E::ClientGone), Ok(vec![gone]));
    let mut delivering = machine(1);
    delivering.step(NOW, head(200)).expect("a head");
    delivering.step(NOW, E::FirstByte).expect("a byte");
    assert_eq!(delivering.step(NOW, E::ClientGone), Ok(vec![cancel, gone]));
    let error = delivering.step(NOW, E::ClientGone).expect_err("it has ended").to_string();
    assert!(error.contains("ClientGone") && error.contains("ended"), "{error}");
}

#[test]
fn the_caller_gets_a_status_that_does_not_blame_its_key() {
    for (reason, expected) in [
        (GiveUpReason::Unreachable, Some(502)),
        (GiveUpReason::Uncertain { is_late: true }, Some(504)),
        (GiveUpReason::Uncertain { is_late: false }, Some(502)),
        (GiveUpReason::ProviderAuth, Some(502)),
        (GiveUpReason::Cooling { until_ms: 0 }, Some(429)),
        (GiveUpReason::BadResponse { status: 302 }, Some(502)),
        (GiveUpReason::BadResponse { status: 400 }, Some(400)),
        (GiveUpReason::Exhausted { status: Some(503) }, Some(503)),
        (GiveUpReason::Exhausted { status: None }, Some(502)),
        (GiveUpReason::Interrupted, None),
    ] {
        assert_eq!(reason.response().map(|(status, _)| status), expected, "{reason:?}");
    }
}

#[test]
fn an_event_that_does_not_fit_is_an_error() {
    for event in [E::Started, E::FirstByte, E::Finished, E::Woken, E::Broken { status: None }] {
        assert!(machine(1).step(NOW, event).is_err(), "{event:?}");
    }
    let mut none = AttemptMachine::new(AttemptPolicy::new(true, 0), 0, NOW);
    assert_eq!(none.step(NOW, E::Started), Ok(vec![F::GiveUp(GiveUpReason::Unreachable)]));
}
