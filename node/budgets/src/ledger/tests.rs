//! Tests of ledgers by example, and against a model of single calls.

use assay_storage_model::OrgId;
use proptest::prelude::*;

use super::*;
use crate::rule::{BudgetAction, BudgetScope};

const NOW: i64 = 1_795_806_331_250;
const DAY_MS: i64 = 86_400_000;
const TIMEOUT_MS: i64 = 640_000;
const ONE: BudgetWriter = BudgetWriter(Uuid::from_u128(1));
const TWO: BudgetWriter = BudgetWriter(Uuid::from_u128(2));

fn rule(window: BudgetWindow, limits: BudgetLimits) -> BudgetRule {
    BudgetRule {
        id: Uuid::from_u128(7),
        org: OrgId(Uuid::from_u128(8)),
        scope: BudgetScope::Organization,
        window,
        limits,
        action: BudgetAction::Reject,
        allow_unpriced: false,
    }
}

fn usd(nano_usd: u64) -> BudgetAmounts {
    BudgetAmounts { nano_usd, tokens: 0 }
}

fn reserve(amounts: BudgetAmounts) -> LedgerChange {
    LedgerChange::Reserve { amounts, timeout_ms: TIMEOUT_MS }
}

/// Applies one change, and returns its result.
fn one(
    ledger: &mut BudgetLedger,
    rule: &BudgetRule,
    writer: BudgetWriter,
    now: i64,
    change: LedgerChange,
) -> LedgerAnswer {
    ledger.apply(rule, (writer, 1), now, &[change]).answers.pop().expect("one answer")
}

#[track_caller]
fn granted(answer: &LedgerAnswer) -> LedgerReservation {
    match answer {
        LedgerAnswer::Reserved { reservation, .. } => *reservation,
        other => panic!("not admitted: {other:?}"),
    }
}

#[track_caller]
fn refused(answer: &LedgerAnswer) -> (ReachedLimit, u64) {
    match answer {
        LedgerAnswer::Refused { refusal, .. } => (refusal.limit, refusal.retry_after_seconds),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_call_is_admitted_while_something_is_left() {
    let rule = rule(BudgetWindow::Day, BudgetLimits { nano_usd: Some(100), ..BudgetLimits::default() });
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let first = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(99))));
    let second = granted(&one(&mut ledger, &rule, TWO, NOW, reserve(usd(99))));
    // Running calls may use less than they reserved, so a retry may soon succeed.
    assert_eq!(refused(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(1)))), (ReachedLimit::Usd, 1));
    one(&mut ledger, &rule, ONE, NOW, LedgerChange::Settle { reservation: first, actual: usd(10) });
    one(&mut ledger, &rule, TWO, NOW, LedgerChange::Settle { reservation: second, actual: usd(89) });
    let third = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(50))));
    let end = ledger.apply(&rule, (ONE, 2), NOW, &[LedgerChange::Settle { reservation: third, actual: usd(50) }]);
    assert!(end.exhausted, "the last of the limit is spent");
    assert_eq!(ledger.totals().spent, usd(149));
    // The time from 19:05:31.250 to midnight is 17,669 s, rounded up.
    assert_eq!(refused(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(1)))), (ReachedLimit::Usd, 17_669));
}

#[test]
fn a_limit_of_zero_admits_nothing() {
    for (limits, limit) in [
        (BudgetLimits { nano_usd: Some(0), ..BudgetLimits::default() }, ReachedLimit::Usd),
        (BudgetLimits { tokens: Some(0), ..BudgetLimits::default() }, ReachedLimit::Tokens),
        (BudgetLimits { requests: Some(0), ..BudgetLimits::default() }, ReachedLimit::Requests),
        (BudgetLimits { concurrent: Some(0), ..BudgetLimits::default() }, ReachedLimit::Concurrent),
    ] {
        let rule = rule(BudgetWindow::Total, limits);
        let outcome = BudgetLedger::new(&rule, NOW).apply(&rule, (ONE, 1), NOW, &[reserve(usd(1))]);
        assert!(!outcome.changed, "a refusal needs no write");
        assert_eq!(refused(&outcome.answers[0]).0, limit);
    }
}

