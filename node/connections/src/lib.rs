//! Client connections of one listener: their number, their owners, and the choice of a connection to close for a new
//! one.
//!
//! ```text
//! accept -> Gate -> Table (pure): admit | admit to the reserve | close the idlest | refuse
//!                      |
//!                      +-> Tracked, the stream that tells the table what moves, and ends when the table says so
//! ```
//! A newcomer is let in although the listener is full: the idlest connection closes for it. Where none is idle it gets a
//! place in the reserve, from which only health is answered. An organization holds at most half of the connections and a
//! credential a quarter while others wait.
//!
//! Knows neither HTTP nor gRPC.

mod gate;
mod heard;
mod table;
mod tracked;

pub use gate::{Connection, Gate, InUse};
pub use heard::{Heard, HeardBytes};
pub use table::{Counts, Effect, Event, Id, Limits, Millis, Owner, Table, Why};
pub use tracked::Tracked;
