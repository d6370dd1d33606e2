//! Rules of budgets: scope, window, limits, and the effect of an exhausted limit.

use assay_storage_model::OrgId;
use serde_json::{Map, Value};
use thiserror::Error;
use uuid::Uuid;

use crate::amounts::nano_usd;
use crate::window::BudgetWindow;

/// Set of calls that a budget counts together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    Organization,
    Project(Uuid),
    User(Uuid),
    ServiceAccount(Uuid),
    /// Record of an API key or a service token.
    ApiKey(Uuid),
    /// Record of a temporary credential with limits. Stored budgets never have this scope.
    TemporaryCredential(Uuid),
    /// Record of a provider secret, which is an AI secret or a project variable.
    Secret(Uuid),
    /// Name of the model in requests.
    Model(String),
}

impl BudgetScope {
    /// Returns the name of the scope in records and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            BudgetScope::Organization => "org",
            BudgetScope::Project(_) => "project",
            BudgetScope::User(_) => "user",
            BudgetScope::ServiceAccount(_) => "service_account",
            BudgetScope::ApiKey(_) => "api_key",
            BudgetScope::TemporaryCredential(_) => "temporary_credential",
            BudgetScope::Secret(_) => "secret",
            BudgetScope::Model(_) => "model",
        }
    }
}

/// Effect of an exhausted budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetAction {
    /// Refuses calls.
    Reject,
    /// Admits calls, and only reports the exhaustion in the log, the metrics and the usage of the budget.
    Alert,
}

/// Limits of one window, where `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    pub nano_usd: Option<u64>,
    pub tokens: Option<u64>,
    pub requests: Option<u64>,
    /// Number of concurrent calls, which does not depend on the window.
    pub concurrent: Option<u64>,
}

/// Rule of one budget, read from its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRule {
    pub id: Uuid,
    pub org: OrgId,
    pub scope: BudgetScope,
    pub window: BudgetWindow,
    pub limits: BudgetLimits,
    pub action: BudgetAction,
    /// Whether models without a price are allowed despite a limit of money.
    pub allow_unpriced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetRuleError {
    #[error("the body of budget {0} is not a JSON object")]
    NotAnObject(Uuid),
    #[error("budget {id}: `{field}` is {found}; valid is {valid}")]
    Field { id: Uuid, field: &'static str, found: String, valid: &'static str },
}

impl BudgetRule {
    /// Returns the rule that enforces the limits of a temporary credential (G-24), or `None` without limits.
    pub fn of_temporary(id: Uuid, org: OrgId, (requests, usd): (Option<u64>, Option<f64>)) -> Option<BudgetRule> {
        if requests.is_none() && usd.is_none() {
            return None;
        }
        Some(BudgetRule {
            id,
            org,
            scope: BudgetScope::TemporaryCredential(id),
            window: BudgetWindow::Total,
            limits: BudgetLimits { nano_usd: usd.map(nano_usd), requests, ..BudgetLimits::default() },
            action: BudgetAction::Reject,
            allow_unpriced: false,
        })
    }

    /// Reads a rule from the body of its record.
    pub fn read(id: Uuid, org: OrgId, body: &[u8]) -> Result<BudgetRule, BudgetRuleError> {
        let body = serde_json::from_slice(body).map_err(|_| BudgetRuleError::NotAnObject(id))?;
        BudgetRule::of_fields(id, org, &body)
    }

