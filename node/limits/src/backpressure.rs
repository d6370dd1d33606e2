//! Backpressure: requests wait for space in a bounded [`Budget`] and are refused only at their deadline.
//!
//! [`queue`] implements fair admission, and tasks wait on a [`Budget`]. [`Drain`] estimates when a refused client
//! should retry. [`Refusals`] counts and logs refusals, and [`metrics`] reports the budgets.

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
