//! Requests as they are read: callers, bodies, admission, and the headers that decide how a request is served.

pub mod admission;
pub mod background;
pub mod body;
pub mod caller;
pub mod idempotency_key;
pub mod limits;
pub mod origin;
pub mod pace;
pub mod query_body;
pub mod range;
pub mod row_bodies;
pub mod unread_body;
pub mod wait;
