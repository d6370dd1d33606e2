//! Many calls of three nodes against one budget: exact sums, and no more than one call above the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_node_budgets::{BudgetLimits, BudgetRefusal, Budgets};
use tokio::time::{Instant, sleep};

use super::memory::{Shared, call, price, rule, usd_limit};

const PRICE: u64 = 1000;
const CALLS: u64 = 500;

/// Calls a model until it was called or the budget is used up. Returns whether it was called.
async fn one_call(node: Budgets, shared: Arc<Shared>, estimate: u64) -> bool {
    loop {
        match node.admit(call(estimate)).await {
            Ok(admitted) => {
                sleep(Duration::from_millis(shared.dice(80))).await;
                admitted.settle(price(PRICE)).await.expect("durable in time");
                return true;
            }
            Err(BudgetRefusal::Exceeded { retry_after_seconds, .. }) if retry_after_seconds > 1 => return false,
            Err(BudgetRefusal::Exceeded { .. } | BudgetRefusal::Unavailable(_)) => {
                sleep(Duration::from_millis(50 + shared.dice(100))).await;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

async fn five_hundred_calls(seed: u64, limits: BudgetLimits, estimate: u64, faults: u64) -> (Arc<Shared>, u64) {
    let shared = Shared::new(seed, vec![rule(9, limits)]);
    shared.set_faults(faults);
    let nodes = [shared.node(), shared.node(), shared.node()];
    let made = Arc::new(AtomicU64::new(0));
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let (node, shared, made) = (nodes[number as usize % 3].clone(), Arc::clone(&shared), Arc::clone(&made));
            tokio::spawn(async move {
                if one_call(node, shared, estimate).await {
                    made.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic");
    }
    // Reservations that came too late are released in the background.
    sleep(Duration::from_secs(5)).await;
    let made = made.load(Ordering::Relaxed);
    (shared, made)
}

#[tokio::test(start_paused = true)]
async fn five_hundred_calls_of_three_nodes_exceed_a_budget_by_at_most_one_call() {
    for seed in 0..6 {
        for estimate in [PRICE, 4 * PRICE] {
            let (shared, made) = five_hundred_calls(seed, usd_limit(100 * PRICE), estimate, 0).await;
            let totals = shared.usage(9).totals;
            assert_eq!(totals.spent.nano_usd, made * PRICE, "seed {seed}: the sum is exact");
            assert_eq!(made, 100, "seed {seed}: the budget is used, and not more");
            assert_eq!((totals.calls, totals.reserved.nano_usd), (0, 0), "seed {seed}: nothing stays reserved");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sums_stay_exact_when_writes_fail_or_have_unknown_outcomes() {
    for seed in 0..8 {
        let (shared, made) = five_hundred_calls(seed, usd_limit(100 * PRICE), 2 * PRICE, 40).await;
        let totals = shared.usage(9).totals;
        assert_eq!(totals.spent.nano_usd, made * PRICE, "seed {seed}: no call is lost or counted twice");
        assert_eq!(totals.requests, made, "seed {seed}");
        assert!((100..=101).contains(&made), "seed {seed}: {made} calls");
        assert_eq!(totals.calls, 0, "seed {seed}: nothing stays reserved");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_never_exceed_their_limit() {
    let limits = BudgetLimits { requests: Some(100), ..BudgetLimits::default() };
    let (shared, made) = five_hundred_calls(3, limits, PRICE, 20).await;
    assert_eq!((made, shared.usage(9).totals.requests), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn waiting_changes_share_a_write() {
    let shared = Shared::new(1, vec![rule(9, usd_limit(u64::MAX))]);
    let node = shared.node();
    let began = Instant::now();
    let calls = (0..CALLS).map(|_| {
        let node = node.clone();
        tokio::spawn(async move {
            let admitted = node.admit(call(PRICE)).await.expect("within the budget");
            admitted.settle(price(PRICE)).await.expect("durable");
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic");
    }
    assert_eq!(shared.usage(9).totals.spent.nano_usd, CALLS * PRICE);
    let writes = shared.asked.load(Ordering::Relaxed);
    assert!(writes <= 8, "{writes} writes");
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
}
