//! Behaviour without a catalog: calls are refused after a wait, and settlements are kept until it is back.

use std::time::Duration;

use assay_node_budgets::{
    ADMISSION_WAIT_MAX, BudgetAction, BudgetRefusal, BudgetRule, COUNTS_WAITING_MAX, SETTLEMENT_WAIT_MAX,
    SettlementPending,
};
use tokio::time::{Instant, sleep};

use super::memory::{Shared, call, price, rule, usd_limit};

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_reservation_only_so_long() {
    let shared = Shared::new(1, vec![rule(1, usd_limit(100))]);
    let node = shared.node();
    shared.set_down(true);
    let began = Instant::now();
    let refusal = node.admit(call(1)).await.expect_err("no catalog");
    assert!(matches!(refusal, BudgetRefusal::Unavailable(_)), "{refusal}");
    assert_eq!((refusal.status(), refusal.code()), (503, "budget_unavailable"));
    assert!((ADMISSION_WAIT_MAX..ADMISSION_WAIT_MAX + Duration::from_secs(1)).contains(&began.elapsed()));
    shared.set_down(false);
    sleep(Duration::from_secs(5)).await;
    let totals = shared.usage(1).totals;
    assert_eq!((totals.calls, totals.requests), (0, 0), "the call that gave up holds nothing");
}

#[tokio::test(start_paused = true)]
async fn a_settlement_is_kept_until_the_catalog_is_back() {
    let shared = Shared::new(1, vec![rule(1, usd_limit(100))]);
    let node = shared.node();
    let (first, second) = (node.admit(call(10)).await.expect("within"), node.admit(call(10)).await.expect("within"));
    shared.set_down(true);
    let began = Instant::now();
    assert_eq!(first.settle(price(9)).await, Err(SettlementPending));
    assert_eq!(began.elapsed().as_secs(), SETTLEMENT_WAIT_MAX.as_secs());
    // Whoever does not wait loses nothing either.
    drop(second.settle(price(8)));
    sleep(Duration::from_secs(60)).await;
    shared.set_down(false);
    sleep(Duration::from_secs(5)).await;
    let totals = shared.usage(1).totals;
    assert_eq!((totals.spent.nano_usd, totals.calls), (17, 0));
}

/// Calls that an `alert` budget counts are admitted without a catalog, so nothing else bounds how many of them wait.
#[tokio::test(start_paused = true)]
async fn counts_without_a_catalog_are_joined_beyond_a_bound() {
    const MORE: u64 = 50;
    let rule = BudgetRule { action: BudgetAction::Alert, ..rule(1, usd_limit(100)) };
    let shared = Shared::new(1, vec![rule]);
    let node = shared.node();
    shared.set_down(true);
    // The first change is in a write that goes on.
    drop(node.admit(call(10)).await.expect("no reservation").settle(price(2)));
    sleep(Duration::from_millis(1)).await;
    for _ in 0..COUNTS_WAITING_MAX {
        drop(node.admit(call(10)).await.expect("no reservation").settle(price(2)));
    }
    let began = Instant::now();
    for _ in 0..MORE {
        let settled = node.admit(call(10)).await.expect("no reservation").settle(price(2)).await;
        assert_eq!(settled, Err(SettlementPending));
    }
    assert_eq!(began.elapsed().as_secs(), 0, "nothing waits for a count that joined another");
    shared.set_down(false);
    sleep(Duration::from_secs(10)).await;
    let totals = shared.usage(1).totals;
    let calls = COUNTS_WAITING_MAX as u64 + 1 + MORE;
    assert_eq!((totals.requests, totals.spent.nano_usd), (calls, 2 * calls));
}
