//! Model calls without IO: from a model name to an ordered list of upstreams, and what to do when one fails.
//!
//! | module | subject |
//! |---|---|
//! | [`provider`] | typed view of a provider secret: URLs, authentication, header rules |
//! | [`catalog`] | model names to specs and prices; costs and reservations |
//! | [`resolution`] | candidates of a call and their order |
//! | [`cooling`] | upstreams that are left alone for a while; nodes can exchange and join this state |
//! | [`attempts`] | step machine of one call: which upstream is tried when, and what the caller gets |
//! | [`headers`] | headers that pass between client and upstream |
//!
//! The time is always an argument, in milliseconds since 1970. Nothing here knows HTTP libraries, records or secrets'
//! storage. Ids such as (G-10) name decisions of the contract.

pub mod attempts;
mod calendar;
pub mod catalog;
mod complaint;
pub mod cooling;
pub mod headers;
pub mod provider;
pub mod resolution;

pub use complaint::MetadataComplaint;
