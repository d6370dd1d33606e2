//! Faults that a test queues: each is spent by one request.

use std::time::Duration;

/// Way in which a provider misbehaves once.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The connection is closed before anything is answered.
    Closes,
    /// Nothing is answered for this long, then the script goes on.
    SlowFirstByte(Duration),
    /// The body ends after so many bytes, and the connection with it.
    CutAfter(usize),
    /// A status with this value of `Retry-After`, if any.
    Status { status: u16, retry_after: Option<String> },
    /// A stream of status 200 has so many good events and then one with an error.
    ErrorEventAfter(usize),
    /// A body of another type than the status and the path promise.
    WrongContentType,
    /// A stream has an event of so many bytes.
    HugeEvent(usize),
    /// An error of this status, whose message has the headers of the request, as careless servers write it.
    TellsHeaders(u16),
    /// Each event of a stream comes after this pause.
    SlowEvents(Duration),
}