#[test]
fn requests_count_when_they_are_admitted() {
    let rule = rule(BudgetWindow::Minute, BudgetLimits { requests: Some(2), ..BudgetLimits::default() });
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let first = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(0))));
    let second = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(0))));
    assert_eq!(refused(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(0)))), (ReachedLimit::Requests, 29));
    one(&mut ledger, &rule, ONE, NOW, LedgerChange::Settle { reservation: first, actual: usd(0) });
    refused(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(0))));
    // A released call returns its request, but only within its own window.
    one(&mut ledger, &rule, ONE, NOW, LedgerChange::Release { reservation: second });
    let third = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(0))));
    let later = NOW + 60_000;
    granted(&one(&mut ledger, &rule, ONE, later, reserve(usd(0))));
    one(&mut ledger, &rule, ONE, later, LedgerChange::Release { reservation: third });
    assert_eq!(ledger.totals().requests, 1);
}

#[test]
fn concurrent_calls_are_those_under_way() {
    let rule = rule(BudgetWindow::Total, BudgetLimits { concurrent: Some(1), ..BudgetLimits::default() });
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let first = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(5))));
    assert_eq!(refused(&one(&mut ledger, &rule, TWO, NOW, reserve(usd(5)))), (ReachedLimit::Concurrent, 1));
    let changes = [LedgerChange::Settle { reservation: first, actual: usd(5) }, reserve(usd(5))];
    let outcome = ledger.apply(&rule, (ONE, 2), NOW, &changes);
    granted(&outcome.answers[1]);
    assert!(!outcome.exhausted, "concurrent calls exhaust nothing");
}

#[test]
fn a_reservation_of_a_dead_call_expires_within_its_time_limit() {
    let rule = rule(BudgetWindow::Day, BudgetLimits { concurrent: Some(1), ..BudgetLimits::default() });
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let dead = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(5))));
    assert!(dead.until_ms <= NOW + TIMEOUT_MS && dead.until_ms > NOW + TIMEOUT_MS - TIMEOUT_MS / 64 - 1);
    refused(&one(&mut ledger, &rule, TWO, dead.until_ms - 1, reserve(usd(5))));
    granted(&one(&mut ledger, &rule, TWO, NOW + TIMEOUT_MS, reserve(usd(5))));
    // A late settlement still counts, and leaves the other reservation alone.
    one(&mut ledger, &rule, ONE, NOW + TIMEOUT_MS, LedgerChange::Settle { reservation: dead, actual: usd(7) });
    let totals = ledger.totals();
    assert_eq!((totals.spent, totals.reserved, totals.calls), (usd(7), usd(5), 1));
}

#[test]
fn a_new_window_begins_with_nothing_spent_and_keeps_reservations() {
    let rule = rule(BudgetWindow::Day, BudgetLimits { nano_usd: Some(10), ..BudgetLimits::default() });
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let call = granted(&one(&mut ledger, &rule, ONE, NOW, reserve(usd(20))));
    one(&mut ledger, &rule, ONE, NOW, LedgerChange::Count { calls: 1, actual: usd(30) });
    let later = call.until_ms - 1;
    let mut next = ledger.clone();
    next.begins_ms -= DAY_MS;
    assert_eq!(refused(&one(&mut next, &rule, TWO, later, reserve(usd(1)))).0, ReachedLimit::Usd);
    one(&mut next, &rule, ONE, later, LedgerChange::Settle { reservation: call, actual: usd(4) });
    assert_eq!((next.totals().spent, next.totals().requests), (usd(4), 0));
    // A node with a clock one day slow stays in the newer window.
    granted(&one(&mut next, &rule, TWO, later - DAY_MS, reserve(usd(1))));
    assert_eq!(next.totals().spent, usd(4));
}

#[test]
fn a_changed_window_keeps_what_it_contains() {
    let limits = BudgetLimits { nano_usd: Some(100), ..BudgetLimits::default() };
    let day = rule(BudgetWindow::Day, limits);
    let mut ledger = BudgetLedger::new(&day, NOW);
    one(&mut ledger, &day, ONE, NOW, LedgerChange::Count { calls: 1, actual: usd(5) });
    let spent = |window: BudgetWindow| ledger.totals_at(&rule(window, limits), NOW).spent;
    assert_eq!(spent(BudgetWindow::Month), usd(5));
    assert_eq!(spent(BudgetWindow::Total), usd(5));
    assert_eq!(spent(BudgetWindow::Hour), usd(0), "it may have been spent before this hour");
}

