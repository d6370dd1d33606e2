//! Budgets of model calls: money, tokens, requests and concurrent calls of an organization, a project, a user, a service
//! account, a key, a provider secret or a model, in windows of time (G-34, G-35).
//!
//! | module | subject |
//! |---|---|
//! | [`window`], [`amounts`], [`rule`] | windows, amounts, and the rules that records of the kind `gateway_budget` have |
//! | [`ledger`], [`stored`] | the pure core: reservations and settlements of one budget, and its record |
//! | [`queue`] | batches of changes as conditional writes of one ledger |
//! | [`catalog`], [`ReplicatedBudgets`] | what budgets need of a catalog, and the replicated one |
//! | [`service`] | admission and settlement of calls, for the gateway |
//! | [`usage`], [`headers`], [`metrics`] | what is left: for the API, for response headers, for operators |
//!
//! Each budget has one ledger in the catalog, which all nodes change by conditional writes. So reservations of all nodes
//! count against one limit, and what is settled survives every crash of a minority. A reservation expires with its call's
//! time limit, whatever happens to the node.
//!
//! A call is admitted while something is left of each limit: a window exceeds money and tokens by less than one call.

pub mod amounts;
mod call;
pub mod catalog;
mod counters;
mod headers;
pub mod ledger;
mod metrics;
mod queue;
mod replicated;
pub mod rule;
mod rule_table;
mod service;
mod stored;
mod usage;
pub mod window;

pub use amounts::{BudgetAmounts, nano_usd, nano_usd_up};
pub use call::{BudgetCall, BudgetRefusal};
pub use catalog::BudgetCatalog;
pub use headers::RateLimitHeaders;
pub use metrics::BUDGETS_SHOWN_MAX;
pub use replicated::ReplicatedBudgets;
pub use rule::{BudgetAction, BudgetLimits, BudgetRule, BudgetRuleError, BudgetScope};
pub use service::{ADMISSION_WAIT_MAX, BudgetReservation, Budgets, SETTLEMENT_WAIT_MAX, SettlementPending};
pub use stored::LedgerError;
pub use usage::BudgetUsage;
pub use window::BudgetWindow;
