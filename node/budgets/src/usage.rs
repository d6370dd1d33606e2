//! Usage of one budget, for the API and the metrics.

use assay_storage_model::event::format_micros;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::amounts::usd;
use crate::catalog::BudgetCatalog;
use crate::ledger::{BudgetLedger, LedgerTotals};
use crate::rule::BudgetRule;
use crate::stored::LedgerError;

/// Limits of a budget, and the use in its current window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetUsage {
    pub rule: BudgetRule,
    pub totals: LedgerTotals,
}

impl BudgetUsage {
    /// Reads the usage of a budget from the local copy of the catalog.
    pub fn read(rule: BudgetRule, catalog: &dyn BudgetCatalog) -> Result<BudgetUsage, LedgerError> {
        let now_ms = catalog.now_ms();
        let ledger = match catalog.ledger(rule.id) {
            Some(stored) => BudgetLedger::decode(&stored.body)?,
            None => BudgetLedger::new(&rule, now_ms),
        };
        Ok(BudgetUsage { totals: ledger.totals_at(&rule, now_ms), rule })
    }

    /// Returns the usage of the budget with this id, or `None` if no such budget exists.
    pub fn find(budget: Uuid, catalog: &dyn BudgetCatalog) -> Option<Result<BudgetUsage, LedgerError>> {
        let rule = catalog.rule(budget)?;
        Some(BudgetUsage::read(rule, catalog))
    }

    /// Returns whether the window has used up a limit.
    pub fn is_exceeded(&self) -> bool {
        self.totals.is_exhausted(&self.rule.limits)
    }

    /// Returns the usage as the body of a response, in which absent limits are null.
    pub fn to_json(&self) -> Value {
        let LedgerTotals { bounds, spent, requests, reserved, calls } = self.totals;
        let limits = &self.rule.limits;
        let of = |limit: Option<u64>, spent: u64, reserved: u64, shown: fn(u64) -> Value| {
            let remaining = limit.map(|limit| shown(limit.saturating_sub(spent.saturating_add(reserved))));
            json!({"limit": limit.map(shown), "spent": shown(spent), "reserved": shown(reserved), "remaining": remaining})
        };
        let dollars = |nanos: u64| Value::from(usd(nanos));
        let time = |ms: i64| Value::from(format_micros(ms.saturating_mul(1000)));
        json!({
            "budget_id": self.rule.id.to_string(),
            "window": self.rule.window.word(),
            "window_start": bounds.ends_ms.map(|_| time(bounds.begins_ms)),
            "window_end": bounds.ends_ms.map(time),
            "usd": of(limits.nano_usd, spent.nano_usd, reserved.nano_usd, dollars),
            "tokens": of(limits.tokens, spent.tokens, reserved.tokens, Value::from),
            "requests": of(limits.requests, requests, 0, Value::from),
            "concurrent": {"limit": limits.concurrent, "running": calls},
            "exceeded": self.is_exceeded(),
        })
    }
}
