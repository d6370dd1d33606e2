//! Reading of requests: callers, bodies, admission, and the headers that decide how a request is served.

pub mod admission;
pub mod background;
pub mod body;
pub mod caller;
pub mod console_session;
pub mod error_texts;
mod function_access;
pub mod idempotency_key;
pub mod limits;
pub mod login;
pub mod origin;
pub(crate) mod pace;
pub mod range;
pub(crate) mod unread_body;
pub mod wait;
