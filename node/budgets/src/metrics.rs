//! Metrics of budgets in Prometheus text format: the shared use of all nodes, and the counters of this node.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::amounts::usd;
use crate::catalog::BudgetCatalog;
use crate::counters::BudgetCounters;
use crate::rule::BudgetRule;
use crate::usage::BudgetUsage;

/// Upper bound of the number of budgets with individual metrics. The budgets with the lowest ids come first.
pub const BUDGETS_SHOWN_MAX: usize = 200;

/// Metric family with one value per budget. Budgets without a value are omitted.
struct OfBudgets(&'static str, &'static str, fn(&BudgetUsage) -> Option<f64>);

const OF_BUDGETS: [OfBudgets; 9] = [
    OfBudgets("assay_gateway_budget_usd", "Dollars that the window of a budget has spent.", |usage| {
        Some(usd(usage.totals.spent.nano_usd))
    }),
    OfBudgets("assay_gateway_budget_usd_limit", "Limit of dollars of a budget.", |usage| {
        usage.rule.limits.nano_usd.map(usd)
    }),
    OfBudgets("assay_gateway_budget_usd_reserved", "Dollars reserved for calls under way.", |usage| {
        Some(usd(usage.totals.reserved.nano_usd))
    }),
    OfBudgets("assay_gateway_budget_tokens", "Tokens that the window of a budget has used.", |usage| {
        Some(usage.totals.spent.tokens as f64)
    }),
    OfBudgets("assay_gateway_budget_tokens_limit", "Limit of tokens of a budget.", |usage| {
        usage.rule.limits.tokens.map(|limit| limit as f64)
    }),
    OfBudgets("assay_gateway_budget_requests", "Requests that the window of a budget has admitted.", |usage| {
        Some(usage.totals.requests as f64)
    }),
    OfBudgets("assay_gateway_budget_requests_limit", "Limit of requests of a budget.", |usage| {
        usage.rule.limits.requests.map(|limit| limit as f64)
    }),
    OfBudgets("assay_gateway_budget_calls", "Calls under way with a reservation in a budget.", |usage| {
        Some(usage.totals.calls as f64)
    }),
    OfBudgets("assay_gateway_budget_exceeded", "Whether the window of a budget has used up a limit.", |usage| {
        Some(f64::from(u8::from(usage.is_exceeded())))
    }),
];

pub(crate) fn text(rules: &[Arc<BudgetRule>], catalog: &dyn BudgetCatalog, counters: &BudgetCounters) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (name, help, counter) in [
        ("assay_gateway_budget_refusals_total", "Calls that a budget refused.", &counters.refused),
        (
            "assay_gateway_budget_unavailable_total",
            "Calls refused because a ledger could not be written.",
            &counters.unavailable,
        ),
        ("assay_gateway_budget_writes_total", "Writes of ledgers.", &counters.writes),
        ("assay_gateway_budget_conflicts_total", "Writes of ledgers that lost to another node.", &counters.conflicts),
        ("assay_gateway_budget_failures_total", "Writes of ledgers that failed.", &counters.failures),
        ("assay_gateway_budget_exhausted_total", "Windows that used up a limit.", &counters.exhausted),
    ] {
        let value = counter.load(Ordering::Relaxed);
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
    }
    let name = "assay_gateway_budgets";
    let _ = write!(text, "# HELP {name} Budgets of all organizations.\n# TYPE {name} gauge\n{name} {}\n", rules.len());
    let shown: Vec<BudgetUsage> = rules
        .iter()
        .take(BUDGETS_SHOWN_MAX)
        .filter_map(|rule| BudgetUsage::read(BudgetRule::clone(rule), catalog).ok())
        .collect();
    for OfBudgets(name, help, value) in OF_BUDGETS {
        let mut values = shown.iter().filter_map(|usage| Some((usage, value(usage)?))).peekable();
        if values.peek().is_some() {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        }
        for (usage, value) in values {
            let BudgetRule { id, org, scope, window, .. } = &usage.rule;
            let (scope, window) = (scope.word(), window.word());
            let labels = format!("budget=\"{id}\",org=\"{org}\",scope=\"{scope}\",window=\"{window}\"");
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
    text
}