#[test]
fn a_ledger_stays_within_the_size_of_a_record() {
    let rule = rule(BudgetWindow::Total, BudgetLimits::default());
    let mut ledger = BudgetLedger::new(&rule, NOW);
    let most = BudgetAmounts { nano_usd: u64::MAX / 2, tokens: u64::MAX / 2 };
    // The time limits differ enough that no two reservations share an expiry time.
    let timeouts = (0..=GROUPS_MAX).scan(10_000_000_i64, |timeout_ms, _| {
        *timeout_ms += *timeout_ms / 32;
        Some(*timeout_ms)
    });
    let changes: Vec<_> = timeouts.map(|timeout_ms| LedgerChange::Reserve { amounts: most, timeout_ms }).collect();
    for writer in 0..=WRITERS_MAX {
        let writer = BudgetWriter(Uuid::from_u128(u128::MAX - writer as u128));
        let outcome = ledger.apply(&rule, (writer, u64::MAX), NOW, &changes);
        assert_eq!(refused(&outcome.answers[GROUPS_MAX]), (ReachedLimit::Reservations, 1));
    }
    assert_eq!(ledger.writers.len(), WRITERS_MAX);
    assert!(ledger.writers.values().all(|own| own.groups.len() == GROUPS_MAX));
    assert!(ledger.encode().len() < assay_storage_model::catalog::RECORD_BODY_BYTES_MAX, "{}", ledger.encode().len());
}

#[test]
fn processes_without_reservations_are_forgotten_after_a_while() {
    let rule = rule(BudgetWindow::Total, BudgetLimits::default());
    let mut ledger = BudgetLedger::new(&rule, NOW);
    one(&mut ledger, &rule, ONE, NOW, LedgerChange::Count { calls: 1, actual: usd(1) });
    one(&mut ledger, &rule, TWO, NOW + WRITER_KEPT_MS - 1, LedgerChange::Count { calls: 1, actual: usd(1) });
    assert_eq!(ledger.last_batch(ONE), Some(1), "its write may still be unknown to it");
    one(&mut ledger, &rule, TWO, NOW + WRITER_KEPT_MS, LedgerChange::Count { calls: 1, actual: usd(1) });
    assert_eq!((ledger.last_batch(ONE), ledger.last_batch(TWO)), (None, Some(1)));
}

/// Call of the model.
#[derive(Clone, Copy, Debug)]
struct ModelCall {
    writer: BudgetWriter,
    reservation: LedgerReservation,
}

