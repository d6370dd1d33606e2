//! Which budgets count a call, and what happens to its reservations.

use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_node_budgets::{
    BudgetAction, BudgetAmounts, BudgetCall, BudgetLimits, BudgetRefusal, BudgetRule, BudgetScope, BudgetWindow,
    Budgets,
};
use assay_storage_model::OrgId;
use tokio::time::sleep;
use uuid::Uuid;

use super::memory::{ORG, PROJECT, SECRET, Shared, USER, call, price, rule, usd_limit};

async fn settled() {
    sleep(Duration::from_secs(1)).await;
}

#[track_caller]
fn exceeded(refusal: BudgetRefusal) -> (u128, Option<u64>) {
    assert_eq!((refusal.status(), refusal.code()), (429, "budget_exceeded"));
    match &refusal {
        BudgetRefusal::Exceeded { budget, .. } => (budget.as_u128(), refusal.retry_after_seconds()),
        other => panic!("{other}"),
    }
}

fn of(id: u128, scope: BudgetScope) -> BudgetRule {
    BudgetRule { scope, ..rule(id, BudgetLimits { requests: Some(0), ..BudgetLimits::default() }) }
}

#[tokio::test(start_paused = true)]
async fn without_a_matching_budget_the_catalog_is_not_asked() {
    let others = vec![
        of(1, BudgetScope::Project(Uuid::from_u128(77))),
        of(2, BudgetScope::Model("another".into())),
        of(3, BudgetScope::ServiceAccount(USER)),
        BudgetRule { org: OrgId(Uuid::from_u128(78)), ..of(4, BudgetScope::Organization) },
    ];
    for rules in [Vec::new(), others] {
        let shared = Shared::new(1, rules);
        let mut admitted = shared.node().admit(call(1)).await.expect("no budget");
        admitted.use_secret(SECRET).await.expect("no budget");
        assert!(!admitted.is_counted());
        assert_eq!(admitted.headers().pairs(), []);
        admitted.settle(price(1)).await.expect("nothing to store");
        assert_eq!(shared.asked.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn every_scope_of_a_call_counts() {
    let key = Uuid::from_u128(55);
    for scope in [
        BudgetScope::Organization,
        BudgetScope::Project(PROJECT),
        BudgetScope::User(USER),
        BudgetScope::ServiceAccount(key),
        BudgetScope::ApiKey(key),
        BudgetScope::Model("gpt-4o".into()),
    ] {
        let shared = Shared::new(1, vec![of(9, scope.clone())]);
        let call = BudgetCall { service_account: Some(key), api_key: Some(key), ..call(1) };
        let refusal = shared.node().admit(call).await.expect_err(scope.word());
        assert_eq!(exceeded(refusal), (9, Some(86_400)), "{scope:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_reserves_in_all_its_budgets_or_in_none() {
    let one = BudgetLimits { requests: Some(1), ..BudgetLimits::default() };
    let shared =
        Shared::new(1, vec![rule(1, usd_limit(1000)), BudgetRule { scope: BudgetScope::User(USER), ..rule(2, one) }]);
    let node = shared.node();
    let first = node.admit(call(10)).await.expect("within both");
    let refusal = node.admit(call(10)).await.expect_err("one request only");
    assert_eq!(exceeded(refusal), (2, Some(86_400)));
    settled().await;
    assert_eq!(shared.usage(1).totals.reserved.nano_usd, 10, "the second call holds nothing");
    first.settle(price(7)).await.expect("durable");
    for budget in [1, 2] {
        let totals = shared.usage(budget).totals;
        assert_eq!((totals.spent, totals.requests, totals.calls), (price(7), 1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_reservation_is_released() {
    let limits = BudgetLimits { concurrent: Some(1), ..BudgetLimits::default() };
    let shared = Shared::new(1, vec![rule(1, limits)]);
    let node = shared.node();
    let first = node.admit(call(10)).await.expect("one call");
    assert_eq!(exceeded(node.admit(call(10)).await.expect_err("busy")), (1, Some(1)));
    drop(first);
    settled().await;
    drop(node.admit(call(10)).await.expect("free again"));
    // Also where the caller is gone before the answer is there.
    settled().await;
    for micros in [0, 100, 1000, 3000, 5000, 7000] {
        tokio::time::timeout(Duration::from_micros(micros), node.admit(call(10))).await.map(drop).unwrap_or_default();
        settled().await;
        assert_eq!(shared.usage(1).totals.calls, 0, "after {micros} us");
    }
    assert_eq!(shared.usage(1).totals.requests, 0, "no call was made");
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_node_settled_stays_and_what_it_reserved_expires() {
    let shared = Shared::new(1, vec![rule(1, usd_limit(100))]);
    let node = shared.node();
    node.admit(call(60)).await.expect("within").settle(price(60)).await.expect("durable");
    // As after kill -9: nobody releases it.
    std::mem::forget(node.admit(call(40)).await.expect("within"));
    drop(node);
    let again = shared.node();
    assert_eq!(shared.usage(1).totals.spent, price(60));
    assert_eq!(exceeded(again.admit(call(1)).await.expect_err("reserved by the dead")), (1, Some(1)));
    sleep(call(1).timeout).await;
    let admitted = again.admit(call(40)).await.expect("it expired");
    admitted.settle(price(40)).await.expect("durable");
    let usage = shared.usage(1);
    assert_eq!((usage.totals.spent.nano_usd, usage.is_exceeded()), (100, true));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_alerts_counts_and_refuses_nothing() {
    let alert = BudgetRule { action: BudgetAction::Alert, ..rule(1, usd_limit(5)) };
    let shared = Shared::new(1, vec![alert]);
    let node = shared.node();
    for _ in 0..3 {
        let admitted = node.admit(BudgetCall { estimate_nano_usd: None, ..call(0) }).await.expect("never refused");
        assert!(admitted.is_counted());
        admitted.settle(price(4)).await.expect("durable");
    }
    let usage = shared.usage(1);
    assert_eq!((usage.totals.spent.nano_usd, usage.totals.requests, usage.is_exceeded()), (12, 3, true));
    assert!(node.metrics_text().contains("assay_gateway_budget_exhausted_total 1\n"));
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_is_refused_under_a_limit_of_money() {
    let unpriced = BudgetCall { estimate_nano_usd: None, ..call(0) };
    let shared = Shared::new(1, vec![rule(1, usd_limit(5))]);
    let refusal = shared.node().admit(unpriced.clone()).await.expect_err("unpriced");
    assert_eq!((refusal.status(), refusal.retry_after_seconds()), (403, None));
    assert!(refusal.to_string().contains("`gpt-4o` has no price"), "{refusal}");
    shared.set_rules(vec![BudgetRule { allow_unpriced: true, ..rule(1, usd_limit(5)) }]);
    shared.node().admit(unpriced.clone()).await.expect("allowed");
    shared.set_rules(vec![rule(1, BudgetLimits { tokens: Some(500), ..BudgetLimits::default() })]);
    shared.node().admit(unpriced).await.expect("no limit of money");
}

#[tokio::test(start_paused = true)]
async fn a_provider_secret_is_chosen_for_each_attempt() {
    let other = Uuid::from_u128(40);
    let limits = BudgetLimits { concurrent: Some(1), ..BudgetLimits::default() };
    let secret = |id, secret| BudgetRule { scope: BudgetScope::Secret(secret), ..rule(id, limits) };
    let shared = Shared::new(1, vec![secret(1, SECRET), secret(2, other)]);
    let node = shared.node();
    let mut first = node.admit(call(1)).await.expect("no budget yet");
    first.use_secret(SECRET).await.expect("free");
    let mut second = node.admit(call(1)).await.expect("no budget yet");
    assert_eq!(exceeded(second.use_secret(SECRET).await.expect_err("busy")), (1, Some(1)));
    second.use_secret(other).await.expect("another secret is free");
    first.use_secret(Uuid::from_u128(41)).await.expect("no budget");
    settled().await;
    let calls = |budget| shared.usage(budget).totals.calls;
    assert_eq!((calls(1), calls(2)), (0, 1), "the secret that failed is free");
    second.settle(BudgetAmounts { nano_usd: 3, tokens: 4 }).await.expect("durable");
    assert_eq!((shared.usage(2).totals.spent.tokens, calls(2)), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn headers_tell_the_limits_of_requests_and_tokens() {
    let limits = BudgetLimits { requests: Some(2), tokens: Some(100), ..BudgetLimits::default() };
    let shared = Shared::new(1, vec![BudgetRule { window: BudgetWindow::Minute, ..rule(1, limits) }]);
    let node = shared.node();
    let admitted = node.admit(call(1)).await.expect("within");
    let pairs = admitted.headers().pairs();
    let value = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(value("x-ratelimit-remaining-requests"), Some("1"));
    assert_eq!(value("x-ratelimit-limit-tokens"), Some("100"));
    assert_eq!(value("x-ratelimit-remaining-tokens"), Some("90"));
    assert_eq!(value("x-ratelimit-reset-requests"), Some("29s"));
    drop(node.admit(call(1)).await.map(|admitted| admitted.settle(price(0))));
    match node.admit(call(1)).await.expect_err("two requests only") {
        BudgetRefusal::Exceeded { headers, retry_after_seconds, .. } => {
            assert_eq!(retry_after_seconds, 29);
            assert!(headers.pairs().contains(&("x-ratelimit-remaining-requests", "0".to_owned())));
        }
        other => panic!("{other}"),
    }
}

async fn spent(node: &Budgets, amount: u64) {
    node.admit(call(amount)).await.expect("within").settle(price(amount)).await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_admits_at_once_on_every_node() {
    let shared = Shared::new(1, vec![rule(1, usd_limit(10))]);
    let nodes = [shared.node(), shared.node()];
    spent(&nodes[0], 10).await;
    for node in &nodes {
        exceeded(node.admit(call(1)).await.expect_err("used up"));
    }
    shared.set_rules(vec![rule(1, usd_limit(11))]);
    spent(&nodes[1], 1).await;
    exceeded(nodes[0].admit(call(1)).await.expect_err("used up, as the other node knows"));
}

#[tokio::test(start_paused = true)]
async fn the_ledger_of_a_deleted_budget_is_swept() {
    let shared = Shared::new(1, vec![rule(1, usd_limit(10)), rule(2, usd_limit(10))]);
    let node = shared.node();
    let late = node.admit(call(1)).await.expect("within");
    spent(&node, 1).await;
    assert_eq!(node.sweep().await, Ok(0));
    shared.set_rules(vec![rule(2, usd_limit(10))]);
    assert_eq!(node.sweep().await, Ok(1));
    late.settle(price(1)).await.expect("nothing to store for the deleted budget");
    assert_eq!(shared.usage(2).totals.spent.nano_usd, 2);
    shared.set_rules(vec![rule(1, usd_limit(10)), rule(2, usd_limit(10))]);
    assert_eq!(shared.usage(1).totals.spent.nano_usd, 0, "a new budget begins with nothing");
}

#[tokio::test(start_paused = true)]
async fn usage_and_metrics_show_limits_and_remainders() {
    let limits = BudgetLimits { nano_usd: Some(2_500_000_000), concurrent: Some(5), ..BudgetLimits::default() };
    let shared = Shared::new(1, vec![BudgetRule { window: BudgetWindow::Day, ..rule(1, limits) }]);
    let node = shared.node();
    spent(&node, 1_000_000_000).await;
    let _running = node.admit(call(250_000_000)).await.expect("within");
    let usage = shared.usage(1).to_json();
    let expected = serde_json::json!({
        "budget_id": "00000000-0000-0000-0000-000000000001",
        "window": "day",
        "window_start": "2026-11-27T00:00:00.000Z",
        "window_end": "2026-11-28T00:00:00.000Z",
        "usd": {"limit": 2.5, "spent": 1.0, "reserved": 0.25, "remaining": 1.25},
        "tokens": {"limit": null, "spent": 1, "reserved": 10, "remaining": null},
        "requests": {"limit": null, "spent": 2, "reserved": 0, "remaining": null},
        "concurrent": {"limit": 5, "running": 1},
        "exceeded": false,
    });
    assert_eq!(usage, expected);
    let text = node.metrics_text();
    let labels = format!("budget=\"{}\",org=\"{ORG}\",scope=\"org\",window=\"day\"", Uuid::from_u128(1));
    assert!(text.contains(&format!("assay_gateway_budget_usd{{{labels}}} 1\n")), "{text}");
    assert!(text.contains(&format!("assay_gateway_budget_usd_limit{{{labels}}} 2.5\n")), "{text}");
    assert!(!text.contains("assay_gateway_budget_tokens_limit"), "{text}");
}
