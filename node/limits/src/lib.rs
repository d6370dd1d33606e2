//! Fair admission to bounded budgets, such as bytes of request bodies or permits to run a query.
//!
//! A request that does not fit waits until its deadline, and is refused only then. Requests are served fairly by
//! organization, then by credential. [`queue`] has the rules and decides; [`Budget`] is what tasks wait on.
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

mod budget;
mod drain;
mod holder;
mod memory;
pub mod queue;
mod reading;
mod refusals;

pub use budget::{Budget, Refused, Reservation};
pub use drain::Drain;
pub use holder::Holder;
pub use memory::{memory_bytes, memory_share};
pub use queue::Division;
pub use reading::{Reading, Waits, metrics};
pub use refusals::{LINE_EVERY, Refusals};
