//! Limits: how many requests are admitted, how much they hold at once, and how much is stored.
//!
//! | subject | module |
//! |---|---|
//! | rate limiting: token buckets for the rules of the configuration, shared by all nodes | [`rate_limiting`] |
//! | quotas: rows and bytes that organizations store, over all nodes | [`quotas`] |
//! | backpressure: bounded budgets that requests wait for | [`backpressure`] |
//! | settings of rate limiting and quotas | [`LimitsConfig`] |
//! | memory of the machine, of which budgets are shares | [`memory_bytes`] |
//!
//! Knows no HTTP: its callers make a refusal of what is not admitted.
//!
//! # Backpressure
//!
//! A request that does not fit waits until its deadline, and is refused only then. Requests are served fairly by
//! organization, then by credential.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use std::time::Duration;
//!
//! use assay_node_limits::{Budget, Holder, Refusals, Refused};
//! use tokio::time::Instant;
//! use uuid::Uuid;
//!
//! let refusals = Refusals::default();
//! let permits = Budget::new("queries.running_max", 16, &refusals);
//! let holder = Holder::new(Uuid::from_u128(1), Uuid::from_u128(2));
//! let until = Instant::now() + Duration::from_millis(10);
//!
//! let first = permits.acquire(holder, 14, until).await?;
//! // A single credential leaves the last eighth free for others.
//! let refused = permits.acquire(holder, 1, until).await.map(drop);
//! assert!(matches!(refused, Err(Refused::Full { .. })));
//! drop(first);
//! let second = permits.acquire(holder, 1, until).await?;
//! assert_eq!(second.amount(), 1);
//! # Ok::<(), Refused>(())
//! # }).unwrap();
//! ```

pub mod backpressure;
mod config;
mod memory;
pub mod quotas;
pub mod rate_limiting;

pub use backpressure::{
    Budget, Division, Drain, Holder, LINE_EVERY, Reading, Refusals, Refused, Reservation, Waits, metrics,
};
pub use config::LimitsConfig;
pub use memory::{memory_bytes, memory_share};
pub use quotas::{ClusterUsage, QuotaExceeded, QuotaRule, Quotas, StorageUsage, UsageSource};
pub use rate_limiting::{ClusterPeers, Per, RateExceeded, RateLimiter, RatePeers, RateRule, RateView, serve_leases};
