//! Backpressure: requests wait for room in a bounded [`Budget`], and are refused only at their deadline.
//!
//! [`queue`] has the rules of fair admission and decides; [`Budget`] is what tasks wait on. [`Drain`] estimates when a refused
//! client should try again, [`Refusals`] logs and counts refusals, and [`metrics`] reports the budgets.

mod budget;
mod drain;
mod holder;
pub mod queue;
mod reading;
mod refusals;

pub use budget::{Budget, Refused, Reservation};
pub use drain::Drain;
pub use holder::Holder;
pub use queue::Division;
pub use reading::{Reading, Waits, metrics};
pub use refusals::{LINE_EVERY, Refusals};
