//! Budgets of model calls, which limit money, tokens, requests and concurrent calls within time windows (G-34, G-35).
//!
//! The scope of a budget is an organization, project, user, service account, credential, provider secret or model.
//!
//! | module | subject |
//! |---|---|
//! | [`window`], [`amounts`], [`rule`] | windows, amounts, and the rules in records of the kind `gateway_budget` |
//! | [`ledger`], [`stored`] | reservations and settlements of one budget without I/O, and the form of its record |
//! | [`queue`] | batches of changes as conditional writes of one ledger |
//! | [`catalog`], [`ReplicatedBudgets`] | interface to the catalog, and its replicated implementation |
//! | [`service`] | admission and settlement of calls, for the gateway |
//! | [`usage`], [`headers`], [`metrics`] | use and remainders, for the API, for response headers, and for operators |
//!
//! Each budget has one ledger in the catalog, which all nodes change by conditional writes. The reservations of all
//! nodes therefore count against the same limits, and settlements survive the crash of any minority. A reservation
//! expires with the time limit of its call, even if the node crashes.
//!
//! A call is admitted while each limit has a remainder. Money and tokens therefore exceed their limits by less than one
//! call, if no call uses more than it reserved.

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
pub use queue::COUNTS_WAITING_MAX;
pub use replicated::ReplicatedBudgets;
pub use rule::{BudgetAction, BudgetLimits, BudgetRule, BudgetRuleError, BudgetScope};
pub use service::{ADMISSION_WAIT_MAX, BudgetReservation, Budgets, SETTLEMENT_WAIT_MAX, SettlementPending};
pub use stored::LedgerError;
pub use usage::BudgetUsage;
pub use window::BudgetWindow;
