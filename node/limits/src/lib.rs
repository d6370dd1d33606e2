//! Limits of request rates, of resources that requests hold at once, and of stored data.
//!
//! | subject | module |
//! |---|---|
//! | rate limiting: token buckets for the rules of the configuration, shared by all nodes | [`rate_limiting`] |
//! | quotas: rows and bytes that organizations store, over all nodes | [`quotas`] |
//! | backpressure: bounded budgets that requests wait for | [`backpressure`] |
//! | settings of rate limiting and quotas | [`LimitsConfig`] |
//! | size of the machine's memory, from which budgets are derived | [`memory_bytes`] |
//!
//! The crate does not know HTTP. Its callers turn a refusal into a response.
//!
//! # Backpressure
//!
//! A request that does not fit waits until its deadline and is only then refused. The queue is fair between
//! organizations, then between credentials.
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
pub use quotas::{
    ClusterUsage, MeasuredUsage, ObjectUsages, QuotaExceeded, QuotaRule, Quotas, StorageUsage, UsageSource,
};
pub use rate_limiting::{
    ClusterPeers, Per, RateExceeded, RateLimiter, RatePeers, RateReading, RateRule, RateView, serve_leases,
};
