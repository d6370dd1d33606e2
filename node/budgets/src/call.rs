//! Model call as budgets count it, and the reasons for refusing one.

use std::time::Duration;

use assay_storage_model::OrgId;
use thiserror::Error;
use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::headers::RateLimitHeaders;
use crate::ledger::ReachedLimit;
use crate::rule::BudgetScope;

/// Call that requests admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetCall {
    pub org: OrgId,
    /// Project named by the caller, if any.
    pub project: Option<Uuid>,
    /// Calling user, or `None` for a service account.
    pub user: Option<Uuid>,
    pub service_account: Option<Uuid>,
    /// Record of the API key or service token, or `None` for other credentials.
    pub api_key: Option<Uuid>,
    /// Record of the temporary credential sent by the caller, if any.
    pub temporary: Option<Uuid>,
    /// Name of the model in the request.
    pub model: String,
    /// Upper estimate of the price in billionths of a dollar, or `None` for a model without a price.
    pub estimate_nano_usd: Option<u64>,
    /// Upper estimate of the sum of input and output tokens.
    pub estimate_tokens: u64,
    /// Maximum duration of the call, after which its reservation has expired.
    pub timeout: Duration,
}

impl BudgetCall {
    /// Returns the scopes of the call, except for the provider secret, which is chosen later.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = BudgetScope> {
        let optional = [
            self.project.map(BudgetScope::Project),
            self.user.map(BudgetScope::User),
            self.service_account.map(BudgetScope::ServiceAccount),
            self.api_key.map(BudgetScope::ApiKey),
            self.temporary.map(BudgetScope::TemporaryCredential),
        ];
        let always = [BudgetScope::Organization, BudgetScope::Model(self.model.clone())];
        always.into_iter().chain(optional.into_iter().flatten())
    }

    pub(crate) fn estimate(&self) -> BudgetAmounts {
        BudgetAmounts { nano_usd: self.estimate_nano_usd.unwrap_or(0), tokens: self.estimate_tokens }
    }
}

/// Reason for refusing a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetRefusal {
    #[error("the {rule} has used up its limit of {}; try again in {retry_after_seconds} s", limit_word(*.limit))]
    Exceeded { budget: Uuid, rule: String, limit: ReachedLimit, retry_after_seconds: u64, headers: RateLimitHeaders },
    #[error(
        "the model `{model}` has no price, so the {rule} cannot count it; give it a price, or set `allow_unpriced` of \
         the budget"
    )]
    Unpriced { budget: Uuid, rule: String, model: String },
    #[error("the budgets of this call cannot be checked at the moment: {0}")]
    Unavailable(String),
}

impl BudgetRefusal {
    /// Returns the HTTP status of the refusal.
    pub fn status(&self) -> u16 {
        match self {
            BudgetRefusal::Exceeded { .. } => 429,
            BudgetRefusal::Unpriced { .. } => 403,
            BudgetRefusal::Unavailable(_) => 503,
        }
    }

    /// Returns the error code, which every API dialect uses (G-17).
    pub fn code(&self) -> &'static str {
        match self {
            BudgetRefusal::Exceeded { .. } => "budget_exceeded",
            BudgetRefusal::Unpriced { .. } => "model_without_price",
            BudgetRefusal::Unavailable(_) => "budget_unavailable",
        }
    }

    /// Returns the rate limit headers of the error response.
    pub fn rate_limits(&self) -> RateLimitHeaders {
        match self {
            BudgetRefusal::Exceeded { headers, .. } => *headers,
            BudgetRefusal::Unpriced { .. } | BudgetRefusal::Unavailable(_) => RateLimitHeaders::default(),
        }
    }

    /// Returns the value of `Retry-After`, or `None` if a retry cannot help.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            BudgetRefusal::Exceeded { retry_after_seconds, .. } => Some(*retry_after_seconds),
            BudgetRefusal::Unpriced { .. } => None,
            BudgetRefusal::Unavailable(_) => Some(1),
        }
    }
}

fn limit_word(limit: ReachedLimit) -> &'static str {
    match limit {
        ReachedLimit::Usd => "US dollars",
        ReachedLimit::Tokens => "tokens",
        ReachedLimit::Requests => "requests",
        ReachedLimit::Concurrent => "concurrent calls",
        ReachedLimit::Reservations => "reservations",
    }
}