#[derive(Clone, Copy, Debug)]
enum ModelStep {
    Reserve {
        writer: u128,
        amounts: BudgetAmounts,
        timeout_ms: i64,
    },
    /// Ends a running call, which used this percentage of its reservation.
    Settle {
        call: usize,
        percent: u64,
    },
    Release {
        call: usize,
    },
    Wait {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = ModelStep> {
    let amounts = (0..200_u64, 0..200_u64).prop_map(|(nano_usd, tokens)| BudgetAmounts { nano_usd, tokens });
    prop_oneof![
        4 => (1..4_u128, amounts, 1000..200_000_i64)
            .prop_map(|(writer, amounts, timeout_ms)| ModelStep::Reserve { writer, amounts, timeout_ms }),
        3 => (any::<usize>(), 0..=100_u64).prop_map(|(call, percent)| ModelStep::Settle { call, percent }),
        1 => any::<usize>().prop_map(|call| ModelStep::Release { call }),
        2 => (0..40_000_i64).prop_map(|ms| ModelStep::Wait { ms }),
    ]
}

fn limits() -> impl Strategy<Value = BudgetLimits> {
    let maybe = |most: u64| proptest::option::of(0..most);
    (maybe(2000), maybe(2000), maybe(12), maybe(5)).prop_map(|(nano_usd, tokens, requests, concurrent)| BudgetLimits {
        nano_usd,
        tokens,
        requests,
        concurrent,
    })
}

/// Model that tracks every call separately.
struct LedgerModel {
    calls: Vec<ModelCall>,
    spent: BudgetAmounts,
    requests: u64,
    begins_ms: i64,
}

impl LedgerModel {
    fn advance(&mut self, rule: &BudgetRule, now: i64) {
        let begins_ms = rule.window.around(now).begins_ms;
        if begins_ms != self.begins_ms {
            *self = LedgerModel { begins_ms, spent: usd(0), requests: 0, calls: std::mem::take(&mut self.calls) };
        }
    }

    fn alive(&self, now: i64) -> (u64, BudgetAmounts) {
        let alive = self.calls.iter().filter(|call| call.reservation.until_ms > now);
        alive.fold((0, usd(0)), |(calls, sum), call| (calls + 1, sum.plus(call.reservation.amounts)))
    }
}

proptest! {
    #[test]
    fn a_ledger_agrees_with_a_model_of_single_calls(
        limits in limits(),
        is_total in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let window = if is_total { BudgetWindow::Total } else { BudgetWindow::Minute };
        let rule = rule(window, limits);
        let mut ledger = BudgetLedger::new(&rule, NOW);
        let begins_ms = window.around(NOW).begins_ms;
        let mut model = LedgerModel { calls: Vec::new(), spent: usd(0), requests: 0, begins_ms };
        let mut now = NOW;
        for step in steps {
            model.advance(&rule, now);
            match step {
                ModelStep::Wait { ms } => now += ms,
                ModelStep::Reserve { writer, amounts, timeout_ms } => {
                    let writer = BudgetWriter(Uuid::from_u128(writer));
                    let (calls, reserved) = model.alive(now);
                    let used = model.spent.plus(reserved);
                    let fits = limits.nano_usd.is_none_or(|limit| used.nano_usd < limit)
                        && limits.tokens.is_none_or(|limit| used.tokens < limit)
                        && limits.requests.is_none_or(|limit| model.requests < limit)
                        && limits.concurrent.is_none_or(|limit| calls < limit);
                    let answer = one(&mut ledger, &rule, writer, now, LedgerChange::Reserve { amounts, timeout_ms });
                    prop_assert_eq!(matches!(answer, LedgerAnswer::Reserved { .. }), fits);
                    if let LedgerAnswer::Reserved { reservation, .. } = answer {
                        model.requests += 1;
                        model.calls.push(ModelCall { writer, reservation });
                    }
                }
                ModelStep::Settle { call, percent } if !model.calls.is_empty() => {
                    let place = call % model.calls.len();
                    let ModelCall { writer, reservation } = model.calls.swap_remove(place);
                    let share = |amount: u64| amount * percent / 100;
                    let BudgetAmounts { nano_usd, tokens } = reservation.amounts;
                    let actual = BudgetAmounts { nano_usd: share(nano_usd), tokens: share(tokens) };
                    one(&mut ledger, &rule, writer, now, LedgerChange::Settle { reservation, actual });
                    model.spent = model.spent.plus(actual);
                }
                ModelStep::Release { call } if !model.calls.is_empty() => {
                    let place = call % model.calls.len();
                    let ModelCall { writer, reservation } = model.calls.swap_remove(place);
                    one(&mut ledger, &rule, writer, now, LedgerChange::Release { reservation });
                    model.requests -= u64::from(reservation.window_begins_ms == model.begins_ms);
                }
                ModelStep::Settle { .. } | ModelStep::Release { .. } => {}
            }
            model.advance(&rule, now);
            let totals = ledger.totals_at(&rule, now);
            let (calls, reserved) = model.alive(now);
            prop_assert_eq!((totals.spent, totals.requests), (model.spent, model.requests));
            prop_assert_eq!((totals.reserved, totals.calls), (reserved, calls));
            prop_assert!(limits.requests.is_none_or(|limit| totals.requests <= limit));
        }
        prop_assert_eq!(BudgetLedger::decode(&ledger.encode()), Ok(ledger));
    }

    /// Checks the bound for every order of calls, as long as no reservation expires and all calls settle.
    #[test]
    fn a_window_exceeds_its_limit_by_less_than_one_call(
        limit in 1..5000_u64,
        most in 1..300_u64,
        order in proptest::collection::vec((any::<bool>(), any::<usize>(), 0..=100_u64), 1..200),
    ) {
        let rule = rule(BudgetWindow::Total, BudgetLimits { nano_usd: Some(limit), ..BudgetLimits::default() });
        let mut ledger = BudgetLedger::new(&rule, NOW);
        let mut calls: Vec<LedgerReservation> = Vec::new();
        for (begins, which, percent) in order {
            if begins || calls.is_empty() {
                let amounts = usd(1 + most * percent / 100);
                if let LedgerAnswer::Reserved { reservation, .. } = one(&mut ledger, &rule, ONE, NOW, reserve(amounts)) {
                    calls.push(reservation);
                }
            } else {
                let reservation = calls.swap_remove(which % calls.len());
                let actual = usd(reservation.amounts.nano_usd * percent / 100);
                one(&mut ledger, &rule, ONE, NOW, LedgerChange::Settle { reservation, actual });
            }
        }
        for reservation in calls {
            one(&mut ledger, &rule, ONE, NOW, LedgerChange::Settle { reservation, actual: reservation.amounts });
        }
        prop_assert!(ledger.totals().spent.nano_usd <= limit + most, "{} of {limit}", ledger.totals().spent.nano_usd);
    }
}