    fn of_fields(id: Uuid, org: OrgId, body: &Map<String, Value>) -> Result<BudgetRule, BudgetRuleError> {
        let found = |field: &'static str| body.get(field).filter(|value| !value.is_null());
        let wrong = |field: &'static str, valid: &'static str| BudgetRuleError::Field {
            id,
            field,
            found: body.get(field).map_or_else(|| "missing".to_owned(), Value::to_string),
            valid,
        };
        let count = |field: &'static str| match found(field).map(Value::as_u64) {
            Some(None) => Err(wrong(field, "a whole number that is not negative")),
            count => Ok(count.flatten()),
        };
        let usd = match found("limit_usd").map(Value::as_f64) {
            Some(None) => return Err(wrong("limit_usd", "a number of dollars")),
            usd => usd.flatten().map(nano_usd),
        };
        let action = match found("action").and_then(Value::as_str) {
            Some("reject") => BudgetAction::Reject,
            Some("alert") => BudgetAction::Alert,
            _ => return Err(wrong("action", "`reject` or `alert`")),
        };
        let window = found("window").and_then(Value::as_str).and_then(BudgetWindow::parse);
        Ok(BudgetRule {
            id,
            org,
            scope: found("scope").and_then(scope).ok_or_else(|| wrong("scope", "an object with `type` and `id`"))?,
            window: window.ok_or_else(|| wrong("window", "`minute`, `hour`, `day`, `week`, `month` or `total`"))?,
            limits: BudgetLimits {
                nano_usd: usd,
                tokens: count("limit_tokens")?,
                requests: count("limit_requests")?,
                concurrent: count("limit_concurrent")?,
            },
            action,
            allow_unpriced: found("allow_unpriced").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// Returns a description of the budget for callers and operators.
    pub fn description(&self) -> String {
        let scope = match &self.scope {
            BudgetScope::Organization => "the organization".to_owned(),
            BudgetScope::Model(name) => format!("the model `{name}`"),
            BudgetScope::Project(_) => "the project".to_owned(),
            BudgetScope::User(_) => "the user".to_owned(),
            BudgetScope::ServiceAccount(_) => "the service account".to_owned(),
            BudgetScope::ApiKey(_) => "the API key".to_owned(),
            BudgetScope::TemporaryCredential(_) => "the temporary credential".to_owned(),
            BudgetScope::Secret(_) => "the provider secret".to_owned(),
        };
        match self.window {
            BudgetWindow::Total => format!("budget of {scope}"),
            window => format!("budget of {scope} for each {}", window.word()),
        }
    }
}

fn scope(value: &Value) -> Option<BudgetScope> {
    let id = value.get("id")?.as_str()?;
    let uuid = || Uuid::parse_str(id).ok();
    match value.get("type")?.as_str()? {
        "org" => Some(BudgetScope::Organization),
        "project" => uuid().map(BudgetScope::Project),
        "user" => uuid().map(BudgetScope::User),
        "service_account" => uuid().map(BudgetScope::ServiceAccount),
        "api_key" => uuid().map(BudgetScope::ApiKey),
        "secret" => uuid().map(BudgetScope::Secret),
        "model" => Some(BudgetScope::Model(id.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn read(body: &Value) -> Result<BudgetRule, BudgetRuleError> {
        BudgetRule::read(ID, OrgId(Uuid::from_u128(1)), body.to_string().as_bytes())
    }

    #[test]
    fn a_record_becomes_a_rule() {
        let rule = read(&json!({"scope": {"type": "model", "id": "gpt-4o"}, "window": "week", "limit_usd": 1.5,
            "limit_tokens": null, "limit_requests": 10, "action": "reject"}));
        let limits = BudgetLimits { nano_usd: Some(1_500_000_000), requests: Some(10), ..BudgetLimits::default() };
        let rule = rule.expect("valid");
        assert_eq!((rule.scope.clone(), rule.limits), (BudgetScope::Model("gpt-4o".into()), limits));
        assert_eq!(rule.description(), "budget of the model `gpt-4o` for each week");
        assert!(!rule.allow_unpriced);
    }

    #[test]
    fn every_scope_is_read() {
        for kind in ["org", "project", "user", "service_account", "api_key", "secret", "model"] {
            let body = json!({"scope": {"type": kind, "id": ID.to_string()}, "window": "total", "action": "alert"});
            assert_eq!(read(&body).expect(kind).scope.word(), kind);
        }
    }

    #[test]
    fn an_unreadable_rule_names_the_field() {
        let body = |field: &str, value: Value| {
            let mut body = json!({"scope": {"type": "org", "id": "x"}, "window": "day", "action": "reject"});
            body[field] = value;
            read(&body).expect_err(field).to_string()
        };
        for (field, value) in [
            ("scope", json!({"type": "team", "id": "x"})),
            ("scope", json!({"type": "user", "id": "x"})),
            ("window", json!("year")),
            ("action", Value::Null),
            ("limit_usd", json!("1")),
            ("limit_tokens", json!(-1)),
            ("limit_concurrent", json!(1.5)),
        ] {
            assert!(body(field, value).contains(&format!("`{field}`")));
        }
        assert_eq!(BudgetRule::read(ID, OrgId(ID), b"[]"), Err(BudgetRuleError::NotAnObject(ID)));
    }
}
