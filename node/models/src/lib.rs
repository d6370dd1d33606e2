//! Model calls without input or output: choice of the upstreams for a model, and handling of failures.
//!
//! | module | subject |
//! |---|---|
//! | [`provider`] | typed view of a provider secret: URLs, authentication, header rules |
//! | [`catalog`] | model names to specs and prices; costs and reservations |
//! | [`resolution`] | candidates of a call and their order |
//! | [`cooling`] | upstreams that are avoided for a while, as a state that nodes can exchange and join |
//! | [`attempts`] | state machine of a call: order of attempts, and response for the caller |
//! | [`headers`] | headers exchanged with clients and upstreams |
//!
//! The time is always an argument, in milliseconds since 1970. This crate knows neither HTTP libraries nor records nor
//! the storage of secrets. Ids such as (G-10) refer to decisions of the contract.

pub mod attempts;
mod calendar;
pub mod catalog;
mod complaint;
pub mod cooling;
pub mod headers;
pub mod provider;
pub mod resolution;

pub use complaint::MetadataComplaint;
